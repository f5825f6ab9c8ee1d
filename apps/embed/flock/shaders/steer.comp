// Each bird heads as its neighbours do, towards those far away and away from those too near.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "flock.glsl"
layout(local_size_x = 64) in;

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= bird_count) return;
    vec2 place = birds[i].xy, velocity = birds[i].zw;
    vec2 push = vec2(0);
    if (attention_weight > 0) {
        const vec4 near = means[i], far = means[bird_count + i];
        push = 2.5 * (near.zw - velocity) + 1.2 * (far.xy - place) + 2.0 * (place - near.xy);
    }
    const float r = length(place);
    push -= place / max(r, 1e-6) * 12 * max(r - 0.75, 0);  // a round cage
    velocity += seconds * push;
    velocity *= 0.45 / max(length(velocity), 1e-6);
    birds[i] = vec4(place + seconds * velocity, velocity);
}
