// flash on cooperative matrices: factors in float16, sums in float32. A workgroup of whole subgroups takes
// kRows rows; blocks of keys and values go through shared memory, the sums stay in the subgroups' matrices.
//   macros of store.glsl
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef FOVEA_STORE_F16
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = 16;
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_COLUMN_QUADS) const uint kColumnTiles = 1;  // of a subgroup
layout(constant_id = FOVEA_SPEC_GENERAL) const bool kGeneral = true;
layout(constant_id = FOVEA_SPEC_MATRIX_M) const uint kM = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_N) const uint kN = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_K) const uint kK = 8;
layout(constant_id = FOVEA_SPEC_KEYS) const uint kKeys = 32;
layout(constant_id = FOVEA_SPEC_DEPTH) const uint kDepth = 32;
layout(constant_id = FOVEA_SPEC_SUBGROUPS) const uint kSubgroups = 4;
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
const uint kRowThreads = kThreads / kRows;
const uint kColumns = kColumnTiles * kSubgroups * kN;
const uint kRowTiles = kRows / kM;
const uint kDepthStride = kDepth + kMatrixPad, kColumnStride = kColumns + kMatrixPad;
const uint kWeightStride = kKeys + kMatrixPad;
const uint kWide = kKeys > kColumns ? kKeys : kColumns, kScoreStride = kWide + kMatrixPad;

shared float16_t q_tile[FOVEA_MATRIX_Q_HALVES(kRows, kDepth)];
shared float16_t kv_tile[FOVEA_MATRIX_KV_HALVES(kKeys, kDepth, kColumns)];
shared float16_t weight_tile[FOVEA_MATRIX_WEIGHT_HALVES(kRows, kKeys)];
// Scores of a block; in the end the sums.
shared float score_tile[FOVEA_MATRIX_SCORE_WORDS(kRows, kKeys, kColumns)];
// What each row's sums are multiplied by, once for each column of a matrix.
shared float scale_tile[FOVEA_MATRIX_SCALE_WORDS(kRows, kN)];
shared float by_thread[FOVEA_MATRIX_ROW_WORDS(kThreads)];
shared uint has_poison;

#include "matrix_tiles.glsl"

void multiply_scores() {
    for (uint tile = gl_SubgroupID; tile < kRowTiles * (kKeys / kN); tile += kSubgroups) {
        const uint r = tile % kRowTiles * kM, n = tile / kRowTiles * kN;
        coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sum =
            coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
        for (uint d = 0u; d < kDepth; d += kK) {
            coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a;
            coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
            coopMatLoad(a, q_tile, r * kDepthStride + d, kDepthStride, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b, kv_tile, n * kDepthStride + d, kDepthStride,
                        gl_CooperativeMatrixLayoutColumnMajor);
            sum = coopMatMulAdd(a, b, sum);
        }
        coopMatStore(sum, score_tile, r * kScoreStride + n, kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    }
}

// This thread's share of its row: scores become logits; their largest.
float mask_scores(Entry e, Row row, int j0) {
    const uint r = gl_LocalInvocationIndex / kRowThreads;
    float largest = uintBitsToFloat(kMinusInfinity);
    for (uint n = gl_LocalInvocationIndex % kRowThreads * 4u; n < kKeys; n += kRowThreads * 4u) {
        const uint at = r * kScoreStride + n;
        const vec4 score =
            vec4(score_tile[at], score_tile[at + 1u], score_tile[at + 2u], score_tile[at + 3u]);
        const vec4 logit = masked_logits(e, row, j0 + int(n), push.scale * score);
        for (uint c = 0u; c < 4u; ++c) score_tile[at + c] = logit[c];
        largest = max(largest, max(max(logit.x, logit.y), max(logit.z, logit.w)));
    }
    return largest;
}

// Logits become weights relative to `maximum`; the sum of this thread's.
float weigh_scores(Row row, int j0, float maximum) {
    const uint r = gl_LocalInvocationIndex / kRowThreads;
    float total = 0.0;
    for (uint n = gl_LocalInvocationIndex % kRowThreads * 4u; n < kKeys; n += kRowThreads * 4u) {
        const uint at = r * kScoreStride + n;
        const vec4 logit =
            vec4(score_tile[at], score_tile[at + 1u], score_tile[at + 2u], score_tile[at + 3u]);
        const bvec4 hidden = equal(floatBitsToUint(logit), uvec4(kMinusInfinity));
        vec4 weight = mix(exp_of_negative(mix(logit - maximum, vec4(0.0), hidden)), vec4(0.0), hidden);
        total += weight.x + weight.y + (weight.z + weight.w);
        if (kGeneral && has_dropout() && row.exists)
            weight = mix(vec4(0.0), weight, kept_keys(row, j0 + int(n)));
        for (uint c = 0u; c < 4u; ++c) weight_tile[r * kWeightStride + n + c] = float16_t(weight[c]);
    }
    return total;
}

void main() {
    const uint t = gl_LocalInvocationIndex, r = t / kRowThreads, split = gl_WorkGroupID.z % split_count();
    const Entry e = entry_of(0u, gl_WorkGroupID.z / split_count(), 0u);
    const uint first_row = gl_WorkGroupID.x * kRows, dim_v = push.dims >> 16;
    const Row row = row_at(e, first_row + r);
    Keys keys = visible_keys(e, first_query(first_row), end_of_queries(first_row + kRows));
    if (is_split()) {
        keys.begin = max(keys.begin, int(split * push.split_keys));
        keys.end = min(keys.end, int((split + 1u) * push.split_keys));
    }
    coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sums[kRowTiles * kColumnTiles];
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) sums[n] =
        coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
    RowSum sum = empty_sum();  // of this thread's row; `total` of this thread's keys alone
    if (t == 0u) has_poison = 0u;
    if (keys.begin < keys.end) load_queries(e, first_row);
    for (int j0 = keys.begin - keys.begin % int(kKeys); j0 < keys.end; j0 += int(kKeys)) {
        load_keys(e, keys, j0);
        barrier();
        multiply_scores();
        barrier();
        by_thread[t] = mask_scores(e, row, j0);
        barrier();
        float raised = sum.largest;
        for (uint n = 0u; n < kRowThreads; ++n) raised = max(raised, by_thread[r * kRowThreads + n]);
        const bool none = floatBitsToUint(raised) == kMinusInfinity;
        const float rescale = none ? 1.0 : exp_of_negative(sum.largest - raised);
        sum = RowSum(raised, fma(sum.total, rescale, weigh_scores(row, j0, raised)));
        for (uint n = t % kRowThreads; n < kN; n += kRowThreads) scale_tile[r * kN + n] = rescale;
        if (has_flag(kFlagOutput)) load_values(e, keys, j0);
        barrier();
        [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) {
            const uint tile_row = n / kColumnTiles * kM;
            const uint column = (gl_SubgroupID * kColumnTiles + n % kColumnTiles) * kN;
            coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> scale;
            coopMatLoad(scale, scale_tile, tile_row * kN, kN, gl_CooperativeMatrixLayoutRowMajor);
            sums[n] = sums[n] * scale;
            for (uint j = 0u; j < kKeys; j += kK) {
                coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a;
                coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
                coopMatLoad(a, weight_tile, tile_row * kWeightStride + j, kWeightStride,
                            gl_CooperativeMatrixLayoutRowMajor);
                coopMatLoad(b, kv_tile, j * kColumnStride + column, kColumnStride,
                            gl_CooperativeMatrixLayoutRowMajor);
                sums[n] = coopMatMulAdd(a, b, sums[n]);
            }
        }
        barrier();
    }
    barrier();
    by_thread[t] = sum.total;
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) coopMatStore(
        sums[n], score_tile,
        n / kColumnTiles * kM * kScoreStride + (gl_SubgroupID * kColumnTiles + n % kColumnTiles) * kN,
        kScoreStride, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    if (!row.exists) return;
    sum.total = 0.0;
    for (uint n = 0u; n < kRowThreads; ++n) sum.total += by_thread[r * kRowThreads + n];
    const float largest = sum.largest;
    if (row.i >= e.q_length) sum = empty_sum();
    const uint head_of_rows = partial_row(split, gl_NumWorkGroups.z / split_count(), e.head, first_row + r);
    const bool first = t % kRowThreads == 0u && gl_WorkGroupID.y == 0u;
    float scale = 1.0;
    if (is_split()) {
        if (first) partial[head_of_rows * (dim_v + 2u)] = sum.largest;
        if (first) partial[head_of_rows * (dim_v + 2u) + 1u] = sum.total;
    } else {
        scale = finish_row(sum, row, kGeneral && has_dropout() ? extra.keep_scale : 1.0);
        if (first && has_flag(kFlagLse)) store_lse(row, sum);
    }
    if (!has_flag(kFlagOutput) || (has_flag(kFlagPackedQ) && row.i >= e.q_length)) return;
    const uint at = is_split() ? head_of_rows * (dim_v + 2u) + 2u : query_row(push.o, e, row);
    for (uint c = t % kRowThreads; c < kColumns; c += kRowThreads) {
        const uint column = gl_WorkGroupID.y * kColumns + c;
        if (column >= dim_v) return;
        float value = score_tile[r * kScoreStride + c];
        if (has_poison != 0u && row.i < e.q_length)
            value += poison_of(e, row, first_row + r, column, keys, largest);
        value = scale == 0.0 ? 0.0 : value * scale;
        if (is_split())
            partial[at + column] = value;
        else
            o_store_bits(at + column, stored_bits(value));
    }
}
