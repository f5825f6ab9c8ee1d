// Split patterns: what each construct of Oniguruma matches, what is rejected, and that the work is linear in
// the text. Expected matches are those of the library tokenizers 0.23.2.
#include "tokenizer/code_set.hpp"
#include "tokenizer/split_pattern.hpp"

#include <gtest/gtest.h>

namespace fovea {
namespace {

// "[match]gap[match]"; empty matches are "[]".
std::string split(std::string_view pattern, std::string_view text) {
    const Result<SplitPattern> made = SplitPattern::compile(pattern);
    if (!made) return made.error().text;
    std::string out;
    size_t done = 0;
    const bool good = made->split(text, [&](size_t begin, size_t end, bool match) {
        EXPECT_EQ(begin, done);
        EXPECT_LE(begin, end);
        done = end;
        const std::string part(text.substr(begin, end - begin));
        out += match ? "[" + part + "]" : part;
    });
    EXPECT_TRUE(!good || done == text.size());
    return good ? out : "too many steps";
}

struct Match {
    const char *pattern, *text, *found;
};

TEST(Patterns, match_as_oniguruma_does) {
    constexpr Match kMatches[] = {
        {R"(\w+|[^\w\s]+)", "हिन्दी भाषा", "[हिन्दी] [भाषा]"},
        {R"(\bx\b)", "x e\xcc\x81x x", "[x] e\xcc\x81x [x]"},
        {R"([\w&&[^b-y]]+)", "abxcd&e", "[a]bxcd&e"},
        {R"([a-z&&[^x]]+)", "abxcd&e", "[ab]x[cd]&[e]"},
        {R"([a-z&&[^x]&&[^b]]+)", "abxcd&e", "[a]bx[cd]&[e]"},
        {R"([\p{Lu}\p{Ll}&&[^\p{Han}]]+)", "it's", "[it]'[s]"},
        {R"((?<=\p{L}+)\d)", "ab12", "ab[1]2"},
        {R"((?<!a|bc)\d)", "a1bc2d3", "a1bc2d[3]"},
        {R"((?<=(?>b+)).)", "abbcb", "ab[b][c]b"},
        {R"(\u4e2d|\p{InHiragana}+|\p{Katakana}\O)", "中あいアx", "[中][あい][アx]"},
        {R"(\x{4e2d}|\x41|\101)", "中A", "[中][A]"},
        {"\\h+", "12afgAF", "[12af]g[AF]"},
        {"\\s+", "a\xc2\x85 \xe1\xa0\x8e\xe3\x80\x80", "a[\xc2\x85 ]\xe1\xa0\x8e[\xe3\x80\x80]"},
        {"^.", "ab\ncd\n", "[a]b\n[c]d\n"},
        {R"(\n(?=^))", "ab\ncd\n", "ab[\n]cd\n"},
        {".$", "ab\ncd", "a[b]\nc[d]"},
        {R"(\A.|.\z)", "ab\ncd", "[a]b\nc[d]"},
        {R"(.\Z)", "ab\ncd\n", "ab\nc[d]\n"},
        {"(?m:.)\\n", "\n\na\n", "[\n\n][a\n]"},
        {"a++a|b?+b", "aab", "aab"},
        {"(?>a+)b|a{2}?c|a{3,1}", "aabaaaac", "[aab][aaa][a][c]"},
        {"<.+?>", "<a><b>", "[<a>][<b>]"},
        {"(?i)k|[s-t]", "K\xe2\x84\xaa\xc5\xbfT", "[K][\xe2\x84\xaa][\xc5\xbf][T]"},
        {"(?i)[a-z]+", "xIi\xc4\xb0\xc4\xb1", "[xIi]\xc4\xb0\xc4\xb1"},
        {"(?i)i|[^\\p{L}i]", "iI!", "[i][I][!]"},
        {"a(?i)b|c", "aBAcaC", "[aB]Ac[aC]"},
        {"(?x) a b # c\n | d", "ab d", "[ab] [d]"},
        {"(?=[A-Z])", "aBC", "a[]B[]C"},
        {"x*", "axb", "[]a[x]b[]"},
        {"[[:alpha:]&&[^a]]+|[[:^alnum:]]", "abc-1", "a[bc][-]1"},
        {"[]a]+|[x-]", "a]-y", "[a]][-]y"},
        {R"(\R|\N)", "\r\na\n", "[\r\n][a][\n]"},
        {"(?:a|ab)(?:c|bcd)(?:d*)", "abcd", "[abcd]"},
        {"(?:a?)*b|(?:a*)+c", "aab aac", "[aab] [aac]"},
        {"\\Ga", "aaba", "[a][a]ba"},
        {"{|a{,}|a{,2}b", "{aab", "[{][aab]"},
        {R"(\w|[\w])", "\xc2\xbd", "[\xc2\xbd]"},
        {R"([\w])", "\xc2\xbd", "\xc2\xbd"},
        {"\\p{^L}+|\\P{Lu}", "a1B", "[a][1]B"},
    };
    for (const Match& one : kMatches) EXPECT_EQ(split(one.pattern, one.text), one.found) << one.pattern;
}

TEST(Patterns, reject_what_they_do_not_know_and_say_where) {
    constexpr std::pair<const char*, const char*> kRejected[] = {
        {"ab\\K", "the pattern has \\K, which is not supported, at its byte 2"},
        {"(?(DEFINE)(?<k>ab\\K))(?=(?&k))",
         "the pattern has a condition, which is not supported, at its byte 0"},
        {R"((a)\1)", "the pattern has a back reference, which is not supported, at its byte 3"},
        {R"((?<n>a)\k<n>)", "the pattern has a back reference, which is not supported, at its byte 7"},
        {R"((?<n>a)\g<n>)", "the pattern has a subexpression call, which is not supported, at its byte 7"},
        {"(?~a)", "the pattern has an absent function, which is not supported, at its byte 0"},
        {"(*FAIL)", "the pattern has a callout, which is not supported, at its byte 0"},
        {"a\\X", "the pattern has \\X, which is not supported, at its byte 1"},
        {"(?W:a)", "the pattern has the group (?W, which is not supported, at its byte 0"},
        {"\\p{Nope}", "the pattern has the property 'Nope', which is not supported, at its byte 0"},
        {"\\xe4", "the pattern has a byte above 0x7f, which is not supported, at its byte 0"},
        {"(?i)strasse",
         "the pattern has (?i) with letters that one letter equals, which is not supported, at its byte 6"},
        {"(?i)\xc3\x9f",
         "the pattern has (?i) with a letter that equals several, which is not supported, at its byte 6"},
        {"(?i)[^\xc3\x9f]",
         "the pattern has (?i) with a letter that equals several, which is not supported, at its byte 4"},
        {"(?i)i\xcc\x87",
         "the pattern has (?i) with letters that one letter equals, which is not supported, at its byte 7"},
        {"(?:\\Ba?){2}",
         "the pattern has two or more repeats of what looks around and may be empty, which is not supported, "
         "at its byte 8"},
        {"(?<=a\\R)", "the pattern has \\R in a look-behind, which is not supported, at its byte 5"},
        {"(a", "the pattern has '(' without ')' at its byte 0"},
        {"a)", "the pattern has ')' without '(' at its byte 1"},
        {"[a", "the pattern has '[' without ']' at its byte 0"},
        {"[]", "the pattern has empty brackets at its byte 0"},
        {"[z-a]", "the pattern has a range that ends before it begins at its byte 2"},
        {"[\\w-z]", "the pattern has a range that begins with a class at its byte 3"},
        {"*a", "the pattern has a repeat of nothing at its byte 0"},
        {"(?=a)*", "the pattern has a repeat of nothing at its byte 5"},
        {"a\\", "the pattern has a backslash with nothing after it at its byte 1"},
        {"\\ud800", "the pattern has an escape without a character at its byte 0"},
        {"(?:ab){100001}", "the pattern has more than 100000 repeats at its byte 6"},
        {"(?:(?:ab){999}){999}",
         "the pattern has more than 50000 steps when its repeats are written out; at most as many are "
         "supported"},
        {"(?:(?:){99999}){99999}",
         "the pattern has more than 50000 steps when its repeats are written out; at most as many are "
         "supported"},
    };
    for (const auto& [pattern, error] : kRejected) EXPECT_EQ(split(pattern, "ab"), error) << pattern;
    EXPECT_EQ(split(std::string(1000, '('), ""), "the pattern has groups nested too deeply at its byte 201");
    EXPECT_EQ(split(std::string(1000, '['), ""),
              "the pattern has brackets nested too deeply at its byte 202");
}

// Matches that the budget of a text of `bytes` allows; the budget itself is linear.
TEST(Patterns, take_steps_that_are_linear_in_the_text) {
    constexpr const char* kSplits[] = {
        R"('s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
        R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
    for (const char* pattern : kSplits) {
        const Result<SplitPattern> made = SplitPattern::compile(pattern);
        ASSERT_TRUE(made);
        for (const char* part : {"hello big world ", "\xe6\x9d\xb1\xe4\xba\xac", "        ", "a1b2", "\n"}) {
            std::string text;
            while (text.size() < 4'000'000) text += part;
            EXPECT_TRUE(made->split(text, [](size_t, size_t, bool) {})) << pattern << part;
        }
    }
    // Endless matching is given up.
    EXPECT_EQ(split("(?:a+)+b", std::string(40, 'a')), "too many steps");
    EXPECT_EQ(split("(?:a|a)*b", std::string(40, 'a')), "too many steps");
    EXPECT_EQ(split("(?<=(?:a|a)*b)c", std::string(40, 'a') + "c"), "too many steps");
    EXPECT_EQ(SplitPattern::most_steps(2'000'000) - SplitPattern::most_steps(1'000'000),
              SplitPattern::most_steps(1'000'000) - SplitPattern::most_steps(0));
}

TEST(CodeSets, are_unions_cuts_and_complements) {
    const CodeSet a = {{'a', 'f'}, {'m', 'm'}}, b = {{'d', 'k'}, {'x', 'z'}};
    for (uint32_t c = 0; c < 300; ++c) {
        EXPECT_EQ((a | b).has(c), a.has(c) || b.has(c));
        EXPECT_EQ((a & b).has(c), a.has(c) && b.has(c));
        EXPECT_EQ((~a).has(c), !a.has(c));
    }
    EXPECT_EQ((~~a).bounds(), a.bounds());
    EXPECT_TRUE((a & ~a).empty());
}

TEST(CodeSets, know_names_of_any_writing) {
    struct Named {
        const char* name;
        uint32_t in, out;
    };
    constexpr Named kNames[] = {{"L", 'a', '1'},
                                {"Uppercase_Letter", 'A', 'a'},
                                {"upper case-letter", 'A', 'a'},
                                {"Nd", '1', 0xbd},
                                {"Han", 0x4e2d, 0x3042},
                                {"Hira", 0x3042, 0x30a2},
                                {"InHiragana", 0x3040, 0x30a0},
                                {"InBasicLatin", 0x7f, 0x80},
                                {"In_CJK_Unified_Ideographs", 0x9fff, 0xa000},
                                {"InSupplementary_Private_Use_Area-B", 0x10ffff, 0xfffff},
                                {"Alpha", 0x345, '1'},
                                {"Word", '_', '-'},
                                {"Punct", '-', '+'},
                                {"PosixPunct", '+', 'a'},
                                {"Graph", 'a', ' '},
                                {"Print", ' ', '\n'},
                                {"Emoji", 0x1f600, 'a'},
                                {"Any", 0x378, CodeSet::kEnd},
                                {"Assigned", 'a', 0x378}};
    for (const Named& one : kNames) {
        const std::optional<CodeSet> set = property_set(one.name);
        ASSERT_TRUE(set) << one.name;
        EXPECT_TRUE(set->has(one.in)) << one.name;
        EXPECT_FALSE(set->has(one.out)) << one.name;
    }
    for (const char* name : {"", "Nope", "In", "InNope", "Age=3.0", "Script=Han", " "})
        EXPECT_FALSE(property_set(name)) << name;
}

}  // namespace
}  // namespace fovea
