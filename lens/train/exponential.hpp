// exp in plain float32 operations, so that it has the same bits on every machine, whatever its C library; a
// compiler can compute several at once. Within 2 units in the last place; 0 below -87.
#pragma once

#include <bit>
#include <cstdint>

namespace fovea {

// x <= 0.
inline float exponential(float x) {
    const float bounded = x > -87.0f ? x : -87.0f;
    // x = n ln 2 + r, |r| <= ln 2 / 2; ln 2 in two parts, whose first has few enough bits for n times it to
    // be exact (Cody and Waite, 1980). Adding and taking away 1.5 * 2^23 rounds to a whole number.
    const float shifted = bounded * 1.44269504f + 12582912.0f;
    const float n = shifted - 12582912.0f;
    const float r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;
    // Minimax polynomial of the Cephes library's expf.
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float power = (p * (r * r) + r) + 1.0f;
    const float scale = std::bit_cast<float>((std::bit_cast<int32_t>(shifted) << 23) + 0x3f800000);
    return x > -87.0f ? power * scale : 0.0f;
}

}  // namespace fovea
