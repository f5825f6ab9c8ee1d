#pragma once
// Fixed-width little-endian fields of files.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fovea::files {

/// Reads `count` bytes (at most 8) at `at`, which must be inside `bytes`.
inline uint64_t read_le(std::span<const std::byte> bytes, uint64_t at, size_t count) {
    uint64_t value = 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
    return value;
}

inline void append_le(std::string& out, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace fovea::files
