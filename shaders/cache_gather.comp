// Compacts a key/value cache by a list of its rows (fovea.h, FoveaGatherDesc); each thread one element. What
// names no row becomes zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(push_constant, std430) uniform Push { CacheGatherPush push; };

#include "element.glsl"

layout(set = 0, binding = FOVEA_SLOT_LISTED, std430) readonly buffer Listed { int positions[]; };
layout(set = 0, binding = FOVEA_SLOT_PAGES, std430) readonly buffer Pages { int block_table[]; };

void main() {
    const uint index = gl_GlobalInvocationID.x, row = index / push.slice.dim, d = index % push.slice.dim;
    if (row >= push.slice.rows) return;
    const uint z = gl_WorkGroupID.z, entry = z / push.slice.heads, head = z % push.slice.heads;
    const int listed = positions[row_of(push.positions, z, row)];
    bool is_row = listed >= 0 && listed < int(push.capacity);
    uint from = push.x.base + head * push.x.head + d;
    if (push.pages.page_size == 0u) {
        from += entry * push.x.batch + uint(listed) * push.x.row;
    } else if (is_row) {
        const uint first_page = (push.slice.first_batch + entry) * push.pages.table_pages;
        const int page = block_table[first_page + uint(listed) / push.pages.page_size];
        is_row = page >= 0 && page < int(push.pages.page_count);
        from += uint(page) * push.x.batch + uint(listed) % push.pages.page_size * push.x.row;
    }
    y_store_bits(row_of(push.y, z, row) + d, is_row ? copied_bits(from) : 0u);
}
