#pragma once
// Folders and bytes for the tests of the file readers.
#include <gtest/gtest.h>

#include <fovea/files.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fovea::test {

/// A folder of the running test, empty at the start, removed at the end.
class Scratch {
  public:
    Scratch() {
        const auto* info = testing::UnitTest::GetInstance()->current_test_info();
        // The clock keeps two runs of the same test apart; names of parametrised tests hold slashes.
        std::string name = std::string("fovea_files_") + info->test_suite_name() + "_" + info->name() + "_" +
                           std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
        std::replace(name.begin(), name.end(), '/', '_');
        folder_ = std::filesystem::path(testing::TempDir()) / name;
        std::filesystem::create_directories(folder_);
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }
    const std::filesystem::path& folder() const { return folder_; }
    size_t file_count() const {
        return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
    }

  private:
    std::filesystem::path folder_;
};

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
Tensor tensor_of(std::string name, ElementType type, std::vector<uint64_t> shape,
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
