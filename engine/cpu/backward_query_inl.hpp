// The passes of the gradients that hold a panel of queries against blocks of keys: dq, and the gradients of
// masked logits for a bias and for slopes. The products are those of flash's tiles; see tile_inl.hpp.
#if defined(FOVEA_CPU_BACKWARD_QUERY_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BACKWARD_QUERY_INL_HPP
#undef FOVEA_CPU_BACKWARD_QUERY_INL_HPP
#else
#define FOVEA_CPU_BACKWARD_QUERY_INL_HPP
#endif

#include "cpu/backward_rows_inl.hpp"
#include "cpu/dropout_inl.hpp"
#include "cpu/segments_inl.hpp"

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

static_assert(sizeof(Lanes) == kBackwardLaneWords * kPanel * 4);

// The result for a pair of a query and a key.
enum class Pair { score, masked };  // the gradient of its score, or of its masked logit

class QueryPanel {
  public:
    QueryPanel(const BackwardCall& call, unsigned char* scratch)
        : call_(call),
          a_(call.attention),
          p_(a_.p),
          layout_(backward_layout(kShape, p_.dim_qk, p_.dim_v, call.cut.block)),
          base_(scratch),
          form_(p_) {}

    void query_tile(uint64_t task);
    void bias_rows(uint64_t task);
    void slope(uint32_t h);
    void sink(uint32_t h);

  private:
    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    Lanes& lanes() const { return *reinterpret_cast<Lanes*>(base_ + layout_.lanes); }
    float* lane_row(size_t n) const { return floats(layout_.lane_rows) + n * kPanel; }
    float* scores() const { return floats(layout_.scores); }
    float* values() const { return floats(layout_.values); }
    float* lse() const { return lane_row(0); }
    float* delta() const { return lane_row(1); }
    float* one() const { return lane_row(2); }
    float* ignored() const { return lane_row(3); }
    size_t vectors() const { return (rows_in_panel_ + kLanes - 1) / kLanes; }

    void begin_entry(uint32_t b, uint32_t h_kv);
    void begin_rows(size_t count);
    void fetch(int64_t begin, int64_t end);
    void pairs(const Segment& part, bool partial, bool& hidden, Pair pair);
    void add_keys(const Segment& part, bool hidden);
    void finish_dq();
    void add_slopes(const Segment& part, double& sum);
    template <class Use>
    void walk(int64_t begin, int64_t end, Pair pair, const Use& use);

    const BackwardCall& call_;
    const AttentionCall& a_;
    const Problem& p_;
    const BackwardLayout layout_;
    unsigned char* base_;
    const LogitForm form_;
    QueryRows rows_{};  // entry, head group and view
    size_t rows_in_panel_ = 0;
    int64_t block_begin_ = 0;
    RowBlock keys_{}, values_{};
};

inline void QueryPanel::begin_entry(uint32_t b, uint32_t h_kv) {
    rows_.b = b;
    rows_.h_kv = h_kv;
    rows_.view = a_.view(b);
}

// The first `count` lanes were set; the others repeat the last one.
inline void QueryPanel::begin_rows(size_t count) {
    rows_in_panel_ = count;
    Lanes& l = lanes();
    for (size_t lane = count; lane < kPanel; ++lane) {
        l.begin[lane] = l.begin[count - 1], l.end[lane] = l.end[count - 1];
        l.position[lane] = l.position[count - 1], l.query[lane] = l.query[count - 1];
        l.bh[lane] = l.bh[count - 1], l.slope[lane] = l.slope[count - 1];
    }
    int64_t q[kPanel], d_o[kPanel];
    for (size_t lane = 0; lane < kPanel; ++lane) {
        const uint32_t h = l.bh[lane] % p_.heads_q;
        const int64_t i = l.query[lane];
        q[lane] = query_offset(p_, p_.q, rows_, i, h);
        d_o[lane] = query_offset(p_, call_.w.d_o, rows_, i, h);
        one()[lane] = 1, ignored()[lane] = 0;
        if (lane >= count) {
            lse()[lane] = lse()[count - 1], delta()[lane] = delta()[count - 1];
            continue;
        }
        lse()[lane] = *a_.at<const float>(FOVEA_BIND_LSE, flat_row(p_, rows_.b, h, i));
        delta()[lane] = lse()[lane] == kHidden ? 0.0f : delta_of_row(call_, rows_, i, h);
    }
    load_panel(a_, FOVEA_BIND_Q, p_.q_type, q, p_.dim_qk, vectors(), floats(layout_.panel_a));
    load_panel(a_, FOVEA_BIND_DO, call_.w.do_type, d_o, p_.dim_v, vectors(), floats(layout_.panel_b));
}

inline void QueryPanel::fetch(int64_t begin, int64_t end) {
    const auto first = [&](const FoveaStrides& s) {
        return rows_.b * s.batch + rows_.h_kv * s.head + (rows_.view.kv_start + begin) * s.row;
    };
    const size_t count = size_t(end - begin);
    keys_ = fetch_rows(a_, FOVEA_BIND_K, p_.k_type, first(p_.k), p_.k.row, count, p_.dim_qk,
                       floats(layout_.rows_a));
    values_ = fetch_rows(a_, FOVEA_BIND_V, p_.v_type, first(p_.v), p_.v.row, count, p_.dim_v,
                         floats(layout_.rows_b));
}

// Leaves the gradients of a segment's pairs in scores(). `hidden`: some of them are, and hold 0.
inline void QueryPanel::pairs(const Segment& part, bool partial, bool& hidden, Pair pair) {
    const F f;
    const size_t at = part.first_vector * kLanes, row = size_t(part.first_key - block_begin_);
    float *s = scores() + row * kPanel, *dp = values() + row * kPanel,
          *slopes = floats(layout_.weights) + row * kPanel;
    dot_block<DotMode::plain>(part.vectors(), keys_.data + row * keys_.stride, keys_.stride, part.keys(),
                              floats(layout_.panel_a) + at, p_.dim_qk, s + at, nullptr);
    dot_block<DotMode::plain>(part.vectors(), values_.data + row * values_.stride, values_.stride,
                              part.keys(), floats(layout_.panel_b) + at, p_.dim_v, dp + at, nullptr);
    if (p_.dropout) apply_dropout(a_, lanes(), part, block_begin_, values());
    const bool capped = p_.logit.softcap > 0;
    if (capped) {
        // The slope is kept and the capped score takes the product's place.
        for (size_t n = 0; n < part.keys(); ++n)
            for (size_t v = part.first_vector; v < part.last_vector; ++v) {
                float* to = s + n * kPanel + v * kLanes;
                const V score = capped_score(hn::Mul(hn::Load(f, to), hn::Set(f, p_.scale)), p_.logit);
                hn::Store(cap_slope(score, p_.logit.softcap), f, slopes + n * kPanel + v * kLanes);
                hn::Store(score, f, to);
            }
    }
    Adjustments adjustments;
    const bool matrices = p_.mask.present || p_.bias.present;
    if (matrices) adjustments.aim(a_, lanes());
    const LogitSteps steps(p_, capped ? LogitsFrom::capped_scores : LogitsFrom::products, form_.general,
                           partial, matrices ? &adjustments : nullptr, nullptr);
    hidden = steps.hides();
    if (steps.general || hidden) apply_logit_steps(steps, lanes(), part, block_begin_, scores(), ignored());
    const V factor = hn::Set(f, p_.dropout ? p_.keep_scale : 1.0f), none = hn::Set(f, kHidden);
    const V unit = hn::Set(f, form_.general ? 1.0f : p_.scale);
    for (size_t v = part.first_vector; v < part.last_vector; ++v) {
        const V row_lse = hn::Load(f, lse() + v * kLanes), row_delta = hn::Load(f, delta() + v * kLanes);
        const V minus_lse = hn::Neg(row_lse);
        const auto empty = hn::Eq(row_lse, none);
        hidden = hidden || !hn::AllFalse(f, empty);
        for (size_t n = 0; n < part.keys(); ++n) {
            float* to = s + n * kPanel + v * kLanes;
            const V logit = hn::Load(f, to);
            const V weight = weight_of(mul_add(logit, unit, minus_lse), hn::Or(empty, hn::Eq(logit, none)));
            const V value = hn::Mul(factor, hn::Load(f, dp + n * kPanel + v * kLanes));
            V result = hn::Mul(weight, hn::Sub(value, row_delta));
            if (capped && pair == Pair::score)
                result = hn::Mul(result, hn::Load(f, slopes + n * kPanel + v * kLanes));
            // The value of a masked key must not reach the result, even if it is NaN.
            hn::Store(hn::IfThenZeroElse(hn::Or(empty, hn::Eq(logit, none)), result), f, to);
        }
    }
}

// Calls use(segment, hidden) for each part of the panel's pairs with keys [begin, end), with their gradients
// in scores(). Blocks are on a grid from key 0, so that a row's sums do not depend on the neighboring rows.
template <class Use>
void QueryPanel::walk(int64_t begin, int64_t end, Pair pair, const Use& use) {
    const int64_t step = call_.cut.block;
    for (int64_t j = begin / step * step; j < end; j += step) {
        block_begin_ = std::max(j, begin);
        const int64_t block_end = std::min(j + step, end);
        const Segments segments(lanes(), vectors(), block_begin_, block_end);
        if (segments.count == 0) continue;
        fetch(block_begin_, block_end);
        for (size_t n = 0; n < segments.count; ++n) {
            bool hidden = false;
            pairs(segments.part[n], segments.partial[n], hidden, pair);
            use(segments.part[n], hidden);
        }
    }
}

inline void QueryPanel::add_keys(const Segment& part, bool hidden) {
    const size_t at = part.first_vector * kLanes, row = size_t(part.first_key - block_begin_);
    const float* ds = scores() + row * kPanel + at;
    float* sum = floats(layout_.sum_a) + at;
    const RowBlock from{keys_.data + row * keys_.stride, keys_.stride, -1};
    // Zero times a hidden key would be NaN where the key is not finite.
    if (hidden && !RowBlock(from).is_finite(part.keys(), p_.dim_qk))
        sum_block_of_seen(part.vectors(), from.columns(), 0, part.keys(), p_.dim_qk, ds, sum, one() + at);
    else
        sum_block(part.vectors(), from.columns(), 0, part.keys(), p_.dim_qk, ds, sum, one() + at);
}

inline void QueryPanel::finish_dq() {
    int64_t first[kPanel];
    for (size_t lane = 0; lane < rows_in_panel_; ++lane)
        first[lane] = query_offset(p_, call_.w.dq, rows_, lanes().query[lane], lanes().bh[lane] % p_.heads_q);
    store_panel(a_, FOVEA_BIND_DQ, call_.w.dq_type, first, floats(layout_.sum_a), p_.scale, p_.dim_qk,
                rows_in_panel_, call_.w.adds(FOVEA_GRAD_Q));
}

// Some queries of all heads of a group.
inline void QueryPanel::query_tile(uint64_t task) {
    const uint64_t heads = uint64_t{p_.batch} * p_.heads_kv;
    // The last rows come first: with a causal mask they are the most work.
    const int64_t tile = int64_t(call_.cut.query_tiles - 1 - task / heads);
    begin_entry(uint32_t(task % heads / p_.heads_kv), uint32_t(task % heads % p_.heads_kv));
    rows_.begin = tile * int64_t(call_.cut.query_tile);
    rows_.past = std::min(rows_.begin + int64_t(call_.cut.query_tile), p_.len_q);
    rows_.end = std::clamp(rows_.view.q_length, rows_.begin, rows_.past);
    for (size_t first = 0; first < rows_.count(p_); first += kPanel) {
        const size_t count = HWY_MIN(kPanel, rows_.count(p_) - first);
        set_lanes(a_, rows_, first, lanes());
        begin_rows(count);
        memset(floats(layout_.sum_a), 0, p_.dim_qk * kPanel * sizeof(float));
        walk(lanes().begin[0], lanes().end[kPanel - 1], Pair::score,
             [&](const Segment& part, bool hidden) { add_keys(part, hidden); });
        finish_dq();
    }
    // Where entries are packed end to end, a row past the length belongs to another entry.
    for (int64_t i = rows_.end; i < rows_.past && !p_.packed_rows_q; ++i)
        for (uint32_t g = 0; g < p_.group; ++g)
            clear_row(a_, FOVEA_BIND_DQ, call_.w.dq_type,
                      query_offset(p_, call_.w.dq, rows_, i, rows_.h_kv * p_.group + g), p_.dim_qk,
                      call_.w.adds(FOVEA_GRAD_Q));
}

// A panel of the bias's own rows against all keys, summed over the axes that it broadcasts.
inline void QueryPanel::bias_rows(uint64_t task) {
    const Backward& w = call_.w;
    const uint64_t own = task / call_.cut.bias_panels;
    const bool each_row = w.bias_rows > 1;
    const int64_t own_first = each_row ? int64_t(task % call_.cut.bias_panels * kPanel) : 0;
    const int64_t own_end = each_row ? std::min<int64_t>(own_first + kPanel, w.bias_rows) : 1;
    const uint32_t own_batch = uint32_t(own / w.bias_heads), own_head = uint32_t(own % w.bias_heads);
    const uint32_t b0 = w.bias_batch > 1 ? own_batch : 0, b1 = w.bias_batch > 1 ? b0 + 1 : p_.batch;
    const uint32_t h0 = w.bias_heads > 1 ? own_head : 0, h1 = w.bias_heads > 1 ? h0 + 1 : p_.heads_q;
    float* sums = floats(layout_.sums);
    for (int64_t j = 0; j < w.bias_keys; j += call_.cut.block) {
        const int64_t end = std::min<int64_t>(j + call_.cut.block, w.bias_keys);
        memset(sums, 0, size_t(end - j) * kPanel * sizeof(float));
        for (uint32_t b = b0; b < b1; ++b)
            for (uint32_t h = h0; h < h1; ++h) {
                begin_entry(b, h / p_.group);
                const int64_t row_end = std::min(each_row ? own_end : p_.len_q, rows_.view.q_length);
                for (int64_t i = own_first; i < row_end; i += kPanel) {
                    const size_t count = size_t(std::min<int64_t>(kPanel, row_end - i));
                    for (size_t lane = 0; lane < count; ++lane)
                        set_lane(a_, rows_, i + int64_t(lane), h, lane, lanes());
                    if (lanes().begin[0] >= end || lanes().end[count - 1] <= j) continue;
                    begin_rows(count);
                    walk(std::max<int64_t>(j, lanes().begin[0]),
                         std::min<int64_t>(end, lanes().end[count - 1]), Pair::masked,
                         [&](const Segment& part, bool) {
                             for (int64_t key = part.first_key; key < part.last_key; ++key)
                                 for (size_t lane = part.first_vector * kLanes;
                                      lane < HWY_MIN(part.last_vector * kLanes, count); ++lane)
                                     sums[size_t(key - j) * kPanel + lane] +=
                                         scores()[size_t(key - block_begin_) * kPanel + lane];
                         });
                }
            }
        for (int64_t key = j; key < end; ++key) {
            const float* row = sums + size_t(key - j) * kPanel;
            const auto at = [&](int64_t i) { return (int64_t(own) * w.bias_rows + i) * w.bias_keys + key; };
            double all = 0;
            for (size_t lane = 0; lane < kPanel; ++lane) all += row[lane];
            if (!each_row) store_number(a_, FOVEA_BIND_DBIAS, at(0), all, w.adds(FOVEA_GRAD_BIAS));
            for (int64_t i = own_first; i < own_end && each_row; ++i)
                store_number(a_, FOVEA_BIND_DBIAS, at(i), row[i - own_first], w.adds(FOVEA_GRAD_BIAS));
        }
    }
}

inline void QueryPanel::add_slopes(const Segment& part, double& sum) {
    const F f;
    const I i;
    const size_t row = size_t(part.first_key - block_begin_);
    for (size_t v = part.first_vector; v < part.last_vector; ++v) {
        const VI position = hn::Load(i, lanes().position + v * kLanes);
        V total = hn::Zero(f);
        for (size_t n = 0; n < part.keys(); ++n) {
            const VI distance = hn::Sub(hn::Set(i, int32_t(part.first_key + int64_t(n))), position);
            total = mul_add(hn::Load(f, scores() + (row + n) * kPanel + v * kLanes),
                            hn::ConvertTo(f, distance), total);
        }
        HWY_ALIGN float by_lane[kLanes];
        hn::Store(total, f, by_lane);
        for (size_t lane = 0; lane < kLanes && v * kLanes + lane < rows_in_panel_; ++lane)
            sum += by_lane[lane];
    }
}

inline void QueryPanel::slope(uint32_t h) {
    double sum = 0;
    for (uint32_t b = 0; b < p_.batch; ++b) {
        begin_entry(b, h / p_.group);
        for (int64_t i = 0; i < rows_.view.q_length; i += kPanel) {
            const size_t count = size_t(std::min<int64_t>(kPanel, rows_.view.q_length - i));
            for (size_t lane = 0; lane < count; ++lane)
                set_lane(a_, rows_, i + int64_t(lane), h, lane, lanes());
            begin_rows(count);
            walk(lanes().begin[0], lanes().end[count - 1], Pair::masked,
                 [&](const Segment& part, bool) { add_slopes(part, sum); });
        }
    }
    store_number(a_, FOVEA_BIND_DALIBI, h, sum, call_.w.adds(FOVEA_GRAD_ALIBI));
}

inline void QueryPanel::sink(uint32_t h) {
    const double logit = double(*a_.at<const float>(FOVEA_BIND_SINKS, h));
    double sum = 0;
    for (uint32_t b = 0; b < p_.batch; ++b) {
        begin_entry(b, h / p_.group);
        for (int64_t i = 0; i < rows_.view.q_length; ++i) {
            const float row_lse = *a_.at<const float>(FOVEA_BIND_LSE, flat_row(p_, b, h, i));
            if (row_lse != kHidden)
                sum -= std::exp(logit - double(row_lse)) * double(delta_of_row(call_, rows_, i, h));
        }
    }
    store_number(a_, FOVEA_BIND_DSINKS, h, sum, call_.w.adds(FOVEA_GRAD_SINKS));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
