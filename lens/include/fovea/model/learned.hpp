// Models that learned a task. The library carries the weights of one for each task of `fovea train` (files of
// lens/model/learned, made by the command that each of them notes), and reads those that a reader trained.
//
// Nothing here keeps state or throws; all functions are safe from any thread.
#pragma once

#include <fovea/files.hpp>
#include <fovea/files/checkpoint.hpp>
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
    std::vector<std::string> look_at;    // descriptions of what to look for, one paragraph each
    std::shared_ptr<const Model> model;  // the model; its vocabulary has a text for each token
    std::vector<uint32_t> sample;        // a sequence that shows what was learned, as token IDs; may be empty
    // The label of each head, [layers * heads], layer by layer: "previous token", "induction", ...; or empty.
    std::vector<std::string> head_labels;
    std::string made_by;  // command and seed; may be empty
    // How a text becomes this model's tokens; null for tasks whose tokens are written with spaces between.
    std::shared_ptr<const LearnedTokenizer> tokenizer;
};

// The tasks whose weights the library carries, by name.
std::vector<std::string> learned_tasks();
std::string known_learned_tasks();  // "induction, recall, ..."
// One of them. The error lists those that there are.
Result<LearnedModel> learned_model(std::string_view task);
// The file itself, safetensors: read_state() of <fovea/train.hpp> takes it as a state. Empty for another
// name.
std::span<const std::byte> learned_weights(std::string_view task);
// Returns such a model as the files of a folder: config.json, model.safetensors and, where its tokens are
// words with spaces between, tokenizer.json. CheckpointModel::open() and TextTokenizer::open() take the task
// for a path. Empty for another name, and where the path exists.
std::vector<NamedFile> learned_checkpoint(const std::filesystem::path& path);

// Reads a file that `fovea train --out` wrote, with or without moments. Rejects notes or tensors that are
// missing, have another shape, or are not finite; the error names them.
Result<LearnedModel> read_learned_model(const TensorSet& file);

// Returns the input on which a trace runs such a model: tokens and their embedded vectors. Rejects tokens
// outside the vocabulary, and more tokens than the model has positions.
Result<ModelInput> learned_input(const LearnedModel& learned, std::span<const uint32_t> tokens);
// Returns the token IDs of a text. With a tokenizer, they are LearnedTokenizer::kStart and the result of
// encode(), so token n + 1 is encode()'s token n. Without one, the text is words of the vocabulary separated
// by spaces; the error names an unknown word.
Result<std::vector<uint32_t>> learned_tokens(const LearnedModel& learned, std::string_view text);

// A text as typed. A word outside the vocabulary is split into tokens, longest first, so "fovea" becomes five
// letters; a capital becomes its small letter if it is not a token. A sequence begins with "<start>" if the
// vocabulary has that token. A model with a tokenizer uses only its tokenizer and leaves nothing out: unseen
// characters become "<unknown>".
struct LearnedText {
    std::vector<uint32_t> tokens;
    std::string left_out;  // the characters that are not tokens, in their order
};
LearnedText learned_text(const LearnedModel& learned, std::string_view text);
// The longest sequence that is taken: that of the learned positions, or as many tokens as a level shows.
size_t most_learned_tokens(const LearnedModel& learned);

// Returns the model of a session whose `task` is this model's. The session's rules apply in every layer, so a
// mask or a temperature shows its effect on trained heads; heads that are off contribute nothing. Notes list
// the parts of the text that were left out. Rejects a text without a token.
Result<SessionModel> learned_session(const Session& session, std::shared_ptr<const LearnedModel> learned);

}  // namespace fovea
