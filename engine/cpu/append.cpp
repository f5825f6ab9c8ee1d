#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/append.cpp"
#include <hwy/foreach_target.h>

#include "cpu/compressed_row_inl.hpp"
#include "cpu/convert_row_inl.hpp"
#include "problem/rotation.hpp"
#include "reference/operation_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Converts a row from one type to another through float32, one piece at a time, which stays in L1: this needs
// code for each type, not for each pair of types.
inline void convert_any_row(const FoveaAppendDesc& d, const void* x_data, int64_t x, void* y_data,
                            int64_t y) {
    constexpr size_t kPiece = 256;
    HWY_ALIGN float room[kPiece];
    for (size_t n = 0; n < d.dim; n += kPiece) {
        const size_t count = HWY_MIN(kPiece, d.dim - n);
        if (is_compressed(d.x_type))
            widen_row(d.x_type,
                      static_cast<const unsigned char*>(x_data) + stored_bytes(d.x_type, x + int64_t(n)),
                      count, room);
        else
            with_elements(d.x_type, x_data,
                          [&](const auto* from) { convert_row(from + x + int64_t(n), count, room); });
        if (d.rotate) rotate_row(room, count);
        if (is_compressed(d.y_type))
            compress_row(d.y_type, room, count, static_cast<unsigned char*>(y_data), y + int64_t(n));
        else
            with_elements(d.y_type, y_data, [&](auto* to) { convert_row(room, count, to + y + int64_t(n)); });
    }
}

// Rows of equal types move their bits, NaN payloads included.
void append_rows(const FoveaAppendDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) {
        if (d.x_type == d.y_type) {
            reference::append_row(d, bindings, row);
            continue;
        }
        const reference::RowIndex at = reference::split_row(row, d.heads, d.len);
        const int64_t y = reference::cache_row(d, bindings, at);
        if (y >= 0)
            convert_any_row(d, bindings[FOVEA_BIND_X].data, reference::first_element(d.x_strides, at),
                            bindings[FOVEA_BIND_Y].data, y);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {
namespace {

// A gather copies bits wherever types are equal, as caches have them: what a copy is made of is the same on
// every instruction set.
void gather_rows(const FoveaGatherDesc& d, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end) {
    for (uint64_t row = begin; row < end; ++row) reference::gather_row(d, bindings, row);
}

}  // namespace

decltype(Kernels::append) append_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, append_rows) }
decltype(Kernels::gather) gather_kernel_of(uint32_t target) {
    return append_kernel_of(target) ? gather_rows : nullptr;
}

}  // namespace fovea::cpu
#endif
