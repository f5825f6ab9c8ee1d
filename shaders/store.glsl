// Writing a tensor element by element. FOVEA_SPEC_STORED_TYPE says of which type:
//   FOVEA_F32              float32
//   FOVEA_F16, FOVEA_BF16  16-bit elements, on devices with 16-bit storage; FOVEA_Q8_0, FOVEA_Q4_0:
//   the
//                          parts of blocks
//   with kStoredByWords    the same on any device: two atomics replace one half of a 32-bit word, because
//                          another thread, or a gap between rows, may own the other half
// One module has all three, and foveaDispatchCode takes out the variables, and the capability, that a
// dispatch does not use. Two have less: with FOVEA_NEEDS_16_BIT_STORAGE, of kernels whose devices all have
// it, words are not replaced; with FOVEA_WGSL, which has no such storage, they always are.
// Defines NAME_store_bits(e, bits), NAME_store_half(e, bits) and stored_bits(value); where words may be
// replaced also NAME_replace(word, mask, bits).
#ifndef FOVEA_STORE_GLSL
#define FOVEA_STORE_GLSL

#include "math.glsl"

layout(constant_id = FOVEA_SPEC_STORED_TYPE) const uint kStored = FOVEA_F32;
const uint kStoredType = kStored & ~kStoredByWords;
const bool kStoresHalves = kStored != FOVEA_F32 && kStored == kStoredType;

#define FOVEA_OUTPUT_HALVES(NAME, SLOT)                                                               \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_16 { uint16_t NAME##_halves[]; }; \
    void NAME##_write_half(uint e, uint bits) { NAME##_halves[e] = uint16_t(bits); }

#define FOVEA_OUTPUT_PAIRS(NAME, SLOT)                                                     \
    layout(set = 0, binding = SLOT, std430) buffer NAME##_shared { uint NAME##_pairs[]; }; \
    void NAME##_replace(uint word, uint mask, uint bits) {                                 \
        atomicAnd(NAME##_pairs[word], ~mask);                                              \
        atomicOr(NAME##_pairs[word], bits);                                                \
    }                                                                                      \
    void NAME##_replace_half(uint e, uint bits) {                                          \
        const uint shift = (e & 1u) << 4;                                                  \
        NAME##_replace(e >> 1, 0xffffu << shift, bits << shift);                           \
    }

#if defined(FOVEA_NEEDS_16_BIT_STORAGE)
#define FOVEA_OUTPUT_16_BITS(NAME, SLOT) \
    FOVEA_OUTPUT_HALVES(NAME, SLOT)      \
    void NAME##_store_half(uint e, uint bits) { NAME##_write_half(e, bits); }
#elif defined(FOVEA_WGSL)
#define FOVEA_OUTPUT_16_BITS(NAME, SLOT) \
    FOVEA_OUTPUT_PAIRS(NAME, SLOT)       \
    void NAME##_store_half(uint e, uint bits) { NAME##_replace_half(e, bits); }
#else
#define FOVEA_OUTPUT_16_BITS(NAME, SLOT)        \
    FOVEA_OUTPUT_HALVES(NAME, SLOT)             \
    FOVEA_OUTPUT_PAIRS(NAME, SLOT)              \
    void NAME##_store_half(uint e, uint bits) { \
        if (kStoresHalves)                      \
            NAME##_write_half(e, bits);         \
        else                                    \
            NAME##_replace_half(e, bits);       \
    }
#endif

#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                               \
    FOVEA_OUTPUT_16_BITS(NAME, SLOT)                                                                  \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_out { uint NAME##_out_words[]; }; \
    void NAME##_store_bits(uint e, uint bits) {                                                       \
        if (kStored == FOVEA_F32)                                                                     \
            NAME##_out_words[e] = bits;                                                               \
        else                                                                                          \
            NAME##_store_half(e, bits);                                                               \
    }

uint stored_bits(float value) {
    return kStored == FOVEA_F32 ? floatBitsToUint(value) : half_of_value(value, kStoredType == FOVEA_BF16);
}

#endif
