// Merges the partial results that flash left for each key split (Flash-Decoding: Dao, Haziza, Massa, Sizov
// 2023): one workgroup for a row and a block of its value columns. The order of the splits is fixed, so the
// result does not depend on who finished first.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(push_constant, std430) uniform Push { CombinePush push; };

#include "row_stats.glsl"
#include "store.glsl"

FOVEA_OUTPUT_TENSOR(o, FOVEA_SLOT_O)
layout(set = 0, binding = FOVEA_SLOT_PARTIAL, std430) readonly buffer Partial { float partial[]; };

void main() {
    const uint head = gl_WorkGroupID.z, heads = gl_NumWorkGroups.z, r = gl_WorkGroupID.x;
    const uint column = gl_WorkGroupID.y * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    const Entry e = entry_of(0u, head, head);
    const Row row = row_at(e, r);
    const uint stride = partial_stride(push.dim);
    RowSum sum = empty_sum();
    for (uint s = 0u; s < split_count(); ++s)
        sum.largest = max(sum.largest, partial[partial_row(s, heads, head, r) * stride]);
    RowStats stats = no_stats();
    float value = 0.0;
    for (uint s = 0u; s < split_count(); ++s) {
        const uint at = partial_row(s, heads, head, r) * stride;
        const float total = partial[at + 1u];
        if (total == 0.0) continue;
        const float rescale = exp_of_negative(partial[at] - sum.largest);
        sum.total += total * rescale;
        if (kStats) {
            const uint end = at + kPartialWords + push.dim;
            stats.moment += raised_moment(partial[end], total, sum.largest - partial[at], rescale);
            if (partial[at] == sum.largest)
                stats.argmax = min(stats.argmax, key_of_partial(partial[end + 1u]));
            stats.count += key_of_partial(partial[end + 2u]);
        }
        if (column < push.dim) value += partial[at + kPartialWords + column] * rescale;
    }
    const RowSum keys = sum;
    const float scale = finish_row(sum, row, push.keep_scale);
    if (column == 0u && has_flag(kFlagLse)) store_lse(row, sum);
    if (kStats && column == 0u) store_stats(row, keys, sum, stats);
    if (!has_flag(kFlagOutput) || column >= push.dim) return;
    if (has_flag(kFlagPackedQ) && row.i >= e.q_length) return;
    o_store_bits(query_row(push.o, e, row) + column, stored_bits(scale == 0.0 ? 0.0 : value * scale));
}
