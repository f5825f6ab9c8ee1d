#include "conformance/node_oracle.hpp"

#include "onnx/tensor_values.hpp"

#include <fovea/half.hpp>

#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

using onnx::ElementType;
using onnx::Tensor;

constexpr double kInf = INFINITY;

double attribute(const onnx::Node& node, const char* name, double fallback) {
    for (const onnx::Attribute& a : node.attributes)
        if (a.name == name) return a.kind == onnx::Attribute::Kind::real ? double(a.real) : double(a.integer);
    return fallback;
}

// A tensor as numbers with axes [a, b, c, d].
struct Numbers {
    int64_t dims[4] = {1, 1, 1, 1};
    std::vector<double> at;
    double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
        return at[size_t(((a * dims[1] + b) * dims[2] + c) * dims[3] + d)];
    }
};

Numbers read(const Tensor& t) {
    Numbers n;
    for (size_t axis = 0; axis < t.dims.size(); ++axis) n.dims[4 - t.dims.size() + axis] = t.dims[axis];
    for (uint64_t i = 0; i < t.elements(); ++i) n.at.push_back(onnx::value_at(t, i));
    return n;
}

// (B, L, H*D) to (B, H, L, D).
Numbers split_heads(const Numbers& flat, int64_t heads) {
    const int64_t batch = flat.dims[1], rows = flat.dims[2], dim = flat.dims[3] / heads;
    Numbers n{{batch, heads, rows, dim}, {}};
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t d = 0; d < dim; ++d) n.at.push_back(flat(0, b, i, h * dim + d));
    return n;
}

Numbers join_rows(const Numbers& past, const Numbers& fresh) {
    Numbers n{{fresh.dims[0], fresh.dims[1], past.dims[2] + fresh.dims[2], fresh.dims[3]}, {}};
    for (int64_t b = 0; b < n.dims[0]; ++b)
        for (int64_t h = 0; h < n.dims[1]; ++h)
            for (int64_t j = 0; j < n.dims[2]; ++j)
                for (int64_t d = 0; d < n.dims[3]; ++d)
                    n.at.push_back(j < past.dims[2] ? past(b, h, j, d) : fresh(b, h, j - past.dims[2], d));
    return n;
}

struct Inputs {
    Numbers q, k, v, mask;
    bool flat, has_mask, mask_is_boolean, has_lengths;
    int64_t past;
    std::vector<double> lengths;
};

const Tensor* given(const onnx::Tensors& inputs, size_t place) {
    return place < inputs.size() && inputs[place] ? &*inputs[place] : nullptr;
}

Inputs read_inputs(const onnx::Node& node, const onnx::Tensors& inputs) {
    Inputs in{};
    in.q = read(*inputs[0]), in.k = read(*inputs[1]), in.v = read(*inputs[2]);
    in.flat = inputs[0]->dims.size() == 3;
    if (in.flat) {
        const auto kv_heads = int64_t(attribute(node, "kv_num_heads", 0));
        in.q = split_heads(in.q, int64_t(attribute(node, "q_num_heads", 0)));
        in.k = split_heads(in.k, kv_heads), in.v = split_heads(in.v, kv_heads);
    }
    if (given(inputs, 4)) {
        in.past = inputs[4]->dims[2];
        in.k = join_rows(read(*inputs[4]), in.k);
        in.v = join_rows(read(*inputs[5]), in.v);
    }
    in.has_mask = given(inputs, 3) != nullptr;
    if (in.has_mask) {
        in.mask = read(*inputs[3]);
        in.mask_is_boolean = inputs[3]->type == ElementType::boolean;
    }
    in.has_lengths = given(inputs, 6) != nullptr;
    if (in.has_lengths) in.lengths = read(*inputs[6]).at;
    return in;
}

// One row of the four matrices that qk_matmul_output may show.
struct Row {
    std::vector<double> stage[4];
};

class Attention {
  public:
    Attention(const onnx::Model& model, const Inputs& in) : node_(model.node), in_(in) {
        scale_ = attribute(node_, "scale", 1 / std::sqrt(double(in.q.dims[3])));
        cap_ = attribute(node_, "softcap", 0);
    }

    double bias(int64_t b, int64_t h, int64_t i, int64_t j) const {
        double sum = 0;
        if (in_.has_mask) {
            const Numbers& m = in_.mask;
            const int64_t column = m.dims[3] == 1 ? 0 : j;
            if (column >= m.dims[3]) return -kInf;
            const double x =
                m(m.dims[0] == 1 ? 0 : b, m.dims[1] == 1 ? 0 : h, m.dims[2] == 1 ? 0 : i, column);
            sum = in_.mask_is_boolean ? (x != 0 ? 0 : -kInf) : x;
        }
        const double offset =
            in_.has_lengths ? in_.lengths[size_t(b)] - double(in_.q.dims[2]) : double(in_.past);
        const double position = double(i) + offset, left = attribute(node_, "left_window_size", -1),
                     right = attribute(node_, "right_window_size", -1);
        if (attribute(node_, "is_causal", 0) != 0 && double(j) > position) return -kInf;
        if (left >= 0 && double(j) < position - left) return -kInf;
        if (right >= 0 && double(j) > position + right) return -kInf;
        if (in_.has_lengths && double(j) >= in_.lengths[size_t(b)]) return -kInf;
        return sum;
    }

    Row row(int64_t b, int64_t h, int64_t i) const {
        Row r;
        const int64_t kv = h / (in_.q.dims[1] / in_.k.dims[1]);
        double max = -kInf, sum = 0;
        for (int64_t j = 0; j < in_.k.dims[2]; ++j) {
            double raw = 0;
            for (int64_t d = 0; d < in_.q.dims[3]; ++d) raw += in_.q(b, h, i, d) * in_.k(b, kv, j, d);
            raw *= scale_;
            const double capped = cap_ != 0 ? cap_ * std::tanh(raw / cap_) : raw;
            r.stage[0].push_back(raw);
            r.stage[1].push_back(capped);
            r.stage[2].push_back(capped + bias(b, h, i, j));
            max = std::fmax(max, r.stage[2].back());
        }
        for (const double x : r.stage[2]) sum += x == -kInf ? 0 : std::exp(x - max);
        for (const double x : r.stage[2]) r.stage[3].push_back(x == -kInf ? 0 : std::exp(x - max) / sum);
        return r;
    }

    double y(const Row& r, int64_t b, int64_t h, int64_t d) const {
        const int64_t kv = h / (in_.q.dims[1] / in_.k.dims[1]);
        double sum = 0;
        for (int64_t j = 0; j < in_.k.dims[2]; ++j)
            if (r.stage[3][size_t(j)] != 0) sum += r.stage[3][size_t(j)] * in_.v(b, kv, j, d);
        return sum;
    }

  private:
    const onnx::Node& node_;
    const Inputs& in_;
    double scale_, cap_;
};

}  // namespace

Tensor make_tensor(ElementType type, std::vector<int64_t> dims, const std::vector<double>& numbers) {
    Tensor t;
    t.type = type;
    t.dims = std::move(dims);
    t.data.resize(numbers.size() * onnx::size_of(type));
    const auto put = [&](size_t n, auto value) {
        memcpy(t.data.data() + n * sizeof value, &value, sizeof value);
    };
    for (size_t n = 0; n < numbers.size(); ++n) {
        const double x = numbers[n];
        switch (type) {
            case ElementType::float16:
                put(n, float_to_half(float(x)));
                break;
            case ElementType::bfloat16:
                put(n, float_to_bfloat(float(x)));
                break;
            case ElementType::float64:
                put(n, x);
                break;
            case ElementType::int64:
                put(n, int64_t(x));
                break;
            case ElementType::int32:
                put(n, int32_t(x));
                break;
            case ElementType::boolean:
                put(n, uint8_t(x != 0));
                break;
            default:
                put(n, float(x));
        }
    }
    return t;
}

onnx::Tensors expect_attention(const onnx::Model& model, const onnx::Tensors& inputs) {
    const Inputs in = read_inputs(model.node, inputs);
    const Attention attention(model, in);
    const int64_t batch = in.q.dims[0], heads = in.q.dims[1], rows = in.q.dims[2], keys = in.k.dims[2],
                  v_dim = in.v.dims[3];
    const auto mode = size_t(attribute(model.node, "qk_matmul_output_mode", 0));
    std::vector<double> y(size_t(batch * heads * rows * v_dim)), scores;
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t i = 0; i < rows; ++i) {
                const Row row = attention.row(b, h, i);
                scores.insert(scores.end(), row.stage[mode].begin(), row.stage[mode].end());
                for (int64_t d = 0; d < v_dim; ++d) {
                    const int64_t at = in.flat ? ((b * rows + i) * heads + h) * v_dim + d
                                               : ((b * heads + h) * rows + i) * v_dim + d;
                    y[size_t(at)] = attention.y(row, b, h, d);
                }
            }
    std::vector<int64_t> y_dims{batch, heads, rows, v_dim};
    if (in.flat) y_dims = {batch, rows, heads * v_dim};
    const ElementType type = inputs[0]->type;
    onnx::Tensors outputs(model.node.outputs.size());
    for (size_t place = 0; place < outputs.size(); ++place) {
        if (model.node.outputs[place].empty()) continue;
        if (place == 0) outputs[0] = make_tensor(type, y_dims, y);
        if (place == 1) outputs[1] = make_tensor(inputs[1]->type, {in.k.dims, in.k.dims + 4}, in.k.at);
        if (place == 2) outputs[2] = make_tensor(inputs[2]->type, {in.v.dims, in.v.dims + 4}, in.v.at);
        if (place == 3) outputs[3] = make_tensor(type, {batch, heads, rows, keys}, scores);
    }
    return outputs;
}

onnx::Tensors expect_rotary(const onnx::Model& model, const onnx::Tensors& inputs) {
    const Tensor& x = *inputs[0];
    Numbers numbers = read(x);
    const bool flat = x.dims.size() == 3;
    if (flat) numbers = split_heads(numbers, int64_t(attribute(model.node, "num_heads", 0)));
    const Numbers cos = read(*inputs[1]), sin = read(*inputs[2]);
    const Tensor* ids = given(inputs, 3);
    const int64_t batch = numbers.dims[0], heads = numbers.dims[1], rows = numbers.dims[2],
                  dim = numbers.dims[3];
    auto rotated = int64_t(attribute(model.node, "rotary_embedding_dim", 0));
    if (rotated == 0) rotated = dim;
    const bool interleaved = attribute(model.node, "interleaved", 0) != 0;
    std::vector<double> y(numbers.at.size());
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t i = 0; i < rows; ++i) {
                const auto put = [&](int64_t d, double value) {
                    y[size_t(flat ? ((b * rows + i) * heads + h) * dim + d
                                  : ((b * heads + h) * rows + i) * dim + d)] = value;
                };
                for (int64_t d = rotated; d < dim; ++d) put(d, numbers(b, h, i, d));
                for (int64_t n = 0; n < rotated / 2; ++n) {
                    const auto position = ids ? int64_t(onnx::value_at(*ids, uint64_t(b * rows + i))) : 0;
                    const double c = ids ? cos(0, 0, position, n) : cos(0, b, i, n);
                    const double s = ids ? sin(0, 0, position, n) : sin(0, b, i, n);
                    const int64_t first = interleaved ? 2 * n : n,
                                  second = interleaved ? 2 * n + 1 : n + rotated / 2;
                    const double x1 = numbers(b, h, i, first), x2 = numbers(b, h, i, second);
                    put(first, c * x1 - s * x2);
                    put(second, s * x1 + c * x2);
                }
            }
    return {make_tensor(x.type, x.dims, y)};
}

}  // namespace fovea::test
