// Counter-based random numbers: number n of a stream depends only on the stream's name and n.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <fovea/philox.hpp>

namespace fovea {

// The purpose of the numbers; streams of different purposes share none.
enum class StreamPurpose : uint32_t { training_data, held_out_data, weights };

class CounterStream {
  public:
    CounterStream(StreamPurpose purpose, uint64_t seed, uint32_t step, uint32_t row)
        : purpose_(static_cast<uint32_t>(purpose)), seed_(seed), step_(step), row_(row) {}

    // The next whole number below `limit`, which is small against 2^32: its bias is limit / 2^32.
    uint32_t below(uint32_t limit) { return uint32_t(uint64_t{word(count_++)} * limit >> 32); }

    // Number n as one of a standard normal distribution (Box and Muller, 1958). Logarithm, root and cosine
    // are taken in float64 and rounded once.
    float normal(uint32_t n) const {
        const double radius = (double(word(2 * n)) + 1.0) * 0x1p-32;  // (0, 1]
        const double turn = double(word(2 * n + 1)) * 0x1p-32;
        return float(std::sqrt(-2.0 * std::log(radius)) * std::cos(6.283185307179586 * turn));
    }

    // The first `count` of 0 .. limit - 1 in a random order (Fisher and Yates, in Durstenfeld's form).
    std::vector<uint32_t> distinct(uint32_t count, uint32_t limit) {
        std::vector<uint32_t> all(limit);
        for (uint32_t i = 0; i < limit; ++i) all[i] = i;
        for (uint32_t i = 0; i < count; ++i) std::swap(all[i], all[i + below(limit - i)]);
        all.resize(count);
        return all;
    }

  private:
    uint32_t word(uint32_t n) const {
        return philox4x32_10({{n / 4, row_, step_, purpose_}}, uint32_t(seed_), uint32_t(seed_ >> 32))
            .word[n % 4];
    }

    uint32_t purpose_;
    uint64_t seed_;
    uint32_t step_, row_, count_ = 0;
};

}  // namespace fovea
