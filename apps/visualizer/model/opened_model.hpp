// A published model that the reader opened: its weights where they lie, and how a text becomes its tokens.
#pragma once

#include "model/tokenizer.hpp"

#include <fovea/model/checkpoint_model.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::visualizer {

struct OpenedModel {
    std::string path, name;  // as it was given; its last part
    CheckpointModel weights;
    std::optional<TextTokenizer> tokenizer;
    std::string why_no_text;  // where there is none: token numbers are typed
};

// A folder with config.json, or a file that ends in .gguf.
bool is_model_path(const std::filesystem::path& path);
// Refused, in one line: what CheckpointModel refuses, models that lack weights, and those whose largest layer
// is larger than this machine's memory.
Result<std::shared_ptr<const OpenedModel>> open_model(const std::filesystem::path& path);

// By its tokenizer; without one, numbers with spaces or commas between.
Result<std::vector<uint32_t>> tokens_of(const OpenedModel& model, std::string_view text);
// The token as a person reads it; its number without a tokenizer.
std::string token_text(const OpenedModel& model, uint32_t id);
// What is shown of a model before the reader has typed anything.
std::string first_text(const OpenedModel& model);
// The machine's memory in bytes; 0: not known.
uint64_t machine_memory();

}  // namespace fovea::visualizer
