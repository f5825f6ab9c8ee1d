#include "runtime/sized_plan.hpp"

namespace fovea::runtime {
namespace {

// `make`: the plan of a description.
template <class Make>
Result<Plan> sized(const FoveaAttentionDesc& desc, double measured_slice_cost, const Make& make) {
    Result<Plan> plan = make(desc);
    if (!plan || desc.max_slice_cost > 0 || measured_slice_cost <= 0) return plan;
    FoveaAttentionDesc limited = desc;
    limited.max_slice_cost = measured_slice_cost;
    Result<Plan> other = make(limited);
    return other && other->info().kernel == plan->info().kernel ? std::move(other) : std::move(plan);
}

}  // namespace

Result<Plan> plan_sized_attention(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& desc,
                                  double measured_slice_cost) {
    return sized(desc, measured_slice_cost,
                 [&](const FoveaAttentionDesc& d) { return plan_attention(facts, d); });
}

Result<Plan> plan_sized_attention_backward(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& forward,
                                           const FoveaAttentionBackwardDesc& backward,
                                           double measured_slice_cost) {
    return sized(forward, measured_slice_cost,
                 [&](const FoveaAttentionDesc& d) { return plan_attention_backward(facts, d, backward); });
}

Result<Plan> plan_sized_map_tile(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& attention,
                                 const FoveaMapTileDesc& tile, double measured_slice_cost) {
    return sized(attention, measured_slice_cost,
                 [&](const FoveaAttentionDesc& d) { return plan_map_tile(facts, d, tile); });
}

}  // namespace fovea::runtime
