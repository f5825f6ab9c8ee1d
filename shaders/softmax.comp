// Staged attention, second stage: turns the workspace's raw scores into weights, row by row, in place.
// Applies softcap, ALiBi, bias and masks. It leaves exp(masked - max) and, separately, the multiplier of the
// row's weighted sum (1 / sum, and 1 / (1 - p) with dropout). kRowThreads threads share a row of any length.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_ROW_THREADS) const uint kRowThreads = 32;  // a power of two
layout(push_constant, std430) uniform Push { SoftmaxPush push; };

#define FOVEA_GATHERS
#include "slice.glsl"
#include "logit.glsl"

layout(set = 0, binding = FOVEA_SLOT_SCORES, std430) buffer Scores { uvec4 score_quads[]; };
layout(set = 0, binding = FOVEA_SLOT_ROW_SCALE, std430) writeonly buffer RowScale { float row_scale[]; };
FOVEA_SINKS
layout(set = 0, binding = FOVEA_SLOT_LSE, std430) writeonly buffer Lse { uint lse_bits[]; };
layout(set = 0, binding = FOVEA_SLOT_ROW_STATS, std430) writeonly buffer RowStats { uvec4 row_stats[]; };
layout(set = 0, binding = FOVEA_SLOT_CAPPED, std430) writeonly buffer Capped { float capped[]; };
layout(set = 0, binding = FOVEA_SLOT_MASKED, std430) writeonly buffer Masked { uint masked[]; };
layout(set = 0, binding = FOVEA_SLOT_WEIGHTS, std430) writeonly buffer Weights { float weights[]; };

const uint kNoKey = 0xffffffffu;

shared float shared_max[kSoftmaxMaxThreads];
shared uint shared_argmax[kSoftmaxMaxThreads];
shared uint shared_count[kSoftmaxMaxThreads];
shared vec2 shared_sums[kSoftmaxMaxThreads];

struct Row {
    Entry entry;
    uint row;        // within the slice
    int i;           // query
    bool exists;     // else its threads only take part in the barriers
    Keys keys;       // visible keys, before mask and bias are applied
    int scored_end;  // keys below it have a score even if hidden, where scores are results
    uint quads;   // first quad of the row in the workspace; the quad of key j (a multiple of 4) is at quads +
                  // j/4
    uint result;  // row in lse and statistics
    uint matrix;  // element of key 0 in the result matrices
    uint lane;
};

Row find_row() {
    Row r;
    r.row = gl_WorkGroupID.x * (gl_WorkGroupSize.x / kRowThreads) + gl_LocalInvocationIndex / kRowThreads;
    r.lane = gl_LocalInvocationIndex % kRowThreads;
    r.entry = slice_entry(gl_WorkGroupID.y);
    r.exists = r.row < push.slice.rows;
    r.i = int(push.slice.first_row + r.row);
    r.keys = r.exists ? visible_keys(r.entry, r.i, r.i + 1) : Keys(0, 0);
    r.scored_end = has_flag(kFlagAllKeys) && r.exists && r.i < r.entry.q_length ? r.entry.kv_length : 0;
    r.quads = score_row(r.entry, r.row) / 4u - uint(first_scored_key(r.entry)) / 4u;
    const uint result = result_row(r.entry, r.row);
    r.result = (push.slice.flags >> kResultRowShift & kResultMask) + result;
    r.matrix = (push.slice.flags >> kResultElementShift & kResultMask) + result * push.slice.len_kv;
    return r;
}

// Start of row `row` (within the slice) of a matrix over queries and keys.
uint matrix_row(TensorView t, Entry e, uint row) {
    return t.base + e.batch * t.batch + e.head * t.head + row * t.row;
}

// The first key at or after `begin` (rounded down to a quad) that belongs to this thread. A quad belongs to
// the same thread in every pass, so that a thread reads only what it wrote itself.
int first_key_of_thread(Row r, int begin) {
    const int quad = begin / 4;
    return 4 * (quad + ((int(r.lane) - quad) & int(kRowThreads - 1u)));
}

// Logits of keys j .. j+3 from their scores; -inf where hidden. `shown` counts the others.
vec4 masked_quad(Row r, int j, vec4 score, out uint shown) {
    vec4 value = capped_score(push.logit, score);
    const uint head = push.slice.first_head + r.entry.head;
    const float slope = has_flag(kFlagAlibi) ? alibi_slope(head) : 0.0;
    const uint mask_at = matrix_row(push.mask, r.entry, r.row) + uint(j);
    const uint bias_at0 = matrix_row(push.bias, r.entry, r.row) + uint(j);
    const uint result = r.matrix + uint(j);
    shown = 0u;
    for (int c = 0; c < 4; ++c) {
        const int key = j + c;
        const bool found = floatBitsToUint(score[c]) != kMinusInfinity;
        if (has_flag(kFlagCapped) && key < int(push.slice.len_kv))
            capped[result + uint(c)] = key < r.scored_end && found ? value[c] : 0.0;
        bool hidden = key < r.keys.begin || key >= r.keys.end || !found;
        if (!hidden && has_flag(kFlagMask)) hidden = !mask_shows(mask_at + uint(c));
        if (has_flag(kFlagAlibi)) value[c] += slope * float(key - (r.i + r.entry.offset));
        if (!hidden && has_flag(kBiasMask)) {
            const float bias = bias_at(bias_at0 + uint(c));
            hidden = floatBitsToUint(bias) == kMinusInfinity;
            value[c] += bias;
        }
        if (hidden) value[c] = FOVEA_MINUS_INFINITY;
        shown += hidden ? 0u : 1u;
        if (has_flag(kFlagMasked) && key < int(push.slice.len_kv))
            masked[result + uint(c)] = floatBitsToUint(value[c]);
    }
    return value;
}

// First pass: logits into the workspace; the largest, its first key and the number of visible keys of this
// thread's part into shared memory.
void mask_row(Row r) {
    float largest = FOVEA_MINUS_INFINITY;
    uint argmax = kNoKey, count = 0u;
    const bool whole = has_flag(kFlagCapped | kFlagMasked) && r.exists;
    const int begin = whole ? 0 : r.keys.begin, end = whole ? int(push.slice.len_kv) : r.keys.end;
    for (int j = first_key_of_thread(r, begin); j < end; j += 4 * int(kRowThreads)) {
        const bool has_keys = j < r.keys.end && j + 4 > r.keys.begin;
        uvec4 bits = uvec4(kMinusInfinity);
        if (has_keys || j < r.scored_end) bits = score_quads[r.quads + uint(j) / 4u];
        uint shown;
        const vec4 logits = masked_quad(r, j, uintBitsToFloat(bits), shown);
        count += shown;
        for (int c = 0; c < 4; ++c) {
            if (logits[c] > largest) {
                largest = logits[c];
                argmax = uint(j + c);
            }
        }
        if (has_keys) score_quads[r.quads + uint(j) / 4u] = floatBitsToUint(logits);
    }
    shared_max[gl_LocalInvocationIndex] = largest;
    shared_argmax[gl_LocalInvocationIndex] = argmax;
    shared_count[gl_LocalInvocationIndex] = count;
    const uint t = gl_LocalInvocationIndex;
    for (uint step = kRowThreads / 2u; step > 0u; step /= 2u) {
        barrier();
#ifdef FOVEA_WGSL  // takes no barrier in a loop whose turn some threads end early
        if (r.lane < step)
#else
        if (r.lane >= step) continue;
#endif
        {
            const float other = shared_max[t + step];
            if (other > shared_max[t] ||
                (other == shared_max[t] && shared_argmax[t + step] < shared_argmax[t])) {
                shared_max[t] = other;
                shared_argmax[t] = shared_argmax[t + step];
            }
            shared_count[t] += shared_count[t + step];
        }
    }
    barrier();
}

// Philox drops the share of weights that its threshold is of all words.
float keep_scale() {
    const float kept = 1.0 - float(push.keep.row) / 4294967296.0;
    return has_flag(kFlagPhilox) ? 1.0 / kept : uintBitsToFloat(push.keep_scale);
}

bvec4 kept_keys(Row r, int j) {
    if (has_flag(kFlagPhilox)) {
        const PhiloxView philox = PhiloxView(push.keep.base, push.keep.batch, push.keep.head, push.keep.row);
        return philox_keeps(push.first_batch_head + r.entry.index, push.keep_keys + uint(r.i),
                            push.keep_scale + uint(j), philox);
    }
    bvec4 kept = bvec4(true);
    if (!has_flag(kFlagDropoutMask)) return kept;
    const uint at = matrix_row(push.keep, r.entry, r.row) + uint(j);
    for (int c = 0; c < 4; ++c) kept[c] = uint(j + c) < push.keep_keys && keep_matrix_keeps(at + uint(c));
    return kept;
}

// Second pass: logits become exp(logit - largest). Returns this thread's part of the sum of them, and of them
// times (logit - largest).
vec2 exponentiate_row(Row r, float largest) {
    vec2 sums = vec2(0.0);
    for (int j = first_key_of_thread(r, r.keys.begin); j < r.keys.end; j += 4 * int(kRowThreads)) {
        const uvec4 bits = score_quads[r.quads + uint(j) / 4u];
        const bvec4 hidden = equal(bits, uvec4(kMinusInfinity));
        const vec4 below = mix(uintBitsToFloat(bits) - largest, vec4(0.0), hidden);
        const vec4 e = mix(exp_of_negative(below), vec4(0.0), hidden);
        sums += vec2(e.x + e.y + (e.z + e.w), dot(e, max(below, vec4(-88.0))));  // e is 0 below -87
        const bvec4 kept = kept_keys(r, j);
        score_quads[r.quads + uint(j) / 4u] =
            mix(uvec4(kHiddenWeight), floatBitsToUint(e), equal(uvec4(hidden) + uvec4(not(kept)), uvec4(0u)));
    }
    return sums;
}

vec2 sum_over_row(Row r, vec2 sums) {
    const uint t = gl_LocalInvocationIndex;
    shared_sums[t] = sums;
    for (uint step = kRowThreads / 2u; step > 0u; step /= 2u) {
        barrier();
        if (r.lane < step) shared_sums[t] += shared_sums[t + step];
    }
    barrier();
    return shared_sums[t - r.lane];
}

// Third pass, only where weights are a result.
void write_weights(Row r, float scale) {
    for (int j = 4 * int(r.lane); j < int(push.slice.len_kv); j += 4 * int(kRowThreads)) {
        const bool has_keys = j < r.keys.end && j + 4 > r.keys.begin;
        const uvec4 bits = has_keys ? score_quads[r.quads + uint(j) / 4u] : uvec4(kHiddenWeight);
        for (int c = 0; c < 4; ++c) {
            if (j + c >= int(push.slice.len_kv)) break;
            weights[r.matrix + uint(j + c)] =
                bits[c] == kHiddenWeight ? 0.0 : uintBitsToFloat(bits[c]) * scale;
        }
    }
}

void main() {
    const Row r = find_row();
    mask_row(r);
    const uint first = gl_LocalInvocationIndex - r.lane;
    const float largest_visible = shared_max[first];
    const uint argmax = shared_argmax[first], count = shared_count[first];
    const bool has_sink = has_flag(kFlagSinks);
    const float sink = has_sink ? uintBitsToFloat(sink_bits(push.slice.first_head + r.entry.head)) : 0.0;
    const float largest = has_sink && !(sink <= largest_visible) ? sink : largest_visible;
    const vec2 sums = sum_over_row(r, exponentiate_row(r, largest));
    const float total = sums.x + (has_sink ? exp_of_negative(sink - largest) : 0.0);
    const float scale = count == 0u || total == 0.0 ? 0.0 : keep_scale() / total;
    if (has_flag(kFlagWeights) && r.exists) write_weights(r, scale);
    if (!r.exists || r.lane != 0u) return;
    row_scale[r.entry.index * push.slice.rows + r.row] = scale;
    const float log_total = total == 0.0 ? FOVEA_MINUS_INFINITY : log_of_positive(total);
    if (has_flag(kFlagLse)) {
        const uint empty = has_sink ? floatBitsToUint(sink) : kMinusInfinity;
        lse_bits[r.result] = count == 0u ? empty : floatBitsToUint(largest + log_total);
    }
    if (has_flag(kFlagRowStats)) {
        uvec4 stats = uvec4(0u, 0u, kNoKey, 0u);
        if (count != 0u && total != 0.0) {
            const float entropy = (log_total * sums.x - sums.y) / total;
            stats = uvec4(floatBitsToUint(exp_of_negative(largest_visible - largest) / total),
                          floatBitsToUint(entropy), argmax, count);
        }
        row_stats[r.result] = stats;
    }
}
