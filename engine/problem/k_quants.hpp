// ggml's blocks of 256 values (its file ggml-common.h defines them): written from that definition, and the
// products in the order in which ggml forms them, so that every value has its bits. Plain arithmetic; no
// allocation, no error, safe from any thread.
//   q4_k, q5_k  eight groups of 32 values. d and dmin, float16 factors of the groups' scales and
//   mins,
//               12 bytes of `scales`, both by 6 bits, (q5_k: 32 bytes of fifth bits,) then 128 bytes, of
//               which 32 hold two groups, low and high halves.
//   q6_k        sixteen groups of 16 values, each 32 too large. 128 bytes of low halves, 64 of two
//   high bits
//               each, `scales` of 8 bits for each group, d.
#pragma once

#include <fovea/half.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace fovea {

// The values of a group are scale * code - min: d and dmin of the block times the group's scale and min.
struct KGroup {
    float scale, min;
};

inline float half_at(const unsigned char* at) {
    uint16_t half = 0;
    memcpy(&half, at, sizeof half);
    return half_to_float(half);
}

// Blocks of q4_k and q5_k. They share the first part; q5_k adds the fifth bits.
struct Q4K {
    static constexpr uint32_t kGroup = 32, kBytes = 144;
    struct Codes {
        uint32_t scale, min;
    };
    static Codes codes(const unsigned char* block, uint32_t g) {
        const unsigned char* s = block + 4 + g % 4;
        if (g < 4) return {s[0] & 63u, s[4] & 63u};
        return {(s[8] & 15u) | uint32_t(s[0]) >> 6 << 4, uint32_t(s[8]) >> 4 | uint32_t(s[4]) >> 6 << 4};
    }
    static KGroup group(const unsigned char* block, uint32_t g) {
        const Codes of = codes(block, g);
        return {half_at(block) * float(of.scale), half_at(block + 2) * float(of.min)};
    }
    static uint32_t code(const unsigned char* block, uint32_t g, uint32_t l, uint32_t first = 16) {
        return uint32_t(block[first + g / 2 * 32 + l]) >> g % 2 * 4 & 15u;
    }
    static float number(const unsigned char* block, KGroup k, uint32_t g, uint32_t l) {
        return k.scale * float(code(block, g, l)) - k.min;
    }
};
struct Q5K : Q4K {
    static constexpr uint32_t kBytes = 176;
    static float number(const unsigned char* block, KGroup k, uint32_t g, uint32_t l) {
        return k.scale * float(code(block, g, l, 48) | (uint32_t(block[16 + l]) >> g & 1u) << 4) - k.min;
    }
};
struct Q6K {
    static constexpr uint32_t kGroup = 16, kBytes = 210;
    static KGroup group(const unsigned char* block, uint32_t g) {
        return {half_at(block + 208) * float(std::bit_cast<int8_t>(block[192 + g])), 0};
    }
    static float number(const unsigned char* block, KGroup k, uint32_t g, uint32_t l) {
        // A block has halves of 128 values, each of four quarters whose bits are stacked in the same bytes.
        const uint32_t half = g / 8, quarter = g / 2 % 4, at = g % 2 * 16 + l;
        const uint32_t low = uint32_t(block[64 * half + quarter % 2 * 32 + at]) >> quarter / 2 * 4 & 15u;
        const uint32_t high = uint32_t(block[128 + 32 * half + at]) >> 2 * quarter & 3u;
        return k.scale * float(int(low | high << 4) - 32);
    }
};

// Converts the values of one block.
template <class Type>
void widen_k_block(const unsigned char* block, float* to) {
    for (uint32_t g = 0; g < 256 / Type::kGroup; ++g) {
        const KGroup group = Type::group(block, g);
        for (uint32_t l = 0; l < Type::kGroup; ++l) *to++ = Type::number(block, group, g, l);
    }
}
// Number n of a block.
template <class Type>
float k_number(const unsigned char* block, uint32_t n) {
    const uint32_t g = n / Type::kGroup;
    return Type::number(block, Type::group(block, g), g, n % Type::kGroup);
}

}  // namespace fovea
