#include <fovea/model/executor.hpp>
#include <fovea/model/strict.hpp>

#include <cmath>

#include "model/strict_attention.hpp"

namespace fovea {
Result<AttentionResult> StrictExecutor::attention(const AttentionProblem& problem) {
    const Result<std::unique_ptr<ProblemCall>> made = problem_call(problem);
    if (!made) return made.error();
    ProblemCall& call = **made;
    if (Result<void> r = attend_strictly(call.call, call.bindings, problem.scale, problem.dropout_p); !r)
        return r.error();
    return std::move(call.result);
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
    const uint64_t width = rope.rotated(dim);
    RopeTables tables{F32Tensor({len, width / 2}), F32Tensor({len, width / 2})};
    for (uint64_t i = 0; i < len; ++i) {
        for (uint64_t n = 0; n < width / 2; ++n) {
            double frequency =
                std::pow(rope.theta, -2.0 * static_cast<double>(n) / static_cast<double>(width));
            if (!rope.divisors.empty()) frequency /= rope.divisors[n];
            const double angle = static_cast<double>(rope.first_position + i) * frequency;
            tables.cos.row(i)[n] = static_cast<float>(std::cos(angle) * rope.magnitude);
            tables.sin.row(i)[n] = static_cast<float>(std::sin(angle) * rope.magnitude);
        }
    }
    return tables;
}

Result<F32Tensor> StrictExecutor::rope(const F32Tensor& x, const Rope& rope) {
    const uint64_t len = x.shape[2], pairs = rope.rotated(x.shape[3]) / 2;
    const RopeTables tables = rope_tables(rope, len, x.shape[3]);
    F32Tensor y = x;
    for (uint64_t row = 0; row < x.rows(); ++row) {
        const auto cos = tables.cos.row(row % len), sin = tables.sin.row(row % len);
        for (uint64_t n = 0; n < pairs; ++n) {
            const uint64_t first = rope.interleaved ? 2 * n : n;
            const uint64_t second = rope.interleaved ? 2 * n + 1 : n + pairs;
            const float a = x.row(row)[first], b = x.row(row)[second];
            y.row(row)[first] = cos[n] * a - sin[n] * b;
            y.row(row)[second] = sin[n] * a + cos[n] * b;
        }
    }
    return y;
}

}  // namespace fovea
