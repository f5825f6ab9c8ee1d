// A small triangle along the velocity; its color says how crowded the place is, which attention's log-sum-exp knows.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ACCESS readonly
#include "flock.glsl"
layout(location = 0) out vec3 color;

void main() {
    const vec4 bird = birds[gl_InstanceIndex];
    const vec2 ahead = normalize(bird.zw), aside = vec2(-ahead.y, ahead.x);
    const vec2 corner = gl_VertexIndex == 0 ? 0.022 * ahead : (gl_VertexIndex == 1 ? 0.007 : -0.007) * aside - 0.008 * ahead;
    gl_Position = vec4(bird.xy + corner, 0, 1);
    float crowd = 0;  // the logarithm of how many are within reach
    if (attention_weight > 0) {
        const vec4 q = queries[gl_InstanceIndex], k = keys[gl_InstanceIndex];
        crowd = log_sums[gl_InstanceIndex] - dot(q, k);  // less the score of the bird itself
    }
    color = mix(vec3(0.25, 0.45, 0.85), vec3(1.0, 0.75, 0.25), clamp(crowd / 4.5, 0, 1));
}
