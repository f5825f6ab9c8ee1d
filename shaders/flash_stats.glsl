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

// Keys j .. j+3 of row i, see add_keys.
void add_stats(uint i, int j, bvec4 hidden, vec4 below, vec4 weight, float maximum, float total,
               float rescale) {
    const uint at = i * kThreads + gl_LocalInvocationIndex;
    const uvec4 part = stats_parts[at];
    RowStats stats = RowStats(uintBitsToFloat(part.x), part.y, part.z);
    add_keys(stats, j, hidden, below, weight, uintBitsToFloat(part.w), maximum, total, rescale);
    stats_parts[at] =
        uvec4(floatBitsToUint(stats.moment), stats.argmax, stats.count, floatBitsToUint(maximum));
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
