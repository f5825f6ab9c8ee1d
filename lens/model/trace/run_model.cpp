// Runs a checkpoint on token IDs, layer by layer: each is a model of one block for a Trace.
#include <fovea/model/checkpoint_model.hpp>

#include <algorithm>

namespace fovea {
namespace {

Error wrong_change(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

std::string limit_text(const char* what, uint64_t value, uint64_t limit) {
    return std::string(what) + " is " + std::to_string(value) + "; the limit is " + std::to_string(limit - 1);
}

// Checks that everything that the options name exists.
Result<void> check_options(const ModelConfig& f, uint64_t tokens, const ModelRunOptions& options) {
    const RunChanges& c = options.changes;
    if (c.head_scales.size() > f.layers)
        return wrong_change("head_scales", limit_text("the last layer", c.head_scales.size() - 1, f.layers));
    for (const std::vector<float>& scales : c.head_scales)
        if (scales.size() > f.heads)
            return wrong_change("head_scales", limit_text("the last head", scales.size() - 1, f.heads));
    for (size_t i = 0; i < c.hidden_tokens.size(); ++i) {
        if (c.hidden_tokens[i] >= tokens)
            return wrong_change("masked_tokens", limit_text("a masked token", c.hidden_tokens[i], tokens));
        if (i > 0 && c.hidden_tokens[i] <= c.hidden_tokens[i - 1])
            return wrong_change("masked_tokens", "masked_tokens must be in ascending order");
    }
    for (const HeadPatch& patch : c.patches) {
        if (patch.layer >= f.layers)
            return wrong_change("patches", limit_text("a patch's layer", patch.layer, f.layers));
        if (patch.head >= f.heads)
            return wrong_change("patches", limit_text("a patch's head", patch.head, f.heads));
        if (patch.context.shape != Shape{tokens, f.head_width})
            return wrong_change("patches", "a patch's context must have the shape [" +
                                               std::to_string(tokens) + ", " + std::to_string(f.head_width) +
                                               "]");
    }
    for (const HiddenPatch& patch : c.hidden) {
        if (patch.layer > f.layers)
            return wrong_change("patches", limit_text("a patch's layer", patch.layer, f.layers + 1));
        if (patch.rows.shape != Shape{tokens, f.width})
            return wrong_change("patches", "a patch of the hidden state must have the shape [" +
                                               std::to_string(tokens) + ", " + std::to_string(f.width) + "]");
    }
    if (options.lens_token && *options.lens_token >= tokens)
        return wrong_change("lens_token", limit_text("the lens' token", *options.lens_token, tokens));
    if (options.first_layer >= f.layers)
        return wrong_change("first_layer", limit_text("the first layer", options.first_layer, f.layers));
    const bool enters = options.first_layer > 0 || !options.entering.values.empty();
    if (enters && options.entering.shape != Shape{tokens, f.width})
        return wrong_change("entering", "the input of layer " + std::to_string(options.first_layer) +
                                            " must have the shape [" + std::to_string(tokens) + ", " +
                                            std::to_string(f.width) + "]");
    return {};
}

}  // namespace

float RunChanges::scale_of(uint64_t layer, uint64_t head) const {
    const bool listed = layer < head_scales.size() && head < head_scales[size_t(layer)].size();
    return listed ? head_scales[size_t(layer)][size_t(head)] : 1.0f;
}

void RunChanges::scale_head(uint64_t layer, uint64_t head, float scale) {
    if (head_scales.size() <= layer) head_scales.resize(size_t(layer) + 1);
    std::vector<float>& scales = head_scales[size_t(layer)];
    if (scales.size() <= head) scales.resize(size_t(head) + 1, 1.0f);
    scales[size_t(head)] = scale;
}

bool RunChanges::changes_head(uint64_t layer, uint64_t head) const {
    return scale_of(layer, head) != 1.0f ||
           std::any_of(patches.begin(), patches.end(),
                       [&](const HeadPatch& one) { return one.layer == layer && one.head == head; });
}

bool RunChanges::changes_heads(uint64_t layer, uint64_t heads) const {
    for (uint64_t head = 0; head < heads; ++head)
        if (changes_head(layer, head)) return true;
    return false;
}

void RunChanges::apply(uint64_t layer, uint64_t heads, F32Tensor& context) const {
    const uint64_t width = context.columns() / heads;
    for (uint64_t head = 0; head < heads; ++head) {
        const float scale = scale_of(layer, head);
        for (uint64_t i = 0; scale != 1.0f && i < context.rows(); ++i)
            for (float& value : context.row(i).subspan(head * width, width))
                // A head that is off adds nothing, whatever its context holds.
                value = scale == 0.0f ? 0.0f : value * scale;
    }
    for (const HeadPatch& patch : patches)
        if (patch.layer == layer)
            for (uint64_t i = 0; i < context.rows(); ++i)
                std::copy_n(patch.context.row(i).begin(), width,
                            context.row(i).begin() + int64_t(patch.head * width));
}

Result<Trace> trace_layer(const CheckpointModel& model, uint64_t layer, F32Tensor entering,
                          const RunChanges& changes, const TraceOptions& options) {
    Result<Block> block = model.block(layer, entering.rows(), true);
    if (!block) return block.error();
    block->attention.rules.hidden_keys = changes.hidden_tokens;
    auto one = std::make_shared<Model>();
    one->blocks.push_back(std::move(*block));
    ModelInput input;
    input.x = std::move(entering);
    Result<Trace> trace = Trace::open(std::move(one), std::move(input), options);
    if (!trace) {
        Error error = trace.error();
        error.text = "layer " + std::to_string(layer) + ": " + error.text;
        return error;
    }
    const uint64_t heads = model.config().heads;
    if (!changes.changes_heads(layer, heads)) return trace;
    Result<F32Tensor> context = trace->stage(StageId::context);
    if (!context) return context.error();
    changes.apply(layer, heads, *context);
    if (Result<void> r = trace->supply_context(0, std::move(*context)); !r) return r.error();
    return trace;
}

uint64_t run_model_bytes(const CheckpointModel& model, uint64_t tokens, const ModelRunOptions& options) {
    const ModelConfig& f = model.config();
    const uint64_t row = f.width + 3 * f.hidden + 4 * f.heads * f.head_width;
    uint64_t floats = tokens * (row + (options.with_logits ? f.vocabulary : 0));
    // A trace computes the scores of one head at a time, in five matrices.
    if (options.with_weights) floats += tokens * tokens * (f.layers * f.heads + 5);
    if (options.with_hidden) floats += tokens * f.width * (f.layers + 1);
    if (options.with_lens) floats += (f.layers + 1) * (f.width + f.vocabulary);
    return model.run_block_bytes() + 4 * floats;
}

Result<std::vector<HeadPatch>> head_contexts(const CheckpointModel& model, std::span<const uint32_t> ids,
                                             std::vector<HeadPatch> heads, const ModelRunOptions& options) {
    const ModelConfig& f = model.config();
    uint64_t last = 0;
    for (const HeadPatch& one : heads) {
        if (one.layer >= f.layers)
            return wrong_change("heads", limit_text("a head's layer", one.layer, f.layers));
        if (one.head >= f.heads) return wrong_change("heads", limit_text("a head", one.head, f.heads));
        last = std::max(last, one.layer);
    }
    if (heads.empty()) return heads;
    ModelRunOptions run;
    run.trace = options.trace;
    run.progress = options.progress;
    bool ended = false;
    run.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        const bool wanted =
            std::any_of(heads.begin(), heads.end(), [&](const HeadPatch& one) { return one.layer == layer; });
        if (wanted) {
            const Result<F32Tensor> all = trace.stage(StageId::context);
            if (!all) return all.error();
            for (HeadPatch& one : heads)
                if (one.layer == layer)
                    one.context = slice_columns(*all, one.head * f.head_width, f.head_width);
        }
        ended = layer == last;
        return ended ? Result<void>(Error{FOVEA_CANCELLED, "run", "no further layer is needed"})
                     : Result<void>();
    };
    const Result<ModelRun> ran = run_model(model, ids, run);
    if (!ended) return ran.error();
    return heads;
}

Result<ModelRun> run_model(const CheckpointModel& model, std::span<const uint32_t> ids,
                           const ModelRunOptions& options) {
    const ModelConfig& f = model.config();
    if (ids.empty()) return wrong_change("tokens", "tokens is empty; it must have at least one token");
    for (const std::string& name : model.missing())
        if (!name.starts_with("lm_head") && !name.starts_with("embed_out"))
            return wrong_change("tensor", "tensor '" + name + "' is missing from " +
                                              printable_name(model.files().path.string(), 400));
    if (Result<void> r = check_options(f, ids.size(), options); !r) return r.error();
    Result<F32Tensor> x =
        options.entering.values.empty() ? model.embed(ids) : Result<F32Tensor>(options.entering);
    if (!x) return x.error();
    ModelRun run;
    std::vector<float> seen;  // predictions for the logit lens' token, after each layer so far
    const auto look = [&](const F32Tensor& hidden) {
        if (!options.with_lens) return;
        const auto row = hidden.row(options.lens_token.value_or(ids.size() - 1));
        seen.insert(seen.end(), row.begin(), row.end());
    };
    const auto change_hidden = [&](uint64_t n) -> Result<void> {
        for (const HiddenPatch& patch : options.changes.hidden)
            if (patch.layer == n) x = patch.rows;
        return options.on_hidden ? options.on_hidden(n, *x) : Result<void>();
    };
    for (uint64_t n = options.first_layer; n < f.layers; ++n) {
        if (options.progress && !options.progress(double(n) / double(f.layers + 1)))
            return Error{FOVEA_CANCELLED, "run", "the run was cancelled"};
        if (Result<void> r = change_hidden(n); !r) return r.error();
        if (options.with_hidden) run.hidden.push_back(*x);
        look(*x);
        Result<Trace> trace = trace_layer(model, n, std::move(*x), options.changes, options.trace);
        if (!trace) return trace.error();
        if (options.with_weights) {
            Result<F32Tensor> weights = trace->whole_stage(StageId::weights);
            if (!weights) return weights.error();
            run.weights.push_back(reshaped(std::move(*weights), {f.heads, ids.size(), ids.size()}));
        }
        const bool is_used = n + 1 < f.layers || options.with_logits || options.with_hidden ||
                             options.with_lens || options.on_hidden;
        if (is_used) x = trace->leaving();
        if (!x) return x.error();
        if (options.on_layer)
            if (Result<void> r = options.on_layer(n, *trace); !r) return r.error();
    }
    if (Result<void> r = change_hidden(f.layers); !r) return r.error();
    look(*x);
    if (options.with_hidden) run.hidden.push_back(*x);
    if (model.has_unembedding()) {
        if (options.with_lens) {
            F32Tensor rows({seen.size() / f.width, f.width}, std::move(seen));
            Result<F32Tensor> lens = model.logits(std::move(rows), options.trace.engine);
            if (!lens) return lens.error();
            run.lens = std::move(*lens);
        }
        if (options.with_logits) {
            Result<F32Tensor> logits = model.logits(std::move(*x), options.trace.engine);
            if (!logits) return logits.error();
            run.logits = std::move(*logits);
        }
    }
    return run;
}

}  // namespace fovea
