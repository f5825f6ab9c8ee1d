// Writing a tensor element by element.
//   (default)              float32
//   FOVEA_STORE_F16        float16 or bfloat16, as kStoredType says, on devices with 16-bit storage
//   FOVEA_STORE_F16_WORDS  the same on any device: two atomics replace one half of a 32-bit word,
//                          because another thread, or a gap between rows, may own the other half
// Defines NAME_store_bits(e, bits) and stored_bits(value).
#ifndef FOVEA_STORE_GLSL
#define FOVEA_STORE_GLSL

#include "math.glsl"

#if defined(FOVEA_STORE_F16)
#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                                \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_out { uint16_t NAME##_halves[]; }; \
    void NAME##_store_bits(uint e, uint bits) { NAME##_halves[e] = uint16_t(bits); }

#elif defined(FOVEA_STORE_F16_WORDS)
#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                     \
    layout(set = 0, binding = SLOT, std430) buffer NAME##_out { uint NAME##_out_words[]; }; \
    void NAME##_store_bits(uint e, uint bits) {                                             \
        const uint shift = (e & 1u) << 4;                                                   \
        atomicAnd(NAME##_out_words[e >> 1], 0xffff0000u >> shift);                          \
        atomicOr(NAME##_out_words[e >> 1], bits << shift);                                  \
    }

#else
#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                               \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_out { uint NAME##_out_words[]; }; \
    void NAME##_store_bits(uint e, uint bits) { NAME##_out_words[e] = bits; }

#endif

#if defined(FOVEA_STORE_F16) || defined(FOVEA_STORE_F16_WORDS)
layout(constant_id = FOVEA_SPEC_STORED_TYPE) const uint kStoredType = kTypeF16;
uint stored_bits(float value) { return half_of_value(value, kStoredType == kTypeBf16); }
#else
const uint kStoredType = kTypeF32;
uint stored_bits(float value) { return floatBitsToUint(value); }
#endif

#endif
