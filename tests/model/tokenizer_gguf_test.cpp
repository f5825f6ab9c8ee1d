// Tokenizers of GGUF files compared with llama.cpp's source (src/llama-vocab.cpp): splits by name, defaults
// of keys, and keys that change tokens.
#include "tokenizer/gguf_splits.hpp"
#include "tokenizer/split_pattern.hpp"
#include "tokenizer/text_steps.hpp"

#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace fovea {
namespace {

// A GGUF file without tensors.
class GgufWriter {
  public:
    GgufWriter& text(std::string_view key, std::string_view value) { return begin(key, 8).put_text(value); }
    GgufWriter& whole(std::string_view key, uint32_t value) { return begin(key, 4).put(value); }
    GgufWriter& truth(std::string_view key, bool value) { return begin(key, 7).put(uint8_t(value)); }
    GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
        begin(key, 9).put(uint32_t{8}).put(uint64_t{values.size()});
        for (const std::string& value : values) put_text(value);
        return *this;
    }
    GgufWriter& kinds(const std::vector<int32_t>& values) {
        return list("tokenizer.ggml.token_type", 5, values);
    }
    GgufWriter& scores(const std::vector<float>& values) { return list("tokenizer.ggml.scores", 6, values); }

    Result<TextTokenizer> open() const {
        std::string file = "GGUF";
        const auto add = [&](auto value) {
            file.append(reinterpret_cast<const char*>(&value), sizeof value);
        };
        add(uint32_t{3}), add(uint64_t{0}), add(keys_);
        file += bytes_;
        file.resize((file.size() + 31) / 32 * 32);
        const Result<GgufFile> parsed = parse_gguf(std::as_bytes(std::span(file)));
        if (!parsed) return parsed.error();
        return TextTokenizer::parse(*parsed);
    }

  private:
    GgufWriter& begin(std::string_view key, uint32_t type) {
        ++keys_;
        return put_text(key).put(type);
    }
    template <class T>
    GgufWriter& put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    GgufWriter& put_text(std::string_view value) {
        put(uint64_t{value.size()});
        bytes_ += value;
        return *this;
    }
    template <class T>
    GgufWriter& list(std::string_view key, uint32_t type, const std::vector<T>& values) {
        begin(key, 9).put(type).put(uint64_t{values.size()});
        for (const T value : values) put(value);
        return *this;
    }
    std::string bytes_;
    uint64_t keys_ = 0;
};

// The IDs of a text with spaces between, or why not.
std::string ids(const GgufWriter& file, std::string_view text) {
    const Result<TextTokenizer> made = file.open();
    if (!made) return made.error().text;
    const Result<std::vector<uint32_t>> all = made->encode(text);
    if (!all) return all.error().text;
    std::string out;
    for (const uint32_t id : *all) out += (out.empty() ? "" : " ") + std::to_string(id);
    return out;
}

// The pieces of a text between bars.
std::string pieces(std::string_view name, std::string_view text) {
    const GgufSplit* split = gguf_split(name);
    if (!split) return "unknown";
    std::vector<std::string> all = {std::string(text)};
    for (const std::string_view pattern : split->patterns) {
        if (pattern.empty()) continue;
        const Result<SplitPattern> made = SplitPattern::compile(pattern);
        if (!made) return made.error().text;
        std::vector<std::string> next;
        for (const std::string& piece : all)
            made->split(piece, [&](size_t begin, size_t end, bool) {
                if (end > begin) next.push_back(piece.substr(begin, end - begin));
            });
        all = std::move(next);
    }
    std::string out;
    for (const std::string& piece : all) out += "|" + piece;
    return out + (split->whole_words ? "| whole" : "|") + (split->begins ? " begins" : "");
}

TEST(GgufTokenizers, split_by_the_names_of_llama_cpp) {
    constexpr const char* kText = "we'RE 12345 ABcd!?\n\n e\xcc\x81,\xe6\x9d\xb1\xe4\xba\xac  x";
    const std::pair<const char*, const char*> kExpected[] = {
        {"default",
         "|we|'|RE| |123|45| ABcd|!?|\n\n| e|\xcc\x81"
         "|,|東京| | x|"},
        {"gpt-2",
         "|we|'|RE| 12345| ABcd|!?|\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"llama-bpe",
         "|we|'RE| |123|45| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x| whole begins"},
        {"dbrx",
         "|we|'RE| |123|45| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"qwen2",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"starcoder",
         "|we|'|RE| |1|2|3|4|5| ABcd|!?|\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"falcon",
         "|we|'|RE| |123|45| ABcd|!?|\n\n| e|\xcc\x81"
         "|,|東京| | x|"},
        {"deepseek-llm",
         "|we|'|RE| |12345| ABcd|!?|\n|\n| e|\xcc\x81"
         "|,|東京| | x|"},
        {"deepseek-coder",
         "|we|'|RE| |1|2|3|4|5| ABcd|!?|\n|\n| e|\xcc\x81"
         "|,|東京| | x|"},
        {"deepseek-v3",
         "|we|'RE| |123|45| ABcd|!?\n\n| e\xcc\x81"
         "|,|東京| | x|"},
        {"spark2_5",
         "|we|'RE| |1|2|3|4|5| ABcd|!?|\n|\n| e\xcc\x81"
         "|,|東京| | x|"},
        {"youtu",
         "|we'RE| |1|2|3|4|5| ABcd|!?\n\n| e\xcc\x81"
         "|,|東京| | x| whole"},
        {"qwen35",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n\n| e\xcc\x81"
         "|,東京| | x|"},
        {"bloom",
         "|we'RE| 12345| ABcd|!?\n\n| e\xcc\x81"
         "|,|東京| | x|"},
        {"viking",
         "|we'RE| |1|2|3|4|5| ABcd|!?\n\n| e\xcc\x81"
         "|,|東京| | x|"},
        {"tekken",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x| whole begins"},
        {"chameleon",
         "|we|'|RE| |1|2|3|4|5| ABcd|!|?|\n|\n| e|\xcc\x81"
         "|,|東京|  |x| begins"},
        {"gpt-4o",
         "|we'RE| |123|45| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"granite-embed-multi-97m",
         "|we'RE| |123|45| ABcd|!?\n\n| e\xcc\x81"
         "|,東京| | x| whole"},
        {"tiny_aya",
         "|we'RE| |12|345| ABcd|!?\n\n| e\xcc\x81"
         "|,東京| | x|"},
        {"superbpe",
         "|we'RE |12|345| ABcd!?\n\n e\xcc\x81"
         ",東京  x|"},
        {"bailingmoe",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"seed-coder",
         "|we|'RE| |1|2|3|4|5| ABcd|!?|\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"ufakzeka",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"laguna",
         "|we|'RE| |1|2|3|4|5| ABcd|!?|\n\n| e|\xcc\x81"
         ",|東京| | x|"},
        {"exaone-moe",
         "|we|'RE| |1|2|3|4|5| ABcd|!?\n|\n| e\xcc\x81"
         "|,東京| | x|"},
        {"minicpm5",
         "|we|'RE| |123|45| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x| whole"},
        {"jais-2",
         "|we|'RE| |123|45| ABcd|!?\n\n| e|\xcc\x81"
         ",|東京| | x|"},
    };
    for (const auto& [name, expected] : kExpected) EXPECT_EQ(pieces(name, kText), expected) << name;
    // Other names of the same rows.
    constexpr std::pair<const char*, const char*> kSame[] = {{"smaug-bpe", "dbrx"},
                                                             {"glm4", "dbrx"},
                                                             {"chatglm-bpe", "dbrx"},
                                                             {"llama3", "llama-bpe"},
                                                             {"falcon3", "llama-bpe"},
                                                             {"pixtral", "llama-bpe"},
                                                             {"lfm2", "llama-bpe"},
                                                             {"phi-2", "gpt-2"},
                                                             {"mpt", "gpt-2"},
                                                             {"olmo", "gpt-2"},
                                                             {"jais", "gpt-2"},
                                                             {"roberta-bpe", "gpt-2"},
                                                             {"jina-v2-code", "gpt-2"},
                                                             {"modern-bert", "gpt-2"},
                                                             {"exaone4", "gpt-2"},
                                                             {"gigachat", "gpt-2"},
                                                             {"stablelm2", "qwen2"},
                                                             {"megrez", "qwen2"},
                                                             {"hunyuan", "qwen2"},
                                                             {"grok-2", "qwen2"},
                                                             {"deepseek-r1-qwen", "qwen2"},
                                                             {"refact", "starcoder"},
                                                             {"command-r", "starcoder"},
                                                             {"smollm", "starcoder"},
                                                             {"codeshell", "starcoder"},
                                                             {"exaone", "starcoder"},
                                                             {"minerva-7b", "starcoder"},
                                                             {"hunyuan-dense", "deepseek-v3"},
                                                             {"joyai-llm", "deepseek-v3"},
                                                             {"llama4", "gpt-4o"},
                                                             {"kanana2", "gpt-4o"},
                                                             {"minimax-m2", "gpt-4o"},
                                                             {"poro-chat", "bloom"},
                                                             {"gpt3-finnish", "bloom"},
                                                             {"llada-moe", "bailingmoe"}};
    for (const auto& [name, row] : kSame) EXPECT_EQ(gguf_split(name), gguf_split(row)) << name;
    for (const char* name : {"", " ", "gpt", "kimi-k2", "afmoe", "gemma4"})
        EXPECT_EQ(gguf_split(name), nullptr) << name;
}

GgufWriter bytes_file() {
    std::vector<std::string> tokens;
    for (unsigned b = 0; b < 256; ++b) tokens.emplace_back(byte_character(static_cast<unsigned char>(b)));
    tokens.insert(tokens.end(), {"12", "34", "123", "<s>", "<unk>"});
    GgufWriter file;
    file.text("tokenizer.ggml.model", "gpt2")
        .texts("tokenizer.ggml.tokens", tokens)
        .texts("tokenizer.ggml.merges", {"1 2", "3 4", "12 3"});
    std::vector<int32_t> kinds(tokens.size(), 1);
    kinds[259] = 3, kinds[260] = 2;
    return file.kinds(kinds);
}

TEST(GgufTokenizers, have_the_defaults_of_llama_cpp) {
    constexpr const char *kPre = "tokenizer.ggml.pre", *kBos = "tokenizer.ggml.bos_token_id";
    EXPECT_EQ(ids(bytes_file().text(kPre, "dbrx"), "1234"), "258 52");
    EXPECT_EQ(ids(bytes_file().text(kPre, "gpt-2"), "1234"), "256 257");
    EXPECT_EQ(ids(bytes_file(), "1234"), "258 52");  // `default` cuts three digits
    // The BOS token is 11 if the key is missing or not an ID; only some splits add one.
    EXPECT_EQ(ids(bytes_file().text(kPre, "llama-bpe"), "a"), "11 97");
    EXPECT_EQ(ids(bytes_file().text(kPre, "llama-bpe").whole(kBos, 259), "a"), "259 97");
    EXPECT_EQ(ids(bytes_file().text(kPre, "llama-bpe").whole(kBos, 1u << 31), "a"), "11 97");
    EXPECT_EQ(ids(bytes_file().text(kPre, "smaug-bpe"), "a"), "97");
    EXPECT_EQ(ids(bytes_file().text(kPre, "tekken"), "a"), "11 97");
    EXPECT_EQ(ids(bytes_file().text(kPre, "gpt-2").truth("tokenizer.ggml.add_eos_token", true), "a"),
              "97 11");
    EXPECT_EQ(
        ids(bytes_file().text(kPre, "glm4").truth("tokenizer.ggml.add_bos_token", true), "a"),
        "the tokenizer adds a token to its inputs, but tokenizer.ggml.bos_token_id is not an ID of the 261 "
        "tokens");
    // Special tokens typed in a text are tokens, the unknown one too.
    EXPECT_EQ(ids(bytes_file(), "a<unk><s>b"), "97 260 259 98");
}

GgufWriter pieces_file(const char* model, std::vector<std::string> more, std::vector<int32_t> kinds = {}) {
    more.insert(more.begin(), {"<unk>", "<s>", "</s>"});
    kinds.insert(kinds.begin(), {2, 3, 3});
    kinds.resize(more.size(), 1);
    std::vector<float> scores(more.size());
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = -float(i);
    GgufWriter file;
    return file.text("tokenizer.ggml.model", model)
        .texts("tokenizer.ggml.tokens", more)
        .kinds(kinds)
        .scores(scores);
}

TEST(GgufTokenizers, read_every_key_that_changes_tokens) {
    const auto key = [](const char* name) { return std::string("tokenizer.ggml.") + name; };
    const std::vector<std::string> letters = {"\xe2\x96\x81", "a", "b",
                                              "\xe2\x96\x81"
                                              "a",
                                              "a\xe2\x96\x81"};
    // llama: BOS 1, unknown 0.
    EXPECT_EQ(ids(pieces_file("llama", letters), "a ab"), "1 6 6 5");
    EXPECT_EQ(ids(pieces_file("llama", letters).truth(key("add_space_prefix"), false), "a<unk>"), "1 4 0");
    // t5: EOS 1; no space before unless asked for.
    EXPECT_EQ(ids(pieces_file("t5", letters), "  a  b "), "3 6 3 3 5 3 1");
    EXPECT_EQ(ids(pieces_file("t5", letters).truth(key("add_space_prefix"), true), "a b"), "6 3 5 1");
    EXPECT_EQ(ids(pieces_file("t5", letters).truth(key("remove_extra_whitespaces"), true), "  a   b  "),
              "6 3 5 1");
    EXPECT_EQ(ids(pieces_file("t5", letters)
                      .truth(key("add_space_prefix"), true)
                      .truth(key("treat_whitespace_as_suffix"), true),
                  "a"),
              "7 1");
    EXPECT_EQ(ids(pieces_file("t5", {" ", "a"}).truth(key("escape_whitespaces"), false), "a a"), "4 3 4 1");
    // bert: lower case, and without accents, unless told otherwise.
    const std::vector<std::string> words = {
        "\xe2\x96\x81"
        "Ab",
        "\xe2\x96\x81"
        "ab",
        "\xe2\x96\x81\xc3\xa9",
        "\xe2\x96\x81"
        "e"};
    const auto bert = [&] {
        return pieces_file("bert", words)
            .whole(key("bos_token_id"), 1)
            .whole(key("seperator_token_id"), 2)
            .whole(key("unknown_token_id"), 0);
    };
    EXPECT_EQ(ids(bert(), "Ab \xc3\xa9"), "1 4 6 2");
    EXPECT_EQ(ids(bert().truth(key("normalizer.lowercase"), false), "Ab \xc3\xa9"), "1 3 5 2");
    EXPECT_EQ(ids(bert().truth(key("normalizer.strip_accents"), false), "Ab \xc3\xa9"), "1 4 5 2");
    // Unknown keys are rejected by name; token IDs change nothing.
    EXPECT_EQ(ids(pieces_file("llama", letters).truth(key("odd"), true), "a"),
              "the key tokenizer.ggml.odd is not supported");
    EXPECT_EQ(ids(pieces_file("llama", letters).whole(key("odd_token_id"), 3), "a"), "1 6");
    EXPECT_EQ(ids(pieces_file("llama", letters).truth(key("remove_extra_whitespaces"), true), "a"),
              "tokenizer.ggml.remove_extra_whitespaces is true; it is only supported for t5");
}

TEST(GgufTokenizers, find_special_tokens_as_llama_cpp) {
    // The longest first, wherever it begins.
    EXPECT_EQ(ids(pieces_file("llama", {"a", "b", "c", "d", "ab", "bcd"}, {1, 1, 1, 1, 4, 4})
                      .truth("tokenizer.ggml.add_space_prefix", false),
                  "abcdab"),
              "1 3 8 7");
    // Some texts are control tokens whatever the file declares; Phi-3's take the white space after them.
    EXPECT_EQ(ids(pieces_file("llama", {"a", "<|end|>", "\xe2\x96\x81"})
                      .truth("tokenizer.ggml.add_space_prefix", false)
                      .text("general.name", "Phi-3 mini"),
                  "a<|end|> \na"),
              "1 3 4 3");
}

}  // namespace
}  // namespace fovea
