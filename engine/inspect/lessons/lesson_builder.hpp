// The stages of one lesson while they are computed.
#pragma once

#include <fovea/inspect/lessons.hpp>
#include <fovea/model.hpp>

#include <functional>
#include <map>

namespace fovea {

class LessonBuilder {
  public:
    // Makes the draws; given and drawn tensors become the first stages.
    LessonBuilder(const Lesson& lesson, Executor& executor);

    const LessonConfig& config() const { return lesson_.config; }
    const Lesson& lesson() const { return lesson_; }
    Executor& executor() { return executor_; }

    void add(std::string name, std::string formula, F32Tensor tensor);
    // All stages of a trace, `rename` deciding each name; an empty one is left out. Formulas, of later traces
    // too, follow.
    using Rename = std::function<std::string(const std::string&)>;
    void add(LayerTrace& trace, const Rename& rename = {});

    // From now on formulas say `name` where a layer says `word`.
    void say(const std::string& word, const std::string& name) { words_[word] = name; }

    // A stage by name. The lessons' data and recipes belong together: a name that is missing is a bug, which
    // shows as an empty scalar that the layers refuse.
    const F32Tensor& at(std::string_view name) const;
    bool has(std::string_view name) const;

    // What the layers take: "X" if there is one, else "inputs".
    const F32Tensor& input() const;

    Linear linear(std::string_view weight, std::string_view bias = {}) const;
    AttentionOptions options(bool causal) const;
    SelfAttention self_attention(bool causal, const std::string& prefix = {}) const;

    // The generator as it stood when the dropout mask was drawn; each variant starts from it.
    TorchGenerator dropout_generator() const { return dropout_generator_; }
    const Draw* dropout_draw() const { return dropout_draw_; }

    // Attention of matrices [Lq, D], [Lkv, D], [Lkv, Dv]; results are matrices too.
    Result<AttentionResult> attention(const F32Tensor& q, const F32Tensor& k, const F32Tensor& v,
                                      ScoreScale scale, uint32_t outputs);
    // [n, k] x [k, m] on the executor.
    Result<F32Tensor> product(const F32Tensor& a, const F32Tensor& b);

    std::vector<LessonStage> take_stages() { return std::move(stages_); }

  private:
    void draw(const Draw& draw);

    const Lesson& lesson_;
    Executor& executor_;
    TorchGenerator generator_{0}, dropout_generator_{0};
    const Draw* dropout_draw_ = nullptr;
    std::string seed_text_;
    std::map<std::string, std::string> words_;
    std::vector<LessonStage> stages_;
};

// Vectors and matrices that the recipes share.
F32Tensor row_of(const F32Tensor& matrix, uint64_t index);  // [columns]
F32Tensor as_row(F32Tensor vector);                         // [n] -> [1, n]
F32Tensor as_vector(F32Tensor matrix);                      // [1, n] -> [n]
F32Tensor scalar(float value);
F32Tensor lower_triangle(uint64_t size);           // ones on and below the diagonal
F32Tensor strictly_upper_triangle(uint64_t size);  // ones above it

}  // namespace fovea
