// Random descriptions of rope, linear and append: what the suites that test them draw alike.
#pragma once

#include "problem/problem.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <fovea/fovea.h>

#include <algorithm>

namespace fovea::test {

inline FoveaDtype random_type(Random& random) {
    return random.pick<FoveaDtype>({FOVEA_F32, FOVEA_F16, FOVEA_BF16});
}

// Draws a type for a KV cache, quantized half of the time.
inline FoveaDtype random_cache_type(Random& random) {
    if (random.chance(0.5)) return random_type(random);
    return random.pick(quantized_types());
}
// A type of blocks that a weight may have.
inline FoveaDtype random_block_type(Random& random) { return random.pick(quantized_types(kUseLinear)); }

// [B, H, L, D] packed, as [B, L, H, D], or with gaps of whole blocks of `block` numbers.
inline FoveaStrides random_strides(Random& random, uint64_t h, uint64_t l, uint64_t d, uint64_t block = 1) {
    switch (random.below(3)) {
        case 0:
            return {};
        case 1:
            return {int64_t(l * h * d), int64_t(d), int64_t(h * d)};
        default: {
            const auto gap = [&](uint64_t most) { return block * random.below(most); };
            const uint64_t row = d + gap(5), head = l * row + gap(7);
            return {int64_t(h * head + gap(9)), int64_t(head), int64_t(row)};
        }
    }
}

// Contiguous and paged caches, with and without a sequence table; heads of up to `most_dim` elements, or of a
// few blocks.
inline FoveaAppendDesc random_append(Random& random, uint32_t most_dim) {
    FoveaAppendDesc d{};
    d.struct_size = sizeof d;
    d.x_type = random_cache_type(random), d.y_type = random_cache_type(random);
    const uint32_t x_block = storage_block(d.x_type).numbers, y_block = storage_block(d.y_type).numbers;
    d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
    d.dim = 1 + uint32_t(random.below(most_dim)), d.len = 1 + random.below(9);
    if (x_block * y_block > 1) d.dim = std::max(x_block, y_block) * (1 + d.dim % 3);
    d.has_sequences = uint32_t(random.below(2));
    d.first_row = d.has_sequences ? 0 : random.below(20);
    uint64_t rows = d.capacity = 1 + random.below(30);
    if (random.chance(0.5)) {
        d.page_size = 1 + uint32_t(random.below(6));
        // Tables hold -2 .. 21: with fewer pages than that some entries lead nowhere.
        d.page_count = 8 + uint32_t(random.below(20));
        d.block_table_pages = 1 + random.below(8);
        d.capacity = d.block_table_pages * d.page_size - random.below(d.page_size);
        rows = d.page_size;
    }
    // Without a table all rows must fit; a table is known only to the run, which leaves the rest out.
    d.len = std::min(d.len, d.capacity);
    d.first_row = std::min(d.first_row, d.capacity - d.len);
    d.x_strides = random_strides(random, d.heads, d.len, d.dim, x_block);
    d.y_strides = random_strides(random, d.heads, rows, d.dim, y_block);
    // Pages inside heads: the last page of a head is followed by the first of another.
    if (d.page_size && random.chance(0.3)) {
        const auto row = int64_t(d.dim), page = int64_t(rows) * row;
        d.y_strides = {page, int64_t(d.page_count) * page, row};
    }
    d.rotate = is_float(d.x_type) && has_scaled_blocks(d.y_type) && random.chance(0.5);
    return d;
}

// From such a cache: a list for each head, or one for all.
inline FoveaGatherDesc random_gather(Random& random, uint32_t most_dim) {
    const FoveaAppendDesc cache = random_append(random, most_dim);
    FoveaGatherDesc d{};
    d.struct_size = sizeof d;
    d.x_type = cache.y_type, d.y_type = cache.x_type;
    d.batch = cache.batch, d.heads = cache.heads, d.dim = cache.dim;
    d.len = 1 + random.below(24);
    d.capacity = cache.capacity;
    d.position_heads = random.chance(0.5) ? d.heads : uint32_t(random.below(2));
    d.page_size = cache.page_size, d.page_count = cache.page_count;
    d.block_table_pages = cache.block_table_pages;
    d.x_strides = cache.y_strides;
    // A page past the pool must be detected: if pages are inside heads, it is the next head's.
    if (d.page_size && random.chance(0.5)) {
        const auto row = int64_t(d.dim), page = int64_t(d.page_size) * row;
        d.x_strides = {page, int64_t(d.page_count) * page, row};
    }
    d.y_strides = random_strides(random, d.heads, d.len, d.dim, storage_block(d.y_type).numbers);
    return d;
}

}  // namespace fovea::test
