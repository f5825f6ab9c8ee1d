// Base64, standard alphabet; of the address's form '-' and '_' are read too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::visualizer {

std::string to_base64(std::span<const std::byte> bytes, bool for_address);
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace fovea::visualizer
