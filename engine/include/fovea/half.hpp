#pragma once
// float16 and bfloat16 to and from float32, as every kernel reads and writes them. Conversion to float32 is
// exact; conversion from float32 rounds to nearest, ties to even, and keeps NaN a (quiet) NaN. Integer
// arithmetic, so that every compiler, target and constant expression gives the same bits. No allocation, no
// error, safe from any thread.
#include <bit>
#include <cstdint>

namespace fovea {

/// IEEE 754 binary16 (1 sign, 5 exponent, 10 fraction bits) to float32. Exact for every input.
constexpr float half_to_float(uint16_t half) noexcept {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    const uint32_t fraction = half & 0x3ffu;
    if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
    // Zero and subnormals are fraction * 2^-24; both factors and the product are exact in float32.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// float32 to IEEE 754 binary16, round to nearest even; |x| >= 65520 becomes infinity.
constexpr uint16_t float_to_half(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    // The quiet bit is set, so that a NaN whose payload sits in the lost bits cannot turn into infinity.
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) {
        // Normal: rebias the exponent by -112; the carry of the rounding may run into it, which is right.
        const uint32_t odd = (magnitude >> 13) & 1u;
        return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
    if (magnitude <= 0x33000000u) return static_cast<uint16_t>(sign);  // up to 2^-25, the tie with zero
    const uint32_t shift = 126u - (magnitude >> 23);
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t kept = significand >> shift;
    const uint32_t lost = significand & ((1u << shift) - 1u);
    const uint32_t tie = 1u << (shift - 1u);
    const bool up = lost > tie || (lost == tie && (kept & 1u) != 0);
    return static_cast<uint16_t>(sign | (kept + (up ? 1u : 0u)));
}

/// An element of bfloat16 in memory. It is a type of its own so that overloads can tell it from uint16_t,
/// which holds binary16.
enum class Bfloat16 : uint16_t {};

/// bfloat16 (the upper half of a float32) to float32. Exact for every input.
constexpr float bfloat_to_float(uint16_t bfloat) noexcept {
    return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

/// float32 to bfloat16, round to nearest even.
constexpr uint16_t float_to_bfloat(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace fovea
