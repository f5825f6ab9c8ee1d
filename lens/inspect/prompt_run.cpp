#include <fovea/inspect/prompt_run.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

// The largest weight of the cells that each pixel holds. `masked` is empty where nothing is.
void reduce(const F32Tensor& weights, const F32Tensor& masked, uint64_t rows, uint64_t columns, float* out) {
    std::fill_n(out, size_t(rows * columns), -INFINITY);
    for (uint64_t i = 0; i < weights.rows(); ++i) {
        const auto from = weights.row(i);
        float* const row = out + i * rows / weights.rows() * columns;
        for (uint64_t j = 0; j < from.size(); ++j) {
            if (!masked.values.empty() && masked.row(i)[j] == -INFINITY) continue;
            float& pixel = row[j * columns / from.size()];
            // A NaN weight stays NaN.
            if (!(from[j] <= pixel)) pixel = from[j];
        }
    }
}

F32Tensor head_row(const F32Tensor& rows, uint64_t row) {
    const auto values = rows.row(row);
    return F32Tensor({1, values.size()}, {values.begin(), values.end()});
}

// True if both change the heads of layer n alike.
bool same_heads(const Prompt& a, const Prompt& b, uint64_t n) {
    const auto scales_of = [&](const Prompt& p) {
        std::vector<float> scales;
        if (n < p.changes.head_scales.size()) scales = p.changes.head_scales[n];
        while (!scales.empty() && scales.back() == 1.0f) scales.pop_back();
        return scales;
    };
    const auto patches_of = [&](const Prompt& p) {
        std::vector<PromptPatch> all = p.patches;
        std::erase_if(all, [&](const PromptPatch& one) { return one.layer != n; });
        return all;
    };
    return scales_of(a) == scales_of(b) && patches_of(a) == patches_of(b);
}

}  // namespace

Result<PromptLayer> prompt_layer(Trace& trace, uint32_t n, std::span<const uint32_t> ids, uint32_t side) {
    const std::vector<TraceStage> stages = trace.stages(n);
    const bool masks = std::any_of(stages.begin(), stages.end(),
                                   [](const TraceStage& one) { return one.id == StageId::masked; });
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    PromptLayer layer;
    layer.layer = n;
    for (uint32_t head = 0; head < trace.heads(n); ++head) {
        const Result<F32Tensor> weights = trace.stage(StageId::weights, head, n);
        if (!weights) return weights.error();
        const Result<F32Tensor> masked =
            masks ? trace.stage(StageId::masked, head, n) : Result<F32Tensor>(F32Tensor(Shape{0, 0}));
        if (!masked) return masked.error();
        const uint64_t rows = weights->rows(), columns = weights->columns();
        layer.rows = uint32_t(std::min<uint64_t>(rows, side));
        layer.columns = uint32_t(std::min<uint64_t>(columns, side));
        const size_t at = layer.pictures.size();
        layer.pictures.resize(at + size_t(layer.rows) * layer.columns);
        reduce(*weights, *masked, layer.rows, layer.columns, &layer.pictures[at]);
        const bool of_text = ids.size() == rows && rows == columns;
        layer.heads.push_back(
            {of_text ? token_scores(weights->values, ids) : TokenScores{kNone, kNone, kNone, kNone},
             head_stats(weights->values, columns)});
    }
    return layer;
}

PromptRun::PromptRun(Prompt prompt, const PromptRun* before) : prompt_(std::move(prompt)) {
    std::vector<HeadPatch>& contexts = prompt_.changes.patches;
    contexts.clear();
    for (const PromptPatch& one : prompt_.patches)
        contexts.push_back({one.layer, one.head, F32Tensor(Shape{0, 0})});
    knows_patches_ = contexts.empty();
    if (!before || before->prompt_.ids != prompt_.ids) return;
    compare_with(*before);
    if (before->knows_patches_) {
        const std::vector<PromptPatch>& known = before->prompt_.patches;
        bool all = true;
        for (size_t i = 0; i < contexts.size(); ++i) {
            const auto at = std::find(known.begin(), known.end(), prompt_.patches[i]);
            if (at != known.end()) contexts[i] = before->prompt_.changes.patches[size_t(at - known.begin())];
            all = all && at != known.end();
        }
        knows_patches_ = all;
    }
    if (before->prompt_.side != prompt_.side ||
        before->prompt_.changes.hidden_tokens != prompt_.changes.hidden_tokens)
        return;
    const std::lock_guard lock(before->mutex_);
    for (size_t n = 0; n < before->entering_.size(); ++n) {
        entering_.push_back(before->entering_[n]);
        if (n == before->layers_.size() || !same_heads(before->prompt_, prompt_, n)) return;
        layers_.push_back(before->layers_[n]), writes_.push_back(before->writes_[n]);
    }
}

void PromptRun::compare_with(const PromptRun& before) {
    Rows known = before.unchanged();
    const std::lock_guard lock(mutex_);
    unchanged_ = std::move(known);
}

PromptRun::Rows PromptRun::unchanged() const {
    const std::lock_guard lock(mutex_);
    return unchanged_;
}

void PromptRun::enter(F32Tensor x) {
    const std::lock_guard lock(mutex_);
    entering_.push_back(std::make_shared<const F32Tensor>(std::move(x)));
}

void PromptRun::add(PromptLayer layer, std::shared_ptr<const LayerWrites> writes) {
    const std::lock_guard lock(mutex_);
    layers_.push_back(std::make_shared<const PromptLayer>(std::move(layer)));
    writes_.push_back(std::move(writes));
}

void PromptRun::end() {
    const std::lock_guard lock(mutex_);
    if (!prompt_.changed()) unchanged_ = entering_.back();
}

size_t PromptRun::finished_layers() const {
    const std::lock_guard lock(mutex_);
    return layers_.size();
}

std::shared_ptr<const PromptLayer> PromptRun::layer(size_t n) const {
    const std::lock_guard lock(mutex_);
    return n < layers_.size() ? layers_[n] : nullptr;
}

PromptRun::Rows PromptRun::entering(size_t n) const {
    const std::lock_guard lock(mutex_);
    return n < entering_.size() ? entering_[n] : nullptr;
}

std::shared_ptr<const LayerWrites> PromptRun::writes(size_t n) const {
    const std::lock_guard lock(mutex_);
    return n < writes_.size() ? writes_[n] : nullptr;
}

// Each of the other texts is run as far as its last head.
Result<void> PromptRun::run_patches(const CheckpointModel& model, const ModelRunOptions& options) {
    if (knows_patches_) return {};
    std::vector<HeadPatch>& contexts = prompt_.changes.patches;
    for (const PromptPatch& first : prompt_.patches) {
        std::vector<size_t> places;
        std::vector<HeadPatch> heads;
        for (size_t i = 0; i < contexts.size(); ++i)
            if (contexts[i].context.values.empty() && prompt_.patches[i].ids == first.ids) {
                places.push_back(i);
                heads.push_back(contexts[i]);
            }
        if (heads.empty()) continue;
        Result<std::vector<HeadPatch>> made = head_contexts(model, first.ids, std::move(heads), options);
        if (!made) return made.error();
        for (size_t i = 0; i < places.size(); ++i) contexts[places[i]] = std::move((*made)[i]);
    }
    knows_patches_ = true;
    return {};
}

Result<void> PromptRun::run(const CheckpointModel& model, const PromptOptions& options) {
    const auto wake = [&] {
        if (options.wake) options.wake();
    };
    const std::vector<uint32_t>& ids = prompt_.ids;
    ModelRunOptions run;
    run.trace = options.trace, run.progress = options.progress;
    run.with_hidden = true, run.with_logits = false;
    if (!entering(0)) {
        Result<F32Tensor> x = model.embed(ids);
        if (!x) return x.error();
        enter(std::move(*x));
        wake();
    }
    run.first_layer = finished_layers();
    const uint64_t kept_bytes =
        (model.config().layers - run.first_layer) * layer_writes_bytes(model, ids.size());
    // A trace computes the scores of one head at a time, in five matrices.
    if (options.check_memory && run.first_layer < model.config().layers)
        if (Result<void> r =
                options.check_memory(run_model_bytes(model, ids.size(), run) + ids.size() * ids.size() * 20 +
                                     (options.keep_writes ? kept_bytes : 0));
            !r)
            return r;
    if (Result<void> r = run_patches(model, run); !r) return r;
    wake();
    if (run.first_layer < model.config().layers) {
        run.with_hidden = false;
        run.changes = changes();
        run.entering = *entering(run.first_layer);
        run.on_layer = [&](uint64_t n, Trace& trace) -> Result<void> {
            Result<PromptLayer> layer = prompt_layer(trace, 0, ids, prompt_.side);
            if (!layer) return layer.error();
            Result<F32Tensor> leaves = trace.leaving();
            if (!leaves) return leaves.error();
            layer->layer = uint32_t(n);
            std::shared_ptr<const LayerWrites> writes;
            if (options.keep_writes) {
                Result<LayerWrites> kept = layer_writes(trace, 0);
                if (!kept) return kept.error();
                writes = std::make_shared<const LayerWrites>(std::move(*kept));
            }
            enter(std::move(*leaves)), add(std::move(*layer), std::move(writes));
            wake();
            return {};
        };
        if (const Result<ModelRun> ran = run_model(model, ids, run); !ran) return ran.error();
    }
    end();
    return {};
}

Result<PromptNext> PromptRun::next(uint64_t row, size_t most,
                                   const std::function<Result<F32Tensor>(F32Tensor)>& logits) const {
    std::vector<Rows> stream;
    for (size_t n = 0; const Rows x = entering(n); ++n) stream.push_back(x);
    if (stream.empty() || row >= stream[0]->rows())
        return Error{FOVEA_INVALID_ARGUMENT, "row",
                     "row is " + std::to_string(row) + "; it must be a token of the text"};
    F32Tensor lens({stream.size() - 1, stream[0]->columns()});
    for (uint64_t n = 0; n < lens.rows(); ++n) {
        const auto from = stream[n]->row(row);
        std::copy(from.begin(), from.end(), lens.row(n).begin());
    }
    const Result<F32Tensor> early = logits(std::move(lens));
    if (!early) return early.error();
    PromptNext out;
    out.row = row;
    for (uint64_t n = 0; n < early->rows(); ++n) {
        Result<std::vector<NextToken>> said = next_tokens(early->row(n), most);
        if (!said) return said.error();
        out.after.push_back(std::move(*said));
    }
    // Computed as a product of one row, as in generation: with more rows the order of the sum may differ.
    const Result<F32Tensor> last = logits(head_row(*stream.back(), row));
    if (!last) return last.error();
    const Rows known = prompt_.changed() ? unchanged() : nullptr;
    const Result<F32Tensor> before =
        known ? logits(head_row(*known, row)) : Result<F32Tensor>(F32Tensor(Shape{0}));
    if (!before) return before.error();
    Result<ComparedTokens> compared = compared_tokens(last->values, before->values, most);
    if (!compared) return compared.error();
    out.after.push_back(std::move(compared->next));
    out.before = std::move(compared->before), out.unchanged = std::move(compared->unchanged);
    return out;
}

}  // namespace fovea
