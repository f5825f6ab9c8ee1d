// Sums of a row in a fixed order: eight partial sums, element n in number n % 8, added pairwise. So they are
// the same on every machine, and a compiler may keep the eight in one register.
#pragma once

#include <cstdint>

namespace fovea {

// The sum of term(0) .. term(count - 1).
template <class Term>
inline float sum_of(uint32_t count, Term term) {
    float part[8] = {};
    uint32_t n = 0;
    for (; n + 8 <= count; n += 8)
        for (uint32_t lane = 0; lane < 8; ++lane) part[lane] += term(n + lane);
    for (; n < count; ++n) part[n % 8] += term(n);
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

}  // namespace fovea
