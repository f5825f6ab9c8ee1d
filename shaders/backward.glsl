// Shared by both passes of the gradients: a slice's rows of all tensors, delta, and the gradient of a pair.
// Everything except dq, dk and dv is only read; engine/reference/backward_loops.hpp has the same in plain
// loops.
#ifndef FOVEA_BACKWARD_GLSL
#define FOVEA_BACKWARD_GLSL

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_V_TYPE) const uint kVType = 0;
layout(constant_id = FOVEA_SPEC_O_TYPE) const uint kOType = 0;
layout(constant_id = FOVEA_SPEC_DO_TYPE) const uint kDoType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(push_constant, std430) uniform Push { BackwardPush push; };

#define FOVEA_GATHERS
#include "flash.glsl"
#include "tensor.glsl"

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_INPUT_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
FOVEA_INPUT_TENSOR(v, FOVEA_SLOT_V, kVType, kAligned)
FOVEA_INPUT_TENSOR(o, FOVEA_SLOT_O, kOType, kAligned)
FOVEA_INPUT_TENSOR(d_o, FOVEA_SLOT_DO, kDoType, kAligned)
FOVEA_WORDS(lse_bits, FOVEA_SLOT_LSE, kGatherLse, extra.at.lse)
FOVEA_WORDS(d_lse_bits, FOVEA_SLOT_DLSE, kGatherDLse, extra.at.d_lse)

const uint kThreads = gl_WorkGroupSize.x;

// Returns where o, its gradient and the results are stored: the push constants have no room for these views.
HeadView view_of(uint n) {
    const uint at = kMaskMapWord - kExtraWords + 3u * n;
    return HeadView(behind_extra[at], behind_extra[at + 1u], behind_extra[at + 2u]);
}

uint low_half(uint word) { return word & 0xffffu; }
uint high_half(uint word) { return word >> 16; }
uint dim_qk() { return low_half(push.dims); }
uint dim_v() { return high_half(push.dims); }

// Row `query` of query head `head` of the slice.
Row slice_row(uint head, uint query) {
    Row row;
    row.query = query;
    row.head = row.place = head;
    row.i = int(push.slice.first_row + query);
    row.exists = query < push.slice.rows;
    return row;
}
// Index of the row in lse.
uint flat_row(Row row) { return push.lse_base + row.head * push.slice.len_q + row.query; }
float lse_of(Row row) { return uintBitsToFloat(lse_bits(flat_row(row))); }

bool is_number(vec4 x) {
    const uvec4 bits = floatBitsToUint(x) & uvec4(0x7f800000u);
    return all(notEqual(bits, uvec4(0x7f800000u)));
}

// exp of the logarithm of a weight, which is at most 0 or slightly more.
vec4 exp_of_weight(vec4 x) { return exp_of_negative(mix(x, vec4(80.0), greaterThan(x, vec4(80.0)))); }

// Weights after dropout, gradients of masked logits and of scores of the pairs of one row with keys
// j .. j+3.
struct Pairs {
    vec4 weight, d_masked, d_score;
};

// `score`: scaled products of q and k; `value`: products of v and the gradient of o.
Pairs pairs_of(Entry e, Row row, int j, vec4 score, vec4 value, float row_lse, float delta) {
    const vec4 logit = masked_logits(e, row, j, score);
    const bool empty = floatBitsToUint(row_lse) == kMinusInfinity;
    vec4 weight = exp_of_weight(logit - row_lse);
    vec4 kept_value = value, factor = vec4(1.0);
    if (kGeneral && has_dropout()) {
        factor = mix(vec4(0.0), vec4(extra.keep_scale), kept_keys(row, j));
        kept_value = mix(value * extra.keep_scale, vec4(0.0), equal(factor, vec4(0.0)));
    }
    vec4 slope = vec4(1.0);
    if (kGeneral) slope = capped_slope(push.logit, score);
    Pairs pairs;
    // Selected, never multiplied: what a hidden key holds must not come back.
    for (int c = 0; c < 4; ++c) {
        const bool hidden = empty || floatBitsToUint(logit[c]) == kMinusInfinity;
        pairs.weight[c] = hidden || factor[c] == 0.0 ? 0.0 : weight[c] * factor[c];
        pairs.d_masked[c] = hidden ? 0.0 : weight[c] * (kept_value[c] - delta);
        pairs.d_score[c] = hidden ? 0.0 : pairs.d_masked[c] * slope[c];
    }
    return pairs;
}

// The places of a thread's four keys in k and v. Keys outside of `keys` are replaced by those at its ends.
struct FourKeys {
    uint k_at0[4], v_at0[4];
};

FourKeys four_keys(Entry e, Keys keys, int j) {
    FourKeys four;
    for (int c = 0; c < 4; ++c) {
        const int key = clamp(j + c, keys.begin, keys.end - 1);
        four.k_at0[c] = k_row(e, key);
        four.v_at0[c] = v_row(e, key);
    }
    return four;
}

// Element n of each of them.
vec4 k_of(FourKeys four, uint n) {
    return vec4(k_at(four.k_at0[0] + n), k_at(four.k_at0[1] + n), k_at(four.k_at0[2] + n),
                k_at(four.k_at0[3] + n));
}
vec4 v_of(FourKeys four, uint n) {
    return vec4(v_at(four.v_at0[0] + n), v_at(four.v_at0[1] + n), v_at(four.v_at0[2] + n),
                v_at(four.v_at0[3] + n));
}

// Returns the sum of a row's o times its gradient, less the gradient of its lse. A row of zeros may be fully
// masked except for its sink: no gradient may reach its inputs.
float delta_of(Row row, bool zero, float product) {
    const float sum = zero ? 0.0 : product;
    return (push.store & kStoreHasDLse) != 0u ? sum - uintBitsToFloat(d_lse_bits(flat_row(row))) : sum;
}

#endif
