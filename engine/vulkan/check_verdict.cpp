#include "vulkan/check_verdict.hpp"

#include "problem/elements.hpp"
#include "reference/tolerance.hpp"

#include <bit>
#include <cfloat>
#include <cstdio>
#include <cstring>

namespace fovea::vulkan {
namespace {

using namespace reference;

class Verdict {
  public:
    Verdict(const CheckProblem& p, const FoveaPlanInfo& info, const CheckResults& r, char* text, size_t room)
        : p_(p), d_(p.attention), info_(info), r_(r), text_(text), room_(room) {}

    bool run() {
        switch (p_.operation) {
            case Operation::attention:
            case Operation::map_tile:
                for_rows([&](const Row& row) {
                    p_.operation == Operation::attention ? judge(row) : judge_tile(row);
                });
                return ok_;
            case Operation::backward:
                judge_gradients();
                return ok_;
            case Operation::append:
            case Operation::gather:
                judge_bits(FOVEA_BIND_Y);
                return ok_;
            case Operation::linear:
                judge_linear();
                return ok_;
            case Operation::rope:
                judge_rows(FOVEA_BIND_Y, p_.rope.y_type, p_.rope.dim, [&](uint64_t row) {
                    return 2 * largest(r_.values[FOVEA_BIND_X], row * p_.rope.dim, p_.rope.dim);
                });
                return ok_;
            case Operation::merge:
                judge_merge();
                return ok_;
            case Operation::norm:
                judge_norm();
                return ok_;
            case Operation::pointwise:
                break;
        }
        judge_pointwise();
        return ok_;
    }

  private:
    struct Row {  // a query of attention
        uint32_t b, h, h_kv;
        int64_t i;
        uint64_t number;
        RowLogits logits;
        double units, value_max;
        bool is_empty;
    };

    void wrong(const char* name, uint64_t row, uint32_t column, double exact, double got, double tolerance) {
        if (ok_)
            snprintf(text_, room_, "%s row %llu column %u is %.9g, not %.9g (tolerance %.2g)", name,
                     static_cast<unsigned long long>(row), column, got, exact, tolerance);
        ok_ = false;
    }

    float in(FoveaBinding binding, int64_t index) const { return r_.values[binding][index]; }
    float in(FoveaBinding binding, uint64_t index) const { return r_.values[binding][index]; }
    float in(FoveaBinding binding, uint32_t index) const { return r_.values[binding][index]; }

    static double largest(const float* values, uint64_t first, uint32_t count) {
        double most = 0;
        for (const float* x = values + first; x < values + first + count; ++x)
            if (std::fabs(*x) <= FLT_MAX) most = std::max(most, double(std::fabs(*x)));
        return most;
    }

    // One row; `tolerance_of(plain_error, largest)`.
    template <class Tolerance>
    void compare(FoveaBinding binding, FoveaDtype type, uint64_t row, uint32_t columns, bool bits,
                 const Tolerance& tolerance_of) {
        if (!ok_) return;
        double plain_error = 0, error = 0, most = 0;
        uint32_t worst = 0;
        const char* name = binding_name(binding);
        for (uint32_t n = 0; n < columns; ++n) {
            const auto at = int64_t(row * columns + n);
            const float exact = element_at(r_.exact[binding], FOVEA_F32, at);
            const float plain = element_at(r_.plain[binding], FOVEA_F32, at);
            const float got = element_at(r_.got[binding], type, at);
            if (bits ? std::bit_cast<uint32_t>(exact) != std::bit_cast<uint32_t>(got)
                     : std::isnan(exact) != std::isnan(got) || (std::isinf(exact) && exact != got))
                return wrong(name, row, n, exact, got, 0);
            if (!std::isfinite(exact)) continue;
            most = std::max(most, std::fabs(double(exact)));
            if (std::isfinite(plain)) plain_error = std::max(plain_error, std::fabs(double(plain) - exact));
            const double e = std::fabs(double(got) - exact);
            if (e > error) error = e, worst = n;
        }
        const double tolerance = tolerance_of(plain_error, most);
        if (error > tolerance)
            wrong(name, row, worst, element_at(r_.exact[binding], FOVEA_F32, int64_t(row * columns + worst)),
                  element_at(r_.got[binding], type, int64_t(row * columns + worst)), tolerance);
    }

    // Operations whose rows are [rows, columns]; `magnitude_of(row)`.
    template <class Magnitude>
    void judge_rows(FoveaBinding binding, FoveaDtype type, uint32_t columns, const Magnitude& magnitude_of) {
        const uint64_t rows = info_.tensor_bytes[binding] / storage_block(type).bytes / columns;
        for (uint64_t row = 0; row < rows; ++row)
            compare(binding, type, row, columns, false, [&](double plain_error, double most) {
                return operation_tolerance(plain_error, magnitude_of(row), most, type);
            });
    }

    void judge_bits(FoveaBinding binding) {
        const uint64_t bytes = info_.tensor_bytes[binding];
        for (uint64_t n = 0; n < bytes && ok_; ++n)
            if (r_.exact[binding][n] != r_.got[binding][n])
                wrong(binding_name(binding), n, 0, r_.exact[binding][n], r_.got[binding][n], 0);
    }

    // ---- attention ----

    const float* logits_of(const Row& row) const { return r_.masked + row.number * d_.len_kv; }
    bool sees(const Row& row, int64_t j) const { return logits_of(row)[j] != -INFINITY; }
    double position(const Row& row) const {
        return double(row.i) +
               (d_.align == FOVEA_ALIGN_BOTTOM_RIGHT ? double(d_.len_kv) - double(d_.len_q) : 0);
    }

    template <class Body>
    void for_rows(const Body& body) {
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h) {
                const uint32_t h_kv = h / (d_.heads_q / d_.heads_kv);
                double value_max = 0;
                const int64_t keys = p_.operation == Operation::attention ? sequence_of(d_, b).kv_length : 0;
                for (int64_t j = 0; j < keys; ++j)
                    value_max =
                        std::max(value_max, largest(r_.values[FOVEA_BIND_V],
                                                    uint64_t(key_row(d_, b, h_kv, j, d_.dim_v)), d_.dim_v));
                for (int64_t i = 0; i < int64_t(d_.len_q) && ok_; ++i) {
                    Row row{b,  h, h_kv,      i,   (uint64_t{b} * d_.heads_q + h) * d_.len_q + uint64_t(i),
                            {}, 0, value_max, true};
                    measure(row);
                    body(row);
                }
            }
    }

    double product_magnitude(const Row& row, int64_t j) const {
        const int64_t q = query_row(d_, row.b, row.h, row.i, d_.dim_qk),
                      k = key_row(d_, row.b, row.h_kv, j, d_.dim_qk);
        double sum = 0;
        for (uint32_t n = 0; n < d_.dim_qk; ++n) {
            const double x = std::fabs(double(in(FOVEA_BIND_Q, q + n)) * double(in(FOVEA_BIND_K, k + n)));
            if (std::isfinite(x)) sum += x;
        }
        return sum;
    }

    void measure(Row& row) const {
        RowLogits& l = row.logits;
        l.len_kv = d_.len_kv, l.dim = d_.dim_qk, l.softcap = double(d_.softcap);
        l.scale = d_.scale != 0 ? std::fabs(double(d_.scale)) : 1 / std::sqrt(double(d_.dim_qk));
        if (d_.flags & FOVEA_FLAG_SINKS) l.sink = std::fabs(double(in(FOVEA_BIND_SINKS, row.h)));
        const bool all = d_.outputs & FOVEA_OUTPUT_SCORES;
        for (int64_t j = 0; j < sequence_of(d_, row.b).kv_length; ++j) {
            const bool seen = sees(row, j);
            if (seen) {
                row.is_empty = false;
                if (l.products.keys <= kFewKeys) ++l.products.keys;
                double added = 0;
                if (d_.bias.present)
                    added = std::fabs(double(in(FOVEA_BIND_BIAS, row.i * int64_t(d_.len_kv) + j)));
                if (d_.flags & FOVEA_FLAG_ALIBI) added += std::fabs(double(j) - position(row));
                l.added = std::max(l.added, added);
            }
            if (seen || all) l.products.magnitude = std::max(l.products.magnitude, product_magnitude(row, j));
        }
        row.units = kRounding * logit_units(l);
        // Only dequantized keys are rounded: all other inputs are drawn as the kernels take them.
        if (is_quantized(d_.k_type))
            row.units += input_rounding(d_.precision) * rounded_units(d_.precision, l.scale, l.products);
    }

    void judge(const Row& row) {
        const double keep = d_.dropout_p > 0 ? 1 / (1 - double(d_.dropout_p)) : 1;
        const auto wants = [&](uint32_t output) { return (d_.outputs & output) != 0; };
        if (wants(FOVEA_OUTPUT_O))
            compare(FOVEA_BIND_O, d_.o_type, row.number, d_.dim_v, row.is_empty,
                    [&](double plain_error, double most) {
                        return 2 * plain_error +
                               output_floor(row.units, d_.precision, keep * row.value_max, d_.o_type, most) +
                               2 * kSmallest * keep;
                    });
        if (wants(FOVEA_OUTPUT_LSE))
            compare(FOVEA_BIND_LSE, FOVEA_F32, row.number, 1, row.is_empty,
                    [&](double plain_error, double most) {
                        return 2 * plain_error + lse_floor(row.units, most);
                    });
        const auto matrix = [&](uint32_t output, FoveaBinding binding, bool bits, bool relative) {
            if (wants(output))
                compare(binding, FOVEA_F32, row.number, uint32_t(d_.len_kv), bits,
                        [&](double plain_error, double most) {
                            return 2 * plain_error + row.units * (relative ? most : 1) + 2 * kSmallest;
                        });
        };
        matrix(FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, false, false);
        matrix(FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, row.is_empty, false);
        matrix(FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, row.is_empty, true);
        if (wants(FOVEA_OUTPUT_ROW_STATS)) judge_stats(row);
    }

    void judge_stats(const Row& row) {
        FoveaRowStats exact, got;
        memcpy(&exact, r_.exact[FOVEA_BIND_ROW_STATS] + row.number * sizeof exact, sizeof exact);
        memcpy(&got, r_.got[FOVEA_BIND_ROW_STATS] + row.number * sizeof got, sizeof got);
        const auto near = [&](uint32_t column, double e, double g, double tolerance) {
            if (!(std::fabs(e - g) <= tolerance)) wrong("row_stats", row.number, column, e, g, tolerance);
        };
        near(0, exact.max_weight, got.max_weight, 4 * row.units * exact.max_weight);
        near(1, exact.entropy, got.entropy, 4 * row.units * (1 + exact.entropy));
        near(3, exact.visible_keys, got.visible_keys, 0);
        const bool is_tie =
            got.argmax_key < d_.len_kv && exact.argmax_key < d_.len_kv &&
            logits_of(row)[exact.argmax_key] - logits_of(row)[got.argmax_key] <= 4 * row.units;
        if (!is_tie) near(2, exact.argmax_key, got.argmax_key, 0);
    }

    // Each row of pixels is one query row here.
    void judge_tile(const Row& row) {
        const uint64_t width = p_.map.width ? p_.map.width : d_.len_kv;
        if (row.b != p_.map.batch) return;
        const double relative = tile_weight_tolerance(logit_units(row.logits));
        const double cells = std::ceil(double(d_.len_kv) / double(width)) + 1;
        for (uint64_t x = 0; x < width && ok_; ++x) {
            const uint64_t at = (uint64_t{row.h} * d_.len_q + uint64_t(row.i)) * width + x;
            uint64_t exact, got;
            memcpy(&exact, r_.exact[FOVEA_BIND_TILE_MASS] + 8 * at, 8);
            memcpy(&got, r_.got[FOVEA_BIND_TILE_MASS] + 8 * at, 8);
            const double e = double(exact) * FOVEA_TILE_UNIT, g = double(got) * FOVEA_TILE_UNIT;
            if (!(std::fabs(e - g) <= e * relative + cells * FOVEA_TILE_UNIT))
                return wrong("tile_mass", row.number, uint32_t(x), e, g, e * relative);
            const double most = element_at(r_.exact[FOVEA_BIND_TILE_MAX], FOVEA_F32, int64_t(at));
            const double got_most = element_at(r_.got[FOVEA_BIND_TILE_MAX], FOVEA_F32, int64_t(at));
            if (!(std::fabs(most - got_most) <= most * relative + 0x1p-100))
                return wrong("tile_max", row.number, uint32_t(x), most, got_most, most * relative);
        }
    }

    // ---- gradients: sums of the magnitudes that meet in a row ----

    void judge_gradients() {
        const uint64_t queries = uint64_t{d_.batch} * d_.heads_q * d_.len_q,
                       keys = uint64_t{d_.batch} * d_.heads_kv * d_.len_kv, pairs = d_.len_q * d_.len_kv;
        if (queries + 2 * keys + pairs + 2 * d_.heads_q > kCheckSums) return;
        double *dq = r_.sums, *dk = dq + queries, *dv = dk + keys, *dbias = dv + keys,
               *dalibi = dbias + pairs, *dsinks = dalibi + d_.heads_q;
        std::fill(dq, dsinks + d_.heads_q, 0.0);
        for_rows([&](const Row& row) { add_gradients(row, dq, dk, dv, dbias, dalibi, dsinks); });
        const FoveaAttentionBackwardDesc& g = p_.gradients;
        const auto check = [&](uint32_t gradient, FoveaBinding binding, FoveaDtype type, uint64_t rows,
                               uint32_t columns, const double* magnitudes) {
            if (!(g.gradients & gradient)) return;
            for (uint64_t row = 0; row < rows; ++row)
                compare(binding, type, row, columns, false, [&](double plain_error, double most) {
                    return gradient_tolerance(plain_error, magnitudes[row], most, type);
                });
        };
        check(FOVEA_GRAD_Q, FOVEA_BIND_DQ, g.dq_type, queries, d_.dim_qk, dq);
        check(FOVEA_GRAD_K, FOVEA_BIND_DK, g.dk_type, keys, d_.dim_qk, dk);
        check(FOVEA_GRAD_V, FOVEA_BIND_DV, g.dv_type, keys, d_.dim_v, dv);
        check(FOVEA_GRAD_BIAS, FOVEA_BIND_DBIAS, FOVEA_F32, pairs, 1, dbias);
        check(FOVEA_GRAD_ALIBI, FOVEA_BIND_DALIBI, FOVEA_F32, d_.heads_q, 1, dalibi);
        check(FOVEA_GRAD_SINKS, FOVEA_BIND_DSINKS, FOVEA_F32, d_.heads_q, 1, dsinks);
    }

    void add_gradients(const Row& row, double* dq, double* dk, double* dv, double* dbias, double* dalibi,
                       double* dsinks) const {
        if (row.i >= sequence_of(d_, row.b).q_length) return;
        const double units = logit_units(row.logits) + 16, lse = double(r_.lse[row.number]);
        const int64_t out = query_row(d_, row.b, row.h, row.i, d_.dim_v),
                      q = query_row(d_, row.b, row.h, row.i, d_.dim_qk);
        double delta = 0;
        for (uint32_t n = 0; n < d_.dim_v; ++n)
            delta += std::fabs(double(in(FOVEA_BIND_O, out + n)) * double(in(FOVEA_BIND_DO, out + n)));
        if (std::isfinite(lse) && d_.flags & FOVEA_FLAG_SINKS)
            dsinks[row.h] +=
                (units * std::exp(double(in(FOVEA_BIND_SINKS, row.h)) - lse) + kFlushed / kRounding) * delta;
        const double q_most = largest(r_.values[FOVEA_BIND_Q], uint64_t(q), d_.dim_qk),
                     do_most = largest(r_.values[FOVEA_BIND_DO], uint64_t(out), d_.dim_v),
                     scale = row.logits.scale;
        for (int64_t j = 0; j < int64_t(d_.len_kv); ++j) {
            if (!sees(row, j)) continue;
            const int64_t k = key_row(d_, row.b, row.h_kv, j, d_.dim_qk),
                          v = key_row(d_, row.b, row.h_kv, j, d_.dim_v);
            double value = 0;
            for (uint32_t n = 0; n < d_.dim_v; ++n)
                value += std::fabs(double(in(FOVEA_BIND_DO, out + n)) * double(in(FOVEA_BIND_V, v + n)));
            const bool kept =
                !(d_.dropout_p > 0) ||
                foveaDropoutKeeps(d_.dropout_p, d_.dropout_seed, d_.dropout_offset,
                                  uint64_t{row.b} * d_.heads_q + row.h, uint64_t(row.i), uint64_t(j));
            const double share = kept ? 1 / (1 - double(d_.dropout_p)) : 0;
            const double weight = std::exp(std::min(double(logits_of(row)[j]) - lse, 1.0));
            // A term that a kernel rounds to zero is an error of the weight itself.
            const double rounded = units * weight + kFlushed / kRounding;
            const double masked = rounded * (share * value + delta) + kSmallest / kRounding;
            const auto key = (uint64_t{row.b} * d_.heads_kv + row.h_kv) * d_.len_kv + uint64_t(j);
            dq[row.number] += masked * scale * largest(r_.values[FOVEA_BIND_K], uint64_t(k), d_.dim_qk);
            dk[key] += masked * scale * q_most;
            dv[key] += rounded * share * do_most;
            dbias[uint64_t(row.i) * d_.len_kv + uint64_t(j)] += masked;
            dalibi[row.h] += masked * std::fabs(double(j) - position(row));
        }
    }

    // ---- other operations ----

    void judge_linear() {
        const FoveaLinearDesc& l = p_.linear;
        judge_rows(FOVEA_BIND_Y, l.y_type, l.n_out, [&](uint64_t row) {
            double most = 0;
            for (uint32_t o = 0; o < l.n_out; ++o) {
                double sum = l.has_bias ? std::fabs(double(in(FOVEA_BIND_BIAS, o))) : 0;
                for (uint32_t n = 0; n < l.n_in; ++n) {
                    const uint64_t w =
                        l.weight_is_in_out ? uint64_t{n} * l.n_out + o : uint64_t{o} * l.n_in + n;
                    sum += std::fabs(double(in(FOVEA_BIND_X, int64_t(row * l.n_in + n))) *
                                     double(in(FOVEA_BIND_WEIGHT, int64_t(w))));
                }
                most = std::max(most, sum);
            }
            // Only dequantized weights are rounded, see fill_input.
            return is_quantized(l.w_type)
                       ? most * (1 + input_rounding(l.precision) / (kFloorRoundings * kRounding))
                       : most;
        });
    }

    void judge_merge() {
        const FoveaMergeDesc& m = p_.merge;
        const uint64_t rows = uint64_t{m.batch} * m.heads * m.len;
        judge_rows(FOVEA_BIND_Y, m.y_type, m.dim, [&](uint64_t row) {
            double most = 0;
            for (uint32_t part = 0; part < m.parts; ++part)
                most = std::max(most, largest(r_.values[FOVEA_BIND_X], (part * rows + row) * m.dim, m.dim));
            return most;
        });
        judge_rows(FOVEA_BIND_LSE, FOVEA_F32, 1,
                   [&](uint64_t) { return 8.0; });  // |lse| is below 4 + log(20)
    }

    void judge_norm() {
        const NormDesc& n = p_.norm;
        if (n.adds) judge_bits(FOVEA_BIND_O);
        const double weights =
            n.has_weight ? largest(r_.values[FOVEA_BIND_WEIGHT], 0, n.width * (1 + n.has_bias)) : 1;
        judge_rows(FOVEA_BIND_Y, FOVEA_F32, n.width, [&](uint64_t row) {
            // Layer norm: the mean may be larger than what is left of the row.
            const double size =
                largest(reinterpret_cast<const float*>(r_.exact[FOVEA_BIND_Y]), row * n.width, n.width);
            return 4 * (size + weights);
        });
    }

    void judge_pointwise() {
        const auto count = uint32_t(p_.pointwise.count);
        for (uint32_t n = 0; n < count; ++n)
            compare(FOVEA_BIND_Y, FOVEA_F32, n, 1, false, [&](double plain_error, double most) {
                const double x = std::fabs(double(in(FOVEA_BIND_X, n)));
                const double other = p_.pointwise.has_other() ? std::fabs(double(in(FOVEA_BIND_O, n))) : 1;
                return operation_tolerance(plain_error, x * std::max(other, 1.0) + other + most, most,
                                           FOVEA_F32);
            });
    }

    const CheckProblem& p_;
    const FoveaAttentionDesc& d_;
    const FoveaPlanInfo& info_;
    const CheckResults& r_;
    char* text_;
    size_t room_;
    bool ok_ = true;
};

}  // namespace

bool is_right(const CheckProblem& problem, const FoveaPlanInfo& info, const CheckResults& results, char* text,
              size_t room) {
    return Verdict(problem, info, results, text, room).run();
}

}  // namespace fovea::vulkan
