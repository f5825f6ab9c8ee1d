#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rope.cpp"
#include <hwy/foreach_target.h>

#include "cpu/rope_inl.hpp"

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::rope) rope_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, rope_rows) }

}  // namespace fovea::cpu
#endif
