// Computes the gradient of an additive bias from one batch entry's query heads of one key/value head. A
// thread holds four keys of a row of the bias and walks over the heads and rows of queries that use this row,
// in ascending order. If other entries or key/value heads share the bias, one dispatch for each adds its
// part, in sequence.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"
#include "backward.glsl"
#include "backward_store.glsl"

FOVEA_GRADIENT(dbias, FOVEA_SLOT_DBIAS)

// Returns the contribution of query `row` to the gradient of the bias at keys j .. j+3.
vec4 gradient_of_row(Entry e, Row row, int j) {
    const Keys keys = visible_keys(e, row.i, row.i + 1);
    if (j + 3 < keys.begin || j >= keys.end) return vec4(0.0);
    const uint q_at0 = query_row(push.q, e, row), do_at0 = query_row(view_of(kViewDo), e, row);
    const uint o_at0 = query_row(view_of(kViewO), e, row);
    const FourKeys four = four_keys(e, keys, j);
    vec4 score = vec4(0.0), value = vec4(0.0);
    for (uint n = 0u; n < dim_qk(); ++n)
        score = fma(vec4(q_at(q_at0 + n)), k_of(four, n), score);
    float product = 0.0;
    bool zero = true;
    for (uint n = 0u; n < dim_v(); ++n) {
        const float upstream = d_o_at(do_at0 + n), result = o_at(o_at0 + n);
        zero = zero && result == 0.0;
        product = fma(result, upstream, product);
        value = fma(vec4(upstream), v_of(four, n), value);
    }
    return pairs_of(e, row, j, push.scale * score, value, lse_of(row), delta_of(row, zero, product)).d_masked;
}

void main() {
    const uint key = (gl_WorkGroupID.x * kThreads + gl_LocalInvocationIndex) * 4u;
    if (key >= push.key_count) return;
    const int j = int(push.first_key + key);
    const Entry e = entry_of(0u, 0u, 0u);
    const bool each_row = (push.store & kStoreEachRow) != 0u, each_head = (push.store & kStoreEachHead) != 0u;
    const uint own_row = gl_WorkGroupID.y, own_head = gl_WorkGroupID.z;
    const uint first_row = each_row ? own_row : 0u, end_row = each_row ? own_row + 1u : push.slice.rows;
    const uint first_head = each_head ? own_head : 0u, end_head = each_head ? own_head + 1u : push.heads;
    vec4 sum = vec4(0.0);
    for (uint head = first_head; head < end_head; ++head)
        for (uint query = first_row; query < end_row; ++query) {
            const Row row = slice_row(head, query);
            if (row.i < e.q_length) sum += gradient_of_row(e, row, j);
        }
    const HeadView view = view_of(kViewFirst);
    const uint at = view.base + own_head * view.head + own_row * view.row + uint(j);
    for (uint c = 0u; c < 4u && key + c < push.key_count; ++c) dbias_put(at + c, sum[c], kFirst);
}
