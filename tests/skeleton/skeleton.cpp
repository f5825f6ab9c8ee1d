// A CPU kernel to copy, see docs/contributing/first-kernel.md: y[r] = sum over c of weights[c] * x[r][c],
// float32, rows of any length. This file is compiled once for each instruction set; the code between the
// namespaces is the kernel.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skeleton/skeleton.cpp"
#include <hwy/foreach_target.h>

#include "cpu/simd_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rows [begin, end) of x, which are `columns` apart. A row's bits depend only on its own elements: neither on
// other rows nor on the thread. The tail is added after the vectors, one element at a time, so that nothing
// is read past a row.
void weighted_rows(const float* x, const float* weights, size_t columns, uint64_t begin, uint64_t end,
                   float* y) {
    const F f;
    const size_t whole = columns / kLanes * kLanes;
    for (uint64_t r = begin; r < end; ++r) {
        const float* row = x + r * columns;
        V sum = hn::Zero(f);
        for (size_t c = 0; c < whole; c += kLanes)
            sum = mul_add(hn::LoadU(f, weights + c), hn::LoadU(f, row + c), sum);
        float total = hn::GetLane(hn::SumOfLanes(f, sum));
        for (size_t c = whole; c < columns; ++c) total += weights[c] * row[c];
        y[r] = total;
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "skeleton/skeleton.hpp"

namespace fovea::cpu {

WeightedRows weighted_rows_of(uint32_t target) { FOVEA_SELECT_TARGET(target, weighted_rows) }

}  // namespace fovea::cpu
#endif
