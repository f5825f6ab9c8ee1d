// Light times albedo, kept for the eye: while slices of the next picture are under way, the last whole one is
// shown.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define SURFACES readonly
#define OTHERS readonly
#define PLANES
#include "denoise.glsl"

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index >= pixel_count()) return;
    const vec3 radiance = surfaces[index].albedo.rgb * light_in(from_plane, index);
    planes[to_plane * pixel_count() + index] = vec4(radiance, 1.0);
}
