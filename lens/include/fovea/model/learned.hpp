// Models that learned a task. The library carries the weights of one for each task of `fovea train` (files of
// lens/model/learned, made by the command that each of them notes), and reads those that a reader trained.
//
// Nothing here keeps state or throws; all functions are safe from any thread.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/learned_tokenizer.hpp>
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
    // How a text becomes this model's tokens; null for tasks whose tokens are written with spaces between.
    std::shared_ptr<const LearnedTokenizer> tokenizer;
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
// Token numbers of a text. With a tokenizer: LearnedTokenizer::kStart, then what encode() gives, so that
// token n + 1 lies where encode()'s token n does. Without: of words with spaces between, as the vocabulary
// writes them; the error names the word.
Result<std::vector<uint32_t>> learned_tokens(const LearnedModel& learned, std::string_view text);

// A text as a reader types it. Words that are no token are taken apart into tokens, the longest first, so
// that "fovea" is five letters; a capital stands for its small letter where it is no token itself. A sequence
// begins with the token "<start>" where the vocabulary has one. A model with a tokenizer reads the text by
// that alone, and nothing is left out: what it never saw is its token "<unknown>".
struct LearnedText {
    std::vector<uint32_t> tokens;
    std::string left_out;  // what is no token, in its order
};
LearnedText learned_text(const LearnedModel& learned, std::string_view text);
// The longest sequence that is taken: that of the learned positions, or as many tokens as a level shows.
size_t most_learned_tokens(const LearnedModel& learned);

// What a session shows whose `task` is this model's: its rules count in every layer, so that a mask or a
// temperature shows what it does to heads that learned; heads that are off give nothing. Its notes say what
// of the text was left out. Refused: a text without a token.
Result<SessionModel> learned_session(const Session& session, std::shared_ptr<const LearnedModel> learned);

}  // namespace fovea
