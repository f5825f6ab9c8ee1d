// The parts of a layer between its products, on rows in host memory, by the CPU's kernels.
#pragma once

#include <fovea/model/transformer.hpp>

#include "cpu/kernels.hpp"
#include "problem/row_parts.hpp"

namespace fovea {

// A norm as the kernels take it, and an activation.
NormDesc norm_call(const Norm& norm, uint64_t rows, uint64_t width);
PointwiseRule rule_of(Activation activation);
PointwiseDesc pointwise_call(PointwiseRule rule, uint64_t count, bool has_other);

// The order of heads in memory: side by side, [rows, heads * width], or one head after the other.
enum class HeadOrder { beside, apart };
FoveaRopeDesc rope_call(const Rope& rope, uint64_t rows, uint64_t heads, uint64_t width, HeadOrder order);
// Describes an append of side-by-side heads after the first `held` rows of a cache [heads, capacity, width].
FoveaAppendDesc append_call(uint64_t rows, uint64_t heads, uint64_t width, uint64_t capacity, uint64_t held);

class HostRows {
  public:
    // On the threads that a host lends; null: this one.
    explicit HostRows(const FoveaParallel* parallel);

    // y = norm(x), which may be the same rows; with `sum` x is added to it first, and the norm is of the sum.
    void norm(const Norm& norm, const float* x, uint64_t rows, uint64_t width, float* y,
              float* sum = nullptr) const;
    // As PointwiseDesc says; `other` is null where there is none.
    void pointwise(PointwiseRule rule, const float* x, const float* other, float* y, uint64_t count) const;
    // In place: row i of each head by the angles of row first + i of the tables.
    void rotate(float* x, uint64_t rows, uint64_t heads, uint64_t width, HeadOrder order, const Rope& rope,
                const RopeTables& tables, uint64_t first) const;
    // Appends side-by-side heads after the first `held` rows of a cache [heads, capacity, width].
    void append(const float* x, uint64_t rows, uint64_t heads, uint64_t width, float* cache,
                uint64_t capacity, uint64_t held) const;

  private:
    template <class Body>
    void in_tasks(uint64_t rows, uint64_t width, const Body& body) const;

    const FoveaParallel* parallel_;
    decltype(cpu::Kernels::norm) norm_;
    decltype(cpu::Kernels::pointwise) pointwise_;
    decltype(cpu::Kernels::rope) rope_;
    decltype(cpu::Kernels::append) append_;
};

}  // namespace fovea
