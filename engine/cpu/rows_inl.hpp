// Common to all kernels: the lanes for the query rows of a task, the form of their logits, and the results of
// rows past a length.
#if defined(FOVEA_CPU_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROWS_INL_HPP
#undef FOVEA_CPU_ROWS_INL_HPP
#else
#define FOVEA_CPU_ROWS_INL_HPP
#endif

#include "cpu/logits_inl.hpp"
#include "cpu/matrices_inl.hpp"
#include "cpu/softmax_inl.hpp"

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// How products become exponents. With a scale of 0 or less the hidden entries' -inf would not survive it.
struct LogitForm {
    bool general;  // logits are more than scale times product
    MaxIn max_in;
    float unit;  // turns s into an exponent of 2

    explicit LogitForm(const Problem& p)
        : general(has_logit_steps(p) || p.bias.present || !(p.scale > 0)),
          max_in(general ? MaxIn::logits : MaxIn::exponents),
          unit(general ? kLog2E : p.scale * kLog2E) {}
    double max_logit(float max) const { return logit_of_max(max_in, unit, max); }
};

// Query i of head h as one lane of a panel; i must not fall from lane to lane, nor leave q_length.
inline void set_lane(const AttentionCall& call, const QueryRows& rows, int64_t i, uint32_t h, size_t lane,
                     Lanes& lanes) {
    const Problem& p = call.p;
    const float* slopes = call.at<const float>(FOVEA_BIND_ALIBI);
    int64_t key_count = rows.view.kv_length;
    if (p.mask.present) key_count = std::min(key_count, p.mask.keys);
    if (p.bias.present) key_count = std::min(key_count, p.bias.keys);
    const int64_t position = i + rows.view.offset;
    int64_t begin = 0, end = key_count;  // both grow with the lane, even where the range is empty
    if (p.causal) end = std::min(end, position + 1);
    if (p.window_right != kUnbounded) end = std::min(end, position + p.window_right + 1);
    if (p.window_left != kUnbounded) begin = std::max(begin, position - p.window_left);
    lanes.begin[lane] = int32_t(std::min(begin, key_count));
    lanes.end[lane] = int32_t(std::max<int64_t>(end, 0));
    lanes.position[lane] = int32_t(position);
    lanes.query[lane] = uint32_t(i);
    lanes.bh[lane] = rows.b * p.heads_q + h;
    lanes.slope[lane] = slopes ? slopes[h] : 0;
}

// Rows from `first_row` of the task on, as the lanes of a panel.
inline void set_lanes(const AttentionCall& call, const QueryRows& rows, size_t first_row, Lanes& lanes) {
    const size_t count = HWY_MIN(kPanel, rows.count(call.p) - first_row);
    RowCursor row(call.p, rows, first_row);
    for (size_t lane = 0; lane < count; ++lane, row.next()) set_lane(call, rows, row.i, row.h, lane, lanes);
    for (size_t lane = count; lane < kPanel; ++lane) {
        lanes.begin[lane] = lanes.begin[count - 1];
        lanes.end[lane] = lanes.end[count - 1];
        lanes.position[lane] = lanes.position[count - 1];
        lanes.query[lane] = lanes.query[count - 1];
        lanes.bh[lane] = lanes.bh[count - 1];
        lanes.slope[lane] = lanes.slope[count - 1];
    }
}

// Results of rows past the length.
inline void write_empty_rows(const AttentionCall& call, const QueryRows& rows) {
    const Problem& p = call.p;
    const float* sinks = call.at<const float>(FOVEA_BIND_SINKS);
    float* lse = call.at<float>(FOVEA_BIND_LSE);
    const size_t element = dtype_bytes(p.o_type);
    for (int64_t i = rows.end; i < rows.past; ++i) {
        for (uint32_t g = 0; g < p.group; ++g) {
            const uint32_t h = rows.h_kv * p.group + g;
            const int64_t row = flat_row(p, rows.b, h, i);
            if (lse) lse[row] = sinks ? sinks[h] : kHidden;
            fill_matrix_row(call, row, 0, p.len_kv);
            if (auto* stats = call.at<FoveaRowStats>(FOVEA_BIND_ROW_STATS, row))
                *stats = FoveaRowStats{0, 0, 0xffffffffu, 0};
            // Where entries are packed end to end, a row past the length belongs to another entry.
            if (wants(p, FOVEA_OUTPUT_O) && !p.packed_rows_q)
                memset(call.at<unsigned char>(FOVEA_BIND_O) + query_offset(p, p.o, rows, i, h) * element, 0,
                       p.dim_v * element);
        }
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
