// Factors of products in float16, four at a time.
#ifndef FOVEA_FACTORS_GLSL
#define FOVEA_FACTORS_GLSL

// Finite numbers beyond float16's range become its largest ones; infinities and NaN stay what they are.
f16vec4 factors_of(vec4 x) {
    const uvec4 magnitude = floatBitsToUint(x) & 0x7fffffffu;
    const uint largest = max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
    // As bits, magnitudes order like the numbers, NaN on top. Almost no four hold one that is beyond.
    if (largest > 0x477fe000u) {  // 65504
        const bvec4 beyond = lessThan(magnitude, uvec4(0x7f800000u));
        x = mix(x, clamp(x, -65504.0, 65504.0), beyond);
    }
    return f16vec4(x);
}

f16vec4 factors_of_words(uvec2 words) { return f16vec4(unpackFloat2x16(words.x), unpackFloat2x16(words.y)); }

// NAME_quad_words(row, n, length) and NAME_factors4(row, n, length): elements n .. n+3 of a row of a
// FOVEA_INPUT_TENSOR, those past its end as 0. What is float16 in memory is copied as it is: through float32
// it would be most of a kernel's arithmetic.
#define FOVEA_INPUT_FACTORS(NAME, TYPE)                                                               \
    uvec2 NAME##_quad_words(uint row, uint n, uint length) {                                          \
        const uvec2 words = NAME##_words2[(row + min(n, length - 4u)) >> 2];                          \
        return n < length ? words : uvec2(0u);                                                        \
    }                                                                                                 \
    f16vec4 NAME##_factors4(uint row, uint n, uint length) {                                          \
        if (kAligned && TYPE == kTypeF16) return factors_of_words(NAME##_quad_words(row, n, length)); \
        return factors_of(NAME##_depth4(row, n, length));                                             \
    }

#endif
