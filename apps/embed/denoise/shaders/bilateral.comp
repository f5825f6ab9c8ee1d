// The same cross-bilateral filter as an ordinary shader: each pixel walks over its 23 x 23 neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define SURFACES readonly
#define OTHERS readonly
#define PLANES
#include "denoise.glsl"
const int kRadius = 11;

float squared(vec3 d, float sigma) { return dot(d, d) / (sigma * sigma); }

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index >= pixel_count()) return;
    const Surface here = surfaces[index];
    const ivec2 pixel = ivec2(pixel_of(index));
    vec4 sum = vec4(0.0);
    for (int y = max(pixel.y - kRadius, 0); y <= min(pixel.y + kRadius, int(height) - 1); ++y)
        for (int x = max(pixel.x - kRadius, 0); x <= min(pixel.x + kRadius, int(width) - 1); ++x) {
            const uint other = index_of(uvec2(x, y));
            const Surface there = surfaces[other];
            const vec2 apart = vec2(x, y) - vec2(pixel);
            const vec3 light = light_in(from_plane, other);
            const float distance2 = dot(apart, apart) / (screen_sigma * screen_sigma) +
                                    squared(here.normal.xyz - there.normal.xyz, normal_sigma) +
                                    squared(here.position.xyz - there.position.xyz, position_sigma) +
                                    squared(here.albedo.rgb - there.albedo.rgb, albedo_sigma);
            const float weight = exp(-0.5 * distance2) / max(1.0, luminance(light) / firefly_limit);
            sum += weight * vec4(light, 1.0);
        }
    planes[to_plane * pixel_count() + index] = vec4(sum.rgb / sum.w, 1.0);
}
