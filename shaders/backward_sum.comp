// Adds up what backward_row found for the rows of a head: each thread every kThreads-th row, then one thread
// what all of them hold, in ascending order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(push_constant, std430) uniform Push { RowSumPush push; };
layout(set = 0, binding = FOVEA_SLOT_PARTIAL, std430) readonly buffer RowSums { float row_sums[]; };
layout(set = 0, binding = FOVEA_SLOT_DALIBI, std430) buffer DAlibi { float d_alibi[]; };
layout(set = 0, binding = FOVEA_SLOT_DSINKS, std430) buffer DSinks { float d_sinks[]; };

const uint kThreads = gl_WorkGroupSize.x;
shared float by_thread[2][kFlashMaxThreads];

void main() {
    const uint t = gl_LocalInvocationIndex;
    float slope = 0.0, sink = 0.0;
    for (uint n = t; n < push.rows; n += kThreads) {
        slope += row_sums[n];
        sink += row_sums[push.rows + n];
    }
    by_thread[0][t] = slope, by_thread[1][t] = sink;
    barrier();
    if (t > 0u) return;
    for (uint n = 1u; n < kThreads; ++n) slope += by_thread[0][n], sink += by_thread[1][n];
    if ((push.store & kStoreSlope) != 0u)
        d_alibi[push.head] = slope + ((push.store & kStoreAdds) != 0u ? d_alibi[push.head] : 0.0);
    if ((push.store & kStoreSink) != 0u)
        d_sinks[push.head] = sink + ((push.store & kStoreAdds << 1) != 0u ? d_sinks[push.head] : 0.0);
}
