// Which part of the problem a workgroup computes and which keys its rows may see: problem/visibility.hpp in
// GLSL. Needs `push.slice` and, before this file, nothing else.
#ifndef FOVEA_SLICE_GLSL
#define FOVEA_SLICE_GLSL

layout(set = 0, binding = FOVEA_SLOT_BATCH_TABLE, std430) readonly buffer BatchTable { ivec4 batch_table[]; };

bool has_flag(uint flag) { return (push.slice.flags & flag) != 0u; }

// One (batch entry, head) of the slice with its lengths clamped.
struct Entry {
    uint batch, head;  // within the slice
    uint index;        // batch * heads + head
    int q_start, q_length, kv_start, kv_length;
    int offset;  // query i stands at key position i + offset
};

Entry entry_of(uint index) {
    Entry e;
    e.index = index;
    e.batch = index / push.slice.heads;
    e.head = index % push.slice.heads;
    e.q_start = 0;
    e.q_length = int(push.slice.len_q);
    e.kv_start = 0;
    e.kv_length = int(push.slice.len_kv);
    if (has_flag(kFlagBatchTable)) {
        const ivec4 row = batch_table[push.slice.first_batch + e.batch];
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

// Keys between the bounds of every row of [i0, i1); begin may lie past end.
Keys full_keys(Entry e, int i0, int i1) {
    int begin = 0, end = min(e.kv_length, int(push.slice.key_limit));
    const int first = i0 + e.offset, last = end_of_rows(e, i1) - 1 + e.offset;
    if (int(push.slice.window_right) < end - first) end = first + int(push.slice.window_right) + 1;
    if (last > int(push.slice.window_left)) begin = last - int(push.slice.window_left);
    return Keys(begin, end);
}

// Keys whose scores are computed for rows [i0, i1): more than the visible ones if scores are a result.
Keys scored_keys(Entry e, int i0, int i1) {
    if (!has_flag(kFlagAllKeys)) return visible_keys(e, i0, i1);
    return i0 < e.q_length ? Keys(0, e.kv_length) : Keys(0, 0);
}

// Key of column 0 of the workspace's score rows.
int first_scored_key(Entry e) {
    const int first = int(push.slice.first_row);
    const Keys keys = scored_keys(e, first, first + int(push.slice.rows));
    return keys.begin - keys.begin % int(kKeyBlock);
}

// Start of row `row` (within the slice) of an entry in the workspace.
uint score_row(Entry e, uint row) { return (e.index * push.slice.rows + row) * push.slice.score_stride; }

// Rows of a tile past the last one that exists are read from there and not stored. There is at least one.
uint last_loaded_row(Entry e) {
    return min(push.slice.rows - 1u, uint(e.q_length - 1) - push.slice.first_row);
}

// Query or result row i (within the slice) of a tensor. Packed batches start at q_start.
uint query_row(TensorView t, Entry e, uint row) {
    const uint i = has_flag(kFlagPackedQ) ? uint(e.q_start) + push.slice.first_row + row : row;
    return t.base + e.batch * t.batch + e.head * t.head + i * t.row;
}

// Row (b, h, i) of the slice in results that are packed by rows, counted from the slice's first row.
uint result_row(Entry e, uint row, uint heads_q) {
    return (e.batch * heads_q + e.head) * push.slice.len_q + row;
}

#endif
