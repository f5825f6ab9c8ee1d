#pragma once
// Converts numbers to text, the same in every locale.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::files {

/// Reads all of `text` as a decimal number, nan or inf; a leading '+' is allowed. Returns nothing if it is
/// not a number or is beyond float64. Correctly rounded.
std::optional<double> parse_number(std::string_view text);

/// The fewest digits that read back to the same value of that type.
void append_number(std::string& out, float value);
void append_number(std::string& out, double value);

}  // namespace fovea::files
