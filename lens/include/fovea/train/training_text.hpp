// A text that a model learns to go on with: its tokens, and which of them are kept back for judging.
//
//   std::shared_ptr<const TrainingText> text = *TrainingText::make(words, kTextVocabulary);
//   const Task task = *make_text_task(text);
#pragma once

#include <fovea/model/learned_tokenizer.hpp>
#include <fovea/train/task.hpp>

#include <memory>
#include <vector>

namespace fovea {

// Tokens of the vocabulary that `fovea train text` learns.
inline constexpr uint32_t kTextVocabulary = 2048;

// The data of a text task: a text as tokens, divided into a training part and a held-out part.
class TrainingText {
  public:
    // Takes a text, with one verse or paragraph per line, and learns a vocabulary of at most `tokens` from
    // all of it. The result depends on nothing else. Rejects a text with more distinct code points than that,
    // or one too short for one sequence of both kinds.
    static Result<std::shared_ptr<const TrainingText>> make(std::string_view text, uint32_t tokens);
    // A vocabulary without a text: enough to open trained weights and to probe them, not to train or judge.
    static Result<std::shared_ptr<const TrainingText>> of_vocabulary(std::vector<std::string> vocabulary);

    // The tokenizer of the vocabulary.
    const LearnedTokenizer& tokenizer() const { return tokenizer_; }
    // False if there is only a vocabulary.
    bool has_text() const { return !training_lines_.empty(); }
    // All tokens of the text, in its order.
    const std::vector<uint32_t>& tokens() const { return tokens_; }
    // Where lines begin that a sequence may start with, as places in tokens(): sequences of training and of
    // judging share no token.
    const std::vector<size_t>& training_lines() const { return training_lines_; }
    const std::vector<size_t>& held_out_lines() const { return held_out_lines_; }

  private:
    explicit TrainingText(LearnedTokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
    LearnedTokenizer tokenizer_;
    std::vector<uint32_t> tokens_;
    std::vector<size_t> training_lines_, held_out_lines_;
};

// The task of going on with a text, TaskKind::text.
Result<Task> make_text_task(std::shared_ptr<const TrainingText> text);

}  // namespace fovea
