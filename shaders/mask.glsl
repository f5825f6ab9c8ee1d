// Boolean mask, additive bias, ALiBi slopes and keep mask. All read in 32-bit words.
#ifndef FOVEA_MASK_GLSL
#define FOVEA_MASK_GLSL

#include "math.glsl"

layout(set = 0, binding = FOVEA_SLOT_MASK, std430) readonly buffer Mask { uint mask_words[]; };
layout(set = 0, binding = FOVEA_SLOT_BIAS, std430) readonly buffer Bias { uint bias_words[]; };
layout(set = 0, binding = FOVEA_SLOT_KEEP, std430) readonly buffer Keep { uint keep_words[]; };
layout(set = 0, binding = FOVEA_SLOT_ALIBI, std430) readonly buffer Alibi { float alibi_slopes[]; };

bool byte_is_set(uint word, uint at) { return (word >> ((at & 3u) << 3) & 0xffu) != 0u; }

bool mask_shows(uint at) { return byte_is_set(mask_words[at >> 2], at); }
bool keep_matrix_keeps(uint at) { return byte_is_set(keep_words[at >> 2], at); }

float bias_at(uint at) {
    const uint type = push.slice.flags & kBiasMask;
    if (type == kBiasF32) return uintBitsToFloat(bias_words[at]);
    return value_of_half(bias_words[at >> 1] >> ((at & 1u) << 4) & 0xffffu, type == kBiasBf16);
}

#endif
