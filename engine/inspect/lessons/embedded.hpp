// The lessons' data, carried in the library: facts and printed tables of each example, and the tensors to
// compare with. Two tables, so that a program that never compares does not carry the second.
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

// Sorted by name.
std::span<const EmbeddedFile> lesson_facts();
std::span<const EmbeddedFile> lesson_expectations();

}  // namespace fovea
