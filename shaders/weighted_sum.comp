// Staged attention, third stage: o_i = scale_i * sum_j w_ij * v_j from the workspace's weights. One workgroup
// computes a tile of rows x value columns over the keys that its rows may see.
//   FOVEA_TILE_SHARED  tiles in shared memory instead of straight from the buffers
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
#ifndef FOVEA_TILE_SHARED
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kDirectRows;
#endif
layout(push_constant, std430) uniform Push { WeightedSumPush push; };

#include "tensor.glsl"
#include "slice.glsl"
#include "key_row.glsl"
#include "math.glsl"
#include "store.glsl"

FOVEA_INPUT_TENSOR(v, FOVEA_SLOT_V, kVType, kAligned)
FOVEA_OUTPUT_TENSOR(o, FOVEA_SLOT_O)
layout(set = 0, binding = FOVEA_SLOT_SCORES, std430) readonly buffer Weights { uvec4 weight_quads[]; };
layout(set = 0, binding = FOVEA_SLOT_ROW_SCALE, std430) readonly buffer RowScale { float row_scale[]; };

// Weights of keys j .. j+3 (j a multiple of 4) for a row that sees `keys`, as bits; hidden ones are
// kHiddenWeight. Cells outside the row's range may never have been written.
uvec4 weights_of(uint row_start, Keys keys, int first_key, int j) {
    const uvec4 bits = weight_quads[(row_start + uint(j - first_key)) / 4u];
    const ivec4 key = ivec4(j, j + 1, j + 2, j + 3);
    return mix(uvec4(kHiddenWeight), bits,
               equal(uvec4(lessThan(key, ivec4(keys.begin))) + uvec4(greaterThanEqual(key, ivec4(keys.end))),
                     uvec4(0u)));
}

// Columns column .. column+3 of v's row j; 0 where there is none.
vec4 values_of(Entry e, int j, Keys keys, uint column) {
    if (j < keys.begin || j >= keys.end) return vec4(0.0);
    const uint row = key_row(push.v, e, uint(j));
    return row == kNoRow ? vec4(0.0) : v_columns4(row, column, push.dim);
}

// A hidden key's value must not touch the sum, whatever it is: it is left out by selection, not multiplied by
// 0.
vec4 add_shown(vec4 sum, uint weight, vec4 value) {
    const bool hidden = weight == kHiddenWeight;
    return fma(vec4(hidden ? 0.0 : uintBitsToFloat(weight)), mix(value, vec4(0.0), bvec4(hidden)), sum);
}

void store_row(Entry e, uint row, uint column, vec4 sum) {
    if (row >= push.slice.rows) return;
    // Where entries are packed end to end, a row past the length belongs to another entry.
    if (has_flag(kFlagPackedQ) && int(push.slice.first_row + row) >= e.q_length) return;
    const float scale = row_scale[e.index * push.slice.rows + row];
    const uint at = query_row(push.o, e, row) + column;
    for (uint c = 0u; c < kThreadColumns; ++c)
        if (column + c < push.dim) o_store_bits(at + c, stored_bits(scale == 0.0 ? 0.0 : sum[c] * scale));
}

#ifdef FOVEA_TILE_SHARED
#include "tile_shared.glsl"

void main() {
    const uint t = gl_LocalInvocationIndex;
    const Entry e = slice_entry(gl_WorkGroupID.z);
    const uint first_row = gl_WorkGroupID.y * kSharedRows, first_column = gl_WorkGroupID.x * kSharedColumns;
    const int i = int(push.slice.first_row + first_row), first_key = first_scored_key(e);
    const Keys keys = visible_keys(e, i, i + int(kSharedRows)), full = full_keys(e, i, i + int(kSharedRows));
    vec4 acc[kSharedThreadRows];
    for (uint r = 0u; r < kSharedThreadRows; ++r) acc[r] = vec4(0.0);
    for (int j0 = keys.begin & ~3; j0 < keys.end; j0 += int(kSharedDepth)) {
        if (j0 != (keys.begin & ~3)) barrier();
        for (uint f = t; f < kSharedRows * kSharedDepth / 4u; f += kSharedThreads) {
            const uint depth = f % (kSharedDepth / 4u) * 4u, at = f / (kSharedDepth / 4u);
            const Keys row_keys = visible_keys(e, i + int(at), i + int(at) + 1);
            uvec4 bits = uvec4(kHiddenWeight);
            if (first_row + at < push.slice.rows && j0 + int(depth) < row_keys.end)
                bits = weights_of(score_row(e, first_row + at), row_keys, first_key, j0 + int(depth));
            tile_put_a(depth, at, uintBitsToFloat(bits));
        }
        for (uint f = t; f < kSharedDepth * kSharedColumns / 4u; f += kSharedThreads) {
            const uint depth = f / (kSharedColumns / 4u), quad = f % (kSharedColumns / 4u);
            tile_b[depth][quad] = values_of(e, j0 + int(depth), keys, first_column + 4u * quad);
        }
        barrier();
        if (!has_flag(kFlagSparse) && j0 >= full.begin && j0 + int(kSharedDepth) <= full.end) {
            tile_multiply(acc);
            continue;
        }
        for (uint depth = 0u; depth < kSharedDepth; ++depth) {
            const vec4 b = tile_b[depth][tile_thread_column() / 4u];
            for (uint r = 0u; r < kSharedThreadRows; ++r) {
                const uint row = tile_thread_row() + r;
                acc[r] = add_shown(acc[r], floatBitsToUint(tile_a[depth][row >> 2][row & 3u]), b);
            }
        }
    }
    for (uint r = 0u; r < kSharedThreadRows; ++r)
        store_row(e, first_row + tile_thread_row() + r, first_column + tile_thread_column(), acc[r]);
}

#else

void main() {
    const Entry e = slice_entry(gl_WorkGroupID.z);
    const uint first_row = gl_WorkGroupID.y * kRows;
    const uint column = (gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationIndex) * kThreadColumns;
    const int i = int(push.slice.first_row + first_row), first_key = first_scored_key(e);
    const Keys keys = visible_keys(e, i, i + int(kRows)), full = full_keys(e, i, i + int(kRows));
    uint row_start[kRows];
    Keys row_keys[kRows];
    vec4 acc[kRows];
    for (uint r = 0u; r < kRows; ++r) {
        row_start[r] = score_row(e, min(first_row + r, push.slice.rows - 1u));
        row_keys[r] = visible_keys(e, i + int(r), i + int(r) + 1);
        acc[r] = vec4(0.0);
    }
    for (int j = keys.begin & ~3; j < keys.end; j += 4) {
        vec4 value[4];
        for (int n = 0; n < 4; ++n) value[n] = values_of(e, j + n, keys, column);
        if (!has_flag(kFlagSparse) && j >= full.begin && j + 4 <= full.end) {
            for (uint r = 0u; r < kRows; ++r) {
                const vec4 w = uintBitsToFloat(weight_quads[(row_start[r] + uint(j - first_key)) / 4u]);
                for (int n = 0; n < 4; ++n) acc[r] = fma(vec4(w[n]), value[n], acc[r]);
            }
            continue;
        }
        for (uint r = 0u; r < kRows; ++r) {
            const uvec4 w = weights_of(row_start[r], row_keys[r], first_key, j);
            for (int n = 0; n < 4; ++n) acc[r] = add_shown(acc[r], w[n], value[n]);
        }
    }
    for (uint r = 0u; r < kRows; ++r) store_row(e, first_row + r, column, acc[r]);
}
#endif
