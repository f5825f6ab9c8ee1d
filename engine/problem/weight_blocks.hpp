// ggml's blocks that only weights have, as its file ggml-common.h defines them. Products are formed in the
// order in which ggml forms them, so that every value has its bits. No allocation, no error, any thread.
//
//   q4_1, q5_0, q5_1: 32 values. d as float16; in q4_1 and q5_1 the least value m; in q5_0 and q5_1 a word of
//   fifth bits. Then 16 bytes: byte l holds values l and l + 16, low and high halves. q5_0: 16 too large.
//
//   q4_k, q5_k: eight groups of 32 values. d and dmin, float16 units of the groups' scales and mins. Both
//   have 6 bits each, in 12 bytes; in q5_k 32 bytes of fifth bits. Then 128 bytes: each 32 hold two groups,
//   low and high halves.
//
//   q6_k: sixteen groups of 16 values, each 32 too large. 128 bytes of low halves, 64 of two high bits each.
//   Then `scales` of 8 bits for each group, and d.
#pragma once

#include <fovea/fovea.h>
#include <fovea/half.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace fovea {

// The values of a group are scale * code - min.
struct BlockGroup {
    float scale, min;
};

inline float half_at(const unsigned char* at) {
    uint16_t half = 0;
    memcpy(&half, at, sizeof half);
    return half_to_float(half);
}

// Blocks of q4_1, q5_0 and q5_1.
template <bool kFifth, bool kLeast>
struct SmallBlock {
    static constexpr bool kHasFifth = kFifth, kHasMin = kLeast;
    static constexpr uint32_t kNumbers = 32, kGroup = 32, kFifths = kLeast ? 4 : 2,
                              kCodes = kFifths + (kFifth ? 4 : 0), kBytes = kCodes + 16;
    static BlockGroup group(const unsigned char* block, uint32_t) {
        return {half_at(block), kLeast ? -half_at(block + 2) : 0};
    }
    static int code(const unsigned char* block, uint32_t, uint32_t l) {
        const int low = block[kCodes + l % 16] >> l / 16 * 4 & 15;
        const int fifth = kFifth ? (block[kFifths + l / 8] >> l % 8 & 1) << 4 : 0;
        return (low | fifth) - (kLeast ? 0 : kFifth ? 16 : 8);
    }
};
using Q41 = SmallBlock<false, true>;
using Q50 = SmallBlock<true, false>;
using Q51 = SmallBlock<true, true>;

// Blocks of q4_k and q5_k: d and dmin of the block times the group's scale and min.
template <bool kFifth>
struct Q45K {
    static constexpr bool kHasFifth = kFifth, kHasMin = true;
    static constexpr uint32_t kNumbers = 256, kGroup = 32, kFifths = 16, kCodes = kFifth ? 48 : 16,
                              kBytes = kCodes + 128;
    static BlockGroup group(const unsigned char* block, uint32_t g) {
        const float d = half_at(block), dmin = half_at(block + 2);
        const unsigned char* s = block + 4 + g % 4;
        if (g < 4) return {d * float(s[0] & 63u), dmin * float(s[4] & 63u)};
        return {d * float((s[8] & 15u) | uint32_t(s[0]) >> 6 << 4),
                dmin * float(uint32_t(s[8]) >> 4 | uint32_t(s[4]) >> 6 << 4)};
    }
    static int code(const unsigned char* block, uint32_t g, uint32_t l) {
        const int low = block[kCodes + g / 2 * 32 + l] >> g % 2 * 4 & 15;
        return kFifth ? low | (block[kFifths + l] >> g & 1) << 4 : low;
    }
};
using Q4K = Q45K<false>;
using Q5K = Q45K<true>;

struct Q6K {
    static constexpr bool kHasMin = false;
    static constexpr uint32_t kNumbers = 256, kGroup = 16, kBytes = 210;
    static BlockGroup group(const unsigned char* block, uint32_t g) {
        return {half_at(block + 208) * float(std::bit_cast<int8_t>(block[192 + g])), 0};
    }
    static int code(const unsigned char* block, uint32_t g, uint32_t l) {
        // A block has halves of 128 values, each of four quarters whose bits are stacked in the same bytes.
        const uint32_t half = g / 8, quarter = g / 2 % 4, at = g % 2 * 16 + l;
        const int low = block[64 * half + quarter % 2 * 32 + at] >> quarter / 2 * 4 & 15;
        const int high = block[128 + 32 * half + at] >> 2 * quarter & 3;
        return (low | high << 4) - 32;
    }
};

// Calls body(Q41()), ..., of the type's blocks.
template <class Body>
decltype(auto) with_weight_block(FoveaDtype type, const Body& body) {
    switch (type) {
        case FOVEA_Q4_1:
            return body(Q41());
        case FOVEA_Q5_0:
            return body(Q50());
        case FOVEA_Q5_1:
            return body(Q51());
        case FOVEA_Q4_K:
            return body(Q4K());
        case FOVEA_Q5_K:
            return body(Q5K());
        default:
            return body(Q6K());
    }
}

template <class Block>
float block_number(const unsigned char* block, BlockGroup group, uint32_t g, uint32_t l) {
    return group.scale * float(Block::code(block, g, l)) - group.min;
}
// Converts the values of one block.
template <class Block>
void widen_block(const unsigned char* block, float* to) {
    for (uint32_t g = 0; g < Block::kNumbers / Block::kGroup; ++g) {
        const BlockGroup group = Block::group(block, g);
        for (uint32_t l = 0; l < Block::kGroup; ++l) *to++ = block_number<Block>(block, group, g, l);
    }
}

}  // namespace fovea
