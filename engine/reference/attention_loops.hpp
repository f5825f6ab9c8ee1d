// The meaning of one attention call as plain loops over keys, for any type of arithmetic: float64 is the
// reference of all tests, float32 the measure of what a same-precision computation may err. One row at a
// time, in the order of operations that fovea.h states; no blocking, no online softmax, no approximation.
#pragma once

#include "problem/rotation.hpp"
#include "reference/element.hpp"
#include "reference/row_access.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fovea::reference {

template <class Real>
class AttentionLoops : protected RowAccess {
  public:
    // Returns the elements of type Real that one worker needs for a row: the query, the logits, the sums.
    static uint64_t scratch_count(const Problem& p) {
        return uint64_t{p.dim_qk} + uint64_t(p.len_kv) + p.dim_v;
    }

    // `bindings` is indexed by FoveaBinding, checked by the caller and only read where the problem says so.
    AttentionLoops(const Problem& problem, const FoveaHostBuffer* bindings) : RowAccess(problem, bindings) {}

    // Row number `flat` counts (b, h, i) with i fastest. `scratch` has room for scratch_count elements and is
    // undefined before and after.
    void compute_row(uint64_t flat, Real* scratch) const {
        Row row = locate(flat, scratch);
        if (row.i < row.view.q_length) {
            load_query(row);
            compute_logits(row);
        }
        reduce(row);
        write_row_results(row);
        write_matrices(row);
        write_output(row);
    }

  protected:  // for the loops of map tiles
    static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

    // logits[j] holds a value for j in `keys`; hidden ones are -inf.
    struct Row : RowPlace {
        Real *q, *logits, *sums;
        uint32_t visible;    // keys of `keys` that are not hidden
        Real max, sum, lse;  // sum: of exp(logit - max), sink included
    };

    Row locate(uint64_t flat, Real* scratch) const {
        Row row{};
        static_cast<RowPlace&>(row) = place(flat);
        row.q = scratch;
        row.logits = row.q + p.dim_qk;
        row.sums = row.logits + p.len_kv;
        return row;
    }

    void load_query(const Row& row) const {
        load_row(data(FOVEA_BIND_Q), p.q_type, query_row(p.q, row), p.dim_qk, row.q);
        if (p.rotated_k) rotate_row(row.q, p.dim_qk);
    }

    // True if mask and bias let query i attend to key j; returns the bias to add. Lengths, causal and window
    // are already in row.keys.
    bool is_visible(const Row& row, int64_t j, Real& bias) const {
        bias = 0;
        if (!mask_shows(row, j)) return false;
        if (!p.bias.present) return true;
        bias = load<Real>(data(FOVEA_BIND_BIAS), p.bias.type, matrix_index(p.bias, row, j));
        return bias != -kInfinity;
    }

    Real capped(Real score) const {
        return p.logit.capped(score, [](Real x) { return std::tanh(x); });
    }

    // `value`: the capped score.
    Real logit(const Row& row, int64_t j, Real value, Real bias) const {
        if (p.alibi) value += Real(alibi_slope(row)) * Real(j - (row.i + row.view.offset));
        return p.bias.present ? value + bias : value;
    }

    // row.logits[j] = scale * dot(q, k_j) for j in `keys`; 0 where the block table leads out of the pool.
    void compute_scores(const Row& row, KeyRange keys) const {
        for (int64_t block = keys.begin; block < keys.end; block += kDotRows) {
            int64_t first[kDotRows];
            for (int64_t r = 0; r < kDotRows; ++r) {
                // Missing keys and those past the end are replaced by existing ones, whose results are not
                // used.
                const int64_t key = key_row(p.k, row, std::min(block + r, keys.end - 1));
                first[r] = std::max<int64_t>(key, 0);
                if (block + r < keys.end) row.logits[block + r] = key < 0 ? 0 : Real(p.scale);
            }
            Real sums[kDotRows];
            dot_rows(row.q, data(FOVEA_BIND_K), p.k_type, first, p.dim_qk, sums);
            for (int64_t j = block; j < std::min<int64_t>(block + kDotRows, keys.end); ++j)
                row.logits[j] = row.logits[j] == 0 ? Real(0) : row.logits[j] * sums[j - block];
        }
    }

    void compute_logits(Row& row) const {
        KeyRange wanted = row.keys;
        // These two show hidden keys as well.
        if (wants(p, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED)) wanted = {0, row.view.kv_length};
        compute_scores(row, wanted);
        const uint64_t matrix_row = row.flat * uint64_t(p.len_kv);
        for (int64_t j = wanted.begin; j < wanted.end; ++j) {
            const Real score = row.logits[j];
            const Real capped = this->capped(score);
            if (wants(p, FOVEA_OUTPUT_SCORES))
                output<float>(FOVEA_BIND_SCORES)[matrix_row + j] = float(score);
            if (wants(p, FOVEA_OUTPUT_CAPPED))
                output<float>(FOVEA_BIND_CAPPED)[matrix_row + j] = float(capped);
            if (j < row.keys.begin || j >= row.keys.end) continue;
            Real bias = 0;
            const bool visible = key_row(p.k, row, j) >= 0 && is_visible(row, j, bias);
            row.logits[j] = visible ? logit(row, j, capped, bias) : -kInfinity;
            row.visible += visible ? 1 : 0;
        }
    }

    // Maximum and sum. A NaN logit makes the maximum NaN for good, and with it the whole row.
    void reduce(Row& row) const {
        Real max = p.sinks ? Real(sink(row)) : -kInfinity;
        const Real sink_logit = max;
        for (int64_t j = row.keys.begin; j < row.keys.end; ++j)
            if (row.logits[j] > max || std::isnan(row.logits[j])) max = row.logits[j];
        Real sum = 0;
        if (max != -kInfinity) {
            for (int64_t j = row.keys.begin; j < row.keys.end; ++j) sum += std::exp(row.logits[j] - max);
            if (p.sinks) sum += std::exp(sink_logit - max);
        }
        row.max = max;
        row.sum = sum;
        row.lse = max == -kInfinity ? max : row.visible == 0 ? sink_logit : max + std::log(sum);
    }

    // Returns the weight of key j before dropout; j is in row.keys.
    Real weight(const Row& row, int64_t j) const {
        if (row.logits[j] == -kInfinity) return 0;
        return std::exp(row.logits[j] - row.max) / row.sum;
    }

    Real dropped(const Row& row, int64_t j, Real w) const {
        if (!p.dropout) return w;
        return is_kept(row, j) ? w * Real(p.keep_scale) : Real(0);
    }

    void write_row_results(const Row& row) const {
        if (wants(p, FOVEA_OUTPUT_LSE)) output<float>(FOVEA_BIND_LSE)[row.flat] = float(row.lse);
        if (!wants(p, FOVEA_OUTPUT_ROW_STATS)) return;
        FoveaRowStats stats{0, 0, 0xffffffffu, row.visible};
        // The largest weight belongs to the largest logit, even where it is too small to be told from 0.
        Real max_weight = 0, max_logit = -kInfinity, entropy = 0;
        for (int64_t j = row.keys.begin; j < row.keys.end; ++j) {
            const Real w = weight(row, j);
            if (row.logits[j] > max_logit) {
                max_logit = row.logits[j];
                max_weight = w;
                stats.argmax_key = uint32_t(j);
            }
            if (w != 0) entropy -= w * std::log(w);
        }
        stats.max_weight = float(max_weight);
        stats.entropy = entropy == 0 ? 0.0f : float(entropy);  // never -0
        output<FoveaRowStats>(FOVEA_BIND_ROW_STATS)[row.flat] = stats;
    }

    // The matrices over all Lkv keys, past row.keys too.
    void write_matrices(const Row& row) const {
        if (!wants_matrix(p)) return;
        const uint64_t first = row.flat * uint64_t(p.len_kv);
        const int64_t scored = row.i < row.view.q_length ? row.view.kv_length : 0;
        for (int64_t j = 0; j < p.len_kv; ++j) {
            const bool inside = j >= row.keys.begin && j < row.keys.end;
            if (wants(p, FOVEA_OUTPUT_SCORES) && j >= scored) output<float>(FOVEA_BIND_SCORES)[first + j] = 0;
            if (wants(p, FOVEA_OUTPUT_CAPPED) && j >= scored) output<float>(FOVEA_BIND_CAPPED)[first + j] = 0;
            if (wants(p, FOVEA_OUTPUT_MASKED))
                output<float>(FOVEA_BIND_MASKED)[first + j] = float(inside ? row.logits[j] : -kInfinity);
            if (wants(p, FOVEA_OUTPUT_WEIGHTS))
                output<float>(FOVEA_BIND_WEIGHTS)[first + j] =
                    inside ? float(dropped(row, j, weight(row, j))) : 0.0f;
        }
    }

    void write_output(const Row& row) const {
        if (!wants(p, FOVEA_OUTPUT_O)) return;
        // Where entries are packed end to end, a row past the length belongs to another entry.
        if (p.packed_rows_q && row.i >= row.view.q_length) return;
        for (uint32_t d = 0; d < p.dim_v; ++d) row.sums[d] = 0;
        for (int64_t j = row.keys.begin; j < row.keys.end; ++j) {
            if (row.logits[j] == -kInfinity) continue;
            if (p.dropout && !is_kept(row, j)) continue;
            add_scaled(row.sums, dropped(row, j, weight(row, j)), data(FOVEA_BIND_V), p.v_type,
                       key_row(p.v, row, j), p.dim_v);
        }
        if (p.rotated_v) rotate_row(row.sums, p.dim_v);
        const int64_t first = query_row(p.o, row);
        for (uint32_t d = 0; d < p.dim_v; ++d) store(data(FOVEA_BIND_O), p.o_type, first + d, row.sums[d]);
    }
};

}  // namespace fovea::reference
