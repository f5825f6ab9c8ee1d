// Softcap, boolean mask, additive bias, ALiBi slopes and dropout of a logit, for every attention kernel.
// Matrices are read in 32-bit words.
#ifndef FOVEA_LOGIT_GLSL
#define FOVEA_LOGIT_GLSL

#include "interface.h"
#include "math.glsl"
#include "wgsl.glsl"

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the same function as
// engine/problem/philox.hpp.
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

// Dropout of four keys from j on, for query i: true keeps a key. Both count from the start of the call. Let j
// be a multiple of 4 and bh = batch entry * query heads + head.
bvec4 philox_keeps(uint bh, uint i, uint j, PhiloxView philox) {
    const uvec4 words =
        philox4x32_10(uvec4(j / 4u, i, bh, philox.counter), uvec2(philox.key_low, philox.key_high));
    return greaterThanEqual(words, uvec4(philox.threshold));
}

// True if capped_score changes the score.
bool changes_scores(LogitView view) { return view.softcap > 0.0; }

vec4 capped_score(LogitView view, vec4 score) {
    vec4 value = score;
    if (view.softcap > 0.0) value = view.softcap * tanh_of(score / view.softcap);
    return value;
}

// The derivative of capped_score.
vec4 capped_slope(LogitView view, vec4 score) {
    if (!(view.softcap > 0.0)) return vec4(1.0);
    const vec4 share = tanh_of(score / view.softcap);
    return 1.0 - share * share;
}

FOVEA_WORDS(mask_word, FOVEA_SLOT_MASK, kGatherMask, extra.at.mask)
FOVEA_WORDS(bias_word, FOVEA_SLOT_BIAS, kGatherBias, extra.at.bias)
FOVEA_WORDS(keep_word, FOVEA_SLOT_DROPOUT_MASK, kGatherDropoutMask, extra.at.keep)
FOVEA_WORDS(alibi_bits, FOVEA_SLOT_ALIBI, kGatherAlibi, extra.at.heads)

float alibi_slope(uint head) { return uintBitsToFloat(alibi_bits(head)); }

bool byte_is_set(uint word, uint at) { return (word >> ((at & 3u) << 3) & 0xffu) != 0u; }

bool mask_shows(uint at) { return byte_is_set(mask_word(at >> 2), at); }
bool keep_matrix_keeps(uint at) { return byte_is_set(keep_word(at >> 2), at); }

float bias_at(uint at) {
    const uint type = push.slice.flags & kBiasMask;
    if (type == kBiasF32) return uintBitsToFloat(bias_word(at));
    return value_of_half(bias_word(at >> 1) >> ((at & 1u) << 4) & 0xffffu, type == kBiasBf16);
}

#endif
