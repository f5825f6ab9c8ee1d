// Rows of a flash slice: queries, and the query heads that share a key/value head, next to each other.
#ifndef FOVEA_FLASH_ROWS_GLSL
#define FOVEA_FLASH_ROWS_GLSL

#include "visibility.glsl"

uint group_size() { return push.group_splits & 0xffffu; }
uint split_count() { return push.group_splits >> 16; }
bool is_split() { return split_count() > 1u; }

// Row r of a key/value head's block.
struct Row {
    uint query, head;  // within the slice; `head` counts query heads
    int i;             // query
    bool exists;
};

Row row_at(Entry e, uint r) {
    Row row;
    row.query = r / group_size();
    row.head = e.head * group_size() + r % group_size();
    row.i = int(push.slice.first_row + row.query);
    row.exists = row.query < push.slice.rows;
    return row;
}

// Queries of rows [r0, r1).
int first_query(uint r0) { return int(push.slice.first_row + r0 / group_size()); }
int end_of_queries(uint r1) { return int(push.slice.first_row + (r1 + group_size() - 1u) / group_size()); }

// Start of a row of q or o. Packed batches start at q_start.
uint query_row(HeadView t, Entry e, Row row) {
    const uint i = has_flag(kFlagPackedQ) ? uint(e.q_start) + uint(row.i) : row.query;
    return t.base + row.head * t.head + i * t.row;
}

uint global_head(Row row) { return push.slice.first_head * group_size() + row.head; }

#endif
