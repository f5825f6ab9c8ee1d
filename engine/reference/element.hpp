// One element of a host buffer, widened exactly on load and rounded once on store.
#pragma once

#include <fovea/fovea.h>

#include "problem/half.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace fovea::reference {

// float64 to binary16 in one rounding (nearest even). Rounding to float32 first would round twice; rounding
// to odd in between keeps the information that the second rounding needs.
inline uint16_t round_to_half(double value) {
    float narrow = static_cast<float>(value);
    if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
        uint32_t bits = std::bit_cast<uint32_t>(narrow);
        if (std::fabs(static_cast<double>(narrow)) > std::fabs(value)) --bits;
        narrow = std::bit_cast<float>(bits | 1u);
    }
    return float_to_half(narrow);
}
inline uint16_t round_to_half(float value) { return float_to_half(value); }

// `type` is FOVEA_F32 or FOVEA_F16; `index` counts elements.
template <class Real>
Real load(const void* data, FoveaDtype type, int64_t index) {
    if (type == FOVEA_F16) return Real(half_to_float(static_cast<const uint16_t*>(data)[index]));
    return Real(static_cast<const float*>(data)[index]);
}

template <class Real>
void load_row(const void* data, FoveaDtype type, int64_t first, uint32_t count, Real* out) {
    for (uint32_t n = 0; n < count; ++n) out[n] = load<Real>(data, type, first + n);
}

template <class Real>
void store(void* data, FoveaDtype type, int64_t index, Real value) {
    if (type == FOVEA_F16)
        static_cast<uint16_t*>(data)[index] = round_to_half(value);
    else
        static_cast<float*>(data)[index] = static_cast<float>(value);
}

// sums[r] = sum_n a[n] * row_r[n] in ascending order of n, for rows that begin at elements first[r]. Four at
// once, so that a processor has four chains of additions to work on; each sum is what it would be alone.
constexpr int kDotRows = 4;
template <class Real, class Load>
void dot_rows(const Real* a, const int64_t (&first)[kDotRows], uint32_t count, Real (&sums)[kDotRows],
              const Load& at) {
    Real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (uint32_t n = 0; n < count; ++n) {
        s0 += a[n] * at(first[0] + n);
        s1 += a[n] * at(first[1] + n);
        s2 += a[n] * at(first[2] + n);
        s3 += a[n] * at(first[3] + n);
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

template <class Real>
void dot_rows(const Real* a, const void* data, FoveaDtype type, const int64_t (&first)[kDotRows],
              uint32_t count, Real (&sums)[kDotRows]) {
    if (type == FOVEA_F16) {
        const auto* halves = static_cast<const uint16_t*>(data);
        dot_rows(a, first, count, sums, [=](int64_t n) { return Real(half_to_float(halves[n])); });
    } else {
        const auto* floats = static_cast<const float*>(data);
        dot_rows(a, first, count, sums, [=](int64_t n) { return Real(floats[n]); });
    }
}

// sums[n] += factor * row[n].
template <class Real>
void add_scaled(Real* sums, Real factor, const void* data, FoveaDtype type, int64_t first, uint32_t count) {
    if (type == FOVEA_F16) {
        const auto* row = static_cast<const uint16_t*>(data) + first;
        for (uint32_t n = 0; n < count; ++n) sums[n] += factor * Real(half_to_float(row[n]));
    } else {
        const auto* row = static_cast<const float*>(data) + first;
        for (uint32_t n = 0; n < count; ++n) sums[n] += factor * Real(row[n]);
    }
}

}  // namespace fovea::reference
