#include "model/long_map.hpp"

#include "data/file_mask.hpp"
#include "model/host_call.hpp"
#include "model/token_model.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fovea::visualizer {
namespace {

// A mask of a cell for each weight is kept up to here.
constexpr uint64_t kMostMaskCells = 64u << 20;

// Mask, scale, softcap and dropout of the settings on a call; the cells of a mask are another matter.
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
    call.dropout_p = s.dropout ? s.dropout_p : 0;
    call.dropout_seed = s.dropout ? s.dropout_seed : 0;
    return call;
}

bool same_mask(const Settings& a, const Settings& b) {
    return a.pattern == b.pattern && a.hidden_keys == b.hidden_keys && a.alibi == b.alibi &&
           (a.pattern != MaskPattern::painted || a.painted == b.painted);
}

// Padding and hidden keys are the same for every query; other patterns need a cell for each weight.
void mask_head(LongHead& head, const Settings& s) {
    const uint64_t rows = head.call.len_q, keys = head.call.len_kv;
    head.call.mask = {};
    head.mask.clear();
    head.left_out.clear();
    const auto leave_out = [&](const std::string& what) {
        head.left_out += (head.left_out.empty() ? "left out here: " : ", ") + what;
    };
    if (s.alibi) leave_out("ALiBi");
    if (has_file_mask(s)) leave_out("the file's mask");
    bool each_row = s.pattern != MaskPattern::none && s.pattern != MaskPattern::padding;
    if (each_row && rows * keys > kMostMaskCells) {
        leave_out("the " + std::string(mask_pattern_name(s.pattern)) +
                  " mask (a cell for each of more than " + format_count(kMostMaskCells) + " weights)");
        each_row = false;
    }
    const bool hides =
        std::any_of(s.hidden_keys.begin(), s.hidden_keys.end(), [&](uint32_t key) { return key < keys; });
    const bool padded = s.pattern == MaskPattern::padding;
    if (!each_row && !hides && !padded) return;
    const uint64_t height = each_row ? rows : 1, stride = (keys + LongHead::kMaskRowBytes - 1) /
                                                          LongHead::kMaskRowBytes * LongHead::kMaskRowBytes;
    head.mask.assign(height * stride, 1);
    FoveaMatrixDesc& mask = head.call.mask;
    mask.present = 1;
    mask.type = FOVEA_U8;
    mask.rows = height, mask.keys = keys;
    mask.strides = {int64_t(height * stride), int64_t(height * stride), int64_t(stride)};
    for (uint64_t i = 0; i < height && (each_row || padded); ++i)
        for (uint64_t j = 0; j < keys; ++j) head.mask[i * stride + j] = pattern_shows(s, i, j, rows, keys);
    for (const uint32_t key : s.hidden_keys)
        for (uint64_t i = 0; i < height && key < keys; ++i) head.mask[i * stride + key] = 0;
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
    mask_head(head_, settings);
    masked_by_ = settings;
    make_maker();
}

LongMap::~LongMap() = default;

void LongMap::make_maker() {
    maker_.reset();
    problem_.clear();
    if (device_) {
        Result<std::unique_ptr<TileMaker>> made = make_device_tiles(*device_, head_, wake_);
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
    const bool same_cells = same_mask(settings, masked_by_);
    if (same_call && same_cells && device == wanted_device_) return false;
    maker_.reset();
    head_.call = next;
    if (!same_cells) mask_head(head_, settings);
    masked_by_ = settings;
    device_ = wanted_device_ = device;
    refusal_.clear();
    // Tiles of the other place are as good, but one picture is of one place.
    tiles_.clear();
    fresh_.clear();
    make_maker();
    return true;
}

bool LongMap::hand_out() {
    while (std::optional<TileDone> done = maker_->take()) {
        if (done->whole) {
            tiles_.store(done->id, std::move(done->pixels));
            if (done->mass.handle())
                fresh_.push_back({done->id, std::move(done->mass), std::move(done->max)});
        } else {
            tiles_.give_back(done->id);
        }
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
    return busy && device_ != nullptr && !maker_->waits();
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
    bindings[FOVEA_BIND_MASK] = {head_.mask.data(), head_.mask.size()};
    return derive_cell(head_.call, bindings, Cell{0, 0, row, key});
}

Result<std::vector<float>> LongMap::row_weights(uint64_t row) {
    FoveaAttentionDesc call = head_.rows_call(row, 1);
    call.outputs = FOVEA_OUTPUT_WEIGHTS;
    const Result<FoveaDeviceFacts> facts = cpu_facts(1);
    if (!facts) return facts.error();
    const Result<Plan> plan = plan_attention(*facts, call);
    if (!plan) return plan.error();
    std::vector<float> weights(call.len_kv);
    const uint64_t skip = row * call.dim_qk, mask_skip = head_.mask_offset(row);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = {head_.q.data() + skip, (head_.q.size() - skip) * 4};
    bindings[FOVEA_BIND_K] = bindings[FOVEA_BIND_V] = host(head_.k);
    if (!head_.mask.empty())
        bindings[FOVEA_BIND_MASK] = {head_.mask.data() + mask_skip, head_.mask.size() - mask_skip};
    bindings[FOVEA_BIND_WEIGHTS] = {weights.data(), weights.size() * 4};
    if (Result<void> r = run_on_host(*plan, bindings); !r) return r.error();
    return weights;
}

}  // namespace fovea::visualizer
