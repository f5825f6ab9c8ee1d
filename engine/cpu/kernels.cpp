#include "cpu/kernels.hpp"

#include "cpu/target.hpp"
#include "problem/parts.hpp"

namespace fovea::cpu {

Kernels kernels_of(uint32_t target) {
    Kernels kernels{};
    if (target >= kTargetCount || !(runnable_targets() >> target & 1u)) return kernels;
    kernels.flash = flash_kernel_of(target);
    if (has_pair_products()) kernels.flash_pairs = flash_pairs_kernel_of(target);
    if (has(kDecoding)) kernels.decode = decode_kernel_of(target);
    if (has(kDecoding)) kernels.decode_merge = decode_merge_kernel_of(target);
    kernels.linear = linear_kernel_of(target);
    if (has(kIntegers)) kernels.integer_linear = integer_linear_kernel_of(target);
    if (has(kStoredRows)) kernels.few_rows = few_rows_kernel_of(target);
    if (has(kIntegers)) kernels.integer_rows = integer_rows_kernel_of(target);
    if (has(kIntegers)) kernels.round_row = round_row_kernel_of(target);
    if (has(kStoredRows)) kernels.split_digits = split_digits_kernel_of(target);
    kernels.byte_products = has_byte_products();
    kernels.rope = rope_kernel_of(target);
    if (has(kCaches)) kernels.append = append_kernel_of(target);
    if (has(kMerges)) kernels.merge = merge_kernel_of(target);
    if (has(kCaches)) kernels.gather = gather_kernel_of(target);
#ifndef FOVEA_NO_ROW_PARTS
    kernels.norm = norm_kernel_of(target);
    kernels.pointwise = pointwise_kernel_of(target);
#endif
    if (has(kMapTiles)) kernels.map_tile = map_tile_kernel_of(target);
    if (has(kGradients)) kernels.backward = backward_kernel_of(target);
    return kernels;
}

}  // namespace fovea::cpu
