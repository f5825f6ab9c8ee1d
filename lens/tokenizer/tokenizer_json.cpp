// tokenizer.json, as the library `tokenizers` writes it.
#include <fovea/files.hpp>

#include <algorithm>

#include "tokenizer/tokenizer_impl.hpp"

namespace fovea {
namespace {

using Impl = TextTokenizer::Impl;

// A token's number; nothing where it is none.
std::optional<uint32_t> id_from(const JsonValue& value) {
    const double number = value.number();
    if (value.kind() != JsonValue::Kind::number || !(number >= 0) || number >= double(Impl::kMaxIds) ||
        number != double(uint32_t(number)))
        return std::nullopt;
    return uint32_t(number);
}

Error no_number(std::string_view text) {
    return broken_tokenizer("token '" + printable_name(text, 60) +
                            "' must have an ID of its own, from 0 to 268435455");
}

Result<void> read_vocabulary(const JsonValue& model, Impl& out) {
    const auto& vocabulary = model["vocab"].members();
    if (vocabulary.empty())
        return broken_tokenizer("the tokenizer has no vocabulary; model.vocab must have at least one token");
    size_t tokens = 0, bytes = 0;
    for (const auto& [text, number] : vocabulary) ++tokens, bytes += text.size();
    out.table->reserve(tokens, bytes);
    for (const auto& [text, number] : vocabulary) {
        const auto id = id_from(number);
        if (!id || !out.table->put(text, *id)) return no_number(text);
    }
    return {};
}

Result<void> read_pairs(const JsonValue& model, Impl& out) {
    if (model["dropout"].number() != 0)
        return unknown_tokenizer("the tokenizer's dropout is " +
                                 printable_name(model["dropout"].scalar_text(), 40) +
                                 ", which draws tokens at random; only 0 is supported");
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    PairAffixes affixes;
    affixes.prefix = model["continuing_subword_prefix"].text();
    affixes.suffix = model["end_of_word_suffix"].text();
    UnknownRule unknown;
    const std::string_view named = model["unk_token"].text();
    unknown.id = out.table->id_of(named);
    unknown.vanishes = named.empty();
    unknown.fuse = model["fuse_unk"].boolean();
    unknown.byte_fallback = model["byte_fallback"].boolean();
    if (unknown.byte_fallback && !(affixes.prefix.empty() && affixes.suffix.empty()))
        return unknown_tokenizer(
            "the tokenizer's byte_fallback with a continuing_subword_prefix or an "
            "end_of_word_suffix is not supported");
    PairMerges merges;
    const auto& list = model["merges"].items();
    merges.reserve(list.size());
    uint32_t rank = 0;
    for (const JsonValue& merge : list) {
        std::string first, second;
        if (merge.kind() == JsonValue::Kind::text) {
            const std::string_view text = merge.text();
            const size_t space = text.find(' ');
            first = text.substr(0, space);
            second = space == std::string_view::npos ? "" : text.substr(space + 1);
        } else if (merge.items().size() == 2) {
            first = merge.items()[0].text(), second = merge.items()[1].text();
        }
        const uint32_t a = out.table->id_of(first), b = out.table->id_of(second);
        const uint32_t both = out.table->id_of(
            first + (second.size() >= affixes.prefix.size() ? second.substr(affixes.prefix.size()) : second));
        if (a == kNoToken || b == kNoToken || both == kNoToken)
            return broken_tokenizer("merge " + std::to_string(rank) +
                                    " joins tokens that are not in the vocabulary");
        merges.put(a, b, both, true);
        ++rank;
    }
    out.model = make_pair_model(out.table, std::move(merges), unknown, model["ignore_merges"].boolean(),
                                std::move(affixes));
    return {};
}

Result<void> read_unigram(const JsonValue& model, Impl& out) {
    UnigramRows rows;
    const auto& vocabulary = model["vocab"].items();
    size_t tokens = 0, bytes = 0;
    for (const JsonValue& row : vocabulary)
        ++tokens, bytes += row.items().empty() ? 0 : row.items()[0].text().size();
    out.table->reserve(tokens, bytes);
    rows.scores.reserve(tokens);
    uint32_t id = 0;
    for (const JsonValue& row : vocabulary) {
        const auto& pair = row.items();
        if (pair.size() != 2 || pair[0].kind() != JsonValue::Kind::text ||
            pair[1].kind() != JsonValue::Kind::number)
            return broken_tokenizer("token " + std::to_string(id) + " is not a pair of a text and a score");
        // A text that is there twice has the ID and the score of the last.
        out.table->put_last(pair[0].text(), id);
        rows.least = std::min(id == 0 ? pair[1].number() : rows.least, pair[1].number());
        rows.scores.push_back(pair[1].number());
        ++id;
    }
    if (id == 0)
        return broken_tokenizer("the tokenizer has no vocabulary; model.vocab must have at least one token");
    UnknownRule unknown;
    const JsonValue& given = model["unk_id"];
    if (given.kind() != JsonValue::Kind::null) {
        const auto known = id_from(given);
        if (!known || *known >= id) return broken_tokenizer("unk_id is not an ID of the vocabulary");
        unknown.id = *known;
    }
    unknown.fuse = true, unknown.vanishes = false;
    unknown.byte_fallback = model["byte_fallback"].boolean();
    out.model = make_unigram_model(out.table, std::move(rows), unknown);
    return {};
}

Result<void> read_word_pieces(const JsonValue& model, Impl& out) {
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    const JsonValue& most = model["max_input_chars_per_word"];
    const double longest = most.kind() == JsonValue::Kind::null ? 100 : most.number();
    const bool is_number = most.kind() == JsonValue::Kind::null || most.kind() == JsonValue::Kind::number;
    if (!is_number || !(longest >= 0) || longest > double(UINT32_MAX))
        return broken_tokenizer("max_input_chars_per_word is " + printable_name(most.scalar_text(), 40) +
                                "; it must be from 0 to 4294967295");
    const JsonValue& prefix = model["continuing_subword_prefix"];
    out.model = make_word_piece_model(
        out.table, prefix.kind() == JsonValue::Kind::text ? std::string(prefix.text()) : "##",
        uint64_t(longest), out.table->id_of(model["unk_token"].text()));
    return {};
}

Result<void> read_model(const JsonValue& model, Impl& out) {
    std::string_view type = model["type"].text();
    if (type.empty() && model.find("merges")) type = "BPE";  // as the first versions wrote it
    if (type == "BPE") return read_pairs(model, out);
    if (type == "Unigram") return read_unigram(model, out);
    if (type == "WordPiece") return read_word_pieces(model, out);
    if (type != "WordLevel")
        return unknown_tokenizer("the tokenizer has the type '" + printable_name(type, 40) +
                                 "'; BPE, Unigram, WordPiece and WordLevel are supported");
    if (Result<void> r = read_vocabulary(model, out); !r) return r;
    out.model = make_word_model(out.table, out.table->id_of(model["unk_token"].text()));
    return {};
}

// Reads the tokens that the post-processor puts around one text.
Result<void> read_frame(const JsonValue& post, Impl& out) {
    const std::string_view type = post["type"].text();
    if (post.kind() == JsonValue::Kind::null || type == "ByteLevel") return {};
    if (type == "Sequence") {
        for (const JsonValue& one : post["processors"].items())
            if (Result<void> r = read_frame(one, out); !r) return r;
        return {};
    }
    if (out.frame != std::vector<uint32_t>{kNoToken})
        return unknown_tokenizer("two post-processors that add tokens are not supported");
    out.frame.clear();
    const auto put = [&](const JsonValue& number) -> Result<void> {
        const auto id = id_from(number);
        if (!id)
            return broken_tokenizer(
                "the post-processor names a token without an ID; each token must have one");
        out.frame.push_back(*id);
        return {};
    };
    if (type == "RobertaProcessing" || type == "BertProcessing") {
        const auto &first = post["cls"].items(), &last = post["sep"].items();
        if (first.size() != 2 || last.size() != 2)
            return broken_tokenizer("the post-processor's cls or sep is not a pair of a text and an ID");
        if (Result<void> r = put(first[1]); !r) return r;
        out.frame.push_back(kNoToken);
        return put(last[1]);
    }
    if (type != "TemplateProcessing")
        return unknown_tokenizer("the post-processor '" + printable_name(type, 40) + "' is not supported");
    for (const JsonValue& part : post["single"].items()) {
        if (const auto text = part.find("Sequence")) {
            if ((*text)["id"].text() != "A")
                return unknown_tokenizer("a template for one text that has a second one is not supported");
            out.frame.push_back(kNoToken);
        } else if (const auto token = part.find("SpecialToken")) {
            const auto known = post["special_tokens"].find((*token)["id"].text());
            if (!known)
                return broken_tokenizer("the template's token '" + printable_name((*token)["id"].text(), 60) +
                                        "' is not among its special_tokens");
            for (const JsonValue& id : (*known)["ids"].items())
                if (Result<void> r = put(id); !r) return r;
        }
    }
    return {};
}

// As the library adds them: an ID in the file does not count, a text of the vocabulary has its own, others
// follow.
Result<void> read_added(const JsonValue& json, Impl& out) {
    const JsonValue& vocabulary = json["model"]["vocab"];
    auto next = uint32_t(std::max(vocabulary.items().size(), out.table->size()));
    const auto& tokens = json["added_tokens"].items();
    out.reserve_added(tokens.size());
    for (const JsonValue& token : tokens) {
        AddedToken added;
        added.text = token["content"].text();
        if (token["content"].kind() != JsonValue::Kind::text)
            return broken_tokenizer("an added token has no text");
        if (added.text.empty()) continue;
        if (!id_from(token["id"])) return no_number(added.text);
        added.id = out.id_of(added.text);
        if (added.id == kNoToken) added.id = next++;
        added.special = token["special"].boolean(), added.normalized = token["normalized"].boolean();
        added.strips_left = token["lstrip"].boolean(), added.strips_right = token["rstrip"].boolean();
        added.single_word = token["single_word"].boolean();
        if (Result<void> r = out.add(added); !r) return r;
    }
    return out.finish_added();
}

// transformers makes the frame anew where tokenizer_config.json has one of the two keys, whatever
// tokenizer.json says.
Result<void> read_config(const JsonValue& config, Impl& out) {
    if (!config.find("add_bos_token") && !config.find("add_eos_token")) return {};
    out.frame.clear();
    for (const std::string_view which : {"bos", "eos"}) {
        if (which == "eos") out.frame.push_back(kNoToken);
        const std::string name = std::string(which) + "_token";
        const JsonValue given = config[name];
        const std::string_view text = given.find("content") ? given["content"].text() : given.text();
        if (!config["add_" + name].boolean() || text.empty()) continue;
        const uint32_t id = out.id_of(text);
        if (id == kNoToken)
            return broken_tokenizer(name + " of tokenizer_config.json is '" + printable_name(text, 60) +
                                    "', which the vocabulary lacks");
        out.frame.push_back(id);
    }
    return {};
}

}  // namespace

Result<void> read_tokenizer(const JsonValue& json, const JsonValue& config, Impl& out) {
    if (json.kind() != JsonValue::Kind::object) return broken_tokenizer("the tokenizer is not a JSON object");
    if (const auto version = json.find("version"); version && version->text() != "1.0")
        return unknown_tokenizer("the tokenizer's version is '" + printable_name(version->scalar_text(), 40) +
                                 "'; only 1.0 is supported");
    if (Result<void> r = read_model(json["model"], out); !r) return r;
    if (Result<void> r = read_normalizer(json["normalizer"], out.normalizers); !r) return r;
    if (Result<void> r = read_splitter(json["pre_tokenizer"], out.splitters); !r) return r;
    if (Result<void> r = read_decoder(json["decoder"], out.decoders); !r) return r;
    if (Result<void> r = read_frame(json["post_processor"], out); !r) return r;
    if (Result<void> r = read_added(json, out); !r) return r;
    return read_config(config, out);
}

}  // namespace fovea
