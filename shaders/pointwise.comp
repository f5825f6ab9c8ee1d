// Sums of two tensors, activations and gated products: one number to a thread. Y may be X.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_RULE) const uint kRule = kPointwiseAdd;
layout(constant_id = FOVEA_SPEC_OTHER) const bool kGated = false;
layout(push_constant, std430) uniform Push { PointwisePush push; };

#include "math.glsl"

layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer X { float x_numbers[]; };
layout(set = 0, binding = FOVEA_SLOT_Y, std430) writeonly buffer Y { float y_numbers[]; };
layout(set = 0, binding = FOVEA_SLOT_OTHER, std430) readonly buffer Other { float others[]; };

// 1 / (1 + exp(-x)).
float logistic(float x) {
    const float e = exp_of_negative(-abs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

// The normal distribution up to x: erfc(z) = t p(t) exp(-z^2) with t = 1 / (1 + z / 2), p by Chebyshev
// interpolation over 0 <= z <= 9.4, where the product is no longer a normal number.
float normal_below(float x) {
    const float t = 1.0 / fma(abs(x) * 0.707106781, 0.5, 1.0), d = t - 0.5875;
    const float high = fma(d, fma(d, fma(d, -0.0592518598, 0.00708374428), 0.112321094), -0.0474404283);
    const float low = fma(d, fma(d, fma(d, high, -0.205099985), 0.0790641233), 0.588699579);
    const float p = fma(d, fma(d, low, 0.787835062), 0.575284362);
    const float above = 0.5 * (t * p) * exp_of_negative(-0.5 * (x * x));
    return x < 0.0 ? above : 1.0 - above;
}

float activated(float x) {
    if (kRule == kPointwiseGelu) return x * normal_below(x);
    // 0.5 (1 + tanh(u)) = logistic(2 u)
    if (kRule == kPointwiseGeluTanh) return x * logistic(1.59576912 * fma(x * x * 0.044715, x, x));
    if (kRule == kPointwiseSilu) return x * logistic(x);
    return x > 0.0 ? x : 0.0;
}

void main() {
    const uint n = gl_GlobalInvocationID.x;
    if (n >= push.count) return;
    const float x = x_numbers[push.x_base + n];
    float value = 0.0;
    if (kRule == kPointwiseAdd)
        value = x + others[push.other_base + n];
    else if (kGated)
        value = activated(x) * others[push.other_base + n];
    else
        value = activated(x);
    y_numbers[push.y_base + n] = value;
}
