// Measures a device's peak rates: multiply-adds in registers, or a copy of a buffer.
#version 450

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kCopies = 0;
layout(push_constant, std430) uniform Push { uint rounds; };
layout(set = 0, binding = 0, std430) readonly buffer From { vec4 from[]; };
layout(set = 0, binding = 1, std430) writeonly buffer To { vec4 to[]; };

const uint kChains = 8;  // independent of each other, four multiply-adds each
const uint kRepeats = 4;  // repeats of a round, so that the loop itself costs little

void main() {
    const uint at = gl_GlobalInvocationID.x;
    if (kCopies != 0u) {
        to[at] = from[at];
        return;
    }
    vec4 sum[kChains];
    // Each thread's own values: a driver may compute equal ones once.
    for (uint n = 0u; n < kChains; ++n) sum[n] = vec4(float(n), 1.0, 2.0, 3.0) + float(at);
    const vec4 factor = from[0], term = from[1];
    for (uint round = 0u; round < rounds; ++round)
        for (uint n = 0u; n < kChains * kRepeats; ++n) sum[n % kChains] = fma(sum[n % kChains], factor, term);
    vec4 all = vec4(0.0);
    for (uint n = 0u; n < kChains; ++n) all += sum[n];
    to[at] = all;
}
