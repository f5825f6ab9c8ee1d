// Operands of matrix multiplications, four at a time, as two words of shared memory: float16, or bfloat16
// with kBfloat16. Only a matrix declares float16_t elements; foveaDispatchCode replaces that type if they are
// bfloat16.
#ifndef FOVEA_FACTORS_GLSL
#define FOVEA_FACTORS_GLSL

const bool kBfloat16 = (kCall & kBfloat16Call) != 0u;
const uint kFactorType = kBfloat16 ? FOVEA_BF16 : FOVEA_F16;
// Masks of the two operands in a word: the exponents, and the addend that makes an exponent of all ones
// overflow into the sign bit, and no other.
const uint kExponents = kBfloat16 ? 0x7f807f80u : 0x7c007c00u;
const uint kCarries = kBfloat16 ? 0x00800080u : 0x04000400u;

// Rounded to the nearest. Finite values beyond bfloat16's range become its largest ones.
uvec2 bfloat16_factors(vec4 x) {
    const uvec4 bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    uvec4 rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    if (any(greaterThan(magnitude, uvec4(0x7f7f7fffu))))
        rounded = mix(rounded, mix(bits, bits | 0x400000u, greaterThan(magnitude, uvec4(0x7f800000u))),
                      greaterThan(magnitude, uvec4(0x7f7f7fffu)));
    return rounded.xz >> 16 | rounded.yw & 0xffff0000u;
}

// Values that need no clamp, such as weights.
uvec2 small_factors_of(vec4 x) {
    if (kBfloat16) return bfloat16_factors(x);
    return uvec2(packFloat2x16(f16vec2(x.xy)), packFloat2x16(f16vec2(x.zw)));
}

// Finite values beyond the operands' range become the largest ones; infinities and NaN are kept.
uvec2 factors_of(vec4 x) {
    if (kBfloat16) return bfloat16_factors(x);
    const uvec4 magnitude = floatBitsToUint(x) & 0x7fffffffu;
    const uint largest = max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
    // As bits, magnitudes order like the values, NaN on top. Almost no four hold one that is beyond.
    if (largest > 0x477fe000u) {  // 65504
        const bvec4 beyond = lessThan(magnitude, uvec4(0x7f800000u));
        x = mix(x, clamp(x, -65504.0, 65504.0), beyond);
    }
    return small_factors_of(x);
}

// Four rows of four columns turned round: result c holds column c.
uvec2 column_of(uvec2 row[4], uint c) {
    const uvec4 words = uvec4(row[0][c >> 1], row[1][c >> 1], row[2][c >> 1], row[3][c >> 1]);
    if (!kBfloat16) {  // moves of float16 cost a GPU one instruction less
        const uint n = c & 1u;
        return uvec2(packFloat2x16(f16vec2(unpackFloat2x16(words.x)[n], unpackFloat2x16(words.y)[n])),
                     packFloat2x16(f16vec2(unpackFloat2x16(words.z)[n], unpackFloat2x16(words.w)[n])));
    }
    return (c & 1u) == 0u ? words.xz & 0xffffu | words.yw << 16 : words.xz >> 16 | words.yw & 0xffff0000u;
}

// NAME_quad_words(row, n, length) and NAME_factors4(row, n, length): elements n .. n+3 of a row of a
// FOVEA_INPUT_TENSOR, with 0 past its end. Elements that have the operand type are copied unchanged: a
// conversion through float32 would be most of a kernel's arithmetic.
#define FOVEA_INPUT_FACTORS(NAME, TYPE)                                                           \
    uvec2 NAME##_quad_words(uint row, uint n, uint length) {                                      \
        const uvec2 words = NAME##_words2[(row + min(n, length - 4u)) >> 2];                      \
        return n < length ? words : uvec2(0u);                                                    \
    }                                                                                             \
    uvec2 NAME##_factors4(uint row, uint n, uint length) {                                        \
        if (kAligned && TYPE == kFactorType) return NAME##_quad_words(row, n, length);            \
        return factors_of(NAME##_depth4(row, n, length));                                         \
    }

// The same for a FOVEA_CACHE_TENSOR. A narrower type than the operands' is exact in float32 and is rounded
// once.
#define FOVEA_CACHE_FACTORS(NAME, TYPE)                                                           \
    FOVEA_INPUT_FACTORS(NAME##_plain, TYPE)                                                       \
    uvec2 NAME##_factors4(uint row, uint n, uint length) {                                        \
        if (!NAME##_compressed) return NAME##_plain_factors4(row, n, length);                     \
        return factors_of(NAME##_depth4(row, n, length));                                         \
    }

#endif
