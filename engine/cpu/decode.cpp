// Attention of few queries over many keys: a task takes all rows of a group (at most a panel) and one
// split of the keys. It leaves maxima, sums and weighted values, which merge_splits turns into rows. The
// splits depend only on the problem.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/decode.cpp"
#include <hwy/foreach_target.h>

#include "cpu/decode_block_inl.hpp"
#include "cpu/decode_merge_inl.hpp"
#include "cpu/decode_softmax_inl.hpp"
#include "cpu/dropout_inl.hpp"
#include "cpu/row_products_inl.hpp"
#include "cpu/rows_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

class DecodeTask {
  public:
    DecodeTask(const AttentionCall& call, uint64_t task, unsigned char* scratch, unsigned char* partial)
        : call_(call),
          p_(call.p),
          rows_(decode_rows(call, task / call.cut.splits)),
          row_count_(rows_.count(p_)),
          most_rows_(size_t(p_.len_q) * p_.group),
          layout_(decode_layout(kShape, most_rows_, p_.dim_qk, p_.dim_v,
                                widens_rows(kShape, p_.k_type) || widens_rows(kShape, p_.v_type))),
          base_(scratch),
          partial_(partial_layout(kShape, most_rows_, p_.dim_v), partial),
          form_(p_),
          blocks_(call, rows_, layout_, base_, form_.general) {
        const KeyRange seen = visible_keys_of_rows(p_, rows_.view, rows_.begin, rows_.end);
        const int64_t first = int64_t(task % call.cut.splits * call.cut.split_keys);
        begin_ = std::max(seen.begin, first);
        end_ = std::min(seen.end, first + int64_t(call.cut.split_keys));
    }

    void run() {
        if (begin_ >= end_) return;  // the merge does not look at this split
        start();
        DecodeBlock block = blocks_.find(begin_, end_, 0);
        RowQueue{blocks_.keys_of(block), {}, fetch()}.fetch_first();
        for (size_t n = 1; block.keys(); ++n) {
            const DecodeBlock next = blocks_.find(block.end, end_, n % 2);
            add_block(block, next);
            block = next;
        }
    }

  private:
    template <class T>
    T* place(uint64_t offset) const {
        return reinterpret_cast<T*>(base_ + offset);
    }
    RowFetch fetch() const {
        return call_.cut.fetch_to_second ? RowFetch::second_cache : RowFetch::first_cache;
    }
    size_t vectors() const { return (row_count_ + kLanes - 1) / kLanes; }
    float* logits() const { return place<float>(layout_.logits); }
    float* widened() const { return place<float>(layout_.widened); }
    float* lane_row(size_t n) const { return place<float>(layout_.lane_rows) + n * kPanel; }
    Lanes& lanes() const { return *place<Lanes>(layout_.lanes); }

    void start() {
        with_type(p_.q_type, [&](auto q) { load_queries<decltype(q)>(); });
        set_lanes(call_, rows_, 0, lanes());
        for (size_t lane = 0; lane < kPanel; ++lane) partial_.maxima[lane] = kFloor, partial_.sums[lane] = 0;
        memset(partial_.outputs, 0, most_rows_ * layout_.width * sizeof(float));
        if (p_.page_size) memset(base_ + layout_.zeros, 0, layout_.widened - layout_.zeros);
    }

    template <class T>
    void load_queries() {
        const auto row = [&](size_t n) {
            return call_.at<const T>(FOVEA_BIND_Q,
                                     query_offset(p_, p_.q, rows_, rows_.query(p_, n), rows_.head(p_, n)));
        };
        pack_queries(row, row_count_, p_.dim_qk, layout_.depth, place<float>(layout_.queries));
        if (p_.rotated_k) rotate_packed_queries(row_count_, p_.dim_qk, place<float>(layout_.queries));
    }

    void products(const DecodeBlock& block, const DecodeBlock& next, LogitOrder order) const {
        const RowQueue keys{blocks_.keys_of(block),
                            wants(p_, FOVEA_OUTPUT_O) ? blocks_.values_of(block) : blocks_.keys_of(next),
                            fetch()};
        if (widens_rows(kShape, p_.k_type)) {
            for_widened_rows(keys, p_.k_type, p_.dim_qk, widened(), [&](const RowQueue& some, size_t first) {
                dot_rows<float>(some, place<float>(layout_.queries), layout_.depth, row_count_, p_.dim_qk,
                                order, logits(), first);
            });
            return;
        }
        with_row_type(p_.k_type, [&](auto k) {
            dot_rows<decltype(k)>(keys, place<float>(layout_.queries), layout_.depth, row_count_, p_.dim_qk,
                                  order, logits());
        });
    }

    void add_block(const DecodeBlock& block, const DecodeBlock& next) {
        if (block.plain) {
            weigh_plainly(block, next);
            if (wants(p_, FOVEA_OUTPUT_O)) add_values<false>(block, next, LogitOrder::by_tile);
            return;
        }
        const bool hidden = weigh(block, next);
        if (!wants(p_, FOVEA_OUTPUT_O)) return;
        if (hidden)
            add_values<true>(block, next, LogitOrder::by_key);
        else
            add_values<false>(block, next, LogitOrder::by_key);
    }

    // Weights of a plain block. Lanes are keys times the rows of a tile.
    void weigh_plainly(const DecodeBlock& block, const DecodeBlock& next) {
        products(block, next, LogitOrder::by_tile);
        float *block_max = lane_row(0), *factor = lane_row(1);
        for_row_tiles(row_count_, [&](auto tile, size_t r) {
            largest_of_tile<tile()>(logits() + r * kDecodeBlock, block.keys(), block_max + r);
        });
        grow_maximum(form_.max_in, vectors(), block_max, form_.unit, partial_.maxima, partial_.sums, factor);
        for_row_tiles(row_count_, [&](auto tile, size_t r) {
            exponentials_of_tile<tile()>(logits() + r * kDecodeBlock, block.keys(), form_.unit,
                                         partial_.maxima + r, partial_.sums + r);
        });
    }

    // Weights of any block; true if some entry is hidden. Lanes are rows, as in a panel.
    bool weigh(const DecodeBlock& keys, const DecodeBlock& next) {
        const Segment block{0, vectors(), keys.begin, keys.end};
        // Lanes past the last row must hold any valid values.
        if (!cleared_) memset(logits(), 0, kDecodeBlock * kPanel * sizeof(float));
        cleared_ = true;
        products(keys, next, LogitOrder::by_key);
        float *block_max = lane_row(0), *factor = lane_row(1);
        for (size_t lane = 0; lane < kPanel; ++lane) block_max[lane] = kHidden;
        const bool hidden = adjust(block, keys.hidden);
        grow_maximum(form_.max_in, vectors(), block_max, form_.unit, partial_.maxima, partial_.sums, factor);
        Ahead nothing;
        exponentials(form_.max_in, vectors(), logits(), block.keys(), form_.unit, partial_.maxima,
                     partial_.sums, nothing);
        if (p_.dropout) apply_dropout(call_, lanes(), block, keys.begin, logits());
        return hidden;
    }

    // Products to logits in place, with the largest of each lane; true if some entry is hidden.
    bool adjust(const Segment& block, const uint8_t* hidden_keys) {
        bool ranges = false;
        for (size_t lane = 0; lane < row_count_; ++lane)
            ranges |= lanes().begin[lane] > block.first_key || lanes().end[lane] < block.last_key;
        Adjustments adjustments;
        bool adjusted = p_.mask.present || p_.bias.present;
        if (adjusted) {
            adjustments.aim(call_, lanes());
            adjusted = p_.bias.present || !adjustments.lets_all_through(row_count_, block);
        }
        const LogitSteps steps(p_, LogitsFrom::products, form_.general, ranges,
                               adjusted ? &adjustments : nullptr, hidden_keys);
        apply_logit_steps(steps, lanes(), block, block.first_key, logits(), lane_row(0));
        return steps.hides();
    }

    void scale_outputs(const float* factor) const {
        const F f;
        for (size_t n = 0; n < row_count_; ++n) {
            if (factor[n] == 1) continue;  // most blocks do not raise the maximum
            float* o = partial_.outputs + n * layout_.width;
            const V by = hn::Set(f, factor[n]);
            for (size_t c = 0; c < layout_.width; c += kLanes) {
                hn::Store(hn::Mul(by, hn::Load(f, o + c)), f, o + c);
            }
        }
    }

    template <bool kSeen>
    void add_values(const DecodeBlock& block, const DecodeBlock& next, LogitOrder order) const {
        scale_outputs(lane_row(1));
        const RowQueue values{blocks_.values_of(block), blocks_.keys_of(next), fetch()};
        if (widens_rows(kShape, p_.v_type)) {
            for_widened_rows(values, p_.v_type, p_.dim_v, widened(), [&](const RowQueue& some, size_t first) {
                sum_rows<kSeen, float>(some, logits(), order, row_count_, p_.dim_v, partial_.outputs,
                                       layout_.width, first);
            });
            return;
        }
        with_row_type(p_.v_type, [&](auto v) {
            sum_rows<kSeen, decltype(v)>(values, logits(), order, row_count_, p_.dim_v, partial_.outputs,
                                         layout_.width);
        });
    }

    const AttentionCall& call_;
    const Problem& p_;
    const QueryRows rows_;
    const size_t row_count_, most_rows_;
    const DecodeLayout layout_;
    unsigned char* base_;
    const Partial partial_;
    const LogitForm form_;
    const DecodeBlocks blocks_;
    int64_t begin_, end_;
    bool cleared_ = false;  // the logits' lanes past the last row
};

void decode_task(const AttentionCall& call, uint64_t task, unsigned char* scratch, unsigned char* partial) {
    DecodeTask(call, task, scratch, partial).run();
}

void merge_splits(const AttentionCall& call, uint64_t group, unsigned char* partials) {
    DecodeMerge(call, group, partials).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

FOVEA_DECLARE_TARGETS(decode_task)
FOVEA_DECLARE_TARGETS(merge_splits)

decltype(Kernels::decode) decode_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, decode_task) }
decltype(Kernels::decode_merge) decode_merge_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, merge_splits)
}

}  // namespace fovea::cpu
#endif
