// Scratch memory of one worker while it runs a task of a map tile, computed alike by the planner and the
// kernels.
#pragma once

#include "cpu/flash_layout.hpp"

namespace fovea::cpu {

struct TilePixel {
    uint64_t mass;  // units
    float max;
    uint32_t invalid;
};

struct MapTileLayout {
    FlashLayout flash;  // one panel, without values
    uint64_t pixels;    // byte offset of TilePixel [pixel_rows][pixel_columns]
    uint64_t size_bytes;
};

constexpr MapTileLayout map_tile_layout(const TargetShape& shape, uint64_t dim_qk, uint64_t key_block,
                                        uint64_t pixels) {
    MapTileLayout layout{};
    layout.flash = flash_layout(shape, 1, dim_qk, 1, key_block);
    layout.pixels = layout.flash.size_bytes;
    layout.size_bytes = layout.pixels + align_up(pixels * sizeof(TilePixel), 64);
    return layout;
}

}  // namespace fovea::cpu
