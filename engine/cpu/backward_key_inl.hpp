// The pass of the gradients that holds a panel of keys against blocks of query rows: dk and dv. It uses the
// tiles of flash with the roles exchanged: keys are along the lanes, rows of q and of o's gradient are
// streamed.
#if defined(FOVEA_CPU_BACKWARD_KEY_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BACKWARD_KEY_INL_HPP
#undef FOVEA_CPU_BACKWARD_KEY_INL_HPP
#else
#define FOVEA_CPU_BACKWARD_KEY_INL_HPP
#endif

#include "cpu/backward_rows_inl.hpp"
#include "cpu/dropout_inl.hpp"

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

class KeyPanel {
  public:
    KeyPanel(const BackwardCall& call, unsigned char* scratch)
        : call_(call),
          a_(call.attention),
          p_(a_.p),
          layout_(backward_layout(kShape, p_.dim_qk, p_.dim_v, call.cut.block)),
          base_(scratch) {}

    void run(uint64_t task);

  private:
    // A query row while it meets the panel.
    struct RowNumbers {
        int32_t query, position, begin, end;  // keys [begin, end) are visible to the parametric masks
        float lse, delta;
        int64_t mask, bias, keep;  // first elements of its rows in the matrices
    };
    static_assert(sizeof(RowNumbers) <= kBackwardRowBytes);

    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    RowNumbers* numbers() const { return reinterpret_cast<RowNumbers*>(base_ + layout_.row_numbers); }
    size_t keys() const { return size_t(key_end_ - key_begin_); }
    size_t vectors() const { return (keys() + kLanes - 1) / kLanes; }
    bool wants_dk() const { return call_.w.wants(FOVEA_GRAD_K); }
    bool wants_dv() const { return call_.w.wants(FOVEA_GRAD_V); }
    int64_t key_offset(const FoveaStrides& s, int64_t j) const {
        return rows_.b * s.batch + rows_.h_kv * s.head + (rows_.view.kv_start + j) * s.row;
    }

    KeyRange rows_of_keys() const;
    void load_keys();
    void add_rows(uint32_t h, int64_t begin, int64_t end);
    bool set_rows(uint32_t h, int64_t begin, int64_t end);
    VI keys_of(size_t vector) const {
        return hn::Add(hn::Iota(I(), 0), hn::Set(I(), int32_t(key_begin_ + int64_t(vector * kLanes))));
    }
    V logit(const RowNumbers& row, V product, VI key, size_t vector, float slope, V& cap,
            hn::Mask<F>& seen) const;
    V bias_of(const RowNumbers& row, size_t vector) const;
    hn::Mask<F> kept(const RowNumbers& row, size_t vector, VI key, uint32_t bh) const;
    hn::Mask<F> set_bytes(FoveaBinding binding, int64_t row, int64_t columns, size_t vector) const;
    void weigh(uint32_t h, size_t count);
    void add(RowBlock& from, size_t count, size_t dim, bool hidden, const float* weights, float* sums);
    void store(FoveaBinding binding, FoveaDtype type, const FoveaStrides& s, const float* sums, float factor,
               size_t dim, bool add) const;

    const BackwardCall& call_;
    const AttentionCall& a_;
    const Problem& p_;
    const BackwardLayout layout_;
    unsigned char* base_;
    QueryRows rows_{};                     // entry, head group and view
    int64_t key_begin_ = 0, key_end_ = 0;  // keys of the panel that are within the length
    bool hidden_ = false;                  // some pair of the current block is masked
};

// Queries that may see a key of the panel: the inverse of visible_keys.
inline KeyRange KeyPanel::rows_of_keys() const {
    int64_t begin = 0, end = rows_.view.q_length;
    const int64_t right = p_.causal ? std::min<int64_t>(0, p_.window_right) : p_.window_right;
    if (right != kUnbounded) begin = std::max(begin, key_begin_ - rows_.view.offset - right);
    if (p_.window_left != kUnbounded) end = std::min(end, key_end_ - rows_.view.offset + p_.window_left);
    return {begin, std::max(begin, end)};
}

inline void KeyPanel::load_keys() {
    int64_t k[kPanel], v[kPanel];
    for (size_t lane = 0; lane < kPanel; ++lane) {
        const int64_t j = std::min(key_begin_ + int64_t(lane), key_end_ - 1);
        k[lane] = key_offset(p_.k, j), v[lane] = key_offset(p_.v, j);
    }
    load_panel(a_, FOVEA_BIND_K, p_.k_type, k, p_.dim_qk, vectors(), floats(layout_.panel_a));
    load_panel(a_, FOVEA_BIND_V, p_.v_type, v, p_.dim_v, vectors(), floats(layout_.panel_b));
    memset(floats(layout_.sum_a), 0, p_.dim_qk * kPanel * sizeof(float));
    memset(floats(layout_.sum_b), 0, p_.dim_v * kPanel * sizeof(float));
}

// A panel of keys of one key/value head.
inline void KeyPanel::run(uint64_t task) {
    const uint64_t head = task / call_.cut.key_panels;
    rows_.b = uint32_t(head / p_.heads_kv);
    rows_.h_kv = uint32_t(head % p_.heads_kv);
    rows_.view = a_.view(rows_.b);
    key_begin_ = int64_t(task % call_.cut.key_panels * kPanel);
    const int64_t past = std::min<int64_t>(key_begin_ + kPanel, p_.len_kv);
    key_end_ = std::clamp(rows_.view.kv_length, key_begin_, past);
    if (key_end_ > key_begin_) {
        load_keys();
        const KeyRange rows = rows_of_keys();
        const int64_t step = call_.cut.block;
        for (uint32_t h = rows_.h_kv * p_.group; h < (rows_.h_kv + 1) * p_.group; ++h)
            for (int64_t i = rows.begin; i < rows.end; i += step)
                add_rows(h, i, std::min(i + step, rows.end));
        const Backward& w = call_.w;
        if (wants_dk())
            store(FOVEA_BIND_DK, w.dk_type, w.dk, floats(layout_.sum_a), p_.scale, p_.dim_qk,
                  w.adds(FOVEA_GRAD_K));
        if (wants_dv())
            store(FOVEA_BIND_DV, w.dv_type, w.dv, floats(layout_.sum_b), 1.0f, p_.dim_v,
                  w.adds(FOVEA_GRAD_V));
    }
    // Where entries are packed end to end, a key past the length belongs to another entry.
    for (int64_t j = key_end_; j < past && !p_.packed_rows_kv; ++j) {
        const Backward& w = call_.w;
        if (wants_dk())
            clear_row(a_, FOVEA_BIND_DK, w.dk_type, key_offset(w.dk, j), p_.dim_qk, w.adds(FOVEA_GRAD_K));
        if (wants_dv())
            clear_row(a_, FOVEA_BIND_DV, w.dv_type, key_offset(w.dv, j), p_.dim_v, w.adds(FOVEA_GRAD_V));
    }
}

// Fills numbers() for rows [begin, end); false if none of them sees a key of the panel.
inline bool KeyPanel::set_rows(uint32_t h, int64_t begin, int64_t end) {
    bool any = false;
    hidden_ = p_.mask.present || p_.bias.present;
    for (int64_t i = begin; i < end; ++i) {
        RowNumbers& row = numbers()[i - begin];
        const KeyRange seen = visible_keys(p_, rows_.view, i);
        row.query = int32_t(i);
        row.position = int32_t(i + rows_.view.offset);
        row.lse = *a_.at<const float>(FOVEA_BIND_LSE, flat_row(p_, rows_.b, h, i));
        const bool empty = row.lse == kHidden || seen.end <= key_begin_ || seen.begin >= key_end_;
        row.begin = empty ? 0 : int32_t(seen.begin), row.end = empty ? 0 : int32_t(seen.end);
        row.delta = empty ? 0.0f : delta_of_row(call_, rows_, i, h);
        if (p_.mask.present) row.mask = matrix_offset(p_.mask, rows_.b, h, i);
        if (p_.bias.present) row.bias = matrix_offset(p_.bias, rows_.b, h, i);
        if (p_.dropout_mask.present) row.keep = matrix_offset(p_.dropout_mask, rows_.b, h, i);
        any = any || !empty;
        hidden_ = hidden_ || row.begin > key_begin_ || row.end < key_end_;
    }
    return any;
}

// True by lane where the byte of a mask is not zero; false past its columns.
inline hn::Mask<F> KeyPanel::set_bytes(FoveaBinding binding, int64_t row, int64_t columns,
                                       size_t vector) const {
    const I i;
    const int64_t j = key_begin_ + int64_t(vector * kLanes), count = columns - j;
    const uint8_t* from = a_.at<const uint8_t>(binding, row + j);
    VI word;
    if (count >= int64_t(kLanes)) {
        const hn::Rebind<uint8_t, I> bytes;
        word = hn::PromoteTo(i, hn::LoadU(bytes, from));
    } else {
        HWY_ALIGN int32_t part[kLanes];
        for (int64_t n = 0; n < int64_t(kLanes); ++n) part[n] = n < count ? from[n] : 0;
        word = hn::Load(i, part);
    }
    return hn::RebindMask(F(), hn::Ne(word, hn::Zero(i)));
}

inline V KeyPanel::bias_of(const RowNumbers& row, size_t vector) const {
    const int64_t j = key_begin_ + int64_t(vector * kLanes), count = p_.bias.keys - j;
    V numbers;
    with_type(p_.bias.type, [&](auto bias) {
        const auto* data = a_.at<const decltype(bias)>(FOVEA_BIND_BIAS, row.bias + j);
        if (count >= int64_t(kLanes)) {
            numbers = load_row(data);
            return;
        }
        HWY_ALIGN float part[kLanes];
        for (int64_t n = 0; n < int64_t(kLanes); ++n) part[n] = n < count ? load_one(data + n) : kHidden;
        numbers = hn::Load(F(), part);
    });
    return numbers;
}

// The masked logit less its row's lse; `cap` becomes the softcap's slope, and `seen` false where the bias
// hides.
HWY_INLINE V KeyPanel::logit(const RowNumbers& row, V product, VI key, size_t vector, float slope, V& cap,
                             hn::Mask<F>& seen) const {
    const F f;
    V x = product, unit = hn::Set(f, p_.scale);
    if (has_logit_steps(p_) || p_.bias.present) {
        x = hn::Mul(x, unit), unit = hn::Set(f, 1.0f);
        x = capped_score(x, p_.logit);
        if (p_.logit.softcap > 0) cap = cap_slope(x, p_.logit.softcap);
        if (p_.alibi) {
            const VI distance = hn::Sub(key, hn::Set(I(), row.position));
            x = hn::Add(x, hn::Mul(hn::Set(f, slope), hn::ConvertTo(f, distance)));
        }
        if (p_.bias.present) {
            const V bias = bias_of(row, vector);
            seen = hn::And(seen, hn::Ne(bias, hn::Set(f, kHidden)));
            x = hn::Add(x, bias);
        }
    }
    return mul_add(x, unit, hn::Set(f, -row.lse));
}

// By lane, whether dropout keeps the key.
inline hn::Mask<F> KeyPanel::kept(const RowNumbers& row, size_t vector, VI key, uint32_t bh) const {
    const I i;
    const U u;
    if (p_.dropout_mask.present)
        return set_bytes(FOVEA_BIND_DROPOUT_MASK, row.keep, p_.dropout_mask.keys, vector);
    const uint64_t drop_key = dropout_key(p_);
    const VU j = hn::Add(hn::BitCast(u, key), hn::Set(u, p_.first_key));
    const PhiloxWords words =
        philox({{hn::ShiftRight<2>(j), hn::Set(u, p_.first_query + uint32_t(row.query)),
                 hn::Set(u, p_.first_batch_head + bh), hn::Set(u, uint32_t(p_.dropout_offset))}},
               uint32_t(drop_key), uint32_t(drop_key >> 32));
    const VI which = hn::And(key, hn::Set(i, 3));
    VI word = hn::BitCast(i, words.word[0]);
    for (int n = 1; n < 4; ++n)
        word = hn::IfThenElse(hn::Eq(which, hn::Set(i, n)), hn::BitCast(i, words.word[n]), word);
    // Words are compared as signed integers: both sides are moved by 2^31.
    const VI flip = hn::Set(i, std::numeric_limits<int32_t>::min());
    const VI threshold = hn::Xor(hn::Set(i, int32_t(p_.drop_threshold)), flip);
    return hn::RebindMask(F(), hn::Not(hn::Lt(hn::Xor(word, flip), threshold)));
}

// Products of a block of rows become the weights after dropout (weights) and the gradients of the scores
// (scores).
inline void KeyPanel::weigh(uint32_t h, size_t count) {
    const F f;
    const I i;
    float *scores = floats(layout_.scores), *values = floats(layout_.values),
          *weights = floats(layout_.weights);
    const float* slopes = a_.at<const float>(FOVEA_BIND_ALIBI);
    const float slope = slopes ? slopes[h] : 0;
    const uint32_t bh = rows_.b * p_.heads_q + h;
    const V factor = hn::Set(f, p_.dropout ? p_.keep_scale : 1.0f);
    for (size_t n = 0; n < count; ++n) {
        const RowNumbers& row = numbers()[n];
        const V delta = hn::Set(f, row.delta);
        for (size_t v = 0; v < vectors(); ++v) {
            float* to = scores + n * kPanel + v * kLanes;
            const VI key = keys_of(v);
            auto hidden =
                hn::Or(hn::Lt(key, hn::Set(i, row.begin)), hn::Not(hn::Lt(key, hn::Set(i, row.end))));
            auto seen = hn::RebindMask(f, hn::Not(hidden));
            if (p_.mask.present) seen = hn::And(seen, set_bytes(FOVEA_BIND_MASK, row.mask, p_.mask.keys, v));
            V cap = hn::Set(f, 1.0f);
            const V x = logit(row, hn::Load(f, to), key, v, slope, cap, seen);
            const auto out = hn::Not(seen);
            const V weight = weight_of(x, out);
            V value = hn::Mul(factor, hn::Load(f, values + n * kPanel + v * kLanes)),
              dropped = hn::Mul(factor, weight);
            if (p_.dropout) {
                const auto keep = kept(row, v, key, bh);
                value = hn::IfThenElseZero(keep, value);
                dropped = hn::IfThenElseZero(keep, dropped);
            }
            const V d_score = hn::Mul(hn::Mul(weight, hn::Sub(value, delta)), cap);
            hn::Store(dropped, f, weights + n * kPanel + v * kLanes);
            hn::Store(hn::IfThenZeroElse(out, d_score), f, to);
        }
    }
}

// sums[c][lane] += rows[n][c] * weights[n][lane] for a block of rows.
inline void KeyPanel::add(RowBlock& from, size_t count, size_t dim, bool hidden, const float* weights,
                          float* sums) {
    HWY_ALIGN float one[kPanel];
    for (size_t lane = 0; lane < kPanel; ++lane) one[lane] = 1;
    // Zero times a row that sees nothing would be NaN where the row is not finite.
    if (hidden && !from.is_finite(count, dim))
        sum_block_of_seen(vectors(), from.columns(), 0, count, dim, weights, sums, one);
    else
        sum_block(vectors(), from.columns(), 0, count, dim, weights, sums, one);
}

inline void KeyPanel::add_rows(uint32_t h, int64_t begin, int64_t end) {
    if (!set_rows(h, begin, end)) return;
    const size_t count = size_t(end - begin);
    RowBlock q = fetch_rows(a_, FOVEA_BIND_Q, p_.q_type, query_offset(p_, p_.q, rows_, begin, h), p_.q.row,
                            count, p_.dim_qk, floats(layout_.rows_a));
    RowBlock d_o =
        fetch_rows(a_, FOVEA_BIND_DO, call_.w.do_type, query_offset(p_, call_.w.d_o, rows_, begin, h),
                   call_.w.d_o.row, count, p_.dim_v, floats(layout_.rows_b));
    dot_block<DotMode::plain>(vectors(), q.data, q.stride, count, floats(layout_.panel_a), p_.dim_qk,
                              floats(layout_.scores), nullptr);
    if (wants_dk())
        dot_block<DotMode::plain>(vectors(), d_o.data, d_o.stride, count, floats(layout_.panel_b), p_.dim_v,
                                  floats(layout_.values), nullptr);
    weigh(h, count);
    if (wants_dv()) add(d_o, count, p_.dim_v, hidden_, floats(layout_.weights), floats(layout_.sum_b));
    if (wants_dk()) add(q, count, p_.dim_qk, hidden_, floats(layout_.scores), floats(layout_.sum_a));
}

inline void KeyPanel::store(FoveaBinding binding, FoveaDtype type, const FoveaStrides& s, const float* sums,
                            float factor, size_t dim, bool add) const {
    int64_t first[kPanel];
    for (size_t lane = 0; lane < keys(); ++lane) first[lane] = key_offset(s, key_begin_ + int64_t(lane));
    store_panel(a_, binding, type, first, sums, factor, dim, keys(), add);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
