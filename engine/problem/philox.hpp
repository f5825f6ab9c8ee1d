// The dropout mask as a pure function of its coordinates. shaders/dropout.glsl is the same function; a test
// compares both.
#pragma once

#include "problem/problem.hpp"

#include <fovea/philox.hpp>

#include <cstdint>

namespace fovea {

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
