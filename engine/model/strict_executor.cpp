#include <fovea/model/executor.hpp>
#include <fovea/model/strict.hpp>
#include <fovea/model/torch_random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Sizes of a problem, and the result's tensors that it asks for.
struct Sizes {
    uint64_t batch, heads_q, heads_kv, len_q, len_kv, dim_v;

    explicit Sizes(const AttentionProblem& problem)
        : batch(problem.q->shape[0]),
          heads_q(problem.q->shape[1]),
          heads_kv(problem.k->shape[1]),
          len_q(problem.q->shape[2]),
          len_kv(problem.k->shape[2]),
          dim_v(problem.v->shape[3]) {}

    Shape matrix() const { return {batch, heads_q, len_q, len_kv}; }
};

AttentionResult allocate(const AttentionProblem& problem, const Sizes& sizes) {
    const auto wants = [&](uint32_t bit) { return (problem.outputs & bit) != 0; };
    AttentionResult result;
    if (wants(FOVEA_OUTPUT_O)) result.o = F32Tensor({sizes.batch, sizes.heads_q, sizes.len_q, sizes.dim_v});
    if (wants(FOVEA_OUTPUT_LSE)) result.lse = F32Tensor({sizes.batch, sizes.heads_q, sizes.len_q});
    if (wants(FOVEA_OUTPUT_SCORES)) result.scores = F32Tensor(sizes.matrix());
    if (wants(FOVEA_OUTPUT_CAPPED)) result.capped = F32Tensor(sizes.matrix());
    if (wants(FOVEA_OUTPUT_MASKED)) result.masked = F32Tensor(sizes.matrix());
    if (wants(FOVEA_OUTPUT_WEIGHTS)) result.weights = F32Tensor(sizes.matrix());
    return result;
}

// One row: query `row` of the flattened [B, Hq, Lq].
class Row {
  public:
    Row(const AttentionProblem& problem, const Sizes& sizes, uint64_t row)
        : problem_(problem), sizes_(sizes), row_(row), values_(sizes.len_kv) {
        const uint64_t head = row / sizes.len_q % sizes.heads_q;
        batch_ = row / sizes.len_q / sizes.heads_q;
        first_key_row_ = (batch_ * sizes.heads_kv + head / (sizes.heads_q / sizes.heads_kv)) * sizes.len_kv;
    }

    std::span<const float> values() const { return values_; }

    void score() {
        const float scale = static_cast<float>(problem_.scale.value);
        for (uint64_t j = 0; j < values_.size(); ++j) {
            const float product = strict::dot(problem_.q->row(row_), problem_.k->row(first_key_row_ + j));
            values_[j] = problem_.scale.divides ? product / scale : product * scale;
        }
    }

    void cap() {
        if (problem_.softcap == 0.0f) return;
        for (float& value : values_) value = problem_.softcap * strict::tanh(value / problem_.softcap);
    }

    void mask() {
        if (problem_.bias != nullptr) add_bias();
        if (!problem_.causal) return;
        const int64_t offset = problem_.align == Align::bottom_right
                                   ? static_cast<int64_t>(sizes_.len_kv) - static_cast<int64_t>(sizes_.len_q)
                                   : 0;
        const int64_t position = static_cast<int64_t>(row_ % sizes_.len_q) + offset;
        for (uint64_t j = 0; j < values_.size(); ++j) {
            if (static_cast<int64_t>(j) > position) values_[j] = kHidden;
        }
    }

    float log_sum_exp() const {
        if (values_.empty()) return kHidden;
        const double largest = *std::max_element(values_.begin(), values_.end());
        if (std::isinf(largest)) return static_cast<float>(largest);
        double sum = 0.0;
        for (const float value : values_) sum += std::exp(static_cast<double>(value) - largest);
        return static_cast<float>(largest + std::log(sum));
    }

    void normalise() { strict::softmax(std::vector<float>(values_), values_); }

    void drop() {
        if (problem_.keep == nullptr) return;
        for (uint64_t j = 0; j < values_.size(); ++j) {
            const bool kept = problem_.keep->row(row_)[j] != 0.0f;
            values_[j] *= dropout_factor(kept ? 1 : 0, problem_.dropout_p);
        }
    }

    void weigh(std::span<float> context) const {
        std::fill(context.begin(), context.end(), 0.0f);
        for (uint64_t j = 0; j < values_.size(); ++j) {
            // A key without weight has no say, whatever its value holds (0 times NaN would be NaN).
            if (values_[j] == 0.0f) continue;
            const auto value = problem_.v->row(first_key_row_ + j);
            for (size_t d = 0; d < context.size(); ++d) {
                const float product = values_[j] * value[d];
                context[d] += product;
            }
        }
    }

  private:
    void add_bias() {
        const F32Tensor& bias = *problem_.bias;
        const uint64_t head = bias.shape[1] == 1 ? 0 : row_ / sizes_.len_q % sizes_.heads_q;
        const uint64_t entry = bias.shape[0] == 1 ? 0 : batch_;
        const auto added = bias.row((entry * bias.shape[1] + head) * sizes_.len_q + row_ % sizes_.len_q);
        for (uint64_t j = 0; j < values_.size(); ++j) {
            // Set, not added: a hidden key's score may be NaN.
            values_[j] = added[j] == kHidden ? kHidden : values_[j] + added[j];
        }
    }

    const AttentionProblem& problem_;
    const Sizes& sizes_;
    uint64_t row_, batch_, first_key_row_;
    std::vector<float> values_;
};

}  // namespace

Result<AttentionResult> StrictExecutor::attention(const AttentionProblem& problem) {
    if (problem.dropout_p != 0.0 && problem.keep == nullptr) {
        return Error{FOVEA_UNSUPPORTED, "dropout_p",
                     "the strict path drops by a keep mask only; none was given"};
    }
    const Sizes sizes(problem);
    AttentionResult result = allocate(problem, sizes);
    const auto store = [&](F32Tensor& matrix, uint32_t bit, uint64_t index, const Row& row) {
        if ((problem.outputs & bit) == 0) return;
        std::copy(row.values().begin(), row.values().end(), matrix.row(index).begin());
    };
    for (uint64_t index = 0; index < sizes.batch * sizes.heads_q * sizes.len_q; ++index) {
        Row row(problem, sizes, index);
        row.score();
        store(result.scores, FOVEA_OUTPUT_SCORES, index, row);
        row.cap();
        store(result.capped, FOVEA_OUTPUT_CAPPED, index, row);
        row.mask();
        store(result.masked, FOVEA_OUTPUT_MASKED, index, row);
        if ((problem.outputs & FOVEA_OUTPUT_LSE) != 0) result.lse.values[index] = row.log_sum_exp();
        row.normalise();
        row.drop();
        store(result.weights, FOVEA_OUTPUT_WEIGHTS, index, row);
        if ((problem.outputs & FOVEA_OUTPUT_O) != 0) row.weigh(result.o.row(index));
    }
    return result;
}

Result<F32Tensor> StrictExecutor::linear(const F32Tensor& x, const Linear& layer) {
    const F32Tensor& by_output = layer.weight;
    F32Tensor y = layer.layout == WeightLayout::out_in ? strict::product_transposed(x, by_output)
                                                       : strict::product(x, by_output);
    if (layer.has_bias()) {
        for (uint64_t row = 0; row < y.rows(); ++row) {
            for (uint64_t j = 0; j < y.columns(); ++j) y.row(row)[j] += layer.bias.values[j];
        }
    }
    return y;
}

RopeTables rope_tables(const Rope& rope, uint64_t len, uint64_t dim) {
    RopeTables tables{F32Tensor({len, dim / 2}), F32Tensor({len, dim / 2})};
    for (uint64_t i = 0; i < len; ++i) {
        for (uint64_t n = 0; n < dim / 2; ++n) {
            const double frequency =
                std::pow(rope.theta, -2.0 * static_cast<double>(n) / static_cast<double>(dim));
            const double angle = static_cast<double>(rope.first_position + i) * frequency;
            tables.cos.row(i)[n] = static_cast<float>(std::cos(angle));
            tables.sin.row(i)[n] = static_cast<float>(std::sin(angle));
        }
    }
    return tables;
}

Result<F32Tensor> StrictExecutor::rope(const F32Tensor& x, const Rope& rope) {
    const uint64_t len = x.shape[2], dim = x.shape[3];
    const RopeTables tables = rope_tables(rope, len, dim);
    F32Tensor y = x;
    for (uint64_t row = 0; row < x.rows(); ++row) {
        const auto cos = tables.cos.row(row % len), sin = tables.sin.row(row % len);
        for (uint64_t n = 0; n < dim / 2; ++n) {
            const uint64_t first = rope.interleaved ? 2 * n : n;
            const uint64_t second = rope.interleaved ? 2 * n + 1 : n + dim / 2;
            const float a = x.row(row)[first], b = x.row(row)[second];
            y.row(row)[first] = cos[n] * a - sin[n] * b;
            y.row(row)[second] = sin[n] * a + cos[n] * b;
        }
    }
    return y;
}

}  // namespace fovea
