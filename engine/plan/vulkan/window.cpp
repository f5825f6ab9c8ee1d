#include "plan/vulkan/window.hpp"

#include "problem/checked.hpp"

#include <algorithm>
#include <numeric>

namespace fovea {
namespace {

uint64_t first_element(const FoveaStrides& s, uint64_t b, uint64_t h, uint64_t i) {
    return b * uint64_t(s.batch) + h * uint64_t(s.head) + i * uint64_t(s.row);
}

// Bytes of which the offset of a window is a multiple.
uint64_t start_step(StorageBlock block, uint64_t alignment) {
    return std::lcm(alignment, uint64_t{block.bytes});
}

}  // namespace

uint64_t BlockGrid::count() const {
    if (batch == 0 || heads == 0 || len == 0) return 0;
    return ceil_div(batch, block_batches) * ceil_div(heads, block_heads) * ceil_div(len, block_rows);
}

RowBlock BlockGrid::block(uint64_t index) const {
    const uint64_t row_blocks = ceil_div(len, block_rows), head_blocks = ceil_div(heads, block_heads);
    RowBlock out{};
    out.first_row = index % row_blocks * block_rows;
    out.rows = std::min(block_rows, len - out.first_row);
    index /= row_blocks;
    out.first_head = uint32_t(index % head_blocks) * block_heads;
    out.heads = std::min(block_heads, heads - out.first_head);
    index /= head_blocks;
    out.first_batch = uint32_t(index) * block_batches;
    out.batches = std::min(block_batches, batch - out.first_batch);
    return out;
}

Window element_window(uint64_t first, uint64_t end, StorageBlock block, uint64_t alignment) {
    const uint64_t start = first / block.numbers * block.bytes;
    Window w{};
    w.offset = start - start % start_step(block, alignment);
    w.size = end / block.numbers * block.bytes - w.offset;
    w.base = uint32_t((start - w.offset) / block.bytes * block.numbers);
    return w;
}

void round_for_words(Window& window) { window.size = align_up(window.size, 4); }

Window block_window(const FoveaStrides& strides, const RowBlock& block, uint64_t dim, StorageBlock storage,
                    uint64_t alignment) {
    const uint64_t first = first_element(strides, block.first_batch, block.first_head, block.first_row);
    const uint64_t last = first_element(strides, block.first_batch + block.batches - 1,
                                        block.first_head + block.heads - 1, block.first_row + block.rows - 1);
    return element_window(first, last + dim, storage, alignment);
}

bool windows_are_apart(const FoveaStrides& strides, const BlockGrid& g, uint64_t dim, uint32_t element_bytes,
                       uint64_t alignment) {
    const uint64_t row = uint64_t(strides.row), head = uint64_t(strides.head),
                   batch = uint64_t(strides.batch);
    const auto apart = [&](uint64_t stride, uint64_t blocks, uint64_t used) {
        return blocks <= 1 || (stride >= used && stride * element_bytes % alignment == 0);
    };
    const uint64_t of_rows = (g.len - 1) * row + dim, of_heads = (g.heads - 1) * head + of_rows;
    const uint64_t used_rows = (g.block_rows - 1) * row + dim,
                   used_heads = (g.block_heads - 1) * head + of_rows;
    // Some rows of each of several heads: the window shows the rows between, too.
    if (g.block_rows < g.len && (g.block_heads > 1 || g.block_batches > 1)) return false;
    if (g.block_heads < g.heads && g.block_batches > 1) return false;
    return apart(g.block_rows * row, ceil_div(g.len, g.block_rows), used_rows) &&
           apart(g.block_heads * head, ceil_div(g.heads, g.block_heads), used_heads) &&
           apart(g.block_batches * batch, ceil_div(g.batch, g.block_batches),
                 (g.block_batches - 1) * batch + of_heads);
}

uint64_t largest_window(const FoveaStrides& strides, uint64_t batches, uint64_t heads, uint64_t rows,
                        uint64_t dim, StorageBlock storage, uint64_t alignment) {
    const uint64_t elements = first_element(strides, batches - 1, heads - 1, rows - 1) + dim;
    const uint64_t step = start_step(storage, alignment),
                   numbers = elements + step / storage.bytes * storage.numbers;
    // Shaders count in 32 bits, and so do descriptors.
    if (numbers > UINT32_MAX) return std::max(numbers, elements / storage.numbers * storage.bytes);
    return align_up(elements / storage.numbers * storage.bytes, 4) + step;
}

bool rows_are_quads(const FoveaStrides& strides, uint64_t batches, uint64_t heads, uint64_t rows,
                    uint64_t dim) {
    return dim % 4 == 0 && (batches == 1 || strides.batch % 4 == 0) &&
           (heads == 1 || strides.head % 4 == 0) && (rows <= 1 || strides.row % 4 == 0);
}

}  // namespace fovea
