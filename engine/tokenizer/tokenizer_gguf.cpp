// Tokenizers inside GGUF files: the keys tokenizer.ggml.*, as llama.cpp's converter writes them.
#include <fovea/files.hpp>

#include <algorithm>
#include <array>

#include "files/utf8.hpp"
#include "tokenizer/tokenizer_impl.hpp"

namespace fovea {
namespace {

using Impl = TextTokenizer::Impl;

// tokenizer.ggml.token_type
enum class TokenKind { normal = 1, unknown = 2, control = 3, user = 4, unused = 5, byte = 6 };

// Splits into words by the names that tokenizer.ggml.pre gives them: patterns that are applied one after the
// other. A word that is a token as a whole is not merged where `whole_words` says so.
struct PreRow {
    std::array<std::string_view, 6> names;
    std::array<std::string_view, 2> patterns;
    bool whole_words = false;
};
constexpr std::string_view kLlama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr PreRow kPres[] = {
    {{"gpt-2", "phi-2", "mpt", "olmo", "dbrx", ""}, {kGpt2Pattern, ""}, false},
    {{"llama3", "llama-bpe", "llama-v3", "smaug-bpe", "falcon3", "pixtral"}, {kLlama3, ""}, true},
    {{"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", ""}, {kQwen2, ""}, false},
    {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone"},
     {R"(\p{N})", kGpt2Pattern},
     false}};

const PreRow* pre_row(std::string_view name) {
    for (const PreRow& row : kPres)
        for (const std::string_view known : row.names)
            if (!known.empty() && known == name) return &row;
    return nullptr;
}

class Reader {
  public:
    Reader(const GgufFile& file, Impl& out) : file_(file), out_(out) {}

    Result<void> read() {
        const std::string_view model = text("model");
        if (model.empty()) return broken_tokenizer("the file holds no tokenizer");
        if (Result<void> r = read_tokens(); !r) return r;
        Result<void> made;
        if (model == "gpt2")
            made = read_pairs();
        else if (model == "llama")
            made = read_scores();
        else if (model == "bert")
            made = read_word_pieces();
        else if (model == "t5")
            made = read_unigram();
        else
            return unknown_tokenizer("the file's tokenizer is of the kind '" + printable_name(model, 40) +
                                     "'; gpt2, llama, bert and t5 are computed");
        if (!made) return made;
        if (Result<void> r = read_added(); !r) return r;
        return read_ends(model);
    }

  private:
    const GgufValue* find(std::string_view key) const {
        return file_.find("tokenizer.ggml." + std::string(key));
    }
    std::string_view text(std::string_view key) const {
        const GgufValue* value = find(key);
        return value ? value->text().value_or(std::string_view()) : std::string_view();
    }
    bool truth(std::string_view key, bool otherwise) const {
        const GgufValue* value = find(key);
        return value ? value->truth().value_or(otherwise) : otherwise;
    }
    // kNoToken where the file has no such key.
    Result<uint32_t> token(std::string_view key) const {
        const GgufValue* value = find(key);
        if (!value) return kNoToken;
        const auto id = value->whole();
        // Files of models without such a token have the largest number.
        if (id && *id == UINT32_MAX) return kNoToken;
        if (!id || *id >= texts_.size())
            return broken_tokenizer("tokenizer.ggml." + std::string(key) + " is no number of the " +
                                    std::to_string(texts_.size()) + " tokens");
        return uint32_t(*id);
    }
    Result<std::vector<double>> numbers(std::string_view key) const {
        const GgufValue* value = find(key);
        if (!value) return std::vector<double>();
        auto all = value->numbers();
        if (!all || all->size() != texts_.size())
            return broken_tokenizer("tokenizer.ggml." + std::string(key) + " is no list of " +
                                    std::to_string(texts_.size()) + " numbers, one for each token");
        return std::move(*all);
    }
    TokenKind kind(size_t id) const {
        return id < kinds_.size() ? TokenKind(int(kinds_[id])) : TokenKind::normal;
    }

    Result<void> read_tokens();
    Result<void> put_tokens();
    Result<void> read_pairs();
    Result<void> read_scores();
    Result<void> read_word_pieces();
    Result<void> read_unigram();
    Result<void> read_added();
    Result<void> read_ends(std::string_view model);

    const GgufFile& file_;
    Impl& out_;
    std::vector<std::string> texts_;
    std::vector<double> kinds_;
};

Result<void> Reader::read_tokens() {
    const GgufValue* value = find("tokens");
    const auto texts = value ? value->texts() : std::nullopt;
    if (!texts || texts->empty()) return broken_tokenizer("tokenizer.ggml.tokens is no list of texts");
    for (size_t i = 0; i < texts->size(); ++i) {
        const std::string_view text = (*texts)[i];
        if (files::utf8_fault(text) != text.size())
            return broken_tokenizer("token " + std::to_string(i) + " is not valid UTF-8");
        texts_.emplace_back(text);
    }
    Result<std::vector<double>> kinds = numbers("token_type");
    if (!kinds) return kinds.error();
    kinds_ = std::move(*kinds);
    for (size_t i = 0; i < kinds_.size(); ++i)
        if (!(kinds_[i] >= 0) || kinds_[i] > 6)
            return broken_tokenizer("token " + std::to_string(i) + " is of none of the types 1 to 6");
    return {};
}

// Where several tokens have one text the first counts, as in llama.cpp; the others are there for decoding.
Result<void> Reader::put_tokens() {
    for (size_t i = 0; i < texts_.size(); ++i) out_.table->put(texts_[i], uint32_t(i));
    return {};
}

Result<void> Reader::read_pairs() {
    if (Result<void> r = put_tokens(); !r) return r;
    const std::string_view name = text("pre");
    const PreRow* row = pre_row(name.empty() ? "gpt-2" : name);
    if (!row)
        return unknown_tokenizer("the split into words '" + printable_name(name, 40) +
                                 "' of tokenizer.ggml.pre is not computed");
    for (const std::string_view pattern : row->patterns) {
        if (pattern.empty()) continue;
        Result<TextStep> made = pattern_splitter(pattern);
        if (!made) return made.error();
        out_.splitters.push_back(std::move(*made));
    }
    out_.splitters.push_back(byte_writer());
    out_.written = TokenText::bytes;
    const GgufValue* value = find("merges");
    const auto list = value ? value->texts() : std::nullopt;
    if (!list) return broken_tokenizer("tokenizer.ggml.merges is no list of texts");
    PairMerges merges;
    uint32_t rank = 0;
    for (const std::string_view merge : *list) {
        // The first text may begin with a space's character, never with a space.
        const size_t space = merge.find(' ', 1);
        const std::string first(merge.substr(0, space)),
            second(space == std::string_view::npos ? "" : merge.substr(space + 1));
        const uint32_t a = out_.table->id_of(first), b = out_.table->id_of(second),
                       both = out_.table->id_of(first + second);
        if (a == kNoToken || b == kNoToken || both == kNoToken)
            return broken_tokenizer("merge " + std::to_string(rank) +
                                    " is of tokens that the vocabulary lacks");
        merges.emplace(uint64_t{a} << 32 | b, PairMerge{rank++, both});
    }
    out_.model = make_pair_model(out_.table, std::move(merges), {}, row->whole_words);
    return {};
}

Result<void> Reader::read_scores() {
    if (Result<void> r = put_tokens(); !r) return r;
    const Result<std::vector<double>> scores = numbers("scores");
    if (!scores) return scores.error();
    if (scores->empty()) return broken_tokenizer("tokenizer.ggml.scores is not there");
    std::unordered_map<uint32_t, float> by_id;
    for (size_t i = 0; i < scores->size(); ++i) by_id.emplace(uint32_t(i), float((*scores)[i]));
    out_.space_before = truth("add_space_prefix", true);
    if (out_.space_before) out_.normalizers.push_back(prepender(" "));
    out_.normalizers.push_back(replacer(" ", std::string(kSpaceMark)));
    const Result<uint32_t> unknown = token("unknown_token_id");
    if (!unknown) return unknown.error();
    out_.byte_fallback = true;
    out_.model = make_score_model(out_.table, std::move(by_id), {*unknown, false, true});
    return {};
}

// The converter marks beginnings of words in place of the pieces behind them.
Result<void> Reader::read_word_pieces() {
    for (size_t i = 0; i < texts_.size(); ++i) {
        std::string& text = texts_[i];
        if (kind(i) == TokenKind::normal || kind(i) == TokenKind::unused) {
            if (text.starts_with(kSpaceMark))
                text.erase(0, kSpaceMark.size());
            else
                text.insert(0, out_.piece_prefix);
        }
        out_.table->put(text, uint32_t(i));
    }
    const Result<uint32_t> unknown = token("unknown_token_id");
    if (!unknown) return unknown.error();
    // llama.cpp, for which the converter writes, always lowers the case.
    out_.normalizers.push_back(bert_normalizer({}));
    out_.splitters.push_back(bert_splitter());
    out_.written = TokenText::word_pieces;
    out_.model = make_word_piece_model(out_.table, out_.piece_prefix, 100, *unknown);
    return {};
}

Result<void> Reader::read_unigram() {
    const Result<std::vector<double>> scores = numbers("scores");
    if (!scores) return scores.error();
    if (scores->empty()) return broken_tokenizer("tokenizer.ggml.scores is not there");
    if (Result<void> r = put_tokens(); !r) return r;
    std::unordered_map<uint32_t, double> by_id;
    for (size_t i = 0; i < scores->size(); ++i)
        if (kind(i) == TokenKind::normal || kind(i) == TokenKind::user)
            by_id.emplace(uint32_t(i), (*scores)[i]);
    if (by_id.empty()) return broken_tokenizer("the tokenizer has no token that a text may have");
    if (const GgufValue* map = find("precompiled_charsmap")) {
        if (!map->is_array || (map->type != GgufType::u8 && map->type != GgufType::i8))
            return broken_tokenizer("tokenizer.ggml.precompiled_charsmap is no list of bytes");
        std::vector<uint8_t> bytes;
        for (const std::byte b : map->bytes) bytes.push_back(std::to_integer<uint8_t>(b));
        Result<TextStep> made = precompiled_normalizer(std::move(bytes));
        if (!made) return made.error();
        out_.normalizers.push_back(std::move(*made));
    }
    out_.space_before = truth("add_space_prefix", true);
    if (out_.space_before) out_.normalizers.push_back(prepender(" "));
    out_.normalizers.push_back(replacer(" ", std::string(kSpaceMark)));
    const Result<uint32_t> unknown = token("unknown_token_id");
    if (!unknown) return unknown.error();
    out_.model = make_unigram_model(out_.table, std::move(by_id), {*unknown, true, false});
    return {};
}

Result<void> Reader::read_added() {
    for (size_t i = 0; i < texts_.size(); ++i) {
        const TokenKind of = kind(i);
        if ((of != TokenKind::control && of != TokenKind::user) || texts_[i].empty()) continue;
        AddedToken added;
        added.text = texts_[i], added.id = uint32_t(i), added.special = of == TokenKind::control;
        if (Result<void> r = out_.add(std::move(added)); !r) return r;
    }
    return {};
}

Result<void> Reader::read_ends(std::string_view model) {
    const bool pieces = model == "bert", llama3 = model == "gpt2" && pre_row(text("pre")) == &kPres[1];
    const Result<uint32_t> first = token(pieces && !find("bos_token_id") ? "cls_token_id" : "bos_token_id");
    if (!first) return first.error();
    const Result<uint32_t> last = token(
        pieces ? find("seperator_token_id") ? "seperator_token_id" : "separator_token_id" : "eos_token_id");
    if (!last) return last.error();
    if (*first != kNoToken && truth("add_bos_token", model == "llama" || pieces || llama3))
        out_.begin.push_back(*first);
    if (*last != kNoToken && truth("add_eos_token", pieces || model == "t5")) out_.end.push_back(*last);
    return {};
}

}  // namespace

Result<TextTokenizer> TextTokenizer::parse(const GgufFile& file) {
    auto impl = std::make_shared<Impl>();
    if (Result<void> r = Reader(file, *impl).read(); !r) return r.error();
    return TextTokenizer(std::move(impl));
}

}  // namespace fovea
