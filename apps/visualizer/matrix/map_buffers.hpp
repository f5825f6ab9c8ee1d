// The map's tiles as the matrix shader reads them: one buffer of float32 pixels for each tile drawn.
#pragma once

#include "gpu/gpu_device.hpp"

#include <fovea/inspect/map_tiles.hpp>

#include <map>

namespace fovea::visualizer {

class MapBuffers {
  public:
    static constexpr size_t kMost = 512;  // 128 MiB

    explicit MapBuffers(const GpuDevice& device) : device_(device) {}
    // Null where there is no memory for it.
    const GpuBuffer* get(const MapTiles& tiles, const MapPiece& piece, MapReducer reducer);
    // More than kMost are held; prune() then frees those not drawn lately. The device must be idle.
    bool full() const { return entries_.size() > kMost; }
    void prune(std::vector<VkBuffer>& released);
    void clear(std::vector<VkBuffer>& released);
    uint64_t size_bytes() const { return entries_.size() * kMapTileSide * kMapTileSide * 4; }

  private:
    struct Key {
        MapTileId id;
        MapReducer reducer;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    struct Entry {
        GpuBuffer buffer;
        uint64_t used = 0;
    };
    const GpuDevice& device_;
    std::map<Key, Entry> entries_;
    uint64_t uses_ = 0;
};

}  // namespace fovea::visualizer
