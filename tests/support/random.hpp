// Random numbers that are the same on every machine and compiler: SplitMix64, and a hash for numbers that
// depend on coordinates instead of on the order in which they are drawn.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace fovea::test {

constexpr uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

template <class... Coordinates>
constexpr uint64_t hash(uint64_t seed, Coordinates... coordinates) {
    uint64_t state = mix(seed);
    ((state = mix(state ^ (uint64_t(coordinates) + 0x632BE59BD9B4E019u))), ...);
    return state;
}

// [0, 1)
constexpr double unit(uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

// Close to normal (a sum of four uniforms), variance 1, bounded by 3.5.
constexpr float bell(uint64_t bits) {
    double sum = 0;
    for (int n = 0; n < 4; ++n) sum += double(bits >> (16 * n) & 0xffff) / 65536.0;
    return float((sum - 2.0) * 1.7320508075688772);
}

class Random {
  public:
    explicit Random(uint64_t seed) : state_(mix(seed)) {}

    uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }
    uint64_t below(uint64_t count) { return count ? next() % count : 0; }
    int64_t between(int64_t low, int64_t high) { return low + int64_t(below(uint64_t(high - low) + 1)); }
    double uniform(double low, double high) { return low + (high - low) * unit(next()); }
    bool chance(double probability) { return unit(next()) < probability; }
    template <class T>
    T pick(std::initializer_list<T> values) {
        return values.begin()[below(values.size())];
    }
    template <class T>
    T pick(const std::vector<T>& values) {
        return values[below(values.size())];
    }

  private:
    uint64_t state_;
};

}  // namespace fovea::test
