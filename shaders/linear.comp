// Y = X * W + bias in tiles of rows x columns. W is [n_out, n_in], or [n_in, n_out] with kInOut.
//   FOVEA_TILE_SHARED  tiles in shared memory instead of straight from the buffers
//   FOVEA_STORE_F16    Y is float16
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef FOVEA_STORE_F16
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kWType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_IN_OUT) const bool kInOut = false;
#ifndef FOVEA_TILE_SHARED
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kDirectRows;
#endif
layout(push_constant, std430) uniform Push { LinearPush push; };

#include "tensor.glsl"
#include "math.glsl"
#include "store.glsl"

FOVEA_INPUT_TENSOR(x, FOVEA_SLOT_X, kXType)
FOVEA_INPUT_TENSOR(w, FOVEA_SLOT_W, kWType)
FOVEA_OUTPUT_TENSOR(y, FOVEA_SLOT_Y)
layout(set = 0, binding = FOVEA_SLOT_LINEAR_BIAS, std430) readonly buffer Bias { float bias[]; };

void store_result(uint row, uint column, float value) {
    if (row >= push.rows || column >= push.n_out) return;
    const float sum = push.has_bias != 0u ? value + bias[push.bias_base + column] : value;
    y_store(push.y_base + row * push.y_row + column, sum);
}

uint x_row(uint row) { return push.x_base + min(row, push.rows - 1u) * push.x_row; }

// Inputs n .. n+3 of output `column`.
vec4 weights_into(uint column, uint n) {
    return w_at4_of(push.w_base + min(column, push.n_out - 1u) * push.w_row + n, left_of(push.n_in, n));
}

// Outputs column .. column+3 of input n.
vec4 weights_out_of(uint n, uint column) {
    if (n >= push.n_in) return vec4(0.0);
    return w_at4_of(push.w_base + n * push.w_row + column, left_of(push.n_out, column));
}

#ifdef FOVEA_TILE_SHARED
#include "tile_shared.glsl"

void main() {
    const uint t = gl_LocalInvocationIndex;
    const uint first_row = gl_WorkGroupID.y * kSharedRows, first_column = gl_WorkGroupID.x * kSharedColumns;
    vec4 acc[kSharedThreadRows];
    for (uint r = 0u; r < kSharedThreadRows; ++r) acc[r] = vec4(0.0);
    for (uint n0 = 0u; n0 < push.n_in; n0 += kSharedDepth) {
        if (n0 != 0u) barrier();
        for (uint f = t; f < kSharedRows * kSharedDepth / 4u; f += kSharedThreads) {
            const uint depth = f % (kSharedDepth / 4u) * 4u, at = f / (kSharedDepth / 4u), n = n0 + depth;
            tile_put_a(depth, at, x_at4_of(x_row(first_row + at) + n, left_of(push.n_in, n)));
            if (!kInOut) tile_put_b(depth, at, weights_into(first_column + at, n));
        }
        if (kInOut) {
            for (uint f = t; f < kSharedDepth * kSharedColumns / 4u; f += kSharedThreads) {
                const uint depth = f / (kSharedColumns / 4u), quad = f % (kSharedColumns / 4u);
                tile_b[depth][quad] = weights_out_of(n0 + depth, first_column + 4u * quad);
            }
        }
        barrier();
        tile_multiply(acc);
    }
    for (uint r = 0u; r < kSharedThreadRows; ++r)
        for (uint c = 0u; c < kThreadColumns; ++c)
            store_result(first_row + tile_thread_row() + r, first_column + tile_thread_column() + c,
                         acc[r][c]);
}

#else

// [n_in, n_out]: a thread holds four neighbouring columns; else neighbouring threads hold neighbouring
// columns.
uint column_of(uint c) {
    const uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * kThreadColumns, t = gl_LocalInvocationIndex;
    return first + (kInOut ? t * kThreadColumns + c : t + c * gl_WorkGroupSize.x);
}

void main() {
    const uint first_row = gl_WorkGroupID.y * kRows;
    vec4 acc[kRows];
    for (uint r = 0u; r < kRows; ++r) acc[r] = vec4(0.0);
    for (uint n = 0u; n < push.n_in; n += 4u) {
        vec4 w[4];
        for (uint c = 0u; c < 4u; ++c)
            w[c] = kInOut ? weights_out_of(n + c, column_of(0u)) : weights_into(column_of(c), n);
        for (uint r = 0u; r < kRows; ++r) {
            const vec4 x = x_at4_of(x_row(first_row + r) + n, left_of(push.n_in, n));
            for (uint c = 0u; c < 4u; ++c) {
                if (kInOut)
                    acc[r] = fma(vec4(x[c]), w[c], acc[r]);
                else
                    acc[r][c] =
                        fma(x.w, w[c].w, fma(x.z, w[c].z, fma(x.y, w[c].y, fma(x.x, w[c].x, acc[r][c]))));
            }
        }
    }
    for (uint r = 0u; r < kRows; ++r)
        for (uint c = 0u; c < kThreadColumns; ++c) store_result(first_row + r, column_of(c), acc[r][c]);
}
#endif
