// Copies the window of an input into the workspace, for a kernel that cannot bind it as well: see
// gathered.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(push_constant, std430) uniform Push { GatherPush push; };
layout(set = 0, binding = FOVEA_SLOT_UNGATHERED, std430) readonly buffer From { uint from_words[]; };
layout(set = 0, binding = FOVEA_SLOT_EXTRA, std430) writeonly buffer To { uint to_words[]; };

void main() {
    const uint step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint n = gl_GlobalInvocationID.x; n < push.words; n += step) to_words[n] = from_words[n];
}
