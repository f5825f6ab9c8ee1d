// A few rows of activations times a matrix that stays as its file stores it: float32, float16, bfloat16 or
// ggml's blocks of 32 or 256 values. Weights are converted to float32 in registers, so that one row of
// activations costs one reading of the matrix and nothing is written but the result.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>

namespace fovea::cpu {

// Four blocks of 32 activations x as integers: x / unit = 65536 digits[0] + 256 digits[1] + digits[2], for
// values 0 to 15 of each block in a row and for 16 to 31. Initially zero.
struct alignas(64) DigitGroup {
    int8_t digits[3][2][64];
    int32_t high_offset[16], rest_offset[16];  // correction for the 8 that is added to stored weights
    float unit[16];                            // unit of a block, in four lanes
};
constexpr uint64_t digit_groups(uint64_t columns) { return (columns + 127) / 128; }
// A block is multiplied in float32 if the mean of its values, except the largest, is less than this fraction
// of the largest: they would keep fewer than 16 bits.
constexpr float kMinOfOthers = 0x1p-7f;

// Rows are read from so many places of a matrix at a time, the first rows of as many parts of it.
constexpr uint32_t kRowParts = 4;

// Computes y[n] = sum over e of W[n, e] x[e] (+ bias[n]) with float32 sums, in an order that depends only on
// the target.
struct BlockRows {
    FoveaDtype format;             // one that FoveaLinearDesc::w_type may be
    const unsigned char* weights;  // row n at n * row_bytes; aligned to its elements (f32: 4, f16, bf16: 2)
    uint64_t columns, row_bytes;   // columns are a multiple of the block's size
    uint64_t rows, part_rows;      // part p begins at row p * part_rows; the last ones are shorter, or empty
    const float *x, *bias;         // [columns]; [rows], or null
    float* y;                      // [rows]
    // x as Kernels::round_row leaves it, which integer_rows reads instead.
    const int8_t* integers;
    const float *integer_scales, *integer_sums;
    bool byte_products;  // Kernels::byte_products
    // As Kernels::split_digits leaves them.
    const DigitGroup* digits;
    const uint32_t* odd;  // blocks that are multiplied in float32, as all are where `digits` is null
    size_t odd_blocks;
};

}  // namespace fovea::cpu
