// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the same function as
// engine/problem/philox.hpp.
#ifndef FOVEA_DROPOUT_GLSL
#define FOVEA_DROPOUT_GLSL

#include "interface.h"
#include "wgsl.glsl"

uvec4 philox4x32_10(uvec4 counter, uvec2 key) {
    for (int round = 0; round < 10; ++round) {
        uint high0, low0, high1, low1;
        fovea_multiply_wide(0xD2511F53u, counter.x, high0, low0);
        fovea_multiply_wide(0xCD9E8D57u, counter.z, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// Which of keys j .. j+3 of query i are kept, as the whole call counts them; j is a multiple of 4, bh = batch
// entry * query heads + head.
bvec4 philox_keeps(uint bh, uint i, uint j, PhiloxView philox) {
    const uvec4 words =
        philox4x32_10(uvec4(j / 4u, i, bh, philox.counter), uvec2(philox.key_low, philox.key_high));
    return greaterThanEqual(words, uvec4(philox.threshold));
}

#endif
