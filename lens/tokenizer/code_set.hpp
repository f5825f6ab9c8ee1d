// Sets of characters, and what Unicode 16 says of them: the same in every program and build.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A set of code points. Surrogates may be in it: no text has them.
class CodeSet {
  public:
    static constexpr uint32_t kEnd = 0x110000;

    CodeSet() = default;
    // Code points and ranges [first, last], in any order.
    CodeSet(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges);
    static CodeSet one(uint32_t c) { return CodeSet{{c, c}}; }

    bool empty() const { return bounds_.empty(); }
    bool has(uint32_t c) const;
    CodeSet operator|(const CodeSet& other) const { return merged(other, 1); }
    CodeSet operator&(const CodeSet& other) const { return merged(other, 2); }
    CodeSet operator~() const;
    // Begins and ends of ranges, alternating: the set holds [b[0], b[1]), [b[2], b[3]), ...
    const std::vector<uint32_t>& bounds() const { return bounds_; }
    // `at` must not be in or before a range that is there.
    void append(uint32_t first, uint32_t end);

  private:
    CodeSet merged(const CodeSet& other, int least) const;
    std::vector<uint32_t> bounds_;
};

// The set that \p{NAME} means in Oniguruma: categories, scripts, blocks (InNAME), POSIX classes and some
// other properties. Case, spaces, '-' and '_' of a name do not matter.
std::optional<CodeSet> property_set(std::string_view name);
const CodeSet& word_set();  // \w in brackets
const CodeSet&
outer_word_set();            // elsewhere: with the superscripts and fractions of Latin-1, as Oniguruma has it
const CodeSet& space_set();  // \s
const CodeSet& digit_set();  // \d

// Adds all characters that differ only in case from one of the set.
CodeSet with_cases(const CodeSet& set);
// Characters that equal several others when case does not matter, such as U+00DF and "ss".
const CodeSet& folds_to_several();
// True if the two may begin what such a character equals.
bool begins_a_fold(uint32_t first, uint32_t second);

// The tables that scripts/make_property_tables.py writes.
namespace tables {
struct NamedRuns {
    std::string_view names, runs;
};
extern const NamedRuns kProperties[];
extern const std::string_view kBlocks, kFolds, kFoldsToSeveral, kSeveral;
}  // namespace tables

}  // namespace fovea
