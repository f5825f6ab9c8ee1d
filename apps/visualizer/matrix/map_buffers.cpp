#include "matrix/map_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace fovea::visualizer {

const GpuBuffer* MapBuffers::get(const MapPiece& piece, MapReducer reducer) {
    const Key key{piece.id, reducer};
    if (const auto found = entries_.find(key); found != entries_.end()) {
        found->second.used = ++uses_;
        return &found->second.buffer;
    }
    const MapPixels& pixels = *piece.pixels;
    const std::span<const std::byte> bytes = reducer == MapReducer::mass
                                                 ? std::as_bytes(std::span(pixels.mass))
                                                 : std::as_bytes(std::span(pixels.max));
    Result<GpuBuffer> made = GpuBuffer::create(device_, bytes.size());
    if (!made) return nullptr;
    std::memcpy(made->data(), bytes.data(), bytes.size());
    made->flush();
    size_bytes_ += made->size_bytes();
    return &entries_.emplace(key, Entry{std::move(*made), ++uses_}).first->second.buffer;
}

void MapBuffers::prune(std::vector<VkBuffer>& released) {
    std::vector<uint64_t> uses;
    for (const auto& [key, entry] : entries_) uses.push_back(entry.used);
    std::nth_element(uses.begin(), uses.begin() + ptrdiff_t(uses.size() / 2), uses.end());
    const uint64_t oldest_kept = uses[uses.size() / 2];
    for (auto at = entries_.begin(); at != entries_.end();) {
        if (at->second.used >= oldest_kept) {
            ++at;
            continue;
        }
        released.push_back(at->second.buffer.handle());
        size_bytes_ -= at->second.buffer.size_bytes();
        at = entries_.erase(at);
    }
}

void MapBuffers::clear(std::vector<VkBuffer>& released) {
    for (const auto& [key, entry] : entries_) released.push_back(entry.buffer.handle());
    entries_.clear();
    size_bytes_ = 0;
}

}  // namespace fovea::visualizer
