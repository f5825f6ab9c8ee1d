// Plans whose slices take about the time that a device was measured to need. Pure functions: the rate is
// given.
#pragma once

#include <fovea/fovea.hpp>

namespace fovea::runtime {

// `measured_slice_cost`: FLOPs, SliceRate::slice_cost(); 0: nothing measured. A budget of the description's
// own comes first. What was measured sizes slices and does nothing else: it is no reason to refuse a problem,
// nor to take a kernel with smaller slices, or results would change with the machine's load.
Result<Plan> plan_sized_attention(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& desc,
                                  double measured_slice_cost);
Result<Plan> plan_sized_attention_backward(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& forward,
                                           const FoveaAttentionBackwardDesc& backward,
                                           double measured_slice_cost);
Result<Plan> plan_sized_map_tile(const FoveaDeviceFacts& facts, const FoveaAttentionDesc& attention,
                                 const FoveaMapTileDesc& tile, double measured_slice_cost);

}  // namespace fovea::runtime
