// tokenizer.json, as the library `tokenizers` writes it.
#include <fovea/files.hpp>

#include <algorithm>

#include "tokenizer/tokenizer_impl.hpp"

namespace fovea {
namespace {

using Impl = TextTokenizer::Impl;

constexpr uint64_t kLongestWord = 10'000;  // characters of a word that WordPiece looks at

// A token's number; nothing where it is none.
std::optional<uint32_t> id_from(const JsonValue& value) {
    const double number = value.number();
    if (value.kind() != JsonValue::Kind::number || !(number >= 0) || number >= double(Impl::kMostIds) ||
        number != double(uint32_t(number)))
        return std::nullopt;
    return uint32_t(number);
}

Error no_number(std::string_view text) {
    return broken_tokenizer("token '" + printable_name(text, 60) +
                            "' has no number of its own from 0 to 268435455");
}

Result<void> read_vocabulary(const JsonValue& model, Impl& out) {
    const auto& vocabulary = model["vocab"].members();
    if (vocabulary.empty()) return broken_tokenizer("the tokenizer has no vocabulary");
    for (const auto& [text, number] : vocabulary) {
        const auto id = id_from(number);
        if (!id || !out.table->put(text, *id)) return no_number(text);
    }
    return {};
}

// The number of a token that the model names, as unk_token does; none where it names none.
Result<uint32_t> named_token(const JsonValue& model, std::string_view key, const Impl& out) {
    const std::string_view text = model[key].text();
    if (text.empty()) return kNoToken;
    const uint32_t id = out.table->id_of(text);
    if (id == kNoToken)
        return broken_tokenizer(std::string(key) + " '" + printable_name(text, 60) +
                                "' is not in the vocabulary");
    return id;
}

Result<void> read_pairs(const JsonValue& model, Impl& out) {
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (!model[key].text().empty())
            return unknown_tokenizer("the tokenizer's " + std::string(key) + " is not computed");
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    PairMerges merges;
    uint32_t rank = 0;
    for (const JsonValue& merge : model["merges"].items()) {
        std::string first, second;
        if (merge.kind() == JsonValue::Kind::text) {
            const std::string_view text = merge.text();
            const size_t space = text.find(' ');
            first = text.substr(0, space);
            second = space == std::string_view::npos ? "" : text.substr(space + 1);
        } else if (merge.items().size() == 2) {
            first = merge.items()[0].text(), second = merge.items()[1].text();
        }
        const uint32_t a = out.table->id_of(first), b = out.table->id_of(second),
                       both = out.table->id_of(first + second);
        if (a == kNoToken || b == kNoToken || both == kNoToken)
            return broken_tokenizer("merge " + std::to_string(rank) +
                                    " is of tokens that the vocabulary lacks");
        merges.emplace(uint64_t{a} << 32 | b, PairMerge{rank++, both});
    }
    UnknownRule unknown;
    // Written by older versions of the library, some tokenizers name a token that they lack.
    unknown.id = out.table->id_of(model["unk_token"].text());
    unknown.fuse = model["fuse_unk"].boolean();
    unknown.byte_fallback = out.byte_fallback = model["byte_fallback"].boolean();
    out.model = make_pair_model(out.table, std::move(merges), unknown, model["ignore_merges"].boolean());
    return {};
}

Result<void> read_unigram(const JsonValue& model, Impl& out) {
    std::unordered_map<uint32_t, double> scores;
    uint32_t id = 0;
    for (const JsonValue& row : model["vocab"].items()) {
        const auto& pair = row.items();
        if (pair.size() != 2 || pair[0].kind() != JsonValue::Kind::text ||
            pair[1].kind() != JsonValue::Kind::number)
            return broken_tokenizer("token " + std::to_string(id) + " is no pair of a text and a score");
        // A text that stands twice has the number of the last.
        out.table->put(std::string(pair[0].text()), id);
        scores[id++] = pair[1].number();
    }
    if (id == 0) return broken_tokenizer("the tokenizer has no vocabulary");
    UnknownRule unknown;
    const JsonValue& given = model["unk_id"];
    if (given.kind() != JsonValue::Kind::null) {
        const auto known = id_from(given);
        if (!known || *known >= id) return broken_tokenizer("unk_id is no number of the vocabulary");
        unknown.id = *known;
    }
    unknown.fuse = true;
    unknown.byte_fallback = out.byte_fallback = model["byte_fallback"].boolean();
    out.model = make_unigram_model(out.table, std::move(scores), unknown);
    return {};
}

Result<void> read_word_pieces(const JsonValue& model, Impl& out) {
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    const Result<uint32_t> unknown = named_token(model, "unk_token", out);
    if (!unknown) return unknown.error();
    const JsonValue& most = model["max_input_chars_per_word"];
    const double longest = most.kind() == JsonValue::Kind::null ? 100 : most.number();
    if (!(longest >= 1) || longest > double(kLongestWord))
        return broken_tokenizer("max_input_chars_per_word is " + printable_name(most.scalar_text(), 40) +
                                "; it is from 1 to " + std::to_string(kLongestWord));
    const JsonValue& prefix = model["continuing_subword_prefix"];
    if (prefix.kind() == JsonValue::Kind::text) out.piece_prefix = prefix.text();
    out.written = TokenText::word_pieces;
    out.model = make_word_piece_model(out.table, out.piece_prefix, uint64_t(longest), *unknown);
    return {};
}

Result<void> read_model(const JsonValue& model, Impl& out) {
    std::string_view type = model["type"].text();
    if (type.empty() && model.find("merges")) type = "BPE";  // as the first versions wrote it
    if (type == "BPE") return read_pairs(model, out);
    if (type == "Unigram") return read_unigram(model, out);
    if (type == "WordPiece") return read_word_pieces(model, out);
    if (type != "WordLevel")
        return unknown_tokenizer("the tokenizer is of the kind '" + printable_name(type, 40) +
                                 "'; BPE, Unigram, WordPiece and WordLevel are computed");
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    const Result<uint32_t> unknown = named_token(model, "unk_token", out);
    if (!unknown) return unknown.error();
    out.written = TokenText::word_pieces;
    out.piece_prefix.clear();
    out.model = make_word_model(out.table, *unknown);
    return {};
}

// What the post-processor puts before and behind one text.
Result<void> read_ends(const JsonValue& post, Impl& out) {
    const std::string_view type = post["type"].text();
    if (post.kind() == JsonValue::Kind::null || type == "ByteLevel") return {};
    const auto put = [&](const JsonValue& number, std::vector<uint32_t>& to) -> Result<void> {
        const auto id = id_from(number);
        if (!id) return broken_tokenizer("the post-processor names a token without a number");
        to.push_back(*id);
        return {};
    };
    if (type == "Sequence") {
        for (const JsonValue& one : post["processors"].items())
            if (Result<void> r = read_ends(one, out); !r) return r;
        return {};
    }
    if (type == "RobertaProcessing" || type == "BertProcessing") {
        for (const auto& [key, to] : {std::pair{"cls", &out.begin}, {"sep", &out.end}})
            if (post[key].items().size() == 2)
                if (Result<void> r = put(post[key].items()[1], *to); !r) return r;
        return {};
    }
    if (type != "TemplateProcessing")
        return unknown_tokenizer("the post-processor '" + printable_name(type, 40) + "' is not computed");
    bool behind = false;
    for (const JsonValue& part : post["single"].items()) {
        if (part.find("Sequence")) behind = true;
        if (const auto token = part.find("SpecialToken"))
            for (const JsonValue& id : post["special_tokens"][(*token)["id"].text()]["ids"].items())
                if (Result<void> r = put(id, behind ? out.end : out.begin); !r) return r;
    }
    return {};
}

}  // namespace

Result<void> read_tokenizer(const JsonValue& json, Impl& out) {
    if (json.kind() != JsonValue::Kind::object) return broken_tokenizer("the tokenizer is no JSON object");
    if (Result<void> r = read_model(json["model"], out); !r) return r;
    StepFacts facts;
    if (Result<void> r = read_normalizer(json["normalizer"], out.normalizers, facts); !r) return r;
    if (Result<void> r = read_splitter(json["pre_tokenizer"], out.splitters, facts); !r) return r;
    out.space_before = facts.space_before;
    if (facts.bytes) out.written = TokenText::bytes;
    if (json["decoder"]["type"].text() == "WordPiece") out.cleans_up = json["decoder"]["cleanup"].boolean();
    if (Result<void> r = read_ends(json["post_processor"], out); !r) return r;
    for (const JsonValue& token : json["added_tokens"].items()) {
        const auto id = id_from(token["id"]);
        if (!id) return no_number(token["content"].text());
        AddedToken added;
        added.text = token["content"].text(), added.id = *id;
        added.special = token["special"].boolean(), added.normalized = token["normalized"].boolean();
        added.strips_left = token["lstrip"].boolean(), added.strips_right = token["rstrip"].boolean();
        added.single_word = token["single_word"].boolean();
        if (Result<void> r = out.add(std::move(added)); !r) return r;
    }
    return {};
}

}  // namespace fovea
