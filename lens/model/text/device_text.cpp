#include "model/text/device_text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "model/block_run.hpp"

namespace fovea {
namespace {

// Each token adds plans for its attention and append; if there are too many, all are dropped at once.
constexpr size_t kMaxPlans = 256;

enum Kind : uint64_t { kLinear, kNorm, kPointwise, kRope, kAppend };

template <class Make, class Desc>
Result<Plan> plan_of(Make make, const FoveaDeviceProperties& properties, const Desc& desc) {
    FoveaPlan plan = nullptr;
    Diag diag;
    if (make(&properties, &desc, nullptr, &plan, &diag) != FOVEA_OK) return diag.error();
    return Plan(plan);
}

}  // namespace

// ---- memory and plans ----

// Makes room by dropping stored weights, after running the recorded work that may use them.
Result<DeviceBuffer> DeviceText::allocate(uint64_t bytes) {
    Result<DeviceBuffer> buffer = engine_.buffer(bytes);
    if (buffer || buffer.error().code != FOVEA_OUT_OF_DEVICE_MEMORY || runner_.held_.empty()) return buffer;
    if (Result<void> r = flush(); !r) return r.error();
    runner_.held_.clear();
    return engine_.buffer(bytes);
}

Result<DeviceBuffer> DeviceText::made(std::span<const float> numbers) {
    Result<DeviceBuffer> buffer = allocate(numbers.size_bytes());
    if (!buffer) return buffer;
    ++runner_.traffic_.uploads;
    if (Result<void> r = buffer->upload(std::as_bytes(numbers)); !r) return r.error();
    return buffer;
}

// Enlarges a buffer if it is too small; its contents are lost then.
Result<void> DeviceText::grow(std::unique_ptr<DeviceBuffer>& kept, uint64_t bytes) {
    if (kept && kept->size_bytes() >= bytes) return {};
    if (Result<void> r = flush(); !r) return r;
    kept.reset();
    Result<DeviceBuffer> buffer = allocate(bytes);
    if (!buffer) return buffer.error();
    kept = std::make_unique<DeviceBuffer>(std::move(*buffer));
    return {};
}

Result<void> DeviceText::need(Role role, uint64_t numbers) { return grow(room_[role], numbers * 4); }

Result<void> DeviceText::record(const Key& key, const std::function<Result<Plan>()>& make,
                                const Buffers& buffers) {
    auto found = plans_.find(key);
    if (found == plans_.end()) {
        Result<Plan> plan = make();
        if (!plan) return plan.error();
        if (plans_.size() >= kMaxPlans) plans_.clear();
        found = plans_.emplace(key, std::make_shared<const Plan>(std::move(*plan))).first;
    }
    pending_.push_back({found->second, buffers});
    return {};
}

Result<void> DeviceText::flush() {
    if (pending_.empty()) return {};
    const std::vector<Engine::BoundPlan> runs = std::exchange(pending_, {});
    const Result<RunReport> report = engine_.run(runs);
    if (!report) return report.error();
    runner_.traffic_.submissions += report->submissions;
    return {};
}

// ---- parts ----

// Returns the buffer of a layer's matrix: in its stored type, or in float32 if its rows differ from the
// file's or no kernel reads the type.
Result<DeviceBuffer*> DeviceText::weight_of(const Linear& l, FoveaDtype& type, bool& in_out) {
    type = FOVEA_F32, in_out = false;
    if (l.stored) {
        if (has_use(l.stored->type, kUseLinear) && l.stored->owner && !l.stored->bytes.empty()) {
            type = l.stored->type;
            const uint64_t bytes = (l.stored->bytes.size() + 3) / 4 * 4;
            // Recorded work may use weights that are dropped to make room for this one.
            if (!runner_.holds(*l.stored, bytes))
                if (Result<void> r = flush(); !r) return r.error();
            return runner_.with_room([&] { return runner_.held(l.stored->bytes, l.stored->owner, bytes); });
        }
    }
    in_out = !l.stored && l.layout == WeightLayout::in_out;
    std::optional<DeviceBuffer>& kept = held_of(&l).weight;
    if (kept) return &*kept;
    std::vector<float> widened(l.stored ? l.stored->rows() * l.stored->columns() : 0);
    if (l.stored)
        if (Result<void> r = read_rows(*l.stored, 0, widened); !r) return r.error();
    Result<DeviceBuffer> buffer = made(l.stored ? std::span<const float>(widened) : l.weight.values);
    if (!buffer) return buffer.error();
    kept.emplace(std::move(*buffer));
    return &*kept;
}

Result<void> DeviceText::linear(std::span<const Product> products, Role x) {
    for (const Product& one : products)
        if (Result<void> r = product(*one.layer, x, one.to); !r) return r;
    return {};
}

Result<void> DeviceText::product(const Linear& l, Role x, Role y) {
    FoveaLinearDesc call = foveaLinearDesc();
    call.n_in = uint32_t(l.d_in()), call.n_out = uint32_t(l.d_out()), call.rows = rows_;
    call.has_bias = l.has_bias();
    if (Result<void> r = need(y, rows_ * call.n_out); !r) return r;
    Buffers buffers{};
    buffers[FOVEA_BIND_X] = &*room_[x], buffers[FOVEA_BIND_Y] = &*room_[y];
    if (l.has_bias()) {
        std::optional<DeviceBuffer>& bias = held_of(&l).bias;
        if (!bias) {
            Result<DeviceBuffer> buffer = made(l.bias.values);
            if (!buffer) return buffer.error();
            bias.emplace(std::move(*buffer));
        }
        buffers[FOVEA_BIND_BIAS] = &*bias;
    }
    // Last, because later allocations may drop it.
    bool in_out = false;
    Result<DeviceBuffer*> weight = weight_of(l, call.w_type, in_out);
    if (!weight) return weight.error();
    call.weight_is_in_out = in_out, buffers[FOVEA_BIND_WEIGHT] = *weight;
    return record(
        {kLinear, call.n_in, call.n_out, rows_, call.has_bias, uint64_t(call.w_type), in_out},
        [&] { return plan_linear(engine_.properties(), call); }, buffers);
}

Result<void> DeviceText::norm_rows(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                                   std::optional<Role> sum) {
    NormDesc call = norm_call(n, rows, width);
    call.adds = sum.has_value();
    if (Result<void> r = need(y, rows * width); !r) return r;
    Buffers buffers{};
    buffers[FOVEA_BIND_X] = &*room_[x], buffers[FOVEA_BIND_Y] = &*room_[y];
    if (sum) buffers[FOVEA_BIND_O] = &*room_[*sum];
    if (call.has_weight) {
        std::optional<DeviceBuffer>& kept = held_of(&n).weight;
        if (!kept) {
            std::vector<float> both = n.weight.values;
            if (both.empty()) both.assign(width, 1.0f);
            both.insert(both.end(), n.bias.values.begin(), n.bias.values.end());
            Result<DeviceBuffer> buffer = made(both);
            if (!buffer) return buffer.error();
            kept.emplace(std::move(*buffer));
        }
        buffers[FOVEA_BIND_WEIGHT] = &*kept;
    }
    return record(
        {kNorm, uint64_t(call.rule), width, rows, std::bit_cast<uint32_t>(call.epsilon), call.has_weight,
         call.has_bias, call.adds},
        [&] { return plan_of(plan_norm, engine_.properties(), call); }, buffers);
}

// In place.
Result<void> DeviceText::pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) {
    const PointwiseDesc call = pointwise_call(rule, count, other.has_value());
    Buffers buffers{};
    buffers[FOVEA_BIND_X] = buffers[FOVEA_BIND_Y] = &*room_[x];
    if (other) buffers[FOVEA_BIND_O] = &*room_[*other];
    return record(
        {kPointwise, uint64_t(rule), count, call.gated},
        [&] { return plan_of(plan_pointwise, engine_.properties(), call); }, buffers);
}

Result<void> DeviceText::rotate(const Rope& rope, uint32_t heads, Role role) {
    const uint64_t width = head_width();
    auto found = std::find_if(angles_.begin(), angles_.end(), [&](const Angles& one) {
        return one.width == width && same_angles(one.rope, rope);
    });
    if (found == angles_.end()) {
        const RopeTables tables = rope_tables(rope, capacity_, width);
        Result<DeviceBuffer> cos = made(tables.cos.values), sin = made(tables.sin.values);
        if (!cos) return cos.error();
        if (!sin) return sin.error();
        // Buffers of angles that are to be run must not move.
        if (Result<void> r = flush(); !r) return r;
        angles_.push_back({rope, width, std::move(*cos), std::move(*sin)});
        found = angles_.end() - 1;
    }
    FoveaRopeDesc call = rope_call(rope, rows_, heads, width, HeadOrder::beside);
    call.table_rows = capacity_;
    Buffers buffers{};
    buffers[FOVEA_BIND_X] = buffers[FOVEA_BIND_Y] = &*room_[role];
    buffers[FOVEA_BIND_COS] = &found->cos, buffers[FOVEA_BIND_SIN] = &found->sin;
    buffers[FOVEA_BIND_POSITIONS] = &*positions_;
    return record(
        {kRope, heads, width, rows_, call.rotary_dim, call.interleaved},
        [&] { return plan_rope(engine_.properties(), call); }, buffers);
}

Result<void> DeviceText::attend(const AttentionPart& a) {
    const uint64_t heads = a.heads, kv = a.kv_heads, width = head_width();
    for (const auto& [role, kept] : {std::pair{keys, &at_->keys}, {values, &at_->values}}) {
        if (!*kept) {
            Result<DeviceBuffer> buffer = allocate(kv * capacity_ * width * 4);
            if (!buffer) return buffer.error();
            kept->emplace(std::move(*buffer));
        }
        const FoveaAppendDesc call = append_call(rows_, kv, width, capacity_, held_);
        Buffers buffers{};
        buffers[FOVEA_BIND_X] = &*room_[role], buffers[FOVEA_BIND_Y] = &**kept;
        if (Result<void> r = record(
                {kAppend, kv, width, rows_, held_}, [&] { return plan_append(engine_.properties(), call); },
                buffers);
            !r)
            return r;
    }
    FoveaAttentionDesc call = attention_call(a);
    call.kernel = runner_.kernel_;
    if (Result<void> r = need(context, rows_ * heads * width); !r) return r;
    Buffers buffers{};
    buffers[FOVEA_BIND_Q] = &*room_[queries], buffers[FOVEA_BIND_O] = &*room_[context];
    buffers[FOVEA_BIND_K] = &*at_->keys, buffers[FOVEA_BIND_V] = &*at_->values;
    Key key(sizeof call / sizeof(uint64_t));  // all of the description, longer than other keys
    memcpy(key.data(), &call, sizeof call);
    if (Result<void> r = record(
            key, [&] { return plan_attention(engine_.properties(), call); }, buffers);
        !r)
        return r;
    runner_.reason_ = pending_.back().plan->info().reason;
    return {};
}

// ---- a text ----

Result<void> DeviceText::enter(const F32Tensor& x, uint64_t held) {
    if (Result<void> r = take(x, held); !r) return r;
    if (Result<void> r = flush(); !r) return r;
    runner_.forget_closed();
    if (Result<void> r = need(stream, rows_ * width_); !r) return r;
    std::vector<int32_t> places(rows_);
    for (uint64_t i = 0; i < rows_; ++i) places[i] = int32_t(held_ + i);
    if (Result<void> r = grow(positions_, rows_ * 4); !r) return r;
    runner_.traffic_.uploads += 2;
    if (Result<void> r = positions_->upload(std::as_bytes(std::span(places))); !r) return r;
    return room_[stream]->upload(std::as_bytes(std::span(x.values)));
}

Result<F32Tensor> DeviceText::row(uint64_t index) {
    if (Result<void> r = flush(); !r) return r.error();
    F32Tensor one({1, width_});
    ++runner_.traffic_.reads;
    if (Result<void> r =
            room_[stream]->download(std::as_writable_bytes(std::span(one.values)), index * width_ * 4);
        !r)
        return r.error();
    return one;
}

}  // namespace fovea
