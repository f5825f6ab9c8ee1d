#include "document/known_rows.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {

void KnownRows::mark(RowRange rows) {
    for (uint64_t row = rows.first; row < rows.first + rows.count; ++row)
        count_ += !std::exchange(known_[row], uint8_t{1});
}

RowRange KnownRows::lacked_by(const FoveaMapTileDesc& tile, uint64_t block) const {
    const uint64_t rows = known_.size(), tile_rows = tile.row_count ? tile.row_count : rows - tile.first_row;
    const uint64_t height = tile.height ? tile.height : tile_rows;
    if (!tile.sampled) {
        const uint64_t end = std::min(rows, tile.first_row + tile_rows);
        const auto begin = known_.begin() + ptrdiff_t(tile.first_row);
        const auto unknown = std::find(begin, known_.begin() + ptrdiff_t(end), uint8_t{0});
        if (unknown == known_.begin() + ptrdiff_t(end)) return {};
        const uint64_t first = uint64_t(unknown - known_.begin()) / block * block;
        return {first, std::min(block, rows - first)};
    }
    for (uint64_t y = 0; y < height; ++y) {
        const uint64_t begin = tile.first_row + y * tile_rows / height,
                       end = tile.first_row + (y + 1) * tile_rows / height;
        const uint64_t middle = begin + (end - begin) / 2;
        if (middle < rows && !known_[middle]) return {middle, 1};
    }
    return {};
}

}  // namespace fovea::visualizer
