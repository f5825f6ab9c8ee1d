// Summarizes one head's attention pattern in a few values, to sort and color a grid of heads.
#pragma once

#include <cstdint>
#include <span>

namespace fovea {

// Means over the rows that see a key; 0 where there is none. Weights are taken as they are given (after
// dropout they no longer sum to 1).
struct HeadStats {
    double entropy = 0.0;           // -sum w ln w, in nats: 0 looks at one key, ln n at n keys alike
    double relative_entropy = 0.0;  // entropy / ln(keys that the row sees); 0 for rows that see one
    double mean_distance = 0.0;     // sum w |position - key|, in tokens
    double first_token_mass = 0.0;  // weight of key 0: high in heads that rest there
    double previous_token = 0.0;    // weight of the key before the query's position, over rows that have one
    double largest_weight = 0.0;    // the mean of the rows' largest weights
    uint64_t rows = 0;
};

// Takes one row at a time, so that a matrix need not be held. Not thread-safe.
class HeadStatsCollector {
  public:
    // `position` is the query's position among the keys. For self-attention it is the row.
    void add_row(int64_t position, std::span<const float> weights);
    HeadStats result() const;

  private:
    HeadStats sums_;
    uint64_t rows_with_previous_ = 0;
};

// Returns the statistics of one head's matrix [queries, keys], row-major. Query i has key position i +
// offset.
HeadStats head_stats(std::span<const float> weights, uint64_t keys, int64_t offset = 0);

}  // namespace fovea
