// Dropout on a block of weights: by Philox, or by a dropout mask that the caller gives. Kept weights are
// scaled where the row is finished.
#if defined(FOVEA_CPU_DROPOUT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_DROPOUT_INL_HPP
#undef FOVEA_CPU_DROPOUT_INL_HPP
#else
#define FOVEA_CPU_DROPOUT_INL_HPP
#endif

#include "cpu/logits_inl.hpp"
#include "problem/philox.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

struct WordPair {
    VU low, high;
};
// The halves of the 64-bit products of each lane with one number.
HWY_INLINE WordPair multiply_wide(VU a, uint32_t factor) {
    const U u;
#if HWY_TARGET == HWY_SCALAR
    const uint64_t product = uint64_t{hn::GetLane(a)} * factor;
    return {hn::Set(u, uint32_t(product)), hn::Set(u, uint32_t(product >> 32))};
#else
    const hn::RepartitionToWide<U> wide;
    const VU b = hn::Set(u, factor);
    const VU even = hn::BitCast(u, hn::MulEven(a, b));  // lanes 0, 2, ...: low, high, low, high
    const VU odd_lanes = hn::BitCast(u, hn::ShiftRight<32>(hn::BitCast(wide, a)));
    const VU odd = hn::BitCast(u, hn::MulEven(odd_lanes, b));
    const VU even_high = hn::BitCast(u, hn::ShiftRight<32>(hn::BitCast(wide, even)));
    const VU odd_low = hn::BitCast(u, hn::ShiftLeft<32>(hn::BitCast(wide, odd)));
    return {hn::OddEven(odd_low, even), hn::OddEven(odd, even_high)};
#endif
}

struct PhiloxWords {
    VU word[4];
};
// philox4x32_10 of problem/philox.hpp, a counter in each lane.
HWY_INLINE PhiloxWords philox(PhiloxWords c, uint32_t key0, uint32_t key1) {
    const U u;
    for (int round = 0; round < 10; ++round) {
        const WordPair a = multiply_wide(c.word[0], 0xD2511F53u), b = multiply_wide(c.word[2], 0xCD9E8D57u);
        c = {{hn::Xor(hn::Xor(b.high, c.word[1]), hn::Set(u, key0)), b.low,
              hn::Xor(hn::Xor(a.high, c.word[3]), hn::Set(u, key1)), a.low}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

inline void drop_by_philox(const Problem& p, const Lanes& lanes, const Segment& part, int64_t block_begin,
                           float* weights) {
    const F f;
    const U u;
    const I i;
    const uint64_t key = dropout_key(p);
    // Words are compared as signed integers: both sides are moved by 2^31.
    const VI flip = hn::Set(i, std::numeric_limits<int32_t>::min());
    const VI threshold = hn::Xor(hn::Set(i, int32_t(p.drop_threshold)), flip);
    for (size_t v = part.first_vector; v < part.last_vector; ++v) {
        const VU query = hn::Add(hn::Load(u, lanes.query + v * kLanes), hn::Set(u, p.first_query));
        const VU bh = hn::Add(hn::Load(u, lanes.bh + v * kLanes), hn::Set(u, p.first_batch_head));
        for (int64_t j = part.first_key / 4 * 4; j < part.last_key; j += 4) {
            const PhiloxWords words = philox({{hn::Set(u, (p.first_key + uint32_t(j)) / 4), query, bh,
                                               hn::Set(u, uint32_t(p.dropout_offset))}},
                                             uint32_t(key), uint32_t(key >> 32));
            for (int64_t n = 0; n < 4; ++n) {
                if (j + n < part.first_key || j + n >= part.last_key) continue;
                float* at = weights + size_t(j + n - block_begin) * kPanel + v * kLanes;
                const VI word = hn::Xor(hn::BitCast(i, words.word[n]), flip);
                const auto dropped = hn::RebindMask(f, hn::Lt(word, threshold));
                hn::Store(hn::IfThenElse(dropped, hn::Zero(f), hn::Load(f, at)), f, at);
            }
        }
    }
}

inline void drop_by_mask(const AttentionCall& call, const Lanes& lanes, const Segment& part,
                         int64_t block_begin, float* weights) {
    const Problem& p = call.p;
    for (size_t lane = part.first_vector * kLanes; lane < part.last_vector * kLanes; ++lane) {
        const uint32_t b = lanes.bh[lane] / p.heads_q, h = lanes.bh[lane] % p.heads_q;
        const uint8_t* keep = call.at<const uint8_t>(FOVEA_BIND_DROPOUT_MASK,
                                                     matrix_offset(p.dropout_mask, b, h, lanes.query[lane]));
        for (int64_t j = part.first_key; j < part.last_key; ++j) {
            if (j >= p.dropout_mask.keys || keep[j] == 0)
                weights[size_t(j - block_begin) * kPanel + lane] = 0;
        }
    }
}

// Row 0 of `weights` is key block_begin.
inline void apply_dropout(const AttentionCall& call, const Lanes& lanes, const Segment& part,
                          int64_t block_begin, float* weights) {
    if (call.p.dropout_mask.present)
        drop_by_mask(call, lanes, part, block_begin, weights);
    else
        drop_by_philox(call.p, lanes, part, block_begin, weights);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
