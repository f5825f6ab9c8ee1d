// Lengths and alphabets of the tasks. Token IDs: letters, numbers or symbols first, then the separators.
#pragma once

#include <cstdint>

namespace fovea {

inline constexpr uint32_t kInductionLetters = 40, kInductionLength = 40;
inline constexpr uint32_t kInductionLongestPrefix = 12;  // random letters before the word that is repeated
inline constexpr uint32_t kInductionShortestWord = 5, kInductionLongestWord = 14;
inline constexpr uint32_t kSortNumbers = 32, kSortLength = 12;
inline constexpr uint32_t kReverseSymbols = 16, kReverseLength = 12;
inline constexpr uint32_t kRecallKeys = 16, kRecallValues = 16, kRecallPairs = 8;
inline constexpr uint32_t kTextContext = 128;  // <start> and 127 tokens of the text

}  // namespace fovea
