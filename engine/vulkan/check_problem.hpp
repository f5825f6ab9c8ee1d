// The small problems of foveaCheckDevice: which calls they are, and what their inputs hold.
#pragma once

#include "plan/plan.hpp"
#include "plan/vulkan/shaders.hpp"

namespace fovea::vulkan {

// One call, and how its inputs are drawn.
struct CheckProblem : Call {
    FoveaAttentionDesc attention;
    FoveaAttentionBackwardDesc gradients;
    FoveaMapTileDesc map;
    float k_size = 1, v_size = 1;  // largest magnitudes of keys and values
};

// Fills problem `n` of the kernel with this main shader for calls of a class. False past the last one.
// `properties` come as the device's, and lose what would make the planner prefer another kernel.
bool check_problem(Shader main, uint32_t check_class, uint32_t n, FoveaDeviceProperties& properties,
                   CheckProblem& out);

// Plans the problem. REFERENCE and PLAIN plan for the CPU, with results in float32 and all that the verdict
// needs.
FoveaResult plan_problem(const CheckProblem& problem, FoveaKernel kernel,
                         const FoveaDeviceProperties& properties, const FoveaHostAllocator& allocator,
                         FoveaPlan* out, FoveaDiag* diag);

// Draws one input; masked keys hold NaN.
void fill_input(const CheckProblem& problem, uint32_t binding, uint64_t seed, unsigned char* to,
                uint64_t size_bytes);

// The type of an input; U8 and I32 for those that hold no values.
FoveaDtype input_type(const CheckProblem& problem, uint32_t binding);

// ---- attention's inputs by place, as the verdict needs them ----

constexpr uint32_t kMaxCheckDim = 128;

float element_at(const void* data, FoveaDtype type, int64_t index);
// First elements of the row of a query, and of a key; -1: the entry has no such row.
int64_t query_row(const FoveaAttentionDesc& d, uint32_t b, uint32_t h, int64_t i, uint32_t dim);
int64_t key_row(const FoveaAttentionDesc& d, uint32_t b, uint32_t h_kv, int64_t j, uint32_t dim);
FoveaSequence sequence_of(const FoveaAttentionDesc& d, uint32_t b);

}  // namespace fovea::vulkan
