// Reading tensors of float32 or float16 through 32-bit words: one binary serves both types and drivers
// without 16-bit storage. Writing float16 needs 16-bit storage, see store.glsl.
#ifndef FOVEA_TENSOR_GLSL
#define FOVEA_TENSOR_GLSL

// NAME_at(e): element e. NAME_at4(e): elements e .. e+3 where e is a multiple of 4. TYPE: kTypeF32 or
// kTypeF16.
#define FOVEA_INPUT_TENSOR(NAME, SLOT, TYPE)                                                     \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_1 { uint NAME##_words[]; };   \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_2 { uvec2 NAME##_words2[]; }; \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_4 { uvec4 NAME##_words4[]; }; \
    float NAME##_at(uint e) {                                                                    \
        if (TYPE == kTypeF16) return unpackHalf2x16(NAME##_words[e >> 1] >> ((e & 1u) << 4)).x;  \
        return uintBitsToFloat(NAME##_words[e]);                                                 \
    }                                                                                            \
    vec4 NAME##_at4(uint e) {                                                                    \
        if (TYPE == kTypeF16) {                                                                  \
            const uvec2 w = NAME##_words2[e >> 2];                                               \
            return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));                               \
        }                                                                                        \
        return uintBitsToFloat(NAME##_words4[e >> 2]);                                           \
    }                                                                                            \
    /* Elements e .. e+3, those at or past `count` of them as 0. */                              \
    vec4 NAME##_at4_of(uint e, uint count) {                                                     \
        if (kAligned) return count == 0u ? vec4(0.0) : NAME##_at4(e);                            \
        vec4 r = vec4(0.0);                                                                      \
        if (count > 0u) r.x = NAME##_at(e);                                                      \
        if (count > 1u) r.y = NAME##_at(e + 1u);                                                 \
        if (count > 2u) r.z = NAME##_at(e + 2u);                                                 \
        if (count > 3u) r.w = NAME##_at(e + 3u);                                                 \
        return r;                                                                                \
    }

// Elements left of a row of `length` behind position `at`.
uint left_of(uint length, uint at) { return at < length ? length - at : 0u; }

#endif
