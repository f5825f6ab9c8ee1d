// The end of a flash row: sink, normalisation, lse.
#ifndef FOVEA_FINISH_GLSL
#define FOVEA_FINISH_GLSL

#include "flash_rows.glsl"
#include "math.glsl"

FOVEA_SINKS
layout(set = 0, binding = FOVEA_SLOT_LSE, std430) writeonly buffer Lse { uint lse_bits[]; };

// Running maximum and sum of exp(logit - maximum) of a row; -inf and 0 where nothing is visible.
struct RowSum {
    float largest, total;
};

RowSum empty_sum() { return RowSum(FOVEA_MINUS_INFINITY, 0.0); }

// Row of a split's partial results: largest, total, then the sums of the columns.
uint partial_row(uint split, uint heads, uint head, uint r) {
    return (split * heads + head) * push.slice.rows * group_size() + r;
}

// Returns the multiplier of the row's sum of weights times values; adds the sink to `sum`.
float finish_row(inout RowSum sum, Row row, float keep_scale) {
    const bool empty = sum.total == 0.0;
    float rescale = 1.0;
    if (has_flag(kFlagSinks)) {
        const float sink = uintBitsToFloat(sink_bits(global_head(row)));
        const float largest = sink <= sum.largest ? sum.largest : sink;
        rescale = empty ? 0.0 : exp_of_negative(sum.largest - largest);
        sum.total = empty ? 1.0 : sum.total * rescale + exp_of_negative(sink - largest);
        sum.largest = largest;
    }
    return empty ? 0.0 : keep_scale * rescale / sum.total;
}

void store_lse(Row row, RowSum sum) {
    const uint at = push.result_base + row.place * push.slice.len_q + row.query;
    const bool bare = sum.total == 0.0 || sum.total == 1.0;  // an empty row, perhaps with a sink: its bits
    lse_bits[at] = floatBitsToUint(bare ? sum.largest : sum.largest + log_of_positive(sum.total));
}

#endif
