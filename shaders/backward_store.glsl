// Writing gradients of any float type through 32-bit words, on devices with and without 16-bit storage, and
// adding to what they hold. A number of 16 bits shares its word with a neighbour that another thread may own:
// two atomics replace its half.
#ifndef FOVEA_BACKWARD_STORE_GLSL
#define FOVEA_BACKWARD_STORE_GLSL

// The first and the second result of a dispatch.
const uint kFirst = 0u, kSecond = 1u;

bool stores_bf16(uint result) { return (push.store & kStoreBf16 << result) != 0u; }
bool stores_half(uint result) { return (push.store & (kStoreF16 | kStoreBf16) << result) != 0u; }
bool adds_to(uint result) { return (push.store & kStoreAdds << result) != 0u; }

#define FOVEA_GRADIENT(NAME, SLOT)                                                                   \
    layout(set = 0, binding = SLOT, std430) buffer NAME##_out { uint NAME##_words[]; };              \
    void NAME##_put(uint e, float value, uint result) {                                              \
        if (!stores_half(result)) {                                                                  \
            const float held = adds_to(result) ? uintBitsToFloat(NAME##_words[e]) : 0.0;             \
            NAME##_words[e] = floatBitsToUint(held + value);                                         \
            return;                                                                                  \
        }                                                                                            \
        const uint shift = (e & 1u) << 4;                                                            \
        float held = 0.0;                                                                            \
        if (adds_to(result))                                                                         \
            held = value_of_half(NAME##_words[e >> 1] >> shift & 0xffffu, stores_bf16(result));      \
        atomicAnd(NAME##_words[e >> 1], 0xffff0000u >> shift);                                       \
        atomicOr(NAME##_words[e >> 1], half_of_value(held + value, stores_bf16(result)) << shift);   \
    }

#endif
