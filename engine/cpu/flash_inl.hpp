// One task of attention in one pass: some queries of all heads of a group against all their keys, block by
// block, with an online softmax, so that no row of logits is ever whole (FlashAttention: Dao et al. 2022;
// rows of queries outside, blocks of keys inside as in FlashAttention-2: Dao 2023). See tile_inl.hpp for the
// order of numbers.
#if defined(FOVEA_CPU_FLASH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_FLASH_INL_HPP
#undef FOVEA_CPU_FLASH_INL_HPP
#else
#define FOVEA_CPU_FLASH_INL_HPP
#endif

#include "cpu/dropout_inl.hpp"
#include "cpu/flash_layout.hpp"
#include "cpu/key_block_inl.hpp"
#include "cpu/matrices_inl.hpp"
#include "cpu/row_end.hpp"
#include "cpu/rows_inl.hpp"
#include "cpu/segments_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

static_assert(sizeof(Lanes) == kLaneWords * kPanel * 4);

class FlashTask {
  public:
    FlashTask(const AttentionCall& call, uint64_t task, unsigned char* scratch);
    void run();

  private:
    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    float* queries(size_t panel) const { return floats(layout_.queries) + panel * p_.dim_qk * kPanel; }
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
    void look_ahead(int64_t begin, int64_t end);
    void look_ahead_to_rows(FoveaBinding binding, size_t panel);
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
    unsigned char* base_;
    QueryRows rows_{};
    size_t panels_;
    const LogitForm form_;
    Ahead ahead_[2];    // keys and values of the next block
    Ahead ahead_rows_;  // what a panel will read or write
};

inline FlashTask::FlashTask(const AttentionCall& call, uint64_t task, unsigned char* scratch)
    : call_(call),
      p_(call.p),
      layout_(flash_layout(kShape, call.cut.panels, p_.dim_qk, p_.dim_v, call.cut.key_block)),
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

inline void FlashTask::run() {
    const KeyRange seen = visible_keys_of_rows(p_, rows_.view, rows_.begin, rows_.end);
    const int64_t step = call_.cut.key_block;
    const KeyScratch scratch{floats(layout_.keys),
                             floats(layout_.values),
                             base_ + layout_.hidden,
                             size_t(step),
                             kKeyRows ? floats(layout_.packed) : nullptr,
                             floats(layout_.row)};
    // A panel is packed at its first block and written after the last one that it sees, so that memory is
    // read and written beside the products of other panels. Ranges grow with the rows: panels end in order.
    size_t open = 0, started = 0;
    // Blocks lie on a grid from key 0, so that a row's sums do not depend on the rows it shares a task with.
    for (int64_t j = seen.begin / step * step; j < seen.end; j += step) {
        look_ahead(j + step, std::min(j + 2 * step, seen.end));
        KeyBlock block = fetch_keys(call_, rows_, std::max(j, seen.begin), std::min(j + step, seen.end),
                                    panels_, wants_o(), scratch);
        pack_block(block, panels_ - open, p_.dim_qk, scratch);
        for (size_t panel = open; panel < panels_; ++panel) {
            const bool first = panel == started;
            if (first) start_panel(started++);
            const bool last = !wants_second_pass(p_) && lanes(panel).end[kPanel - 1] <= block.end;
            if (first)
                look_ahead_to_rows(FOVEA_BIND_Q, panel + 1);
            else if (last)
                look_ahead_to_rows(FOVEA_BIND_O, panel);
            add_block(panel, block);
            if (!last) continue;
            finish_panel(panel);
            open = panel + 1;
        }
    }
    while (started < panels_) start_panel(started++);
    for (size_t panel = open; panel < panels_; ++panel) {
        finish_panel(panel);
        if (wants_second_pass(p_)) write_matrices(panel, scratch);
    }
    write_empty_rows(call_, rows_);
}

// Spreads the lines of keys [begin, end) over the exponentials of the block before.
inline void FlashTask::look_ahead(int64_t begin, int64_t end) {
    ahead_[0] = ahead_[1] = Ahead{};
    if (begin >= end || p_.page_size) return;
    const auto lines = [&](Ahead& ahead, FoveaBinding binding, const FoveaStrides& s, FoveaDtype type,
                           uint32_t dim) {
        const int64_t first = rows_.b * s.batch + rows_.h_kv * s.head + (rows_.view.kv_start + begin) * s.row;
        ahead.row = call_.at<const char>(binding) + stored_bytes(type, first);
        ahead.stride_bytes = size_t(stored_bytes(type, s.row));
        ahead.row_bytes = size_t(stored_bytes(type, dim));
        ahead.rows = size_t(end - begin);
        return ahead.rows * ((ahead.row_bytes + 63) / 64);
    };
    const size_t all = lines(ahead_[0], FOVEA_BIND_K, p_.k, p_.k_type, p_.dim_qk) +
                       (wants_o() ? lines(ahead_[1], FOVEA_BIND_V, p_.v, p_.v_type, p_.dim_v) : 0);
    const size_t calls = panels_ * call_.cut.key_block;
    ahead_[0].lines_per_call = ahead_[1].lines_per_call = (all + calls - 1) / calls;
}

// The same for a panel's rows of q, soon to be packed, or o, soon to be written, if they lie in one run.
inline void FlashTask::look_ahead_to_rows(FoveaBinding binding, size_t panel) {
    ahead_rows_ = Ahead{};
    const bool queries = binding == FOVEA_BIND_Q;
    if (panel >= panels_ || p_.group != 1 || (!queries && !wants_o())) return;
    const FoveaStrides& s = queries ? p_.q : p_.o;
    const size_t element = dtype_bytes(queries ? p_.q_type : p_.o_type);
    const int64_t first =
        query_offset(p_, s, rows_, rows_.query(p_, panel * kPanel), rows_.head(p_, panel * kPanel));
    ahead_rows_.row = call_.at<const char>(binding) + first * int64_t(element);
    ahead_rows_.stride_bytes = size_t(s.row) * element;
    ahead_rows_.row_bytes = (queries ? p_.dim_qk : p_.dim_v) * element;
    ahead_rows_.rows = rows_in(panel);
    ahead_rows_.lines_per_call = 2;
}

template <class T>
void FlashTask::load_queries(size_t panel) {
    const T* from[kPanel];
    const size_t count = rows_in(panel);
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < count; ++lane, row.next())
        from[lane] = call_.at<const T>(FOVEA_BIND_Q, query_offset(p_, p_.q, rows_, row.i, row.h));
    for (size_t lane = count; lane < vectors_in(panel) * kLanes; ++lane) from[lane] = from[count - 1];
    pack_panel(from, p_.dim_qk, vectors_in(panel), queries(panel));
}

inline void FlashTask::start_panel(size_t panel) {
    with_type(p_.q_type, [&](auto q) { load_queries<decltype(q)>(panel); });
    set_lanes(call_, rows_, panel * kPanel, lanes(panel));
    for (size_t lane = 0; lane < kPanel; ++lane) {
        maxima(panel)[lane] = kFloor;
        sums(panel)[lane] = 0;
    }
    if (wants_o()) memset(outputs(panel), 0, p_.dim_v * kPanel * sizeof(float));
}

// Whether the block is hidden from the whole panel: then it would leave every sum as it is.
inline bool FlashTask::mask_hides(size_t panel, const Segments& segments,
                                  const Adjustments& adjustments) const {
    if (!p_.mask.present) return false;
    for (size_t n = 0; n < segments.count; ++n)
        if (!adjustments.hides_all(rows_in(panel), segments.part[n])) return false;
    return true;
}

// Products of the queries with the block's keys, as logits where a step is needed. `hidden` by segment: some
// entry is hidden.
inline void FlashTask::logits_of(size_t panel, const KeyBlock& block, const Segments& segments,
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
            dot_block<DotMode::plain>(part.vectors(), k, block.k_stride, part.keys(), queries(panel) + first,
                                      p_.dim_qk, s, nullptr);
            apply_logit_steps(steps, lanes(panel), part, block.begin, logits(), block_max);
        } else if (kKeyRows && block.packed_k && part.keys() == block.keys() && part.vectors() == kVectors) {
            const size_t packed = block.packed_tiles * kKeyRows;
            packed_dot_block(block.packed_k, block.packed_tiles, queries(panel), p_.dim_qk, s, block_max);
            dot_block<DotMode::max>(kVectors, k + packed * block.k_stride, block.k_stride,
                                    block.keys() - packed, queries(panel), p_.dim_qk, s + packed * kPanel,
                                    block_max);
        } else {
            dot_block<DotMode::max>(part.vectors(), k, block.k_stride, part.keys(), queries(panel) + first,
                                    p_.dim_qk, s, block_max + first);
        }
    }
}

inline void FlashTask::add_block(size_t panel, KeyBlock& block) {
    const Segments segments(lanes(panel), vectors_in(panel), block.begin, block.end);
    if (segments.count == 0) return;
    Adjustments adjustments;
    if (p_.mask.present || p_.bias.present) adjustments.aim(call_, lanes(panel));
    if (mask_hides(panel, segments, adjustments)) return;
    float *block_max = lane_row(0), *factor = lane_row(1);
    for (size_t lane = 0; lane < kPanel; ++lane) block_max[lane] = kHidden;
    bool hidden[Segments::kMost];
    logits_of(panel, block, segments, adjustments, hidden);
    const size_t first = segments.first_vector * kLanes;
    grow_maximum(form_.max_in, segments.last_vector - segments.first_vector, block_max + first, form_.unit,
                 maxima(panel) + first, sums(panel) + first, factor + first);
    for (size_t n = 0; n < segments.count; ++n) {
        const Segment& part = segments.part[n];
        const size_t at = part.first_vector * kLanes;
        float* s = logits() + size_t(part.first_key - block.begin) * kPanel + at;
        const size_t lines = ahead_rows_.rows * ((ahead_rows_.row_bytes + 63) / 64);
        const size_t beside_rows = std::min(part.keys(), (lines + 1) / 2);
        exponentials(form_.max_in, part.vectors(), s, beside_rows, form_.unit, maxima(panel) + at,
                     sums(panel) + at, ahead_rows_);
        exponentials(form_.max_in, part.vectors(), s + beside_rows * kPanel, part.keys() - beside_rows,
                     form_.unit, maxima(panel) + at, sums(panel) + at,
                     ahead_[0].rows ? ahead_[0] : ahead_[1]);
        if (p_.dropout) apply_dropout(call_, lanes(panel), part, block.begin, logits());
    }
    if (wants_o()) add_values(panel, block, segments, hidden);
}

inline void FlashTask::add_values(size_t panel, KeyBlock& block, const Segments& segments,
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

template <class T>
void FlashTask::store_outputs(size_t panel, const float* factor) {
    T* to[kPanel];
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < rows_in(panel); ++lane, row.next())
        to[lane] = call_.at<T>(FOVEA_BIND_O, query_offset(p_, p_.o, rows_, row.i, row.h));
    unpack_panel(outputs(panel), factor, p_.dim_v, rows_in(panel), to);
}

// Brings in the sinks, divides by the sums and writes the rows.
inline void FlashTask::finish_panel(size_t panel) {
    float *factor = lane_row(1), *max = maxima(panel), *sum = sums(panel);
    const float* sinks = call_.at<const float>(FOVEA_BIND_SINKS);
    float* lse = call_.at<float>(FOVEA_BIND_LSE);
    const double max_unit = form_.max_unit();
    RowCursor row(p_, rows_, panel * kPanel);
    for (size_t lane = 0; lane < rows_in(panel); ++lane, row.next()) {
        const RowEnd end =
            end_row(double(max[lane]) * max_unit, sum[lane], sinks ? &sinks[row.h] : nullptr, lse != nullptr);
        factor[lane] = p_.dropout ? end.factor * p_.keep_scale : end.factor;
        sum[lane] = end.factor;  // for the second pass
        if (lse) lse[flat_row(p_, rows_.b, row.h, row.i)] = end.lse;
    }
    for (size_t lane = rows_in(panel); lane < kPanel; ++lane) factor[lane] = 0;
    if (!wants_o()) return;
    with_type(p_.o_type, [&](auto o) { store_outputs<decltype(o)>(panel, factor); });
}

inline void FlashTask::write_matrices(size_t panel, const KeyScratch& scratch) {
    const PanelState state{panel * kPanel, rows_in(panel), vectors_in(panel), queries(panel),
                           &lanes(panel),  form_.max_in,   maxima(panel),     sums(panel)};
    MatrixPass(call_, rows_, state, logits(), lane_row(0), scratch).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
