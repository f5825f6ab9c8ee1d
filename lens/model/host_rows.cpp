#include "model/host_rows.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "cpu/target.hpp"
#include "problem/parallel.hpp"

namespace fovea {
namespace {

// Elements of one task: enough that handing it out costs little. One row of a layer never spans several
// tasks.
constexpr uint64_t kTaskNumbers = uint64_t{16} << 10;

using Bindings = std::array<FoveaHostBuffer, FOVEA_BIND_COUNT>;

void give(Bindings& bindings, FoveaBinding binding, const float* numbers, uint64_t count) {
    bindings[binding] = {const_cast<float*>(numbers), numbers ? count * 4 : 0};
}

}  // namespace

NormDesc norm_call(const Norm& norm, uint64_t rows, uint64_t width) {
    NormDesc call{};
    call.rule = norm.kind == NormKind::rms ? NormRule::rms : NormRule::layer;
    call.width = uint32_t(width), call.rows = rows, call.epsilon = float(norm.epsilon);
    call.has_bias = !norm.bias.values.empty();
    call.has_weight = call.has_bias || !norm.weight.values.empty();
    return call;
}

PointwiseRule rule_of(Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return PointwiseRule::gelu;
        case Activation::gelu_tanh:
            return PointwiseRule::gelu_tanh;
        case Activation::silu:
            return PointwiseRule::silu;
        default:
            return PointwiseRule::relu;
    }
}

PointwiseDesc pointwise_call(PointwiseRule rule, uint64_t count, bool has_other) {
    PointwiseDesc call{};
    call.rule = rule, call.count = count;
    call.gated = rule != PointwiseRule::add && has_other;
    return call;
}

FoveaRopeDesc rope_call(const Rope& rope, uint64_t rows, uint64_t heads, uint64_t width, HeadOrder order) {
    FoveaRopeDesc call = foveaRopeDesc();
    call.batch = 1, call.heads = uint32_t(heads), call.dim = uint32_t(width), call.len = rows;
    const bool apart = order == HeadOrder::apart;
    call.x_strides = call.y_strides = {int64_t(rows * heads * width), int64_t(apart ? rows * width : width),
                                       int64_t(apart ? width : heads * width)};
    call.rotary_dim = uint32_t(rope.rotated(width)), call.interleaved = rope.interleaved;
    return call;
}

FoveaAppendDesc append_call(uint64_t rows, uint64_t heads, uint64_t width, uint64_t capacity, uint64_t held) {
    FoveaAppendDesc call = foveaAppendDesc();
    call.batch = 1, call.heads = uint32_t(heads), call.dim = uint32_t(width), call.len = rows;
    call.x_strides = {int64_t(rows * heads * width), int64_t(width), int64_t(heads * width)};
    call.y_strides = {int64_t(heads * capacity * width), int64_t(capacity * width), int64_t(width)};
    call.capacity = capacity, call.first_row = held;
    return call;
}

HostRows::HostRows(const FoveaParallel* parallel) : parallel_(parallel) {
    const uint32_t target = cpu::best_target();
    norm_ = cpu::norm_kernel_of(target), pointwise_ = cpu::pointwise_kernel_of(target);
    rope_ = cpu::rope_kernel_of(target), append_ = cpu::append_kernel_of(target);
}

// Calls body(begin, end) for all rows of `width` elements.
template <class Body>
void HostRows::in_tasks(uint64_t rows, uint64_t width, const Body& body) const {
    struct Job {
        const Body& body;
        uint64_t rows, step;
    } job{body, rows, std::max<uint64_t>(1, kTaskNumbers / width)};
    for_each_task(
        parallel_, uint32_t((rows + job.step - 1) / job.step),
        [](void* arg, uint32_t index, uint32_t) {
            const Job& j = *static_cast<const Job*>(arg);
            j.body(index * j.step, std::min(j.rows, (index + 1) * j.step));
        },
        &job);
}

void HostRows::norm(const Norm& norm, const float* x, uint64_t rows, uint64_t width, float* y,
                    float* sum) const {
    NormDesc call = norm_call(norm, rows, width);
    call.adds = sum != nullptr;
    // The kernel expects the biases directly after the weights.
    std::vector<float> both;
    const float* weight = call.has_weight ? norm.weight.values.data() : nullptr;
    if (call.has_bias) {
        both = norm.weight.values;
        if (both.empty()) both.assign(width, 1.0f);
        both.insert(both.end(), norm.bias.values.begin(), norm.bias.values.end());
        weight = both.data();
    }
    Bindings bindings{};
    give(bindings, FOVEA_BIND_X, x, rows * width), give(bindings, FOVEA_BIND_Y, y, rows * width);
    give(bindings, FOVEA_BIND_O, sum, rows * width);
    give(bindings, FOVEA_BIND_WEIGHT, weight, width * (1 + call.has_bias));
    in_tasks(rows, width, [&](uint64_t begin, uint64_t end) { norm_(call, bindings.data(), begin, end); });
}

void HostRows::pointwise(PointwiseRule rule, const float* x, const float* other, float* y,
                         uint64_t count) const {
    const PointwiseDesc call = pointwise_call(rule, count, other != nullptr);
    Bindings bindings{};
    give(bindings, FOVEA_BIND_X, x, count), give(bindings, FOVEA_BIND_Y, y, count);
    give(bindings, FOVEA_BIND_O, other, count);
    in_tasks((count + kPointwiseStretch - 1) / kPointwiseStretch, kPointwiseStretch,
             [&](uint64_t begin, uint64_t end) { pointwise_(call, bindings.data(), begin, end); });
}

void HostRows::rotate(float* x, uint64_t rows, uint64_t heads, uint64_t width, HeadOrder order,
                      const Rope& rope, const RopeTables& tables, uint64_t first) const {
    const FoveaRopeDesc call = rope_call(rope, rows, heads, width, order);
    Bindings bindings{};
    const uint64_t pairs = call.rotary_dim / 2;
    give(bindings, FOVEA_BIND_X, x, rows * heads * width),
        give(bindings, FOVEA_BIND_Y, x, rows * heads * width);
    give(bindings, FOVEA_BIND_COS, tables.cos.values.data() + first * pairs, rows * pairs);
    give(bindings, FOVEA_BIND_SIN, tables.sin.values.data() + first * pairs, rows * pairs);
    in_tasks(rows * heads, width,
             [&](uint64_t begin, uint64_t end) { rope_(call, bindings.data(), begin, end); });
}

void HostRows::append(const float* x, uint64_t rows, uint64_t heads, uint64_t width, float* cache,
                      uint64_t capacity, uint64_t held) const {
    const FoveaAppendDesc call = append_call(rows, heads, width, capacity, held);
    Bindings bindings{};
    give(bindings, FOVEA_BIND_X, x, rows * heads * width);
    give(bindings, FOVEA_BIND_Y, cache, heads * capacity * width);
    in_tasks(rows * heads, width,
             [&](uint64_t begin, uint64_t end) { append_(call, bindings.data(), begin, end); });
}

}  // namespace fovea
