// The application's own pass: writes q, k and v into one buffer, with values that the CPU can reproduce
// exactly.
#version 450

layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Inputs {
    float values[];
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    values[i] = float((i * 2654435761u) >> 8) / 8388608.0 - 1.0;
}
