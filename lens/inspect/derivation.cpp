#include <fovea/inspect/derivation.hpp>
#include <fovea/model/strict.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "problem/bindings.hpp"
#include "reference/element.hpp"
#include "reference/row_access.hpp"

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

std::string number(int64_t value) { return std::to_string(value); }

// One row of one head, element by element, where the reference finds it.
class RowReader {
  public:
    RowReader(const Problem& problem, const FoveaHostBuffer* buffers, const Cell& cell)
        : p_(problem),
          rows_(problem, buffers),
          row_(rows_.place((uint64_t{cell.batch} * problem.heads_q + cell.head) *
                               static_cast<uint64_t>(problem.len_q) +
                           cell.query)) {}

    uint32_t kv_head() const { return row_.h_kv; }
    int64_t query() const { return row_.i; }
    int64_t position() const { return query() + row_.view.offset; }
    KeyRange range() const { return row_.keys; }

    float q(uint32_t d) const {
        return reference::load<float>(rows_.data(FOVEA_BIND_Q), p_.q_type, rows_.query_row(p_.q, row_) + d);
    }
    float k(int64_t j, uint32_t d) const {
        return reference::load<float>(rows_.data(FOVEA_BIND_K), p_.k_type, rows_.key_row(p_.k, row_, j) + d);
    }
    float v(int64_t j, uint32_t d) const {
        return reference::load<float>(rows_.data(FOVEA_BIND_V), p_.v_type, rows_.key_row(p_.v, row_, j) + d);
    }

    // True if there are rows to read for this query and key: within the lengths, and on a page.
    bool is_stored(int64_t j) const {
        return query() < row_.view.q_length && j < row_.view.kv_length && rows_.key_row(p_.k, row_, j) >= 0;
    }
    bool mask_lets_through(int64_t j) const {
        return !p_.mask.present || (j < p_.mask.keys && rows_.mask_shows(row_, j));
    }
    float bias(int64_t j) const {
        if (!p_.bias.present) return 0.0f;
        if (j >= p_.bias.keys) return kHidden;
        return reference::load<float>(rows_.data(FOVEA_BIND_BIAS), p_.bias.type,
                                      rows_.matrix_index(p_.bias, row_, j));
    }
    float slope() const { return rows_.alibi_slope(row_); }
    float sink() const { return rows_.sink(row_); }
    bool kept(int64_t j) const { return !p_.dropout || rows_.is_kept(row_, j); }

    bool sees(int64_t j) const {
        const KeyRange keys = range();
        return j >= keys.begin && j < keys.end && is_stored(j) && mask_lets_through(j) && bias(j) != kHidden;
    }

    // Describes the rule that masks key j; empty if it is visible. The first rule in the order of fovea.h.
    std::string hidden_by(int64_t j) const {
        if (query() >= row_.view.q_length) {
            return "length: query " + number(query()) + " is past the q_length of " +
                   number(row_.view.q_length);
        }
        if (p_.causal && j > position()) {
            return "causal: key " + number(j) + " comes after position " + number(position());
        }
        if (p_.window_left != kUnbounded && j < position() - p_.window_left) {
            return "window: key " + number(j) + " is more than " + number(p_.window_left) +
                   " before position " + number(position());
        }
        if (p_.window_right != kUnbounded && j > position() + p_.window_right) {
            return "window: key " + number(j) + " is more than " + number(p_.window_right) +
                   " after position " + number(position());
        }
        if (j >= row_.view.kv_length) {
            return "length: key " + number(j) + " is past the kv_length of " + number(row_.view.kv_length);
        }
        if (!mask_lets_through(j)) return "mask: 0 at this cell";
        if (bias(j) == kHidden) return "bias: -inf at this cell";
        if (!is_stored(j)) return "block table: key " + number(j) + " has no page";
        return {};
    }

  private:
    const Problem& p_;
    reference::RowAccess rows_;
    reference::RowPlace row_;
};

// Values that the row's keys share.
struct RowSums {
    float max = kHidden, sum = 0.0f;
    std::vector<std::pair<int64_t, float>> logits;  // logits of the visible keys
};

float dot_of(const Problem& p, const RowReader& row, int64_t j) {
    float sum = 0.0f;
    for (uint32_t d = 0; d < p.dim_qk; ++d) {
        const float product = row.q(d) * row.k(j, d);
        sum += product;
    }
    return sum;
}

float cap(const Problem& p, float score) { return p.logit.capped(score, strict::tanh); }

float with_biases(const Problem& p, const RowReader& row, int64_t j, float capped) {
    if (p.alibi) {
        const float alibi = row.slope() * static_cast<float>(j - row.position());
        capped += alibi;
    }
    return p.bias.present ? capped + row.bias(j) : capped;
}

RowSums reduce(const Problem& p, const RowReader& row) {
    RowSums sums;
    const KeyRange keys = row.range();
    for (int64_t j = keys.begin; j < keys.end; ++j) {
        if (!row.sees(j)) continue;
        const float score = dot_of(p, row, j) * p.scale;
        sums.logits.emplace_back(j, with_biases(p, row, j, cap(p, score)));
    }
    if (p.sinks) sums.max = row.sink();
    for (const auto& [j, logit] : sums.logits) {
        if (logit > sums.max || std::isnan(logit)) sums.max = logit;
    }
    if (sums.max == kHidden) return sums;
    for (const auto& [j, logit] : sums.logits) sums.sum += strict::exp(logit - sums.max);
    if (p.sinks) sums.sum += strict::exp(row.sink() - sums.max);
    return sums;
}

void fill_score(const Problem& p, const RowReader& row, Derivation& out) {
    const auto j = static_cast<int64_t>(out.cell.key);
    out.has_alibi = p.alibi;
    out.has_bias = p.bias.present;
    out.scale = p.scale;
    out.softcap = p.logit.softcap;
    if (row.is_stored(j)) {
        for (uint32_t d = 0; d < p.dim_qk; ++d) {
            const float q = row.q(d), k = row.k(j, d), product = q * k;
            out.dot += product;
            out.terms.push_back({q, k, product, out.dot});
        }
    }
    out.score = out.dot * p.scale;
    out.capped = cap(p, out.score);
    out.alibi_slope = row.slope();
    out.alibi = p.alibi ? row.slope() * static_cast<float>(j - row.position()) : 0.0f;
    out.bias = row.bias(j);
    out.hidden_by = row.hidden_by(j);
    out.masked = out.hidden_by.empty() ? with_biases(p, row, j, out.capped) : kHidden;
}

void fill_weight(const Problem& p, const RowReader& row, const RowSums& sums, Derivation& out) {
    out.visible_keys = static_cast<uint32_t>(sums.logits.size());
    out.row_max = sums.max;
    out.denominator = sums.sum;
    out.has_sink = p.sinks;
    const bool empty = sums.max == kHidden;
    if (p.sinks) {
        out.sink = row.sink();
        out.sink_term = empty ? 0.0f : strict::exp(out.sink - sums.max);
    }
    out.lse = empty ? kHidden : sums.max + static_cast<float>(std::log(static_cast<double>(sums.sum)));
    if (out.hidden_by.empty() && !empty) {
        out.exponential = strict::exp(out.masked - sums.max);
        out.weight = out.exponential / out.denominator;
    }
    out.has_dropout = p.dropout;
    out.kept = row.kept(static_cast<int64_t>(out.cell.key));
    out.keep_scale = p.dropout ? p.keep_scale : 1.0f;
    out.dropped_weight = out.kept ? out.weight * out.keep_scale : 0.0f;
}

void fill_values(const Problem& p, const RowReader& row, const RowSums& sums, Derivation& out) {
    std::vector<float> context(p.dim_v, 0.0f);
    for (const auto& [j, logit] : sums.logits) {
        if (!row.kept(j)) continue;
        const float weight = strict::exp(logit - sums.max) / sums.sum * out.keep_scale;
        for (uint32_t d = 0; d < p.dim_v; ++d) {
            const float product = weight * row.v(j, d);
            context[d] += product;
        }
    }
    const auto key = static_cast<int64_t>(out.cell.key);
    for (uint32_t d = 0; d < p.dim_v; ++d) {
        const float value = row.is_stored(key) ? row.v(key, d) : 0.0f;
        // A key without weight adds nothing, whatever its value holds.
        const float contribution = out.dropped_weight == 0.0f ? 0.0f : out.dropped_weight * value;
        out.values.push_back({value, contribution, context[d]});
    }
}

Result<void> check_cell(const Problem& p, const FoveaHostBuffer* bindings, const Cell& cell) {
    if (p.rotated_k || p.rotated_v)
        return Error{FOVEA_UNSUPPORTED, "flags",
                     "flags has FOVEA_FLAG_ROTATED_CACHE; a cell of a rotated KV cache cannot be derived"};
    const auto within = [](const char* field, uint64_t value, uint64_t count) -> Result<void> {
        if (value < count) return {};
        return Error{FOVEA_INVALID_ARGUMENT, field,
                     std::string(field) + " is " + std::to_string(value) + "; it must be below " +
                         std::to_string(count)};
    };
    for (const Result<void>& ok :
         {within("cell.batch", cell.batch, p.batch), within("cell.head", cell.head, p.heads_q),
          within("cell.query", cell.query, static_cast<uint64_t>(p.len_q)),
          within("cell.key", cell.key, static_cast<uint64_t>(p.len_kv))}) {
        if (!ok) return ok;
    }
    for (uint32_t binding = 0; binding < FOVEA_BIND_COUNT; ++binding) {
        if ((p.binding_mask & ~p.output_mask) >> binding & 1u) {
            const FoveaHostBuffer& buffer = bindings[binding];
            if (buffer.data == nullptr || buffer.size_bytes < p.binding_bytes[binding]) {
                return Error{FOVEA_INVALID_ARGUMENT, std::string("bindings[") + binding_name(binding) + "]",
                             std::string("binding ") + binding_name(binding) + " has " +
                                 std::to_string(buffer.data == nullptr ? 0 : buffer.size_bytes) +
                                 " bytes; it needs " + std::to_string(p.binding_bytes[binding])};
            }
        }
    }
    return {};
}

Result<void> checked_problem(const FoveaAttentionDesc& desc, const FoveaHostBuffer* bindings,
                             const Cell& cell, Problem& problem) {
    Diag diag;
    if (make_problem(&desc, problem, &diag) != FOVEA_OK) return diag.error();
    return check_cell(problem, bindings, cell);
}

}  // namespace

Result<Derivation> derive_cell(const FoveaAttentionDesc& desc, const FoveaHostBuffer* bindings,
                               const Cell& cell) {
    Problem problem;
    if (Result<void> ok = checked_problem(desc, bindings, cell, problem); !ok) return ok.error();
    const RowReader row(problem, bindings, cell);
    Derivation derivation;
    derivation.cell = cell;
    derivation.kv_head = row.kv_head();
    derivation.position = row.position();
    fill_score(problem, row, derivation);
    const RowSums sums = reduce(problem, row);
    fill_weight(problem, row, sums, derivation);
    fill_values(problem, row, sums, derivation);
    return derivation;
}

Result<std::vector<float>> row_weights(const FoveaAttentionDesc& desc, const FoveaHostBuffer* bindings,
                                       const Cell& cell) {
    Problem problem;
    if (Result<void> ok = checked_problem(desc, bindings, cell, problem); !ok) return ok.error();
    const RowReader row(problem, bindings, cell);
    const RowSums sums = reduce(problem, row);
    std::vector<float> weights(static_cast<size_t>(problem.len_kv));
    for (const auto& [j, logit] : sums.logits)
        if (row.kept(j))
            weights[static_cast<size_t>(j)] =
                strict::exp(logit - sums.max) / sums.sum * (problem.dropout ? problem.keep_scale : 1.0f);
    return weights;
}

}  // namespace fovea
