// A float32 tensor on the host: what goes into a layer and what comes out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace fovea {

using Shape = std::vector<uint64_t>;  // an empty shape is one scalar

uint64_t element_count(const Shape& shape);  // Returns the product of the extents.

// Row-major, no padding; values.size() == element_count(shape).
struct F32Tensor {
    Shape shape;
    std::vector<float> values;

    F32Tensor() : values(1) {}
    explicit F32Tensor(Shape dims) : shape(std::move(dims)), values(element_count(shape)) {}
    F32Tensor(Shape dims, std::vector<float> data) : shape(std::move(dims)), values(std::move(data)) {}

    size_t rank() const { return shape.size(); }
    // The last dimension, and how many rows of that width there are. A scalar is one row of one.
    uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
    uint64_t rows() const { return columns() == 0 ? 0 : values.size() / columns(); }
    std::span<float> row(uint64_t index) { return std::span(values).subspan(index * columns(), columns()); }
    std::span<const float> row(uint64_t index) const {
        return std::span(values).subspan(index * columns(), columns());
    }

    friend bool operator==(const F32Tensor&, const F32Tensor&) = default;
};

// The same values under another shape of as many elements.
F32Tensor reshaped(F32Tensor tensor, Shape shape);

// [.., rows, columns] -> [.., columns, rows].
F32Tensor transposed(const F32Tensor& tensor);

// [batch, tokens, heads * head_dim] -> [batch, heads, tokens, head_dim], and back.
F32Tensor split_heads(const F32Tensor& tensor, uint64_t head_count);
F32Tensor merge_heads(const F32Tensor& tensor);

// Columns [first, first + count) of every row.
F32Tensor slice_columns(const F32Tensor& tensor, uint64_t first, uint64_t count);

// Rows of all parts side by side; the parts differ in nothing but their last dimension.
F32Tensor concat_columns(std::span<const F32Tensor> parts);

}  // namespace fovea
