// Rotates rows for, and back from, a KV cache of blocks (FOVEA_FLAG_ROTATED_CACHE): each thread multiplies 32
// neighboring elements by the orthonormal Walsh-Hadamard matrix. Sums are in the order of
// problem/rotation.hpp, whose bits these are.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(push_constant, std430) uniform Push { RotatePush push; };

#include "element.glsl"

void main() {
    const uint blocks = push.slice.dim / kRotationBlock;
    const uint index = gl_GlobalInvocationID.x, row = index / blocks;
    if (row >= push.slice.rows) return;
    const uint column = index % blocks * kRotationBlock;
    const uint from = row_of(push.x, gl_WorkGroupID.z, row) + column;
    const uint to = row_of(push.y, gl_WorkGroupID.z, row) + column;
    float numbers[kRotationBlock];
    [[unroll]] for (uint n = 0u; n < kRotationBlock; ++n) numbers[n] = x_value(from + n);
    [[unroll]] for (uint step = 1u; step < kRotationBlock; step *= 2u) {
        [[unroll]] for (uint pair = 0u; pair < kRotationBlock / 2u; ++pair) {
            const uint n = pair / step * 2u * step + pair % step;
            const float a = numbers[n], b = numbers[n + step];
            numbers[n] = a + b;
            numbers[n + step] = a - b;
        }
    }
    [[unroll]] for (uint n = 0u; n < kRotationBlock; ++n)
        y_store_bits(to + n, stored_bits(numbers[n] * 0.17677669529663689));
}
