// Gradients of one attention call as plain loops, for any type of arithmetic: float64 is the reference,
// float32 the measure of what a same-precision computation may err. Weights are computed again from lse (Dao
// et al., "FlashAttention", 2022, appendix B), one row of queries or of keys at a time; every sum has one
// order.
#pragma once

#include "problem/backward.hpp"
#include "reference/attention_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fovea::reference {

// Results of the forward call in the type of the arithmetic, packed [B, Hq, Lq] and [B, Hq, Lq, Dv], in place
// of the bindings LSE and O: for a test that must not see their rounding. Null: the bindings.
template <class Real>
struct ForwardResults {
    const Real* lse = nullptr;
    const Real* o = nullptr;
};

template <class Real>
class BackwardLoops : AttentionLoops<Real> {
    using Base = AttentionLoops<Real>;
    using Base::p;
    using typename Base::Row;

  public:
    // Returns the elements of type Real that one worker needs: AttentionLoops' and a second row over the
    // keys, a row of k and one of v, and the sums of either.
    static uint64_t scratch_count(const Problem& problem) {
        return Base::scratch_count(problem) + uint64_t(problem.len_kv) +
               2 * (uint64_t{problem.dim_qk} + problem.dim_v);
    }

    BackwardLoops(const Problem& problem, const Backward& backward, const FoveaHostBuffer* bindings,
                  const ForwardResults<Real>& forward = {})
        : Base(problem, bindings), w(backward), parts_(parts_of(problem, backward)), forward_(forward) {}

    // Part number `part` of BackwardParts, computed and stored.
    void compute_part(uint64_t part, Real* scratch) const {
        if (part < parts_.query_rows) return store_query_row(part, scratch);
        part -= parts_.query_rows;
        if (part < parts_.key_rows) return store_key_row(part, scratch);
        part -= parts_.key_rows;
        if (part < parts_.bias_rows) {
            const Real* sums = bias_row(part, scratch);
            for (int64_t j = 0; j < w.bias_keys; ++j)
                put(FOVEA_BIND_DBIAS, FOVEA_F32, int64_t(part) * w.bias_keys + j, sums[j], FOVEA_GRAD_BIAS);
            return;
        }
        part -= parts_.bias_rows;
        if (part < parts_.slopes)
            return put(FOVEA_BIND_DALIBI, FOVEA_F32, int64_t(part), slope(uint32_t(part), scratch),
                       FOVEA_GRAD_ALIBI);
        part -= parts_.slopes;
        put(FOVEA_BIND_DSINKS, FOVEA_F32, int64_t(part), sink(uint32_t(part)), FOVEA_GRAD_SINKS);
    }

    // Computes dq of query row `flat`, numbered (b, h, i): D elements in `scratch`.
    const Real* query_row(uint64_t flat, Real* scratch) const {
        const Row row = this->locate(flat, scratch);
        Real* sums = key_vector(scratch);
        std::fill_n(sums, p.dim_qk, Real(0));
        for_each_cell(row, [&](int64_t j, const Cell& cell) {
            add_scaled(sums, cell.d_score, this->data(FOVEA_BIND_K), p.k_type, this->key_row(p.k, row, j),
                       p.dim_qk);
        });
        for (uint32_t d = 0; d < p.dim_qk; ++d) sums[d] *= Real(p.scale);
        return sums;
    }

    // Computes dk and dv of key row `flat`, numbered (b, h_kv, j): D elements, then Dv.
    const Real* key_rows(uint64_t flat, Real* scratch) const {
        const int64_t j = int64_t(flat % uint64_t(p.len_kv));
        const uint32_t b_kv = uint32_t(flat / uint64_t(p.len_kv));
        const uint32_t b = b_kv / p.heads_kv, h_kv = b_kv % p.heads_kv;
        const BatchView view = batch_view(p, this->template input<FoveaSequence>(FOVEA_BIND_SEQUENCES), b);
        Real *k = key_vector(scratch), *v = k + p.dim_qk, *dk = v + p.dim_v, *dv = dk + p.dim_qk;
        std::fill_n(dk, p.dim_qk + p.dim_v, Real(0));
        if (j >= view.kv_length) return dk;
        load_row(this->data(FOVEA_BIND_K), p.k_type, key_element(p.k, view, b, h_kv, j), p.dim_qk, k);
        load_row(this->data(FOVEA_BIND_V), p.v_type, key_element(p.v, view, b, h_kv, j), p.dim_v, v);
        for (uint32_t h = h_kv * p.group; h < (h_kv + 1) * p.group; ++h) {
            for (int64_t i = 0; i < view.q_length; ++i) {
                const Row row = this->locate(query_flat(b, h, i), scratch);
                if (j < row.keys.begin || j >= row.keys.end) continue;
                const Saved saved = saved_of(row);
                if (saved.empty) continue;
                const Real score =
                    Real(p.scale) * dot(k, FOVEA_BIND_Q, p.q_type, this->query_row_of(p.q, row), p.dim_qk);
                const Real value = dot(v, FOVEA_BIND_DO, w.do_type, this->query_row_of(w.d_o, row), p.dim_v);
                Cell cell;
                if (!make_cell(row, saved, j, score, value, cell)) continue;
                add_scaled(dk, cell.d_score, this->data(FOVEA_BIND_Q), p.q_type, this->query_row_of(p.q, row),
                           p.dim_qk);
                if (cell.kept)
                    add_scaled(dv, cell.weight, this->data(FOVEA_BIND_DO), w.do_type,
                               this->query_row_of(w.d_o, row), p.dim_v);
            }
        }
        for (uint32_t d = 0; d < p.dim_qk; ++d) dk[d] *= Real(p.scale);
        return dk;
    }

    // Computes the gradient of row `flat` of the bias, numbered (batch, head, row): bias_keys elements.
    const Real* bias_row(uint64_t flat, Real* scratch) const {
        const int64_t own_row = int64_t(flat % uint64_t(w.bias_rows));
        const uint32_t own = uint32_t(flat / uint64_t(w.bias_rows));
        const uint32_t own_batch = own / w.bias_heads, own_head = own % w.bias_heads;
        const uint32_t b0 = w.bias_batch > 1 ? own_batch : 0, b1 = w.bias_batch > 1 ? b0 + 1 : p.batch;
        const uint32_t h0 = w.bias_heads > 1 ? own_head : 0, h1 = w.bias_heads > 1 ? h0 + 1 : p.heads_q;
        const int64_t i0 = w.bias_rows > 1 ? own_row : 0, i1 = w.bias_rows > 1 ? i0 + 1 : p.len_q;
        Real* sums = second_row(scratch);
        std::fill_n(sums, w.bias_keys, Real(0));
        for (uint32_t b = b0; b < b1; ++b)
            for (uint32_t h = h0; h < h1; ++h)
                for (int64_t i = i0; i < i1; ++i) {
                    const Row row = this->locate(query_flat(b, h, i), scratch);
                    for_each_cell(row, [&](int64_t j, const Cell& cell) { sums[j] += cell.d_masked; });
                }
        return sums;
    }

    Real slope(uint32_t h, Real* scratch) const {
        Real sum = 0;
        for (uint32_t b = 0; b < p.batch; ++b)
            for (int64_t i = 0; i < p.len_q; ++i) {
                const Row row = this->locate(query_flat(b, h, i), scratch);
                for_each_cell(row, [&](int64_t j, const Cell& cell) {
                    sum += cell.d_masked * Real(j - (row.i + row.view.offset));
                });
            }
        return sum;
    }

    Real sink(uint32_t h) const {
        const Real sink = Real(this->template input<float>(FOVEA_BIND_SINKS)[h]);
        Real sum = 0;
        for (uint32_t b = 0; b < p.batch; ++b)
            for (int64_t i = 0; i < p.len_q; ++i) {
                const Row row = this->locate(query_flat(b, h, i), nullptr);
                const Saved saved = saved_of(row);
                if (!saved.empty) sum -= std::exp(sink - saved.lse) * saved.delta;
            }
        return sum;
    }

  private:
    // The saved statistics of a row, before its keys are processed.
    struct Saved {
        bool empty;  // the row is past the length, or lse says that it is fully masked
        Real lse;
        Real delta;  // sum of o times its gradient, less the gradient of lse
    };
    // A visible pair: its weight after dropout, and the gradients of its masked logit and of its score.
    struct Cell {
        bool kept;
        Real weight, d_masked, d_score;
    };

    uint64_t query_flat(uint32_t b, uint32_t h, int64_t i) const {
        return (uint64_t{b} * p.heads_q + h) * uint64_t(p.len_q) + uint64_t(i);
    }
    int64_t query_row_of(const FoveaStrides& s, const Row& row) const { return Base::query_row(s, row); }
    int64_t key_element(const FoveaStrides& s, const BatchView& view, uint32_t b, uint32_t h_kv,
                        int64_t j) const {
        return b * s.batch + h_kv * s.head + (view.kv_start + j) * s.row;
    }
    // Scratch after that of AttentionLoops.
    Real* second_row(Real* scratch) const { return scratch + Base::scratch_count(p); }
    Real* key_vector(Real* scratch) const { return second_row(scratch) + p.len_kv; }

    Real dot(const Real* a, FoveaBinding binding, FoveaDtype type, int64_t first, uint32_t count) const {
        Real sum = 0;
        for (uint32_t n = 0; n < count; ++n) sum += a[n] * load<Real>(this->data(binding), type, first + n);
        return sum;
    }

    Saved saved_of(const Row& row) const {
        if (row.i >= row.view.q_length) return {true, 0, 0};
        const Real lse = forward_.lse ? forward_.lse[row.flat]
                                      : Real(this->template input<float>(FOVEA_BIND_LSE)[row.flat]);
        if (lse == -Base::kInfinity) return {true, lse, 0};
        const int64_t o = forward_.o ? int64_t(row.flat) * p.dim_v : this->query_row_of(p.o, row);
        const int64_t d_o = this->query_row_of(w.d_o, row);
        Real sum = 0;
        bool zero = true;
        for (uint32_t n = 0; n < p.dim_v; ++n) {
            const Real value =
                forward_.o ? forward_.o[o + n] : load<Real>(this->data(FOVEA_BIND_O), p.o_type, o + n);
            zero = zero && value == 0;
            sum += value * load<Real>(this->data(FOVEA_BIND_DO), w.do_type, d_o + n);
        }
        // A row of zeros may be fully masked except for its sink: no gradient may reach its inputs.
        Real delta = zero ? Real(0) : sum;
        if (w.lse_gradient) delta -= Real(this->template input<float>(FOVEA_BIND_DLSE)[row.flat]);
        return {false, lse, delta};
    }

    // False where the key is hidden. `value` is the product of the row of v with the gradient of o.
    bool make_cell(const Row& row, const Saved& saved, int64_t j, Real score, Real value, Cell& out) const {
        Real bias = 0;
        if (!this->is_visible(row, j, bias)) return false;
        const Real capped = this->capped(score);
        const Real weight = std::exp(this->logit(row, j, capped, bias) - saved.lse);
        out.kept = !p.dropout || this->is_kept(row, j);
        const Real factor = p.dropout ? Real(p.keep_scale) : Real(1);
        out.weight = out.kept ? weight * factor : Real(0);
        out.d_masked = weight * ((out.kept ? value * factor : Real(0)) - saved.delta);
        const Real share = p.logit.softcap > 0 ? capped / Real(p.logit.softcap) : Real(0);
        out.d_score = out.d_masked * (1 - share * share);
        return true;
    }

    // Calls body(j, cell) for the keys that the row sees, ascending. Uses row.q, row.logits and row.sums.
    template <class Body>
    void for_each_cell(const Row& row, const Body& body) const {
        const Saved saved = saved_of(row);
        if (saved.empty || row.keys.empty()) return;
        load_row(this->data(FOVEA_BIND_Q), p.q_type, this->query_row_of(p.q, row), p.dim_qk, row.q);
        load_row(this->data(FOVEA_BIND_DO), w.do_type, this->query_row_of(w.d_o, row), p.dim_v, row.sums);
        this->compute_scores(row, row.keys);
        for (int64_t block = row.keys.begin; block < row.keys.end; block += kDotRows) {
            int64_t first[kDotRows];
            for (int64_t n = 0; n < kDotRows; ++n)
                first[n] = this->key_row(p.v, row, std::min(block + n, row.keys.end - 1));
            Real values[kDotRows];
            dot_rows(row.sums, this->data(FOVEA_BIND_V), p.v_type, first, p.dim_v, values);
            for (int64_t j = block; j < std::min<int64_t>(block + kDotRows, row.keys.end); ++j) {
                Cell cell;
                if (make_cell(row, saved, j, row.logits[j], values[j - block], cell)) body(j, cell);
            }
        }
    }

    void put(FoveaBinding binding, FoveaDtype type, int64_t index, Real value, uint32_t gradient) const {
        if (w.adds(gradient)) value += load<Real>(this->data(binding), type, index);
        store(this->data(binding), type, index, value);
    }

    void store_query_row(uint64_t flat, Real* scratch) const {
        const Row row = this->locate(flat, scratch);
        // Where entries are packed end to end, a row past the length belongs to another entry.
        if (p.packed_rows_q && row.i >= row.view.q_length) return;
        const Real* sums = query_row(flat, scratch);
        const int64_t first = this->query_row_of(w.dq, row);
        for (uint32_t d = 0; d < p.dim_qk; ++d)
            put(FOVEA_BIND_DQ, w.dq_type, first + d, sums[d], FOVEA_GRAD_Q);
    }

    void store_key_row(uint64_t flat, Real* scratch) const {
        const int64_t j = int64_t(flat % uint64_t(p.len_kv));
        const uint32_t b_kv = uint32_t(flat / uint64_t(p.len_kv));
        const uint32_t b = b_kv / p.heads_kv, h_kv = b_kv % p.heads_kv;
        const BatchView view = batch_view(p, this->template input<FoveaSequence>(FOVEA_BIND_SEQUENCES), b);
        if (p.packed_rows_kv && j >= view.kv_length) return;
        const Real* sums = key_rows(flat, scratch);
        const int64_t dk = key_element(w.dk, view, b, h_kv, j), dv = key_element(w.dv, view, b, h_kv, j);
        for (uint32_t d = 0; d < p.dim_qk && w.wants(FOVEA_GRAD_K); ++d)
            put(FOVEA_BIND_DK, w.dk_type, dk + d, sums[d], FOVEA_GRAD_K);
        for (uint32_t d = 0; d < p.dim_v && w.wants(FOVEA_GRAD_V); ++d)
            put(FOVEA_BIND_DV, w.dv_type, dv + d, sums[p.dim_qk + d], FOVEA_GRAD_V);
    }

    const Backward& w;
    const BackwardParts parts_;
    const ForwardResults<Real> forward_;
};

}  // namespace fovea::reference
