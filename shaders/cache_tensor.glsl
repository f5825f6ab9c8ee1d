// Reads cached keys and values, which may be quantized: 8-bit floats, or ggml's blocks of 32 values. Every
// value is exact in float32. Like tensor.glsl it reads 32-bit words.
#ifndef FOVEA_CACHE_TENSOR_GLSL
#define FOVEA_CACHE_TENSOR_GLSL

#include "tensor.glsl"

// An e4m3 has float32's layout with another bias; its subnormal values are converted as integers, because a
// device may flush float32's to zero.
vec4 numbers_of_e4m3(uvec4 code) {
    const uvec4 magnitude = code & 0x7fu;
    uvec4 bits = mix((magnitude << 20) + 0x3c000000u, floatBitsToUint(vec4(magnitude) * 0.001953125),
                     lessThan(magnitude, uvec4(8u)));
    bits = mix(bits, uvec4(0x7fc00000u), equal(magnitude, uvec4(0x7fu)));
    return uintBitsToFloat(bits | (code & 0x80u) << 24);
}
vec4 numbers_of_e5m2(uvec4 code) {
    return vec4(unpackHalf2x16(code.x << 8 | code.y << 24), unpackHalf2x16(code.z << 8 | code.w << 24));
}

// FOVEA_INPUT_TENSOR, whose TYPE may also be a compressed one: then e counts elements. A block of q8_0 is a
// float16 scale and 32 bytes, one of q4_0 a scale and 16 bytes: byte n holds values n and n + 16, each 8 too
// large. Four values are in one word or two. What the type decides are constants made of equalities, as
// plan/vulkan/dispatch_code.cpp knows them.
//   NAME_numbers4(e, end)   quantized elements e .. e+3, those past `end` anything; in blocks e is a multiple
//                           of 4
#define FOVEA_CACHE_TENSOR(NAME, SLOT, TYPE, ALIGNED)                                                     \
    FOVEA_INPUT_TENSOR(NAME##_plain, SLOT, TYPE, ALIGNED)                                                 \
    const bool NAME##_bytes = TYPE == FOVEA_Q8_0;                                                         \
    const bool NAME##_blocks = NAME##_bytes || TYPE == FOVEA_Q4_0;                                        \
    const bool NAME##_compressed = NAME##_blocks || TYPE == FOVEA_F8_E4M3 || TYPE == FOVEA_F8_E5M2;       \
    vec4 NAME##_numbers4(uint e, uint end) {                                                              \
        const uint block = e / 32u * (NAME##_bytes ? 34u : 18u), n = e % 32u;                             \
        const uint byte = NAME##_blocks ? block + 2u + (NAME##_bytes ? n : n % 16u) : e;                  \
        const uint last = NAME##_blocks ? byte + 3u : min(e + 3u, end), shift = (byte & 3u) << 3;         \
        const uint four = NAME##_plain_words[byte >> 2] >> shift |                                        \
                          NAME##_plain_words[last >> 2] << 1 << (31u - shift);                            \
        const uvec4 code = uvec4(four) >> uvec4(0u, 8u, 16u, 24u) & 0xffu;                                \
        if (TYPE == FOVEA_F8_E4M3) return numbers_of_e4m3(code);                                          \
        if (TYPE == FOVEA_F8_E5M2) return numbers_of_e5m2(code);                                          \
        const float scale = unpackHalf2x16(NAME##_plain_words[block >> 2] >> ((block & 2u) << 3)).x;      \
        if (NAME##_bytes) return vec4(ivec4(code << 24) >> 24) * scale;                                   \
        return (vec4(code >> (n / 16u * 4u) & 15u) - 8.0) * scale;                                        \
    }                                                                                                     \
    float NAME##_at(uint e) {                                                                             \
        if (!NAME##_compressed) return NAME##_plain_at(e);                                                \
        const uint first = NAME##_blocks ? e & ~3u : e;                                                   \
        return NAME##_numbers4(first, e)[e - first];                                                      \
    }                                                                                                     \
    vec4 NAME##_at4(uint e) {                                                                             \
        if (NAME##_compressed) return NAME##_numbers4(e, e + 3u);                                         \
        return NAME##_plain_at4(e);                                                                       \
    }                                                                                                     \
    vec4 NAME##_columns4(uint row, uint n, uint length) {                                                 \
        if (!NAME##_compressed) return NAME##_plain_columns4(row, n, length);                             \
        return NAME##_numbers4(row + min(n, length - 1u & ~3u), row + length - 1u);                       \
    }                                                                                                     \
    vec4 NAME##_depth4(uint row, uint n, uint length) {                                                   \
        const bvec4 past = greaterThanEqual(n + uvec4(0u, 1u, 2u, 3u), uvec4(length));                    \
        return mix(NAME##_columns4(row, n, length), vec4(0.0), past);                                     \
    }

#endif
