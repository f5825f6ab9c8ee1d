// Sums and exponentials with the same bits on every machine, whatever its compiler and C library.
#pragma once

#include <bit>
#include <cstdint>

namespace fovea {

// Returns the sum of term(0) .. term(count - 1) in a fixed order: eight partial sums, element n in number
// n % 8, added pairwise. A compiler may keep the eight in one register.
template <class Term>
inline float sum_of(uint32_t count, Term term) {
    float part[8] = {};
    uint32_t n = 0;
    for (; n + 8 <= count; n += 8)
        for (uint32_t lane = 0; lane < 8; ++lane) part[lane] += term(n + lane);
    for (; n < count; ++n) part[n % 8] += term(n);
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

// Returns exp(x) for x <= 0 by plain float32 operations; a compiler can compute several at once. Within 2
// units in the last place; 0 below -87.
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
