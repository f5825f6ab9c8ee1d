// Models that learned a task. The library carries the weights of one for each task of `fovea train` (files of
// engine/model/learned, made by the command that each of them notes), and reads those that a reader trained.
//
// Nothing here keeps state or throws; all functions are safe from any thread.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/transformer.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {
/// A small model that was trained for a task, and what there is to see in it.
struct LearnedModel {
    std::string task;                    // "induction"
    std::string title, about;            // for people; empty for a task that has no text
    std::vector<std::string> look_at;    // what there is to see, one paragraph each
    std::shared_ptr<const Model> model;  // its vocabulary has a text for each token
    std::vector<uint32_t> sample;  // a sequence that shows what was learned, as token numbers; may be empty
    // What each head does, [layers * heads], layer by layer: "previous token", "induction", ...; or empty.
    std::vector<std::string> head_labels;
    std::string made_by;  // command and seed; may be empty
};

// The tasks whose weights the library carries, by name.
std::vector<std::string> learned_tasks();
// One of them. The error lists those that there are.
Result<LearnedModel> learned_model(std::string_view task);
// The file itself, safetensors: read_state() of <fovea/train.hpp> takes it as a state. Empty for another
// name.
std::span<const std::byte> learned_weights(std::string_view task);

// A file that `fovea train --out` wrote, with or without moments. Refused, by the name of the note or tensor:
// what is missing, of another shape, or not numbers.
Result<LearnedModel> read_learned_model(const TensorSet& file);

// What a trace runs such a model on: tokens and their embedded vectors. Refused: a token that the vocabulary
// has not, more of them than the model has positions for.
Result<ModelInput> learned_input(const LearnedModel& learned, std::span<const uint32_t> tokens);
// Token numbers of words with spaces between, as the vocabulary writes them; the error names the word.
Result<std::vector<uint32_t>> learned_tokens(const LearnedModel& learned, std::string_view text);

}  // namespace fovea
