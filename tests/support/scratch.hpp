// A new folder for a test: tests run in parallel, and so do several builds of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace fovea::test {

/// A folder of the running test, empty at the start, removed at the end.
class Scratch {
  public:
    Scratch() {
        const auto* info = testing::UnitTest::GetInstance()->current_test_info();
        // The number keeps two runs of the same test apart; names of parametrised tests hold slashes.
        std::string name = std::string("fovea_") + info->test_suite_name() + "_" + info->name() + "_" +
                           std::to_string(std::random_device()());
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

}  // namespace fovea::test
