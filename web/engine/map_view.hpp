// Deep zoom: any rectangle of a long head's weight matrix, reduced to pixels from q, k and lse. The matrix is
// never held.
#pragma once

#include "engine_call.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace fovea::web {

class MapView {
  public:
    // A synthetic causal head in which the usual patterns are planted: an attention sink on the first token,
    // a diagonal (recent tokens), and stripes where a passage comes again (induction).
    MapView(std::uint32_t tokens, std::uint32_t dim, std::uint32_t seed);

    // Runs the next slices of the forward pass that yields lse, about `max_flops` of them. Progress 0..1.
    Result<double> prepare(Engine& engine, double max_flops);

    // Mass (mean over the pixel's rows of the sum over its columns), then max, each [rows, columns]. Pixels
    // outside the matrix or above the diagonal are 0; pixel edges past the last token count only what is
    // there.
    const std::vector<float>& tile(Engine& engine, std::int32_t level, std::int32_t row, std::int32_t column,
                                   std::int32_t rows, std::int32_t columns, bool sampled);
    double cell(std::uint32_t query, std::uint32_t key) const;

  private:
    std::uint32_t tokens_, dim_;
    float scale_;
    std::vector<float> q_, k_, lse_;
    std::vector<float> k_panels_;  // groups of 4 keys, dimension by dimension: [tokens / 4, dim, 4]
    Plan plan_;
    std::uint64_t next_slice_ = 0;
    std::vector<float> pixels_;

    void plant_patterns(std::uint32_t seed);
    void pack_keys();
    void reduce_pixel_row(std::int32_t level, std::int64_t pixel_row, std::int32_t column,
                          std::int32_t columns, float* mass, float* max) const;
    void sample_pixel_row(std::int32_t level, std::int64_t pixel_row, std::int32_t column,
                          std::int32_t columns, float* mass, float* max) const;
};

}  // namespace fovea::web
