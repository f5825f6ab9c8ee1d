// A row from one type to the other, or copied.
#if defined(FOVEA_CPU_CONVERT_ROW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_CONVERT_ROW_INL_HPP
#undef FOVEA_CPU_CONVERT_ROW_INL_HPP
#else
#define FOVEA_CPU_CONVERT_ROW_INL_HPP
#endif

#include "cpu/simd_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class X, class Y>
HWY_INLINE void convert_row(const X* from, size_t count, Y* to) {
    size_t e = 0;
    for (; e + kLanes <= count; e += kLanes) store_row(load_row(from + e), to + e);
    for (; e < count; ++e) store_one(load_one(from + e), to + e);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
