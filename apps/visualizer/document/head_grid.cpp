#include "document/head_grid.hpp"

#include "document/host_call.hpp"
#include "document/imported_file.hpp"
#include "document/opened_model.hpp"

#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace fovea::visualizer {
namespace {

// Every head's weights and masked scores, [heads, rows, keys].
struct LayerWeights {
    FoveaAttentionDesc desc;
    std::vector<float> weights, masked;
};

Result<LayerWeights> weights_of(const PreparedAttention& prepared) {
    LayerWeights out{prepared.call, {}, {}};
    out.desc.outputs = FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_MASKED;
    const size_t cells = size_t(out.desc.heads_q * out.desc.len_q * out.desc.len_kv);
    out.weights.resize(cells), out.masked.resize(cells);
    const Result<FoveaDeviceFacts> facts = cpu_facts(1);
    if (!facts) return facts.error();
    const Result<Plan> plan = plan_attention(*facts, out.desc);
    if (!plan) return plan.error();
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bindings = prepared.bindings();
    bindings[FOVEA_BIND_WEIGHTS] = {out.weights.data(), cells * 4};
    bindings[FOVEA_BIND_MASKED] = {out.masked.data(), cells * 4};
    if (Result<void> r = run_on_host(*plan, bindings.data()); !r) return r.error();
    return out;
}

Result<LayerWeights> weights_of(const Projected& projected, const Settings& settings) {
    const Result<CallTrace> call = trace_of(projected, settings);
    if (!call) return call.error();
    const Result<PreparedAttention> prepared = call->trace->prepare(projected.layer);
    return prepared ? weights_of(*prepared) : Result<LayerWeights>(prepared.error());
}

// The largest weight of the cells that each of rows x columns pixels holds.
void reduce(const LayerWeights& of, uint64_t head, uint32_t rows, uint32_t columns, float* out) {
    const uint64_t len_q = of.desc.len_q, len_kv = of.desc.len_kv, first = head * len_q * len_kv;
    std::fill_n(out, size_t(rows) * columns, -INFINITY);
    for (uint64_t i = 0; i < len_q; ++i) {
        float* row = out + i * rows / len_q * columns;
        for (uint64_t j = 0; j < len_kv; ++j) {
            const uint64_t cell = first + i * len_kv + j;
            if (std::isinf(of.masked[cell]) && of.masked[cell] < 0) continue;
            float& pixel = row[j * columns / len_kv];
            // A weight that is no number stays one.
            if (!(of.weights[cell] <= pixel)) pixel = of.weights[cell];
        }
    }
}

Settings without_layer(Settings settings) {
    settings.mapping.layer = 0;
    // What the reader sets beside a published model counts in the shown layer alone, but for hidden keys.
    if (settings.model) {
        const std::vector<uint32_t> hidden = settings.hidden_keys;
        static_cast<AttentionRules&>(settings) = {};
        settings.hidden_keys = hidden;
    }
    return settings;
}

// One layer as thumbnails with figures. `ids` may be empty.
void fill(GridLayer& layer, std::vector<float>& pixels, const LayerWeights& of,
          std::span<const uint32_t> ids) {
    const uint64_t len_q = of.desc.len_q, len_kv = of.desc.len_kv;
    constexpr uint64_t kSide = HeadGrid::kSide;
    layer.rows = uint32_t(std::min(len_q, kSide)), layer.columns = uint32_t(std::min(len_kv, kSide));
    const size_t size = size_t(layer.rows) * layer.columns;
    pixels.resize(of.desc.heads_q * size);
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    for (uint32_t head = 0; head < of.desc.heads_q; ++head) {
        const std::span<const float> weights =
            std::span(of.weights).subspan(size_t(head * len_q * len_kv), size_t(len_q * len_kv));
        float* const own = &pixels[head * size];
        reduce(of, head, layer.rows, layer.columns, own);
        const TokenScores scores = ids.size() == len_q && len_q == len_kv
                                       ? token_scores(weights, ids)
                                       : TokenScores{kNone, kNone, kNone, kNone};
        layer.heads.push_back({layer.layer, head, fovea::head_stats(weights, len_kv), scores,
                               fitted_range(std::span(own, size))});
    }
}

// The heads that are patched, and from what.
std::vector<std::pair<HeadPlace, std::string>> patched_heads(const Settings& s) {
    std::vector<std::pair<HeadPlace, std::string>> all;
    for (const HeadChange& change : s.changed)
        if (!change.patch.empty()) all.push_back({change.at, change.patch});
    return all;
}

}  // namespace

std::string head_name(uint32_t layer, uint32_t head) {
    return "L" + std::to_string(layer) + "H" + std::to_string(head);
}

HeadGrid::HeadGrid(const Settings& settings, std::function<void()> wake, const HeadGrid* before)
    : settings_(settings), wanted_(shown_layers(settings)), wake_(std::move(wake)) {
    if (before && settings.model && before->settings_.model == settings.model &&
        before->settings_.text == settings.text && before->settings_.hidden_keys == settings.hidden_keys) {
        // The same up to the first layer whose heads differ, and what enters that one.
        const std::vector<HeadChange>&a = before->settings_.changed, &b = settings.changed;
        const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
        size_t same = wanted_.size();
        if (x != a.end()) same = std::min<size_t>(same, x->at.layer);
        if (y != b.end()) same = std::min<size_t>(same, y->at.layer);
        const std::lock_guard lock(before->mutex_);
        same = std::min({same, before->made_.size(), before->entering_.size()});
        made_.assign(before->made_.begin(), before->made_.begin() + ptrdiff_t(same));
        entering_.assign(before->entering_.begin(),
                         before->entering_.begin() + ptrdiff_t(std::min(same + 1, before->entering_.size())));
        finished_ = same;
        // What enters a layer is asked for with its tokens, before the thread has come to them.
        if (!entering_.empty()) ids_ = before->ids_;
        if (before->knows_patches_ && patched_heads(before->settings_) == patched_heads(settings)) {
            patches_ = before->patches_;
            knows_patches_ = true;
        }
    }
    if (patched_heads(settings).empty()) knows_patches_ = true;
    thread_ = std::thread([this] {
        work();
        ended_ = true;
        if (wake_) wake_();
    });
}

HeadGrid::~HeadGrid() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
}

bool HeadGrid::serves(const Settings& settings) const {
    return without_layer(settings) == without_layer(settings_);
}

std::shared_ptr<const F32Tensor> HeadGrid::entering(size_t n) const {
    const std::lock_guard lock(mutex_);
    return n < entering_.size() ? entering_[n] : nullptr;
}

std::string HeadGrid::problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
}

void HeadGrid::keep(Made made) {
    {
        const std::lock_guard lock(mutex_);
        made_.push_back(std::make_shared<const Made>(std::move(made)));
    }
    ++finished_;
    if (wake_) wake_();
}

void HeadGrid::keep_entering(size_t n, F32Tensor x) {
    const std::lock_guard lock(mutex_);
    if (n == entering_.size()) entering_.push_back(std::make_shared<const F32Tensor>(std::move(x)));
}

void HeadGrid::work() {
    if (settings_.model) return run_model();
    for (const uint32_t layer : wanted_) {
        if (ending_) return;
        keep(make(layer));
    }
}

// The engine runs the model; each layer is looked at while it is in memory.
void HeadGrid::run_model() {
    const auto refuse = [&](const Error& error) {
        const std::lock_guard lock(mutex_);
        problem_ = error.field + ": " + error.text;
    };
    const OpenedModel& model = *settings_.model;
    Result<std::vector<uint32_t>> ids = tokens_of(model, settings_.text);
    if (!ids) return refuse(ids.error());
    {
        const std::lock_guard lock(mutex_);
        ids_ = *ids;
    }
    if (entering_.empty()) {
        Result<F32Tensor> x = model.weights.embed(*ids);
        if (!x) return refuse(x.error());
        keep_entering(0, std::move(*x));
        if (wake_) wake_();
    }
    ModelRunOptions options;
    options.with_hidden = true;
    const uint64_t need = run_model_bytes(model.weights, ids->size(), options), has = machine_memory();
    if (has > 0 && need > has)
        return refuse({FOVEA_OUT_OF_HOST_MEMORY, "text",
                       std::to_string(ids->size()) + " tokens take " + format_bytes(need) +
                           "; this machine has " + format_bytes(has)});
    options.with_hidden = false;
    ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()), ThreadPool::kBetweenCalls);
    const FoveaParallel parallel = pool.parallel();
    const std::unique_ptr<EngineRunner> engine = make_cpu_runner(&parallel, parallel.worker_count);
    options.trace.engine = engine.get();
    options.changes.hidden_tokens = settings_.hidden_keys;
    for (const HeadChange& change : settings_.changed) {
        std::vector<std::vector<float>>& scales = options.changes.head_scales;
        scales.resize(std::max<size_t>(scales.size(), change.at.layer + 1));
        std::vector<float>& layer = scales[change.at.layer];
        layer.resize(std::max<size_t>(layer.size(), change.at.head + 1), 1.0f);
        layer[change.at.head] = change.scale;
    }
    options.progress = [&](double) { return !ending_; };
    if (Result<void> r = run_patches(options); !r) return refuse(r.error());
    options.changes.patches = patches_;
    // Hidden tokens that the text has not.
    std::erase_if(options.changes.hidden_tokens, [&](uint32_t key) { return key >= ids->size(); });
    options.first_layer = finished_;
    if (options.first_layer >= wanted_.size()) return;
    options.entering = *entering(options.first_layer);
    options.on_layer = [&](uint64_t n, Trace& trace) -> Result<void> {
        Made made;
        made.layer.layer = uint32_t(n);
        const Result<PreparedAttention> prepared = trace.prepare();
        if (!prepared) return prepared.error();
        const Result<LayerWeights> weights = weights_of(*prepared);
        if (!weights) return weights.error();
        fill(made.layer, made.pixels, *weights, *ids);
        Result<F32Tensor> leaves = trace.stage(StageId::block);
        if (!leaves) return leaves.error();
        keep_entering(size_t(n) + 1, std::move(*leaves));
        keep(std::move(made));
        return {};
    };
    const Result<ModelRun> run = fovea::run_model(model.weights, *ids, options);
    if (!run) refuse(run.error());
}

// Each of the other sentences is run as far as its heads; only this thread writes what it gives.
Result<void> HeadGrid::run_patches(const ModelRunOptions& options) {
    if (knows_patches_) return {};
    const OpenedModel& model = *settings_.model;
    const std::vector<std::pair<HeadPlace, std::string>> wanted = patched_heads(settings_);
    std::vector<HeadPatch> made;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const std::string& text = wanted[i].second;
        const auto same = [&](const auto& one) { return one.second == text; };
        if (std::any_of(wanted.begin(), wanted.begin() + ptrdiff_t(i), same)) continue;
        const Result<std::vector<uint32_t>> ids = tokens_of(model, text);
        if (!ids) return Error{ids.error().code, "patch", ids.error().text};
        if (ids->size() != ids_.size())
            return Error{FOVEA_INVALID_ARGUMENT, "patch",
                         "\xe2\x80\x9c" + text + "\xe2\x80\x9d has " + std::to_string(ids->size()) +
                             " tokens; a head is patched token by token, and the text has " +
                             std::to_string(ids_.size())};
        std::vector<HeadPatch> heads;
        for (const auto& [at, of] : wanted)
            if (of == text) heads.push_back({at.layer, at.head, {}});
        Result<std::vector<HeadPatch>> contexts =
            head_contexts(model.weights, *ids, std::move(heads), options);
        if (!contexts) return contexts.error();
        for (HeadPatch& one : *contexts) made.push_back(std::move(one));
    }
    {
        const std::lock_guard lock(mutex_);
        patches_ = std::move(made);
    }
    knows_patches_ = true;
    if (wake_) wake_();
    return {};
}

std::vector<HeadPatch> HeadGrid::patches(uint64_t layer) const {
    const std::lock_guard lock(mutex_);
    std::vector<HeadPatch> of_layer;
    for (const HeadPatch& one : patches_)
        if (one.layer == layer) of_layer.push_back(one);
    return of_layer;
}

HeadGrid::Made HeadGrid::make(uint32_t layer) {
    Made made;
    made.layer.layer = layer;
    Settings settings = settings_;
    settings.mapping.layer = layer;
    const Result<Projected> projected = shows_model(settings) ? project(settings) : project_import(settings);
    const Result<LayerWeights> of =
        projected ? weights_of(*projected, settings) : Result<LayerWeights>(projected.error());
    if (!of) {
        made.layer.problem = of.error().field + ": " + of.error().text;
        return made;
    }
    std::vector<uint32_t> ids;
    if (shows_model(settings)) {
        // Equal tokens have equal numbers.
        for (const std::string& token : projected->tokens)
            ids.push_back(uint32_t(std::find(projected->tokens.begin(), projected->tokens.end(), token) -
                                   projected->tokens.begin()));
        for (const HostStage& stage : projected->stages)
            if (stage.name == stage_name(StageId::inputs)) keep_entering(layer, stage.tensor);
        if (layer + 1 == wanted_.size())
            if (Result<F32Tensor> x = what_leaves(*projected->trace, layer); x)
                keep_entering(layer + 1, std::move(*x));
    }
    fill(made.layer, made.pixels, *of, ids);
    return made;
}

Result<void> HeadGrid::take(const GpuDevice& device) {
    std::vector<MadeLayer> made;
    {
        const std::lock_guard lock(mutex_);
        made.assign(made_.begin() + ptrdiff_t(taken_), made_.end());
        taken_ = made_.size();
    }
    for (const MadeLayer& one : made) {
        GridLayer layer;
        layer.layer = one->layer.layer, layer.rows = one->layer.rows, layer.columns = one->layer.columns;
        layer.heads = one->layer.heads, layer.problem = one->layer.problem;
        if (!one->pixels.empty()) {
            Result<GpuBuffer> buffer = GpuBuffer::create(device, one->pixels.size() * 4, "thumbnails");
            if (!buffer) return buffer.error();
            layer.pixels = std::move(*buffer);
            std::memcpy(layer.pixels.data(), one->pixels.data(), one->pixels.size() * 4);
            layer.pixels.flush();
        }
        layers_.push_back(std::move(layer));
    }
    return {};
}

Result<void> HeadGrid::finish(const GpuDevice& device) {
    if (thread_.joinable()) thread_.join();
    return take(device);
}

uint64_t HeadGrid::size_bytes() const {
    uint64_t sum = 0;
    for (const GridLayer& layer : layers_) sum += layer.pixels.size_bytes();
    return sum;
}

}  // namespace fovea::visualizer
