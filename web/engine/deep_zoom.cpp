#include "deep_zoom.hpp"

#include <cmath>
#include <utility>

namespace fovea::web {
namespace {

// Fits the memory of a phone's tab.
constexpr uint64_t kTileBytes = uint64_t{96} << 20;

}  // namespace

Result<DeepZoom> DeepZoom::of_tokens(uint32_t tokens) {
    Result<LongContext> context = long_context(tokens);
    if (!context) return context.error();
    return DeepZoom(std::move(*context));
}

DeepZoom::DeepZoom(LongContext context)
    : context_(std::move(context)),
      tiles_({context_.call.len_q, context_.call.len_kv}, kTileBytes),
      lse_(context_.call.len_q) {}

Result<Plan> DeepZoom::plan_forward(const FoveaDeviceFacts& facts, uint32_t dim_v, double max_flops) const {
    FoveaAttentionDesc call = context_.call;
    call.outputs = FOVEA_OUTPUT_LSE;
    call.dim_v = dim_v;
    call.max_slice_cost = max_flops;
    return plan_attention(facts, call);
}

Result<double> DeepZoom::prepare(Engine& engine, double max_flops) {
    if (!forward_) {
        Result<FoveaDeviceFacts> facts = engine.facts(engine.worker_count());
        if (!facts) return facts.error();
        Result<Plan> plan = plan_forward(*facts, 1, max_flops * engine.worker_count());
        if (!plan) return plan.error();
        forward_ = std::move(*plan);
    }
    const FoveaPlanInfo info = forward_.info();
    if (next_forward_slice_ < info.slice_count) {
        const std::vector<float> v(context_.call.len_kv);  // plays no part in lse
        Bindings b;
        b.read(FOVEA_BIND_Q, context_.q.data(), context_.q.size() * sizeof(float));
        b.read(FOVEA_BIND_K, context_.k.data(), context_.k.size() * sizeof(float));
        b.read(FOVEA_BIND_V, v.data(), v.size() * sizeof(float));
        b.write(FOVEA_BIND_LSE, lse_.data(), lse_.size() * sizeof(float));
        if (Result<void> r = engine.run(forward_, b, engine.worker_count(), next_forward_slice_, 1); !r)
            return r.error();
        ++next_forward_slice_;
    }
    return info.slice_count ? double(next_forward_slice_) / double(info.slice_count) : 1.0;
}

void DeepZoom::set_view(const MapView& view) {
    tiles_.set_view(view);
    if (running_ && !tiles_.wanted(*running_)) give_up_tile();
}

Result<Plan> DeepZoom::plan_tile(const FoveaDeviceFacts& facts, double max_flops) {
    running_ = tiles_.next();
    if (!running_) return Plan{};
    FoveaAttentionDesc call = context_.call;
    call.max_slice_cost = max_flops;
    Result<Plan> plan = plan_map_tile(facts, call, tiles_.description(*running_));
    if (!plan) {
        give_up_tile();
        return plan;
    }
    pixels_.mass.assign(size_t{kMapTileSide} * kMapTileSide, 0);
    pixels_.max.assign(pixels_.mass.size(), 0.0f);
    return plan;
}

void DeepZoom::store_tile() {
    if (running_) tiles_.store(*running_, std::move(pixels_));
    running_.reset();
}

void DeepZoom::give_up_tile() {
    if (running_) tiles_.give_back(*running_);
    running_.reset();
}

Result<bool> DeepZoom::begin_tile(Engine& engine, double max_flops) {
    Result<FoveaDeviceFacts> facts = engine.facts(engine.worker_count());
    if (!facts) return facts.error();
    Result<Plan> plan = plan_tile(*facts, max_flops * engine.worker_count());
    if (!plan) return plan.error();
    if (!*plan) return false;
    tile_plan_ = std::move(*plan);
    next_tile_slice_ = 0;
    return true;
}

Result<bool> DeepZoom::step(Engine& engine, double max_flops) {
    if (!running_) {
        const Result<bool> begun = begin_tile(engine, max_flops);
        if (!begun || !*begun) return begun;
    }
    Bindings b;
    b.read(FOVEA_BIND_Q, context_.q.data(), context_.q.size() * sizeof(float));
    b.read(FOVEA_BIND_K, context_.k.data(), context_.k.size() * sizeof(float));
    b.read(FOVEA_BIND_LSE, lse_.data(), lse_.size() * sizeof(float));
    b.write(FOVEA_BIND_TILE_MASS, pixels_.mass.data(), pixels_.mass.size() * sizeof(uint64_t));
    b.write(FOVEA_BIND_TILE_MAX, pixels_.max.data(), pixels_.max.size() * sizeof(float));
    const uint64_t slices = tile_plan_.info().slice_count;
    if (next_tile_slice_ < slices) {
        if (Result<void> r = engine.run(tile_plan_, b, engine.worker_count(), next_tile_slice_, 1); !r)
            return r.error();
        ++next_tile_slice_;
    }
    if (next_tile_slice_ < slices) return false;
    store_tile();
    return true;
}

double DeepZoom::weight(uint64_t query, uint64_t key) const {
    if (query >= tokens() || key > query) return 0;
    double score = 0;
    const size_t width = kLongContextDim;
    for (size_t d = 0; d < width; ++d)
        score += double(context_.q[query * width + d]) * double(context_.k[key * width + d]);
    return std::exp(score / std::sqrt(double(width)) - double(lse_[query]));
}

}  // namespace fovea::web
