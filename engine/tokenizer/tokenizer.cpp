#include "tokenizer/tokenizer.hpp"

#include <algorithm>
#include <cstdio>

#include "files/mapped_file.hpp"
#include "files/utf8.hpp"
#include "tokenizer/characters.hpp"
#include "tokenizer/split_pattern.hpp"
#include "tokenizer/tokenizer_impl.hpp"

namespace fovea {
namespace {

constexpr uint64_t kMostBytes = uint64_t{200} << 20;
constexpr uint64_t kMostText = uint64_t{1} << 30;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

// The library's way to join words and marks, token by token.
void clean_up(std::string& word) {
    for (const auto& [from, to] : {std::pair{" .", "."},
                                   {" ?", "?"},
                                   {" !", "!"},
                                   {" ,", ","},
                                   {" ' ", "'"},
                                   {" n't", "n't"},
                                   {" 'm", "'m"},
                                   {" do not", " don't"},
                                   {" 's", "'s"},
                                   {" 've", "'ve"},
                                   {" 're", "'re"}})
        replace_all(word, from, to);
}

// Whether a letter or digit stands before, or behind, a place of the text.
bool word_ends_at(std::string_view text, size_t at) {
    size_t start = at - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xc0u) == 0x80u) --start;
    return is_word(character_at(text, start).value);
}
bool word_begins_at(std::string_view text, size_t at) { return is_word(character_at(text, at).value); }

}  // namespace

// ---- from text to tokens ----

Result<void> TextTokenizer::Impl::add(AddedToken token) {
    if (token.text.empty()) return broken_tokenizer("an added token has no text");
    table->name(token.text, token.id);
    if (token.special) special_.insert(token.id);
    AddedSet& set = token.normalized ? normalized_ : raw_;
    std::string content = token.text;
    if (token.normalized) {
        TextPieces pieces = {AlignedText::of(content, 0)};
        for (const TextStep& step : normalizers)
            if (Result<void> r = step(pieces); !r) return r;
        content = pieces.empty() ? std::string() : std::move(pieces[0].text);
    }
    if (!content.empty()) set.tree.put(content, uint32_t(added_.size())), set.any = true;
    added_.push_back(std::move(token));
    return {};
}

void TextTokenizer::Impl::split_added(const AddedSet& set, const AlignedText& piece,
                                      std::vector<Segment>& out) const {
    const std::string_view all = piece.text;
    size_t done = 0;
    for (size_t at = 0; set.any && at < all.size();) {
        size_t length = 0;
        uint32_t index = 0;
        set.tree.each_prefix(all.substr(at),
                             [&](size_t bytes, uint32_t value) { length = bytes, index = value; });
        const AddedToken* token = length > 0 ? &added_[index] : nullptr;
        if (token && token->single_word &&
            ((at > 0 && word_ends_at(all, at)) ||
             (at + length < all.size() && word_begins_at(all, at + length))))
            token = nullptr;
        if (!token) {
            at += length > 0 ? length : 1;
            continue;
        }
        size_t first = at, last = at + length;
        while (token->strips_left && first > done) {
            size_t start = first - 1;
            while (start > done && (static_cast<unsigned char>(all[start]) & 0xc0u) == 0x80u) --start;
            if (!is_space(character_at(all, start).value)) break;
            first = start;
        }
        while (token->strips_right && last < all.size()) {
            const Character c = character_at(all, last);
            if (!is_space(c.value)) break;
            last += c.bytes;
        }
        if (first > done) out.push_back({nullptr, piece.part(done, first), {}});
        out.push_back({token, {}, piece.source(first, last)});
        done = at = last;
    }
    if (done < all.size()) out.push_back({nullptr, piece.part(done, all.size()), {}});
}

// A stretch of text between the tokens that were added as they are.
Result<void> TextTokenizer::Impl::words(AlignedText piece, std::vector<SplitToken>& out) const {
    TextPieces pieces;
    pieces.push_back(std::move(piece));
    for (const TextStep& step : normalizers)
        if (Result<void> r = step(pieces); !r) return r;
    std::vector<Segment> segments;
    for (const AlignedText& one : pieces) split_added(normalized_, one, segments);
    std::vector<WordToken> made;
    for (Segment& segment : segments) {
        if (segment.token) {
            out.push_back({segment.token->id, segment.place.begin, segment.place.end});
            continue;
        }
        TextPieces split;
        split.push_back(std::move(segment.piece));
        for (const TextStep& step : splitters)
            if (Result<void> r = step(split); !r) return r;
        for (const AlignedText& word : split) {
            if (word.empty()) continue;
            made.clear();
            model->split(word.text, made);
            for (const WordToken& token : made) {
                const ByteRange place = word.source(token.begin, token.end);
                out.push_back({token.id, place.begin, place.end});
            }
        }
    }
    return {};
}

Result<std::vector<SplitToken>> TextTokenizer::Impl::tokens(std::string_view given, bool special) const {
    if (given.size() > kMostText)
        return broken_tokenizer("a text has up to 1 GiB; this one has " + std::to_string(given.size()) +
                                " bytes");
    if (const size_t fault = files::utf8_fault(given); fault != given.size())
        return broken_tokenizer("the text is not valid UTF-8 from its byte " + std::to_string(fault) + " on");
    std::vector<SplitToken> out;
    if (special)
        for (const uint32_t id : begin) out.push_back({id, 0, 0});
    std::vector<Segment> segments;
    split_added(raw_, AlignedText::of(given, 0), segments);
    for (Segment& segment : segments) {
        if (segment.token)
            out.push_back({segment.token->id, segment.place.begin, segment.place.end});
        else if (Result<void> r = words(std::move(segment.piece), out); !r)
            return r.error();
    }
    if (special)
        for (const uint32_t id : end) out.push_back({id, given.size(), given.size()});
    return out;
}

// ---- and back ----

std::string TextTokenizer::Impl::decode(std::span<const uint32_t> ids) const {
    static const std::unordered_map<std::string_view, char> kBytes = [] {
        std::unordered_map<std::string_view, char> map;
        for (unsigned b = 0; b < 256; ++b)
            map.emplace(byte_character(static_cast<unsigned char>(b)), char(b));
        return map;
    }();
    std::string out;
    bool first = true;
    for (const uint32_t id : ids) {
        const std::string_view one = piece(id);
        if (special_.count(id) != 0 || one.empty()) continue;
        if (written == TokenText::word_pieces) {
            const bool joined = !piece_prefix.empty() && one.starts_with(piece_prefix);
            std::string word(!first && joined ? one.substr(piece_prefix.size()) : one);
            if (!first && !joined) word.insert(0, 1, ' ');
            if (cleans_up) clean_up(word);
            out += word;
        } else if (written == TokenText::bytes) {
            for (size_t at = 0; at < one.size();) {
                const size_t length = character_at(one, at).bytes;
                const auto byte = kBytes.find(one.substr(at, length));
                if (byte != kBytes.end())
                    out += byte->second;
                else
                    out += one.substr(at, length);
                at += length;
            }
        } else {
            unsigned byte = 0;
            if (byte_fallback && one.size() == 6 &&
                std::sscanf(std::string(one).c_str(), "<0x%2X>", &byte) == 1) {
                out += char(byte);
            } else {
                std::string plain(one);
                replace_all(plain, kSpaceMark, " ");
                out += plain;
            }
        }
        first = false;
    }
    if (space_before && out.starts_with(' ')) out.erase(0, 1);
    return out;
}

// ---- the public face ----

bool TextTokenizer::available() { return SplitPattern::available() && has_character_tables(); }

Result<TextTokenizer> TextTokenizer::parse(std::string_view text) {
    if (text.size() > kMostBytes) return broken_tokenizer("a tokenizer has up to 200 MiB");
    const Result<JsonValue> json = parse_json(text);
    if (!json) return json.error();
    auto impl = std::make_shared<Impl>();
    if (Result<void> r = read_tokenizer(*json, *impl); !r) return r.error();
    return TextTokenizer(std::move(impl));
}

Result<TextTokenizer> TextTokenizer::open(const std::filesystem::path& given) {
    std::error_code ignored;
    const std::filesystem::path path =
        std::filesystem::is_directory(given, ignored) ? given / "tokenizer.json" : given;
    if (!std::filesystem::exists(path, ignored))
        return broken_tokenizer(printable_name(path.string(), 400) + " is not there");
    const auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    const auto bytes = (*file)->bytes();
    Result<TextTokenizer> made = parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (made) return made;
    Error error = made.error();
    error.text = printable_name(path.string(), 400) + ": " + error.text;
    return error;
}

Result<TextTokenizer> TextTokenizer::open(const Checkpoint& files) {
    if (!files.gguf) return open(files.folder);
    Result<TextTokenizer> made = parse(*files.gguf);
    if (made) return made;
    Error error = made.error();
    error.text = printable_name(files.path.string(), 400) + ": " + error.text;
    return error;
}

Result<std::vector<SplitToken>> TextTokenizer::tokens(std::string_view text, bool special) const {
    return impl_->tokens(text, special);
}
Result<std::vector<uint32_t>> TextTokenizer::encode(std::string_view text, bool special) const {
    const Result<std::vector<SplitToken>> all = impl_->tokens(text, special);
    if (!all) return all.error();
    std::vector<uint32_t> ids;
    for (const SplitToken& token : *all) ids.push_back(token.id);
    return ids;
}
std::string TextTokenizer::decode(std::span<const uint32_t> ids) const { return impl_->decode(ids); }
std::string_view TextTokenizer::piece(uint32_t id) const { return impl_->piece(id); }

}  // namespace fovea
