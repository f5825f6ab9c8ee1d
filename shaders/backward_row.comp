// Computes the contribution of each row of one query head to the gradients of the head's ALiBi slope and of
// its sink: the sum of its logits' gradients, each times the distance that the slope multiplies, and minus
// the sink's weight times delta. backward_sum adds the rows up.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"
#include "backward.glsl"
#include "backward_rows.glsl"

FOVEA_SINKS
layout(set = 0, binding = FOVEA_SLOT_PARTIAL, std430) writeonly buffer RowSums { float row_sums[]; };

shared float by_thread[kBackwardRows][kFlashMaxThreads];

void main() {
    const uint t = gl_LocalInvocationIndex, r0 = gl_WorkGroupID.x * kBackwardRows;
    const Entry e = entry_of(0u, 0u, 0u);
    const RowBlock held = take_rows(e, 0u, r0);
    float sum[kBackwardRows];
    for (uint r = 0u; r < kBackwardRows; ++r) sum[r] = 0.0;
    Keys keys = Keys(0, 0);
    if (held.last >= held.first && (push.store & kStoreSlope) != 0u)
        keys = visible_keys(e, held.first, held.last + 1);
    for (int j = (keys.begin & ~3) + int(t) * 4; j < keys.end; j += int(kThreads) * 4) {
        vec4 score[kBackwardRows], value[kBackwardRows];
        multiply_rows(e, held, keys, j, score, value);
        [[dont_unroll]] for (uint r = 0u; r < kBackwardRows; ++r) {
            const vec4 distance = vec4(ivec4(j, j + 1, j + 2, j + 3) - (held.rows[r].i + e.offset));
            const Pairs pairs =
                pairs_of(e, held.rows[r], j, push.scale * score[r], value[r], row_lse[r], row_delta[r]);
            sum[r] += dot(pairs.d_masked, distance);
        }
    }
    for (uint r = 0u; r < kBackwardRows; ++r) by_thread[r][t] = sum[r];
    barrier();
    const Row row = slice_row(0u, r0 + t);
    if (t >= kBackwardRows || !row.exists) return;
    float slope = 0.0, sink = 0.0;
    if (row.i <= held.last) {
        for (uint n = 0u; n < kThreads; ++n) slope += by_thread[t][n];
        if ((push.store & kStoreSink) != 0u && floatBitsToUint(row_lse[t]) != kMinusInfinity) {
            const float logit = uintBitsToFloat(sink_bits(global_head(row)));
            sink = -exp_of_weight(vec4(logit - row_lse[t])).x * row_delta[t];
        }
    }
    row_sums[row.query] = slope;
    row_sums[push.slice.rows + row.query] = sink;
}
