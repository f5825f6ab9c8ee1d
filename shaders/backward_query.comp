// dq: a workgroup holds kBackwardRows rows of one query head and walks over the keys that they see, four to a
// thread; then each thread adds what four columns of these keys come to. Columns beyond those of one
// workgroup take more workgroups, which compute the scores again. Every sum goes over the keys in ascending
// order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"
#include "backward.glsl"
#include "backward_store.glsl"

FOVEA_GRADIENT(dq, FOVEA_SLOT_DQ)

shared vec4 d_scores[kBackwardRows][kFlashMaxThreads];
shared float row_lse[kBackwardRows], row_delta[kBackwardRows];

void main() {
    const uint t = gl_LocalInvocationIndex, head = gl_WorkGroupID.y;
    const Entry e = entry_of(0u, 0u, 0u);
    const HeadView o_view = view_of(kViewO), do_view = view_of(kViewDo), dq_view = view_of(kViewFirst);
    const uint r0 = gl_WorkGroupID.x * kBackwardRows;
    Row rows[kBackwardRows];
    uint q_at0[kBackwardRows], do_at0[kBackwardRows];
    // Rows past the end stand in for by the last one and are not stored.
    const int last = end_of_rows(e, int(push.slice.first_row + r0 + kBackwardRows)) - 1;
    const int first = int(push.slice.first_row + r0);
    for (uint r = 0u; r < kBackwardRows; ++r) {
        const int i = max(min(first + int(r), last), first);
        rows[r] = slice_row(head, uint(i) - push.slice.first_row);
        q_at0[r] = query_row(push.q, e, rows[r]);
        do_at0[r] = query_row(do_view, e, rows[r]);
    }
    const bool any = last >= first;
    if (any && t < kBackwardRows) {
        const Row row = rows[t];
        const uint o_at0 = query_row(o_view, e, row);
        float product = 0.0;
        bool zero = true;
        for (uint n = 0u; n < dim_v(); ++n) {
            const float value = o_at(o_at0 + n);
            zero = zero && value == 0.0;
            product = fma(value, d_o_at(do_at0[t] + n), product);
        }
        row_lse[t] = lse_of(row);
        row_delta[t] = delta_of(row, zero, product);
    }
    barrier();
    const uint column = (gl_WorkGroupID.z * kThreads + t) * 4u;
    vec4 sum[kBackwardRows];
    for (uint r = 0u; r < kBackwardRows; ++r) sum[r] = vec4(0.0);
    Keys keys = Keys(0, 0);
    if (any) keys = visible_keys(e, first, last + 1);
    for (int block = keys.begin & ~3; block < keys.end; block += int(kThreads) * 4) {
        const int j = block + int(t) * 4;
        uint k_at0[4], v_at0[4];
        for (int c = 0; c < 4; ++c) {
            const int key = clamp(j + c, keys.begin, keys.end - 1);
            k_at0[c] = k_row(e, key);
            v_at0[c] = v_row(e, key);
        }
        vec4 score[kBackwardRows], value[kBackwardRows];
        for (uint r = 0u; r < kBackwardRows; ++r) score[r] = vec4(0.0), value[r] = vec4(0.0);
        for (uint n = 0u; n < dim_qk(); ++n) {
            const vec4 key =
                vec4(k_at(k_at0[0] + n), k_at(k_at0[1] + n), k_at(k_at0[2] + n), k_at(k_at0[3] + n));
            for (uint r = 0u; r < kBackwardRows; ++r) score[r] = fma(vec4(q_at(q_at0[r] + n)), key, score[r]);
        }
        for (uint n = 0u; n < dim_v(); ++n) {
            const vec4 key =
                vec4(v_at(v_at0[0] + n), v_at(v_at0[1] + n), v_at(v_at0[2] + n), v_at(v_at0[3] + n));
            for (uint r = 0u; r < kBackwardRows; ++r)
                value[r] = fma(vec4(d_o_at(do_at0[r] + n)), key, value[r]);
        }
        [[dont_unroll]] for (uint r = 0u; r < kBackwardRows; ++r) d_scores[r][t] =
            pairs_of(e, rows[r], j, push.scale * score[r], value[r], row_lse[r], row_delta[r]).d_score;
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
    // Rows past the length get zeros; where entries lie end to end they belong to another one.
    for (uint r = 0u; r < kBackwardRows; ++r) {
        const Row row = slice_row(head, r0 + r);
        if (!row.exists || column >= dim_qk()) continue;
        const bool inside = row.i <= last;
        if (!inside && has_flag(kFlagPackedQ)) continue;
        const uint at = query_row(dq_view, e, row);
        const vec4 result = inside ? push.scale * sum[r] : vec4(0.0);
        for (uint c = 0u; c < 4u && column + c < dim_qk(); ++c) dq_put(at + column + c, result[c], kFirst);
    }
}
