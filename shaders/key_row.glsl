// Locates row j of k or v: by strides, in a packed batch, or through the block table.
#ifndef FOVEA_KEY_ROW_GLSL
#define FOVEA_KEY_ROW_GLSL

layout(set = 0, binding = FOVEA_SLOT_BLOCK_TABLE, std430) readonly buffer BlockTable { int block_table[]; };

const uint kNoRow = 0xffffffffu;

// First element of row j of the entry's key/value head, kNoRow if its page is not in the pool.
uint key_row(TensorView t, Entry e, uint j) {
    const uint head = (push.slice.first_head + e.head) / push.group - push.slice.first_head / push.group;
    const uint base = t.base + head * t.head;
    if (!has_flag(kFlagPaged)) return base + e.batch * t.batch + (uint(e.kv_start) + j) * t.row;
    const uint entry = (push.slice.first_batch + e.batch) * push.pages.table_pages;
    const int page = block_table[entry + j / push.pages.page_size];
    if (page < 0 || page >= int(push.pages.page_count)) return kNoRow;
    return base + uint(page) * t.batch + j % push.pages.page_size * t.row;
}

#endif
