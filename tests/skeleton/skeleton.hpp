// How the rest of the engine sees a kernel: a function pointer for a target, null where it is not compiled.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::cpu {

using WeightedRows = void (*)(const float* x, const float* weights, size_t columns, uint64_t begin,
                              uint64_t end, float* y);
WeightedRows weighted_rows_of(uint32_t target);

}  // namespace fovea::cpu
