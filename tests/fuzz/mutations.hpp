// Inputs made from others. The same seed gives the same inputs on every machine: nothing here depends on an
// address, a clock or what the target did with an input (libFuzzer's own do, whatever its seed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/random.hpp"

namespace fovea::fuzz {

using Input = std::vector<uint8_t>;

/// One change of bytes: a number replaced, bits flipped, a range copied, inserted or taken out. At most
/// `most_bytes` come out.
void change(Input& input, size_t most_bytes, test::Random& random);

/// The head of one input, the tail of another.
void splice(Input& input, const Input& other, test::Random& random);

}  // namespace fovea::fuzz
