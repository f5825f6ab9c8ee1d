// Filling the tiles of flash_coopmat and flash_coopmat2: queries, keys and values as float16 factors in
// shared memory; what that leaves out.
#ifndef FOVEA_MATRIX_TILES_GLSL
#define FOVEA_MATRIX_TILES_GLSL

#include "factors.glsl"

uint value_row(Entry e, int j) {
    const uint row = v_row(e, j);
    return row == kNoRow ? push.v.base : row;
}

uint q_start(Entry e, uint r) {
    Row row = row_at(e, min(r, push.slice.rows * group_size() - 1u));
    row.i = min(row.i, e.q_length - 1);
    row.query = uint(row.i) - push.slice.first_row;
    return query_row(push.q, e, row);
}

void load_queries(Entry e, uint first_row) {
    for (uint f = gl_LocalInvocationIndex; f < kRows * kDepth / 4u; f += kThreads) {
        const uint r = f / (kDepth / 4u), d = f % (kDepth / 4u) * 4u;
        const f16vec4 x = factors_of(q_depth4(q_start(e, first_row + r), d, push.dims & 0xffffu));
        for (uint c = 0u; c < 4u; ++c) q_tile[r * kDepthStride + d + c] = x[c];
    }
}

void load_keys(Entry e, Keys keys, int j0) {
    for (uint f = gl_LocalInvocationIndex; f < kKeys * kDepth / 4u; f += kThreads) {
        const uint n = f / (kDepth / 4u), d = f % (kDepth / 4u) * 4u;
        const uint found = k_row(e, clamp(j0 + int(n), keys.begin, keys.end - 1));
        const f16vec4 x = factors_of(k_depth4(found == kNoRow ? push.k.base : found, d, push.dims & 0xffffu));
        for (uint c = 0u; c < 4u; ++c) kv_tile[n * kDepthStride + d + c] = x[c];
    }
}

// A hidden key's weight of 0 does not undo a NaN or an infinity: they are left out here, see poison_of.
void load_values(Entry e, Keys keys, int j0) {
    const uint dim_v = push.dims >> 16, column0 = gl_WorkGroupID.y * kColumns;
    for (uint f = gl_LocalInvocationIndex; f < kKeys * kColumns / 4u; f += kThreads) {
        const uint n = f / (kColumns / 4u), c0 = f % (kColumns / 4u) * 4u;
        const int j = j0 + int(n);
        vec4 x = vec4(0.0);
        if (j >= keys.begin && j < keys.end) x = v_depth4(value_row(e, j), column0 + c0, dim_v);
        for (uint c = 0u; c < 4u; ++c) {
            if (isnan(x[c]) || isinf(x[c])) has_poison = 1u, x[c] = 0.0;
        }
        const f16vec4 y = factors_of(x);
        for (uint c = 0u; c < 4u; ++c) kv_tile[n * kColumnStride + c0 + c] = y[c];
    }
}

// What the values that load_values left out add to a row's sum.
float poison_of(Entry e, Row row, uint r, uint column, Keys keys, float maximum) {
    const uint dim = push.dims & 0xffffu, query = q_start(e, r);
    float sum = 0.0;
    for (int j = keys.begin; j < keys.end; ++j) {
        const float value = v_at(value_row(e, j) + column);
        if (!isnan(value) && !isinf(value)) continue;
        const uint found = k_row(e, j), key = found == kNoRow ? push.k.base : found;
        float score = 0.0;
        for (uint d = 0u; d < dim; ++d) score = fma(q_at(query + d), k_at(key + d), score);
        const float logit = masked_logits(e, row, j, vec4(push.scale * score)).x;
        if (floatBitsToUint(logit) == kMinusInfinity) continue;
        if (kGeneral && has_dropout() && !kept_keys(row, j & ~3)[j & 3]) continue;
        sum += exp_of_negative(min(logit - maximum, 0.0)) * value;
    }
    return sum;
}

#endif
