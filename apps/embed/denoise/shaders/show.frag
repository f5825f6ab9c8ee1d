// A plane of radiance through a tone curve.
#version 450
#extension GL_GOOGLE_include_directive : require
#define SURFACES readonly
#define OTHERS readonly
#define PLANES readonly
#include "denoise.glsl"
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 color;

void main() {
    const uvec2 pixel = min(uvec2(at * vec2(width, height)), uvec2(width, height) - 1u);
    color = vec4(pow(1.0 - exp(-light_in(from_plane, index_of(pixel))), vec3(1.0 / 2.2)), 1.0);
}
