// kBackwardRows rows of one query head that a workgroup holds, and their products with four keys of a thread.
#ifndef FOVEA_BACKWARD_ROWS_GLSL
#define FOVEA_BACKWARD_ROWS_GLSL

shared float row_lse[kBackwardRows], row_delta[kBackwardRows];

struct RowBlock {
    Row rows[kBackwardRows];
    uint q_at0[kBackwardRows], do_at0[kBackwardRows];
    int first, last;  // queries; last is less than first if none exists
};

// Called by all threads of the workgroup; a barrier follows the writes that they share.
RowBlock take_rows(Entry e, uint head, uint r0) {
    const HeadView o_view = view_of(kViewO), do_view = view_of(kViewDo);
    const uint t = gl_LocalInvocationIndex;
    RowBlock block;
    block.last = end_of_rows(e, int(push.slice.first_row + r0 + kBackwardRows)) - 1;
    block.first = int(push.slice.first_row + r0);
    // Rows past the end are replaced by the last one and are not stored.
    for (uint r = 0u; r < kBackwardRows; ++r) {
        const int i = max(min(block.first + int(r), block.last), block.first);
        block.rows[r] = slice_row(head, uint(i) - push.slice.first_row);
        block.q_at0[r] = query_row(push.q, e, block.rows[r]);
        block.do_at0[r] = query_row(do_view, e, block.rows[r]);
    }
    if (block.last >= block.first && t < kBackwardRows) {
        const Row row = block.rows[t];
        const uint o_at0 = query_row(o_view, e, row);
        float product = 0.0;
        bool zero = true;
        for (uint n = 0u; n < dim_v(); ++n) {
            const float value = o_at(o_at0 + n);
            zero = zero && value == 0.0;
            product = fma(value, d_o_at(block.do_at0[t] + n), product);
        }
        row_lse[t] = lse_of(row);
        row_delta[t] = delta_of(row, zero, product);
    }
    barrier();
    return block;
}

// Products of each row with keys j .. j+3: q with k, and the gradient of o with v.
void multiply_rows(Entry e, RowBlock block, Keys keys, int j, out vec4 score[kBackwardRows],
                   out vec4 value[kBackwardRows]) {
    const FourKeys four = four_keys(e, keys, j);
    for (uint r = 0u; r < kBackwardRows; ++r) score[r] = vec4(0.0), value[r] = vec4(0.0);
    for (uint n = 0u; n < dim_qk(); ++n) {
        const vec4 key = k_of(four, n);
        for (uint r = 0u; r < kBackwardRows; ++r)
            score[r] = fma(vec4(q_at(block.q_at0[r] + n)), key, score[r]);
    }
    for (uint n = 0u; n < dim_v(); ++n) {
        const vec4 key = v_of(four, n);
        for (uint r = 0u; r < kBackwardRows; ++r)
            value[r] = fma(vec4(d_o_at(block.do_at0[r] + n)), key, value[r]);
    }
}

#endif
