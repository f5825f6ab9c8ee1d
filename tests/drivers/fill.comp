#version 450
// Writes its buffer: the other half of a race with a copy.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) writeonly buffer Filled { uint filled[]; };

void main() { filled[gl_GlobalInvocationID.x] = 7u; }
