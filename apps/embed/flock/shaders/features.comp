// q . k = (p_i . p_j - |p_j|^2 / 2) / reach^2 = (|p_i|^2 - |p_i - p_j|^2) / (2 reach^2). What is the same for
// all keys drops out of softmax, so that each bird attends to the others by exp(-distance^2 / (2 reach^2)).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "flock.glsl"
layout(local_size_x = 64) in;

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= bird_count) return;
    const vec2 p = birds[i].xy;
    keys[i] = vec4(p, -0.5 * dot(p, p), 0);
    queries[i] = vec4(p, 1, 0) / (near_reach * near_reach);
    queries[bird_count + i] = vec4(p, 1, 0) / (far_reach * far_reach);
    values[i] = birds[i];
}
