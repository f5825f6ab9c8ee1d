// One task of attention in one pass: some queries of all heads of a group against all their keys, block by
// block, with an online softmax, so that no row of logits is ever whole (FlashAttention: Dao et al. 2022;
// rows of queries outside, blocks of keys inside as in FlashAttention-2: Dao 2023). See tile_inl.hpp for the
// order of sums.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/flash.cpp"
#include <hwy/foreach_target.h>

#include "cpu/dropout_inl.hpp"
#include "cpu/flash_ahead_inl.hpp"
#include "cpu/flash_layout.hpp"
#include "cpu/key_block_inl.hpp"
#include "cpu/matrices_inl.hpp"
#include "cpu/pairs_inl.hpp"
#include "cpu/row_end.hpp"
#include "cpu/rows_inl.hpp"
#include "cpu/segments_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

static_assert(sizeof(Lanes) == kLaneWords * kPanel * 4);

// With Products::bf16 queries, keys, values and weights are pairs; logits, maxima and sums are as ever.
template <Products kProducts>
class FlashTask {
  public:
    FlashTask(const AttentionCall& call, uint64_t task, unsigned char* scratch);
    void run();

  private:
    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    float* queries(size_t panel) const { return floats(layout_.queries) + panel * depth_ * kPanel; }
    float* outputs(size_t panel) const { return floats(layout_.outputs) + panel * p_.dim_v * kPanel; }
    float* maxima(size_t panel) const { return floats(layout_.maxima) + panel * kPanel; }
    float* sums(size_t panel) const { return floats(layout_.sums) + panel * kPanel; }
    Lanes& lanes(size_t panel) const { return reinterpret_cast<Lanes*>(base_ + layout_.lanes)[panel]; }
    float* lane_row(size_t n) const { return floats(layout_.rows) + n * kPanel; }
    float* logits() const { return floats(layout_.logits); }
    size_t rows_in(size_t panel) const { return HWY_MIN(kPanel, rows_.count(p_) - panel * kPanel); }
    size_t vectors_in(size_t panel) const { return (rows_in(panel) + kLanes - 1) / kLanes; }
    bool wants_o() const { return wants(p_, FOVEA_OUTPUT_O); }

    template <class T>
    void load_queries(size_t panel);
    KeyBlock fetch(int64_t begin, int64_t end, const KeyScratch& scratch) const;
    void start_panel(size_t panel);
    void add_block(size_t panel, KeyBlock& block);
    bool mask_hides(size_t panel, const Segments& segments, const Adjustments& adjustments) const;
    void logits_of(size_t panel, const KeyBlock& block, const Segments& segments,
                   const Adjustments& adjustments, bool* hidden);
    void add_values(size_t panel, KeyBlock& block, const Segments& segments, const bool* hidden);
    void finish_panel(size_t panel);
    template <class T>
    void store_outputs(size_t panel, const float* factor);
    void write_matrices(size_t panel, const KeyScratch& scratch);

    const AttentionCall& call_;
    const Problem& p_;
    const FlashLayout layout_;
    const size_t depth_;  // depth of a product: floats or words
    unsigned char* base_;
    QueryRows rows_{};
    size_t panels_;
    const LogitForm form_;
    FlashAhead ahead_;
};

template <Products kProducts>
FlashTask<kProducts>::FlashTask(const AttentionCall& call, uint64_t task, unsigned char* scratch)
    : call_(call),
      p_(call.p),
      layout_(flash_layout(kShape, call.cut.panels, p_.dim_qk, p_.dim_v, call.cut.key_block,
                           kProducts == Products::bf16)),
      depth_(kProducts == Products::bf16 ? words_of(p_.dim_qk) : p_.dim_qk),
      base_(scratch),
      form_(call.p) {
    const uint64_t heads = uint64_t{p_.batch} * p_.heads_kv;
    // The last rows come first: with a causal mask they are the most work.
    const int64_t tile = int64_t(call.cut.query_tiles - 1 - task / heads);
    rows_.b = uint32_t(task % heads / p_.heads_kv);
    rows_.h_kv = uint32_t(task % heads % p_.heads_kv);
    rows_.view = call.view(rows_.b);
    rows_.begin = tile * int64_t(call.cut.query_tile);
    rows_.past = std::min(rows_.begin + int64_t(call.cut.query_tile), p_.len_q);
    rows_.end = std::clamp(rows_.view.q_length, rows_.begin, rows_.past);
    panels_ = (rows_.count(p_) + kPanel - 1) / kPanel;
}

template <Products kProducts>
void FlashTask<kProducts>::run() {
    const KeyRange seen = visible_keys_of_rows(p_, rows_.view, rows_.begin, rows_.end);
    const int64_t step = call_.cut.key_block;
    const KeyScratch scratch{floats(layout_.keys),
                             floats(layout_.values),
                             base_ + layout_.hidden,
                             size_t(step),
                             kKeyRows && kProducts == Products::f32 ? floats(layout_.packed) : nullptr,
                             floats(layout_.row),
                             floats(layout_.pairs)};
    // A panel is packed at its first block and written after its last visible one, so that memory is accessed
    // during the products of other panels. Ranges grow with the rows: panels end in order.
    size_t open = 0, started = 0;
    // Blocks are on a grid from key 0, so that a row's sums do not depend on the other rows of its task.
    for (int64_t j = seen.begin / step * step; j < seen.end; j += step) {
        ahead_.to_block(call_, rows_, j + step, std::min(j + 2 * step, seen.end), panels_);
        KeyBlock block = fetch(std::max(j, seen.begin), std::min(j + step, seen.end), scratch);
        pack_block(block, panels_ - open, depth_, scratch);
        for (size_t panel = open; panel < panels_; ++panel) {
            const bool first = panel == started;
            if (first) start_panel(started++);
            const bool last = !wants_second_pass(p_) && lanes(panel).end[kPanel - 1] <= block.end;
            if (first)
                ahead_.to_rows(call_, rows_, FOVEA_BIND_Q, (panel + 1) * kPanel);
            else if (last)
                ahead_.to_rows(call_, rows_, FOVEA_BIND_O, panel * kPanel);
            add_block(panel, block);
            if (!last) continue;
            finish_panel(panel);
            open = panel + 1;
        }
    }
    while (started < panels_) start_panel(started++);
    for (size_t panel = open; panel < panels_; ++panel) {
        finish_panel(panel);
        if constexpr (kProducts == Products::f32)
            if (wants_second_pass(p_)) write_matrices(panel, scratch);
    }
    write_empty_rows(call_, rows_);
}

template <Products kProducts>
KeyBlock FlashTask<kProducts>::fetch(int64_t begin, int64_t end, const KeyScratch& scratch) const {
    if constexpr (kProducts == Products::bf16)
        return fetch_key_pairs(call_, rows_, begin, end, wants_o(), scratch);
    else
        return fetch_keys(call_, rows_, begin, end, panels_, wants_o(), scratch);
}

template <Products kProducts>
template <class T>
void FlashTask<kProducts>::load_queries(size_t panel) {
    const T* from[kPanel];
    const size_t count = rows_in(panel);
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < count; ++lane, row.next())
        from[lane] = call_.at<const T>(FOVEA_BIND_Q, query_offset(p_, p_.q, rows_, row.i, row.h));
    for (size_t lane = count; lane < vectors_in(panel) * kLanes; ++lane) from[lane] = from[count - 1];
    if constexpr (kProducts == Products::bf16)
        pack_panel_of_pairs(from, p_.dim_qk, vectors_in(panel), logits(), call_.cut.key_block,
                            queries(panel));
    else
        pack_panel(from, p_.dim_qk, vectors_in(panel), queries(panel));
    if (p_.rotated_k) rotate_panel(p_.dim_qk, vectors_in(panel), queries(panel));
}

template <Products kProducts>
void FlashTask<kProducts>::start_panel(size_t panel) {
    with_type(p_.q_type, [&](auto q) { load_queries<decltype(q)>(panel); });
    set_lanes(call_, rows_, panel * kPanel, lanes(panel));
    for (size_t lane = 0; lane < kPanel; ++lane) {
        maxima(panel)[lane] = kFloor;
        sums(panel)[lane] = 0;
    }
    if (wants_o()) memset(outputs(panel), 0, p_.dim_v * kPanel * sizeof(float));
}

// True if the block is masked for the whole panel. Then it leaves every sum unchanged.
template <Products kProducts>
bool FlashTask<kProducts>::mask_hides(size_t panel, const Segments& segments,
                                      const Adjustments& adjustments) const {
    if (!p_.mask.present) return false;
    for (size_t n = 0; n < segments.count; ++n)
        if (!adjustments.hides_all(rows_in(panel), segments.part[n])) return false;
    return true;
}

// Products of the queries with the block's keys, as logits where a step is needed. `hidden` by segment: some
// entry is hidden.
template <Products kProducts>
void FlashTask<kProducts>::logits_of(size_t panel, const KeyBlock& block, const Segments& segments,
                                     const Adjustments& adjustments, bool* hidden) {
    const bool matrices = p_.mask.present || p_.bias.present;
    float* block_max = lane_row(0);
    for (size_t n = 0; n < segments.count; ++n) {
        const Segment& part = segments.part[n];
        const size_t first = part.first_vector * kLanes, row = size_t(part.first_key - block.begin);
        const bool adjusted =
            matrices && (p_.bias.present || !adjustments.lets_all_through(rows_in(panel), part));
        const LogitSteps steps(p_, LogitsFrom::products, form_.general, segments.partial[n],
                               adjusted ? &adjustments : nullptr, block.hidden_keys);
        const float* k = block.k + row * block.k_stride;
        float* s = logits() + row * kPanel + first;
        hidden[n] = steps.hides();
        if (steps.general || hidden[n]) {
            // Maxima are the steps' to find. With pairs they are computed in vain: less code.
            constexpr DotMode kMode = kProducts == Products::f32 ? DotMode::plain : DotMode::max;
            dot_block<kMode, kProducts>(part.vectors(), k, block.k_stride, part.keys(),
                                        queries(panel) + first, depth_, s, lane_row(3));
            apply_logit_steps(steps, lanes(panel), part, block.begin, logits(), block_max);
        } else if (kKeyRows && kProducts == Products::f32 && block.packed_k && part.keys() == block.keys() &&
                   part.vectors() == kVectors) {
            const size_t packed = block.packed_tiles * kKeyRows;
            packed_dot_block(block.packed_k, block.packed_tiles, queries(panel), depth_, s, block_max);
            dot_block<DotMode::max, kProducts>(kVectors, k + packed * block.k_stride, block.k_stride,
                                               block.keys() - packed, queries(panel), depth_,
                                               s + packed * kPanel, block_max);
        } else {
            dot_block<DotMode::max, kProducts>(part.vectors(), k, block.k_stride, part.keys(),
                                               queries(panel) + first, depth_, s, block_max + first);
        }
    }
}

template <Products kProducts>
void FlashTask<kProducts>::add_block(size_t panel, KeyBlock& block) {
    const Segments segments(lanes(panel), vectors_in(panel), block.begin, block.end);
    if (segments.count == 0) return;
    Adjustments adjustments;
    if (p_.mask.present || p_.bias.present) adjustments.aim(call_, lanes(panel));
    if (mask_hides(panel, segments, adjustments)) return;
    float *block_max = lane_row(0), *factor = lane_row(1);
    for (size_t lane = 0; lane < kPanel; ++lane) block_max[lane] = kHidden;
    bool hidden[Segments::kMax];
    logits_of(panel, block, segments, adjustments, hidden);
    const size_t first = segments.first_vector * kLanes;
    grow_maximum(form_.max_in, segments.last_vector - segments.first_vector, block_max + first, form_.unit,
                 maxima(panel) + first, sums(panel) + first, factor + first);
    // Keys that the whole panel meets, if no weight is dropped: theirs become pairs at once.
    const bool at_once = kProducts == Products::bf16 && !p_.dropout &&
                         !(form_.max_in == MaxIn::exponents && any_far(kVectors, maxima(panel)));
    const size_t paired = at_once ? segments.keys_of_all(block.begin) / 2 * 2 : 0;
    // Weights of keys [row, row + keys) for `vectors` vectors.
    const auto weigh = [&](size_t row, size_t keys, size_t first_vector, size_t vectors) {
        const size_t at = first_vector * kLanes, beside_rows = std::min(keys, ahead_.keys_beside_rows());
        const auto add_up = [&](size_t from, size_t count, Ahead& ahead) {
            float* s = logits() + from * kPanel + at;
            if constexpr (kProducts == Products::bf16)
                if (from < paired)
                    return exponentials_as_pairs(form_.max_in, s, count, form_.unit, maxima(panel),
                                                 sums(panel), ahead, logits() + from / 2 * kPanel);
            exponentials(form_.max_in, vectors, s, count, form_.unit, maxima(panel) + at, sums(panel) + at,
                         ahead);
        };
        add_up(row, beside_rows, ahead_.rows);
        add_up(row + beside_rows, keys - beside_rows, ahead_.of_block());
    };
    if (paired) weigh(0, paired, 0, kVectors);
    for (size_t n = 0; n < segments.count; ++n) {
        const Segment& part = segments.part[n];
        const size_t row = std::max(size_t(part.first_key - block.begin), paired),
                     past = size_t(part.last_key - block.begin);
        if (row < past) weigh(row, past - row, part.first_vector, part.vectors());
        if (p_.dropout) apply_dropout(call_, lanes(panel), part, block.begin, logits());
    }
    if (!wants_o()) return;
    if constexpr (kProducts == Products::bf16) {
        const bool hides = std::any_of(hidden, hidden + segments.count, [](bool some) { return some; });
        add_value_pairs(block, lanes(panel), segments, hides, paired, p_.dim_v, logits(), outputs(panel),
                        factor);
    } else {
        add_values(panel, block, segments, hidden);
    }
}

template <Products kProducts>
void FlashTask<kProducts>::add_values(size_t panel, KeyBlock& block, const Segments& segments,
                                      const bool* hidden) {
    float *factor = lane_row(1), *one = lane_row(2), *o = outputs(panel);
    for (size_t lane = 0; lane < kPanel; ++lane) one[lane] = 1;
    const Segment& whole = segments.part[0];
    const bool first_covers_all =
        whole.first_vector == segments.first_vector && whole.last_vector == segments.last_vector;
    if (!first_covers_all) {
        const size_t first = segments.first_vector, last = segments.last_vector;
        scale_columns(first, last, p_.dim_v, factor, o);
    }
    for (size_t n = 0; n < segments.count; ++n) {
        const Segment& part = segments.part[n];
        const size_t at = part.first_vector * kLanes, row = size_t(part.first_key - block.begin);
        const float* p = logits() + row * kPanel + at;
        const float* by = (n == 0 && first_covers_all ? factor : one) + at;
        if (hidden[n] && block.finite < 0) block.finite = all_finite(block.v, block.keys(), p_.dim_v);
        // Zero times a hidden key's value would be NaN where the value is not finite.
        if (hidden[n] && !block.finite)
            sum_block_of_seen(part.vectors(), block.v, row, part.keys(), p_.dim_v, p, o + at, by);
        else
            sum_block(part.vectors(), block.v, row, part.keys(), p_.dim_v, p, o + at, by);
    }
}

template <Products kProducts>
template <class T>
void FlashTask<kProducts>::store_outputs(size_t panel, const float* factor) {
    T* to[kPanel];
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < rows_in(panel); ++lane, row.next())
        to[lane] = call_.at<T>(FOVEA_BIND_O, query_offset(p_, p_.o, rows_, row.i, row.h));
    if (p_.rotated_v) rotate_panel(p_.dim_v, vectors_in(panel), outputs(panel));
    unpack_panel(outputs(panel), factor, p_.dim_v, rows_in(panel), to);
}

// Brings in the sinks, divides by the sums and writes the rows.
template <Products kProducts>
void FlashTask<kProducts>::finish_panel(size_t panel) {
    float *factor = lane_row(1), *max = maxima(panel), *sum = sums(panel);
    const float* sinks = call_.at<const float>(FOVEA_BIND_SINKS);
    float* lse = call_.at<float>(FOVEA_BIND_LSE);
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < rows_in(panel); ++lane, row.next()) {
        const RowEnd end =
            end_row(form_.max_logit(max[lane]), sum[lane], sinks ? &sinks[row.h] : nullptr, lse != nullptr);
        factor[lane] = p_.dropout ? end.factor * p_.keep_scale : end.factor;
        sum[lane] = end.factor;  // for the second pass
        if (lse) lse[flat_row(p_, rows_.b, row.h, row.i)] = end.lse;
    }
    for (size_t lane = rows_in(panel); lane < kPanel; ++lane) factor[lane] = 0;
    if (!wants_o()) return;
    with_type(p_.o_type, [&](auto o) { store_outputs<decltype(o)>(panel, factor); });
}

template <Products kProducts>
void FlashTask<kProducts>::write_matrices(size_t panel, const KeyScratch& scratch) {
    const PanelState state{panel * kPanel, rows_in(panel), vectors_in(panel), queries(panel), &lanes(panel),
                           form_.max_in,   maxima(panel),  sums(panel),       form_.unit};
    MatrixPass(call_, rows_, state, logits(), lane_row(0), scratch).run();
}

void flash_task(const AttentionCall& call, uint64_t task, unsigned char* scratch) {
    FlashTask<Products::f32>(call, task, scratch).run();
}
#if FOVEA_HAS_PAIRS
void flash_pairs_task(const AttentionCall& call, uint64_t task, unsigned char* scratch) {
    FlashTask<Products::bf16>(call, task, scratch).run();
}
#endif

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

FOVEA_DECLARE_TARGETS(flash_task)
FOVEA_IF_PAIRS(namespace N_AVX3 { decltype(HWY_NAMESPACE::flash_task) flash_pairs_task; })

decltype(Kernels::flash) flash_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, flash_task) }
decltype(Kernels::flash) flash_pairs_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET_OF_PAIRS(target, flash_pairs_task)
}

}  // namespace fovea::cpu
#endif
