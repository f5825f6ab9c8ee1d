#pragma once
// Files as bytes, for the tests of the file readers.
#include "support/scratch.hpp"

#include <gtest/gtest.h>

#include <fovea/files.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fovea::test {

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
Tensor tensor_of(std::string name, FoveaDtype type, std::vector<uint64_t> shape,
                 const std::vector<T>& values) {
    return make_tensor(std::move(name), type, std::move(shape), std::as_bytes(std::span(values))).value();
}

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
    std::vector<T> out(tensor.bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
    return out;
}

inline void expect_same(const Tensor& a, const Tensor& b) {
    EXPECT_EQ(a.type, b.type) << a.name;
    EXPECT_EQ(a.shape, b.shape) << a.name;
    EXPECT_EQ(values_of<char>(a), values_of<char>(b)) << a.name;
}

/// One tensor of each element type, with values at the edges of each.
TensorSet every_type();

}  // namespace fovea::test
