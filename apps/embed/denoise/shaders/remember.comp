// The temporal half: before a new frame is traced, the last one becomes a second half of keys and values. Its
// surfaces are still there, its light is what attention made of it. No motion vector is looked up: a key
// carries the place where its point is seen *now*, and its place in the scene with what moved taken off.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#define SURFACES readonly
#define OTHERS
#define PLANES readonly
#include "denoise.glsl"
#include "key.glsl"

void main() {
    const uint index = gl_GlobalInvocationID.x;
    if (index >= pixel_count()) return;
    const Surface s = surfaces[index];
    const vec3 point = s.first.xyz + (s.normal.w > 0.0 ? moved_by(time) : vec3(0.0));
    const vec2 pixel = s.first.w > 0.0 ? seen_at(camera(), point) : vec2(pixel_of(index)) + 0.5;
    write_features(pixel_count() + index, s, pixel, history_sigma, log(history_weight));
    values[pixel_count() + index] = planes[kDenoised * pixel_count() + index];
}
