// One map tile after checking, and the arithmetic that every backend shares: which cells a pixel holds, and
// what a weight is in whole units.
#pragma once

#include "problem/problem.hpp"
#include "problem/visibility.hpp"

#include <fovea/fovea.h>

#include <algorithm>
#include <cstdint>

namespace fovea {

// Dropout's factor 1 / (1 - p) stays below, so that the units of a block of keys fit the kernels' words.
constexpr float kMaxTileKeepScale = 256;
// A larger exp(masked - lse) is not a weight: see FOVEA_TILE_INVALID.
constexpr float kMaxTileWeight = 2;
// Sums of units stay below it; one that reaches it is FOVEA_TILE_INVALID.
constexpr uint64_t kTileMassLimit = uint64_t{1} << 63;

// The cut of `count` cells into `pixels` of about equal size, from cell `first` on.
struct PixelAxis {
    int64_t first = 0, count = 0, pixels = 0;

    // First cell of pixel n; of n == pixels, the end. n * count stays far below 2^63.
    int64_t begin(int64_t n) const { return first + n * count / pixels; }
    // Returns the cell that represents the pixel in a sampled tile.
    int64_t middle(int64_t n) const { return begin(n) + (begin(n + 1) - begin(n)) / 2; }
    int64_t largest() const { return count / pixels + (count % pixels != 0); }
};

struct MapTile {
    uint32_t batch, first_head, head_count;
    PixelAxis rows, keys;
    bool mass, max, sampled;

    uint64_t pixels() const { return uint64_t(rows.pixels) * uint64_t(keys.pixels); }
    // Cells that are computed for a pixel at most, and for a row of pixels.
    double cells_of_pixel() const { return sampled ? 1.0 : double(rows.largest()) * double(keys.largest()); }
    double cells_of_pixel_row() const {
        return sampled ? double(keys.pixels) : double(rows.largest()) * double(keys.count);
    }
    double cells() const {
        return head_count * (sampled ? double(pixels()) : double(rows.count) * double(keys.count));
    }
};

// Checks `tile` against the attention call `problem`, and turns the problem's bindings into the tile's: q, k,
// lse and what masks need in, mass and maximum out.
FoveaResult make_map_tile(const FoveaMapTileDesc* tile, Problem& problem, MapTile& out, FoveaDiag* diag);

// Cells of an exact tile that causal, window and the lengths of `view` leave visible, over all its heads; of
// a sampled one, its pixels.
double visible_cells(const Problem& problem, const MapTile& tile, const BatchView& view);

// Whole units of a weight in [0, 2 * kMaxTileKeepScale].
constexpr uint64_t tile_units(double weight) { return uint64_t(weight / FOVEA_TILE_UNIT); }

// A sum of units that stops at the limit: the same in any order of additions.
constexpr uint64_t add_tile_units(uint64_t sum, uint64_t units) {
    return std::min(sum + units, kTileMassLimit);
}

}  // namespace fovea
