// The stages of one lesson while they are computed.
#pragma once

#include <fovea/inspect/lessons.hpp>
#include <fovea/model.hpp>

#include <functional>
#include <map>

namespace fovea {

// One intermediate result of a layer: "queries", "queries = X W_query".
struct LayerStage {
    std::string name, formula;
    F32Tensor tensor;
};
struct LayerStages : std::vector<LayerStage> {
    const F32Tensor& at(std::string_view name) const;  // an empty scalar where there is none
};

class LessonBuilder {
  public:
    // Makes the draws; given and drawn tensors become the first stages.
    LessonBuilder(const Lesson& lesson, Runner* engine);

    const LessonConfig& config() const { return lesson_.config; }
    const Lesson& lesson() const { return lesson_; }

    void add(std::string name, std::string formula, F32Tensor tensor);
    // A layer's stages, `rename` deciding each name; an empty one is left out. Formulas, of later layers too,
    // follow.
    using Rename = std::function<std::string(const std::string&)>;
    void add(LayerStages stages, const Rename& rename = {});
    // Adds only the stages with these names.
    void add(LayerStages stages, std::initializer_list<std::string_view> names);

    // From now on formulas say `name` where a layer says `word`.
    void say(const std::string& word, const std::string& name) { words_[word] = name; }

    // A stage by name. The lessons' data and recipes belong together: a name that is missing is a bug, which
    // shows as an empty scalar that a trace refuses.
    const F32Tensor& at(std::string_view name) const;
    bool has(std::string_view name) const;

    // Returns the input of the layers: "X" if it exists, else "inputs".
    const F32Tensor& input() const;

    Linear linear(std::string_view weight, std::string_view bias = {}) const;
    // W_query, W_key and W_value of that prefix, one head.
    AttentionPart self_attention(bool causal, const std::string& prefix = {}) const;

    // All stages of one layer over every matrix of x, [.., tokens, width], in the tutorial's order and under
    // its names: queries, keys, values (where it projects), scores .. weights, context, output; matrices of
    // heads have the heads before the rows where there is an output projection. The scale is the lesson's.
    Result<LayerStages> layer(const F32Tensor& x, const AttentionPart& part) const;
    // The other route to a causal mask: mask_tril, masked_simple, row_sums, masked_simple_norm.
    Result<LayerStages> renormalised(const F32Tensor& x, const AttentionPart& part) const;

    // The generator's state before the dropout mask was drawn; each variant starts from it.
    TorchGenerator dropout_generator() const { return dropout_generator_; }
    const Draw* dropout_draw() const { return dropout_draw_; }

    // One query [D] over matrices [Lkv, D] and [Lkv, Dv]: vectors of its products, of the scaled ones, its
    // weights and its context.
    struct OneQuery {
        F32Tensor scores, scaled, weights, context;
    };
    Result<OneQuery> attend(const F32Tensor& query, const F32Tensor& keys, const F32Tensor& values,
                            ScoreScale scale = {}) const;

    std::vector<LessonStage> take_stages() { return std::move(stages_); }

  private:
    void draw(const Draw& draw);
    Result<Trace> open(const AttentionPart& part, ModelInput input) const;

    const Lesson& lesson_;
    Runner* engine_;
    TorchGenerator generator_{0}, dropout_generator_{0};
    const Draw* dropout_draw_ = nullptr;
    std::string seed_text_;
    std::map<std::string, std::string> words_;
    std::vector<LessonStage> stages_;
};

// Vectors and matrices that the recipes share.
F32Tensor row_of(const F32Tensor& matrix, uint64_t index);  // [columns]
F32Tensor as_vector(F32Tensor matrix);                      // [1, n] or [n, 1] -> [n]
F32Tensor scalar(float value);
F32Tensor lower_triangle(uint64_t size);           // ones on and below the diagonal
F32Tensor strictly_upper_triangle(uint64_t size);  // ones above it

}  // namespace fovea
