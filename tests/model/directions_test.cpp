// Singular directions of heads, against matrices and eigenvalues in plain float64 loops.
#include "family_names.hpp"
#include "model/float64_parts.hpp"

#include <fovea/inspect/directions.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<double>;

// Applies a norm without its scale and bias.
Values without_scale(const Norm& n, Values row) {
    if (n.kind == NormKind::none) return row;
    const double mean =
        n.kind == NormKind::layer ? std::accumulate(row.begin(), row.end(), 0.0) / double(row.size()) : 0.0;
    for (size_t c = 0; c < row.size(); ++c)
        row[c] = (row[c] - mean) * (n.weight.values.empty() ? 1.0 : double(n.weight.values[c]));
    return row;
}

Values unit(size_t width, size_t c) {
    Values made(width);
    made[c] = 1;
    return made;
}

// The rows are what each column of the stream becomes: [width, width of the head].
Matrix projected(const Block& b, Linear layer, size_t heads, size_t head, const Norm& after) {
    layer.bias = F32Tensor(Shape{0});
    Matrix made;
    for (size_t c = 0; c < layer.d_in(); ++c) {
        const Values x = unit(layer.d_in(), c);
        const Values all =
            times({b.order == BlockOrder::post ? x : without_scale(b.attention_norm, x)}, layer)[0];
        const size_t width = all.size() / heads;
        made.push_back(without_scale(
            after, {all.begin() + int64_t(head * width), all.begin() + int64_t((head + 1) * width)}));
    }
    return made;
}

// [from, to] of x y'.
Matrix outer(const Matrix& x, const Matrix& y) {
    Matrix made(x.size(), Values(y.size()));
    for (size_t i = 0; i < x.size(); ++i)
        for (size_t j = 0; j < y.size(); ++j)
            made[i][j] = std::inner_product(x[i].begin(), x[i].end(), y[j].begin(), 0.0);
    return made;
}

// Eigenvalues of a symmetric matrix, largest first: Jacobi's rotations of rows and columns.
Values eigenvalues(Matrix m) {
    const size_t n = m.size();
    for (int sweep = 0; sweep < 30; ++sweep)
        for (size_t i = 0; i < n; ++i)
            for (size_t j = i + 1; j < n; ++j) {
                if (m[i][j] == 0) continue;
                const double angle = 0.5 * std::atan2(2 * m[i][j], m[j][j] - m[i][i]);
                const double cos = std::cos(angle), sin = std::sin(angle);
                for (size_t c = 0; c < n; ++c) {
                    const double x = m[i][c], y = m[j][c];
                    m[i][c] = cos * x - sin * y, m[j][c] = sin * x + cos * y;
                }
                for (size_t c = 0; c < n; ++c) {
                    const double x = m[c][i], y = m[c][j];
                    m[c][i] = cos * x - sin * y, m[c][j] = sin * x + cos * y;
                }
            }
    Values made;
    for (size_t i = 0; i < n; ++i) made.push_back(m[i][i]);
    std::ranges::sort(made, std::greater());
    return made;
}

Values by(const Values& x, const Matrix& m) {
    Values made(m[0].size());
    for (size_t i = 0; i < x.size(); ++i)
        for (size_t j = 0; j < made.size(); ++j) made[j] += x[i] * m[i][j];
    return made;
}

void expect_directions(const std::vector<SingularDirection>& of, const Matrix& m) {
    const Values squares = eigenvalues(outer(m, m));
    const double bound = 1e-9 * std::sqrt(squares[0]);
    for (size_t n = 0; n < of.size(); ++n) {
        SCOPED_TRACE("direction " + std::to_string(n));
        const SingularDirection& one = of[n];
        EXPECT_NEAR(one.value * one.value, squares[n], 1e-9 * squares[0]);
        const Values to = by(one.from, m);
        for (size_t c = 0; c < to.size(); ++c) EXPECT_NEAR(to[c], one.value * one.to[c], bound);
        for (size_t i = 0; i <= n; ++i) {
            const auto both = [&](const Values& a, const Values& b) {
                return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
            };
            EXPECT_NEAR(both(one.from, of[i].from), i == n, 1e-9);
            EXPECT_NEAR(both(one.to, of[i].to), i == n, 1e-9);
        }
        EXPECT_GT(*std::ranges::max_element(one.from, {}, [](double x) { return std::abs(x); }), 0);
    }
}

void expect_tokens(const DirectionTokens& of, const Values& direction, const F32Tensor& table, double scale) {
    std::vector<TokenAlong> all;
    for (size_t i = 0; i < table.rows(); ++i) {
        const auto row = table.row(i);
        all.push_back(
            {uint32_t(i), scale * std::inner_product(row.begin(), row.end(), direction.begin(), 0.0)});
    }
    std::ranges::sort(all, std::greater(), &TokenAlong::value);
    ASSERT_EQ(of.high.size(), 4u);
    ASSERT_EQ(of.low.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(of.high[i].value, all[i].value, 1e-5 * std::abs(all[0].value));
        EXPECT_NEAR(of.low[i].value, all[all.size() - 1 - i].value, 1e-5 * std::abs(all[0].value));
        const auto named = std::ranges::find(all, of.high[i].token, &TokenAlong::token);
        EXPECT_NEAR(named->value, of.high[i].value, 1e-5 * std::abs(all[0].value));
    }
}

class Directions : public testing::TestWithParam<std::string> {};

TEST_P(Directions, are_those_of_the_heads_matrices_with_their_tokens) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / GetParam();
    const Result<CheckpointModel> model =
        CheckpointModel::open(fs::exists(folder / "config.json") ? folder : folder / "model.gguf");
    ASSERT_TRUE(model) << model.error().text;
    const ModelConfig& f = model->config();
    const auto layer = uint32_t(f.layers - 1), head = uint32_t(f.heads - 1);
    const Result<HeadDirections> of = head_directions(*model, layer, head, 5, 4);
    ASSERT_TRUE(of) << of.error().text;
    const Block b = *model->block(layer, 1);
    const AttentionPart& a = b.attention;
    const size_t kv_head = a.kv_heads - 1;
    const ScoreScale scale = score_scale(a.rules, f.head_width);
    Matrix q = projected(b, a.query, a.heads, head, a.query_norm);
    for (Values& row : q)
        for (double& value : row) value = scale.divides ? value / scale.value : value * scale.value;
    ASSERT_EQ(of->qk.size(), std::min<size_t>(5, f.head_width));
    expect_directions(of->qk, outer(q, projected(b, a.key, a.kv_heads, kv_head, a.key_norm)));
    Linear output = a.output;
    output.bias = F32Tensor(Shape{0});
    Matrix written;
    for (size_t c = 0; c < f.head_width; ++c)
        written.push_back(without_scale(b.attention_output_norm,
                                        times({unit(output.d_in(), head * f.head_width + c)}, output)[0]));
    Matrix ov;
    for (const Values& row : projected(b, a.value, a.kv_heads, kv_head, {})) ov.push_back(by(row, written));
    expect_directions(of->ov, ov);

    const SingularDirection &first = of->qk[0], &writes = of->ov[0];
    if (f.patches == 0) {
        const Model whole = *model->whole(1);
        expect_tokens(first.from_tokens, first.from, whole.embedding.table, whole.embedding.scale);
        expect_tokens(first.to_tokens, first.to, whole.embedding.table, whole.embedding.scale);
        expect_tokens(writes.from_tokens, writes.from, whole.embedding.table, whole.embedding.scale);
        if (is_present(whole.unembedding))
            expect_tokens(writes.to_tokens, without_scale(whole.final_norm, writes.to),
                          whole.unembedding.weight, 1);
    }
    EXPECT_EQ(writes.to_tokens.high.empty(), !model->has_unembedding());
    EXPECT_EQ(first.to_tokens.high.empty(), f.patches != 0);
    EXPECT_EQ(
        head_directions(*model, uint32_t(f.layers), 0, 1, 1).error().text,
        "layer is " + std::to_string(f.layers) + "; the model has layers 0 to " + std::to_string(layer));
    EXPECT_EQ(head_directions(*model, 0, 99, 1, 1).error().text,
              "head is 99; the model has heads 0 to " + std::to_string(head));
}

INSTANTIATE_TEST_SUITE_P(Models, Directions, testing::ValuesIn(family_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fovea
