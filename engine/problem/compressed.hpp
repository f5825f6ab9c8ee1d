// Quantized KV caches: the two 8-bit floats of the Open Compute Project (OCP 8-bit Floating Point
// Specification 1.0) and ggml's blocks q8_0 and q4_0. Reading is exact; writing is what OCP's saturating
// conversion and ggml's quantize_row_*_ref do, so that a cache has the bits of theirs. Plain arithmetic, the
// same bits everywhere; no allocation, no error, safe from any thread.
#pragma once

#include "problem/elements.hpp"
#include "problem/problem.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace fovea {

// One sign bit, `kFraction` bits of fraction, the exponent between them; subnormal values as in IEEE 754.
template <uint32_t kFraction, uint32_t kBias, uint32_t kLargest, uint32_t kNan>
struct Float8 {
    static constexpr uint8_t from_float(float value) {
        const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
        const uint32_t sign = bits >> 24 & 0x80u;
        if (magnitude > 0x7f800000u) return uint8_t(sign | kNan);
        if (magnitude == 0x7f800000u)
            return uint8_t(sign | (kLargest + 1u));  // infinity, or where there is none NaN
        const uint32_t shift = 23u - kFraction;
        uint32_t code = 0;
        if (magnitude >= (128u - kBias) << 23) {
            const uint32_t odd = magnitude >> shift & 1u;
            code = ((magnitude + (1u << (shift - 1u)) - 1u + odd) >> shift) - ((127u - kBias) << kFraction);
        } else {
            // A sum beyond 2^23 has no fraction: the addition rounds to nearest even.
            const float unit = std::bit_cast<float>((127u + kBias - 1u + kFraction) << 23);
            code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * unit + 0x1p23f) & 0xffu;
        }
        return uint8_t(sign | (code > kLargest ? kLargest : code));
    }
};
using E4m3 = Float8<3, 7, 0x7eu, 0x7fu>;
using E5m2 = Float8<2, 15, 0x7bu, 0x7eu>;

constexpr float e5m2_to_float(uint8_t code) { return half_to_float(uint16_t(uint32_t{code} << 8)); }
constexpr float e4m3_to_float(uint8_t code) {
    const uint32_t sign = uint32_t{code} << 24 & 0x80000000u, magnitude = code & 0x7fu;
    if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
    // Exponent and fraction move to float32's places; the multiplication corrects the bias, also for
    // subnormal values.
    return std::bit_cast<float>(magnitude << 20 | sign) * 0x1p120f;
}

// Number `index` of a tensor that begins at `data`; `type` is quantized.
float compressed_number(const unsigned char* data, FoveaDtype type, int64_t index);

// Quantizes `count` values, in whole blocks, from element `index` of the tensor on. A block becomes NaN as a
// whole if float16 cannot hold its scale or if a value is not finite: its values would be lost.
void compress_row(FoveaDtype type, const float* from, size_t count, unsigned char* data, int64_t index);

// Elements of any type of keys and values, to be read by index: calls body(numbers), where widened() converts
// numbers[n].
struct CompressedNumbers {
    const unsigned char* data;
    FoveaDtype type;
    float operator[](int64_t n) const { return compressed_number(data, type, n); }
};
template <class Body>
inline decltype(auto) with_numbers(FoveaDtype type, const void* data, Body&& body) {
    if (is_quantized(type)) return body(CompressedNumbers{static_cast<const unsigned char*>(data), type});
    return with_elements(type, data, [&](const auto* from) -> decltype(auto) { return body(from); });
}

}  // namespace fovea
