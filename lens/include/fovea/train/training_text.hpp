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

// What a text model is trained on: a text as tokens, cut into what is learned and what is kept back for
// judging.
class TrainingText {
  public:
    // A text, one verse or paragraph a line, and a vocabulary of at most `tokens` learned from all of it: a
    // function of both alone. Refused: a text whose code points alone are more, or that is too short for one
    // sequence of both kinds.
    static Result<std::shared_ptr<const TrainingText>> make(std::string_view text, uint32_t tokens);
    // A vocabulary without a text: enough to open trained weights and to probe them, not to train or judge.
    static Result<std::shared_ptr<const TrainingText>> of_vocabulary(std::vector<std::string> vocabulary);

    // The tokenizer of the vocabulary.
    const LearnedTokenizer& tokenizer() const { return tokenizer_; }
    // False where there is a vocabulary alone.
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
