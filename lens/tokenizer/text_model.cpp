
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "files/utf8.hpp"

#include <fovea/tokenizer.hpp>

namespace fovea {
namespace {

Result<TextModel> of_weights(Result<CheckpointModel> weights) {
    if (!weights) return weights.error();
    const std::string path = printable_name(weights->files().path.string(), 400);
    if (weights->config().patches != 0)
        return Error{FOVEA_UNSUPPORTED, "model",
                     path + ": a " + weights->config().family +
                         " model reads pictures, and only models of text are supported here; `fovea model "
                         "--patches` runs it"};
    for (const std::string& name : weights->missing())
        if (!name.starts_with("lm_head") && !name.starts_with("embed_out") && !name.starts_with("output."))
            return Error{FOVEA_INVALID_ARGUMENT, "tensor",
                         "tensor '" + printable_name(name) + "' is missing from " + path};
    return TextModel{std::move(*weights), {}, {}};
}

Result<TextModel> with_tokenizer(TextModel model, Result<TextTokenizer> tokenizer) {
    if (tokenizer)
        model.tokenizer = std::move(*tokenizer);
    else
        model.why_no_text = tokenizer.error().text;
    return model;
}

Result<TextTokenizer> tokenizer_of(const Checkpoint& checkpoint, std::span<const NamedFile> files) {
    if (checkpoint.gguf) return TextTokenizer::open(checkpoint);
    const auto refuse = [](std::string text) {
        return Error{FOVEA_INVALID_ARGUMENT, "tokenizer.json", std::move(text)};
    };
    std::string texts[2];
    bool found = false;
    for (const NamedFile& one : files) {
        const bool is_config = one.name == "tokenizer_config.json";
        if (!is_config && one.name != "tokenizer.json") continue;
        found = found || !is_config;
        constexpr uint64_t kMaxBytes = 100'000'000;
        const uint64_t size = one.file->size_bytes();
        if (size > kMaxBytes)
            return refuse(one.name + " has " + std::to_string(size) + " bytes; the limit is " +
                          std::to_string(kMaxBytes));
        std::string& text = texts[is_config];
        text.resize(size_t(size));
        if (Result<void> r = one.file->read(0, std::as_writable_bytes(std::span(text))); !r) return r.error();
    }
    if (!found) return refuse("tokenizer.json is not among the files");
    return TextTokenizer::parse(texts[0], texts[1]);
}

}  // namespace

Result<TextModel> open_text_model(const std::filesystem::path& path) {
    Result<TextModel> model = of_weights(CheckpointModel::open(path));
    if (!model) return model;
    Result<TextTokenizer> tokenizer = TextTokenizer::open(model->weights.files());
    return with_tokenizer(std::move(*model), std::move(tokenizer));
}

Result<TextModel> open_text_model(std::span<const NamedFile> files) {
    Result<TextModel> model = of_weights(CheckpointModel::open(files));
    if (!model) return model;
    Result<TextTokenizer> tokenizer = tokenizer_of(model->weights.files(), files);
    return with_tokenizer(std::move(*model), std::move(tokenizer));
}

Result<std::vector<SplitToken>> split_text(const TextModel& model, std::string_view text) {
    if (model.tokenizer) {
        Result<std::vector<SplitToken>> tokens = model.tokenizer->tokens(text);
        if (tokens && tokens->empty()) return Error{FOVEA_INVALID_ARGUMENT, "text", "the text has no token"};
        return tokens;
    }
    std::vector<SplitToken> tokens;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of(" ,\t", at), text.size());
        const std::string_view word = text.substr(at, end - at);
        const size_t begin = at;
        at = end + 1;
        if (word.empty()) continue;
        uint32_t id = 0;
        const auto [last, code] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (code != std::errc() || last != word.data() + word.size())
            return Error{FOVEA_INVALID_ARGUMENT, "text",
                         "'" + printable_name(word, 40) + "' is not a token ID; " + model.why_no_text +
                             ", so give token IDs from 0 to " +
                             std::to_string(model.weights.config().vocabulary - 1)};
        tokens.push_back({id, begin, end});
    }
    if (tokens.empty()) return Error{FOVEA_INVALID_ARGUMENT, "text", "the text has no token ID"};
    return tokens;
}

Result<std::vector<uint32_t>> tokens_of(const TextModel& model, std::string_view text) {
    const Result<std::vector<SplitToken>> tokens = split_text(model, text);
    if (!tokens) return tokens.error();
    std::vector<uint32_t> ids;
    for (const SplitToken& token : *tokens) ids.push_back(token.id);
    return ids;
}

std::string token_text(const TextTokenizer& tokenizer, uint32_t id) {
    const uint32_t two[] = {id, id};
    const std::string piece(tokenizer.piece(id)), first = tokenizer.decode(std::span(two).first(1));
    // A piece may be itself at the beginning of a text, as in WordPiece; special ones give no text.
    if (first == piece || piece.empty()) return piece;
    // At the beginning some tokenizers drop a space.
    std::string text = tokenizer.decode(two);
    text.erase(0, first.size());
    if (text.empty()) return piece;
    std::string valid;
    for (std::string_view rest = text; !rest.empty();) {
        const size_t length = files::utf8_length(rest);
        if (length == 0) {
            char byte[8];
            std::snprintf(byte, sizeof byte, "<0x%02X>", unsigned(static_cast<unsigned char>(rest[0])));
            valid += byte;
        } else {
            valid += rest.substr(0, length);
        }
        rest.remove_prefix(std::max<size_t>(length, 1));
    }
    return valid;
}

std::string token_text(const TextModel& model, uint32_t id) {
    if (!model.tokenizer) return std::to_string(id);
    const uint32_t one[] = {id};
    std::string text = model.tokenizer->decode(one);
    if (const size_t spaces = text.size(); spaces > 0 && text.find_first_not_of(' ') == std::string::npos) {
        // Nothing but spaces is shown as so many open boxes, not as the letters that a vocabulary has for it.
        text.clear();
        for (size_t i = 0; i < spaces; ++i) text += "\xe2\x90\xa3";
        return text;
    }
    if (text.size() > 1 && text[0] == ' ') text.erase(0, 1);
    const bool plain = !text.empty() && printable_name(text, 40) == text && text != " ";
    if (plain) return text;
    const std::string piece = printable_name(token_text(*model.tokenizer, id), 40);
    return piece.empty() ? "#" + std::to_string(id) : piece;  // vocabularies are rounded up with unused IDs
}

std::string first_text(const TextModel& model) {
    if (model.tokenizer) return "The cat sat on the mat because the cat was tired";
    // Repeating words, so that heads that look for repetitions have something to find.
    std::string text;
    const uint64_t words = std::min<uint64_t>(model.weights.config().vocabulary, 12);
    for (uint64_t i = 0; i < 2 * words; ++i)
        text += (i == 0 ? "" : " ") + std::to_string((i % words) * 7 % model.weights.config().vocabulary);
    return text;
}

}  // namespace fovea
