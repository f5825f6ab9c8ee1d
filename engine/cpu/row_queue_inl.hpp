// The order in which rows of K and V are used, and their fetching ahead of it.
#if defined(FOVEA_CPU_ROW_QUEUE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_ROW_QUEUE_INL_HPP
#undef FOVEA_CPU_ROW_QUEUE_INL_HPP
#else
#define FOVEA_CPU_ROW_QUEUE_INL_HPP
#endif

#include "cpu/convert_row_inl.hpp"
#include "cpu/decode_layout.hpp"
#include "cpu/stored_row_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rows of V that stay in L1 between the passes over them.
constexpr size_t kValueRun = 32;
// How long before its use a row is fetched.
constexpr size_t kRowsAhead = 32;

// WebAssembly has no prefetch instruction, so variants that differ only in that are not compiled there.
constexpr bool kFetchesAhead = !HWY_ARCH_WASM;
// Where a row goes that is fetched a little before its use.
enum class RowFetch : uint8_t { none, first_cache, second_cache };

template <size_t N>
HWY_INLINE void fetch_lines(const char* const (&rows)[N], size_t at, RowFetch to) {
    if constexpr (!kFetchesAhead) return;
    if (to == RowFetch::first_cache) {
        FOVEA_UNROLL for (size_t n = 0; n < N; ++n) hwy::Prefetch(rows[n] + at);
    } else if (to == RowFetch::second_cache) {
#if defined(__GNUC__)
        FOVEA_UNROLL for (size_t n = 0; n < N; ++n) __builtin_prefetch(rows[n] + at, 0, 2);
#elif HWY_ARCH_X86
        FOVEA_UNROLL for (size_t n = 0; n < N; ++n) _mm_prefetch(rows[n] + at, _MM_HINT_T1);
#endif
    }
}
// All lines of a row.
HWY_INLINE void fetch_row(const void* row, size_t bytes, RowFetch to) {
    const char* const rows[] = {static_cast<const char*>(row)};
    for (size_t at = 0; at < bytes; at += 64) fetch_lines(rows, at, to);
}

// The rows of a block in the order of their use, then those of the next block. K and V alternate, which no
// CPU predicts, and its hardware prefetcher stops at the page: so every row is prefetched kRowsAhead rows
// before its use, across the ends of blocks.
struct RowQueue {
    struct Block {
        const void* const* rows = nullptr;
        size_t count = 0, row_bytes = 0;
    };
    Block now, next;
    RowFetch fetch = RowFetch::none;

    // Returns the rows used kRowsAhead rows after rows [first, first + count). At the end of a block they are
    // those of the next block if its rows are as long, else the same rows, whose prefetch costs nothing.
    // `mixed` has room for `count` and is used if the rows are in two blocks.
    HWY_INLINE const void* const* ahead(size_t first, size_t rows, const void** mixed) const {
        const size_t at = first + kRowsAhead;
        if (at + rows <= now.count) return now.rows + at;
        const bool fits = next.row_bytes >= now.row_bytes;
        if (at >= now.count && fits && at - now.count + rows <= next.count)
            return next.rows + (at - now.count);
        for (size_t j = 0; j < rows; ++j) {
            const bool in_next = at + j >= now.count;
            mixed[j] = !in_next                                  ? now.rows[at + j]
                       : fits && at + j - now.count < next.count ? next.rows[at + j - now.count]
                                                                 : now.rows[first + j];
        }
        return mixed;
    }
    // The first rows of `now`, which no block before it fetches.
    void fetch_first() const {
        for (size_t j = 0; j < HWY_MIN(kRowsAhead, now.count); ++j)
            fetch_row(now.rows[j], now.row_bytes, fetch);
    }
};

// Calls body(rows as float32, number of the first) for `columns` elements of a block's rows, some of them at
// a time; `room` holds kWidenedRows rows.
template <class Body>
HWY_INLINE void for_widened_rows(const RowQueue& rows, FoveaDtype type, size_t columns, float* room,
                                 const Body& body) {
    const void *widened[kWidenedRows], *mixed[kWidenedRows];
    for (size_t first = 0; first < rows.now.count; first += kWidenedRows) {
        const size_t count = HWY_MIN(kWidenedRows, rows.now.count - first);
        const void* const* ahead = rows.ahead(first, count, mixed);
        for (size_t n = 0; n < count; ++n) {
            fetch_row(ahead[n], rows.now.row_bytes, rows.fetch);
            const void* const row = rows.now.rows[first + n];
            float* const to = room + n * columns;
            widened[n] = to;
            if (is_compressed(type))
                widen_row(type, static_cast<const unsigned char*>(row), columns, to);
            else
                widen_row(static_cast<const uint16_t*>(row), columns, to);
        }
        body(RowQueue{{widened, count, columns * sizeof(float)}, {}, RowFetch::none}, first);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
