// Vectors for words. The six words of the tutorials have the tutorials' vectors; every other word gets one
// drawn from its spelling, always the same. They carry no meaning: the page says so.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <cstdint>

namespace fovea::web {

void token_vector(std::string_view token, std::span<float> out);
// The same plus a vector for the place in the sequence, both normal with deviation 1: the input of the GPT
// level.
void positioned_token_vector(std::string_view token, uint64_t position, std::span<float> out);

}  // namespace fovea::web
