// Staged attention, first stage: score = scale * dot(q_i, k_j) into the workspace and, if asked for, into the
// result `scores`. One workgroup computes a tile of rows x keys; tiles that no row may see are left out.
//   FOVEA_TILE_SHARED  tiles in shared memory instead of straight from the buffers
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
#ifndef FOVEA_TILE_SHARED
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kDirectRows;
#endif
layout(push_constant, std430) uniform Push { ScoresPush push; };

#include "tensor.glsl"
#include "slice.glsl"
#include "key_row.glsl"

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_INPUT_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
layout(set = 0, binding = FOVEA_SLOT_SCORES, std430) writeonly buffer Scores { uint scores[]; };
layout(set = 0, binding = FOVEA_SLOT_OUT_SCORES, std430) writeonly buffer OutScores { float out_scores[]; };

// Row `row` of the slice against key j; `found` is false where the block table leads nowhere.
void store_score(Entry e, int first_key, Keys keys, uint row, int j, float value, bool found) {
    const int i = int(push.slice.first_row + row);
    if (row >= push.slice.rows || j >= int(push.slice.len_kv)) return;
    const bool inside = i < e.q_length && j >= keys.begin && j < keys.end;
    const float score = push.scale * value;
    if (inside)
        scores[score_row(e, row) + uint(j - first_key)] = found ? floatBitsToUint(score) : kMinusInfinity;
    if (has_flag(kFlagScores))
        out_scores[(push.slice.flags >> kResultElementShift & kResultMask) +
                   result_row(e, row) * push.slice.len_kv + uint(j)] =
            inside && found ? score : 0.0;
}

#ifdef FOVEA_TILE_SHARED
#include "tile_shared.glsl"

void compute_tile(Entry e, int first_key, Keys keys, uint first_row, int tile_key) {
    const uint t = gl_LocalInvocationIndex;
    const uint last_row = last_loaded_row(e);
    vec4 acc[kSharedThreadRows];
    for (uint i = 0u; i < kSharedThreadRows; ++i) acc[i] = vec4(0.0);
    for (uint d0 = 0u; d0 < push.dim; d0 += kSharedDepth) {
        if (d0 != 0u) barrier();
        for (uint f = t; f < kSharedRows * kSharedDepth / 4u; f += kSharedThreads) {
            const uint depth = f % (kSharedDepth / 4u) * 4u, at = f / (kSharedDepth / 4u);
            const uint q_row = query_row(push.q, e, min(first_row + at, last_row));
            tile_put_a(depth, at, q_depth4(q_row, d0 + depth, push.dim));
            const uint k_row = key_row(push.k, e, uint(clamp(tile_key + int(at), keys.begin, keys.end - 1)));
            tile_put_b(depth, at, k_depth4(k_row == kNoRow ? push.k.base : k_row, d0 + depth, push.dim));
        }
        barrier();
        tile_multiply(acc);
    }
    for (uint c = 0u; c < kThreadColumns; ++c) {
        const int j = tile_key + int(tile_thread_column() + c);
        const bool found = key_row(push.k, e, uint(clamp(j, keys.begin, keys.end - 1))) != kNoRow;
        for (uint i = 0u; i < kSharedThreadRows; ++i)
            store_score(e, first_key, keys, first_row + tile_thread_row() + i, j, acc[i][c], found);
    }
}

const uint kTileRows = kSharedRows;
const uint kTileKeys = kSharedColumns;
uint tile_key_of(uint c) { return tile_thread_column() + c; }
#else

const uint kTileRows = kRows;
const uint kTileKeys = kThreadColumns * gl_WorkGroupSize.x;
// Neighbouring threads hold neighbouring keys.
uint tile_key_of(uint c) { return gl_LocalInvocationIndex + c * gl_WorkGroupSize.x; }

void compute_tile(Entry e, int first_key, Keys keys, uint first_row, int tile_key) {
    uint k_row[kThreadColumns];
    bool found[kThreadColumns];
    for (uint c = 0u; c < kThreadColumns; ++c) {
        const int j = clamp(tile_key + int(tile_key_of(c)), keys.begin, keys.end - 1);
        const uint row = key_row(push.k, e, uint(j));
        found[c] = row != kNoRow;
        k_row[c] = found[c] ? row : push.k.base;
    }
    const uint last_row = last_loaded_row(e);
    uint q_row[kRows];
    vec4 acc[kRows];
    for (uint i = 0u; i < kRows; ++i) {
        q_row[i] = query_row(push.q, e, min(first_row + i, last_row));
        acc[i] = vec4(0.0);
    }
    const uint quads_end = push.dim & ~3u;
    for (uint d = 0u; d < quads_end; d += 4u) {
        vec4 k[kThreadColumns];
        for (uint c = 0u; c < kThreadColumns; ++c) k[c] = k_at4(k_row[c] + d);
        for (uint i = 0u; i < kRows; ++i) {
            const vec4 q = q_at4(q_row[i] + d);
            for (uint c = 0u; c < kThreadColumns; ++c)
                acc[i][c] = fma(q.w, k[c].w, fma(q.z, k[c].z, fma(q.y, k[c].y, fma(q.x, k[c].x, acc[i][c]))));
        }
    }
    for (uint d = quads_end; !kAligned && d < push.dim; ++d) {
        vec4 k;
        for (uint c = 0u; c < kThreadColumns; ++c) k[c] = k_at(k_row[c] + d);
        for (uint i = 0u; i < kRows; ++i) acc[i] = fma(vec4(q_at(q_row[i] + d)), k, acc[i]);
    }
    for (uint c = 0u; c < kThreadColumns; ++c) {
        for (uint i = 0u; i < kRows; ++i)
            store_score(e, first_key, keys, first_row + i, tile_key + int(tile_key_of(c)), acc[i][c],
                        found[c]);
    }
}
#endif

void main() {
    const Entry e = slice_entry(gl_WorkGroupID.z);
    const uint first_row = gl_WorkGroupID.y * kTileRows;
    const int i = int(push.slice.first_row + first_row), first_key = first_scored_key(e);
    const Keys keys = scored_keys(e, i, i + int(kTileRows));
    const int tile_key = first_key + int(gl_WorkGroupID.x * kTileKeys);
    if (tile_key < keys.end && tile_key + int(kTileKeys) > keys.begin) {
        compute_tile(e, first_key, keys, first_row, tile_key);
    } else if (has_flag(kFlagScores)) {
        for (uint f = gl_LocalInvocationIndex; f < kTileRows * kTileKeys; f += gl_WorkGroupSize.x)
            store_score(e, first_key, keys, first_row + f / kTileKeys, tile_key + int(f % kTileKeys), 0.0,
                        false);
    }
}
