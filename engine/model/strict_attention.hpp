// One attention call in plain float32, rows one after the other in the tutorials' order.
#pragma once

#include <fovea/model/executor.hpp>

#include <memory>
#include <vector>

namespace fovea {

// `scale` and `dropout_p` in the place of the call's: scores may be divided, and PyTorch's rate is a float64.
// Takes float32 tensors without gaps, every mask, bias, sinks and explicit keep masks; refuses by name what
// the strict order does not have: lengths, packing, paging, float16, dropout by counters. Bindings are those
// of the call, of the sizes that foveaPlanAttention would ask for.
Result<void> attend_strictly(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings,
                             ScoreScale scale, double dropout_p);

// A layer's problem as the engine takes it.
struct ProblemCall {
    Attention call;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    std::vector<uint8_t> keep;
    AttentionResult result;  // what the bindings' outputs point to
};
// Borrows the problem's tensors. Refuses sizes beyond 32 bits.
Result<std::unique_ptr<ProblemCall>> problem_call(const AttentionProblem& problem);

}  // namespace fovea
