// One attention call in plain float32, rows one after the other in the tutorials' order.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/model/linear.hpp>

namespace fovea {

// `scale` and `dropout_p` in the place of the call's: scores may be divided, and PyTorch's rate is a float64.
// Takes float32 tensors without gaps, every mask, bias, sinks and explicit keep masks. Rejects lengths,
// packing, paging, strides, other types and counter-based dropout, which the strict order lacks. Bindings are
// those of the call, of the sizes that foveaPlanAttention would ask for.
Result<void> attend_strictly(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings,
                             ScoreScale scale, double dropout_p);

}  // namespace fovea
