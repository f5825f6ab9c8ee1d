// flash on the flexible matrices of VK_NV_cooperative_matrix2: a workgroup takes kRows rows, whose scores,
// weights and sums are one matrix each, shared by the workgroup or (kScope) owned by its single subgroup.
// Maxima and sums of rows are reductions of matrices, weights functions of their elements. Operands go
// through shared memory in float16; so do logits where bounds or more decide about them: a function of
// elements is copied for each element that a thread has, which masks are too long for. Needs Vulkan 1.3.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_EXT_shader_16bit_storage : require
#define FOVEA_NEEDS_16_BIT_STORAGE
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_THREADS) const uint kThreads = 8;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = 16;
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_COLUMN_QUADS) const uint kColumnQuads = 8;  // quads of the workgroup
layout(constant_id = FOVEA_SPEC_SCOPE) const uint kScope = kScopeSubgroup;
layout(constant_id = FOVEA_SPEC_KEYS) const uint kKeys = 32;
layout(constant_id = FOVEA_SPEC_DEPTH) const uint kDepth = 32;
layout(push_constant, std430) uniform Push { FlashPush push; };

#define FOVEA_GATHERS
#include "flash.glsl"
#include "partial.glsl"
#include "store.glsl"
#include "cache_tensor.glsl"

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_CACHE_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
FOVEA_CACHE_TENSOR(v, FOVEA_SLOT_V, kVType, kAligned)
FOVEA_OUTPUT_TENSOR(o, FOVEA_SLOT_O)

const uint kColumns = 4u * kColumnQuads;

shared uvec2 q_tile[FOVEA_MATRIX_Q_HALVES(kRows, kDepth) / 4u];
shared uvec2 kv_tile[FOVEA_MATRIX_KV_HALVES(kKeys, kDepth, kColumns) / 4u];
// Scores of a block; in the end totals, maxima and sums.
shared float score_tile[FOVEA_MATRIX_SCORE_WORDS(kRows, kKeys, kColumns)];
shared float row_totals[kRows], row_maxima[kRows];
shared uint has_poison;

#include "matrix_tiles.glsl"

const uint kScoreStride = (kKeys > kColumns ? kKeys : kColumns) + kMatrixPad;

#define FOVEA_SCORES coopmat<float, kScope, kRows, kKeys, gl_MatrixUseAccumulator>
#define FOVEA_SUMS coopmat<float, kScope, kRows, kColumns, gl_MatrixUseAccumulator>

float larger(const in float a, const in float b) { return max(a, b); }
float sum_of(const in float a, const in float b) { return a + b; }
float scaled(const in uint r, const in uint n, const in float score, const in float scale) {
    return scale * score;
}
float larger_of(const in uint r, const in uint n, const in float a, const in float b) { return max(a, b); }
float rescale_of(const in uint r, const in uint n, const in float before, const in float raised) {
    return floatBitsToUint(raised) == kMinusInfinity ? 1.0 : exp_of_negative(before - raised);
}
float weight_of(const in uint r, const in uint n, const in float logit, const in float maximum) {
    return floatBitsToUint(logit) == kMinusInfinity ? 0.0 : exp_of_negative(logit - maximum);
}

// Scores in shared memory become logits.
void mask_scores(Entry e, uint first_row, int j0) {
    [[dont_unroll]] for (uint f = gl_LocalInvocationIndex; f < kRows * kKeys / 4u; f += kThreads) {
        const uint r = f / (kKeys / 4u), n = f % (kKeys / 4u) * 4u, at = r * kScoreStride + n;
        const vec4 score =
            vec4(score_tile[at], score_tile[at + 1u], score_tile[at + 2u], score_tile[at + 3u]);
        const vec4 logit = masked_logits(e, row_at(e, first_row + r), j0 + int(n), score);
        for (uint c = 0u; c < 4u; ++c) score_tile[at + c] = logit[c];
    }
}

// Weights in shared memory that dropout takes become 0.
void drop_weights(Entry e, uint first_row, int j0) {
    [[dont_unroll]] for (uint f = gl_LocalInvocationIndex; f < kRows * kKeys / 4u; f += kThreads) {
        const uint r = f / (kKeys / 4u), n = f % (kKeys / 4u) * 4u, at = r * kScoreStride + n;
        const Row row = row_at(e, first_row + r);
        const bvec4 kept = row.exists ? kept_keys(row, j0 + int(n)) : bvec4(false);
        for (uint c = 0u; c < 4u; ++c)
            if (!kept[c]) score_tile[at + c] = 0.0;
    }
}

// Ends row r of the tile; `row_totals` becomes what its columns must be multiplied by.
void finish_tile_row(Entry e, uint first_row, uint split, uint r) {
    const Row row = row_at(e, first_row + r);
    if (!row.exists) return;
    RowSum sum = row.i < e.q_length ? RowSum(row_maxima[r], row_totals[r]) : empty_sum();
    if (is_split()) {
        row_totals[r] = 1.0;
        if (gl_WorkGroupID.y == 0u) store_partial(partial_at(e, split, first_row + r), sum, no_stats());
        return;
    }
    row_totals[r] = finish_row(sum, row, kGeneral && has_dropout() ? extra.keep_scale : 1.0);
    if (gl_WorkGroupID.y == 0u && has_flag(kFlagLse)) store_lse(row, sum);
}

void store_sums(Entry e, uint first_row, uint split, Keys keys) {
    const uint dim_v = push.dims >> 16;
    [[dont_unroll]] for (uint f = gl_LocalInvocationIndex; f < kRows * kColumns; f += kThreads) {
        const uint r = f / kColumns, c = f % kColumns, column = gl_WorkGroupID.y * kColumns + c;
        const Row row = row_at(e, first_row + r);
        if (!row.exists || column >= dim_v || (has_flag(kFlagPackedQ) && row.i >= e.q_length)) continue;
        float value = score_tile[r * kScoreStride + c];
        if (has_poison != 0u && row.i < e.q_length)
            value += poison_of(e, row, first_row + r, column, keys, row_maxima[r]);
        value = row_totals[r] == 0.0 ? 0.0 : value * row_totals[r];
        if (is_split())
            partial[partial_at(e, split, first_row + r) + kPartialWords + column] = value;
        else
            o_store_bits(query_row(push.o, e, row) + column, stored_bits(value));
    }
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
    FOVEA_SUMS sums = FOVEA_SUMS(0.0);
    FOVEA_SCORES maxima = FOVEA_SCORES(uintBitsToFloat(kMinusInfinity)), totals = FOVEA_SCORES(0.0);
    coopmat<float16_t, kScope, kRows, kDepth, gl_MatrixUseA> queries;
    if (t == 0u) has_poison = 0u;
    if (keys.begin < keys.end) load_queries(e, first_row);
    barrier();
    coopMatLoad(queries, q_tile, 0u, kDepthQuads, gl_CooperativeMatrixLayoutRowMajor);
    for (int j0 = keys.begin - keys.begin % int(kKeys); j0 < keys.end; j0 += int(kKeys)) {
        load_keys(e, keys, j0);
        barrier();
        coopmat<float16_t, kScope, kDepth, kKeys, gl_MatrixUseB> key_factors;
        coopMatLoad(key_factors, kv_tile, 0u, kDepthQuads, gl_CooperativeMatrixLayoutColumnMajor);
        FOVEA_SCORES scores = coopMatMulAdd(queries, key_factors, FOVEA_SCORES(0.0));
        coopMatPerElementNV(scores, scores, scaled, push.scale);
        const bool inside = j0 >= max(full.begin, keys.begin) && j0 + int(kKeys) <= min(full.end, keys.end);
        if (!inside || changes_logits()) {
            coopMatStore(scores, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            mask_scores(e, first_row, j0);
            barrier();
            coopMatLoad(scores, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
        }
        barrier();
        if (has_flag(kFlagOutput)) load_values(e, keys, j0);
        FOVEA_SCORES raised, rescales, weights, block_totals;
        coopMatReduceNV(raised, scores, gl_CooperativeMatrixReduceRowNV, larger);
        coopMatPerElementNV(raised, raised, larger_of, maxima);
        coopMatPerElementNV(rescales, maxima, rescale_of, raised);
        coopMatPerElementNV(weights, scores, weight_of, raised);
        maxima = raised;
        coopMatReduceNV(block_totals, weights, gl_CooperativeMatrixReduceRowNV, sum_of);
        totals = totals * rescales + block_totals;
        if (kGeneral && has_dropout()) {
            coopMatStore(weights, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            drop_weights(e, first_row, j0);
            barrier();
            coopMatLoad(weights, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
        }
        FOVEA_SUMS sum_rescales;
        coopMatReduceNV(sum_rescales, rescales, gl_CooperativeMatrixReduceRowNV, larger);
        barrier();
        coopmat<float16_t, kScope, kKeys, kColumns, gl_MatrixUseB> value_factors;
        coopMatLoad(value_factors, kv_tile, 0u, kKeyQuads, gl_CooperativeMatrixLayoutColumnMajor);
        sums = coopMatMulAdd(coopmat<float16_t, kScope, kRows, kKeys, gl_MatrixUseA>(weights), value_factors,
                             sums * sum_rescales);
        barrier();
    }
    coopMatStore(totals, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    for (uint r = t; r < kRows; r += kThreads) row_totals[r] = score_tile[r * kScoreStride];
    barrier();
    coopMatStore(maxima, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    for (uint r = t; r < kRows; r += kThreads) {
        row_maxima[r] = score_tile[r * kScoreStride];
        finish_tile_row(e, first_row, split, r);
    }
    barrier();
    if (!has_flag(kFlagOutput)) return;
    coopMatStore(sums, score_tile, 0u, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    store_sums(e, first_row, split, keys);
}
