// Fills the tiles of flash_coopmat and flash_coopmat2: queries, keys and values as operands in shared memory,
// four to an element; poison_of handles the values left out. Queries and keys are row-major, values are
// column-major: a product reads its second operand column by column, and the elements of one load are
// adjacent.
#ifndef FOVEA_MATRIX_TILES_GLSL
#define FOVEA_MATRIX_TILES_GLSL

#include "factors.glsl"

FOVEA_INPUT_FACTORS(q, kQType)
FOVEA_CACHE_FACTORS(k, kKType)
FOVEA_CACHE_FACTORS(v, kVType)

// From one row to the next, in elements of the tiles: of queries and keys; of weights, and of a column of
// values.
const uint kDepthQuads = (kDepth + kMatrixPad) / 4u, kKeyQuads = (kKeys + kMatrixPad) / 4u;

uint value_row(Entry e, int j) {
    const uint row = v_row(e, j);
    return kGeneral && row == kNoRow ? push.v.base : row;
}

uint q_start(Entry e, uint r) {
    Row row = row_at(e, min(r, push.slice.rows * group_size() - 1u));
    row.i = min(row.i, e.q_length - 1);
    row.query = uint(row.i) - push.slice.first_row;
    return query_row(push.q, e, row);
}

void load_queries(Entry e, uint first_row) {
    for (uint f = gl_LocalInvocationIndex; f < kRows * kDepth / 4u; f += kThreads) {
        const uint r = f / (kDepth / 4u), d = f % (kDepth / 4u);
        q_tile[r * kDepthQuads + d] = q_factors4(q_start(e, first_row + r), 4u * d, push.dims & 0xffffu);
    }
}

void load_keys(Entry e, Keys keys, int j0) {
    for (uint f = gl_LocalInvocationIndex; f < kKeys * kDepth / 4u; f += kThreads) {
        const uint n = f / (kDepth / 4u), d = f % (kDepth / 4u);
        const uint found = k_row(e, clamp(j0 + int(n), keys.begin, keys.end - 1));
        kv_tile[n * kDepthQuads + d] =
            k_factors4(kGeneral && found == kNoRow ? push.k.base : found, 4u * d, push.dims & 0xffffu);
    }
}

// Returns four elements of a value, without NaN and infinities, see value_factors4.
uvec2 healthy_factors(uvec2 words) {
    const uvec2 sick = ((words & kExponents) + kCarries) & 0x80008000u;
    if ((sick.x | sick.y) != 0u) {
        has_poison = 1u;
        words &= ~((sick >> 15) * 0xffffu);
    }
    return words;
}

// Columns c .. c+3 of the value of key j. A hidden key's weight of 0 does not undo a NaN or an infinity: they
// are left out here, see poison_of.
uvec2 value_factors4(Entry e, Keys keys, int j, uint c) {
    const uint dim_v = push.dims >> 16;
    if (j < keys.begin || j >= keys.end) return uvec2(0u);
    const uint row = value_row(e, j);
    if (kAligned && kVType == kFactorType) return healthy_factors(v_plain_quad_words(row, c, dim_v));
    vec4 x = v_depth4(row, c, dim_v);
    const bvec4 sick = greaterThanEqual(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u));
    if (any(sick)) {
        has_poison = 1u;
        x = mix(x, vec4(0.0), sick);
    }
    return factors_of(x);
}

// Keys 4n .. 4n+3 of the block, columns c0 .. c0+3 of the workgroup: turned round, as the tile has them.
void store_values(uint n, uint c0, uvec2 value[4]) {
    [[unroll]] for (uint c = 0u; c < 4u; ++c) kv_tile[(c0 + c) * kKeyQuads + n] = column_of(value, c);
}

// Four keys and four columns to a thread.
void load_values(Entry e, Keys keys, int j0) {
    const uint column0 = gl_WorkGroupID.y * kColumns;
    for (uint f = gl_LocalInvocationIndex; f < kKeys * kColumns / 16u; f += kThreads) {
        const uint n = f / (kColumns / 4u), c0 = f % (kColumns / 4u) * 4u;
        uvec2 value[4];
        [[unroll]] for (uint u = 0u; u < 4u; ++u) value[u] =
            value_factors4(e, keys, j0 + int(4u * n + u), column0 + c0);
        store_values(n, c0, value);
    }
}

// True if every thread's elements are in one column of fours. Then the next elements are a fixed number of
// rows further, the same for all threads.
bool has_regular_keys() { return kAligned && kKType == kFactorType && kThreads % (kDepth / 4u) == 0u; }
bool has_regular_values() { return kAligned && kVType == kFactorType && kThreads % (kColumns / 4u) == 0u; }

// load_keys and load_values for a block that is completely between the bounds of all rows, without pages.
void load_inner_keys(Entry e, Keys keys, int j0) {
    if (!has_regular_keys()) {
        load_keys(e, keys, j0);
        return;
    }
    const uint t = gl_LocalInvocationIndex, d = t % (kDepth / 4u), n0 = t / (kDepth / 4u),
               dim = push.dims & 0xffffu;
    const uint step = kThreads / (kDepth / 4u), present = 4u * d < dim ? 0xffffffffu : 0u;
    uint at = push.k.base + key_head(e) * push.k.head + (uint(e.kv_start + j0) + n0) * push.k.row +
              min(4u * d, dim - 4u);
    [[unroll]] for (uint n = 0u; n < kKeys; n += step) {
        if (kKeys % step != 0u && n + n0 >= kKeys) break;
        kv_tile[(n + n0) * kDepthQuads + d] = k_plain_words2[at >> 2] & present;
        at += step * push.k.row;
    }
}

void load_inner_values(Entry e, Keys keys, int j0) {
    if (!has_regular_values()) {
        load_values(e, keys, j0);
        return;
    }
    const uint t = gl_LocalInvocationIndex, c0 = t % (kColumns / 4u) * 4u, n0 = t / (kColumns / 4u);
    const uint dim_v = push.dims >> 16, column = gl_WorkGroupID.y * kColumns + c0;
    const uint step = kThreads / (kColumns / 4u), present = column < dim_v ? 0xffffffffu : 0u;
    uint at = push.v.base + key_head(e) * push.v.head + (uint(e.kv_start + j0) + 4u * n0) * push.v.row +
              min(column, dim_v - 4u);
    [[unroll]] for (uint n = 0u; n < kKeys / 4u; n += step) {
        if (kKeys / 4u % step != 0u && n + n0 >= kKeys / 4u) break;
        uvec2 words[4];
        uint sick = 0u;
        [[unroll]] for (uint u = 0u; u < 4u; ++u) {
            words[u] = v_plain_words2[at + u * push.v.row >> 2] & present;
            const uvec2 carried = (words[u] & kExponents) + kCarries;
            sick |= carried.x | carried.y;
        }
        if ((sick & 0x80008000u) != 0u) {
            [[unroll]] for (uint u = 0u; u < 4u; ++u) words[u] = healthy_factors(words[u]);
        }
        store_values(n + n0, c0, words);
        at += 4u * step * push.v.row;
    }
}

// Returns the contribution to a row's sum of the values that load_values left out.
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
