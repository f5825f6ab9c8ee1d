// Copies of the map's tiles in buffers that the matrix shader reads: mass and maximum of each.
#pragma once

#include "gpu/gpu_device.hpp"

#include <fovea/inspect/map_tiles.hpp>

#include <map>

namespace fovea::visualizer {

class MapBuffers {
  public:
    static constexpr uint64_t kMaxBytes = uint64_t{128} << 20;

    explicit MapBuffers(const GpuDevice& device) : device_(device) {}
    // Returns null if there is no memory for it.
    const GpuBuffer* get(const MapPiece& piece, MapReducer reducer);
    // More than kMaxBytes are held; prune() then frees those not drawn lately. The device must be idle.
    bool full() const { return size_bytes_ > kMaxBytes; }
    void prune(std::vector<VkBuffer>& released);
    void clear(std::vector<VkBuffer>& released);
    uint64_t size_bytes() const { return size_bytes_; }

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
    uint64_t uses_ = 0, size_bytes_ = 0;
};

}  // namespace fovea::visualizer
