// Tokenizers inside GGUF files: the keys tokenizer.ggml.*, as llama.cpp's converter writes them.
#include <fovea/files.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "files/utf8.hpp"
#include "model/checkpoint/named_tokens.hpp"
#include "tokenizer/gguf_splits.hpp"
#include "tokenizer/tokenizer_impl.hpp"

namespace fovea {
namespace {

using Impl = TextTokenizer::Impl;

constexpr std::string_view kPiecePrefix = "##";

// tokenizer.ggml.token_type
enum class TokenKind : uint8_t {
    undefined = 0,
    normal = 1,
    unknown = 2,
    control = 3,
    user = 4,
    unused = 5,
    byte = 6
};

// Keys that are computed below, besides those whose values are IDs of tokens and change nothing here.
constexpr std::string_view kKeys =
    " model pre tokens token_type token_type_count scores merges precompiled_charsmap add_bos_token "
    "add_eos_token "
    "add_sep_token add_space_prefix remove_extra_whitespaces escape_whitespaces treat_whitespace_as_suffix "
    "normalizer.lowercase normalizer.strip_accents suppress_tokens ";

class Reader {
  public:
    Reader(const GgufFile& file, Impl& out) : file_(file), out_(out) {}

    Result<void> read() {
        const std::string_view model = text("model");
        if (model.empty()) return broken_tokenizer("the file holds no tokenizer");
        if (Result<void> r = check_keys(model); !r) return r;
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
            return unknown_tokenizer("the file's tokenizer has the type '" + printable_name(model, 40) +
                                     "'; gpt2, llama, bert and t5 are supported");
        if (!made) return made;
        out_.longest_first = true;
        if (Result<void> r = read_added(); !r) return r;
        return read_frame(model);
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
    // As in llama.cpp: if a key is missing or not an ID of the vocabulary, the default applies, which is none
    // if the vocabulary lacks it.
    uint32_t token(std::string_view key, uint32_t otherwise = kNoToken) const {
        const GgufValue* value = find(key);
        const auto id = value ? value->whole() : std::nullopt;
        if (id && *id < texts_.size()) return uint32_t(*id);
        return otherwise < texts_.size() ? otherwise : kNoToken;
    }
    Result<std::vector<double>> numbers(std::string_view key) const {
        const GgufValue* value = find(key);
        if (!value) return std::vector<double>();
        auto all = value->numbers();
        if (!all || all->size() != texts_.size())
            return broken_tokenizer("tokenizer.ggml." + std::string(key) + " is not a list of " +
                                    std::to_string(texts_.size()) + " numbers, one for each token");
        return std::move(*all);
    }
    TokenKind kind(size_t id) const { return id < kinds_.size() ? kinds_[id] : TokenKind::normal; }
    UnknownRule unknown_rule(uint32_t otherwise, bool fuse) const {
        UnknownRule rule;
        rule.id = token("unknown_token_id", otherwise);
        rule.vanishes = false, rule.fuse = fuse;
        return rule;
    }
    // Tokens with marks for spaces become text: with bytes, without the space that was put before.
    void write_spaces(bool space_before) {
        out_.decoders.push_back(replace_decoder(std::string(kSpaceMark), " "));
        out_.decoders.push_back(byte_fallback_decoder());
        out_.decoders.push_back(join_decoder());
        if (space_before) out_.decoders.push_back(strip_decoder(" ", 1, 0));
    }

    Result<void> check_keys(std::string_view model) const;
    Result<void> read_tokens();
    Result<void> put_tokens();
    Result<void> read_pairs();
    Result<void> read_scores();
    Result<void> read_word_pieces();
    Result<void> read_unigram();
    Result<void> read_added();
    void mark_named_tokens();
    Result<void> read_frame(std::string_view model);

    const GgufFile& file_;
    Impl& out_;
    TextList texts_;
    std::vector<TokenKind> kinds_;
    const GgufSplit* split_ = nullptr;  // split of gpt2
};

Result<void> Reader::check_keys(std::string_view model) const {
    constexpr std::string_view kPrefix = "tokenizer.ggml.";
    for (const GgufValue& value : file_.metadata) {
        if (!value.key.starts_with(kPrefix)) continue;
        const std::string_view key = value.key.substr(kPrefix.size());
        const bool known = kKeys.find(" " + std::string(key) + " ") != std::string_view::npos;
        if (!known && !key.ends_with("_token_id") && !key.ends_with("_token_ids"))
            return unknown_tokenizer("the key " + printable_name(value.key, 80) + " is not supported");
    }
    if (model == "t5") return {};
    if (truth("treat_whitespace_as_suffix", false))
        return unknown_tokenizer(
            "tokenizer.ggml.treat_whitespace_as_suffix is true; it is only supported for t5");
    if (model != "bert" && truth("remove_extra_whitespaces", false))
        return unknown_tokenizer(
            "tokenizer.ggml.remove_extra_whitespaces is true; it is only supported for t5");
    if (model == "llama" && !truth("escape_whitespaces", true))
        return unknown_tokenizer("tokenizer.ggml.escape_whitespaces is false; it is only supported for t5");
    return {};
}

Result<void> Reader::read_tokens() {
    const GgufValue* value = find("tokens");
    auto texts = value ? value->texts() : std::nullopt;
    if (!texts || texts->empty()) return broken_tokenizer("tokenizer.ggml.tokens is not a list of texts");
    constexpr uint64_t kMaxTokenBytes = uint64_t{200} << 20;
    if (value->bytes.size() > kMaxTokenBytes)
        return broken_tokenizer("tokenizer.ggml.tokens has " + std::to_string(value->bytes.size()) +
                                " bytes; at most " + std::to_string(kMaxTokenBytes) + " are supported");
    texts_.reserve(texts->size(), 0);
    for (size_t i = 0; i < texts->size(); ++i) {
        const std::string_view text = (*texts)[i];
        if (files::utf8_fault(text) != text.size())
            return broken_tokenizer("token " + std::to_string(i) + " is not valid UTF-8");
        texts_.add(text.empty() ? "[EMPTY_" + std::to_string(i) + "]" : std::string(text));
    }
    texts.reset();
    const Result<std::vector<double>> kinds = numbers("token_type");
    if (!kinds) return kinds.error();
    for (size_t i = 0; i < kinds->size(); ++i) {
        if (!((*kinds)[i] >= 0) || (*kinds)[i] > 6)
            return broken_tokenizer("token " + std::to_string(i) + " has a type other than 1 to 6");
        kinds_.push_back(TokenKind(int((*kinds)[i])));
    }
    mark_named_tokens();
    return {};
}

void Reader::mark_named_tokens() {
    constexpr std::string_view kUserTexts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};
    std::map<std::string_view, std::optional<size_t>> ids;  // the first token of each text that counts here
    for (const NamedTokens& named : kNamedTokens)
        for (const std::string_view text : named.texts) ids[text].reset();
    for (const std::string_view text : kUserTexts) ids[text].reset();
    for (size_t i = 0; i < texts_.size(); ++i)
        if (const auto found = ids.find(texts_[i]); found != ids.end() && !found->second) found->second = i;
    const auto mark = [&](std::string_view text, TokenKind kind) {
        const std::optional<size_t> found = ids[text];
        if (!found) return;
        kinds_.resize(texts_.size(), TokenKind::normal);
        kinds_[*found] = kind;
    };
    const auto has = [&](std::string_view text) { return ids[text].has_value(); };
    for (const NamedTokens& named : kNamedTokens)
        if (token(named.key) == kNoToken && token(named.old_key) == kNoToken)
            for (const std::string_view text : named.texts) mark(text, TokenKind::control);
    for (const std::string_view text : kUserTexts) mark(text, TokenKind::user);
    if (end_is_within_answers(has)) mark("<|end|>", TokenKind::user);
    if (end_tag_is_text(has)) mark("</s>", TokenKind::normal);
}

// Where several tokens have one text the first counts, as in llama.cpp; the others are there for decoding.
Result<void> Reader::put_tokens() {
    out_.table->reserve(texts_.size(), 0);
    for (size_t i = 0; i < texts_.size(); ++i) out_.table->put(texts_[i], uint32_t(i));
    return {};
}

Result<void> Reader::read_pairs() {
    if (Result<void> r = put_tokens(); !r) return r;
    const std::string_view name = text("pre");
    split_ = gguf_split(name.empty() ? "default" : name);
    if (!split_)
        return unknown_tokenizer("the split into words '" + printable_name(name, 40) +
                                 "' of tokenizer.ggml.pre is not supported");
    for (const std::string_view pattern : split_->patterns) {
        if (pattern.empty()) continue;
        Result<TextStep> made = pattern_splitter(pattern);
        if (!made) return made.error();
        out_.splitters.push_back(std::move(*made));
    }
    out_.splitters.push_back(byte_writer());
    out_.decoders = {bytes_decoder()};
    const GgufValue* value = find("merges");
    const auto list = value ? value->texts() : std::nullopt;
    if (!list) return broken_tokenizer("tokenizer.ggml.merges is not a list of texts");
    PairMerges merges;
    merges.reserve(list->size());
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
                                    " joins tokens that are not in the vocabulary");
        merges.put(a, b, both, false);
        ++rank;
    }
    out_.model = make_pair_model(out_.table, std::move(merges), {}, split_->whole_words);
    return {};
}

Result<void> Reader::read_scores() {
    if (Result<void> r = put_tokens(); !r) return r;
    const Result<std::vector<double>> scores = numbers("scores");
    if (!scores) return scores.error();
    if (scores->empty()) return broken_tokenizer("tokenizer.ggml.scores is missing");
    const bool space_before = truth("add_space_prefix", true);
    if (space_before) out_.normalizers.push_back(prepender(" "));
    out_.normalizers.push_back(replacer(" ", std::string(kSpaceMark)));
    write_spaces(space_before);
    UnknownRule unknown = unknown_rule(0, false);
    unknown.byte_fallback = true;
    out_.model = make_score_model(out_.table, {scores->begin(), scores->end()}, unknown);
    return {};
}

// The converter marks word beginnings instead of the pieces that continue a word.
Result<void> Reader::read_word_pieces() {
    TextList shown;
    out_.table->reserve(texts_.size(), 0);
    for (size_t i = 0; i < texts_.size(); ++i) {
        std::string text(texts_[i]);
        if (kind(i) == TokenKind::normal || kind(i) == TokenKind::unused) {
            if (text.starts_with(kSpaceMark))
                text.erase(0, kSpaceMark.size());
            else
                text.insert(0, kPiecePrefix);
        }
        out_.table->put(text, uint32_t(i));
        shown.add(text);
    }
    texts_ = std::move(shown);
    BertNormalizer options;
    options.lower = truth("normalizer.lowercase", true);
    options.strip_marks = truth("normalizer.strip_accents", options.lower);
    options.all_marks = true;
    out_.normalizers.push_back(bert_normalizer(options));
    out_.splitters.push_back(bert_splitter());
    out_.decoders = {word_piece_decoder(std::string(kPiecePrefix), false)};
    // llama.cpp has no limit for the length of a word.
    out_.model = make_word_piece_model(out_.table, std::string(kPiecePrefix), UINT64_MAX,
                                       token("unknown_token_id", 100));
    return {};
}

Result<void> Reader::read_unigram() {
    const Result<std::vector<double>> scores = numbers("scores");
    if (!scores) return scores.error();
    if (scores->empty()) return broken_tokenizer("tokenizer.ggml.scores is missing");
    if (Result<void> r = put_tokens(); !r) return r;
    UnigramRows rows;
    rows.least = double(std::numeric_limits<float>::max());
    rows.looks_again = false;
    rows.scores.reserve(texts_.size());
    bool any = false;
    for (size_t i = 0; i < scores->size(); ++i) {
        const TokenKind of = kind(i);
        if (of == TokenKind::normal) rows.least = std::min(rows.least, (*scores)[i]);
        const bool counts = of == TokenKind::normal || of == TokenKind::user || of == TokenKind::unused;
        rows.scores.push_back(of == TokenKind::user ? 0.0
                              : counts              ? (*scores)[i]
                                                    : std::numeric_limits<double>::quiet_NaN());
        any = any || counts;
    }
    if (!any) return broken_tokenizer("the tokenizer has no token that a text may have");
    if (const GgufValue* map = find("precompiled_charsmap")) {
        if (!map->is_array || (map->type != GgufType::u8 && map->type != GgufType::i8))
            return broken_tokenizer("tokenizer.ggml.precompiled_charsmap is not a list of bytes");
        std::vector<uint8_t> bytes;
        for (const std::byte b : map->bytes) bytes.push_back(std::to_integer<uint8_t>(b));
        Result<TextStep> made = precompiled_normalizer(std::move(bytes), true);
        if (!made) return made.error();
        out_.normalizers.push_back(std::move(*made));
    }
    UnigramSpaces spaces;
    spaces.adds = truth("add_space_prefix", false);
    spaces.at_end = truth("treat_whitespace_as_suffix", false);
    spaces.merges = truth("remove_extra_whitespaces", false);
    spaces.mark = truth("escape_whitespaces", true) ? kSpaceMark : " ";
    out_.normalizers.push_back(unigram_spaces(spaces));
    write_spaces(spaces.adds);
    out_.model = make_unigram_model(out_.table, std::move(rows), unknown_rule(2, true));
    return {};
}

Result<void> Reader::read_added() {
    // llama.cpp recognizes some models by their names.
    const auto text_of = [&](std::string_view key) {
        const GgufValue* value = file_.find(key);
        std::string out(value ? value->text().value_or("") : "");
        for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
        return out;
    };
    const std::string name = text_of("general.name"), arch = text_of("general.architecture");
    const auto has_any = [](std::string_view text, std::initializer_list<std::string_view> parts) {
        return std::any_of(parts.begin(), parts.end(),
                           [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
    };
    const bool mask = has_any(text("pre"), {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
                      has_any(arch, {"nomic-bert-moe", "jina-bert-v3"});
    const bool phi3 = !mask && has_any(name, {"phi-3", "phi3"});
    const bool modern_bert = !mask && !phi3 && has_any(name, {"modern-bert"});
    for (size_t i = 0; i < texts_.size(); ++i) {
        const TokenKind of = kind(i);
        if (of != TokenKind::control && of != TokenKind::user && of != TokenKind::unknown) continue;
        AddedToken added;
        added.text = texts_[i], added.id = uint32_t(i), added.special = of != TokenKind::user;
        added.strips_left = (mask && added.text == "<mask>") || (modern_bert && added.text == "[MASK]");
        added.strips_right =
            phi3 && added.text != "<unk>" && added.text != "<s>" && added.text != "<|endoftext|>";
        if (Result<void> r = out_.add(added); !r) return r;
    }
    return out_.finish_added();
}

Result<void> Reader::read_frame(std::string_view model) {
    struct Defaults {
        std::string_view model;
        uint32_t begin, end;
        bool begins, ends;
    };
    constexpr Defaults kDefaults[] = {{"llama", 1, 2, true, false},
                                      {"bert", 101, 102, true, true},
                                      {"t5", kNoToken, 1, false, true},
                                      {"gpt2", 11, 11, false, false}};
    const Defaults defaults = *std::find_if(std::begin(kDefaults), std::end(kDefaults),
                                            [&](const Defaults& one) { return one.model == model; });
    uint32_t begin = defaults.begin;
    if (model == "gpt2" && (text("pre") == "glm4" || text("pre") == "chatglm-bpe")) begin = kNoToken;
    const bool pieces = model == "bert";
    begin = token(pieces && !find("bos_token_id") ? "cls_token_id" : "bos_token_id", begin);
    const std::string_view end_key = !pieces                      ? "eos_token_id"
                                     : find("seperator_token_id") ? "seperator_token_id"
                                                                  : "separator_token_id";
    const uint32_t end = token(end_key, defaults.end);
    // WordPiece always has both.
    const bool begins = pieces || truth("add_bos_token", defaults.begins || (split_ && split_->begins));
    const bool ends = pieces || truth("add_eos_token", defaults.ends);
    for (const auto& [is_there, id, key] :
         {std::tuple(begins, begin, "bos_token_id"), std::tuple(ends, end, "eos_token_id")})
        if (is_there && id == kNoToken)
            return broken_tokenizer("the tokenizer adds a token to its inputs, but tokenizer.ggml." +
                                    std::string(key) + " is not an ID of the " +
                                    std::to_string(texts_.size()) + " tokens");
    out_.frame.clear();
    if (begins) out_.frame.push_back(begin);
    out_.frame.push_back(kNoToken);
    if (ends) out_.frame.push_back(end);
    return {};
}

}  // namespace

Result<TextTokenizer> TextTokenizer::parse(const GgufFile& file) {
    auto impl = std::make_shared<Impl>();
    if (Result<void> r = Reader(file, *impl).read(); !r) return r.error();
    return TextTokenizer(std::move(impl));
}

}  // namespace fovea
