// dk and dv: a workgroup holds kBackwardKeys keys of one key/value head and walks over the rows that see
// them, of every query head of the group in turn, four to a thread; then each thread adds what four columns
// of these rows come to. Columns beyond those of one workgroup take more workgroups, which compute the scores
// again. Every sum goes over (query head, query) in ascending order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"
#include "backward.glsl"
#include "backward_store.glsl"

FOVEA_GRADIENT(dk, FOVEA_SLOT_DK)
FOVEA_GRADIENT(dv, FOVEA_SLOT_DV)

const uint kQuads = kBackwardKeys / 4u;

// By row of a block: gradients of scores and weights after dropout.
shared vec4 d_scores[4u * kFlashMaxThreads][kQuads], weights[4u * kFlashMaxThreads][kQuads];

// Queries that may see a key of [j0, j1): the inverse of visible_keys.
Keys rows_of_keys(Entry e, int j0, int j1) {
    int begin = 0, end = e.q_length;
    // Wider windows reach every row, and their sums would not fit.
    if (push.slice.window_right < kMaxKernelLength)
        begin = max(begin, j0 - e.offset - int(push.slice.window_right));
    if (push.slice.window_left < kMaxKernelLength)
        end = min(end, j1 - e.offset + int(push.slice.window_left));
    return Keys(begin, end);
}

// Scores, weights and gradients of four rows of this thread, n .. n+3 of the block at `block`.
void weigh_rows(Entry e, uint head, int block, int end, int j0, uint k_at0[kBackwardKeys],
                uint v_at0[kBackwardKeys]) {
    const HeadView o_view = view_of(kViewO), do_view = view_of(kViewDo);
    const uint t = gl_LocalInvocationIndex;
    [[dont_unroll]] for (uint n = 0u; n < 4u; ++n) {
        const int i = block + int(t * 4u + n);
        const Row row = slice_row(head, uint(min(i, end - 1)));
        const uint q_at0 = query_row(push.q, e, row), do_at0 = query_row(do_view, e, row);
        const uint o_at0 = query_row(o_view, e, row);
        vec4 score[kQuads], value[kQuads];
        for (uint c = 0u; c < kQuads; ++c) score[c] = vec4(0.0), value[c] = vec4(0.0);
        for (uint d = 0u; d < dim_qk(); ++d) {
            const vec4 query = vec4(q_at(q_at0 + d));
            for (uint c = 0u; c < kQuads; ++c) {
                const uint x = 4u * c;
                const vec4 key = vec4(k_at(k_at0[x] + d), k_at(k_at0[x + 1u] + d), k_at(k_at0[x + 2u] + d),
                                      k_at(k_at0[x + 3u] + d));
                score[c] = fma(query, key, score[c]);
            }
        }
        float product = 0.0;
        bool zero = true;
        for (uint d = 0u; d < dim_v(); ++d) {
            const float upstream = d_o_at(do_at0 + d), result = o_at(o_at0 + d);
            zero = zero && result == 0.0;
            product = fma(result, upstream, product);
            for (uint c = 0u; c < kQuads; ++c) {
                const uint x = 4u * c;
                const vec4 key = vec4(v_at(v_at0[x] + d), v_at(v_at0[x + 1u] + d), v_at(v_at0[x + 2u] + d),
                                      v_at(v_at0[x + 3u] + d));
                value[c] = fma(vec4(upstream), key, value[c]);
            }
        }
        const float delta = delta_of(row, zero, product);
        for (uint c = 0u; c < kQuads; ++c) {
            const Pairs pairs =
                pairs_of(e, row, j0 + int(4u * c), push.scale * score[c], value[c], lse_of(row), delta);
            d_scores[t * 4u + n][c] = pairs.d_score;
            weights[t * 4u + n][c] = pairs.weight;
        }
    }
}

void main() {
    const uint t = gl_LocalInvocationIndex;
    const Entry e = entry_of(0u, 0u, 0u);
    const HeadView do_view = view_of(kViewDo), dk_view = view_of(kViewFirst), dv_view = view_of(kViewSecond);
    const int j0 = int(push.first_key + gl_WorkGroupID.x * kBackwardKeys);
    const int j1 = min(j0 + int(kBackwardKeys), int(push.first_key + push.key_count));
    const int last = min(j1, e.kv_length) - 1;
    uint k_at0[kBackwardKeys], v_at0[kBackwardKeys];
    for (uint c = 0u; c < kBackwardKeys; ++c) {
        // Keys past the end are replaced by the last one and are not stored.
        const int j = max(min(j0 + int(c), last), 0);
        k_at0[c] = k_row(e, j);
        v_at0[c] = v_row(e, j);
    }
    const uint column = (gl_WorkGroupID.z * kThreads + t) * 4u;
    vec4 dk[kBackwardKeys], dv[kBackwardKeys];
    for (uint c = 0u; c < kBackwardKeys; ++c) dk[c] = vec4(0.0), dv[c] = vec4(0.0);
    Keys rows = Keys(0, 0);
    if (last >= j0) rows = rows_of_keys(e, j0, last + 1);
    for (uint head = 0u; head < push.heads; ++head) {
        for (int block = rows.begin; block < rows.end; block += int(kThreads) * 4) {
            weigh_rows(e, head, block, rows.end, j0, k_at0, v_at0);
            barrier();
            const int count = min(rows.end - block, int(kThreads) * 4);
            for (int n = 0; n < count; ++n) {
                const Row row = slice_row(head, uint(block + n));
                if (column < dim_qk()) {
                    const vec4 query = q_columns4(query_row(push.q, e, row), column, dim_qk());
                    const bool finite = is_number(query);
                    for (uint c = 0u; c < kBackwardKeys; ++c) {
                        const float factor = d_scores[n][c >> 2][c & 3u];
                        if (finite || factor != 0.0) dk[c] = fma(vec4(factor), query, dk[c]);
                    }
                }
                if (column < dim_v()) {
                    const vec4 upstream = d_o_columns4(query_row(do_view, e, row), column, dim_v());
                    const bool finite = is_number(upstream);
                    for (uint c = 0u; c < kBackwardKeys; ++c) {
                        const float factor = weights[n][c >> 2][c & 3u];
                        if (finite || factor != 0.0) dv[c] = fma(vec4(factor), upstream, dv[c]);
                    }
                }
            }
            barrier();
        }
    }
    // Keys past the length get zeros, except in a packed batch, where they belong to another entry.
    [[dont_unroll]] for (uint c = 0u; c < kBackwardKeys; ++c) {
        const int j = j0 + int(c);
        if (j >= j1 || (j > last && has_flag(kFlagPackedKv))) continue;
        const uint dk_at = key_row(dk_view, 0u, e, j), dv_at = key_row(dv_view, 0u, e, j);
        for (uint n = 0u; n < 4u; ++n) {
            if ((push.store & kStoreDk) != 0u && column + n < dim_qk())
                dk_put(dk_at + column + n, push.scale * dk[c][n], kFirst);
            if ((push.store & kStoreDv) != 0u && column + n < dim_v())
                dv_put(dv_at + column + n, dv[c][n], kSecond);
        }
    }
}
