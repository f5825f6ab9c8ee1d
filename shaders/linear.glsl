// Shared by the linear kernels: rows of X and W, and storing a result with its bias.
#ifndef FOVEA_LINEAR_GLSL
#define FOVEA_LINEAR_GLSL

#include "cache_tensor.glsl"
#include "math.glsl"
#include "store.glsl"

FOVEA_INPUT_TENSOR(x, FOVEA_SLOT_X, kXType, kAligned)
FOVEA_CACHE_TENSOR(w, FOVEA_SLOT_W, kWType, kAligned)
FOVEA_OUTPUT_TENSOR(y, FOVEA_SLOT_Y)
layout(set = 0, binding = FOVEA_SLOT_LINEAR_BIAS, std430) readonly buffer Bias { float bias[]; };

void store_result(uint row, uint column, float value) {
    if (row >= push.rows || column >= push.n_out) return;
    const float sum = push.has_bias != 0u ? value + bias[push.bias_base + column] : value;
    y_store_bits(push.y_base + row * push.y_row + column, stored_bits(sum));
}

uint x_row(uint row) { return push.x_base + min(row, push.rows - 1u) * push.x_row; }

uint w_row(uint row, uint rows) { return push.w_base + min(row, rows - 1u) * push.w_row; }

#include "weight_blocks.glsl"
const bool kBlocks = w_blocks || kIsWeightBlock;
// Returns elements n .. n+3 of a row of W [n_out, n_in] that is made of blocks, which end where rows do.
vec4 w_of_blocks(uint row, uint n) {
    return kIsWeightBlock ? w_of_weight_blocks(row + n) : w_numbers4(row + n, 0u);
}

#endif
