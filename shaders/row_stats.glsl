// FoveaRowStats of a row of flash: what its splits leave, and how the row ends. kStats is a constant of the
// pipeline, so that calls which want none do without the code.
#ifndef FOVEA_ROW_STATS_GLSL
#define FOVEA_ROW_STATS_GLSL

#include "finish.glsl"

#ifndef FOVEA_GATHERS
layout(constant_id = FOVEA_SPEC_CALL) const uint kCall = 0u;
#endif
const bool kStats = (kCall & kStatsCall) != 0u;

layout(set = 0, binding = FOVEA_SLOT_ROW_STATS, std430) writeonly buffer Stats { uvec4 row_stats[]; };

const uint kNoKey = 0xffffffffu;
// A partial result's words may pass through float registers: a key or a count, less than 2^29, becomes a
// normal float. The largest value means that there is no key.
const uint kNormal = 0x40000000u, kMaxPartialKey = 0x1fffffffu;

// Statistics of the visible keys before dropout: the sum of weight * (logit - maximum), the first key with
// the largest logit, and the number of keys.
struct RowStats {
    float moment;
    uint argmax, count;
};

uint partial_stride(uint dim_v) { return dim_v + kPartialWords + (kStats ? kPartialStatsWords : 0u); }

RowStats no_stats() { return RowStats(0.0, kNoKey, 0u); }

// The moment where the maximum that weights and logits count from becomes `rise` larger: `total` is the sum
// of weights till then, `rescale` exp(-rise). From 88 on nothing is left, and infinity must not become NaN.
float raised_moment(float moment, float total, float rise, float rescale) {
    return rescale * (moment - min(rise, 88.0) * total);
}

// Adds keys j .. j+3, whose logits are `below` the row's `maximum`, to the statistics of some of its keys,
// which counted from the maximum `before`. `total` is the sum of their weights, which `rescale` is about
// to multiply.
void add_keys(inout RowStats stats, int j, bvec4 hidden, vec4 below, vec4 weight, float before, float maximum,
              float total, float rescale) {
    const bool is_raised = maximum > before;
    const vec4 part = weight * max(below, vec4(-88.0));  // the weight is 0 below -87
    if (is_raised) stats.moment = raised_moment(stats.moment, total, maximum - before, rescale);
    if (is_raised) stats.argmax = kNoKey;
    [[unroll]] for (int c = 3; c >= 0; --c) {
        stats.count += hidden[c] ? 0u : 1u;
        if (!hidden[c] && below[c] == 0.0) stats.argmax = min(stats.argmax, uint(j + c));
    }
    stats.moment += part.x + part.y + (part.z + part.w);
}

float partial_key(uint key) { return uintBitsToFloat(kNormal | (key & kMaxPartialKey)); }
uint key_of_partial(float stored) {
    const uint key = floatBitsToUint(stored) & kMaxPartialKey;
    return key == kMaxPartialKey ? kNoKey : key;
}

// `keys` sums only the visible keys; `all` includes the sink, which has a weight but is not a key.
void store_stats(Row row, RowSum keys, RowSum all, RowStats stats) {
    uvec4 result = uvec4(0u, 0u, kNoKey, 0u);
    if (keys.total != 0.0) {
        const float rise = all.largest - keys.largest, rescale = exp_of_negative(-rise);
        const float moment = raised_moment(stats.moment, keys.total, rise, rescale);
        const float entropy = (log_of_positive(all.total) * keys.total * rescale - moment) / all.total;
        result = uvec4(floatBitsToUint(rescale / all.total), floatBitsToUint(entropy), stats.argmax,
                       stats.count);
    }
    row_stats[push.result_base + row.place * push.slice.len_q + row.query] = result;
}

#endif
