// Tokenizers against reference libraries: tokenizers/NAME.json and NAME.gguf with what they gave for many
// texts, see scripts/make_tokenizers.py.
#include "model/random_texts.hpp"
#include "tokenizer/token_models.hpp"

#include <fovea/files/json.hpp>
#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Result<TextTokenizer> open_file(const fs::path& path) {
    if (path.extension() != ".gguf") return TextTokenizer::open(path);
    const Result<GgufFile> file = load_gguf(path);
    if (!file) return file.error();
    return TextTokenizer::parse(*file);
}

// The characters that [begin, end) touches: the references count characters.
std::pair<size_t, size_t> whole_characters(std::string_view text, size_t begin, size_t end) {
    const auto inside = [&](size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
    };
    while (inside(begin)) --begin;
    while (inside(end)) ++end;
    return {begin, end};
}

// The properties of a tokenizer that are compared in addition to its IDs.
struct Compared {
    const char* file;
    const char* expected;
    // For composed or joined text the library gives only the place of its first or last character.
    bool same_places = true;
    bool texts = true;
    bool long_words = true;  // llama.cpp has no limit for the length of a word
};

void PrintTo(const Compared& c, std::ostream* out) { *out << c.file; }

class Tokenizers : public testing::TestWithParam<Compared> {};

TEST_P(Tokenizers, give_the_tokens_places_and_texts_of_the_reference) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const fs::path folder = FOVEA_TOKENIZERS;
    const Result<TextTokenizer> tokenizer = open_file(folder / GetParam().file);
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    const Result<JsonValue> expected =
        parse_json(text_of(folder / (std::string(GetParam().expected) + ".expected.json")));
    ASSERT_TRUE(expected) << expected.error().text;
    size_t compared = 0;
    for (const JsonValue& row : (*expected)["texts"].items()) {
        const std::string_view text = row.items()[0].text();
        if (!GetParam().long_words && text.size() > 100 && text.find(' ') == std::string_view::npos) continue;
        const std::string shown = json_string(text);
        std::vector<uint32_t> numbers;
        for (const JsonValue& number : row.items()[1].items()) numbers.push_back(uint32_t(number.number()));
        const Result<std::vector<SplitToken>> tokens = tokenizer->tokens(text);
        ASSERT_TRUE(tokens) << tokens.error().text;
        std::vector<uint32_t> ids;
        for (const SplitToken& token : *tokens) ids.push_back(token.id);
        EXPECT_EQ(ids, numbers) << shown;
        const auto& places = row.items()[3].items();
        for (size_t i = 0; ids == numbers && i < ids.size() && !places.empty(); ++i) {
            const SplitToken& token = (*tokens)[i];
            const auto first = size_t(places[2 * i].number()), last = size_t(places[2 * i + 1].number());
            // Tokens without bytes here have their neighbor there.
            if (token.begin == token.end) continue;
            const auto [begin, end] = whole_characters(text, token.begin, token.end);
            if (GetParam().same_places) {
                EXPECT_EQ(std::pair(begin, end), std::pair(first, last)) << shown << ", token " << i;
            } else {
                EXPECT_LE(begin, first) << shown << ", token " << i;
                EXPECT_GE(end, last) << shown << ", token " << i;
            }
        }
        size_t before = 0, began = 0;
        for (const SplitToken& token : *tokens) {
            EXPECT_LE(token.begin, token.end) << shown;
            EXPECT_LE(token.end, text.size()) << shown;
            EXPECT_GE(token.end, before) << shown;
            EXPECT_GE(token.begin, began) << shown;
            before = token.end, began = token.begin;
        }
        // Tokens that end inside a character are the same bytes here, and U+FFFD there.
        const std::string_view decoded = row.items()[2].text();
        if (GetParam().texts && decoded.find("\xef\xbf\xbd") == std::string_view::npos) {
            EXPECT_EQ(tokenizer->decode(numbers), decoded) << shown;
        }
        ++compared;
    }
    EXPECT_GE(compared, 150u);
}

INSTANTIATE_TEST_SUITE_P(
    Each, Tokenizers,
    testing::Values(Compared{"gpt2.json", "gpt2"}, Compared{"llama3.json", "llama3"},
                    Compared{"qwen2.json", "qwen2", false}, Compared{"llama2.json", "llama2"},
                    Compared{"gemma.json", "gemma"}, Compared{"bert.json", "bert"},
                    Compared{"bert_cased.json", "bert_cased"}, Compared{"unigram.json", "unigram", false},
                    Compared{"unigram_first.json", "unigram_first", false}, Compared{"pieces.json", "pieces"},
                    Compared{"gpt2.gguf", "gpt2"}, Compared{"llama3.gguf", "llama3"},
                    Compared{"bert.gguf", "bert", true, false, false},
                    Compared{"llama_spm.gguf", "llama_spm", false, false}),
    [](const auto& one) {
        std::string name = one.param.file;
        std::replace(name.begin(), name.end(), '.', '_');
        return name;
    });

// 10,000 texts of all scripts against hashes of the reference's tokens; a hundred texts are named that hold
// the first difference.
class ManyTexts : public testing::TestWithParam<const char*> {};

TEST_P(ManyTexts, give_the_tokens_of_the_reference) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const fs::path folder = FOVEA_TOKENIZERS;
    const Result<TextTokenizer> tokenizer = open_file(folder / (std::string(GetParam()) + ".json"));
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    const Result<JsonValue> all = parse_json(text_of(folder / "hashes.json"));
    ASSERT_TRUE(all);
    const auto& hashes = (*all)[GetParam()].items();
    ASSERT_EQ(hashes.size(), test::kRandomTexts / test::kTextsOfAHash);
    for (uint64_t block = 0; block < hashes.size(); ++block) {
        uint64_t hash = 0xcbf29ce484222325u;
        const auto add = [&](uint32_t number) {
            for (int shift = 0; shift < 32; shift += 8)
                hash = (hash ^ (number >> shift & 0xffu)) * 0x100000001b3u;
        };
        for (uint64_t n = 0; n < test::kTextsOfAHash; ++n) {
            const Result<std::vector<SplitToken>> tokens =
                tokenizer->tokens(test::random_text(block * test::kTextsOfAHash + n));
            ASSERT_TRUE(tokens) << tokens.error().text;
            add(uint32_t(tokens->size()));
            for (const SplitToken& token : *tokens) add(token.id);
        }
        char shown[20];
        snprintf(shown, sizeof shown, "%016llx", static_cast<unsigned long long>(hash));
        ASSERT_EQ(shown, hashes[block].text())
            << "texts " << block * test::kTextsOfAHash << " and the 99 behind it";
    }
}

INSTANTIATE_TEST_SUITE_P(Each, ManyTexts,
                         testing::Values("gpt2", "llama3", "qwen2", "llama2", "gemma", "bert", "bert_cased",
                                         "unigram", "unigram_first", "pieces"),
                         [](const auto& one) { return std::string(one.param); });

// Tokenizers whose tokens contain every byte of the text.
class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, every_text_comes_back_and_its_tokens_follow_each_other_without_a_gap) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const fs::path folder = FOVEA_TOKENIZERS;
    const Result<TextTokenizer> tokenizer = open_file(folder / GetParam());
    ASSERT_TRUE(tokenizer) << tokenizer.error().text;
    for (uint64_t n = 0; n < test::kRandomTexts; ++n) {
        const std::string text = test::random_text(n);
        if (text.find('<') != std::string_view::npos) continue;  // special tokens decode to nothing
        const Result<std::vector<SplitToken>> tokens = tokenizer->tokens(text);
        ASSERT_TRUE(tokens) << tokens.error().text;
        std::vector<uint32_t> ids;
        size_t done = 0;
        for (const SplitToken& token : *tokens) {
            ids.push_back(token.id);
            EXPECT_EQ(token.begin, done) << json_string(text);
            done = token.end;
        }
        EXPECT_EQ(done, text.size()) << json_string(text);
        EXPECT_EQ(tokenizer->decode(ids), text);
    }
}

INSTANTIATE_TEST_SUITE_P(Each, RoundTrip,
                         testing::Values("gpt2.json", "llama3.json", "llama2.json", "gemma.json", "gpt2.gguf",
                                         "llama3.gguf", "llama_spm.gguf"),
                         [](const auto& one) {
                             std::string name = one.param;
                             std::replace(name.begin(), name.end(), '.', '_');
                             return name;
                         });

TEST(TextTokenizer, tells_the_bytes_of_each_token) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const Result<TextTokenizer> bert = TextTokenizer::open(fs::path(FOVEA_TOKENIZERS) / "bert.json");
    ASSERT_TRUE(bert);
    const std::string text = "The CAFÉ 東x";
    const Result<std::vector<SplitToken>> tokens = bert->tokens(text);
    ASSERT_TRUE(tokens);
    std::string pieces;
    for (const SplitToken& t : *tokens)
        pieces += std::string(bert->piece(t.id)) + "=" + text.substr(t.begin, t.end - t.begin) + "|";
    EXPECT_EQ(pieces, "[CLS]=|the=The|cafe=CAFÉ|[UNK]=東|x=x|[SEP]=|");
}

TEST(TextTokenizer, refuses_texts_that_are_no_utf8_and_says_where) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const Result<TextTokenizer> gpt2 = TextTokenizer::open(fs::path(FOVEA_TOKENIZERS) / "gpt2.json");
    ASSERT_TRUE(gpt2);
    for (const char* text : {"ab\xff", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xe6\x9d"}) {
        const Result<std::vector<uint32_t>> ids = gpt2->encode(text);
        ASSERT_FALSE(ids);
        EXPECT_EQ(ids.error().text, "the text is not valid UTF-8 from its byte 2 on");
    }
}

TEST(TextTokenizer, refuses_what_it_cannot_compute_by_name) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const auto refused = [&](const std::string& json) {
        const Result<TextTokenizer> made = TextTokenizer::parse(json);
        return made ? std::string("nothing") : made.error().text;
    };
    const std::string model =
        R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";
    EXPECT_EQ(refused("{" + model + "}"), "nothing");
    EXPECT_EQ(refused("{"), "byte 1: a key in quotes expected");
    EXPECT_EQ(refused(R"({"model": {"type": "Odd"}})"),
              "the tokenizer has the type 'Odd'; BPE, Unigram, WordPiece and WordLevel are supported");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {}}})"),
              "the tokenizer has no vocabulary; model.vocab must have at least one token");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": -1}}})"),
              "token 'a' must have an ID of its own, from 0 to 268435455");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
              "merge 0 joins tokens that are not in the vocabulary");
    EXPECT_EQ(refused("{" + model + R"(, "normalizer": {"type": "Odd"}})"),
              "the step 'Odd' is not supported");
    EXPECT_EQ(refused("{" + model + R"(, "decoder": {"type": "Odd"}})"),
              "the tokenizer's decoder 'Odd' is not supported");
    EXPECT_EQ(refused("{" + model + R"(, "version": "2.0"})"),
              "the tokenizer's version is '2.0'; only 1.0 is supported");
    EXPECT_EQ(refused(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}}})"),
              "the tokenizer's dropout is 0.1, which draws tokens at random; only 0 is supported");
    EXPECT_EQ(
        refused(
            "{" + model +
            R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}})"),
        "the pattern has '(' without ')' at its byte 0");
    EXPECT_EQ(refused("{" + model + R"(, "post_processor": {"type": "Odd"}})"),
              "the post-processor 'Odd' is not supported");
    const fs::path path = fs::path(testing::TempDir()) / "fovea_no_tokenizer.json";
    const Result<TextTokenizer> none = TextTokenizer::open(path);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().text.ends_with("fovea_no_tokenizer.json is missing")) << none.error().text;
}

// Configurations of compare_tokenizers.mjs (--write) with what the library gave: texts, IDs, places in bytes.
// Where each word is one token, its place tells where the text was cut.
TEST(RandomTokenizers, give_the_tokens_of_the_reference) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const std::string file = text_of(fs::path(FOVEA_TOKENIZERS) / "random.jsonl");
    size_t configurations = 0, patterns = 0;
    for (size_t at = 0; at < file.size();) {
        const size_t end = file.find('\n', at);
        const Result<JsonValue> row = parse_json(std::string_view(file).substr(at, end - at), 64);
        ASSERT_TRUE(row) << row.error().text;
        at = end + 1;
        const std::string_view json = row->items()[0].text();
        const Result<TextTokenizer> made = TextTokenizer::parse(json);
        ASSERT_TRUE(made) << made.error().text << "\n" << json;
        const bool has_places = json.find(R"("vocab":{"<unk>":0})") != std::string_view::npos;
        ++configurations, patterns += has_places;
        for (const JsonValue& one : row->items()[1].items()) {
            const Result<std::vector<SplitToken>> tokens = made->tokens(one.items()[0].text());
            ASSERT_TRUE(tokens) << tokens.error().text;
            std::string found, expected;
            for (const SplitToken& t : *tokens) {
                found += std::to_string(t.id) + " ";
                if (has_places) found += std::to_string(t.begin) + ":" + std::to_string(t.end) + " ";
            }
            const auto &ids = one.items()[1].items(), &places = one.items()[2].items();
            for (size_t i = 0; i < ids.size(); ++i) {
                expected += std::string(ids[i].scalar_text()) + " ";
                if (has_places)
                    expected += std::string(places[2 * i].scalar_text()) + ":" +
                                std::string(places[2 * i + 1].scalar_text()) + " ";
            }
            EXPECT_EQ(found, expected) << one.items()[0].text() << "\n" << json;
            if (one.items()[3].kind() == JsonValue::Kind::text) {
                std::vector<uint32_t> numbers;
                for (const JsonValue& id : ids) numbers.push_back(uint32_t(id.number()));
                EXPECT_EQ(made->decode(numbers), one.items()[3].text()) << json;
            }
        }
    }
    EXPECT_GE(configurations, 140u);
    EXPECT_GE(patterns, 100u);
}

// transformers makes the frame anew where tokenizer_config.json has a key of it.
TEST(TextTokenizer, takes_bos_and_eos_from_tokenizer_config) {
    const std::string json =
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2}, "merges": []},
        "post_processor": {"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]},
        "added_tokens": [{"id": 3, "content": "<e>", "special": true}]})";
    const auto tokens = [&](std::string_view config) {
        const Result<TextTokenizer> made = TextTokenizer::parse(json, config);
        return made ? made->encode("a").value() : std::vector<uint32_t>{99};
    };
    using Ids = std::vector<uint32_t>;
    EXPECT_EQ(tokens(""), (Ids{1, 0, 2}));
    EXPECT_EQ(tokens(R"({"bos_token": "<s>"})"), (Ids{1, 0, 2}));
    EXPECT_EQ(
        tokens(R"({"add_bos_token": true, "add_eos_token": false, "bos_token": "<s>", "eos_token": "</s>"})"),
        (Ids{1, 0}));
    EXPECT_EQ(tokens(R"({"add_eos_token": true, "eos_token": {"content": "<e>"}})"), (Ids{0, 3}));
    EXPECT_EQ(tokens(R"({"add_bos_token": true})"), (Ids{0}));
    EXPECT_EQ(tokens(R"({"add_bos_token": true, "bos_token": "<b>"})"), (Ids{99}));
}

TEST(TextTokenizer, of_two_unigram_rows_with_one_text_the_last_counts) {
    for (const char* added : {"", R"({"id": 9, "content": "a"})"}) {
        const Result<TextTokenizer> made = TextTokenizer::parse(
            R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["b", -2], ["a", -3]]},)"
            R"("added_tokens": [)" +
            std::string(added) + "]}");
        ASSERT_TRUE(made) << made.error().text;
        EXPECT_EQ(made->encode("a").value(), std::vector<uint32_t>{3}) << added;
    }
}

// The work of a long word grows with its length, not with a power of it: a cubic or quadratic model takes
// hours here.
TEST(TextTokenizer, is_linear_in_one_long_word) {
    constexpr size_t kLength = 2'000'000;
    const std::string word(kLength, 'a');
    for (
        const char* model :
        {R"("WordPiece", "unk_token": "b", "max_input_chars_per_word": 4000000000, "vocab": {"a": 0, "##a": 1, "##aaa": 2, "b": 3})",
         R"("Unigram", "unk_id": 0, "vocab": [["b", 0], ["a", -1], ["aaa", -2]])",
         R"("BPE", "vocab": {"a": 0, "aa": 1, "aaaa": 2}, "merges": ["a a", "aa aa"])",
         R"("WordLevel", "unk_token": "b", "vocab": {"b": 0})"}) {
        const Result<TextTokenizer> made =
            TextTokenizer::parse(R"({"model": {"type": )" + std::string(model) + "}}");
        ASSERT_TRUE(made) << made.error().text;
        const Result<std::vector<uint32_t>> ids = made->encode(word);
        ASSERT_TRUE(ids) << ids.error().text;
        EXPECT_GE(ids->size(), 1u);
    }
}

// IDs whose hashes fell into one place took minutes: the time grew with the square of the file.
TEST(TextTokenizer, is_not_flooded_by_ids_and_merges) {
    std::string vocab, merges;
    constexpr uint64_t kStride = 1'046'527;  // a number of places that a table of libstdc++ may have
    for (uint64_t i = 0; i < 256; ++i)
        vocab += (i ? ",\"t" : "\"t") + std::to_string(i) + "\":" + std::to_string(i * kStride);
    for (uint64_t i = 0; i < 255; ++i)
        vocab += ",\"t" + std::to_string(i) + "t" + std::to_string(i + 1) +
                 "\":" + std::to_string(i * kStride + 1),
            merges += (i ? ",\"t" : "\"t") + std::to_string(i) + " t" + std::to_string(i + 1) + "\"";
    const Result<TextTokenizer> made = TextTokenizer::parse(R"({"model": {"type": "BPE", "vocab": {)" +
                                                            vocab + R"(}, "merges": [)" + merges + "]}}");
    EXPECT_TRUE(made) << made.error().text;
    // Keys that a plain hash puts into one place are spread.
    std::set<size_t> places;
    for (uint64_t i = 0; i < 1000; ++i) places.insert(SeededHash()(i * kStride) % kStride);
    EXPECT_GE(places.size(), 990u);
}

}  // namespace
}  // namespace fovea
