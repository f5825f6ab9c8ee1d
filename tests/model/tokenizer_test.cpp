// Tokenizers against the library `tokenizers`: tokenizers/NAME.json with what it gave for many texts, see
// scripts/make_tokenizers.py.
#include "model/tokenizer.hpp"

#include <fovea/files/json.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class Tokenizers : public testing::TestWithParam<const char*> {};

TEST_P(Tokenizers, give_the_numbers_and_texts_of_the_library_tokenizers) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no PCRE2";
    const fs::path folder = FOVEA_TOKENIZERS;
    const Result<TextTokenizer> tokenizer = TextTokenizer::open(folder / (std::string(GetParam()) + ".json"));
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    const Result<JsonValue> expected =
        parse_json(text_of(folder / (std::string(GetParam()) + ".expected.json")));
    ASSERT_TRUE(expected) << expected.error().text;
    size_t compared = 0;
    for (const JsonValue& row : (*expected)["texts"].items()) {
        const std::string_view text = row.items()[0].text();
        std::vector<uint32_t> numbers;
        for (const JsonValue& number : row.items()[1].items()) numbers.push_back(uint32_t(number.number()));
        const Result<std::vector<uint32_t>> ids = tokenizer->encode(text);
        ASSERT_TRUE(ids) << ids.error().text;
        EXPECT_EQ(*ids, numbers) << json_string(text);
        // Tokens that end inside a character are the same bytes here, and U+FFFD there.
        const std::string_view decoded = row.items()[2].text();
        if (decoded.find("\xef\xbf\xbd") == std::string_view::npos) {
            EXPECT_EQ(tokenizer->decode(numbers), decoded) << json_string(text);
        }
        ++compared;
    }
    EXPECT_GE(compared, 150u);
}

INSTANTIATE_TEST_SUITE_P(Each, Tokenizers, testing::Values("gpt2", "llama3", "llama2"),
                         [](const auto& name) { return std::string(name.param); });

TEST(TextTokenizer, refuses_what_it_cannot_compute_by_name) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no PCRE2";
    const fs::path path = fs::path(testing::TempDir()) / "fovea_tokenizer.json";
    const auto refused = [&](const std::string& json) {
        std::ofstream(path, std::ios::binary) << json;
        const Result<TextTokenizer> made = TextTokenizer::open(path);
        return made ? std::string("nothing") : made.error().text.substr(path.string().size());
    };
    const std::string model =
        R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
    EXPECT_EQ(refused("{" + model + "}"), "nothing");
    EXPECT_EQ(refused("{"), ": byte 1: a key in quotes expected");
    EXPECT_EQ(refused(R"({"model": {"type": "WordPiece"}})"),
              ": the tokenizer is of the kind 'WordPiece'; BPE is computed");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {}}})"), ": the tokenizer has no vocabulary");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": -1}}})"),
              ": token 'a' has no number of its own from 0 to 268435455");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
              ": merge 0 is of tokens that the vocabulary lacks");
    EXPECT_EQ(refused("{" + model + R"(, "normalizer": {"type": "NFKC"}})"),
              ": the step 'NFKC' is not computed");
    EXPECT_EQ(
        refused(
            "{" + model +
            R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}})"),
        ": the pattern cannot be read from its byte 2 on");
    EXPECT_EQ(refused("{" + model + R"(, "post_processor": {"type": "Odd"}})"),
              ": the post-processor 'Odd' is not computed");
    fs::remove(path);
    const Result<TextTokenizer> none = TextTokenizer::open(path);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().text.find("is not there: give token numbers with --tokens"), std::string::npos);
}

}  // namespace
}  // namespace fovea
