// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the dropout mask as
// a pure function of its coordinates. shaders/dropout.glsl is the same function; a test compares both.
#pragma once

#include "problem/problem.hpp"

#include <cstdint>

namespace fovea {

struct Philox4 {
    uint32_t word[4];
};

inline Philox4 philox4x32_10(Philox4 counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53u} * counter.word[0];
        const uint64_t b = uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{uint32_t(b >> 32) ^ counter.word[1] ^ key0, uint32_t(b),
                    uint32_t(a >> 32) ^ counter.word[3] ^ key1, uint32_t(a)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

// Philox's key. The lower half of the offset is the counter's last word.
inline uint64_t dropout_key(const Problem& p) { return p.dropout_seed ^ (p.dropout_offset >> 32 << 32); }

// The four words that decide keys 4*(j/4) .. 4*(j/4)+3 of query i; bh = b * Hq + h. See FoveaAttentionDesc.
inline Philox4 dropout_words(const Problem& p, uint32_t bh, uint32_t i, uint32_t j) {
    const uint64_t key = dropout_key(p);
    return philox4x32_10(
        {{(p.first_key + j) / 4, p.first_query + i, p.first_batch_head + bh, uint32_t(p.dropout_offset)}},
        uint32_t(key), uint32_t(key >> 32));
}

inline bool dropout_keeps(const Problem& p, uint32_t bh, uint32_t i, uint32_t j) {
    return dropout_words(p, bh, i, j).word[j % 4] >= p.drop_threshold;
}

}  // namespace fovea
