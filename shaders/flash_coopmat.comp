// flash on cooperative matrices: operands in float16 or bfloat16, sums in float32. A workgroup of whole
// subgroups takes kRows rows; blocks of keys and values go through shared memory, the sums stay in the
// subgroups' matrices.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_16bit_storage : require
#define FOVEA_NEEDS_16_BIT_STORAGE
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = 16;
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_COLUMN_QUADS) const uint kColumnTiles = 1;  // tiles of a subgroup
layout(constant_id = FOVEA_SPEC_MATRIX_M) const uint kM = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_N) const uint kN = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_K) const uint kK = 8;
layout(constant_id = FOVEA_SPEC_KEYS) const uint kKeys = 32;
layout(constant_id = FOVEA_SPEC_DEPTH) const uint kDepth = 32;
layout(constant_id = FOVEA_SPEC_SUBGROUPS) const uint kSubgroups = 4;
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

const uint kThreads = gl_WorkGroupSize.x;
const uint kLanes = kThreads / kSubgroups, kRowThreads = kThreads / kRows;
const uint kColumns = kColumnTiles * kSubgroups * kN;
const uint kRowTiles = kRows / kM;
const uint kWide = kKeys > kColumns ? kKeys : kColumns, kScoreQuads = (kWide + kMatrixPad) / 4u;
// Scores of a row that each of its threads holds, in fours.
const uint kRowQuads = (kKeys / 4u + kRowThreads - 1u) / kRowThreads;

// Elements of four: a thread writes and reads them at once, and matrices are loaded from them as from single
// ones.
shared uvec2 q_tile[FOVEA_MATRIX_Q_HALVES(kRows, kDepth) / 4u];
shared uvec2 kv_tile[FOVEA_MATRIX_KV_HALVES(kKeys, kDepth, kColumns) / 4u];
shared uvec2 weight_tile[FOVEA_MATRIX_WEIGHT_HALVES(kRows, kKeys) / 4u];
// Scores of a block; in the end the sums.
shared vec4 score_tile[FOVEA_MATRIX_SCORE_WORDS(kRows, kKeys, kColumns) / 4u];
// The multiplier of each row's sums, once for each column of a matrix.
shared float scale_tile[FOVEA_MATRIX_SCALE_WORDS(kRows, kN)];
shared uint has_poison;

#include "matrix_tiles.glsl"

#include "matrix_products.glsl"

// This thread's place among those of its row, which are neighbours in a subgroup; and over all of them.
uint thread_of_row() { return gl_SubgroupInvocationID % kRowThreads; }
float largest_of_row(float x) {
    [[unroll]] for (uint step = 1u; step < kRowThreads; step *= 2u) x = max(x, subgroupShuffleXor(x, step));
    return x;
}
float sum_of_row(float x) {
    [[unroll]] for (uint step = 1u; step < kRowThreads; step *= 2u) x += subgroupShuffleXor(x, step);
    return x;
}
RowStats stats_of_row(RowStats stats) {
    stats.moment = sum_of_row(stats.moment);
    [[unroll]] for (uint step = 1u; step < kRowThreads; step *= 2u) {
        stats.argmax = min(stats.argmax, subgroupShuffleXor(stats.argmax, step));
        stats.count += subgroupShuffleXor(stats.count, step);
    }
    return stats;
}

const float kLog2E = 1.44269504, kLn2 = 0.69314718;

// Scores of a block become weights relative to the largest logit of their row so far; its sums follow.
// Weights are powers of two, which the hardware computes: their error, about 2^-16 at 2^-126, is far below
// that of float16 weights. Logits count powers of two already, but where a bias may be near the end of
// float32: there only their differences are scaled, which cannot overflow to the -inf of a hidden key.
float unit_of_logits() { return kGeneral ? 1.0 : kLog2E; }
float power(float difference) { return exp2(kGeneral ? kLog2E * difference : difference); }
vec4 power(vec4 difference) { return exp2(kGeneral ? kLog2E * difference : difference); }
void weigh_scores(Entry e, Row row, uint r, int j0, const bool inside, inout RowSum sum,
                  inout RowStats stats) {
    const uint first = thread_of_row();
    vec4 logit[kRowQuads];
    [[unroll]] for (uint i = 0u; i < kRowQuads; ++i) {
        const uint n = i * kRowThreads + first;
        logit[i] = vec4(uintBitsToFloat(kMinusInfinity));
        if (kKeys / 4u % kRowThreads != 0u && n >= kKeys / 4u) break;
        logit[i] = score_tile[r * kScoreQuads + n];
    }
    if (!inside || changes_logits()) {
        [[unroll]] for (uint i = 0u; i < kRowQuads; ++i) {
            if (kKeys / 4u % kRowThreads != 0u && i * kRowThreads + first >= kKeys / 4u) break;
            logit[i] = unit_of_logits() *
                       masked_logits(e, row, j0 + int(4u * (i * kRowThreads + first)), push.scale * logit[i]);
        }
    } else {
        [[unroll]] for (uint i = 0u; i < kRowQuads; ++i) logit[i] *= unit_of_logits() * push.scale;
    }
    float largest = uintBitsToFloat(kMinusInfinity);
    [[unroll]] for (uint i = 0u; i < kRowQuads; ++i) largest =
        max(largest, max(max(logit[i].x, logit[i].y), max(logit[i].z, logit[i].w)));
    const float raised = max(sum.largest, largest_of_row(largest));
    // Where nothing is visible yet, every weight is power(-inf - 0).
    const bool none = floatBitsToUint(raised) == kMinusInfinity;
    const float base = none ? 0.0 : raised, rescale = none ? 1.0 : power(sum.largest - raised);
    float total = 0.0;
    [[unroll]] for (uint i = 0u; i < kRowQuads; ++i) {
        const uint n = i * kRowThreads + first;
        if (kKeys / 4u % kRowThreads != 0u && n >= kKeys / 4u) break;
        vec4 weight = power(logit[i] - base);
        if (kStats) {
            const bvec4 hidden = equal(floatBitsToUint(logit[i]), uvec4(kMinusInfinity));
            const vec4 below = mix(logit[i] - base, vec4(0.0), hidden);
            // The first of them moves the sums along to this block's maximum.
            add_keys(stats, j0 + int(4u * n), hidden, below, weight, i == 0u ? sum.largest : raised, raised,
                     sum.total, rescale);
        }
        total += weight.x + weight.y + (weight.z + weight.w);
        if (kGeneral && has_dropout() && row.exists)
            weight = mix(vec4(0.0), weight, kept_keys(row, j0 + int(4u * n)));
        weight_tile[r * kKeyQuads + n] = small_factors_of(weight);
    }
    sum = RowSum(raised, fma(sum.total, rescale, total));
    for (uint n = first; n < kN; n += kRowThreads) scale_tile[r * kN + n] = rescale;
}

// One block of keys. `inside`: every row sees all of it, as far as bounds go. `inner`: the same, of a call
// without pages or dropout; callers write it out, so that no code for the other case is made.
void add_block(Entry e, Row row, uint r, Keys keys, int j0, const bool inner, const bool inside,
               inout RowSum sum, inout RowStats stats) {
    if (inner)
        load_inner_keys(e, keys, j0);
    else
        load_keys(e, keys, j0);
    barrier();
    multiply_scores();
    barrier();
    weigh_scores(e, row, r, j0, inside, sum, stats);
    if (has_flag(kFlagOutput)) {
        if (inner)
            load_inner_values(e, keys, j0);
        else
            load_values(e, keys, j0);
    }
    barrier();
    multiply_values(gl_SubgroupID * kColumnTiles * kN);
    barrier();
}

void main() {
    // By subgroups, whatever order the driver numbers the workgroup's threads in.
    const uint t = gl_SubgroupID * kLanes + gl_SubgroupInvocationID, r = t / kRowThreads;
    const Place place = place_of_workgroup();
    const Entry e = place.e;
    const uint split = place.split;
    const uint first_row = gl_WorkGroupID.x * kRows, dim_v = push.dims >> 16;
    const int i0 = first_query(first_row), i1 = end_of_queries(first_row + kRows);
    const Row row = row_at(e, first_row + r);
    Keys keys = visible_keys(e, i0, i1);
    const Keys full = full_keys(e, i0, i1);
    if (is_split()) {
        keys.begin = max(keys.begin, int(split * push.split_keys));
        keys.end = min(keys.end, int((split + 1u) * push.split_keys));
    }
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) sums[n] = FOVEA_SUM_MATRIX(0.0);
    const uint first_column = gl_SubgroupID * kColumnTiles * kN;  // first column of this subgroup's sums
    RowSum sum = empty_sum();  // sums of this thread's row; `total` covers only this thread's keys
    RowStats stats = no_stats();  // statistics of the same keys
    if (t == 0u) has_poison = 0u;
    if (keys.begin < keys.end) load_queries(e, first_row);
    const int inner_begin = max(full.begin, keys.begin), inner_end = min(full.end, keys.end) - int(kKeys);
    for (int j0 = keys.begin - keys.begin % int(kKeys); j0 < keys.end; j0 += int(kKeys)) {
        // Inner blocks are nearly all of the work of a long call: they have a loop without the code for
        // bounds.
        for (; !kGeneral && j0 >= inner_begin && j0 <= inner_end; j0 += int(kKeys))
            add_block(e, row, r, keys, j0, true, true, sum, stats);
        if (j0 >= keys.end) break;
        add_block(e, row, r, keys, j0, false, kGeneral && j0 >= inner_begin && j0 <= inner_end, sum, stats);
    }
    if (!kGeneral) sum.largest *= kLn2, stats.moment *= kLn2;
    barrier();
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n)
        coopMatStore(sums[n], score_tile,
                     n / kColumnTiles * kM * kScoreQuads + (first_column + n % kColumnTiles * kN) / 4u,
                     kScoreQuads, gl_CooperativeMatrixLayoutRowMajor);
    // Before any thread leaves: it needs all of the row's.
    sum.total = sum_of_row(sum.total);
    if (kStats) stats = stats_of_row(stats);
    barrier();
    if (!row.exists) return;
    const float largest = sum.largest;
    if (row.i >= e.q_length) sum = empty_sum();
    const bool first = thread_of_row() == 0u && gl_WorkGroupID.y == 0u;
    float scale = 1.0;
    if (is_split()) {
        if (first) store_partial(partial_at(e, split, first_row + r), sum, stats);
    } else {
        const RowSum keys_sum = sum;
        scale = finish_row(sum, row, kGeneral && has_dropout() ? extra.keep_scale : 1.0);
        if (first && has_flag(kFlagLse)) store_lse(row, sum);
        if (first && kStats) store_stats(row, keys_sum, sum, stats);
    }
    if (!has_flag(kFlagOutput) || (has_flag(kFlagPackedQ) && row.i >= e.q_length)) return;
    const uint at =
        is_split() ? partial_at(e, split, first_row + r) + kPartialWords : query_row(push.o, e, row);
    for (uint c = thread_of_row(); c < kColumns; c += kRowThreads) {
        const uint column = gl_WorkGroupID.y * kColumns + c;
        if (column >= dim_v) return;
        float value = score_tile[r * kScoreQuads + c / 4u][c % 4u];
        if (has_poison != 0u && row.i < e.q_length)
            value += poison_of(e, row, first_row + r, column, keys, largest);
        value = scale == 0.0 ? 0.0 : value * scale;
        if (is_split())
            partial[at + column] = value;
        else
            o_store_bits(at + column, stored_bits(value));
    }
}
