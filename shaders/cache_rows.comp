// Moves rows from one type to another (fovea.h): new ones after the rows that a KV cache holds
// (FoveaAppendDesc), or with kListed those that a list names out of a cache (FoveaGatherDesc). A thread makes
// one element; of 8-bit floats those that share a word; a block if X has another type. Blocks are copied as
// halves of words, of which they consist. Rows past the capacity and of pages outside the pool are not
// written; rows that a list names outside the cache become zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(constant_id = FOVEA_SPEC_LISTED) const bool kListed = false;
layout(push_constant, std430) uniform Push { CacheRowsPush push; };

#include "cache_tensor.glsl"
#include "compress.glsl"
#include "store.glsl"

FOVEA_CACHE_TENSOR(x, FOVEA_SLOT_X, kXType, false)
FOVEA_OUTPUT_TENSOR(y, FOVEA_SLOT_Y)
layout(set = 0, binding = FOVEA_SLOT_HELD, std430) readonly buffer Held { ivec4 sequences[]; };
layout(set = 0, binding = FOVEA_SLOT_LISTED, std430) readonly buffer Listed { int positions[]; };
layout(set = 0, binding = FOVEA_SLOT_PAGES, std430) readonly buffer Pages { int block_table[]; };

const bool kCopies = kXType == kStoredType;
const bool kQ80 = kStoredType == FOVEA_Q8_0, kBlocks = kQ80 || kStoredType == FOVEA_Q4_0;
const bool kE5m2 = kStoredType == FOVEA_F8_E5M2, kBytes = kE5m2 || kStoredType == FOVEA_F8_E4M3;
const uint kBlockHalves = kQ80 ? 17u : 9u;

uint row_of(TensorView t, uint entry, uint head, uint row) {
    return t.base + entry * t.batch + head * t.head + row * t.row;
}

// The part of a row that a thread makes, and whether it is zeros because a list named no row of the cache. An
// append is compiled without that case.
struct Place {
    uint from, to, n;  // first elements of the row in X and Y
    bool zero;
};
bool is_zero(Place p) { return kListed && p.zero; }

// ==== the part of a row that a thread makes ====
// Each way to read X occurs only once, because it is most of the code.

uint half_of(uint e) { return x_plain_words[e >> 1] >> ((e & 1u) << 4) & 0xffffu; }

// Number e of X as Y has it. A copy of equal types moves the bits, NaN payloads included.
uint number_bits(uint e) {
    if (kCopies && kBytes) return x_plain_words[e >> 2] >> ((e & 3u) << 3) & 0xffu;
    if (kCopies) return kStored == FOVEA_F32 ? x_plain_words[e] : half_of(e);
    const float value = x_at(e);
    return kBytes ? float8_bits(value, kE5m2) : stored_bits(value);
}

// Number `n` of a row, or the 8-bit floats of its word `n`: another row's may begin or end that.
void store_numbers(Place p) {
    const uint word = (p.to >> 2) + p.n;
    const uint first = kBytes ? max(4u * word, p.to) : p.to + p.n;
    const uint end = kBytes ? min(4u * word + 4u, p.to + push.slice.dim) : first + 1u;
    uint mask = 0u, bits = 0u;
    for (uint at = first; at < end; ++at) {
        const uint shift = kBytes ? (at & 3u) << 3 : 0u;
        mask |= 0xffu << shift;
        if (!is_zero(p)) bits |= number_bits(p.from + at - p.to) << shift;
    }
    if (!kBytes)
        y_store_bits(first, bits);
    else if (mask != 0u)
        y_replace(word, mask, bits);
}

// Half `n` of a row of blocks.
void store_half(Place p) {
    uint bits = 0u;
    if (!is_zero(p)) bits = half_of(p.from / 32u * kBlockHalves + p.n);
    y_store_half(p.to / 32u * kBlockHalves + p.n, bits);
}

// Stores block `n` of a row: its values are read once for the scale, and again in storage order.
void store_block(Place p) {
    const uint first = (p.to / 32u + p.n) * kBlockHalves, per_half = kQ80 ? 2u : 4u;
    uint most = 0u, bits = 0u;
    BlockScale scale = BlockScale(0u, 0.0);
    [[dont_unroll]] for (uint step = 0u; step < 64u; ++step) {
        const bool is_stored = step >= 32u;
        const uint number = is_stored && !kQ80 ? (step >> 1 & 15u) + (step & 1u) * 16u : step & 31u;
        float value = 0.0;
        if (!is_zero(p)) value = x_at(p.from + 32u * p.n + number);
        if (!is_stored) {
            most = larger_magnitude(most, floatBitsToUint(value));
            if (step < 31u) continue;
            if (!is_zero(p)) scale = scale_of_block(most, kQ80);
            y_store_half(first, scale.stored);
        } else {
            const uint place = step % per_half;
            if (!is_zero(p) && scale.stored != kNanScale)
                bits |= kQ80 ? q8_0_number(value, scale.inverse) << 8u * place
                             : q4_0_number(value, scale.inverse) << 4u * place;
            if (place + 1u < per_half) continue;
            y_store_half(first + 1u + (step & 31u) / per_half, bits);
            bits = 0u;
        }
    }
}

void main() {
    const uint index = gl_GlobalInvocationID.x, row = index / push.parts;
    if (row >= push.slice.rows) return;
    const uint entry = gl_WorkGroupID.z / push.slice.heads, head = gl_WorkGroupID.z % push.slice.heads;
    const uint batch = push.slice.first_batch + entry;
    // The row of the cache. A negative one of a list is beyond every capacity.
    uint cached = push.held + push.slice.first_row + row;
    if (kListed)
        cached = uint(positions[row_of(push.positions, entry, head, row)]);
    else if (push.has_sequences != 0u)
        cached = uint(clamp(sequences[batch].w, 0, int(push.capacity))) + push.slice.first_row + row;
    bool is_row = cached < push.capacity;
    uint page = entry;
    if (is_row && push.pages.page_size != 0u) {
        page = uint(block_table[batch * push.pages.table_pages + cached / push.pages.page_size]);
        is_row = page < push.pages.page_count;
        cached %= push.pages.page_size;
    }
    if (!kListed && !is_row) return;
    Place p = Place(0u, 0u, index % push.parts, !is_row);
    p.from = kListed ? row_of(push.x, page, head, cached) : row_of(push.x, entry, head, row);
    p.to = kListed ? row_of(push.y, entry, head, row) : row_of(push.y, page, head, cached);
    if (kBlocks && kCopies)
        store_half(p);
    else if (kBlocks)
        store_block(p);
    else
        store_numbers(p);
}
