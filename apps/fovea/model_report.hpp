// Describes a checkpoint as text and as JSON.
#pragma once

#include "arguments.hpp"

#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/device_runner.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/model/token_scores.hpp>
#include <fovea/thread_pool.hpp>
#include <fovea/tokenizer.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace fovea::app {

std::string model_text(const CheckpointModel& model);
std::string model_json(const CheckpointModel& model);

// Rejects anything but one path of a model, and explains how to give a text.
Result<void> check_model_words(const Arguments& arguments);
// The files of a model that is opened: what is written must be none of them.
std::vector<std::filesystem::path> files_of(const Checkpoint& files);

// The input of a model: --tokens, IDs separated by commas, or --text with the model's own tokenizer, which is
// then set.
struct ModelTokens {
    std::vector<uint32_t> ids;
    std::optional<TextTokenizer> tokenizer;
};
// The options that say it.
struct TokenOptions {
    std::string_view text = "--text", tokens = "--tokens";
    bool special = true;               // the tokenizer puts around a text what the model learned with
    std::optional<std::string> given;  // in place of the value of `text`
};
Result<ModelTokens> input_tokens(const Arguments& arguments, const CheckpointModel& model,
                                 const TokenOptions& options = {});
// True if --backend or --device chooses where a model runs.
bool names_device(const Arguments& arguments);
// Returns the runner of a model: the CPU's kernels on --threads threads (all of the machine), or the chosen
// device (--backend, --device).
Result<std::unique_ptr<Runner>> open_runner(const Arguments& arguments);
// Prints on standard error how much memory is needed if that is much; rejects more than this machine has
// free.
Result<void> tell_memory(uint64_t bytes);

// A head of a model on one text.
struct ScoredHead {
    uint64_t layer, head;
    TokenScores scores;
};
// The heads with most of each score; JSON has all of them, layer by layer.
std::string scores_text(const std::vector<ScoredHead>& heads, size_t most);
std::string scores_json(const std::vector<ScoredHead>& heads);

}  // namespace fovea::app
