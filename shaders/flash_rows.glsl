// Rows of a flash slice: queries, and the query heads that share a key/value head, next to each other.
#ifndef FOVEA_FLASH_ROWS_GLSL
#define FOVEA_FLASH_ROWS_GLSL

#include "visibility.glsl"

uint group_size() { return push.group_splits & 0xffffu; }
#ifdef FOVEA_GATHERS
bool has_entries() { return (kCall & kEntriesCall) != 0u && has_flag(kFlagEntries); }
#else
bool has_entries() { return false; }
#endif
uint split_count() { return has_entries() ? 1u : push.group_splits >> 16; }
bool is_split() { return split_count() > 1u; }

// A workgroup's z counts the splits of a head, or with kFlagEntries the heads of the slice's entries.
struct Place {
    Entry e;
    uint split;
};
Place place_of_workgroup() {
    const uint z = gl_WorkGroupID.z, parts = push.group_splits >> 16, whole = z / parts, part = z % parts;
    const bool entries = has_entries();
    const Entry e = entry_of(entries ? whole : 0u, entries ? part : whole, entries ? z : whole);
    return Place(e, entries ? 0u : part);
}

// Row r of a key/value head's block.
struct Row {
    uint query, head;  // within the slice and the entry; `head` counts query heads
    uint place;        // counts those of the entries before it too
    int i;             // query
    bool exists;
};

Row row_at(Entry e, uint r) {
    Row row;
    row.query = r / group_size();
    row.head = e.head * group_size() + r % group_size();
    row.place = has_entries() ? e.index * group_size() + r % group_size() : row.head;
    row.i = int(push.slice.first_row + row.query);
    row.exists = row.query < push.slice.rows;
    return row;
}

// Queries of rows [r0, r1).
int first_query(uint r0) { return int(push.slice.first_row + r0 / group_size()); }
int end_of_queries(uint r1) { return int(push.slice.first_row + (r1 + group_size() - 1u) / group_size()); }

// Start of a row of q or o. Packed batches start at q_start; else a slice has several entries only where the
// heads of one follow those of the entry before it.
uint query_row(HeadView t, Entry e, Row row) {
    const bool packed = has_flag(kFlagPackedQ);
    const uint i = packed ? uint(e.q_start) + uint(row.i) : row.query;
    return t.base + (has_entries() && !packed ? row.place : row.head) * t.head + i * t.row;
}

// The same of k and v: which head their rows belong to.
uint key_head(Entry e) {
    return has_entries() && !has_flag(kFlagPackedKv | kFlagPaged) ? e.index : e.head;
}

uint global_head(Row row) { return push.slice.first_head * group_size() + row.head; }

#endif
