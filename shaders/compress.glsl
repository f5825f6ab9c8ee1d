// Writes quantized values, with the same bits as engine/problem/compressed.cpp. There is one exception: if
// the scale of a block would be a subnormal float32, which a device may flush to zero, scale and values are
// zero; they read as zeros either way.
#ifndef FOVEA_COMPRESS_GLSL
#define FOVEA_COMPRESS_GLSL

#include "math.glsl"

// An 8-bit float, rounded to the nearest, ties to even, and saturating.
uint float8_bits(float value, bool is_e5m2) {
    const uint fraction = is_e5m2 ? 2u : 3u, bias = is_e5m2 ? 15u : 7u, largest = is_e5m2 ? 0x7bu : 0x7eu;
    const uint bits = floatBitsToUint(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | (is_e5m2 ? 0x7eu : 0x7fu);
    if (magnitude == 0x7f800000u) return sign | largest + 1u;
    if (magnitude < 128u - bias << 23) {  // subnormal: counted in its units
        const float unit = uintBitsToFloat(126u + bias + fraction << 23);
        return sign | uint(roundEven(uintBitsToFloat(magnitude) * unit));
    }
    const uint shift = 23u - fraction, up = (1u << shift - 1u) - 1u + (magnitude >> shift & 1u);
    return sign | min((magnitude + up >> shift) - (127u - bias << fraction), largest);
}

// The one of the larger magnitude, else the first; as bits, which order like magnitudes, NaN on top.
uint larger_magnitude(uint most, uint bits) {
    return (bits & 0x7fffffffu) > (most & 0x7fffffffu) ? bits : most;
}

// a / b of positive normal floats as bits, rounded to nearest. Devices need not divide so exactly, so this
// divides bit by bit. 24 bits over 24 are never halfway between two results. Zero where the result is not
// normal.
uint quotient(uint a, uint b) {
    uint rest = a & 0x7fffffu | 0x800000u, result = 0u;
    const uint divisor = b & 0x7fffffu | 0x800000u;
    int exponent = int(a >> 23) - int(b >> 23) + 127;
    if (rest < divisor) {
        rest <<= 1;
        --exponent;
    }
    [[dont_unroll]] for (int n = 0; n < 25; ++n) {
        const bool fits = rest >= divisor;
        result = result << 1 | uint(fits);
        rest = rest - (fits ? divisor : 0u) << 1;
    }
    return exponent < 1 ? 0u : (uint(exponent - 1) << 23) + (result + 1u >> 1);
}

struct BlockScale {
    uint stored;    // float16
    float inverse;  // multiplier of the block's values
};
const uint kNanScale = 0x7e00u;  // scale of a block that has a NaN or an infinity

// `most`: the block's number of the largest magnitude, as bits. Of q4_0 that one becomes -8.
BlockScale scale_of_block(uint most, bool is_q8_0) {
    const uint magnitude = most & 0x7fffffffu;
    const uint scale = quotient(magnitude, floatBitsToUint(is_q8_0 ? 127.0 : 8.0));
    const uint sign = is_q8_0 ? 0u : ~most & 0x80000000u;
    const uint stored = float16_bits(uintBitsToFloat(scale));
    if (magnitude >= 0x7f800000u || stored >= 0x7c00u) return BlockScale(kNanScale, 0.0);
    const uint inverse = scale == 0u ? 0u : quotient(floatBitsToUint(1.0), scale);
    return BlockScale(stored | sign >> 16, uintBitsToFloat(inverse | sign));
}

// A number times the inverse scale as a byte: halves go away from zero.
uint q8_0_number(float number, float inverse) {
    precise const float scaled = number * inverse;
    const int whole = int(scaled);
    precise const float rest = scaled - float(whole);
    return uint(whole + int(rest >= 0.5) - int(rest <= -0.5)) & 0xffu;
}
// As 4 bits, 8 too large.
uint q4_0_number(float number, float inverse) {
    precise const float scaled = number * inverse;
    precise const float raised = scaled + 8.5;
    return min(uint(raised), 15u);
}

#endif
