// Row statistics of flash, block by block: each thread's part of each row, for the keys that are its own.
#ifndef FOVEA_FLASH_STATS_GLSL
#define FOVEA_FLASH_STATS_GLSL

#include "row_stats.glsl"

// Moment, argmax and count of RowStats, and the maximum that they count from.
shared uvec4 stats_parts[kStats ? kRows * kThreads : 1u];

void begin_stats() {
    for (uint i = 0u; i < kRows; ++i)
        stats_parts[i * kThreads + gl_LocalInvocationIndex] = uvec4(0u, kNoKey, 0u, kMinusInfinity);
}

// Keys j .. j+3 of row i, whose logits are `below` its `maximum`. `total` is the thread's sum of weights
// before them, which `rescale` is about to multiply.
void add_stats(uint i, int j, bvec4 hidden, vec4 below, vec4 weight, float maximum, float total,
               float rescale) {
    const uint at = i * kThreads + gl_LocalInvocationIndex;
    const uvec4 stats = stats_parts[at];
    const float before = uintBitsToFloat(stats.w);
    const bool is_raised = maximum > before;
    const vec4 part = weight * max(below, vec4(-88.0));  // the weight is 0 below -87
    float moment = uintBitsToFloat(stats.x);
    if (is_raised) moment = raised_moment(moment, total, maximum - before, rescale);
    uint argmax = is_raised ? kNoKey : stats.y, count = stats.z;
    [[unroll]] for (int c = 3; c >= 0; --c) {
        count += hidden[c] ? 0u : 1u;
        if (!hidden[c] && below[c] == 0.0) argmax = min(argmax, uint(j + c));
    }
    stats_parts[at] = uvec4(floatBitsToUint(moment + (part.x + part.y + (part.z + part.w))), argmax, count,
                            floatBitsToUint(maximum));
}

// Row r as a whole, after a call of share_sums.
RowStats stats_of_row(uint r) {
    RowStats sum = no_stats();
    [[dont_unroll]] for (uint n = 0u; n < kThreads; ++n) {
        const uvec4 stats = stats_parts[r * kThreads + n];
        sum.moment += uintBitsToFloat(stats.x);
        sum.argmax = min(sum.argmax, stats.y);
        sum.count += stats.z;
    }
    return sum;
}

#endif
