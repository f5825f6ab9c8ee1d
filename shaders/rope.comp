// Rotary embedding: each thread rotates one pair of a row, or copies one element after the rotated ones. Y
// may be X: a thread reads its elements before it writes them, and no other thread reads them.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(push_constant, std430) uniform Push { RopePush push; };

#include "element.glsl"

layout(set = 0, binding = FOVEA_SLOT_COS, std430) readonly buffer Cos { float cosines[]; };
layout(set = 0, binding = FOVEA_SLOT_SIN, std430) readonly buffer Sin { float sines[]; };
layout(set = 0, binding = FOVEA_SLOT_POSITIONS, std430) readonly buffer Positions { int positions[]; };

void main() {
    const uint pairs = push.rotary_dim / 2u, units = pairs + push.slice.dim - push.rotary_dim;
    const uint index = gl_GlobalInvocationID.x, row = index / units, unit = index % units;
    if (row >= push.slice.rows) return;
    const uint x = row_of(push.x, gl_WorkGroupID.z, row), y = row_of(push.y, gl_WorkGroupID.z, row);
    if (unit >= pairs) {
        const uint d = push.rotary_dim + unit - pairs;
        copy_element(x + d, y + d);
        return;
    }
    const uint token = push.token_base + gl_WorkGroupID.z / push.slice.heads * push.len + row;
    uint angle = token * pairs;
    if (push.table_rows != 0u) angle = uint(clamp(positions[token], 0, int(push.table_rows - 1u))) * pairs;
    angle += push.angle_base + unit;
    const bool interleaved = push.interleaved != 0u;
    const uint first = interleaved ? 2u * unit : unit, second = interleaved ? first + 1u : unit + pairs;
    const float x1 = x_value(x + first), x2 = x_value(x + second), c = cosines[angle], s = sines[angle];
    y_store_bits(y + first, stored_bits(c * x1 - s * x2));
    y_store_bits(y + second, stored_bits(s * x1 + c * x2));
}
