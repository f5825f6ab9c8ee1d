// The same as a shader, see docs/contributing/first-kernel.md: a thread for each row of the slice.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
// Offsets count floats from the start of the binding's window.
layout(push_constant, std430) uniform Push { uint rows, columns, x_base, y_base; };
layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = FOVEA_SLOT_W, std430) readonly buffer W { float weights[]; };
layout(set = 0, binding = FOVEA_SLOT_Y, std430) writeonly buffer Y { float y[]; };

void main() {
    const uint row = gl_GlobalInvocationID.x;
    if (row >= rows) return;
    float sum = 0.0;
    for (uint c = 0u; c < columns; ++c) sum = fma(weights[c], x[x_base + row * columns + c], sum);
    y[y_base + row] = sum;
}
