#include <fovea/model/f32_tensor.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace fovea {

uint64_t element_count(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>{});
}

F32Tensor reshaped(F32Tensor tensor, Shape shape) {
    tensor.shape = std::move(shape);
    return tensor;
}

F32Tensor transposed(const F32Tensor& tensor) {
    const uint64_t columns = tensor.columns();
    const uint64_t rows = tensor.shape[tensor.rank() - 2];
    F32Tensor result = tensor;
    std::swap(result.shape[tensor.rank() - 1], result.shape[tensor.rank() - 2]);
    for (uint64_t matrix = 0; matrix < tensor.values.size(); matrix += rows * columns) {
        for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < columns; ++j) {
                result.values[matrix + j * rows + i] = tensor.values[matrix + i * columns + j];
            }
        }
    }
    return result;
}

F32Tensor split_heads(const F32Tensor& tensor, uint64_t head_count) {
    const uint64_t batch = tensor.shape[0], tokens = tensor.shape[1];
    const uint64_t head_dim = tensor.shape[2] / head_count;
    F32Tensor result({batch, head_count, tokens, head_dim});
    for (uint64_t row = 0; row < batch * tokens; ++row) {
        for (uint64_t head = 0; head < head_count; ++head) {
            const auto from = tensor.row(row).subspan(head * head_dim, head_dim);
            const uint64_t to = (row / tokens * head_count + head) * tokens + row % tokens;
            std::copy(from.begin(), from.end(), result.row(to).begin());
        }
    }
    return result;
}

F32Tensor merge_heads(const F32Tensor& tensor) {
    const uint64_t batch = tensor.shape[0], head_count = tensor.shape[1];
    const uint64_t tokens = tensor.shape[2], head_dim = tensor.shape[3];
    F32Tensor result({batch, tokens, head_count * head_dim});
    for (uint64_t row = 0; row < batch * tokens; ++row) {
        for (uint64_t head = 0; head < head_count; ++head) {
            const auto from = tensor.row((row / tokens * head_count + head) * tokens + row % tokens);
            std::copy(from.begin(), from.end(), result.row(row).subspan(head * head_dim).begin());
        }
    }
    return result;
}

F32Tensor slice_columns(const F32Tensor& tensor, uint64_t first, uint64_t count) {
    Shape shape = tensor.shape;
    shape.back() = count;
    F32Tensor result(std::move(shape));
    for (uint64_t row = 0; row < tensor.rows(); ++row) {
        const auto from = tensor.row(row).subspan(first, count);
        std::copy(from.begin(), from.end(), result.row(row).begin());
    }
    return result;
}

F32Tensor concat_columns(std::span<const F32Tensor> parts) {
    Shape shape = parts.front().shape;
    shape.back() = 0;
    for (const F32Tensor& part : parts) shape.back() += part.columns();
    F32Tensor result(std::move(shape));
    for (uint64_t row = 0; row < result.rows(); ++row) {
        auto to = result.row(row).begin();
        for (const F32Tensor& part : parts) to = std::copy(part.row(row).begin(), part.row(row).end(), to);
    }
    return result;
}

}  // namespace fovea
