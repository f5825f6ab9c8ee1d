#include "matrix/map_buffers.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::visualizer {

const GpuBuffer* MapBuffers::get(const MapTiles& tiles, const MapPiece& piece, MapReducer reducer) {
    const Key key{piece.id, reducer};
    auto found = entries_.find(key);
    if (found == entries_.end()) {
        const std::vector<float> values = map_values(tiles, piece.id, *piece.pixels, reducer);
        Result<GpuBuffer> made = GpuBuffer::create(device_, values.size() * 4);
        if (!made) return nullptr;
        std::memcpy(made->data(), values.data(), values.size() * 4);
        made->flush();
        found = entries_.emplace(key, Entry{std::move(*made)}).first;
    }
    found->second.used = ++uses_;
    return &found->second.buffer;
}

void MapBuffers::prune(std::vector<VkBuffer>& released) {
    std::vector<uint64_t> uses;
    for (const auto& [key, entry] : entries_) uses.push_back(entry.used);
    std::nth_element(uses.begin(), uses.begin() + std::ptrdiff_t(uses.size() / 2), uses.end());
    const uint64_t oldest_kept = uses[uses.size() / 2];
    for (auto at = entries_.begin(); at != entries_.end();) {
        if (at->second.used >= oldest_kept) {
            ++at;
            continue;
        }
        released.push_back(at->second.buffer.handle());
        at = entries_.erase(at);
    }
}

void MapBuffers::clear(std::vector<VkBuffer>& released) {
    for (const auto& [key, entry] : entries_) released.push_back(entry.buffer.handle());
    entries_.clear();
}

}  // namespace fovea::visualizer
