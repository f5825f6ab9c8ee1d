// A few rows of activations times a matrix that stays as its file stores it: float32, float16, bfloat16 or
// ggml's blocks of 32 or 256 numbers. Weights are widened in registers, so that one row of activations costs
// one reading of the matrix and nothing is written but the result.
#pragma once

#include <cstdint>

namespace fovea::cpu {

// The layouts of quantised.cpp in engine/files, which says what each block holds.
enum class BlockFormat : uint8_t { f32, f16, bf16, q4_0, q8_0, q4_k, q5_k, q6_k };

// Rows are read from so many places of a matrix at a time, the first rows of as many parts of it.
constexpr uint32_t kRowParts = 4;

// y[n] = sum over e of W[n, e] x[e] (+ bias[n]): float32 sums, in an order that depends on the target alone.
struct BlockRows {
    BlockFormat format;
    const unsigned char*
        weights;                  // row n at n * row_bytes; aligned as its numbers are (f32: 4, f16, bf16: 2)
    uint64_t columns, row_bytes;  // columns are a multiple of the block's numbers
    uint64_t rows, part_rows;     // part p begins at row p * part_rows; the last ones are shorter, or empty
    const float *x, *bias;        // [columns]; [rows], or null
    float* y;                     // [rows]
};

// Rows [first, end) of each part, 0 <= first <= end <= part_rows.
using BlockRowsKernel = void (*)(const BlockRows& call, uint64_t first, uint64_t end);
// Null where this build has no kernels of the target.
BlockRowsKernel block_rows_kernel_of(uint32_t target);

}  // namespace fovea::cpu
