// Puts FlashExtra, which does not fit flash's push constants, into the workspace.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(push_constant, std430) uniform Push { uint words[kExtraWords]; };
layout(set = 0, binding = FOVEA_SLOT_EXTRA, std430) writeonly buffer Extra { uint extra_words[]; };

void main() {
    if (gl_LocalInvocationIndex < kExtraWords)
        extra_words[gl_LocalInvocationIndex] = words[gl_LocalInvocationIndex];
}
