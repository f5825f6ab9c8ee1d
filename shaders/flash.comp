// Attention in one pass with an online softmax (Milakov & Gimelshein 2018; FlashAttention: Dao et al. 2022,
// with the order of loops of FlashAttention-2: Dao 2023), without shared tiles: a workgroup takes kRows rows
// and walks over the keys that they see in blocks of four for each thread. Rows of the heads that share keys
// are adjacent, so that they share loads too. Every lane works on every row: what is uniform stays uniform.
// With key splits it leaves partial sums to flash_combine.
//   FOVEA_SUBGROUP  the workgroup is one whole subgroup; else no subgroup operation is needed
//   FOVEA_SHUFFLE   with it: what all lanes need comes by shuffles, see flash_by_shuffle.glsl
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#ifdef FOVEA_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#endif
#ifdef FOVEA_SHUFFLE
#extension GL_KHR_shader_subgroup_shuffle : require
#elif defined(FOVEA_SUBGROUP)
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
#ifdef FOVEA_SHUFFLE
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kFlashShuffleRows;
#else
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kFlashMaxRows;
#endif
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_COLUMN_QUADS) const uint kColumnQuads = 1;
layout(constant_id = FOVEA_SPEC_PARTS) const uint kParts = 1;
layout(push_constant, std430) uniform Push { FlashPush push; };

#define FOVEA_GATHERS
#include "flash.glsl"
#include "partial.glsl"
#include "store.glsl"
#include "tensor.glsl"
// Only the form that every device has reads compressed caches: the others' code would grow by half.
#ifdef FOVEA_SUBGROUP
#define FOVEA_CACHE_TENSOR FOVEA_INPUT_TENSOR
#else
#include "cache_tensor.glsl"
#endif

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_CACHE_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
FOVEA_CACHE_TENSOR(v, FOVEA_SLOT_V, kVType, kAligned)
FOVEA_OUTPUT_TENSOR(o, FOVEA_SLOT_O)

const uint kThreads = gl_WorkGroupSize.x;

// Scores are shared out by keys. Sums are shared out by columns; where there are fewer of them than the
// threads could hold, the threads form parts, each with all columns of a share of the rows.
#ifdef FOVEA_SHUFFLE
const uint kPartThreads = kThreads, kPartRows = kRows;
#else
const uint kPartThreads = kThreads / kParts, kPartRows = kRows / kParts;
#endif
uint part() { return gl_LocalInvocationIndex / kPartThreads; }
uint first_part_row() { return part() * kPartRows; }

uint first_column() {
    return (gl_WorkGroupID.y * kColumnQuads * kPartThreads + gl_LocalInvocationIndex % kPartThreads) * 4u;
}

// Returns the place of row i of the tile in q; a row that does not exist is replaced by the last one that
// does.
uint query_row_at(Entry e, uint first_row, uint i) {
    const uint last = push.slice.rows * group_size() - 1u;
    Row row = row_at(e, min(first_row + i, last));
    row.i = min(row.i, e.q_length - 1);
    row.query = uint(row.i) - push.slice.first_row;
    return query_row(push.q, e, row);
}

#include "flash_stats.glsl"
#ifdef FOVEA_SHUFFLE
#include "flash_by_shuffle.glsl"
#else
#include "flash_by_load.glsl"
#endif

// Columns n .. n+3 of row r of the tile, from their sums.
void store_columns4(Entry e, uint first_row, uint split, uint r, uint n, vec4 sums) {
    const Row row = row_at(e, first_row + r);
    // Where entries are packed end to end, a row past the length belongs to another entry.
    if (!row.exists || (has_flag(kFlagPackedQ) && row.i >= e.q_length)) return;
    const uint at =
        is_split() ? partial_at(e, split, first_row + r) + kPartialWords : query_row(push.o, e, row);
    const float scale = is_split() ? 1.0 : rescale[r];
    for (uint c = 0u; c < 4u; ++c) {
        const float value = scale == 0.0 ? 0.0 : sums[c] * scale;
        if (n + c >= push.dims >> 16) continue;
        if (is_split())
            partial[at + n + c] = value;
        else
            o_store_bits(at + n + c, stored_bits(value));
    }
}

// Row r of the tile. Of a split its sum goes to the partial results; else the row is finished, and `rescale`
// becomes what its columns must be multiplied by.
void finish(Entry e, uint first_row, uint split, uint r) {
    const Row row = row_at(e, first_row + r);
    if (!row.exists) return;
    RowSum sum = sum_of_row(r);
    RowStats stats = no_stats();
    if (kStats) stats = stats_of_row(r);
    if (row.i >= e.q_length) sum = empty_sum();
    if (is_split()) {
        if (gl_WorkGroupID.y == 0u) store_partial(partial_at(e, split, first_row + r), sum, stats);
        return;
    }
    const RowSum keys = sum;
    rescale[r] = finish_row(sum, row, kGeneral && has_dropout() ? extra.keep_scale : 1.0);
    if (gl_WorkGroupID.y == 0u && has_flag(kFlagLse)) store_lse(row, sum);
    if (kStats && gl_WorkGroupID.y == 0u) store_stats(row, keys, sum, stats);
}

void main() {
    const Place place = place_of_workgroup();
    const Entry e = place.e;
    const uint t = gl_LocalInvocationIndex, split = place.split;
    const uint first_row = gl_WorkGroupID.x * kRows;
    const int i0 = first_query(first_row), i1 = end_of_queries(first_row + kRows);
    Keys keys = visible_keys(e, i0, i1);
    const Keys full = full_keys(e, i0, i1);
    if (is_split()) {
        keys.begin = max(keys.begin, int(split * push.split_keys));
        keys.end = min(keys.end, int((split + 1u) * push.split_keys));
    }
    vec4 acc[kPartRows][kColumnQuads];
    for (uint i = 0u; i < kPartRows; ++i)
        for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] = vec4(0.0);
    begin_rows();
    if (kStats) begin_stats();
    find_query_rows(e, first_row);
    uint turn = 0u;
    // Blocks are on one grid for all tiles, so that no row's sums depend on its neighbors.
    const int block = int(4u * kThreads);
    for (int j0 = keys.begin - keys.begin % block; j0 < keys.end; j0 += block) {
        if (!enter_block(e, uint(j0 / block))) continue;
        const int j = j0 + int(4u * t);
        const bool inside = j0 >= max(full.begin, keys.begin) && j0 + block <= min(full.end, keys.end);
        score_block(e, keys, j, turn);
        mask_block(e, first_row, j, turn, inside);
        raise_maxima();
        for (uint i = 0u; i < kPartRows; ++i)
            for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] *= rescale_of_part(i);
        weigh_block(e, first_row, j, turn);
        share_weights();
        if (has_flag(kFlagOutput)) add_block(e, keys, j0, turn, inside && every_key_counts(), acc);
        if (kTurns == 1u)
            share_weights();
        else
            turn ^= 1u;
    }
    share_sums();
    [[dont_unroll]] for (uint r = t; r < kRows; r += kThreads) finish(e, first_row, split, r);
    share_weights();
    if (!has_flag(kFlagOutput)) return;
#ifdef FOVEA_SHUFFLE
    // One piece of code for all rows: unrolled it would be most of the kernel.
    [[unroll]] for (uint c = 0u; c < kColumnQuads; ++c) {
        [[unroll]] for (uint i = 0u; i < kRows; ++i) share_row(0u, i, acc[i][c]);
        [[dont_unroll]] for (uint i = 0u; i < kRows; ++i)
            store_columns4(e, first_row, split, i, first_column() + c * kThreads * 4u, shared_weights(0u, i));
    }
#else
    for (uint i = 0u; i < kPartRows; ++i)
        for (uint c = 0u; c < kColumnQuads; ++c)
            store_columns4(e, first_row, split, first_part_row() + i, first_column() + c * kPartThreads * 4u,
                           acc[i][c]);
#endif
}
