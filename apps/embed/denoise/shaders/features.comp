// Makes this frame's queries, keys and values. A cross-bilateral filter (Eisemann and Durand 2004; Petschnigg
// et al. 2004) weighs a neighbour by a Gaussian of the distance of two features, and that is a softmax of a
// dot product:
//     exp(-|f - g|^2 / 2) = exp(f.g - |g|^2 / 2) exp(-|f|^2 / 2)
// where the last factor is the same for all neighbours and goes out with the sum. So q = (f, 1), k = (g,
// -|g|^2 / 2). Places on the screen are angles of a circle of 48 pixels, more than a query and a key are ever
// apart, as in the sinusoidal positions of Vaswani et al. 2017: their dot product is a cos(difference), for
// small ones the same Gaussian (a von Mises weight), and it stays small far from the origin, where squares of
// pixels would eat up float32's digits.
//     [4] screen  [3] normal  [3] place in the scene  [3] albedo  [1] 1; of k -|g|^2 / 2 + its own weight
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
    const vec2 pixel = vec2(pixel_of(index)) + 0.5;
    const vec3 light = light_in(kNoisy, index);
    write_features(index, surfaces[index], pixel, screen_sigma, own_weight(light));
    values[index] = vec4(light, 1.0);
}
