// One element of a host buffer, widened exactly on load and rounded once on store.
#pragma once

#include <fovea/fovea.h>

#include "problem/compressed.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

namespace fovea::reference {

// float64 to float32, rounded to odd: rounding to the nearest, and then again to a narrower type, would round
// twice; this keeps the information that the second rounding needs.
inline float round_to_odd(double value) {
    float narrow = static_cast<float>(value);
    if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
        uint32_t bits = std::bit_cast<uint32_t>(narrow);
        if (std::fabs(static_cast<double>(narrow)) > std::fabs(value)) --bits;
        narrow = std::bit_cast<float>(bits | 1u);
    }
    return narrow;
}
inline float round_to_odd(float value) { return value; }

// `type` is a float or a quantized type; `index` counts elements.
template <class Real>
Real load(const void* data, FoveaDtype type, int64_t index) {
    return with_numbers(type, data, [=](const auto from) { return Real(widened(from[index])); });
}

template <class Real>
void load_row(const void* data, FoveaDtype type, int64_t first, uint32_t count, Real* out) {
    for (uint32_t n = 0; n < count; ++n) out[n] = load<Real>(data, type, first + n);
}

template <class Real>
void store(void* data, FoveaDtype type, int64_t index, Real value) {
    with_elements(type, data, [=](auto* to) {
        if constexpr (sizeof *to == sizeof(float))
            to[index] = static_cast<float>(value);
        else
            narrow(round_to_odd(value), to[index]);
    });
}

// Computes sums[r] = sum_n a[n] * row_r[n] in ascending order of n, for rows that begin at elements first[r].
// It computes four rows at once, because four independent chains of additions use the CPU better; each sum
// has the same bits as if computed separately.
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
    with_numbers(type, data, [&](const auto from) {
        dot_rows(a, first, count, sums, [=](int64_t n) { return Real(widened(from[n])); });
    });
}

// sums[n] += factor * row[n].
template <class Real>
void add_scaled(Real* sums, Real factor, const void* data, FoveaDtype type, int64_t first, uint32_t count) {
    with_numbers(type, data, [&](const auto from) {
        for (uint32_t n = 0; n < count; ++n) sums[n] += factor * Real(widened(from[first + n]));
    });
}

}  // namespace fovea::reference
