#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/block_rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu/block_rows_inl.hpp"
#include "cpu/digit_rows_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void stored_rows(const BlockRows& call, uint64_t first, uint64_t end) {
    switch (call.format) {
        case FOVEA_F32:
            return float_rows<Widen32>(call, first, end);
        case FOVEA_F16:
            return float_rows<Widen16>(call, first, end);
        case FOVEA_BF16:
            return float_rows<WidenBrain>(call, first, end);
        case FOVEA_Q4_0:
#if FOVEA_DIGIT_ROWS
            if (call.digits)
                return call.byte_products ? digit_rows<true>(call, first, end)
                                          : digit_rows<false>(call, first, end);
#endif
            return block_rows<BlockQ4>(call, first, end);
        case FOVEA_Q8_0:
            return block_rows<BlockQ8>(call, first, end);
        default:
            return with_weight_block(
                call.format, [&](auto block) HWY_ATTR { coded_rows<decltype(block)>(call, first, end); });
    }
}

void split_digits(BlockRows& call, DigitGroup* groups, uint32_t* odd) {
    split_into_digits(call, groups, odd);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::few_rows) few_rows_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, stored_rows) }
decltype(Kernels::split_digits) split_digits_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, split_digits)
}

}  // namespace fovea::cpu
#endif
