#include <cstdio>

#include "model/layer_support.hpp"

namespace fovea {

using namespace layer_support;

namespace {

std::string scale_text(const AttentionOptions& options) {
    std::string number = options.scale_rule;
    if (number.empty()) {
        char text[32];
        std::snprintf(text, sizeof text, "%.6g", options.scale.value);
        number = text;
    }
    return (options.scale.divides ? " / " : " * ") + number;
}

// One call of the core: which stage comes from which output of which problem, in the order of the
// mathematics.
class Core {
  public:
    Core(Executor& executor, const HeadTensors& heads, const AttentionOptions& options, const Shape& leading,
         LayerTrace& trace)
        : executor_(executor), options_(options), trace_(trace), matrix_(leading) {
        matrix_.push_back(heads.queries.shape[2]);
        matrix_.push_back(heads.keys.shape[2]);
        problem_.q = &heads.queries;
        problem_.k = &heads.keys;
        problem_.v = &heads.values;
        if (options.causal) problem_.call.flags |= FOVEA_FLAG_CAUSAL;
    }

    // scores, and the masked scores where the mask comes before the scale.
    Result<void> unscaled_stages() {
        const bool wants_scores = trace_.wants("scores");
        const bool wants_masked = masks_first() && trace_.wants("masked_scores");
        if (!scaled() || (!wants_scores && !wants_masked)) return {};
        AttentionProblem problem = problem_;
        problem.call.outputs =
            output_if(wants_scores, FOVEA_OUTPUT_SCORES) | output_if(wants_masked, FOVEA_OUTPUT_MASKED);
        Result<AttentionResult> result = executor_.attention(problem);
        if (!result) return result.error();
        if (wants_scores) record("scores", "scores = queries keys^T", std::move(result->scores));
        if (wants_masked) record("masked_scores", kMaskFormula, std::move(result->masked));
        return {};
    }

    // Everything up to the weights, and the contexts with them unless dropout comes between.
    Result<F32Tensor> scaled_stages(bool with_context) {
        const std::string scores = scaled() ? "scaled_scores" : "scores";
        const std::string masked = scaled() && masks_first() ? "scaled_masked_scores" : "masked_scores";
        const bool wants_scores = trace_.wants(scores) && !(scaled() && masks_first());
        const bool wants_masked = options_.causal && trace_.wants(masked);
        const bool wants_weights = trace_.wants("weights");
        AttentionProblem problem = problem_;
        problem.scale = options_.scale;
        problem.call.outputs =
            output_if(with_context, FOVEA_OUTPUT_O) | output_if(wants_scores, FOVEA_OUTPUT_SCORES) |
            output_if(wants_masked, FOVEA_OUTPUT_MASKED) | output_if(wants_weights, FOVEA_OUTPUT_WEIGHTS);
        if (problem.call.outputs == 0) return F32Tensor();
        Result<AttentionResult> result = executor_.attention(problem);
        if (!result) return result.error();
        if (wants_scores) {
            record(scores,
                   scaled() ? "scaled_scores = scores" + scale_text(options_) : "scores = queries keys^T",
                   std::move(result->scores));
        }
        if (wants_masked) {
            record(
                masked,
                masks_first() && scaled() ? masked + " = masked_scores" + scale_text(options_) : kMaskFormula,
                std::move(result->masked));
        }
        if (wants_weights) {
            const std::string of = options_.causal ? masked : scores;
            record("weights", "weights = softmax(" + of + ")", std::move(result->weights));
        }
        return std::move(result->o);
    }

    Result<F32Tensor> dropped_stages(const Training& training) {
        AttentionProblem problem = problem_;
        problem.scale = options_.scale;
        problem.dropout_p = options_.dropout_p;
        problem.call.outputs = FOVEA_OUTPUT_O | output_if(trace_.wants("dropped"), FOVEA_OUTPUT_WEIGHTS);
        F32Tensor keep;
        if (training.dropout == Training::Dropout::counter) {
            problem.call.dropout_seed = training.seed;
            problem.call.dropout_offset = training.offset;
        } else {
            Result<F32Tensor> drawn = draw_keep_mask(training);
            if (!drawn) return drawn.error();
            keep = std::move(*drawn);
            problem.keep = &keep;
        }
        Result<AttentionResult> result = executor_.attention(problem);
        if (!result) return result.error();
        if (problem.keep != nullptr) record("keep", "keep = 1 where an element is kept", std::move(keep));
        if (trace_.wants("dropped")) {
            record("dropped", "dropped = weights * keep / (1 - p)", std::move(result->weights));
        }
        return std::move(result->o);
    }

  private:
    static constexpr const char* kMaskFormula = "masked_scores = -inf where the key comes after the query";

    bool scaled() const { return options_.scale != ScoreScale{}; }
    bool masks_first() const { return options_.causal && options_.order == MaskOrder::mask_first; }
    void record(std::string_view name, std::string formula, F32Tensor tensor) {
        trace_.record(name, std::move(formula), reshaped(std::move(tensor), matrix_));
    }

    Result<F32Tensor> draw_keep_mask(const Training& training) const {
        if (training.generator == nullptr) {
            return Error{FOVEA_INVALID_ARGUMENT, "generator",
                         "dropout of PyTorch's kind needs a generator; it is null"};
        }
        const F32Tensor& q = *problem_.q;
        F32Tensor keep({q.shape[0], q.shape[1], q.shape[2], problem_.k->shape[2]});
        std::vector<uint8_t> mask(keep.values.size());
        if (training.dropout == Training::Dropout::torch_mkl) {
            training.generator->keep_mask_mkl(mask, options_.dropout_p);
        } else {
            training.generator->keep_mask_native(mask, options_.dropout_p);
        }
        keep.values.assign(mask.begin(), mask.end());
        return keep;
    }

    Executor& executor_;
    const AttentionOptions& options_;
    LayerTrace& trace_;
    Shape matrix_;
    AttentionProblem problem_;
};

}  // namespace

Result<F32Tensor> attend(Executor& executor, const HeadTensors& heads, const AttentionOptions& options,
                         const Training& training, const Shape& leading, LayerTrace& trace) {
    const bool drops = layer_support::drops(options, training);
    Core core(executor, heads, options, leading, trace);
    if (Result<void> done = core.unscaled_stages(); !done) return done.error();
    Result<F32Tensor> context = core.scaled_stages(!drops);
    if (!context || !drops) return context;
    return core.dropped_stages(training);
}

}  // namespace fovea
