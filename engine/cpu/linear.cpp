// One task of a linear layer: some rows of Y in some panels of columns. Columns of Y are along the lanes, so
// a panel of packed weights is multiplied with the rows of X as they are in memory, and sums are whole
// runs in rows of Y.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "cpu/compressed_row_inl.hpp"
#include "cpu/linear_layout.hpp"
#include "cpu/panel_inl.hpp"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

class LinearTask {
  public:
    LinearTask(const LinearCall& call, uint64_t task, unsigned char* scratch);
    void run();

  private:
    // Part [begin, begin + count) of n_in.
    struct Depth {
        size_t begin, count;
    };

    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    float* sums(size_t panel) const { return floats(layout_.sums) + panel * rows_ * kPanel; }
    size_t column(size_t panel) const { return first_column_ + panel * kPanel; }
    size_t columns_in(size_t panel) const { return HWY_MIN(kPanel, d_.n_out - column(panel)); }
    size_t vectors_in(size_t panel) const { return (columns_in(panel) + kLanes - 1) / kLanes; }

    template <class T>
    void copy_x(const Depth& depth) const;
    template <class T>
    void pack_weights(size_t panel, const Depth& depth) const;
    template <class T>
    void pack_transposed(size_t panel, const Depth& depth) const;
    void pack_blocks(size_t panel, const Depth& depth) const;
    void add_products(size_t panel, const Depth& depth) const;
    template <class T>
    void store(size_t panel) const;

    const LinearCall& call_;
    const FoveaLinearDesc& d_;
    const LinearLayout layout_;
    unsigned char* base_;
    size_t first_row_, rows_, first_column_, panels_;
};

inline LinearTask::LinearTask(const LinearCall& call, uint64_t task, unsigned char* scratch)
    : call_(call), d_(call.d), layout_(linear_layout(kShape, call.cut)), base_(scratch) {
    // Neighbouring tasks share rows of X.
    first_row_ = size_t(task / call.cut.panel_tiles) * call.cut.row_tile;
    rows_ = HWY_MIN(size_t{call.cut.row_tile}, size_t(d_.rows) - first_row_);
    first_column_ = size_t(task % call.cut.panel_tiles) * call.cut.panels * kPanel;
    panels_ = HWY_MIN(size_t{call.cut.panels}, (d_.n_out - first_column_ + kPanel - 1) / kPanel);
}

inline void LinearTask::run() {
    for (size_t e = 0; e < d_.n_in; e += call_.cut.depth_block) {
        const Depth depth{e, HWY_MIN(size_t{call_.cut.depth_block}, d_.n_in - e)};
        with_type(d_.x_type, [&](auto x) { copy_x<decltype(x)>(depth); });
        for (size_t panel = 0; panel < panels_; ++panel) {
            if (is_compressed(FOVEA_Q8_0) && call_.cut.blocks)
                pack_blocks(panel, depth);
            else
                with_type(d_.w_type, [&](auto w) { pack_weights<decltype(w)>(panel, depth); });
            add_products(panel, depth);
        }
    }
    for (size_t panel = 0; panel < panels_; ++panel)
        with_type(d_.y_type, [&](auto y) { store<decltype(y)>(panel); });
}

// Once for all panels of the task: rows as far apart as those of X may fall on the same few places of a
// cache, and the products read them many times.
template <class T>
void LinearTask::copy_x(const Depth& depth) const {
    const T* x =
        call_.at<const T>(FOVEA_BIND_X, int64_t(first_row_) * d_.x_row_stride + int64_t(depth.begin));
    float* to = floats(layout_.x);
    for (size_t row = 0; row < rows_; ++row, to += layout_.x_stride)
        copy_row(x + int64_t(row) * d_.x_row_stride, depth.count, to);
}

// Rows of an [n_in, n_out] matrix are rows of the panel. Lanes past the last column hold zeros or what was
// there before; their sums are never stored.
template <class T>
void LinearTask::pack_weights(size_t panel, const Depth& depth) const {
    if (!d_.weight_is_in_out) return pack_transposed<T>(panel, depth);
    const F f;
    const size_t columns = columns_in(panel), whole = columns / kLanes * kLanes;
    float* to = floats(layout_.weights);
    for (size_t e = 0; e < depth.count; ++e, to += kPanel) {
        const int64_t first = int64_t(depth.begin + e) * d_.w_row_stride + int64_t(column(panel));
        const T* from = call_.at<const T>(FOVEA_BIND_WEIGHT, first);
        size_t c = 0;
        for (; c < whole; c += kLanes) hn::Store(load_row(from + c), f, to + c);
        if (c == columns) continue;
        hn::Store(hn::Zero(f), f, to + c);
        for (; c < columns; ++c) to[c] = load_one(from + c);
    }
}

template <class T>
void LinearTask::pack_transposed(size_t panel, const Depth& depth) const {
    const T* rows[kPanel];
    for (size_t lane = 0; lane < vectors_in(panel) * kLanes; ++lane) {
        const size_t c = column(panel) + HWY_MIN(lane, columns_in(panel) - 1);
        rows[lane] =
            call_.at<const T>(FOVEA_BIND_WEIGHT, int64_t(c) * d_.w_row_stride + int64_t(depth.begin));
    }
    pack_panel(rows, depth.count, vectors_in(panel), floats(layout_.weights));
}

inline void LinearTask::pack_blocks(size_t panel, const Depth& depth) const {
    // Rows are far apart and too many for the CPU's hardware prefetch, so this many are prefetched.
    constexpr size_t kAhead = 8;
    const auto row_at = [&](size_t lane) {
        const int64_t first = int64_t(column(panel) + lane) * d_.w_row_stride + int64_t(depth.begin);
        return call_.at<const unsigned char>(FOVEA_BIND_WEIGHT, stored_bytes(d_.w_type, first));
    };
    const size_t bytes = stored_bytes(d_.w_type, int64_t(depth.count));
    const float* rows[kPanel];
    float* to = floats(layout_.widened);
    for (size_t lane = 0; lane < vectors_in(panel) * kLanes; ++lane) {
        rows[lane] = lane < columns_in(panel) ? to : rows[lane - 1];
        if (rows[lane] != to) continue;
        if (lane + kAhead < columns_in(panel))
            for (size_t b = 0; b < bytes + 63; b += 64)
                hwy::Prefetch(row_at(lane + kAhead) + HWY_MIN(b, bytes - 1));
        widen_row(d_.w_type, row_at(lane), depth.count, to);
        to += call_.cut.depth_block;
    }
    pack_panel(rows, depth.count, vectors_in(panel), floats(layout_.weights));
}

inline void LinearTask::add_products(size_t panel, const Depth& depth) const {
    const float *x = floats(layout_.x), *weights = floats(layout_.weights);
    if (depth.begin == 0)
        dot_block<DotMode::plain>(vectors_in(panel), x, layout_.x_stride, rows_, weights, depth.count,
                                  sums(panel), nullptr);
    else
        dot_block<DotMode::add>(vectors_in(panel), x, layout_.x_stride, rows_, weights, depth.count,
                                sums(panel), nullptr);
}

template <class T>
void LinearTask::store(size_t panel) const {
    const F f;
    const size_t columns = columns_in(panel), whole = columns / kLanes * kLanes;
    HWY_ALIGN float bias[kPanel] = {};
    if (d_.has_bias)
        memcpy(bias, call_.at<const float>(FOVEA_BIND_BIAS, int64_t(column(panel))), columns * sizeof(float));
    const float* from = sums(panel);
    for (size_t row = 0; row < rows_; ++row, from += kPanel) {
        T* to =
            call_.at<T>(FOVEA_BIND_Y, int64_t(first_row_ + row) * d_.y_row_stride + int64_t(column(panel)));
        size_t c = 0;
        for (; c < whole; c += kLanes)
            store_row(hn::Add(hn::Load(f, from + c), hn::Load(f, bias + c)), to + c);
        for (; c < columns; ++c) store_one(from[c] + bias[c], to + c);
    }
}

void linear_task(const LinearCall& call, uint64_t task, unsigned char* scratch) {
    LinearTask(call, task, scratch).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::linear) linear_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, linear_task) }

}  // namespace fovea::cpu
#endif
