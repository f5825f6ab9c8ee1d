// Y = X * W + bias in tiles of rows x columns. W is [n_out, n_in], also of blocks, or [n_in, n_out] with
// kInOut.
//   FOVEA_TILE_SHARED  tiles in shared memory instead of straight from the buffers
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
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

#include "linear.glsl"

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
            tile_put_a(depth, at, x_depth4(x_row(first_row + at), n, push.n_in));
            if (kInOut) continue;
            const uint row = w_row(first_column + at, push.n_out);
            tile_put_b(depth, at, kBlocks ? w_of_blocks(row, n) : w_plain_depth4(row, n, push.n_in));
        }
        if (kInOut) {
            for (uint f = t; f < kSharedDepth * kSharedColumns / 4u; f += kSharedThreads) {
                const uint depth = f / (kSharedColumns / 4u), quad = f % (kSharedColumns / 4u);
                const vec4 w =
                    w_plain_columns4(w_row(n0 + depth, push.n_in), first_column + 4u * quad, push.n_out);
                tile_b[depth][quad] = n0 + depth < push.n_in ? w : vec4(0.0);
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
        const bvec4 past = greaterThanEqual(n + uvec4(0u, 1u, 2u, 3u), uvec4(kAligned ? ~0u : push.n_in));
        vec4 w[4];
        for (uint c = 0u; c < 4u; ++c) {
            const uint row = kInOut ? w_row(n + c, push.n_in) : w_row(column_of(c), push.n_out);
            if (kBlocks)
                w[c] = w_of_blocks(row, n);
            else
                w[c] = w_plain_columns4(row, kInOut ? column_of(0u) : n, kInOut ? push.n_out : push.n_in);
            if (!kAligned) w[c] = mix(w[c], vec4(0.0), kInOut ? bvec4(past[c]) : past);
        }
        for (uint r = 0u; r < kRows; ++r) {
            vec4 x = x_columns4(x_row(first_row + r), n, push.n_in);
            if (!kAligned) x = mix(x, vec4(0.0), past);
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
