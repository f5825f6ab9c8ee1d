// Boolean mask, additive bias, ALiBi slopes and dropout mask. All read in 32-bit words.
#ifndef FOVEA_MASK_GLSL
#define FOVEA_MASK_GLSL

#include "math.glsl"

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
