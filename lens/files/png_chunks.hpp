#pragma once
// The structure of a PNG file, checked in full (chunks, checksums, the exact number of image bytes, filter
// types) before libpng is given it: libpng allocates what the header claims, whatever follows.
#include <cstdint>
#include <span>

#include <fovea/files.hpp>

namespace fovea::files {

constexpr uint64_t kMaxPngSide = 1u << 20;

struct PngHeader {
    uint64_t width = 0, height = 0;
    uint64_t channels = 0;
    bool interlaced = false;
};

/// Only 8 bits a channel without palette. Working memory: a constant.
Result<PngHeader> check_png(std::span<const std::byte> file, const LoadLimits& limits);

}  // namespace fovea::files
