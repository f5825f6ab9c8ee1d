// SHA-256 (FIPS 180-4) of a file, to know it again.
#pragma once

#include <fovea/fovea.hpp>

#include <filesystem>
#include <span>
#include <string>

namespace fovea {

// 64 hexadecimal digits in small letters.
std::string sha256(std::span<const std::byte> bytes);
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace fovea
