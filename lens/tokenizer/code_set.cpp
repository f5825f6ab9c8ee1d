#include "tokenizer/code_set.hpp"

#include <algorithm>
#include <unordered_map>

namespace fovea {
namespace {

// The next number of a table: base 32, the last digit from '0' on, those before it from 'P' on.
uint32_t take_number(std::string_view& text) {
    uint32_t value = 0;
    while (!text.empty()) {
        const uint32_t digit = static_cast<unsigned char>(text[0]) - uint32_t{'0'};
        text.remove_prefix(1);
        value = value << 5 | (digit & 31u);
        if (digit < 32) break;
    }
    return value;
}

CodeSet set_of(std::string_view runs) {
    CodeSet out;
    for (uint32_t at = 0; !runs.empty();) {
        const uint32_t first = at + take_number(runs);
        at = first + take_number(runs);
        out.append(first, at);
    }
    return out;
}

std::optional<CodeSet> table_set(std::string_view name) {
    const std::string key = " " + std::string(name) + " ";
    for (const tables::NamedRuns* row = tables::kProperties; !row->names.empty(); ++row)
        if (row->names.find(key) != std::string_view::npos) return set_of(row->runs);
    return std::nullopt;
}

CodeSet any_of(std::initializer_list<std::string_view> names) {
    CodeSet out;
    for (const std::string_view name : names) out = out | table_set(name).value();
    return out;
}

// Folded characters by themselves, and all that fold to them.
struct Folds {
    std::unordered_map<uint32_t, uint32_t> to;
    std::unordered_map<uint32_t, std::vector<uint32_t>> from;
    Folds() {
        std::string_view text = tables::kFolds;
        for (uint32_t first = 0; !text.empty();) {
            first += take_number(text);
            const uint32_t step = take_number(text), count = take_number(text), zigzag = take_number(text);
            const uint32_t distance = zigzag & 1 ? 0 - (zigzag + 1) / 2 : zigzag / 2;
            for (uint32_t i = 0; i < count; ++i) {
                const uint32_t c = first + step * i;
                to[c] = c + distance;
                from[c + distance].push_back(c);
            }
        }
        // Oniguruma's tables have I, and U+0130 below, apart from the others, as Turkish folds them
        // otherwise.
        to['I'] = 'i';
        from['i'].push_back('I');
    }
    uint32_t of(uint32_t c) const {
        const auto found = to.find(c);
        return found == to.end() ? c : found->second;
    }
};
const Folds& folds() {
    static const Folds all;
    return all;
}

}  // namespace

CodeSet::CodeSet(std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) {
    for (const auto& [first, last] : ranges) {
        CodeSet one;
        one.append(first, last + 1);
        *this = *this | one;
    }
}

bool CodeSet::has(uint32_t c) const {
    return (std::upper_bound(bounds_.begin(), bounds_.end(), c) - bounds_.begin()) % 2 != 0;
}

void CodeSet::append(uint32_t first, uint32_t end) {
    if (first >= end) return;
    if (!bounds_.empty() && bounds_.back() == first)
        bounds_.back() = end;
    else
        bounds_.insert(bounds_.end(), {first, end});
}

CodeSet CodeSet::operator~() const {
    CodeSet out;
    uint32_t at = 0;
    for (size_t i = 0; i < bounds_.size(); i += 2) {
        out.append(at, bounds_[i]);
        at = bounds_[i + 1];
    }
    out.append(at, kEnd);
    return out;
}

// Returns the code points that at least `least` of the two sets contain.
CodeSet CodeSet::merged(const CodeSet& other, int least) const {
    CodeSet out;
    int depth = 0;
    uint32_t first = 0;
    for (size_t i = 0, j = 0; i < bounds_.size() || j < other.bounds_.size();) {
        const bool mine = j == other.bounds_.size() || (i < bounds_.size() && bounds_[i] <= other.bounds_[j]);
        const uint32_t at = mine ? bounds_[i] : other.bounds_[j];
        const int before = depth;
        depth += (mine ? i++ : j++) % 2 == 0 ? 1 : -1;
        if (before < least && depth >= least) first = at;
        if (before >= least && depth < least) out.append(first, at);
    }
    return out;
}

const CodeSet& word_set() {
    static const CodeSet set = any_of({"alphabetic", "mn", "mc", "me", "nd", "pc"});
    return set;
}
const CodeSet& outer_word_set() {
    static const CodeSet set = word_set() | CodeSet{{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}};
    return set;
}
const CodeSet& space_set() {
    static const CodeSet set = any_of({"whitespace"});
    return set;
}
const CodeSet& digit_set() {
    static const CodeSet set = any_of({"nd"});
    return set;
}

std::optional<CodeSet> property_set(std::string_view given) {
    std::string name;
    for (const char c : given)
        if (c != ' ' && c != '-' && c != '_') name += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    constexpr std::pair<std::string_view, char> kGroups[] = {
        {"letter", 'l'}, {"mark", 'm'},   {"combiningmark", 'm'}, {"number", 'n'}, {"punctuation", 'p'},
        {"punct", 'p'},  {"symbol", 's'}, {"separator", 'z'},     {"other", 'c'}};
    char group = name.size() == 1 ? name[0] : '\0';
    for (const auto& [known, letter] : kGroups)
        if (name == known) group = letter;
    if (group == 'l') return any_of({"lu", "ll", "lt", "lm", "lo"});
    if (group == 'm') return any_of({"mn", "mc", "me"});
    if (group == 'n') return any_of({"nd", "nl", "no"});
    if (group == 'p') return any_of({"pc", "pd", "ps", "pe", "pi", "pf", "po"});
    if (group == 's') return any_of({"sm", "sc", "sk", "so"});
    if (group == 'z') return any_of({"zs", "zl", "zp"});
    if (group == 'c') return any_of({"cc", "cf", "cs", "co", "cn"});
    if (name == "lc" || name == "casedletter") return any_of({"lu", "ll", "lt"});
    if (name == "any") return ~CodeSet();
    if (name == "assigned") return ~any_of({"cn"});
    if (name == "ascii") return CodeSet{{0, 0x7f}};
    if (name == "newline") return CodeSet::one('\n');
    if (name == "xdigit" || name == "asciihexdigit" || name == "ahex")
        return CodeSet{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    if (name == "word") return word_set();
    if (name == "alnum") return any_of({"alphabetic", "nd"});
    if (name == "blank") return any_of({"zs"}) | CodeSet::one('\t');
    if (name == "posixpunct")
        return any_of({"pc", "pd", "ps", "pe", "pi", "pf", "po", "sm", "sc", "sk", "so"});
    if (name == "graph") return ~any_of({"whitespace", "cc", "cn", "cs"});
    if (name == "print") return ~any_of({"whitespace", "cc", "cn", "cs"}) | any_of({"zs"});
    if (std::optional<CodeSet> known = table_set(name)) return known;
    if (!name.starts_with("in")) return std::nullopt;
    name = " " + name.substr(2) + " ";
    std::string_view blocks = tables::kBlocks;
    // The first block has no space before it.
    const size_t at = blocks.starts_with(std::string_view(name).substr(1)) ? 0 : blocks.find(name) + 1;
    if (at == 0 && !blocks.starts_with(std::string_view(name).substr(1))) return std::nullopt;
    blocks.remove_prefix(at + name.size() - 1);
    const uint32_t first = take_number(blocks) << 4;
    CodeSet out;
    out.append(first, first + (take_number(blocks) << 4));
    return out;
}

CodeSet with_cases(const CodeSet& set) {
    CodeSet out = set;
    for (const auto& [folded, others] : folds().from) {
        bool touched = set.has(folded);
        for (const uint32_t c : others) touched = touched || set.has(c);
        if (!touched) continue;
        out = out | CodeSet::one(folded);
        for (const uint32_t c : others) out = out | CodeSet::one(c);
    }
    return out;
}

const CodeSet& folds_to_several() {
    static const CodeSet set = set_of(tables::kFoldsToSeveral) | CodeSet::one(0x130);
    return set;
}

bool begins_a_fold(uint32_t first, uint32_t second) {
    first = folds().of(first), second = folds().of(second);
    for (std::string_view text = tables::kSeveral; !text.empty();) {
        const uint32_t a = take_number(text), b = take_number(text);
        if (a == first && b == second) return true;
    }
    return first == 'i' && second == 0x307;
}

}  // namespace fovea
