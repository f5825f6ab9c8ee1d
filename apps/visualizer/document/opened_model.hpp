// A published model that the reader opened.
#pragma once

#include <fovea/model/runner.hpp>
#include <fovea/tokenizer.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace fovea::visualizer {

struct OpenedModel : TextModel {
    std::string path, name;           // as it was given; its last part
    mutable std::string fingerprint;  // hash of its files, as a session names it; empty: not computed yet
};

// A folder with config.json, or a file that ends in .gguf.
bool is_model_path(const std::filesystem::path& path);
// Rejects what open_text_model() rejects, and models whose largest layer is larger than this machine's
// memory. Errors have one line.
Result<std::shared_ptr<const OpenedModel>> open_model(const std::filesystem::path& path);

// Runs models on all of the machine's CPU threads.
std::unique_ptr<Runner> make_model_runner();

// The machine's memory in bytes; 0: not known.
uint64_t machine_memory();

}  // namespace fovea::visualizer
