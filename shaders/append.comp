// Copies new rows behind the rows that a key/value cache holds; each thread one element. Rows past the
// capacity and of pages outside the pool are not written.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(push_constant, std430) uniform Push { AppendPush push; };

#include "element.glsl"

layout(set = 0, binding = FOVEA_SLOT_HELD, std430) readonly buffer Held { ivec4 batch_table[]; };
layout(set = 0, binding = FOVEA_SLOT_PAGES, std430) readonly buffer Pages { int block_table[]; };

void main() {
    const uint index = gl_GlobalInvocationID.x, row = index / push.slice.dim, d = index % push.slice.dim;
    if (row >= push.slice.rows) return;
    const uint z = gl_WorkGroupID.z, entry = z / push.slice.heads, head = z % push.slice.heads;
    const uint batch = push.slice.first_batch + entry;
    uint held = push.held;
    if (push.has_batch_table != 0u) held = uint(clamp(batch_table[batch].w, 0, int(push.capacity)));
    const uint to_row = held + push.slice.first_row + row;
    if (to_row >= push.capacity) return;
    uint to = push.y.base + head * push.y.head;
    if (push.pages.page_size == 0u) {
        to += entry * push.y.batch + to_row * push.y.row;
    } else {
        const int page = block_table[batch * push.pages.table_pages + to_row / push.pages.page_size];
        if (page < 0 || page >= int(push.pages.page_count)) return;
        to += uint(page) * push.y.batch + to_row % push.pages.page_size * push.y.row;
    }
    copy_element(row_of(push.x, z, row) + d, to + d);
}
