// One task of a map tile: some pixels of one head. Panels of query rows meet blocks of keys as in flash; what
// comes out are weights from the given lse, which are added up in whole units, so that no cut changes a bit.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/map_tile.cpp"
#include <hwy/foreach_target.h>

#include "cpu/dropout_inl.hpp"
#include "cpu/key_block_inl.hpp"
#include "cpu/map_tile_layout.hpp"
#include "cpu/map_weights_inl.hpp"
#include "cpu/rows_inl.hpp"
#include "cpu/segments_inl.hpp"
#include "problem/map_tile.hpp"

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

static_assert(sizeof(LaneSums) <= kLaneRows * kPanel * 4);

class MapTileTask {
  public:
    MapTileTask(const AttentionCall& call, const MapTile& tile, uint64_t task, unsigned char* scratch);
    void run();

  private:
    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    float* weights() const { return floats(layout_.flash.logits); }
    float* lse() const { return floats(layout_.flash.maxima); }
    LaneSums& sums() const { return *reinterpret_cast<LaneSums*>(base_ + layout_.flash.rows); }
    Lanes& lanes() const { return *reinterpret_cast<Lanes*>(base_ + layout_.flash.lanes); }
    TilePixel* pixel(int64_t y, int64_t x) const {
        return reinterpret_cast<TilePixel*>(base_ + layout_.pixels) + (y - y0_) * (x1_ - x0_) + (x - x0_);
    }
    size_t vectors() const { return (rows_in_panel_ + kLanes - 1) / kLanes; }
    int64_t row(int64_t n) const { return tile_.sampled ? tile_.rows.middle(y0_ + n) : first_row_ + n; }

    template <class T>
    void load_queries();
    void set_lanes(int64_t first);
    void run_panel(int64_t first);
    void add_block(int64_t begin, int64_t end, int64_t sampled_x);
    void add_column(const Segment& part, int64_t block_begin, int64_t x);
    void mark_invalid(const Segment& part, int64_t block_begin, int64_t x);
    void fold(const Segment& part, int64_t x);
    void write() const;

    const AttentionCall& call_;
    const Problem& p_;
    const MapTile& tile_;
    MapTileLayout layout_;
    unsigned char* base_;
    QueryRows rows_{};  // entry, head group and view; its range of queries is not used
    uint32_t head_, head_in_tile_;
    int64_t y0_, y1_, x0_, x1_;  // pixels
    int64_t first_row_ = 0;      // exact: of the task's cells
    int64_t row_count_ = 0;      // rows that exist and are within q_length
    size_t rows_in_panel_ = 0;
    uint32_t pixel_of_lane_[kPanel];  // y - y0_
    const LogitForm form_;
};

inline MapTileTask::MapTileTask(const AttentionCall& call, const MapTile& tile, uint64_t task,
                                unsigned char* scratch)
    : call_(call),
      p_(call.p),
      tile_(tile),
      layout_(map_tile_layout(kShape, p_.dim_qk, call.cut.key_block,
                              uint64_t{call.cut.pixel_rows} * call.cut.pixel_columns)),
      base_(scratch),
      form_(call.p) {
    const uint64_t columns = ceil_div(uint64_t(tile.keys.pixels), call.cut.pixel_columns);
    const uint64_t bands = ceil_div(uint64_t(tile.rows.pixels), call.cut.pixel_rows);
    x0_ = int64_t(task % columns * call.cut.pixel_columns);
    y0_ = int64_t(task / columns % bands * call.cut.pixel_rows);
    x1_ = std::min(x0_ + int64_t(call.cut.pixel_columns), tile.keys.pixels);
    y1_ = std::min(y0_ + int64_t(call.cut.pixel_rows), tile.rows.pixels);
    head_in_tile_ = uint32_t(task / columns / bands);
    head_ = tile.first_head + head_in_tile_;
    rows_.b = tile.batch;
    rows_.h_kv = head_ / p_.group;
    rows_.view = call.view(rows_.b);
    first_row_ = tile.rows.begin(y0_);
    row_count_ = tile.sampled ? y1_ - y0_ : tile.rows.begin(y1_) - first_row_;
    while (tile.sampled && row_count_ > 0 && row(row_count_ - 1) >= rows_.view.q_length) --row_count_;
    if (!tile.sampled) row_count_ = std::min(row_count_, rows_.view.q_length - first_row_);
}

inline void MapTileTask::run() {
    memset(static_cast<void*>(pixel(y0_, x0_)), 0, size_t((y1_ - y0_) * (x1_ - x0_)) * sizeof(TilePixel));
    for (int64_t n = 0; n < row_count_; n += kPanel) run_panel(n);
    write();
}

template <class T>
void MapTileTask::load_queries() {
    const T* from[kPanel];
    for (size_t lane = 0; lane < vectors() * kLanes; ++lane)
        from[lane] =
            call_.at<const T>(FOVEA_BIND_Q, query_offset(p_, p_.q, rows_, lanes().query[lane], head_));
    pack_panel(from, p_.dim_qk, vectors(), floats(layout_.flash.queries));
    if (p_.rotated_k) rotate_panel(p_.dim_qk, vectors(), floats(layout_.flash.queries));
}

inline void MapTileTask::set_lanes(int64_t first) {
    int64_t y = y0_;
    for (size_t lane = 0; lane < kPanel; ++lane) {
        const int64_t n = first + int64_t(std::min(lane, rows_in_panel_ - 1)), i = row(n);
        set_lane(call_, rows_, i, head_, lane, lanes());
        lse()[lane] = *call_.at<const float>(FOVEA_BIND_LSE, flat_row(p_, rows_.b, head_, i));
        while (!tile_.sampled && y + 1 < y1_ && tile_.rows.begin(y + 1) <= i) ++y;
        pixel_of_lane_[lane] = uint32_t(tile_.sampled ? n : y - y0_);
    }
}

inline void MapTileTask::run_panel(int64_t first) {
    rows_in_panel_ = size_t(std::min<int64_t>(kPanel, row_count_ - first));
    set_lanes(first);
    const int64_t last_row = row(first + int64_t(rows_in_panel_) - 1);
    const KeyRange seen = visible_keys_of_rows(p_, rows_.view, row(first), last_row + 1);
    const int64_t begin = std::max(seen.begin, tile_.keys.begin(x0_)),
                  end = std::min(seen.end, tile_.keys.begin(x1_));
    if (begin >= end) return;
    with_type(p_.q_type, [&](auto q) { load_queries<decltype(q)>(); });
    if (tile_.sampled) {
        for (int64_t x = x0_; x < x1_; ++x) {
            const int64_t j = tile_.keys.middle(x);
            if (j >= begin && j < end) add_block(j, j + 1, x);
        }
        return;
    }
    for (int64_t j = begin; j < end; j += call_.cut.key_block)
        add_block(j, std::min<int64_t>(j + call_.cut.key_block, end), -1);
}

// Exact tiles find the pixel column by the key.
inline void MapTileTask::add_block(int64_t begin, int64_t end, int64_t sampled_x) {
    const KeyScratch scratch{floats(layout_.flash.keys), nullptr, base_ + layout_.flash.hidden,
                             size_t(call_.cut.key_block)};
    const KeyBlock block = fetch_keys(call_, rows_, begin, end, 1, false, scratch);
    const Segments segments(lanes(), vectors(), begin, end);
    Adjustments adjustments;
    const bool matrices = p_.mask.present || p_.bias.present;
    if (matrices) adjustments.aim(call_, lanes());
    HWY_ALIGN float ignored[kPanel] = {};
    for (size_t n = 0; n < segments.count; ++n) {
        const Segment& part = segments.part[n];
        const size_t at = part.first_vector * kLanes, row = size_t(part.first_key - begin);
        const LogitSteps steps(p_, LogitsFrom::products, form_.general, segments.partial[n],
                               matrices ? &adjustments : nullptr, block.hidden_keys);
        dot_block<DotMode::plain>(part.vectors(), block.k + row * block.k_stride, block.k_stride, part.keys(),
                                  floats(layout_.flash.queries) + at, p_.dim_qk,
                                  weights() + row * kPanel + at, nullptr);
        if (steps.general || steps.hides())
            apply_logit_steps(steps, lanes(), part, begin, weights(), ignored);
        const bool valid = weigh(form_, lse(), part, begin, weights());
        if (p_.dropout) apply_dropout(call_, lanes(), part, begin, weights());
        for (int64_t j = part.first_key; j < part.last_key;) {
            int64_t x = sampled_x;
            Segment column = part;
            column.first_key = j;
            if (sampled_x < 0) {
                x = (j - tile_.keys.first) * tile_.keys.pixels / tile_.keys.count;
                while (tile_.keys.begin(x + 1) <= j) ++x;
                column.last_key = std::min(part.last_key, tile_.keys.begin(x + 1));
            }
            add_column(column, begin, x);
            if (!valid) mark_invalid(column, begin, x);
            j = column.last_key;
        }
    }
}

// Adds the keys of one pixel column to its pixels. NaN counts as any number: mark_invalid follows.
inline void MapTileTask::add_column(const Segment& part, int64_t block_begin, int64_t x) {
    const float keep = p_.dropout ? p_.keep_scale : 1.0f;
    const int64_t most = keys_per_sum(keep);
    for (Segment some = part; some.first_key < part.last_key; some.first_key = some.last_key) {
        some.last_key = std::min(part.last_key, some.first_key + most);
        sum_units(some, block_begin, weights(), keep, sums());
        fold(some, x);
    }
}

inline void MapTileTask::fold(const Segment& part, int64_t x) {
    const size_t end = std::min(part.last_vector * kLanes, rows_in_panel_);
    for (size_t lane = part.first_vector * kLanes; lane < end;) {
        const uint32_t y = pixel_of_lane_[lane];
        TilePixel& to = *pixel(y0_ + y, x);
        uint64_t units = 0;
        float max = to.max;
        for (; lane < end && pixel_of_lane_[lane] == y; ++lane) {
            units += (uint64_t{sums().high[lane]} << 20) + sums().low[lane];
            max = std::max(max, sums().largest[lane]);
        }
        to.mass = add_tile_units(to.mass, units);
        to.max = max;
    }
}

inline void MapTileTask::mark_invalid(const Segment& part, int64_t block_begin, int64_t x) {
    const size_t end = std::min(part.last_vector * kLanes, rows_in_panel_);
    for (size_t n = 0; n < part.keys(); ++n) {
        const float* row = weights() + (size_t(part.first_key - block_begin) + n) * kPanel;
        for (size_t lane = part.first_vector * kLanes; lane < end; ++lane)
            if (!(row[lane] == row[lane])) pixel(y0_ + pixel_of_lane_[lane], x)->invalid = 1;
    }
}

inline void MapTileTask::write() const {
    unsigned char* mass = call_.at<unsigned char>(FOVEA_BIND_TILE_MASS);
    float* max = call_.at<float>(FOVEA_BIND_TILE_MAX);
    for (int64_t y = y0_; y < y1_; ++y) {
        const int64_t row = (int64_t{head_in_tile_} * tile_.rows.pixels + y) * tile_.keys.pixels;
        for (int64_t x = x0_; x < x1_; ++x) {
            const TilePixel& from = *pixel(y, x);
            const bool valid = !from.invalid && from.mass < kTileMassLimit;
            const uint64_t units = valid ? from.mass : uint64_t{FOVEA_TILE_INVALID};
            // memcpy, because the binding's alignment may be only 4 bytes.
            if (mass) memcpy(mass + (row + x) * int64_t{sizeof units}, &units, sizeof units);
            if (max) max[row + x] = from.invalid ? std::numeric_limits<float>::quiet_NaN() : from.max;
        }
    }
}

void map_tile_task(const AttentionCall& call, const MapTile& tile, uint64_t task, unsigned char* scratch) {
    MapTileTask(call, tile, task, scratch).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::map_tile) map_tile_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, map_tile_task) }

}  // namespace fovea::cpu
#endif
