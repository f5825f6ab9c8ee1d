#include "support/verdict.hpp"

#include "reference/tolerance.hpp"
#include "support/cpu_executor.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace fovea::test {
namespace {

using namespace reference;

// One row of one output in the three computations.
struct RowView {
    const char* output;
    uint32_t b, h;
    int64_t i;
    std::vector<float> exact, plain, got;
};

std::string place_of(const RowView& row, size_t column) {
    char text[120];
    snprintf(text, sizeof text, "%s[b=%u, h=%u, i=%lld, %zu]", row.output, row.b, row.h,
             static_cast<long long>(row.i), column);
    return text;
}

class Judge {
  public:
    Judge(const Case& c, const Oracle& oracle, const Outcome& outcome)
        : c_(c), d_(c.desc), oracle_(oracle), got_(outcome.outputs) {}

    Verdict run() {
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < int64_t(d_.len_q) && verdict_.ok; ++i) judge_row(b, h, i);
        if (verdict_.ok) judge_gaps();
        return verdict_;
    }

  private:
    void fail(const std::string& text) {
        if (verdict_.ok) verdict_.text = text;
        verdict_.ok = false;
    }

    void judge_row(uint32_t b, uint32_t h, int64_t i) {
        const size_t row = (size_t(b) * d_.heads_q + h) * d_.len_q + size_t(i);
        const bool empty = sees_nothing(c_, b, h, i);
        const double units = kRounding * oracle_.logit_units[row] + half_rounding() * oracle_.half_units[row];
        const int64_t keys = int64_t(d_.len_kv);
        if (wants(FOVEA_OUTPUT_O) && is_written(c_, b, i)) judge_output(b, h, i, row, empty, units);
        const auto matrix = [&](uint32_t output, FoveaBinding binding, const char* name, double floor,
                                bool bits) {
            if (!wants(output)) return;
            RowView view{name, b, h, i, {}, {}, {}};
            load(view, binding, int64_t(row) * keys, keys);
            compare(view, floor, bits);
        };
        matrix(FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, "scores", units, false);
        matrix(FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, "capped", units, false);
        matrix(FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, "masked", units, empty);
        if (wants(FOVEA_OUTPUT_WEIGHTS)) {
            RowView view{"weights", b, h, i, {}, {}, {}};
            load(view, FOVEA_BIND_WEIGHTS, int64_t(row) * keys, keys);
            compare(view, units * largest(view.exact), empty);
        }
        if (wants(FOVEA_OUTPUT_MASKED)) judge_hidden(b, h, i, row);
        if (wants(FOVEA_OUTPUT_LSE)) {
            RowView view{"lse", b, h, i, {}, {}, {}};
            load(view, FOVEA_BIND_LSE, int64_t(row), 1);
            compare(view, lse_floor(units, largest(view.exact)), empty);
        }
        if (wants(FOVEA_OUTPUT_ROW_STATS)) judge_stats(b, h, i, row, empty, units);
    }

    // The reference shares the bounds of rows with every kernel: which keys are hidden is judged by the
    // case's own meaning.
    void judge_hidden(uint32_t b, uint32_t h, int64_t i, size_t row) {
        for (int64_t j = 0; j < int64_t(d_.len_kv); ++j) {
            const float got = read_float(got_[FOVEA_BIND_MASKED], FOVEA_F32, int64_t(row * d_.len_kv) + j);
            // A visible logit may be any number, minus infinity by its own product too, which values of a
            // case rule out.
            const bool hidden = !is_visible(c_, b, h, i, j);
            if (hidden == (got == -INFINITY)) continue;
            const RowView view{"masked", b, h, i, {}, {}, {}};
            return fail(place_of(view, size_t(j)) +
                        (hidden ? ": a hidden key is shown" : ": a visible key is hidden"));
        }
    }
    uint32_t count_visible(uint32_t b, uint32_t h, int64_t i) const {
        uint32_t count = 0;
        for (int64_t j = 0; j < int64_t(d_.len_kv); ++j) count += is_visible(c_, b, h, i, j);
        return count;
    }

    // The effect of rounding an operand.
    double half_rounding() const { return input_rounding(d_.precision); }
    double keep_scale() const { return d_.dropout_p > 0 ? 1 / (1 - double(d_.dropout_p)) : 1; }
    bool wants(uint32_t output) const {
        return ((d_.outputs ? d_.outputs : uint32_t(FOVEA_OUTPUT_O)) & output) != 0;
    }

    static double largest(const std::vector<float>& values) {
        double max = 0;
        for (const float x : values)
            if (std::isfinite(x)) max = std::max(max, std::fabs(double(x)));
        return max;
    }

    void load(RowView& view, FoveaBinding binding, int64_t first, int64_t count,
              FoveaDtype got_type = FOVEA_F32) const {
        for (int64_t n = 0; n < count; ++n) {
            view.exact.push_back(read_float(oracle_.exact[binding], FOVEA_F32, first + n));
            view.plain.push_back(read_float(oracle_.plain[binding], got_type, first + n));
            view.got.push_back(read_float(got_[binding], got_type, first + n));
        }
    }

    void judge_output(uint32_t b, uint32_t h, int64_t i, size_t row, bool empty, double units) {
        RowView view{"o", b, h, i, {}, {}, {}};
        load(view, FOVEA_BIND_O, query_element(c_, o_strides(c_), b, h, i), d_.dim_v, d_.o_type);
        // The weights and the values are the operands of the second product.
        compare(view,
                output_floor(units, d_.precision, keep_scale() * oracle_.value_max[row], d_.o_type,
                             largest(view.exact)),
                empty);
    }

    // `bits`: the row is empty, so that zeros must be +0 and infinities exact.
    void compare(const RowView& view, double floor, bool bits) {
        double plain_error = 0, error = 0;
        size_t worst = 0;
        for (size_t n = 0; n < view.exact.size(); ++n) {
            const float exact = view.exact[n], got = view.got[n], plain = view.plain[n];
            if (bits ? memcmp(&exact, &got, 4) != 0 : !comparable(exact, got)) {
                report(view, n, 0);
                return;
            }
            if (!std::isfinite(exact) || !std::isfinite(got)) continue;
            if (std::isfinite(plain)) plain_error = std::max(plain_error, std::fabs(double(plain) - exact));
            if (const double e = std::fabs(double(got) - exact); e > error) error = e, worst = n;
        }
        const double tolerance = 2 * plain_error + floor + 2 * kSmallest * keep_scale();
        if (error > tolerance) report(view, worst, tolerance);
        if (tolerance > 0) verdict_.worst_share = std::max(verdict_.worst_share, error / tolerance);
    }

    // Equal infinities, NaN with NaN, finite with finite. A result of 16 bits may round to infinity where the
    // exact one is within a rounding of its range.
    bool comparable(float exact, float got) const {
        if (std::isnan(exact)) return std::isnan(got);
        if (std::isinf(exact)) return got == exact;
        if (std::isinf(got)) return may_round_to_infinity(d_.o_type, exact) && (got > 0) == (exact > 0);
        return !std::isnan(got);
    }

    void report(const RowView& view, size_t n, double tolerance) {
        char text[160];
        snprintf(text, sizeof text, ": expected %.9g, got %.9g, plain %.9g, tolerance %.3g",
                 double(view.exact[n]), double(view.got[n]), double(view.plain[n]), tolerance);
        fail(place_of(view, n) + text);
    }

    void judge_stats(uint32_t b, uint32_t h, int64_t i, size_t row, bool empty, double units) {
        FoveaRowStats exact, plain, got;
        memcpy(&exact, oracle_.exact[FOVEA_BIND_ROW_STATS].data() + row * sizeof exact, sizeof exact);
        memcpy(&plain, oracle_.plain[FOVEA_BIND_ROW_STATS].data() + row * sizeof exact, sizeof exact);
        memcpy(&got, got_[FOVEA_BIND_ROW_STATS].data() + row * sizeof exact, sizeof exact);
        compare({"row_stats.max_weight", b, h, i, {exact.max_weight}, {plain.max_weight}, {got.max_weight}},
                units * std::fabs(exact.max_weight), empty);
        compare({"row_stats.entropy", b, h, i, {exact.entropy}, {plain.entropy}, {got.entropy}},
                2 * units * (1 + std::fabs(exact.entropy)), empty);
        const RowView view{"row_stats", b, h, i, {}, {}, {}};
        const uint32_t visible = count_visible(b, h, i);
        if (visible != got.visible_keys)
            fail(place_of(view, 0) + ": visible_keys " + std::to_string(got.visible_keys) + ", expected " +
                 std::to_string(visible));
        if (exact.argmax_key != got.argmax_key && !is_near_tie(b, h, i, exact, got, units))
            fail(place_of(view, 0) + ": argmax_key " + std::to_string(got.argmax_key) + ", expected " +
                 std::to_string(exact.argmax_key));
    }

    // Weights that differ by less than the tolerance may come out in either order.
    bool is_near_tie(uint32_t b, uint32_t h, int64_t i, const FoveaRowStats& exact, const FoveaRowStats& got,
                     double units) const {
        if (got.max_weight == 0 && got.argmax_key == 0xffffffffu) return true;  // all weights round to 0
        if (got.argmax_key >= d_.len_kv || !is_visible(c_, b, h, i, got.argmax_key)) return false;
        if (exact.argmax_key >= d_.len_kv) return false;
        const Tensors& e = oracle_.exact;
        const size_t row = (size_t(b) * d_.heads_q + h) * d_.len_q + size_t(i);
        const float best =
            read_float(e[FOVEA_BIND_MASKED], FOVEA_F32, int64_t(row * d_.len_kv + exact.argmax_key));
        const float other =
            read_float(e[FOVEA_BIND_MASKED], FOVEA_F32, int64_t(row * d_.len_kv + got.argmax_key));
        return double(best) - other <= 4 * units;
    }

    // Bytes of o that belong to no row.
    void judge_gaps() {
        if (!wants(FOVEA_OUTPUT_O)) return;
        const Bytes& o = got_[FOVEA_BIND_O];
        const size_t element = dtype_bytes(d_.o_type);
        std::vector<bool> written(o.size(), false);
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < int64_t(d_.len_q); ++i) {
                    if (!is_written(c_, b, i)) continue;
                    const size_t first = size_t(query_element(c_, o_strides(c_), b, h, i)) * element;
                    std::fill_n(written.begin() + ptrdiff_t(first), d_.dim_v * element, true);
                }
        for (size_t n = 0; n < o.size(); ++n) {
            if (written[n] || o[n] == kUntouched) continue;
            return fail("o: byte " + std::to_string(n) + " belongs to no row and was written");
        }
    }

    const Case& c_;
    const FoveaAttentionDesc& d_;
    const Oracle& oracle_;
    const Tensors& got_;
    Verdict verdict_;
};

// Largest |v| of a key/value head.
double value_max(const Case& c, const Tensors& inputs, uint32_t b, uint32_t h_kv) {
    const FoveaAttentionDesc& d = c.desc;
    double largest = 0;
    for (int64_t j = 0; j < entry_of(c, b).kv_length; ++j) {
        if (key_element(c, k_strides(c), b, h_kv, j) < 0) continue;
        const int64_t v = key_element(c, v_strides(c), b, h_kv, j);
        for (uint32_t n = 0; n < d.dim_v; ++n) {
            const double x = std::fabs(read_float(inputs[FOVEA_BIND_V], d.v_type, v + n));
            if (std::isfinite(x)) largest = std::max(largest, x);
        }
    }
    return largest;
}

RowProducts products_of_row(const Case& c, const Tensors& inputs, uint32_t b, uint32_t h, int64_t i) {
    const FoveaAttentionDesc& d = c.desc;
    std::vector<float> q(d.dim_qk);
    const int64_t first = query_element(c, q_strides(c), b, h, i);
    for (uint32_t n = 0; n < d.dim_qk; ++n) q[n] = read_float(inputs[FOVEA_BIND_Q], d.q_type, first + n);
    if (is_rotated(d, d.k_type)) rotate_by_definition(q);
    // Scores are told of hidden keys too.
    const bool all = d.outputs & (FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED);
    RowProducts row;
    for (int64_t j = 0; j < entry_of(c, b).kv_length; ++j) {
        const bool seen = is_visible(c, b, h, i, j);
        if (row.keys <= kFewKeys) row.keys += seen;
        if (!seen && !all) continue;
        const int64_t k = key_element(c, k_strides(c), b, h / (d.heads_q / d.heads_kv), j);
        if (k < 0) continue;
        double sum = 0;
        for (uint32_t n = 0; n < d.dim_qk; ++n) {
            const double x = std::fabs(double(q[n]) * read_float(inputs[FOVEA_BIND_K], d.k_type, k + n));
            if (std::isfinite(x)) sum += x;
        }
        row.magnitude = std::max(row.magnitude, sum);
    }
    return row;
}

// Sum of the magnitudes that are added to the score of a logit of row (b, h, i).
double added_to_score(const Case& c, uint32_t b, uint32_t h, int64_t i) {
    const FoveaAttentionDesc& d = c.desc;
    const Entry e = entry_of(c, b);
    double largest = 0;
    for (int64_t j = 0; j < e.kv_length; ++j) {
        if (!is_visible(c, b, h, i, j)) continue;
        double sum = d.bias.present ? std::fabs(double(bias_at(c, b, h, i, j))) : 0;
        // A bias of -FLT_MAX swallows its score in every precision alike; only rows made of nothing else keep
        // it.
        if (sum > 1e30) sum = 0;
        if (d.flags & FOVEA_FLAG_ALIBI) sum += std::fabs(double(j - (i + e.offset)));
        largest = std::max(largest, sum);
    }
    return largest;
}

void measure_rows(const Case& c, const Tensors& inputs, Oracle& oracle) {
    const FoveaAttentionDesc& d = c.desc;
    const double scale = d.scale != 0 ? std::fabs(double(d.scale)) : 1 / std::sqrt(double(d.dim_qk));
    for (uint32_t b = 0; b < d.batch; ++b) {
        for (uint32_t h = 0; h < d.heads_q; ++h) {
            const double values = value_max(c, inputs, b, h / (d.heads_q / d.heads_kv));
            const int64_t rows = entry_of(c, b).q_length;
            for (int64_t i = 0; i < int64_t(d.len_q); ++i) {
                RowLogits logits{uint64_t(d.len_kv), 0, 0, 0, 0, d.dim_qk, {}};
                if (d.flags & FOVEA_FLAG_SINKS)
                    logits.sink = std::fabs(read_float(inputs[FOVEA_BIND_SINKS], FOVEA_F32, h));
                if (i < rows) {
                    logits.products = products_of_row(c, inputs, b, h, i);
                    logits.added = added_to_score(c, b, h, i);
                    logits.softcap = double(d.softcap), logits.scale = scale;
                }
                oracle.logit_units.push_back(float(logit_units(logits)));
                oracle.half_units.push_back(float(rounded_units(d.precision, scale, logits.products)));
                oracle.value_max.push_back(float(values));
            }
        }
    }
}

}  // namespace

Result<Oracle> make_oracle(const Case& c, const Tensors& inputs) {
    const auto reference = make_cpu_executor("reference", {FOVEA_KERNEL_REFERENCE, false, 0});
    const auto plain = make_cpu_executor("plain", {FOVEA_KERNEL_PLAIN, false, 0});
    Oracle oracle;
    FoveaAttentionDesc desc = c.desc;
    Outcome outcome = plain->run(desc, inputs);
    if (!outcome.ran()) return Error{outcome.code, "plain", outcome.text, 0};
    oracle.plain = std::move(outcome.outputs);
    desc.o_type = FOVEA_F32;
    desc.max_slice_cost = 0;
    // Near ties of argmax_key are settled by the logits.
    if (desc.outputs & FOVEA_OUTPUT_ROW_STATS) desc.outputs |= FOVEA_OUTPUT_MASKED;
    outcome = reference->run(desc, inputs);
    if (!outcome.ran()) return Error{outcome.code, "reference", outcome.text, 0};
    oracle.exact = std::move(outcome.outputs);
    measure_rows(c, inputs, oracle);
    return oracle;
}

Verdict judge(const Case& c, const Oracle& oracle, const Outcome& outcome) {
    return Judge(c, oracle, outcome).run();
}

}  // namespace fovea::test
