#pragma once
// Fixed-width little-endian fields of the zip format.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fovea::files {

/// `count` bytes (at most 8) at `at`, which must lie inside `bytes`.
inline std::uint64_t read_le(std::span<const std::byte> bytes, std::uint64_t at, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
    return value;
}

inline void append_le(std::string& out, std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

}  // namespace fovea::files
