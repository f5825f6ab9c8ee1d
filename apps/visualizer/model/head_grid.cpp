#include "model/head_grid.hpp"

#include "model/host_call.hpp"
#include "model/imported_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace fovea::visualizer {
namespace {

struct LayerWeights {
    FoveaAttentionDesc desc;
    std::vector<float> weights, masked;  // [heads, rows, keys]
};

Result<LayerWeights> weights_of(const Settings& settings) {
    const Result<Projected> projected = shows_model(settings) ? project(settings) : project_import(settings);
    if (!projected) return projected.error();
    const Result<CallTrace> call = trace_of(*projected, settings);
    if (!call) return call.error();
    const Result<PreparedAttention> prepared = call->trace->prepare(projected->layer);
    if (!prepared) return prepared.error();
    LayerWeights out{prepared->call, {}, {}};
    out.desc.outputs = FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_MASKED;
    const size_t cells = size_t(out.desc.heads_q * out.desc.len_q * out.desc.len_kv);
    out.weights.resize(cells), out.masked.resize(cells);
    const Result<FoveaDeviceFacts> facts = cpu_facts(1);
    if (!facts) return facts.error();
    const Result<Plan> plan = plan_attention(*facts, out.desc);
    if (!plan) return plan.error();
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bindings = prepared->bindings();
    bindings[FOVEA_BIND_WEIGHTS] = {out.weights.data(), cells * 4};
    bindings[FOVEA_BIND_MASKED] = {out.masked.data(), cells * 4};
    if (Result<void> r = run_on_host(*plan, bindings.data()); !r) return r.error();
    return out;
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
    return settings;
}

}  // namespace

std::string head_name(uint32_t layer, uint32_t head) {
    return "L" + std::to_string(layer) + "H" + std::to_string(head);
}

HeadGrid::HeadGrid(const Settings& settings, std::function<void()> wake)
    : settings_(settings),
      wanted_(shown_layers(settings)),
      wake_(std::move(wake)),
      thread_([this] { work(); }) {}

HeadGrid::~HeadGrid() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
}

bool HeadGrid::serves(const Settings& settings) const {
    return without_layer(settings) == without_layer(settings_);
}

void HeadGrid::work() {
    for (const uint32_t layer : wanted_) {
        if (ending_) return;
        Made made = make(layer);
        {
            const std::lock_guard lock(mutex_);
            made_.push_back(std::move(made));
        }
        ++finished_;
        if (wake_) wake_();
    }
}

HeadGrid::Made HeadGrid::make(uint32_t layer) const {
    Made made;
    made.layer.layer = layer;
    Settings settings = settings_;
    settings.mapping.layer = layer;
    const Result<LayerWeights> of = weights_of(settings);
    if (!of) {
        made.layer.problem = of.error().field + ": " + of.error().text;
        return made;
    }
    const uint64_t len_q = of->desc.len_q, len_kv = of->desc.len_kv;
    const auto rows = uint32_t(std::min<uint64_t>(len_q, kSide)),
               columns = uint32_t(std::min<uint64_t>(len_kv, kSide));
    made.layer.rows = rows, made.layer.columns = columns;
    made.pixels.resize(size_t(of->desc.heads_q) * rows * columns);
    for (uint32_t head = 0; head < of->desc.heads_q && !ending_; ++head) {
        const std::span<const float> weights =
            std::span(of->weights).subspan(size_t(head * len_q * len_kv), size_t(len_q * len_kv));
        float* pixels = &made.pixels[size_t(head) * rows * columns];
        reduce(*of, head, rows, columns, pixels);
        made.layer.heads.push_back({layer, head, fovea::head_stats(weights, len_kv),
                                    fitted_range(std::span(pixels, size_t(rows) * columns))});
    }
    return made;
}

Result<void> HeadGrid::take(const GpuDevice& device) {
    std::vector<Made> made;
    {
        const std::lock_guard lock(mutex_);
        made.swap(made_);
    }
    for (Made& one : made) {
        GridLayer layer = std::move(one.layer);
        if (!one.pixels.empty()) {
            Result<GpuBuffer> buffer = GpuBuffer::create(device, one.pixels.size() * 4, "thumbnails");
            if (!buffer) return buffer.error();
            layer.pixels = std::move(*buffer);
            std::memcpy(layer.pixels.data(), one.pixels.data(), one.pixels.size() * 4);
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
