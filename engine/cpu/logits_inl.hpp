// From products to logits: scale, softcap, ALiBi, bias and everything that hides keys, on the part of a block
// where any of it can matter. Hidden entries become -inf by selection, whatever they held.
#if defined(FOVEA_CPU_LOGITS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_LOGITS_INL_HPP
#undef FOVEA_CPU_LOGITS_INL_HPP
#else
#define FOVEA_CPU_LOGITS_INL_HPP
#endif

#include "cpu/attention_call.hpp"
#include "cpu/simd_inl.hpp"

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The queries in the lanes of a panel. Lanes past the last row repeat it, so that every pointer is valid.
struct Lanes {
    HWY_ALIGN int32_t begin[kPanel];  // keys [begin, end) are visible to the parametric masks
    HWY_ALIGN int32_t end[kPanel];
    HWY_ALIGN int32_t position[kPanel];
    HWY_ALIGN uint32_t query[kPanel];
    HWY_ALIGN uint32_t bh[kPanel];  // b * Hq + h
    HWY_ALIGN float slope[kPanel];
};

// Vectors [first_vector, last_vector) of lanes over keys [first_key, last_key).
struct Segment {
    size_t first_vector, last_vector;
    int64_t first_key, last_key;
    size_t keys() const { return size_t(last_key - first_key); }
    size_t vectors() const { return last_vector - first_vector; }
};

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// tanh(x) = x + x^3 P(x^2) near 0 (error 4.4e-9), 1 - 2 / (e^2x + 1) beyond; within 3 ulp.
HWY_INLINE V tanh_of(V x) {
    const F f;
    const V z = hn::Mul(x, x);
    V p = mul_add(hn::Set(f, -0x1.75e1d8p-8f), z, hn::Set(f, 0x1.52269ep-6f));
    p = mul_add(p, z, hn::Set(f, -0x1.b83c5ap-5f));
    p = mul_add(p, z, hn::Set(f, 0x1.110726p-3f));
    p = mul_add(p, z, hn::Set(f, -0x1.555532p-2f));
    const V near = mul_add(hn::Mul(p, z), x, x);
    const V size = hn::Abs(x);
    const V e = exp2(hn::Mul(hn::Min(hn::Set(f, 20.0f), size), hn::Set(f, 2.88539008177792681472f)));
    const V far = hn::Sub(hn::Set(f, 1.0f), hn::Div(hn::Set(f, 2.0f), hn::Add(e, hn::Set(f, 1.0f))));
    const V both = hn::IfThenElse(hn::Lt(size, hn::Set(f, 0.625f)), near, hn::CopySign(far, x));
    return hn::IfThenElse(hn::Eq(x, x), both, x);
}

// Mask and bias of one kLanes x kLanes square, as what is added to a logit: 0, the bias, or -inf.
// square[n][lane] belongs to key j + n.
class Adjustments {
  public:
    // For the rows of one panel.
    void aim(const AttentionCall& call, const Lanes& lanes) {
        const Problem& p = call.p;
        call_ = &call;
        for (size_t lane = 0; lane < kPanel; ++lane) {
            const uint32_t b = lanes.bh[lane] / p.heads_q, h = lanes.bh[lane] % p.heads_q;
            const int64_t i = lanes.query[lane];
            if (p.mask.present)
                mask_[lane] = call.at<const uint8_t>(FOVEA_BIND_MASK, matrix_offset(p.mask, b, h, i));
            if (p.bias.present) bias_[lane] = matrix_offset(p.bias, b, h, i);
        }
    }

    // `count` is at most kLanes; past it, and past the columns of either matrix, all is hidden.
    void square(size_t vector, int64_t j, size_t count, V (&to)[kLanes]) const {
        const Problem& p = call_->p;
        for (size_t n = 0; n < kLanes; ++n) {
            const size_t lane = vector * kLanes + n;
            to[n] = hn::Zero(F());
            if (p.bias.present) to[n] = bias_row(lane, j, std::min(int64_t(count), p.bias.keys - j));
            if (p.mask.present)
                to[n] = masked(to[n], mask_[lane] + j, std::min(int64_t(count), p.mask.keys - j));
        }
        transpose(to);
    }

    // True if the mask shows the whole segment to the first `rows` lanes.
    bool lets_all_through(size_t rows, const Segment& part) const {
        const size_t first = part.first_vector * kLanes, last = std::min(rows, part.last_vector * kLanes);
        for (size_t lane = first; lane < last; ++lane) {
            if (lane > first && mask_[lane] == mask_[lane - 1]) continue;
            const uint8_t* from = mask_[lane] + part.first_key;
            unsigned zeros = 0;
            for (size_t n = 0; n < part.keys(); ++n) zeros |= from[n] == 0;
            if (zeros) return false;
        }
        return true;
    }

    // True if the mask hides the whole segment from the first `rows` lanes.
    bool hides_all(size_t rows, const Segment& part) const {
        const size_t first = part.first_vector * kLanes, last = std::min(rows, part.last_vector * kLanes);
        for (size_t lane = first; lane < last; ++lane) {
            if (lane > first && mask_[lane] == mask_[lane - 1]) continue;
            const uint8_t* from = mask_[lane] + part.first_key;
            unsigned shown = 0;
            for (size_t n = 0; n < part.keys(); ++n) shown |= from[n];
            if (shown) return false;
        }
        return true;
    }

  private:
    V bias_row(size_t lane, int64_t j, int64_t count) const {
        V row;
        with_type(call_->p.bias.type, [&](auto bias) { row = bias_row_of<decltype(bias)>(lane, j, count); });
        return row;
    }
    template <class T>
    V bias_row_of(size_t lane, int64_t j, int64_t count) const {
        const T* from = call_->at<const T>(FOVEA_BIND_BIAS, bias_[lane] + j);
        if (count >= int64_t(kLanes)) return load_row(from);
        HWY_ALIGN float part[kLanes];
        for (int64_t n = 0; n < int64_t(kLanes); ++n) part[n] = n < count ? load_one(from + n) : kHidden;
        return hn::Load(F(), part);
    }
    static V masked(V value, const uint8_t* from, int64_t count) {
        const I i;
        const hn::Rebind<uint8_t, I> bytes;
        VI word;
        if (count >= int64_t(kLanes)) {
            word = hn::PromoteTo(i, hn::LoadU(bytes, from));
        } else {
            HWY_ALIGN int32_t part[kLanes];
            for (int64_t n = 0; n < int64_t(kLanes); ++n) part[n] = n < count ? from[n] : 0;
            word = hn::Load(i, part);
        }
        return hn::IfThenElse(hn::RebindMask(F(), hn::Eq(word, hn::Zero(i))), hn::Set(F(), kHidden), value);
    }

    const AttentionCall* call_ = nullptr;
    const uint8_t* mask_[kPanel];
    int64_t bias_[kPanel];
};

// Where the steps begin: at products of q and k, or at scores that are scaled and capped already.
enum class LogitsFrom { products, capped_scores };

// Which steps a segment needs.
struct LogitSteps {
    bool general;  // the next three count: s becomes the logit; else it stays as it is
    float scale;
    LogitScalars cap;
    bool alibi;
    bool ranges;                     // some lane's range ends inside the segment
    const Adjustments* adjustments;  // mask and bias; null: none, or all let through
    const uint8_t* hidden_keys;      // by key of the block, from the block table; null: none

    // `form_is_general`: LogitForm's.
    LogitSteps(const Problem& p, LogitsFrom from, bool form_is_general, bool has_ranges,
               const Adjustments* matrices, const uint8_t* hidden)
        : general(from == LogitsFrom::products ? form_is_general : p.alibi),
          scale(from == LogitsFrom::products ? p.scale : 1),
          cap(from == LogitsFrom::products ? p.logit : LogitScalars()),
          alibi(p.alibi),
          ranges(has_ranges),
          adjustments(matrices),
          hidden_keys(hidden) {}

    bool hides() const { return ranges || adjustments || hidden_keys; }
};

HWY_INLINE V capped_score(V score, const LogitScalars& by) {
    if (!(by.softcap > 0)) return score;
    const V cap = hn::Set(F(), by.softcap);
    return hn::Mul(tanh_of(hn::Div(score, cap)), cap);
}

HWY_INLINE V logit_of(const LogitSteps& steps, V product, V slope, VI distance) {
    const F f;
    V x = hn::Mul(product, hn::Set(f, steps.scale));
    x = capped_score(x, steps.cap);
    if (steps.alibi) x = hn::Add(x, hn::Mul(slope, hn::ConvertTo(f, distance)));
    return x;
}

// Applies the steps to rows of s (row 0 is key block_begin) and sets max[lane] to the largest logit.
inline void apply_logit_steps(const LogitSteps& steps, const Lanes& lanes, const Segment& segment,
                              int64_t block_begin, float* s, float* max) {
    const F f;
    const I i;
    for (size_t v = segment.first_vector; v < segment.last_vector; ++v) {
        const size_t at = v * kLanes;
        const VI begin = hn::Load(i, lanes.begin + at);
        const VI last = hn::Sub(hn::Load(i, lanes.end + at), hn::Set(i, 1));
        const VI position = hn::Load(i, lanes.position + at);
        const V slope = hn::Load(f, lanes.slope + at);
        V largest = hn::Load(f, max + at);
        V square[kLanes];
        if constexpr (kLanes == 1) square[0] = hn::Zero(f);  // GCC 14 warns of it with scalars
        for (int64_t j = segment.first_key; j < segment.last_key; ++j) {
            const size_t n = size_t(j - segment.first_key) % kLanes;
            if (steps.adjustments && n == 0)
                steps.adjustments->square(v, j, std::min(kLanes, size_t(segment.last_key - j)), square);
            float* at_key = s + size_t(j - block_begin) * kPanel + at;
            const VI key = hn::Set(i, int32_t(j));
            V x = hn::Load(f, at_key);
            if (steps.general) x = logit_of(steps, x, slope, hn::Sub(key, position));
            if (steps.adjustments) {
                const V hidden = hn::Set(f, kHidden);
                x = hn::IfThenElse(hn::Eq(square[n], hidden), hidden, hn::Add(x, square[n]));
            }
            if (steps.ranges) {
                const auto outside = hn::Or(hn::Gt(begin, key), hn::Gt(key, last));
                x = hn::IfThenElse(hn::RebindMask(f, outside), hn::Set(f, kHidden), x);
            }
            if (steps.hidden_keys && steps.hidden_keys[j - block_begin]) x = hn::Set(f, kHidden);
            largest = larger(largest, x);
            hn::Store(x, f, at_key);
        }
        hn::Store(largest, f, max + at);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
