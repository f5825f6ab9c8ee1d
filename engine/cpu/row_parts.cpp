#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/row_parts.cpp"
#include <hwy/foreach_target.h>

#include "cpu/row_parts_inl.hpp"

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::norm) norm_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, norm_rows) }
decltype(Kernels::pointwise) pointwise_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, pointwise_rows)
}

}  // namespace fovea::cpu
#endif
