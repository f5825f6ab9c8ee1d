// A map tile: pixels of the weights of one head, from q, k and lse. A workgroup takes a block of pixels and
// walks over their cells, kRows rows at a time and four keys to a thread. Weights are summed as integers, so
// the order does not matter.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kQType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kKType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = kMapRows;
layout(constant_id = FOVEA_SPEC_PIXELS) const uint kPixels = kMapPixels;
layout(push_constant, std430) uniform Push { MapPush push; };

#define FOVEA_WITHOUT_VALUES
#define FOVEA_GATHERS
#include "flash.glsl"
#include "cache_tensor.glsl"
#include "map_pixels.glsl"

FOVEA_INPUT_TENSOR(q, FOVEA_SLOT_Q, kQType, kAligned)
FOVEA_CACHE_TENSOR(k, FOVEA_SLOT_K, kKType, kAligned)
FOVEA_WORDS(lse_bits, FOVEA_SLOT_LSE, kGatherLse, extra.at.lse)
layout(set = 0, binding = FOVEA_SLOT_TILE_MASS, std430) writeonly buffer Mass { uvec2 tile_mass[]; };
layout(set = 0, binding = FOVEA_SLOT_TILE_MAX, std430) writeonly buffer Largest { uint tile_max[]; };

const uint kThreads = gl_WorkGroupSize.x;
const uint kNan = 0x7fc00000u;
const uint kMassLimit = 0x80000000u;  // limit of the upper word

shared vec4 scores[kRows][kThreads];
// For each pixel: the sum of units, the largest weight as bits (which order like the values, NaN on top), and
// whether the sum has reached its limit.
shared uint low[kPixels], high[kPixels], largest[kPixels], full[kPixels / 32u];

// ==== sums ====

// One thread's share of one pixel of the block.
struct Sum {
    uint pixel, low, high, largest;
};

void clear_pixels() {
    for (uint n = gl_LocalInvocationIndex; n < kPixels; n += kThreads) {
        low[n] = 0u;
        high[n] = 0u;
        largest[n] = 0u;
        if (n < kPixels / 32u) full[n] = 0u;
    }
}

void add_to_pixel(Sum sum) {
    if ((sum.low | sum.high | sum.largest) == 0u) return;
    const uint n = sum.pixel;
    const uint before = atomicAdd(low[n], sum.low);
    const uint more = sum.high + (before + sum.low < before ? 1u : 0u);
    const uint above = atomicAdd(high[n], more) + more;
    // Every addend is below or at the limit, so that no sum passes it unseen.
    if (above >= kMassLimit || sum.high >= kMassLimit) atomicOr(full[n >> 5], 1u << (n & 31u));
    atomicMax(largest[n], sum.largest);
}

// Adds a weight before dropout's factor to the thread's sum.
void add_weight(float weight, float keep, inout Sum sum) {
    // Only this product rounds; a fused subtraction below would not have rounded it.
    precise const float halves = weight * (keep * 1048576.0);
    const uint whole = uint(halves);
    precise const float rest = (halves - float(whole)) * 1048576.0;
    uint carry;
    sum.low = fovea_add_carry(sum.low, whole << 20 | uint(rest), carry);
    sum.high = min(sum.high + (whole >> 12) + carry, kMassLimit);
    precise const float scaled = weight * keep;
    sum.largest = max(sum.largest, floatBitsToUint(scaled));
}

// ==== cells ====

// Scores of this thread's keys j .. j+3, clamped into `keys`, against rows `query` of the slice.
void score_quad(Entry e, Keys keys, uint q_row[kRows], int j) {
    uint k_at0[4];
    for (int c = 0; c < 4; ++c) {
        const uint row = k_row(e, clamp(j + c, keys.begin, keys.end - 1));
        k_at0[c] = row == kNoRow ? push.k.base : row;
    }
    vec4 score[kRows];
    for (uint i = 0u; i < kRows; ++i) score[i] = vec4(0.0);
    const uint dim = low_half(push.dims), quads_end = kAligned ? dim : 0u;
    for (uint d = 0u; d < quads_end; d += 4u) {
        vec4 key[4];
        for (int c = 0; c < 4; ++c) key[c] = k_at4(k_at0[c] + d);
        for (uint i = 0u; i < kRows; ++i) {
            const vec4 query = q_at4(q_row[i] + d);
            for (int c = 0; c < 4; ++c)
                score[i][c] =
                    fma(query.w, key[c].w,
                        fma(query.z, key[c].z, fma(query.y, key[c].y, fma(query.x, key[c].x, score[i][c]))));
        }
    }
    for (uint d = quads_end; !kAligned && d < dim; ++d) {
        vec4 key;
        for (int c = 0; c < 4; ++c) key[c] = k_at(k_at0[c] + d);
        for (uint i = 0u; i < kRows; ++i) score[i] = fma(vec4(q_at(q_row[i] + d)), key, score[i]);
    }
    for (uint i = 0u; i < kRows; ++i) scores[i][gl_LocalInvocationIndex] = push.scale * score[i];
}

Row row_of(int i) {
    Row row;
    row.i = i;
    row.query = uint(i) - push.slice.first_row;
    row.head = row.place = 0u;
    row.exists = true;
    return row;
}

// The weights of one row's four keys join the thread's sum; `pixel` of each, kPixels for those that are
// not of this block.
void add_quad(Entry e, Row row, int j, vec4 score, uvec4 pixel, inout Sum sum) {
    const vec4 logit = masked_logits(e, row, j, score);
    const vec4 below = logit - uintBitsToFloat(lse_bits(push.lse_base + row.query));
    bvec4 kept = bvec4(true);
    float keep = 1.0;
    if (kGeneral && has_dropout()) {
        kept = kept_keys(row, j);
        keep = extra.keep_scale;
    }
    [[dont_unroll]] for (int c = 0; c < 4; ++c) {
        if (pixel[c] >= kPixels || !kept[c] || floatBitsToUint(logit[c]) == kMinusInfinity) continue;
        if (pixel[c] != sum.pixel) {
            add_to_pixel(sum);
            sum = Sum(pixel[c], 0u, 0u, 0u);
        }
        if (FOVEA_IS_NAN(below[c]) || below[c] > 0.693147181)
            sum.largest = kNan;
        else
            add_weight(exp_of_negative(below[c]), keep, sum);
    }
}

// Which pixel column, from x0 on, each of keys j .. j+3 belongs to. `held` keeps the column of the last key
// and where that column ends, because divisions are slow.
uvec4 columns_of(Axis axis, PixelBlock block, Keys keys, int j, inout uvec2 held) {
    uvec4 column = uvec4(kPixels);
    for (int c = 0; c < 4; ++c) {
        if (j + c < keys.begin || j + c >= keys.end) continue;
        if (uint(j + c) >= held.y) {
            held.x = pixel_of(axis, uint(j + c));
            held.y = pixel_begin(axis, held.x + 1u);
        }
        column[c] = held.x - block.x0;
    }
    return column;
}

// kRows rows of cells against all keys of the block. row_i: their numbers; row_y: their pixel rows.
void add_rows(Entry e, Axis axis, PixelBlock block, uint count, int row_i[kRows], uint row_y[kRows]) {
    const uint t = gl_LocalInvocationIndex;
    const Keys seen = visible_keys(e, row_i[0], row_i[count - 1u] + 1);
    const Keys keys = Keys(max(seen.begin, int(pixel_begin(axis, block.x0))),
                           min(seen.end, int(pixel_begin(axis, block.x1))));
    if (keys.begin >= keys.end) return;
    uint q_row[kRows];
    for (uint i = 0u; i < kRows; ++i) q_row[i] = query_row(push.q, e, row_of(row_i[min(i, count - 1u)]));
    const bool sampled = has_flag(kFlagSampled);
    const int first = keys.begin & ~3;
    const uint steps = sampled ? block.x1 - block.x0 : uint(keys.end - first + 3) / 4u;
    Sum sum = Sum(0u, 0u, 0u, 0u);
    uvec2 held = uvec2(0u);
    for (uint step = t; step < steps; step += kThreads) {
        int j = first + int(step) * 4;
        uvec4 column;
        if (sampled) {
            const int middle = int(pixel_middle(axis, block.x0 + step));
            if (middle < keys.begin || middle >= keys.end) continue;
            j = middle & ~3;
            column = mix(uvec4(kPixels), uvec4(step), equal(ivec4(j, j + 1, j + 2, j + 3), ivec4(middle)));
        } else {
            column = columns_of(axis, block, keys, j, held);
        }
        score_quad(e, keys, q_row, j);
        [[dont_unroll]] for (uint i = 0u; i < count; ++i) {
            const uvec4 pixel = column + ((row_y[i] - block.y0) << block.columns_log2);
            add_quad(e, row_of(row_i[i]), j, scores[i][t], pixel, sum);
        }
    }
    add_to_pixel(sum);
}

void main() {
    const Entry e = entry_of(0u, 0u, 0u);
    const PixelBlock block = block_of_workgroup();
    const Axis rows = axis_of(push.first_row, push.row_count, high_half(push.pixels));
    const Axis keys = axis_of(push.first_key, push.key_count, low_half(push.pixels));
    clear_pixels();
    barrier();
    const bool sampled = has_flag(kFlagSampled);
    const uint last = sampled ? block.y1 : min(pixel_begin(rows, block.y1), uint(e.q_length));
    for (uint n = sampled ? block.y0 : pixel_begin(rows, block.y0); n < last; n += kRows) {
        int row_i[kRows];
        uint row_y[kRows], count = 0u;
        for (uint i = 0u; i < kRows && n + i < last; ++i) {
            const uint row = sampled ? pixel_middle(rows, n + i) : n + i;
            if (row >= uint(e.q_length)) break;
            row_i[i] = int(row);
            row_y[i] = sampled ? n + i : pixel_of(rows, n + i);
            count = i + 1u;
        }
        if (count != 0u) add_rows(e, keys, block, count, row_i, row_y);
    }
    barrier();
    const uint width = low_half(push.pixels), count = (block.y1 - block.y0) << block.columns_log2;
    const uint places = high_half(push.dims) & 63u;
    for (uint n = gl_LocalInvocationIndex; n < count; n += kThreads) {
        const uint x = block.x0 + (n & ((1u << block.columns_log2) - 1u)),
                   y = block.y0 + (n >> block.columns_log2);
        if (x >= block.x1) continue;
        const bool is_full = (full[n >> 5] >> (n & 31u) & 1u) != 0u;
        const uint at = (y - high_half(push.origin)) * width + x;
        const bool invalid = largest[n] >= kNan;
        if (has_flag(kFlagTileMass))
            tile_mass[(places & 31u) + at] = invalid || is_full ? uvec2(0xffffffffu) : uvec2(low[n], high[n]);
        if (has_flag(kFlagTileMax)) tile_max[places + at] = largest[n];
    }
}
