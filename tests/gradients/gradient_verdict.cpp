// The error rule of support/verdict.hpp for gradients: of every row at most twice the error of plain float32
// loops, and a floor. The floor is what the roundings of the row's logits, products and sums come to, carried
// to the gradient: 2^-24 of the sum of the magnitudes that meet in it, times the units of a logit.
#include "gradients/gradient_case.hpp"

#include "problem/backward.hpp"
#include "problem/philox.hpp"
#include "problem/problem.hpp"
#include "reference/tolerance.hpp"
#include "support/number_types.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fovea::test {
namespace {

using namespace reference;

// Sums of magnitudes by row of each gradient: relative error 2^-24 of them is one unit.
struct Magnitudes {
    std::vector<double> dq, dk, dv, dbias, dalibi, dsinks;
};

class Measure {
  public:
    Measure(const GradientCase& g, const Problem& p, const Backward& w) : g_(g), c_(g.c), p_(p), w_(w) {}

    Magnitudes run() {
        const FoveaAttentionDesc& d = c_.desc;
        const size_t queries = size_t(d.batch) * d.heads_q * d.len_q,
                     keys = size_t(d.batch) * d.heads_kv * d.len_kv;
        m_.dq.assign(queries, 0);
        m_.dk.assign(keys, 0);
        m_.dv.assign(keys, 0);
        m_.dbias.assign(size_t(w_.bias_batch) * w_.bias_heads * size_t(w_.bias_rows) *
                            size_t(std::max<int64_t>(w_.bias_keys, 0)),
                        0);
        m_.dalibi.assign(d.heads_q, 0);
        m_.dsinks.assign(d.heads_q, 0);
        for (uint32_t b = 0; b < d.batch; ++b)
            for (uint32_t h = 0; h < d.heads_q; ++h)
                for (int64_t i = 0; i < entry_of(c_, b).q_length; ++i) add_row(b, h, i);
        return std::move(m_);
    }

  private:
    double number(FoveaBinding binding, FoveaDtype type, int64_t element) const {
        return read_float(g_.clean[binding], type, element);
    }
    double largest(FoveaBinding binding, FoveaDtype type, int64_t first, uint32_t count) const {
        double most = 0;
        for (uint32_t n = 0; n < count; ++n)
            most = std::max(most, std::fabs(number(binding, type, first + n)));
        return most;
    }
    bool kept(uint32_t b, uint32_t h, int64_t i, int64_t j) const {
        if (!p_.dropout) return true;
        if (!p_.dropout_mask.present) return dropout_keeps(p_, b * p_.heads_q + h, uint32_t(i), uint32_t(j));
        const MatrixView& m = p_.dropout_mask;
        if (j >= m.keys) return false;
        const int64_t at = b * m.strides.batch + h * m.strides.head + i * m.strides.row + j;
        return g_.clean[FOVEA_BIND_DROPOUT_MASK][size_t(at)] != std::byte{0};
    }

    void add_row(uint32_t b, uint32_t h, int64_t i) {
        const FoveaAttentionDesc& d = c_.desc;
        const size_t row = (size_t(b) * d.heads_q + h) * d.len_q + size_t(i);
        const uint32_t h_kv = h / (d.heads_q / d.heads_kv);
        const double units = g_.forward.logit_units[row] + 16;
        const double lse = number(FOVEA_BIND_LSE, FOVEA_F32, int64_t(row));
        const double d_lse =
            w_.lse_gradient ? std::fabs(number(FOVEA_BIND_DLSE, FOVEA_F32, int64_t(row))) : 0;
        const Entry e = entry_of(c_, b);
        const int64_t q = query_element(c_, q_strides(c_), b, h, i), o = query_element(c_, p_.o, b, h, i),
                      d_o = query_element(c_, w_.d_o, b, h, i);
        double delta = d_lse;
        for (uint32_t n = 0; n < d.dim_v; ++n)
            delta += std::fabs(number(FOVEA_BIND_O, p_.o_type, o + n) *
                               number(FOVEA_BIND_DO, w_.do_type, d_o + n));
        if (std::isfinite(lse) && p_.sinks)
            m_.dsinks[h] +=
                (units * std::exp(number(FOVEA_BIND_SINKS, FOVEA_F32, h) - lse) + kFlushed / kRounding) *
                delta;
        if (sees_nothing(c_, b, h, i)) return;
        const double q_most = largest(FOVEA_BIND_Q, p_.q_type, q, d.dim_qk),
                     do_most = largest(FOVEA_BIND_DO, w_.do_type, d_o, d.dim_v),
                     scale = std::fabs(double(p_.scale));
        for (int64_t j = 0; j < e.kv_length; ++j) {
            if (!is_visible(c_, b, h, i, j)) continue;
            const int64_t k = key_element(c_, k_strides(c_), b, h_kv, j),
                          v = key_element(c_, v_strides(c_), b, h_kv, j);
            double score = 0, value = 0;
            for (uint32_t n = 0; n < d.dim_qk; ++n)
                score += number(FOVEA_BIND_Q, p_.q_type, q + n) * number(FOVEA_BIND_K, p_.k_type, k + n);
            for (uint32_t n = 0; n < d.dim_v; ++n)
                value += std::fabs(number(FOVEA_BIND_DO, w_.do_type, d_o + n) *
                                   number(FOVEA_BIND_V, p_.v_type, v + n));
            score *= p_.scale;
            score = p_.logit.capped(score, [](double x) { return std::tanh(x); });
            const double distance = double(j - (i + e.offset));
            if (p_.alibi) score += number(FOVEA_BIND_ALIBI, FOVEA_F32, h) * distance;
            if (p_.bias.present) score += bias_at(c_, b, h, i, j);
            const double weight = std::exp(std::min(score - lse, 1.0));
            const double factor = kept(b, h, i, j) ? (p_.dropout ? double(p_.keep_scale) : 1.0) : 0.0;
            // A term that a kernel rounds to zero is an error of the weight itself.
            const double rounded = units * weight + kFlushed / kRounding;
            // So is what a driver flushes of the logit's gradient, which Vulkan lets it do below 2^-126.
            const double masked = rounded * (factor * value + delta) + kSmallest / kRounding;
            m_.dq[row] += masked * scale * largest(FOVEA_BIND_K, p_.k_type, k, d.dim_qk);
            const size_t key = (size_t(b) * d.heads_kv + h_kv) * d.len_kv + size_t(j);
            m_.dk[key] += masked * scale * q_most;
            m_.dv[key] += rounded * factor * do_most;
            m_.dalibi[h] += masked * std::fabs(distance);
            if (p_.bias.present) {
                const size_t own =
                    (size_t(w_.bias_batch > 1 ? b : 0) * w_.bias_heads + (w_.bias_heads > 1 ? h : 0)) *
                        size_t(w_.bias_rows) +
                    (w_.bias_rows > 1 ? size_t(i) : 0);
                m_.dbias[own * size_t(w_.bias_keys) + size_t(j)] += masked;
            }
        }
    }

    const GradientCase& g_;
    const Case& c_;
    const Problem& p_;
    const Backward& w_;
    Magnitudes m_;
};

class Judge {
  public:
    Judge(const GradientCase& g, const Tensors& got) : g_(g), got_(got) {}

    GradientVerdict run() {
        if (make_problem(&g_.c.desc, p_, nullptr) != FOVEA_OK ||
            make_backward(&g_.backward, p_, w_, nullptr) != FOVEA_OK) {
            fail("the description of a case was refused");
            return verdict_;
        }
        const Magnitudes m = Measure(g_, p_, w_).run();
        judge_rows("dq", FOVEA_GRAD_Q, FOVEA_BIND_DQ, w_.dq, w_.dq_type, true, p_.dim_qk, m.dq);
        judge_rows("dk", FOVEA_GRAD_K, FOVEA_BIND_DK, w_.dk, w_.dk_type, false, p_.dim_qk, m.dk);
        judge_rows("dv", FOVEA_GRAD_V, FOVEA_BIND_DV, w_.dv, w_.dv_type, false, p_.dim_v, m.dv);
        judge_numbers("dbias", FOVEA_GRAD_BIAS, FOVEA_BIND_DBIAS, m.dbias);
        judge_numbers("dalibi", FOVEA_GRAD_ALIBI, FOVEA_BIND_DALIBI, m.dalibi);
        judge_numbers("dsinks", FOVEA_GRAD_SINKS, FOVEA_BIND_DSINKS, m.dsinks);
        return verdict_;
    }

  private:
    void fail(const std::string& text) {
        if (verdict_.ok) verdict_.text = text;
        verdict_.ok = false;
    }

    void judge_rows(const char* name, uint32_t gradient, FoveaBinding binding, const FoveaStrides& s,
                    FoveaDtype type, bool queries, uint32_t dim, const std::vector<double>& magnitudes) {
        if (!w_.wants(gradient) || !verdict_.ok) return;
        const FoveaAttentionDesc& d = g_.c.desc;
        const uint32_t heads = queries ? d.heads_q : d.heads_kv;
        const auto rows = int64_t(queries ? d.len_q : d.len_kv);
        const size_t element = dtype_bytes(type);
        std::vector<bool> written(got_[binding].size(), false);
        for (uint32_t b = 0; b < d.batch; ++b) {
            const Entry e = entry_of(g_.c, b);
            const bool packed = queries ? d.packed_rows_q > 0 : d.packed_rows_kv > 0;
            const int64_t end = packed ? (queries ? e.q_length : e.kv_length) : rows;
            for (uint32_t h = 0; h < heads; ++h)
                for (int64_t n = 0; n < end; ++n) {
                    const int64_t first =
                        queries ? query_element(g_.c, s, b, h, n) : key_element(g_.c, s, b, h, n);
                    const size_t flat = (size_t(b) * heads + h) * size_t(rows) + size_t(n);
                    char place[80];
                    snprintf(place, sizeof place, "%s[b=%u, h=%u, %lld]", name, b, h,
                             static_cast<long long>(n));
                    compare(place, binding, type, first, dim, magnitudes[flat]);
                    std::fill_n(written.begin() + ptrdiff_t(size_t(first) * element), dim * element, true);
                }
        }
        if (w_.adds(gradient)) return;
        for (size_t n = 0; n < written.size() && verdict_.ok; ++n)
            if (!written[n] && got_[binding][n] != kUntouched)
                fail(std::string(name) + ": byte " + std::to_string(n) +
                     " belongs to no row and was written");
    }

    void judge_numbers(const char* name, uint32_t gradient, FoveaBinding binding,
                       const std::vector<double>& magnitudes) {
        if (!w_.wants(gradient)) return;
        for (size_t n = 0; n < magnitudes.size() && verdict_.ok; ++n)
            compare(std::string(name) + "[" + std::to_string(n) + "]", binding, FOVEA_F32, int64_t(n), 1,
                    magnitudes[n]);
    }

    void compare(const std::string& place, FoveaBinding binding, FoveaDtype type, int64_t first,
                 uint32_t count, double magnitude) {
        double plain_error = 0, error = 0, most = 0;
        uint32_t worst = 0;
        const auto report = [&](uint32_t n, double tolerance) {
            char text[200];
            snprintf(text, sizeof text, " %u: expected %.9g, got %.9g, plain %.9g, tolerance %.3g", n,
                     double(read_float(g_.exact[binding], FOVEA_F32, first + n)),
                     double(read_float(got_[binding], type, first + n)),
                     double(read_float(g_.plain[binding], type, first + n)), tolerance);
            fail(place + text);
        };
        for (uint32_t n = 0; n < count; ++n) {
            const float exact = read_float(g_.exact[binding], FOVEA_F32, first + n);
            float got = read_float(got_[binding], type, first + n);
            const float plain = read_float(g_.plain[binding], type, first + n);
            const bool may_overflow = may_round_to_infinity(type, exact);
            // A sum within the allowed error may exceed the range of its 16 bits; then the stored infinity
            // counts as the end of the range. The infinity of the plain loops does not count, or two
            // infinities would excuse each other.
            if (type == FOVEA_F16 && std::isfinite(exact) && !may_overflow && std::isinf(got))
                got = std::copysign(kHalfOverflow, got);
            if (std::isnan(exact) != std::isnan(got)) return report(n, 0);
            if (std::isinf(exact) && got != exact) return report(n, 0);
            if (std::isinf(got) && !std::isinf(exact) && !may_overflow) return report(n, 0);
            if (!std::isfinite(exact) || !std::isfinite(got)) continue;
            most = std::max(most, std::fabs(double(exact)));
            if (std::isfinite(plain)) plain_error = std::max(plain_error, std::fabs(double(plain) - exact));
            if (const double off = std::fabs(double(got) - exact); off > error) error = off, worst = n;
        }
        const double tolerance = gradient_tolerance(plain_error, magnitude, most, type);
        if (!(error <= tolerance)) report(worst, tolerance);
        verdict_.worst_share = std::max(verdict_.worst_share, error / tolerance);
    }

    const GradientCase& g_;
    const Tensors& got_;
    Problem p_{};
    Backward w_{};
    GradientVerdict verdict_;
};

}  // namespace

GradientVerdict judge_gradients(const GradientCase& g, const Tensors& got) { return Judge(g, got).run(); }

}  // namespace fovea::test
