// dq: a workgroup holds kBackwardRows rows of one query head and walks over the keys that they see, four to a
// thread; then each thread adds what four columns of these keys come to. Columns beyond those of one
// workgroup take more workgroups, which compute the scores again. Every sum goes over the keys in ascending
// order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"
#include "backward.glsl"
#include "backward_rows.glsl"
#include "backward_store.glsl"

FOVEA_GRADIENT(dq, FOVEA_SLOT_DQ)

shared vec4 d_scores[kBackwardRows][kFlashMaxThreads];

void main() {
    const uint t = gl_LocalInvocationIndex, head = gl_WorkGroupID.y;
    const Entry e = entry_of(0u, 0u, 0u);
    const HeadView dq_view = view_of(kViewFirst);
    const uint r0 = gl_WorkGroupID.x * kBackwardRows;
    const RowBlock held = take_rows(e, head, r0);
    const uint column = (gl_WorkGroupID.z * kThreads + t) * 4u;
    vec4 sum[kBackwardRows];
    for (uint r = 0u; r < kBackwardRows; ++r) sum[r] = vec4(0.0);
    Keys keys = Keys(0, 0);
    if (held.last >= held.first) keys = visible_keys(e, held.first, held.last + 1);
    for (int block = keys.begin & ~3; block < keys.end; block += int(kThreads) * 4) {
        const int j = block + int(t) * 4;
        vec4 score[kBackwardRows], value[kBackwardRows];
        multiply_rows(e, held, keys, j, score, value);
        [[dont_unroll]] for (uint r = 0u; r < kBackwardRows; ++r) d_scores[r][t] =
            pairs_of(e, held.rows[r], j, push.scale * score[r], value[r], row_lse[r], row_delta[r]).d_score;
        barrier();
        if (column < dim_qk()) {
            const int end = min(keys.end - block, int(kThreads) * 4);
            for (int n = max(keys.begin - block, 0); n < end; ++n) {
                const vec4 key = k_columns4(k_row(e, block + n), column, dim_qk());
                const bool finite = is_number(key);
                for (uint r = 0u; r < kBackwardRows; ++r) {
                    const float factor = d_scores[r][n >> 2][n & 3];
                    if (finite || factor != 0.0) sum[r] = fma(vec4(factor), key, sum[r]);
                }
            }
        }
        barrier();
    }
    // Rows past the length get zeros, except in a packed batch, where they belong to another entry.
    for (uint r = 0u; r < kBackwardRows; ++r) {
        const Row row = slice_row(head, r0 + r);
        if (!row.exists || column >= dim_qk()) continue;
        const bool inside = row.i <= held.last;
        if (!inside && has_flag(kFlagPackedQ)) continue;
        const uint at = query_row(dq_view, e, row);
        const vec4 result = inside ? push.scale * sum[r] : vec4(0.0);
        for (uint c = 0u; c < 4u && column + c < dim_qk(); ++c) dq_put(at + column + c, result[c], kFirst);
    }
}
