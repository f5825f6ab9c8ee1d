// From the partial results of a group's splits of the keys to rows: each split has its own maximum and sum,
// and is weighed by exp(its maximum - the largest) (split-K, known as Flash-Decoding: Dao, Haziza, Massa,
// Sizov 2023).
#if defined(FOVEA_CPU_DECODE_MERGE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_DECODE_MERGE_INL_HPP
#undef FOVEA_CPU_DECODE_MERGE_INL_HPP
#else
#define FOVEA_CPU_DECODE_MERGE_INL_HPP
#endif

#include "cpu/decode_layout.hpp"
#include "cpu/row_end.hpp"
#include "cpu/rows_inl.hpp"
#include "problem/rotation.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

inline QueryRows decode_rows(const AttentionCall& call, uint64_t group) {
    QueryRows rows{};
    rows.b = uint32_t(group / call.p.heads_kv);
    rows.h_kv = uint32_t(group % call.p.heads_kv);
    rows.view = call.view(rows.b);
    rows.past = call.p.len_q;
    rows.end = std::clamp<int64_t>(rows.view.q_length, 0, rows.past);
    return rows;
}

struct Partial {
    float *maxima, *sums, *outputs;
    Partial(const PartialLayout& layout, unsigned char* base)
        : maxima(reinterpret_cast<float*>(base + layout.maxima)),
          sums(reinterpret_cast<float*>(base + layout.sums)),
          outputs(reinterpret_cast<float*>(base + layout.outputs)) {}
};

// Merges the splits of one group, whose partial results are stored in sequence, into the final rows.
class DecodeMerge {
  public:
    DecodeMerge(const AttentionCall& call, uint64_t group, unsigned char* partials)
        : call_(call),
          p_(call.p),
          rows_(decode_rows(call, group)),
          layout_(partial_layout(kShape, size_t(p_.len_q) * p_.group, p_.dim_v)),
          partials_(partials),
          form_(p_) {
        const KeyRange seen = visible_keys_of_rows(p_, rows_.view, rows_.begin, rows_.end);
        const int64_t step = int64_t(call.cut.split_keys);
        first_ = size_t(seen.begin / step);
        last_ = size_t((seen.end + step - 1) / step);
        if (seen.empty()) first_ = last_ = 0;
    }

    void run() {
        for (size_t n = 0; n < rows_.count(p_); n += kLanes) merge_lanes(n);
        write_empty_rows(call_, rows_);
    }

  private:
    Partial partial(size_t split) const { return {layout_, partials_ + split * layout_.size_bytes}; }

    // Rows [first, first + kLanes): the maxima of the splits become the weights of the splits.
    void merge_lanes(size_t first) {
        const F f;
        V max = hn::Set(f, kFloor), sum = hn::Zero(f);
        for (size_t s = first_; s < last_; ++s) max = hn::Max(max, hn::Load(f, partial(s).maxima + first));
        for (size_t s = first_; s < last_; ++s) {
            const Partial from = partial(s);
            V change = hn::Sub(hn::Load(f, from.maxima + first), max);
            if (form_.max_in == MaxIn::logits) change = hn::Mul(change, hn::Set(f, form_.unit));
            const V weight = exp2(change);
            sum = mul_add(weight, hn::Load(f, from.sums + first), sum);
            hn::Store(weight, f, from.maxima + first);
        }
        HWY_ALIGN float maxima[kLanes], sums[kLanes];
        hn::Store(max, f, maxima);
        hn::Store(sum, f, sums);
        const size_t count = HWY_MIN(kLanes, rows_.count(p_) - first);
        for (size_t lane = 0; lane < count; ++lane) finish_row(first + lane, maxima[lane], sums[lane]);
    }

    void finish_row(size_t n, float max, float sum) const {
        const int64_t i = rows_.query(p_, n);
        const uint32_t h = rows_.head(p_, n);
        const float* sinks = call_.at<const float>(FOVEA_BIND_SINKS);
        float* lse = call_.at<float>(FOVEA_BIND_LSE);
        const RowEnd end = end_row(form_.max_logit(max), sum, sinks ? &sinks[h] : nullptr, lse != nullptr);
        if (lse) lse[flat_row(p_, rows_.b, h, i)] = end.lse;
        if (!wants(p_, FOVEA_OUTPUT_O)) return;
        const float factor = p_.dropout ? end.factor * p_.keep_scale : end.factor;
        const int64_t at = query_offset(p_, p_.o, rows_, i, h);
        with_type(p_.o_type,
                  [&](auto o) { store_output(n, factor, call_.at<decltype(o)>(FOVEA_BIND_O, at)); });
    }

    // The splits' sums of columns [column, column + kLanes) of row n.
    V merged(size_t n, size_t column) const {
        const size_t width = (p_.dim_v + kLanes - 1) / kLanes * kLanes;
        V sum = hn::Zero(F());
        for (size_t s = first_; s < last_; ++s) {
            const Partial from = partial(s);
            sum =
                mul_add(hn::Set(F(), from.maxima[n]), hn::Load(F(), from.outputs + n * width + column), sum);
        }
        return sum;
    }

    template <class T>
    void store_output(size_t n, float factor, T* to) const {
        const F f;
        HWY_ALIGN float block[kRotationBlock];
        for (size_t c = 0; c < p_.dim_v; c += kLanes) {
            V sum = hn::Zero(f);
            if (!p_.rotated_v) {
                sum = merged(n, c);
            } else {
                const size_t e = c % kRotationBlock;
                for (size_t next = e; e == 0 && next < kRotationBlock; next += kLanes)
                    hn::Store(merged(n, c + next), f, block + next);
                if (e == 0) rotate_row(block, kRotationBlock);
                sum = hn::Load(f, block + e);
            }
            // A zero becomes +0: its sign could come from a key that is hidden.
            sum = mul_add(hn::Set(f, factor), sum, hn::Zero(f));
            if (c + kLanes <= p_.dim_v) {
                store_row(sum, to + c);
                continue;
            }
            HWY_ALIGN float part[kLanes];
            hn::Store(sum, f, part);
            for (size_t e = 0; c + e < p_.dim_v; ++e) store_one(part[e], to + c + e);
        }
    }

    const AttentionCall& call_;
    const Problem& p_;
    const QueryRows rows_;
    const PartialLayout layout_;
    unsigned char* partials_;
    const LogitForm form_;
    size_t first_, last_;  // splits that hold visible keys
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
