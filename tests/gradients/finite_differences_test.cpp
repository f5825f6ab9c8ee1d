// The float64 loops against central differences of the forward call's meaning, which is worked out here from
// the text of fovea.h, pair by pair, in extended precision.
#include "gradients/gradient_case.hpp"
#include "problem/philox.hpp"
#include "reference/backward_loops.hpp"
#include "support/case_generator.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fovea::test {
namespace {

using Wide = long double;

// The inputs of a call by coordinates, so that rows which share memory can be changed separately.
struct Numbers {
    std::vector<Wide> q, k, v, bias, slopes, sinks;
};

class ForwardMeaning {
  public:
    ForwardMeaning(const GradientCase& g, const Problem& p, const Backward& w)
        : g_(g), c_(g.c), d_(c_.desc), p_(p), w_(w) {}

    Numbers numbers() const {
        Numbers n;
        for (uint32_t b = 0; b < d_.batch; ++b) {
            const Entry e = entry_of(c_, b);
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < int64_t(d_.len_q); ++i)
                    take(n.q, FOVEA_BIND_Q, d_.q_type, i < e.q_length,
                         i < e.q_length ? query_element(c_, q_strides(c_), b, h, i) : 0, d_.dim_qk);
            for (uint32_t h = 0; h < d_.heads_kv; ++h)
                for (int64_t j = 0; j < int64_t(d_.len_kv); ++j) {
                    const bool inside = j < e.kv_length;
                    take(n.k, FOVEA_BIND_K, d_.k_type, inside,
                         inside ? key_element(c_, k_strides(c_), b, h, j) : 0, d_.dim_qk);
                    take(n.v, FOVEA_BIND_V, d_.v_type, inside,
                         inside ? key_element(c_, v_strides(c_), b, h, j) : 0, d_.dim_v);
                }
        }
        if (p_.bias.present)
            for (uint32_t b = 0; b < p_.bias.batch; ++b)
                for (uint32_t h = 0; h < p_.bias.heads; ++h)
                    for (int64_t i = 0; i < p_.bias.rows; ++i)
                        for (int64_t j = 0; j < p_.bias.keys; ++j) {
                            const int64_t at = b * p_.bias.strides.batch + h * p_.bias.strides.head +
                                               i * p_.bias.strides.row + j;
                            const Wide x = read_float(g_.clean[FOVEA_BIND_BIAS], p_.bias.type, at);
                            n.bias.push_back(std::isfinite(double(x)) ? x : 0);
                        }
        for (uint32_t h = 0; h < d_.heads_q; ++h) {
            if (p_.alibi) n.slopes.push_back(read_float(g_.clean[FOVEA_BIND_ALIBI], FOVEA_F32, h));
            if (d_.flags & FOVEA_FLAG_SINKS)
                n.sinks.push_back(read_float(g_.clean[FOVEA_BIND_SINKS], FOVEA_F32, h));
        }
        return n;
    }

    // Computes o and lse of one row; lse is -inf if the row is fully masked and there is no sink.
    Wide row(const Numbers& n, uint32_t b, uint32_t h, int64_t i, std::vector<Wide>& o) const {
        const Entry e = entry_of(c_, b);
        const size_t q = ((size_t(b) * d_.heads_q + h) * d_.len_q + size_t(i)) * d_.dim_qk;
        const size_t head = size_t(b) * d_.heads_kv + h / (d_.heads_q / d_.heads_kv);
        std::vector<Wide> logits(d_.len_kv, -INFINITY);
        Wide most = n.sinks.empty() ? -INFINITY : n.sinks[h];
        for (int64_t j = 0; j < e.kv_length; ++j) {
            if (!is_visible(c_, b, h, i, j)) continue;
            Wide score = 0;
            for (uint32_t x = 0; x < d_.dim_qk; ++x)
                score += n.q[q + x] * n.k[(head * d_.len_kv + size_t(j)) * d_.dim_qk + x];
            score *= p_.scale;
            score = p_.logit.capped(score, tanhl);
            if (p_.alibi) score += n.slopes[h] * Wide(j - (i + e.offset));
            if (p_.bias.present) score += n.bias[bias_element(b, h, i, j)];
            logits[size_t(j)] = score;
            most = std::max(most, score);
        }
        o.assign(d_.dim_v, 0);
        if (most == -INFINITY) return most;
        Wide sum = n.sinks.empty() ? 0 : expl(n.sinks[h] - most);
        for (const Wide x : logits) sum += expl(x - most);
        for (int64_t j = 0; j < e.kv_length; ++j) {
            if (logits[size_t(j)] == -INFINITY || !kept(b, h, i, j)) continue;
            const Wide weight = expl(logits[size_t(j)] - most) / sum * (p_.dropout ? Wide(p_.keep_scale) : 1);
            for (uint32_t x = 0; x < d_.dim_v; ++x)
                o[x] += weight * n.v[(head * d_.len_kv + size_t(j)) * d_.dim_v + x];
        }
        return most + logl(sum);
    }

    // The function that is differentiated.
    Wide loss(const Numbers& n) const {
        Wide sum = 0;
        std::vector<Wide> o;
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < entry_of(c_, b).q_length; ++i) {
                    const Wide lse = row(n, b, h, i, o);
                    if (lse == -INFINITY) continue;
                    const int64_t first = query_element(c_, w_.d_o, b, h, i);
                    for (uint32_t x = 0; x < d_.dim_v; ++x)
                        if (o[x] != 0)
                            sum += o[x] * read_float(g_.clean[FOVEA_BIND_DO], w_.do_type, first + x);
                    const size_t flat = (size_t(b) * d_.heads_q + h) * d_.len_q + size_t(i);
                    if (w_.lse_gradient)
                        sum += lse * read_float(g_.clean[FOVEA_BIND_DLSE], FOVEA_F32, int64_t(flat));
                }
        return sum;
    }

    size_t bias_element(uint32_t b, uint32_t h, int64_t i, int64_t j) const {
        const MatrixView& m = p_.bias;
        const size_t row = (size_t(m.batch > 1 ? b : 0) * m.heads + (m.heads > 1 ? h : 0)) * size_t(m.rows) +
                           (m.rows > 1 ? size_t(i) : 0);
        return row * size_t(m.keys) + size_t(j);
    }

  private:
    void take(std::vector<Wide>& to, FoveaBinding binding, FoveaDtype type, bool inside, int64_t first,
              uint32_t count) const {
        for (uint32_t x = 0; x < count; ++x)
            to.push_back(inside ? read_float(g_.clean[binding], type, first + x) : 0);
    }
    bool kept(uint32_t b, uint32_t h, int64_t i, int64_t j) const {
        if (!p_.dropout) return true;
        if (!p_.dropout_mask.present) return dropout_keeps(p_, b * p_.heads_q + h, uint32_t(i), uint32_t(j));
        const MatrixView& m = p_.dropout_mask;
        const int64_t at = b * m.strides.batch + h * m.strides.head + i * m.strides.row + j;
        return j < m.keys && g_.clean[FOVEA_BIND_DROPOUT_MASK][size_t(at)] != std::byte{0};
    }

    const GradientCase& g_;
    const Case& c_;
    const FoveaAttentionDesc& d_;
    const Problem& p_;
    const Backward& w_;
};

constexpr Wide kStep = 1e-4L;

// (f(x + h) - f(x - h)) / 2h in the form that is right to the fourth order.
Wide difference(const ForwardMeaning& meaning, Numbers& n, Wide& x, Wide step) {
    const Wide held = x;
    const auto at = [&](Wide steps) {
        x = held + steps * step;
        return meaning.loss(n);
    };
    const Wide slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
    x = held;
    return slope;
}

struct Worst {
    double share = 0;
    uint64_t checked = 0, seed = 0;
};

// Compares some elements of every gradient of a case.
void check_case(uint64_t seed, Worst& worst) {
    Case c = forward_case(seed, 6e3);
    // A bias of -FLT_MAX swallows its scores: what is left of them is no longer a function.
    if (c.values == Values::low_bias) c.values = Values::normal;
    if (c.bias_pattern == BiasPattern::single_lowest) c.bias_pattern = BiasPattern::finite;
    settle(c);
    FoveaAttentionBackwardDesc backward = draw_backward(c);
    backward.accumulate = 0;
    const Result<GradientCase> g = prepare_gradients(std::move(c), backward);
    ASSERT_TRUE(g) << g.error().text;
    Problem p{};
    Backward w{};
    ASSERT_EQ(make_problem(&g->c.desc, p, nullptr), FOVEA_OK);
    ASSERT_EQ(make_backward(&backward, p, w, nullptr), FOVEA_OK);
    if (p.len_q == 0 || p.len_kv == 0) return;
    const ForwardMeaning meaning(*g, p, w);
    Numbers n = meaning.numbers();
    const BackwardParts parts = parts_of(p, w);
    // The forward results in float64, without the roundings of storage.
    const size_t rows = size_t(p.batch) * p.heads_q * size_t(p.len_q);
    std::vector<double> lse(rows, -INFINITY), o(rows * p.dim_v, 0);
    std::vector<Wide> row;
    for (uint32_t b = 0; b < p.batch; ++b)
        for (uint32_t h = 0; h < p.heads_q; ++h)
            for (int64_t i = 0; i < entry_of(g->c, b).q_length; ++i) {
                const size_t flat = (size_t(b) * p.heads_q + h) * size_t(p.len_q) + size_t(i);
                lse[flat] = double(meaning.row(n, b, h, i, row));
                for (uint32_t x = 0; x < p.dim_v; ++x) o[flat * p.dim_v + x] = double(row[x]);
            }
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t x = 0; x < FOVEA_BIND_COUNT; ++x)
        bindings[x] = {const_cast<std::byte*>(g->clean[x].data()), g->clean[x].size()};
    const reference::BackwardLoops<double> loops(p, w, bindings, {lse.data(), o.data()});
    std::vector<double> scratch(reference::BackwardLoops<double>::scratch_count(p));
    const auto compare = [&](const char* name, size_t at, double got, Wide& x, Wide step = kStep) {
        const double expected = double(difference(meaning, n, x, step));
        const double tolerance = 1e-8 * (1 + std::fabs(expected));
        worst.share = std::max(worst.share, std::fabs(got - expected) / tolerance);
        ++worst.checked;
        EXPECT_NEAR(got, expected, tolerance)
            << name << " " << at << " of seed " << seed << ": " << describe_gradients(*g);
    };
    Random random(seed);
    for (int turn = 0; turn < 3; ++turn) {
        if (parts.query_rows) {
            const size_t r = random.below(parts.query_rows), x = random.below(p.dim_qk);
            compare("dq", r, loops.query_row(r, scratch.data())[x], n.q[r * p.dim_qk + x]);
        }
        if (parts.key_rows) {
            const size_t r = random.below(parts.key_rows), x = random.below(p.dim_qk),
                         y = random.below(p.dim_v);
            const double* sums = loops.key_rows(r, scratch.data());
            const double dk = sums[x], dv = sums[p.dim_qk + y];
            compare("dk", r, dk, n.k[r * p.dim_qk + x]);
            compare("dv", r, dv, n.v[r * p.dim_v + y]);
        }
        if (parts.bias_rows) {
            const size_t r = random.below(parts.bias_rows), j = random.below(uint64_t(w.bias_keys));
            compare("dbias", r, loops.bias_row(r, scratch.data())[j], n.bias[r * size_t(w.bias_keys) + j]);
        }
        if (parts.slopes) {
            const auto h = uint32_t(random.below(parts.slopes));
            // A slope moves a logit by the distance of its key.
            compare("dalibi", h, loops.slope(h, scratch.data()), n.slopes[h],
                    kStep / Wide(1 + p.len_q + p.len_kv + std::abs(p.q_offset)));
        }
        if (parts.sinks) {
            const auto h = uint32_t(random.below(parts.sinks));
            compare("dsinks", h, loops.sink(h), n.sinks[h]);
        }
    }
}

TEST(Gradients, float64_loops_agree_with_central_differences_on_five_hundred_descriptions) {
    Worst worst;
    for (uint64_t n = 0; n < 500 && !HasFailure(); ++n) check_case(case_seed(31, n), worst);
    RecordProperty("checked", std::to_string(worst.checked));
    EXPECT_GT(worst.checked, 4000u);
    printf("worst: %.3g of the tolerance, %llu elements\n", worst.share,
           static_cast<unsigned long long>(worst.checked));
}

}  // namespace
}  // namespace fovea::test
