// A lesson's layers: traces of one block, their stages under the names and formulas of the tutorials.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "files/locale_point.hpp"
#include "inspect/lessons/lesson_builder.hpp"

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// One result of every matrix of x, as [leading of x.., its own shape..].
F32Tensor joined(const F32Tensor& x, const std::vector<F32Tensor>& parts) {
    Shape shape(x.shape.begin(), x.shape.end() - 2);
    shape.insert(shape.end(), parts[0].shape.begin(), parts[0].shape.end());
    F32Tensor all(std::move(shape), {});
    for (const F32Tensor& part : parts)
        all.values.insert(all.values.end(), part.values.begin(), part.values.end());
    return all;
}

std::vector<F32Tensor> matrices_of(const F32Tensor& x) {
    const uint64_t rows = x.shape[x.rank() - 2], size = rows * x.columns();
    std::vector<F32Tensor> all;
    for (auto at = x.values.begin(); at != x.values.end(); at += int64_t(size))
        all.emplace_back(Shape{rows, x.columns()}, std::vector<float>(at, at + int64_t(size)));
    return all;
}

// [heads, rows, columns] -> [rows, heads * columns]
F32Tensor side_by_side(const F32Tensor& heads) {
    if (heads.rank() == 2) return heads;
    F32Tensor merged = merge_heads(reshaped(heads, {1, heads.shape[0], heads.shape[1], heads.shape[2]}));
    return reshaped(std::move(merged), {heads.shape[1], heads.shape[0] * heads.shape[2]});
}

// "queries = X W_query^T + bias"
std::string product_formula(const std::string& result, const char* x, const std::string& weight,
                            const Linear& layer) {
    return result + " = " + x + " " + weight + (layer.layout == WeightLayout::out_in ? "^T" : "") +
           (layer.has_bias() ? " + bias" : "");
}

// The traces of all matrices of x, asked for one stage after the other.
class Traces {
  public:
    Traces(const F32Tensor& x, std::vector<Trace> traces) : x_(x), traces_(std::move(traces)) {}

    // Where a layer has several heads they are a dimension; `split` makes one of a single head, too.
    Result<F32Tensor> stage(StageId id, bool split = false) {
        std::vector<F32Tensor> parts;
        for (Trace& trace : traces_) {
            Result<F32Tensor> part = trace.whole_stage(id);
            if (!part) return part;
            if (split && part->rank() == 2) part->shape.insert(part->shape.begin(), 1);
            parts.push_back(std::move(*part));
        }
        return joined(x_, parts);
    }
    Result<F32Tensor> merged(StageId id) {
        std::vector<F32Tensor> parts;
        for (Trace& trace : traces_) {
            const Result<F32Tensor> part = trace.whole_stage(id);
            if (!part) return part;
            parts.push_back(side_by_side(*part));
        }
        return joined(x_, parts);
    }

  private:
    const F32Tensor& x_;
    std::vector<Trace> traces_;
};

// Takes stages one after the other and keeps the first error.
class Collector {
  public:
    F32Tensor take(Result<F32Tensor> made) {
        if (made) return std::move(*made);
        if (!error_) error_ = made.error();
        return F32Tensor({0, 0});
    }
    void add(std::string name, std::string formula, F32Tensor tensor) {
        stages_.push_back({std::move(name), std::move(formula), std::move(tensor)});
    }
    Result<LayerStages> result() {
        if (error_) return *error_;
        return std::move(stages_);
    }

  private:
    LayerStages stages_;
    std::optional<Error> error_;
};

std::string number_text(double value) { return files::number_by("%.*g", 17, value); }

// Rules take what scores are divided by; a factor is a division by its reciprocal.
std::string divisor_text(const ScoreScale& scale) {
    return scale == ScoreScale{} ? "none" : number_text(scale.divides ? scale.value : 1.0 / scale.value);
}

}  // namespace

const F32Tensor& LayerStages::at(std::string_view name) const {
    static const F32Tensor kMissing;
    const auto found = std::find_if(begin(), end(), [&](const LayerStage& s) { return s.name == name; });
    return found != end() ? found->tensor : kMissing;
}

AttentionPart LessonBuilder::self_attention(bool causal, const std::string& prefix) const {
    AttentionPart part;
    part.query = linear(prefix + "W_query"), part.key = linear(prefix + "W_key");
    part.value = linear(prefix + "W_value");
    part.rules.causal = causal;
    return part;
}

Result<Trace> LessonBuilder::open(const AttentionPart& part, ModelInput input) const {
    const auto model = std::make_shared<Model>();
    model->blocks.emplace_back().attention = part;
    return Trace::open(model, std::move(input), {engine_ ? Arithmetic::engine : Arithmetic::strict, engine_});
}

Result<LessonBuilder::OneQuery> LessonBuilder::attend(const F32Tensor& query, const F32Tensor& keys,
                                                      const F32Tensor& values, ScoreScale scale) const {
    const auto one_head = [](const F32Tensor& t) { return reshaped(t, {1, t.rows(), t.columns()}); };
    AttentionPart part;
    part.rules.scale = divisor_text(scale);
    ModelInput input;
    input.q = one_head(query), input.k = one_head(keys), input.v = one_head(values);
    Result<Trace> trace = open(part, std::move(input));
    if (!trace) return trace.error();
    const auto vector = [&](StageId id) -> Result<F32Tensor> {
        Result<F32Tensor> made = trace->stage(trace->nearest_stage(id));
        return made && query.rank() == 1 ? as_vector(std::move(*made)) : made;
    };
    OneQuery out;
    for (const auto& [id, to] : {std::pair{StageId::scores, &out.scores},
                                 {StageId::scaled, &out.scaled},
                                 {StageId::weights, &out.weights},
                                 {StageId::context, &out.context}}) {
        Result<F32Tensor> made = vector(id);
        if (!made) return made.error();
        *to = std::move(*made);
    }
    return out;
}

Result<LayerStages> LessonBuilder::layer(const F32Tensor& x, const AttentionPart& part) const {
    AttentionPart scaled = part;
    const bool projects = is_present(part.query), splits = is_present(part.output);
    const ScoreScale scale = projects ? config().scale : ScoreScale{};
    const bool scales = scale != ScoreScale{}, causal = part.rules.causal;
    const bool masks_first = scales && causal && config().masks_first;
    scaled.rules.scale = divisor_text(scale);
    std::vector<Trace> traces;
    for (F32Tensor& matrix : matrices_of(x)) {
        ModelInput input;
        input.x = std::move(matrix);
        Result<Trace> trace = open(scaled, std::move(input));
        if (!trace) return trace.error();
        traces.push_back(std::move(*trace));
    }
    const StageId scaled_id = traces[0].nearest_stage(StageId::scaled);
    Traces all(x, std::move(traces));
    Collector to;
    const std::pair<StageId, const Linear*> projections[] = {
        {StageId::queries, &part.query}, {StageId::keys, &part.key}, {StageId::values, &part.value}};
    if (projects) {
        const char* const weights[] = {"W_query", "W_key", "W_value"};
        for (size_t i = 0; i < 3; ++i) {
            const auto& [id, layer] = projections[i];
            const std::string& name = stage_name(id);
            to.add(name, product_formula(name, "X", weights[i], *layer), to.take(all.merged(id)));
        }
        for (size_t i = 0; splits && i < 3; ++i) {
            const StageId id = projections[i].first;
            const std::string& name = stage_name(id);
            to.add(name + "_heads", name + "_heads = " + name + " split into heads",
                   to.take(all.stage(id, true)));
        }
    }
    const std::string by = (scale.divides ? " / " : " * ") + config().scale_rule;
    const F32Tensor scores = to.take(all.stage(StageId::scores, splits));
    to.add("scores", "scores = queries keys^T", scores);
    std::string before = "scores";
    if (scales && !masks_first) {
        before = "scaled_scores";
        to.add(before, "scaled_scores = scores" + by, to.take(all.stage(scaled_id, splits)));
    }
    if (causal) {
        F32Tensor masked = to.take(all.stage(StageId::masked, splits)), unscaled = scores;
        const auto add_masked = [&](F32Tensor tensor) {
            to.add("masked_scores", "masked_scores = -inf where the key comes after the query",
                   std::move(tensor));
        };
        for (size_t i = 0; i < unscaled.values.size() && i < masked.values.size(); ++i)
            if (masked.values[i] == kHidden) unscaled.values[i] = kHidden;
        add_masked(masks_first ? std::move(unscaled) : masked);
        before = masks_first ? "scaled_masked_scores" : "masked_scores";
        if (masks_first) to.add(before, before + " = masked_scores" + by, std::move(masked));
    }
    to.add("weights", "weights = softmax(" + before + ")", to.take(all.stage(StageId::weights, splits)));
    const F32Tensor context = to.take(all.stage(StageId::context));
    if (!splits) {
        to.add("context", projects ? "context = weights values" : "context = weights X", context);
        return to.result();
    }
    const uint64_t rows = context.shape[context.rank() - 2];
    F32Tensor by_head =
        split_heads(reshaped(context, {context.rows() / rows, rows, context.columns()}), part.heads);
    if (x.rank() == 2) by_head.shape.erase(by_head.shape.begin());
    to.add("context_heads", "context_heads = weights values_heads, per head", std::move(by_head));
    to.add("context", "context = the heads' contexts side by side", context);
    to.add("output", product_formula("output", "context", "out_proj_weight", part.output),
           to.take(all.stage(StageId::output)));
    return to.result();
}

Result<LayerStages> LessonBuilder::renormalised(const F32Tensor& x, const AttentionPart& part) const {
    AttentionPart after = part;
    after.rules.causal = true, after.rules.route = MaskRoute::after;
    after.rules.scale = divisor_text(config().scale);
    ModelInput input;
    input.x = x;
    Result<Trace> trace = open(after, std::move(input));
    if (!trace) return trace.error();
    Collector to;
    to.add("mask_tril", "mask_tril = 1 where the key is not after the query", lower_triangle(x.rows()));
    to.add("masked_simple", "masked_simple = weights * mask_tril",
           to.take(trace->stage(StageId::masked_weights)));
    to.add("row_sums", "row_sums = sum of each row of masked_simple",
           to.take(trace->stage(StageId::row_sums)));
    to.add("masked_simple_norm", "masked_simple_norm = masked_simple / row_sums",
           to.take(trace->stage(StageId::weights)));
    return to.result();
}

}  // namespace fovea
