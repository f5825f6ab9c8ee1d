// Places of the staged kernels: heads of a slice, rows of the workspace and of the results.
#ifndef FOVEA_SLICE_GLSL
#define FOVEA_SLICE_GLSL

#include "visibility.glsl"

// Head `index` of the slice, counted over its batch entries.
Entry slice_entry(uint index) { return entry_of(index / push.slice.heads, index % push.slice.heads, index); }

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

// Row (b, h, i) of the slice in results that are packed by rows, counted from the slice's first row. A slice
// of several entries has all heads of each.
uint result_row(Entry e, uint row) { return e.index * push.slice.len_q + row; }

#endif
