// Small files whole: sessions, drawings, descriptions.
#pragma once

#include <fovea/fovea.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace fovea::visualizer {

inline constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

Result<std::string> read_text_file(const std::filesystem::path& path);
// Writes a temporary file in the target's folder and renames it: a failure leaves the old file, or none.
Result<void> write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace fovea::visualizer
