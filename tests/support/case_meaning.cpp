// Decides which query attends to which key, pair by pair from the text of fovea.h: slow, obvious, and sharing
// nothing with the engine's own bounds.
#include "support/case.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace fovea::test {
namespace {

enum Stream : uint64_t { mask_stream = 1, bias_stream, bias_row_stream };

// Coordinates of a matrix element after broadcasting.
struct MatrixPlace {
    uint64_t b, h, i;
};
MatrixPlace place(const FoveaMatrixDesc& m, uint32_t b, uint32_t h, int64_t i) {
    return {m.batch > 1 ? b : 0u, m.heads > 1 ? h : 0u, m.rows == 1 ? 0 : uint64_t(i)};
}

bool within_positions(const Case& c, const Entry& e, int64_t i, int64_t j) {
    const FoveaAttentionDesc& d = c.desc;
    const int64_t p = i + e.offset;
    if ((d.flags & FOVEA_FLAG_CAUSAL) && j > p) return false;
    if (d.flags & FOVEA_FLAG_WINDOW) {
        if (d.window_left >= 0 && j < p - d.window_left) return false;
        if (d.window_right >= 0 && j > p + d.window_right) return false;
    }
    return true;
}

// Draft n continues one of those before it, the first one the cache.
bool sees_draft(const Case& c, const MatrixPlace& at, int64_t draft) {
    int64_t own = int64_t(at.i % c.tail_keys);
    while (own > draft) own = int64_t(hash(c.seed, mask_stream, at.b, at.h, own) % uint64_t(own));
    return own == draft;
}

bool is_listed(const KeyLists& lists, size_t list, int64_t key) {
    const std::vector<int32_t>& blocks = lists.blocks[list];
    const auto found = std::find(blocks.begin(), blocks.end(), int32_t(key / lists.rows));
    return found != blocks.end() &&
           uint64_t(found - blocks.begin()) * lists.rows + uint64_t(key % lists.rows) < lists.keys[list];
}

}  // namespace

Entry entry_of(const Case& c, uint32_t b) {
    const FoveaAttentionDesc& d = c.desc;
    Entry e{0, int64_t(d.len_q), 0, int64_t(d.len_kv), 0};
    if (d.flags & FOVEA_FLAG_VARLEN) {
        const FoveaSequence& t = c.table[b];
        e.q_length = std::clamp<int64_t>(t.q_length, 0, int64_t(d.len_q));
        e.kv_length = std::clamp<int64_t>(t.kv_length, 0, int64_t(d.len_kv));
        if (d.packed_rows_q) {
            e.q_start = std::clamp<int64_t>(t.q_start, 0, int64_t(d.packed_rows_q));
            e.q_length = std::min(e.q_length, int64_t(d.packed_rows_q) - e.q_start);
        }
        if (d.packed_rows_kv) {
            e.kv_start = std::clamp<int64_t>(t.kv_start, 0, int64_t(d.packed_rows_kv));
            e.kv_length = std::min(e.kv_length, int64_t(d.packed_rows_kv) - e.kv_start);
        }
    }
    if (d.align == FOVEA_ALIGN_BOTTOM_RIGHT) e.offset = e.kv_length - e.q_length;
    if (d.align == FOVEA_ALIGN_OFFSET) e.offset = d.q_offset;
    return e;
}

bool mask_at(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j) {
    const MatrixPlace at = place(c.desc.mask, b, h, i);
    const uint64_t bits = hash(c.seed, mask_stream, at.b, at.h, at.i, j);
    const int64_t keys = int64_t(c.desc.len_kv);
    switch (c.mask_pattern) {
        case MaskPattern::most:
            return unit(bits) < 0.3;
        case MaskPattern::leading:
            return j >= std::min<int64_t>(keys / 2 + 1, 64) && unit(bits) < 0.9;
        case MaskPattern::trailing:
            return j < keys / 2 && unit(bits) < 0.9;
        case MaskPattern::rows:
            return unit(hash(c.seed, mask_stream, at.b, at.h, at.i)) < 0.6;
        case MaskPattern::islands:
            return unit(hash(c.seed, mask_stream, at.b, at.h, at.i / 16, j / 16)) < 0.4;
        case MaskPattern::every_third:
            return at.i % 3 != 1;
        case MaskPattern::tree:
            return j < keys - int64_t(c.tail_keys) || sees_draft(c, at, j - keys + int64_t(c.tail_keys));
        case MaskPattern::lists:
            return is_listed(c.lists, (size_t(b) * c.desc.heads_q + h) / (c.desc.heads_q / c.desc.heads_kv),
                             j);
        default:
            return unit(bits) < 0.8;
    }
}

float bias_at(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j) {
    const MatrixPlace at = place(c.desc.bias, b, h, i);
    const uint64_t bits = hash(c.seed, bias_stream, at.b, at.h, at.i, j);
    const double row = unit(hash(c.seed, bias_row_stream, at.b, at.h, at.i));
    const float lowest = -largest_number(c.desc.bias.type);
    if (c.values == Values::low_bias && row < 0.5) return lowest;
    if (c.bias_pattern == BiasPattern::rows_of_infinity && row < 0.2) return -INFINITY;
    if (c.bias_pattern != BiasPattern::finite && unit(mix(bits)) < 0.15) return -INFINITY;
    if (c.bias_pattern == BiasPattern::single_lowest && unit(mix(mix(bits))) < 0.3) return lowest;
    return 2 * bell(bits);
}

// True if mask and bias show key j to query i.
static bool is_shown(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j) {
    const FoveaAttentionDesc& d = c.desc;
    if (d.mask.present && ((d.mask.keys && j >= int64_t(d.mask.keys)) || !mask_at(c, b, h, i, j)))
        return false;
    if (!d.bias.present) return true;
    return (!d.bias.keys || j < int64_t(d.bias.keys)) && bias_at(c, b, h, i, j) != -INFINITY;
}

void settle(Case& c) {
    const FoveaAttentionDesc& d = c.desc;
    const int64_t lq = int64_t(d.len_q), lkv = int64_t(d.len_kv);
    c.visible.assign(size_t(d.batch) * d.heads_q * d.len_q * d.len_kv, 0);
    auto out = c.visible.begin();
    for (uint32_t b = 0; b < d.batch; ++b) {
        const Entry e = entry_of(c, b);
        const FoveaStrides k = k_strides(c);
        for (uint32_t h = 0; h < d.heads_q; ++h)
            for (int64_t i = 0; i < lq; ++i)
                for (int64_t j = 0; j < lkv; ++j, ++out)
                    *out = i < e.q_length && j < e.kv_length && within_positions(c, e, i, j) &&
                           key_element(c, k, b, 0, j) >= 0 && is_shown(c, b, h, i, j);
    }
}

static size_t row_of(const Case& c, uint32_t b, uint32_t h, int64_t i) {
    return ((size_t(b) * c.desc.heads_q + h) * c.desc.len_q + size_t(i)) * c.desc.len_kv;
}
bool is_visible(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j) {
    return c.visible[row_of(c, b, h, i) + size_t(j)] != 0;
}
bool sees_nothing(const Case& c, uint32_t b, uint32_t h, int64_t i) {
    const auto row = c.visible.begin() + int64_t(row_of(c, b, h, i));
    return std::find(row, row + int64_t(c.desc.len_kv), 1) == row + int64_t(c.desc.len_kv);
}

bool is_written(const Case& c, uint32_t b, int64_t i) {
    return !c.desc.packed_rows_q || i < entry_of(c, b).q_length;
}

static FoveaStrides with_broadcasts(const FoveaStrides& s) {
    const auto distance = [](int64_t stride) { return stride == FOVEA_BROADCAST ? 0 : stride; };
    return {distance(s.batch), distance(s.head), distance(s.row)};
}

FoveaStrides filled(const FoveaStrides& s, uint64_t heads, uint64_t rows, uint64_t columns) {
    if (s.batch || s.head || s.row) return with_broadcasts(s);
    return {int64_t(heads * rows * columns), int64_t(rows * columns), int64_t(columns)};
}

static FoveaStrides query_strides(const Case& c, const FoveaStrides& s, uint32_t columns) {
    const FoveaAttentionDesc& d = c.desc;
    if (!d.packed_rows_q) return filled(s, d.heads_q, d.len_q, columns);
    if (s.head || s.row) return with_broadcasts(s);
    return {0, int64_t(columns), int64_t(columns) * d.heads_q};
}
static FoveaStrides key_strides(const Case& c, const FoveaStrides& s, uint32_t columns) {
    const FoveaAttentionDesc& d = c.desc;
    if (!d.packed_rows_kv) return filled(s, d.heads_kv, d.page_size ? d.page_size : d.len_kv, columns);
    if (s.head || s.row) return with_broadcasts(s);
    return {0, int64_t(columns), int64_t(columns) * d.heads_kv};
}
FoveaStrides q_strides(const Case& c) { return query_strides(c, c.desc.q_strides, c.desc.dim_qk); }
FoveaStrides o_strides(const Case& c) { return query_strides(c, c.desc.o_strides, c.desc.dim_v); }
FoveaStrides k_strides(const Case& c) { return key_strides(c, c.desc.k_strides, c.desc.dim_qk); }
FoveaStrides v_strides(const Case& c) { return key_strides(c, c.desc.v_strides, c.desc.dim_v); }

int64_t query_element(const Case& c, const FoveaStrides& s, uint32_t b, uint32_t h, int64_t i) {
    const int64_t first = c.desc.packed_rows_q ? entry_of(c, b).q_start : 0;
    return b * s.batch + h * s.head + (first + i) * s.row;
}

int64_t key_element(const Case& c, const FoveaStrides& s, uint32_t b, uint32_t h_kv, int64_t j) {
    const FoveaAttentionDesc& d = c.desc;
    if (!d.page_size) {
        const int64_t first = d.packed_rows_kv ? entry_of(c, b).kv_start : 0;
        return b * s.batch + h_kv * s.head + (first + j) * s.row;
    }
    const int32_t page = c.block_table[b * d.block_table_pages + uint64_t(j) / d.page_size];
    if (page < 0 || int64_t(page) >= int64_t(d.page_count)) return -1;
    return page * s.batch + h_kv * s.head + int64_t(uint64_t(j) % d.page_size) * s.row;
}

}  // namespace fovea::test
