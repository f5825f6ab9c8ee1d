// Writing small JSON documents to stdout. Reading is not needed here.
#pragma once

#include <string>
#include <string_view>

namespace fovea::app {

std::string json_string(std::string_view text);
// Shortest digits that read back to the same value; NaN and infinities, which JSON lacks, become null.
std::string json_number(double value);

}  // namespace fovea::app
