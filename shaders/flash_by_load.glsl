// The blocks of flash where what all lanes need is loaded by every lane: elements of q, weights.
#ifndef FOVEA_FLASH_BY_LOAD_GLSL
#define FOVEA_FLASH_BY_LOAD_GLSL

// Scores, logits, weights of each thread's four keys. Sized by the tile in use: what shared memory a
// workgroup takes decides how many of them a core runs at a time.
#ifdef FOVEA_SUBGROUP
// Quads of each of a block's keys that the buffer holds before there are scores, if it has rows enough.
const uint kStagedQuads = 2u, kStagedRows = 4u * kStagedQuads;
const bool kStaged = kAligned && kRows >= kStagedRows && kThreads >= kStagedRows;
// A barrier of the subgroup at the end of a block costs less than a second buffer would. With keys in it a
// place more to a row spreads what eight lanes write to eight rows over the banks.
const uint kTurns = 1u;
shared vec4 weights[kTurns][kRows][kStaged ? kThreads + 1u : kThreads];
#else
// Two buffers, used alternately: a block writes one while slower threads still read the other.
const uint kTurns = 2u;
shared vec4 weights[kTurns][kRows][kThreads];
#endif

#ifdef FOVEA_SUBGROUP
#include "softmax_by_subgroup.glsl"
#define FOVEA_EACH_ROW  // rows are registers: their indices must be known
#else
#include "softmax_by_memory.glsl"
#define FOVEA_EACH_ROW [[dont_unroll]]
#endif

uint q_row[kRows];  // places of the tile's rows in q

void find_query_rows(Entry e, uint first_row) {
    for (uint i = 0u; i < kRows; ++i) q_row[i] = query_row_at(e, first_row, i);
}

// Adds the products of quad d of the rows of q with a quad of this thread's four keys.
void add_products(uint d, vec4 key[4], inout vec4 score[kRows]) {
    for (uint i = 0u; i < kRows; ++i) {
        const vec4 query = q_at4(q_row[i] + d);
        for (int c = 0; c < 4; ++c)
            score[i][c] =
                fma(query.w, key[c].w,
                    fma(query.z, key[c].z, fma(query.y, key[c].y, fma(query.x, key[c].x, score[i][c]))));
    }
}

// Where key j, clamped into `keys`, begins in k.
uint clamped_k_row(Entry e, Keys keys, int j) {
    const uint row = k_row(e, clamp(j, keys.begin, keys.end - 1));
    return row == kNoRow ? push.k.base : row;
}

#ifdef FOVEA_SUBGROUP
// A thread's four keys are four rows of k, so a load by all lanes would touch a line of the cache for each
// lane. Instead eight lanes that are neighbours load two quads of four keys, all the keys of one thread, and
// each thread finds its keys in the buffer of weights.
void add_staged_products(Entry e, Keys keys, int j0, inout vec4 score[kRows]) {
    const uint t = gl_LocalInvocationIndex, dim = push.dims & 0xffffu;
    const uint place = t % kStagedRows, key = place / kStagedQuads, quad = place % kStagedQuads;
    uint from[kStagedRows];  // quads
    for (uint n = 0u; n < kStagedRows; ++n) {
        const uint thread = n * (kThreads / kStagedRows) + t / kStagedRows;
        from[n] = clamped_k_row(e, keys, j0 + int(4u * thread + key)) >> 2;
    }
    const uint quads = dim >> 2;
    [[dont_unroll]] for (uint d = 0u; d < quads; d += kStagedQuads) {
        const uint at = min(d + quad, quads - 1u);
        vec4 loaded[kStagedRows];
        for (uint n = 0u; n < kStagedRows; ++n) loaded[n] = k_at4((from[n] + at) << 2);
        for (uint n = 0u; n < kStagedRows; ++n)
            weights[0][place][n * (kThreads / kStagedRows) + t / kStagedRows] = loaded[n];
        share_weights();
        for (uint q = 0u; q < kStagedQuads && d + q < quads; ++q) {
            vec4 own[4];
            for (uint c = 0u; c < 4u; ++c) own[c] = weights[0][c * kStagedQuads + q][t];
            add_products(4u * (d + q), own, score);
        }
        share_weights();
    }
}
#endif

// The same, with loads of only this thread's keys j .. j+3.
void add_direct_products(Entry e, Keys keys, int j, inout vec4 score[kRows]) {
    uint k_at0[4];
    for (int c = 0; c < 4; ++c) k_at0[c] = clamped_k_row(e, keys, j + c);
    const uint dim = push.dims & 0xffffu, quads_end = kAligned ? dim : 0u;
    for (uint d = 0u; d < quads_end; d += 4u) {
        vec4 key[4];
        for (int c = 0; c < 4; ++c) key[c] = k_at4(k_at0[c] + d);
        add_products(d, key, score);
    }
    for (uint d = quads_end; !kAligned && d < dim; ++d) {
        vec4 key;
        for (int c = 0; c < 4; ++c) key[c] = k_at(k_at0[c] + d);
        for (uint i = 0u; i < kRows; ++i) score[i] = fma(vec4(q_at(q_row[i] + d)), key, score[i]);
    }
}

// Scores of this thread's keys j .. j+3, clamped into `keys`, against every row.
void score_block(Entry e, Keys keys, int j, uint turn) {
    vec4 score[kRows];
    for (uint i = 0u; i < kRows; ++i) score[i] = vec4(0.0);
#ifdef FOVEA_SUBGROUP
    if (kStaged)
        add_staged_products(e, keys, j - int(4u * gl_LocalInvocationIndex), score);
    else
#endif
        add_direct_products(e, keys, j, score);
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
        if (kStats)
            add_stats(i, j, hidden, below, weight, maximum_of(i), total_of(i), rescale_of(i));
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

// Adds the block's weights times values to the sums of this thread's columns, of its part's rows.
void add_block(Entry e, Keys keys, int j0, uint turn, bool full, inout vec4 acc[kPartRows][kColumnQuads]) {
    const uint dim_v = push.dims >> 16, column0 = first_column(), row0 = first_part_row();
    const int end = min(keys.end - j0, int(4u * kThreads));
    for (int n = 0; kAligned && full && n < end; n += 4) {
        vec4 value[4][kColumnQuads];
        for (int u = 0; u < 4; ++u) {
            const uint row = v_row(e, j0 + n + u);
            for (uint c = 0u; c < kColumnQuads; ++c)
                value[u][c] = v_columns4(row, column0 + c * kPartThreads * 4u, dim_v);
        }
        for (uint i = 0u; i < kPartRows; ++i) {
            const vec4 w = weights[turn][row0 + i][n >> 2];
            for (int u = 0; u < 4; ++u)
                for (uint c = 0u; c < kColumnQuads; ++c) acc[i][c] = fma(vec4(w[u]), value[u][c], acc[i][c]);
        }
    }
    // A hidden key's value must not touch the sum, whatever it is: it is left out by selection.
    for (int n = kAligned && full ? end : max(keys.begin - j0, 0); n < end; ++n) {
        const uint found = v_row(e, j0 + n), row = found == kNoRow ? push.v.base : found;
        vec4 value[kColumnQuads];
        for (uint c = 0u; c < kColumnQuads; ++c)
            value[c] = v_columns4(row, column0 + c * kPartThreads * 4u, dim_v);
        for (uint i = 0u; i < kPartRows; ++i) {
            const float w = weights[turn][row0 + i][n >> 2][n & 3];
            const bool hidden = floatBitsToUint(w) == kHiddenWeight;
            for (uint c = 0u; c < kColumnQuads; ++c)
                acc[i][c] = fma(vec4(hidden ? 0.0 : w), mix(value[c], vec4(0.0), bvec4(hidden)), acc[i][c]);
        }
    }
}

#endif
