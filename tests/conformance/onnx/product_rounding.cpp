#include "onnx/product_rounding.hpp"

#include "onnx/tensor_values.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::onnx {
namespace {

constexpr double kRounding = 0x1p-11, kProduct = (1 + kRounding) * (1 + kRounding) - 1;

const Attribute* find(const Node& node, std::string_view name) {
    for (const Attribute& a : node.attributes)
        if (a.name == name) return &a;
    return nullptr;
}

// Elements of one row of one head: 3D inputs hold heads side by side in the last axis.
uint64_t row_elems(const Node& node, const Tensor& t, std::string_view heads) {
    const auto last = uint64_t(t.dims.back());
    const Attribute* count = t.dims.size() == 3 ? find(node, heads) : nullptr;
    return count ? last / uint64_t(count->integer) : last;
}

// The largest Euclidean norm of a row, of those that have one. With one element to a row: the largest |x|.
double largest_norm(const std::optional<Tensor>& t, uint64_t row) {
    double most = 0;
    for (uint64_t begin = 0; t && row > 0 && begin < t->elements(); begin += row) {
        double squares = 0;
        for (uint64_t n = begin; n < begin + row; ++n) squares += value_at(*t, n) * value_at(*t, n);
        if (std::isfinite(squares)) most = std::max(most, squares);
    }
    return std::sqrt(most);
}

}  // namespace

std::array<double, 4> product_error(const Node& node, const Tensors& inputs) {
    const auto input = [&](size_t place) { return place < inputs.size() ? inputs[place] : std::nullopt; };
    const std::optional<Tensor>&q = inputs[0], &k = inputs[1], &v = inputs[2];
    const uint64_t dim = row_elems(node, *q, "q_num_heads");
    const Attribute* given = find(node, "scale");
    const double scale =
        given ? std::fabs(double(given->real)) : 1 / std::sqrt(double(std::max<uint64_t>(dim, 1)));
    const double key = std::max(largest_norm(k, dim), largest_norm(input(4), dim));
    const double value = std::max(largest_norm(v, 1), largest_norm(input(5), 1));
    const double score = scale * kProduct * largest_norm(q, dim) * key;
    return {((1 + score) * (1 + kProduct) - 1) * value, 0, 0, score};
}

}  // namespace fovea::onnx
