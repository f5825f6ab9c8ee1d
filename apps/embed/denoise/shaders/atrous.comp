// One step of the edge-avoiding a-trous wavelet filter (Dammertz et al. 2010), which is the spatial half of
// SVGF (Schied et al. 2017): 5 x 5 taps of a B3 spline, step_width pixels apart; the host doubles the width
// from step to step.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define SURFACES readonly
#define OTHERS readonly
#define PLANES
#include "denoise.glsl"

float squared(vec3 d, float sigma) { return dot(d, d) / (sigma * sigma); }

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index >= pixel_count()) return;
    const float taps[3] = float[](3.0 / 8.0, 1.0 / 4.0, 1.0 / 16.0);
    const Surface here = surfaces[index];
    const vec3 light = light_in(from_plane, index);
    const ivec2 pixel = ivec2(pixel_of(index));
    vec4 sum = vec4(0.0);
    for (int y = -2; y <= 2; ++y)
        for (int x = -2; x <= 2; ++x) {
            const ivec2 at = pixel + int(step_width) * ivec2(x, y);
            if (any(lessThan(at, ivec2(0))) || at.x >= int(width) || at.y >= int(height)) continue;
            const uint other = index_of(uvec2(at));
            const Surface there = surfaces[other];
            const vec3 theirs = light_in(from_plane, other);
            const float distance2 = squared(here.normal.xyz - there.normal.xyz, normal_sigma) +
                                    squared(here.position.xyz - there.position.xyz, position_sigma) +
                                    squared(here.albedo.rgb - there.albedo.rgb, albedo_sigma) +
                                    squared(light - theirs, light_sigma / float(step_width));
            sum += taps[abs(x)] * taps[abs(y)] * exp(-0.5 * distance2) /
                   max(1.0, luminance(theirs) / firefly_limit) * vec4(theirs, 1.0);
        }
    planes[to_plane * pixel_count() + index] = vec4(sum.rgb / sum.w, 1.0);
}
