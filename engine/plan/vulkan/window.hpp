// Cutting strided tensors into blocks and blocks into descriptor windows: the 64-bit part of every address.
#pragma once

#include "problem/problem.hpp"

#include <cstdint>

namespace fovea {

// A part of [B, H, L]: entries, heads and rows.
struct RowBlock {
    uint32_t first_batch, batches, first_head, heads;
    uint64_t first_row, rows;
};

// [B, H, L] cut into blocks of one shape (smaller at the ends), numbered with rows fastest. Either all heads
// or one block of heads of a single entry; either all rows or one block of rows of a single head.
struct BlockGrid {
    uint32_t batch, heads;
    uint64_t len;
    uint32_t block_batches, block_heads;
    uint64_t block_rows;

    uint64_t count() const;
    RowBlock block(uint64_t index) const;
};

// Part of a buffer that one descriptor shows; `base` counts elements from its start to the first one used.
struct Window {
    uint64_t offset, size;  // bytes
    uint32_t base;
};

// Returns the elements [first, end) as a window of blocks (most types have one element per block), which is
// bounded by blocks. Windows start between blocks, so that `base` is an integer. Inputs are read in 32-bit
// words, so round_for_words makes their windows end at a multiple of 4 bytes.
Window element_window(uint64_t first, uint64_t end, StorageBlock block, uint64_t alignment);
void round_for_words(Window& window);

// Rows of `dim` elements of a block, of a tensor whose elements start at the buffer's.
Window block_window(const FoveaStrides& strides, const RowBlock& block, uint64_t dim, StorageBlock storage,
                    uint64_t alignment);

// The largest window of any block of that shape: an upper bound, exact up to the alignment. At least as many
// bytes as shaders count elements from its start.
uint64_t largest_window(const FoveaStrides& strides, uint64_t batches, uint64_t heads, uint64_t rows,
                        uint64_t dim, StorageBlock storage, uint64_t alignment);

// The same three for elements of so many bytes.
inline Window element_window(uint64_t first, uint64_t end, uint32_t element_bytes, uint64_t alignment) {
    return element_window(first, end, StorageBlock{1, element_bytes}, alignment);
}
inline Window block_window(const FoveaStrides& strides, const RowBlock& block, uint64_t dim,
                           uint32_t element_bytes, uint64_t alignment) {
    return block_window(strides, block, dim, StorageBlock{1, element_bytes}, alignment);
}
inline uint64_t largest_window(const FoveaStrides& strides, uint64_t batches, uint64_t heads, uint64_t rows,
                               uint64_t dim, uint32_t element_bytes, uint64_t alignment) {
    return largest_window(strides, batches, heads, rows, dim, StorageBlock{1, element_bytes}, alignment);
}

// True if no two blocks of `grid` have overlapping windows: rows are stored in the order of the grid, and
// blocks end at multiples of `alignment`.
bool windows_are_apart(const FoveaStrides& strides, const BlockGrid& grid, uint64_t dim,
                       uint32_t element_bytes, uint64_t alignment);

// Shrinks the blocks of `grid` (first entries, then heads, then rows in steps of `row_step`) from the whole
// down to the first shape for which `fits(grid)` is true. False if not even one row fits.
template <class Fits>
bool shrink_to_fit(BlockGrid& grid, uint64_t row_step, Fits fits) {
    grid.block_batches = grid.batch;
    grid.block_heads = grid.heads;
    grid.block_rows = grid.len;
    while (!fits(grid)) {
        if (grid.block_batches > 1) {
            grid.block_batches = (grid.block_batches + 1) / 2;
        } else if (grid.block_heads > 1) {
            grid.block_heads = (grid.block_heads + 1) / 2;
        } else if (grid.block_rows > row_step) {
            grid.block_rows = (grid.block_rows / 2 + row_step - 1) / row_step * row_step;
        } else if (grid.block_rows > 1) {
            grid.block_rows = (grid.block_rows + 1) / 2;
        } else {
            return false;
        }
    }
    return true;
}

// True if every element index of the tensor's rows is a multiple of 4, and so is `dim`.
bool rows_are_quads(const FoveaStrides& strides, uint64_t batches, uint64_t heads, uint64_t rows,
                    uint64_t dim);

}  // namespace fovea
