// Norms of rows, one to a workgroup: each thread every kThreads-th number, then sums of halves. With kAdds
// the row is first added to a residual sum, of which the norm is then; a thread reads what it wrote itself.
// Y may be X.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_RULE) const uint kRule = kNormLayer;
layout(constant_id = FOVEA_SPEC_OTHER) const bool kAdds = false;
layout(constant_id = FOVEA_SPEC_WEIGHT) const uint kWeight = kNoWeight;
layout(push_constant, std430) uniform Push { NormPush push; };

layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer X { float x_numbers[]; };
layout(set = 0, binding = FOVEA_SLOT_Y, std430) writeonly buffer Y { float y_numbers[]; };
layout(set = 0, binding = FOVEA_SLOT_W, std430) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = FOVEA_SLOT_OTHER, std430) buffer Other { float sums[]; };

const uint kThreads = gl_WorkGroupSize.x;
shared float by_thread[kNormThreads];

// Called by all threads. Two calls need a barrier between them.
float total(float mine) {
    const uint t = gl_LocalInvocationIndex;
    by_thread[t] = mine;
    for (uint n = kThreads / 2u; n > 0u; n /= 2u) {
        barrier();
        if (t < n) by_thread[t] += by_thread[t + n];
    }
    barrier();
    return by_thread[0];
}

float number(uint n) { return kAdds ? sums[push.other_base + n] : x_numbers[push.x_base + n]; }

void main() {
    const uint first = gl_WorkGroupID.x * push.width + gl_LocalInvocationIndex,
               end = (gl_WorkGroupID.x + 1u) * push.width;
    if (kAdds)
        for (uint n = first; n < end; n += kThreads) sums[push.other_base + n] += x_numbers[push.x_base + n];
    float mean = 0.0, squares = 0.0;
    if (kRule == kNormLayer) {
        for (uint n = first; n < end; n += kThreads) mean += number(n);
        mean = total(mean) / float(push.width);
        barrier();
    }
    for (uint n = first; n < end; n += kThreads) {
        const float distance = number(n) - mean;
        squares = fma(distance, distance, squares);
    }
    const float factor = 1.0 / sqrt(total(squares) / float(push.width) + push.epsilon);
    uint column = gl_LocalInvocationIndex;
    for (uint n = first; n < end; n += kThreads) {
        float value = (number(n) - mean) * factor;
        if (kWeight != kNoWeight) value *= weight[column];
        if (kWeight == kWeightAndBias) value += weight[push.width + column];
        y_numbers[push.y_base + n] = value;
        column += kThreads;
    }
}
