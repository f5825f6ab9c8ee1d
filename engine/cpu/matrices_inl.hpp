// The second pass over a panel's keys, where matrices or row statistics are asked for: scores once more, and
// the weights from the maxima and sums that the first pass left. o does not depend on it.
#if defined(FOVEA_CPU_MATRICES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_MATRICES_INL_HPP
#undef FOVEA_CPU_MATRICES_INL_HPP
#else
#define FOVEA_CPU_MATRICES_INL_HPP
#endif

#include "cpu/dropout_inl.hpp"
#include "cpu/key_block_inl.hpp"
#include "cpu/softmax_inl.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

inline bool wants_second_pass(const Problem& p) {
    return wants_matrix(p) || wants(p, FOVEA_OUTPUT_ROW_STATS);
}

// The state of a panel after the first pass.
struct PanelState {
    size_t first_row, rows, vectors;
    const float* queries;
    const Lanes* lanes;
    MaxIn max_in;
    const float* max;
    const float* factor;  // weight = exp(logit - max) * factor
    float unit;           // unit of LogitForm
};

// Keys [begin, end) of a row that were not computed, in the matrices that are asked for.
inline void fill_matrix_row(const AttentionCall& call, int64_t row, int64_t begin, int64_t end) {
    for (const FoveaBinding binding :
         {FOVEA_BIND_SCORES, FOVEA_BIND_CAPPED, FOVEA_BIND_MASKED, FOVEA_BIND_WEIGHTS}) {
        float* to = call.at<float>(binding, row * call.p.len_kv);
        if (to)
            std::fill(to + begin, to + std::max(begin, end), binding == FOVEA_BIND_MASKED ? kHidden : 0.0f);
    }
}

class MatrixPass {
  public:
    // `logits` has room for scratch.capacity keys, `lane_rows` for six rows of one float for each lane.
    MatrixPass(const AttentionCall& call, const QueryRows& rows, const PanelState& panel, float* logits,
               float* lane_rows, const KeyScratch& scratch)
        : call_(call), p_(call.p), rows_(rows), panel_(panel), s_(logits), scratch_(scratch) {
        best_ = lane_rows, entropy_ = lane_rows + kPanel, best_weight_ = lane_rows + 2 * kPanel;
        log_factor_ = lane_rows + 3 * kPanel;
        argmax_ = reinterpret_cast<uint32_t*>(lane_rows + 4 * kPanel);
        visible_ = argmax_ + kPanel;
        for (size_t lane = 0; lane < kPanel; ++lane) {
            best_[lane] = kHidden, entropy_[lane] = 0, best_weight_[lane] = 0, argmax_[lane] = 0xffffffffu,
            visible_[lane] = 0;
            one_[lane] = 1, score_scale_[lane] = panel.max_in == MaxIn::exponents ? p_.scale : 1;
            log_factor_[lane] = lane < panel.rows ? std::log(panel.factor[lane]) : 0;
        }
        if (p_.mask.present || p_.bias.present) adjustments_.aim(call, *panel.lanes);
    }

    void run() {
        const bool all_scores = wants(p_, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED);
        const int64_t begin = all_scores ? 0 : panel_.lanes->begin[0];
        const int64_t end = all_scores
                                ? rows_.view.kv_length
                                : std::max<int64_t>(begin, panel_.lanes->end[panel_.vectors * kLanes - 1]);
        const int64_t step = int64_t(scratch_.capacity);
        for (int64_t j = begin; j < end; j += step) pass_block(j, std::min(j + step, end));
        for (size_t lane = 0; lane < panel_.rows; ++lane) {
            fill_outside(lane, begin, end);
            if (wants(p_, FOVEA_OUTPUT_ROW_STATS)) write_stats(lane);
        }
    }

  private:
    int64_t flat(size_t lane) const {
        const size_t n = panel_.first_row + lane;
        return flat_row(p_, rows_.b, rows_.head(p_, n), rows_.query(p_, n));
    }

    void pass_block(int64_t begin, int64_t end) {
        const KeyBlock block = fetch_keys(call_, rows_, begin, end, 1, false, scratch_);
        const Segment all{0, panel_.vectors, begin, end};
        dot_block<DotMode::plain>(panel_.vectors, block.k, block.k_stride, block.keys(), panel_.queries,
                                  p_.dim_qk, s_, nullptr);
        // In exponents s stays the product, as in the first pass: so both have the same bits of each weight.
        if (panel_.max_in == MaxIn::logits)
            each([&](V product, size_t, size_t) { return hn::Mul(product, hn::Set(F(), p_.scale)); },
                 block.keys());
        store(FOVEA_BIND_SCORES, block, score_scale_);
        if (has_logit_steps(p_))
            each([&](V score, size_t, size_t) { return capped_score(score, p_.logit); }, block.keys());
        store(FOVEA_BIND_CAPPED, block, score_scale_);
        const bool adjusted = p_.mask.present || p_.bias.present;
        const LogitSteps steps(p_, LogitsFrom::capped_scores, true, true, adjusted ? &adjustments_ : nullptr,
                               block.hidden_keys);
        HWY_ALIGN float ignored[kPanel] = {};
        apply_logit_steps(steps, *panel_.lanes, all, begin, s_, ignored);
        store(FOVEA_BIND_MASKED, block, score_scale_);
        if (!wants(p_, FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS)) return;
        weigh(block);
        if (p_.dropout) {
            apply_dropout(call_, *panel_.lanes, all, begin, s_);
            each([&](V w, size_t, size_t) { return hn::Mul(w, hn::Set(F(), p_.keep_scale)); }, block.keys());
        }
        store(FOVEA_BIND_WEIGHTS, block, one_);
    }

    // s = op(s, key of the block, first lane) everywhere.
    template <class Op>
    void each(const Op& op, size_t keys) {
        const F f;
        for (size_t j = 0; j < keys; ++j) {
            for (size_t at = 0; at < panel_.vectors * kLanes; at += kLanes) {
                float* to = s_ + j * kPanel + at;
                hn::Store(op(hn::Load(f, to), j, at), f, to);
            }
        }
    }

    // Logits to weights, and the statistics on the way.
    void weigh(const KeyBlock& block) {
        const F f;
        const U u;
        for (size_t at = 0; at < panel_.vectors * kLanes; at += kLanes) {
            const V max = hn::Load(f, panel_.max + at), factor = hn::Load(f, panel_.factor + at);
            const bool exponents = panel_.max_in == MaxIn::exponents;
            const V unit = exponents ? unit_of(max, panel_.unit) : hn::Set(f, panel_.unit);
            const V log_factor = hn::Load(f, log_factor_ + at), hidden = hn::Set(f, kHidden);
            V best = hn::Load(f, best_ + at), best_weight = hn::Load(f, best_weight_ + at);
            V entropy = hn::Zero(f);  // this block only, because one long sum is less precise
            VU argmax = hn::Load(u, argmax_ + at), visible = hn::Load(u, visible_ + at);
            V lost = hn::Zero(f);  // rounding errors of the sums: equal terms give equal signs
            for (size_t j = 0; j < block.keys(); ++j) {
                float* to = s_ + j * kPanel + at;
                const V logit = hn::Load(f, to);  // or the product that it is made of
                const V x =
                    exponents ? mul_add(logit, unit, hn::Neg(max)) : hn::Mul(hn::Sub(logit, max), unit);
                const V weight = hn::Mul(exp2(x), factor);
                const auto greater = hn::Gt(logit, best);
                best = hn::IfThenElse(greater, logit, best);
                best_weight = hn::IfThenElse(greater, weight, best_weight);
                const VU key = hn::Set(u, uint32_t(block.begin + int64_t(j)));
                argmax = hn::IfThenElse(hn::RebindMask(u, greater), key, argmax);
                const auto seen = hn::Not(hn::Eq(logit, hidden));
                visible = hn::Add(visible, hn::IfThenElseZero(hn::RebindMask(u, seen), hn::Set(u, 1)));
                const V minus_log = hn::Neg(mul_add(x, hn::Set(f, float(kLn2)), log_factor));
                const V term = hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(f)), hn::Mul(weight, minus_log));
                const V exact = hn::Sub(term, lost), sum = hn::Add(entropy, exact);
                lost = hn::Sub(hn::Sub(sum, entropy), exact);
                entropy = sum;
                hn::Store(weight, f, to);
            }
            hn::Store(best, f, best_ + at), hn::Store(best_weight, f, best_weight_ + at);
            hn::Store(hn::Add(hn::Load(f, entropy_ + at), entropy), f, entropy_ + at);
            hn::Store(argmax, u, argmax_ + at), hn::Store(visible, u, visible_ + at);
        }
    }

    void store(FoveaBinding binding, const KeyBlock& block, const float* lane_factor) {
        if (!call_.at<float>(binding)) return;
        float* to[kPanel];
        for (size_t lane = 0; lane < panel_.rows; ++lane)
            to[lane] = call_.at<float>(binding, flat(lane) * p_.len_kv + block.begin);
        unpack_panel(s_, lane_factor, block.keys(), panel_.rows, to);
    }

    void write_stats(size_t lane) {
        FoveaRowStats stats{0, 0, 0xffffffffu, visible_[lane]};
        const float factor = panel_.factor[lane];
        if (factor != 0) {
            stats.max_weight = factor == factor ? best_weight_[lane] : factor;
            stats.entropy = entropy_[lane] > 0                 ? entropy_[lane]
                            : entropy_[lane] == entropy_[lane] ? 0
                                                               : entropy_[lane];
            stats.argmax_key = argmax_[lane];
        }
        *call_.at<FoveaRowStats>(FOVEA_BIND_ROW_STATS, flat(lane)) = stats;
    }

    void fill_outside(size_t lane, int64_t begin, int64_t end) {
        fill_matrix_row(call_, flat(lane), 0, begin);
        fill_matrix_row(call_, flat(lane), end, p_.len_kv);
    }

    const AttentionCall& call_;
    const Problem& p_;
    const QueryRows& rows_;
    const PanelState& panel_;
    float* s_;
    const KeyScratch& scratch_;
    Adjustments adjustments_;
    float *best_, *entropy_, *best_weight_, *log_factor_;  // by lane
    uint32_t *argmax_, *visible_;
    HWY_ALIGN float one_[kPanel], score_scale_[kPanel];
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
