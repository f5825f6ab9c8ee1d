// Attention in one pass with an online softmax, without shared tiles: a workgroup takes kRows rows and walks
// over the keys that they see in blocks of four for each thread. Rows of the heads that share keys lie next
// to each other, so that they share loads too. Every lane works on every row: what is uniform stays uniform.
// With key splits it leaves partial sums to flash_combine.
//   FOVEA_SUBGROUP  the workgroup is one whole subgroup; else no subgroup operation is needed
//   and the macros of store.glsl
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef FOVEA_STORE_F16
#extension GL_EXT_shader_16bit_storage : require
#endif
#ifdef FOVEA_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kFlashMaxRows;
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_COLUMN_QUADS) const uint kColumnQuads = 1;
layout(constant_id = FOVEA_SPEC_GENERAL) const bool kGeneral = true;
layout(push_constant, std430) uniform Push { FlashPush push; };

#include "flash.glsl"
#include "finish.glsl"
#include "store.glsl"
#include "tensor.glsl"

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_INPUT_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
FOVEA_INPUT_TENSOR(v, FOVEA_SLOT_V, kVType, kAligned)
FOVEA_OUTPUT_TENSOR(o, FOVEA_SLOT_O)
layout(set = 0, binding = FOVEA_SLOT_PARTIAL, std430) writeonly buffer Partial { float partial[]; };

const uint kThreads = gl_WorkGroupSize.x;

// Scores, logits, weights of each thread's four keys. Two, by turns: a block writes one while slower threads
// still read the other.
shared vec4 weights[2][kFlashMaxRows][kFlashMaxThreads];

#ifdef FOVEA_SUBGROUP
#include "softmax_by_subgroup.glsl"
#define FOVEA_EACH_ROW  // rows are registers: their indices must be known
#else
#include "softmax_by_memory.glsl"
#define FOVEA_EACH_ROW [[dont_unroll]]
#endif

uint first_column() { return (gl_WorkGroupID.y * kColumnQuads * kThreads + gl_LocalInvocationIndex) * 4u; }

// Partial results of a row of a split: largest, total, then the sums of the columns.
uint partial_at(Entry e, uint split, uint r) {
    const uint heads = gl_NumWorkGroups.z / split_count();
    return partial_row(split, heads, e.head, r) * ((push.dims >> 16) + 2u);
}

// Where the rows of q lie; rows that do not exist are read from the last one that does.
void find_query_rows(Entry e, uint first_row, out uint q_row[kRows]) {
    const uint last = push.slice.rows * group_size() - 1u;
    for (uint i = 0u; i < kRows; ++i) {
        Row row = row_at(e, min(first_row + i, last));
        row.i = min(row.i, e.q_length - 1);
        row.query = uint(row.i) - push.slice.first_row;
        q_row[i] = query_row(push.q, e, row);
    }
}

// Scores of this thread's keys j .. j+3, clamped into `keys`, against every row.
void score_block(Entry e, Keys keys, uint q_row[kRows], int j, uint turn) {
    uint k_at0[4];
    for (int c = 0; c < 4; ++c) {
        const uint row = k_row(e, clamp(j + c, keys.begin, keys.end - 1));
        k_at0[c] = row == kNoRow ? push.k.base : row;
    }
    vec4 score[kRows];
    for (uint i = 0u; i < kRows; ++i) score[i] = vec4(0.0);
    const uint dim = push.dims & 0xffffu, quads_end = kAligned ? dim : 0u;
    for (uint d = 0u; d < quads_end; d += 4u) {
        vec4 key[4];
        for (int c = 0; c < 4; ++c) key[c] = k_at4(k_at0[c] + d);
        for (uint i = 0u; i < kRows; ++i) {
            const vec4 query = q_at4(q_row[i] + d);
            for (int c = 0; c < 4; ++c)
                score[i][c] =
                    fma(query.w, key[c].w,
                        fma(query.z, key[c].z, fma(query.y, key[c].y, fma(query.x, key[c].x, score[i][c]))));
        }
    }
    for (uint d = quads_end; !kAligned && d < dim; ++d) {
        vec4 key;
        for (int c = 0; c < 4; ++c) key[c] = k_at(k_at0[c] + d);
        for (uint i = 0u; i < kRows; ++i) score[i] = fma(vec4(q_at(q_row[i] + d)), key, score[i]);
    }
    for (uint i = 0u; i < kRows; ++i) weights[turn][i][gl_LocalInvocationIndex] = push.scale * score[i];
}

// Bias and masks, in place; this thread's largest logit of each row. `inside`: every row sees every key of
// the block, as far as bounds go.
void mask_block(Entry e, uint first_row, int j, uint turn, bool inside) {
    const uint t = gl_LocalInvocationIndex;
    if (!inside || changes_logits()) {
        [[dont_unroll]] for (uint i = 0u; i < kRows; ++i) weights[turn][i][t] =
            masked_logits(e, row_at(e, first_row + i), j, weights[turn][i][t]);
    }
    FOVEA_EACH_ROW for (uint i = 0u; i < kRows; ++i) {
        const vec4 logit = weights[turn][i][t];
        set_largest(i, max(max(logit.x, logit.y), max(logit.z, logit.w)));
    }
}

// Logits become weights relative to the maximum; hidden and dropped ones kHiddenWeight.
void weigh_block(Entry e, uint first_row, int j, uint turn) {
    const uint t = gl_LocalInvocationIndex;
    FOVEA_EACH_ROW for (uint i = 0u; i < kRows; ++i) {
        const uvec4 bits = floatBitsToUint(weights[turn][i][t]);
        const bvec4 hidden = equal(bits, uvec4(kMinusInfinity));
        const vec4 below = mix(uintBitsToFloat(bits) - maximum_of(i), vec4(0.0), hidden);
        const vec4 weight = mix(exp_of_negative(below), vec4(0.0), hidden);
        add_total(i, weight.x + weight.y + (weight.z + weight.w));
        weights[turn][i][t] = uintBitsToFloat(mix(floatBitsToUint(weight), uvec4(kHiddenWeight), hidden));
    }
    if (!kGeneral || !has_dropout()) return;
    [[dont_unroll]] for (uint i = 0u; i < kRows; ++i) {
        const Row row = row_at(e, first_row + i);
        if (!row.exists) continue;
        const uvec4 bits = floatBitsToUint(weights[turn][i][t]);
        weights[turn][i][t] = uintBitsToFloat(mix(uvec4(kHiddenWeight), bits, kept_keys(row, j)));
    }
}

// Adds the block's weights times values to the sums of this thread's columns.
void add_block(Entry e, Keys keys, int j0, uint turn, bool full, inout vec4 acc[kRows][kColumnQuads]) {
    const uint dim_v = push.dims >> 16, column0 = first_column();
    const int end = min(keys.end - j0, int(4u * kThreads));
    for (int n = 0; kAligned && full && n < end; n += 4) {
        vec4 value[4][kColumnQuads];
        for (int u = 0; u < 4; ++u) {
            const uint row = v_row(e, j0 + n + u);
            for (uint c = 0u; c < kColumnQuads; ++c)
                value[u][c] = v_columns4(row, column0 + c * kThreads * 4u, dim_v);
        }
        for (uint i = 0u; i < kRows; ++i) {
            const vec4 w = weights[turn][i][n >> 2];
            for (int u = 0; u < 4; ++u)
                for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] = fma(vec4(w[u]), value[u][c], acc[i][c]);
        }
    }
    // A hidden key's value must not touch the sum, whatever it is: it is left out by selection.
    for (int n = kAligned && full ? end : max(keys.begin - j0, 0); n < end; ++n) {
        const uint found = v_row(e, j0 + n), row = found == kNoRow ? push.v.base : found;
        vec4 value[kColumnQuads];
        for (uint c = 0u; c < kColumnQuads; ++c)
            value[c] = v_columns4(row, column0 + c * kThreads * 4u, dim_v);
        for (uint i = 0u; i < kRows; ++i) {
            const float w = weights[turn][i][n >> 2][n & 3];
            const bool hidden = floatBitsToUint(w) == kHiddenWeight;
            for (uint c = 0u; c < kColumnQuads; ++c)
                acc[i][c] = fma(vec4(hidden ? 0.0 : w), mix(value[c], vec4(0.0), bvec4(hidden)), acc[i][c]);
        }
    }
}

// One thread for each row: its sum over all threads. Of a split it goes to the partial results; else the row
// is finished, and `rescale` becomes what its columns must be multiplied by.
void finish_rows(Entry e, uint first_row, uint split) {
    const uint t = gl_LocalInvocationIndex;
    const Row row = row_at(e, first_row + t);
    RowSum sum = sum_of_row();
    if (t >= kRows || !row.exists) return;
    if (row.i >= e.q_length) sum = empty_sum();
    if (is_split()) {
        if (gl_WorkGroupID.y != 0u) return;
        const uint at = partial_at(e, split, first_row + t);
        partial[at] = sum.largest;
        partial[at + 1u] = sum.total;
        return;
    }
    rescale[t] = finish_row(sum, row, kGeneral && has_dropout() ? extra.keep_scale : 1.0);
    if (gl_WorkGroupID.y == 0u && has_flag(kFlagLse)) store_lse(row, sum);
}

void store_columns(Entry e, uint first_row, uint split, vec4 acc[kRows][kColumnQuads]) {
    const uint dim_v = push.dims >> 16;
    for (uint i = 0u; i < kRows; ++i) {
        const Row row = row_at(e, first_row + i);
        // Where entries are packed end to end, a row past the length belongs to another entry.
        if (!row.exists || (has_flag(kFlagPackedQ) && row.i >= e.q_length)) continue;
        const uint at = is_split() ? partial_at(e, split, first_row + i) + 2u : query_row(push.o, e, row);
        const float scale = is_split() ? 1.0 : rescale[i];
        for (uint n = 0u; n < kColumnQuads * 4u; ++n) {
            const uint column = first_column() + n / 4u * kThreads * 4u + n % 4u;
            const float value = scale == 0.0 ? 0.0 : acc[i][n / 4u][n % 4u] * scale;
            if (column >= dim_v) continue;
            if (is_split())
                partial[at + column] = value;
            else
                o_store_bits(at + column, stored_bits(value));
        }
    }
}

void main() {
    const uint t = gl_LocalInvocationIndex, split = gl_WorkGroupID.z % split_count();
    const Entry e = entry_of(0u, gl_WorkGroupID.z / split_count(), 0u);
    const uint first_row = gl_WorkGroupID.x * kRows;
    const int i0 = first_query(first_row), i1 = end_of_queries(first_row + kRows);
    Keys keys = visible_keys(e, i0, i1);
    const Keys full = full_keys(e, i0, i1);
    if (is_split()) {
        keys.begin = max(keys.begin, int(split * push.split_keys));
        keys.end = min(keys.end, int((split + 1u) * push.split_keys));
    }
    vec4 acc[kRows][kColumnQuads];
    for (uint i = 0u; i < kRows; ++i)
        for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] = vec4(0.0);
    begin_rows();
    uint q_row[kRows];
    find_query_rows(e, first_row, q_row);
    uint turn = 0u;
    // Blocks lie on one grid whatever the tile's rows see, so that no row's sums depend on its neighbours.
    const int block = int(4u * kThreads);
    for (int j0 = keys.begin - keys.begin % block; j0 < keys.end; j0 += block) {
        if (!enter_block(e, uint(j0 / block))) continue;
        const int j = j0 + int(4u * t);
        const bool inside = j0 >= max(full.begin, keys.begin) && j0 + block <= min(full.end, keys.end);
        score_block(e, keys, q_row, j, turn);
        mask_block(e, first_row, j, turn, inside);
        raise_maxima();
        for (uint i = 0u; i < kRows; ++i)
            for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] *= rescale_of(i);
        weigh_block(e, first_row, j, turn);
        share_weights();
        if (has_flag(kFlagOutput)) add_block(e, keys, j0, turn, inside && every_key_counts(), acc);
        turn ^= 1u;
    }
    finish_rows(e, first_row, split);
    share_weights();
    if (has_flag(kFlagOutput)) store_columns(e, first_row, split, acc);
}
