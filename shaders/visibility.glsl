// Which keys the rows of a batch entry may see: problem/visibility.hpp in GLSL. Needs `push.slice`.
#ifndef FOVEA_VISIBILITY_GLSL
#define FOVEA_VISIBILITY_GLSL

#include "gathered.glsl"

layout(set = 0, binding = FOVEA_SLOT_SEQUENCES, std430) readonly buffer Sequences { ivec4 sequences[]; };

ivec4 batch_row(uint batch) {
#ifdef FOVEA_GATHERS
    if ((kCall & kGatherSequences) != 0u) {
        const uint n = extra.at.sequences + 4u * batch;
        return ivec4(behind_extra[n], behind_extra[n + 1u], behind_extra[n + 2u], behind_extra[n + 3u]);
    }
#endif
    return sequences[batch];
}

#ifdef FOVEA_WGSL
// Flags that dispatches of this pipeline may have. What only the others need is not in its code, and so no
// buffer is bound for it: browsers give a kernel 8 or 10.
layout(constant_id = FOVEA_SPEC_FLAGS) const uint kFlags = 0xffffffffu;
bool has_flag(uint flag) { return (push.slice.flags & (flag & kFlags)) != 0u; }
#else
bool has_flag(uint flag) { return (push.slice.flags & flag) != 0u; }
#endif

// One batch entry with its lengths clamped, and one of its heads.
struct Entry {
    uint batch, head;  // within the slice
    uint index;        // batch * heads of the slice + head
    int q_start, q_length, kv_start, kv_length;
    int offset;  // query i has key position i + offset
};

Entry entry_of(uint batch, uint head, uint index) {
    Entry e;
    e.batch = batch;
    e.head = head;
    e.index = index;
    e.q_start = 0;
    e.q_length = int(push.slice.len_q);
    e.kv_start = 0;
    e.kv_length = int(push.slice.len_kv);
    if (has_flag(kFlagVarlen)) {
        const ivec4 row = batch_row(push.slice.first_batch + e.batch);
        e.q_length = clamp(row.y, 0, e.q_length);
        e.kv_length = clamp(row.w, 0, e.kv_length);
        if (has_flag(kFlagPackedQ)) {
            e.q_start = clamp(row.x, 0, int(push.slice.packed_rows_q));
            e.q_length = min(e.q_length, int(push.slice.packed_rows_q) - e.q_start);
        }
        if (has_flag(kFlagPackedKv)) {
            e.kv_start = clamp(row.z, 0, int(push.slice.packed_rows_kv));
            e.kv_length = min(e.kv_length, int(push.slice.packed_rows_kv) - e.kv_start);
        }
    }
    e.offset = has_flag(kFlagBottomRight) ? e.kv_length - e.q_length : push.slice.offset;
    return e;
}

struct Keys {
    int begin, end;
};

// One past the last row before `end` that exists and belongs to the slice.
int end_of_rows(Entry e, int end) {
    return min(min(end, e.q_length), int(push.slice.first_row + push.slice.rows));
}

// Keys that some query of rows [i0, i1) may see by causal, window, lengths and matrix columns.
Keys visible_keys(Entry e, int i0, int i1) {
    i1 = end_of_rows(e, i1);
    int begin = 0, end = min(e.kv_length, int(push.slice.key_limit));
    const int first = i0 + e.offset, last = i1 - 1 + e.offset;
    if (int(push.slice.window_right) < end - last) end = last + int(push.slice.window_right) + 1;
    if (first > int(push.slice.window_left)) begin = first - int(push.slice.window_left);
    if (i0 >= i1 || end <= begin) return Keys(0, 0);
    return Keys(begin, end);
}

// Returns the keys within the bounds of every row of [i0, i1); begin may be past end.
Keys full_keys(Entry e, int i0, int i1) {
    int begin = 0, end = min(e.kv_length, int(push.slice.key_limit));
    const int first = i0 + e.offset, last = end_of_rows(e, i1) - 1 + e.offset;
    if (int(push.slice.window_right) < end - first) end = first + int(push.slice.window_right) + 1;
    if (last > int(push.slice.window_left)) begin = last - int(push.slice.window_left);
    return Keys(begin, end);
}

#endif
