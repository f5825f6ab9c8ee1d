// One task of a linear layer with FOVEA_PRECISION_INT8_INPUTS: some rows of Y in some panels of columns, a
// vector of outputs each. A stretch of a panel is packed once for all rows of the task.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/integer_linear.cpp"
#include <hwy/foreach_target.h>

#include "cpu/integer_panel_inl.hpp"
#include "cpu/linear_layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

class IntegerTask {
  public:
    IntegerTask(const LinearCall& call, uint64_t task, unsigned char* scratch)
        : call_(call), d_(call.d), layout_(integer_layout(kLanes, d_.n_in, call.cut)), base_(scratch) {
        first_row_ = size_t(task / call.cut.panel_tiles) * call.cut.row_tile;
        rows_ = HWY_MIN(size_t{call.cut.row_tile}, size_t(d_.rows) - first_row_);
        first_column_ = size_t(task % call.cut.panel_tiles) * call.cut.panels * kLanes;
        end_column_ = HWY_MIN(size_t{d_.n_out}, first_column_ + call.cut.panels * kLanes);
        packed_ = {reinterpret_cast<uint32_t*>(base_ + layout_.codes), floats(layout_.scales),
                   floats(layout_.leasts)};
    }
    template <class Format>
    void run() {
        with_type(d_.x_type, [&](auto x) { quantize<Format, decltype(x)>(); });
        for (size_t column = first_column_; column < end_column_; column += kLanes) {
            for (size_t e = 0; e < d_.n_in; e += call_.cut.depth_block) add<Format>(column, e);
            with_type(d_.y_type, [&](auto y) { store<decltype(y)>(column); });
        }
    }

  private:
    float* floats(uint64_t offset) const { return reinterpret_cast<float*>(base_ + offset); }
    unsigned char* row_of_x(size_t row) const { return base_ + layout_.x + row * layout_.x_bytes; }
    IntegerRow integers(size_t row) const {
        unsigned char* const at = row_of_x(row);
        return {reinterpret_cast<const int8_t*>(at), reinterpret_cast<const float*>(at + layout_.x_scales),
                at + layout_.x_extra};
    }

    template <class Format, class T>
    void quantize() const {
        for (size_t row = 0; row < rows_; ++row) {
            unsigned char* const at = row_of_x(row);
            quantize_row<Format>(call_.at<const T>(FOVEA_BIND_X, int64_t(first_row_ + row) * d_.x_row_stride),
                                 d_.n_in, reinterpret_cast<int8_t*>(at),
                                 reinterpret_cast<float*>(at + layout_.x_scales), at + layout_.x_extra);
        }
    }
    // Past the last row of W it is read again and its sums are not stored.
    template <class Format>
    void add(size_t column, size_t begin) const {
        const size_t count = HWY_MIN(size_t{call_.cut.depth_block}, d_.n_in - begin);
        PanelRows rows;
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const int64_t first =
                int64_t(HWY_MIN(column + lane, size_t{d_.n_out} - 1)) * d_.w_row_stride + int64_t(begin);
            rows.at[lane] = call_.at<const unsigned char>(FOVEA_BIND_WEIGHT, stored_bytes(d_.w_type, first));
        }
        Format::pack(rows, count, packed_);
        size_t row = 0;
        for (; row + kTogether <= rows_; row += kTogether) add_rows<Format, kTogether>(row, begin, count);
        for (; row < rows_; ++row) add_rows<Format, 1>(row, begin, count);
    }
    template <class Format, size_t R>
    HWY_INLINE void add_rows(size_t row, size_t begin, size_t count) const {
        const F f;
        float* const sums = floats(layout_.sums) + row * kLanes;
        IntegerRow x[R];
        V sum[R];
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) {
            x[r] = integers(row + r);
            sum[r] = begin == 0 ? hn::Zero(f) : hn::Load(f, sums + r * kLanes);
        }
        add_stretch<Format>(packed_, x, begin, count, sum);
        FOVEA_UNROLL for (size_t r = 0; r < R; ++r) hn::Store(sum[r], f, sums + r * kLanes);
    }
    template <class T>
    void store(size_t column) const {
        const size_t columns = HWY_MIN(kLanes, end_column_ - column);
        const float* const bias =
            d_.has_bias ? call_.at<const float>(FOVEA_BIND_BIAS, int64_t(column)) : nullptr;
        for (size_t row = 0; row < rows_; ++row) {
            const float* const from = floats(layout_.sums) + row * kLanes;
            T* const to =
                call_.at<T>(FOVEA_BIND_Y, int64_t(first_row_ + row) * d_.y_row_stride + int64_t(column));
            for (size_t c = 0; c < columns; ++c) store_one(bias ? from[c] + bias[c] : from[c], to + c);
        }
    }

    static constexpr size_t kTogether = kLanes < 4 ? 1 : 4;  // rows that share a load of codes
    const LinearCall& call_;
    const FoveaLinearDesc& d_;
    const IntegerLayout layout_;
    unsigned char* base_;
    PackedCodes packed_;
    size_t first_row_, rows_, first_column_, end_column_;
};

void integer_task(const LinearCall& call, uint64_t task, unsigned char* scratch) {
    with_integer_format(call.d.w_type, [&](auto format) HWY_ATTR {
        IntegerTask(call, task, scratch).run<decltype(format)>();
    });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::linear) integer_linear_kernel_of(uint32_t target) {
    FOVEA_SELECT_TARGET(target, integer_task)
}

}  // namespace fovea::cpu
#endif
