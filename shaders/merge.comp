// Merges partial results by their log-sum-exp (fovea.h, FoveaMergeDesc): each thread computes one element,
// through the same tree as reference/operation_loops.hpp, kept as a binary counter. Each thread keeps its
// levels in shared memory: an array with an index unknown to the compiler would go to memory on a GPU.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifndef FOVEA_WGSL
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(push_constant, std430) uniform Push { MergePush push; };

#include "element.glsl"

layout(set = 0, binding = FOVEA_SLOT_PART_LSE, std430) readonly buffer PartLse { float part_lse[]; };
layout(set = 0, binding = FOVEA_SLOT_MERGED_LSE, std430) writeonly buffer MergedLse { float merged_lse[]; };

shared vec2 held[kMergeLevels * kElementThreads];  // o and lse of 2^n neighbouring parts

// NaN or +inf. By their bits: a driver may assume that no number is one of them.
bool is_invalid(float lse) {
    const uint bits = floatBitsToUint(lse);
    return (bits & kNotFinite) == kNotFinite && bits != kMinusInfinity;
}
float invalid_of(float lse) { return uintBitsToFloat(floatBitsToUint(lse) | kNanBits); }

// a is of the parts before b's.
vec2 merged(vec2 a, vec2 b) {
    if (is_invalid(a.y) || is_invalid(b.y)) return vec2(invalid_of(is_invalid(a.y) ? a.y : b.y));
    if (floatBitsToUint(b.y) == kMinusInfinity) return a;
    if (floatBitsToUint(a.y) == kMinusInfinity) return b;
    const float most = a.y > b.y ? a.y : b.y;
    const float of_a = exp(a.y - most), of_b = exp(b.y - most), sum = of_a + of_b;
    return vec2(of_a / sum * a.x + of_b / sum * b.x, most + log(sum));
}

uint place(uint level) { return level * kElementThreads + gl_LocalInvocationID.x; }

void main() {
    const uint index = gl_GlobalInvocationID.x, row = index / push.slice.dim, d = index % push.slice.dim;
    if (row >= push.slice.rows) return;
    const uint z = gl_WorkGroupID.z, x = row_of(push.x, z, row) + d, lse = row_of(push.lse, z, row);
    for (uint part = 0u; part < push.parts; ++part) {
        vec2 carried = vec2(0.0, part_lse[lse + part * push.lse_part]);
        if (floatBitsToUint(carried.y) != kMinusInfinity) carried.x = x_value(x + part * push.x_part);
        uint level = 0u;
        for (; (part >> level & 1u) != 0u; ++level) carried = merged(held[place(level)], carried);
        held[place(level)] = carried;
    }
    uint level = uint(findLSB(push.parts));
    vec2 result = held[place(level)];
    for (++level; level < kMergeLevels; ++level)
        if ((push.parts >> level & 1u) != 0u) result = merged(held[place(level)], result);
    if (is_invalid(result.y)) result = vec2(invalid_of(result.y));
    y_store_bits(row_of(push.y, z, row) + d, stored_bits(result.x));
    if (d == 0u) merged_lse[push.merged_lse_base + lse - push.lse.base] = result.y;
}
