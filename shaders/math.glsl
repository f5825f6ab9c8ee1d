// exp, log and tanh to about 1 ulp on every driver: Vulkan's own may err by thousands of ulp, and the
// software drivers' logarithm does. Coefficients: Chebyshev interpolation over the stated range.
#ifndef FOVEA_MATH_GLSL
#define FOVEA_MATH_GLSL

#include "wgsl.glsl"

// Added to an integer below 2^22 it leaves that in the sum's last bits. A software driver turns a conversion
// into a dozen instructions for each lane, because the language requires saturation.
const float kIntegerInBits = 12582912.0;

// exp(x) for x <= 0 or NaN; 0 below -87, where float32 has no normal result.
vec4 exp_of_negative(vec4 x) {
    const vec4 n = roundEven(max(x, vec4(-88.0)) * 1.44269504);
    const vec4 r =
        fma(n, vec4(-1.42860677e-6), fma(n, vec4(-0.693145752), x));  // x - n ln 2, |r| <= ln 2 / 2
    const vec4 tail = fma(r,
                          fma(r, fma(r, fma(r, vec4(0.00139262508), vec4(0.00836323288)), vec4(0.0416665542)),
                              vec4(0.166665767)),
                          vec4(0.5));
    const vec4 value = fma(r * r, tail, r) + 1.0;
    const vec4 power = intBitsToFloat((floatBitsToInt(n + kIntegerInBits) + 127) << 23);
    return mix(value * power, vec4(0.0), lessThan(x, vec4(-87.0)));
}

float exp_of_negative(float x) {
    const float n = roundEven(max(x, -88.0) * 1.44269504);
    const float r = fma(n, -1.42860677e-6, fma(n, -0.693145752, x));
    const float tail =
        fma(r, fma(r, fma(r, fma(r, 0.00139262508, 0.00836323288), 0.0416665542), 0.166665767), 0.5);
    const float power = intBitsToFloat((floatBitsToInt(n + kIntegerInBits) + 127) << 23);
    return x < -87.0 ? 0.0 : (fma(r * r, tail, r) + 1.0) * power;
}

// log(x) for normal x > 0; NaN for NaN.
float log_of_positive(float x) {
    const uint bits = floatBitsToUint(x);
    // Split into exponent and mantissa in [sqrt(1/2), sqrt(2)).
    const int exponent = int(bits - 0x3f3504f3u) >> 23;
    const float m = uintBitsToFloat(bits - (uint(exponent) << 23));
    const float s = (m - 1.0) / (m + 1.0), u = s * s;
    const float tail = fma(u, fma(u, fma(u, 0.23332168, 0.285507583), 0.400001224), 0.666666666);
    const float result = float(exponent) * 0.693147181 + fma(s * u, tail, 2.0 * s);
    return FOVEA_IS_SPECIAL(x) ? x : result;
}

vec4 tanh_of(vec4 x) {
    const vec4 u = x * x;
    const vec4 small =
        fma(x * u,
            fma(u,
                fma(u, fma(u, fma(u, vec4(-0.00609665466), vec4(0.0209971265)), vec4(-0.0538508941)),
                    vec4(0.133327696)),
                vec4(-0.333333289)),
            x);
    const vec4 e = exp_of_negative(-2.0 * abs(x));
    const vec4 large = sign(x) * ((1.0 - e) / (1.0 + e));
    return mix(large, small, lessThan(abs(x), vec4(0.625)));
}

// The nearest float16, ties to even, as bits. packHalf2x16 may round either way.
uint float16_bits(float value) {
    const uint bits = floatBitsToUint(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x47800000u) return sign | 0x7c00u;
    if (magnitude < 0x38800000u) {  // subnormal: the sum's last bit is worth 2^-24
        const float shifted = uintBitsToFloat(magnitude) + 0.5;
        return sign | (floatBitsToUint(shifted) - 0x3f000000u);
    }
    const uint rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return sign | (rounded - 0x38000000u >> 13);
}

// The nearest bfloat16, ties to even, as bits. A NaN stays one.
uint bfloat16_bits(float value) {
    const uint bits = floatBitsToUint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
    return bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}

// 16 bits of a float16 or a bfloat16, which is the upper half of a float32; above them `half` holds zeros.
float value_of_half(uint half_bits, bool is_bfloat) {
    return is_bfloat ? uintBitsToFloat(half_bits << 16) : unpackHalf2x16(half_bits).x;
}
uint half_of_value(float value, bool is_bfloat) {
    return is_bfloat ? bfloat16_bits(value) : float16_bits(value);
}

#endif
