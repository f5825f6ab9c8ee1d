#include "model/long_map.hpp"

#include "model/token_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::visualizer {
namespace {

// Mask, scale and softcap of the settings on a call; what has no place on a long map is left out.
FoveaAttentionDesc settled(const LongHead& head, const Settings& s) {
    FoveaAttentionDesc call = head.call;
    call.flags &= ~uint32_t(FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW);
    if (s.causal || head.always_causal) call.flags |= FOVEA_FLAG_CAUSAL;
    if (s.windowed) {
        call.flags |= FOVEA_FLAG_WINDOW;
        call.window_left = s.window_left, call.window_right = s.window_right;
    }
    call.scale = (s.scaled ? 1 / std::sqrt(float(call.dim_qk)) : 1) / s.temperature;
    call.softcap = s.softcap;
    return call;
}

FoveaHostBuffer host(const std::vector<float>& values) {
    return {const_cast<float*>(values.data()), values.size() * 4};
}

}  // namespace

Result<LongHead> long_preset(std::string_view name) {
    Result<LongContext> made = long_context(name);
    if (!made) return made.error();
    return LongHead{std::string(name), made->call, std::move(made->q), std::move(made->k), true};
}

LongHead long_head(const Projected& p, uint32_t head) {
    LongHead out;
    const uint64_t rows = p.q.shape[2], keys = p.k.shape[2], dim = p.q.shape[3];
    Attention call;
    call.batch(1).heads(1).lengths(rows, keys).dims(uint32_t(dim)).outputs(FOVEA_OUTPUT_LSE);
    out.call = call.desc;
    const uint64_t kv = head / (p.q.shape[1] / p.k.shape[1]);
    out.q.assign(p.q.values.begin() + std::ptrdiff_t(head * rows * dim),
                 p.q.values.begin() + std::ptrdiff_t((head + 1) * rows * dim));
    out.k.assign(p.k.values.begin() + std::ptrdiff_t(kv * keys * dim),
                 p.k.values.begin() + std::ptrdiff_t((kv + 1) * keys * dim));
    return out;
}

LongMap::LongMap(LongHead head, const Settings& settings, GpuDevice* device, std::function<void()> wake)
    : head_(std::move(head)),
      tiles_({head_.call.len_q, head_.call.len_kv}),
      device_(device),
      wake_(std::move(wake)) {
    head_.call = settled(head_, settings);
    make_maker();
}

LongMap::~LongMap() = default;

void LongMap::make_maker() {
    maker_.reset();
    problem_.clear();
    if (device_) {
        Result<std::unique_ptr<TileMaker>> made = make_device_tiles(*device_, head_);
        if (made) {
            maker_ = std::move(*made);
            return;
        }
        refusal_ = made.error().text;
        device_ = nullptr;
    }
    maker_ = make_processor_tiles(head_, wake_);
}

bool LongMap::follow(const Settings& settings, GpuDevice* device) {
    const FoveaAttentionDesc next = settled(head_, settings);
    const bool same_call = std::memcmp(&next, &head_.call, sizeof next) == 0;
    if (same_call && device == wanted_device_) return false;
    maker_.reset();
    head_.call = next;
    device_ = wanted_device_ = device;
    refusal_.clear();
    // Tiles of the other place are as good, but one picture is of one place.
    tiles_.clear();
    make_maker();
    return true;
}

bool LongMap::hand_out() {
    while (std::optional<TileDone> done = maker_->take()) {
        if (done->whole)
            tiles_.store(done->id, std::move(done->pixels));
        else
            tiles_.give_back(done->id);
        if (!done->problem.empty()) problem_ = done->problem;
    }
    maker_->cancel([&](const MapTileId& id) { return tiles_.wanted(id); });
    while (problem_.empty() && maker_->has_room()) {
        const std::optional<MapTileId> id = tiles_.next();
        if (!id) break;
        maker_->start({*id, tiles_.description(*id)});
    }
    return maker_->busy();
}

Result<bool> LongMap::advance(VkCommandBuffer cmd, int frames_in_flight) {
    const bool busy = hand_out();
    if (Result<void> r = maker_->record(cmd, frames_in_flight); !r) return r.error();
    return busy && device_ != nullptr;
}

Result<void> LongMap::finish(bool exact) {
    while (hand_out() && (exact || tiles_.progress().quality == MapQuality::empty))
        if (Result<void> r = maker_->wait(); !r) return r;
    return {};
}

Result<Derivation> LongMap::derive(uint64_t row, uint64_t key) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = host(head_.q);
    // Values are no part of a weight; the map's inspector shows none.
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k);
    return derive_cell(head_.call, bindings, Cell{0, 0, row, key});
}

}  // namespace fovea::visualizer
