// Reading tensors of float32, float16 or bfloat16 through 32-bit words: one binary serves all types and
// drivers without 16-bit storage. For writing see store.glsl.
#ifndef FOVEA_TENSOR_GLSL
#define FOVEA_TENSOR_GLSL

// TYPE: FOVEA_F32, FOVEA_F16 or FOVEA_BF16 (the upper half of a float32). With ALIGNED every row starts at,
// and is as long as, a multiple of 4 elements.
//   NAME_at(e)               element e
//   NAME_at4(e)              elements e .. e+3
//   NAME_depth4(row, n, length)    elements n .. n+3 of a row, those past its end as 0
//   NAME_columns4(row, n, length)  the same where what is past the end does not matter
// No branches: a clamped load is cheaper than a skipped one. Of the binding's three views only that of TYPE
// and ALIGNED is ever read, so that a pipeline needs a single variable.
#define FOVEA_INPUT_TENSOR(NAME, SLOT, TYPE, ALIGNED)                                                     \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_1 { uint NAME##_words[]; };            \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_2 { uvec2 NAME##_words2[]; };          \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_4 { uvec4 NAME##_words4[]; };          \
    float NAME##_at(uint e) {                                                                             \
        if (TYPE != FOVEA_F32) {                                                                          \
            const uint word = ALIGNED ? NAME##_words2[e >> 2][e >> 1 & 1u] : NAME##_words[e >> 1];        \
            if (TYPE == FOVEA_BF16) return uintBitsToFloat(word << (16u - ((e & 1u) << 4)) & 0xffff0000u);\
            return unpackHalf2x16(word >> ((e & 1u) << 4)).x;                                             \
        }                                                                                                 \
        return uintBitsToFloat(ALIGNED ? NAME##_words4[e >> 2][e & 3u] : NAME##_words[e]);                \
    }                                                                                                     \
    vec4 NAME##_at4(uint e) {                                                                             \
        if (!ALIGNED) return vec4(NAME##_at(e), NAME##_at(e + 1u), NAME##_at(e + 2u), NAME##_at(e + 3u)); \
        if (TYPE == FOVEA_F16) {                                                                          \
            const uvec2 w = NAME##_words2[e >> 2];                                                        \
            return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));                                        \
        }                                                                                                 \
        if (TYPE == FOVEA_BF16) {                                                                         \
            const uvec2 w = NAME##_words2[e >> 2];                                                        \
            return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));    \
        }                                                                                                 \
        return uintBitsToFloat(NAME##_words4[e >> 2]);                                                    \
    }                                                                                                     \
    vec4 NAME##_columns4(uint row, uint n, uint length) {                                                 \
        if (ALIGNED) return NAME##_at4(row + min(n, length - 4u));                                        \
        const uvec4 e = row + min(n + uvec4(0u, 1u, 2u, 3u), uvec4(length - 1u));                         \
        return vec4(NAME##_at(e.x), NAME##_at(e.y), NAME##_at(e.z), NAME##_at(e.w));                      \
    }                                                                                                     \
    vec4 NAME##_depth4(uint row, uint n, uint length) {                                                   \
        const bvec4 past = greaterThanEqual(n + uvec4(0u, 1u, 2u, 3u), uvec4(length));                    \
        return mix(NAME##_columns4(row, n, length), vec4(0.0), past);                                     \
    }

#endif
