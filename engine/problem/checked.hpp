// 64-bit size arithmetic that remembers an overflow instead of wrapping.
#pragma once

#include <cstdint>

namespace fovea {

struct Checked {
    uint64_t value = 0;
    bool overflow = false;

    constexpr Checked() = default;
    constexpr Checked(uint64_t v) : value(v) {}

    friend constexpr Checked operator*(Checked a, Checked b) {
        Checked r;
        r.overflow = a.overflow || b.overflow || (a.value != 0 && b.value > UINT64_MAX / a.value);
        r.value = r.overflow ? 0 : a.value * b.value;
        return r;
    }
    friend constexpr Checked operator+(Checked a, Checked b) {
        Checked r;
        r.overflow = a.overflow || b.overflow || b.value > UINT64_MAX - a.value;
        r.value = r.overflow ? 0 : a.value + b.value;
        return r;
    }
};

constexpr uint64_t ceil_div(uint64_t n, uint64_t d) { return n / d + (n % d != 0); }
// `alignment` is a power of two; the caller knows that n is far from the end of the range.
constexpr uint64_t align_up(uint64_t n, uint64_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }
constexpr uint64_t align_down(uint64_t n, uint64_t alignment) { return n & ~(alignment - 1); }

}  // namespace fovea
