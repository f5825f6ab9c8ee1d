// The partial result of a key split of a flash kernel for flash_combine: a row's largest logit, total, the
// sums of the columns and, with kStats, its statistics.
#ifndef FOVEA_PARTIAL_GLSL
#define FOVEA_PARTIAL_GLSL

#include "row_stats.glsl"

layout(set = 0, binding = FOVEA_SLOT_PARTIAL, std430) writeonly buffer Partial { float partial[]; };

// Row r of the head's block, see kPartialWords.
uint partial_at(Entry e, uint split, uint r) {
    const uint heads = gl_NumWorkGroups.z / split_count();
    return partial_row(split, heads, e.head, r) * partial_stride(push.dims >> 16);
}

// All but the columns.
void store_partial(uint at, RowSum sum, RowStats stats) {
    partial[at] = sum.largest;
    partial[at + 1u] = sum.total;
    if (!kStats) return;
    const uint end = at + kPartialWords + (push.dims >> 16);
    partial[end] = stats.moment;
    partial[end + 1u] = partial_key(stats.argmax);
    partial[end + 2u] = partial_key(stats.count);
}

#endif
