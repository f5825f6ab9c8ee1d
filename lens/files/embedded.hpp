// Files that a library carries within itself; cmake/EmbedFiles.cmake writes the functions that list them,
// sorted by name.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fovea {

struct EmbeddedFile {
    std::string_view name;
    const unsigned char* bytes;
    size_t size_bytes;

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes), size_bytes}; }
};

}  // namespace fovea
