
#include <algorithm>
#include <map>
#include <tuple>

#include "files/mapped_file.hpp"
#include "files/utf8.hpp"
#include "tokenizer/code_set.hpp"
#include "tokenizer/tokenizer_impl.hpp"

#include <fovea/model/learned.hpp>
#include <fovea/tokenizer.hpp>
#include <fovea/tokenizer/characters.hpp>

namespace fovea {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{200} << 20;
constexpr uint64_t kMaxText = uint64_t{1} << 30;

// The equivalent of \w in Rust's regular expressions.
bool is_word_character(uint32_t c) { return word_set().has(c) || c == 0x200c || c == 0x200d; }

size_t before(std::string_view text, size_t at) {
    do --at;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u);
    return at;
}
bool word_ends_at(std::string_view text, size_t at) {
    return is_word_character(character_at(text, before(text, at)).value);
}
bool word_begins_at(std::string_view text, size_t at) {
    return is_word_character(character_at(text, at).value);
}
// Return the begin, not before `least`, and the end of the white space that touches a position.
size_t spaces_before(std::string_view text, size_t at, size_t least) {
    while (at > least && space_set().has(character_at(text, before(text, at)).value)) at = before(text, at);
    return at;
}
size_t spaces_behind(std::string_view text, size_t at) {
    while (at < text.size() && space_set().has(character_at(text, at).value))
        at += character_at(text, at).bytes;
    return at;
}

}  // namespace

// ---- from text to tokens ----

void TextTokenizer::Impl::reserve_added(size_t tokens) {
    added_.reserve(tokens), added_of_.reserve(tokens);
    added_by_id_.reserve(tokens), added_by_text_.reserve(tokens);
}

uint32_t TextTokenizer::Impl::add_text(std::string_view text, uint32_t of) {
    added_of_.push_back(of);
    return added_texts_.add(text);
}

Result<void> TextTokenizer::Impl::add(const AddedToken& token) {
    std::string normal = token.text;
    if (token.normalized) {
        TextPieces pieces = {AlignedText::of(token.text, 0)};
        for (const TextStep& step : normalizers)
            if (Result<void> r = step(pieces); !r) return r;
        normal = pieces.empty() ? std::string() : std::move(pieces[0].text);
    }
    const Added* const known = added_by_id(token.id);
    const auto at = uint32_t(known ? size_t(known - added_.data()) : added_.size());
    Added added;
    added.id = token.id;
    if (!known || added_texts_[known->text] != token.text)
        added.shown = added.text = add_text(token.text, at);
    else
        added = *known;
    // The library keeps a normalised text for decoding, though the token that replaces this one has another.
    if (normal != token.text && added_texts_[added.shown] != normal) added.shown = add_text(normal, at);
    added.special = added.special || token.special, added.normalized = token.normalized;
    added.strips_left = token.strips_left, added.strips_right = token.strips_right;
    added.single_word = token.single_word;
    if (known)
        added_[at] = added;
    else
        added_.push_back(added);
    added_by_id_.put(
        at, [&](uint32_t other) { return added_[other].id == token.id; },
        [&](uint32_t one) { return SeededHash()(uint64_t{added_[one].id}); });
    added_by_text_.put(
        at, [&](uint32_t other) { return added_texts_[added_[other].text] == token.text; },
        [&](uint32_t one) { return SeededHash()(added_texts_[added_[one].text]); });
    return {};
}

Result<void> TextTokenizer::Impl::finish_added() {
    std::vector<uint32_t> sets[2];
    for (const Added& added : added_)
        sets[added.normalized].push_back(added.normalized ? added.shown : added.text);
    raw_ = PrefixOrder(added_texts_, std::move(sets[0]));
    normalized_ = PrefixOrder(added_texts_, std::move(sets[1]));
    const std::vector<uint32_t>& rows = normalized_.rows();
    for (size_t i = 1; i < rows.size(); ++i) {
        if (added_texts_[rows[i]] != added_texts_[rows[i - 1]]) continue;
        const auto name = [&](uint32_t row) {
            return "'" + printable_name(added_texts_[added_[added_of_[row]].text], 60) + "'";
        };
        return unknown_tokenizer("the added tokens " + name(rows[i]) + " and " + name(rows[i - 1]) +
                                 " are the same text after the normalizer; they must differ");
    }
    return {};
}

const TextTokenizer::Impl::Added* TextTokenizer::Impl::added_by_id(uint32_t id) const {
    const uint32_t at =
        added_by_id_.find(SeededHash()(uint64_t{id}), [&](uint32_t one) { return added_[one].id == id; });
    return at == RowIndex::kNone ? nullptr : &added_[at];
}

const TextTokenizer::Impl::Added* TextTokenizer::Impl::added_by_text(std::string_view text) const {
    const uint32_t at = added_by_text_.find(
        SeededHash()(text), [&](uint32_t one) { return added_texts_[added_[one].text] == text; });
    return at == RowIndex::kNone ? nullptr : &added_[at];
}

uint32_t TextTokenizer::Impl::id_of(std::string_view text) const {
    const Added* const added = added_by_text(text);
    return added ? added->id : table->id_of(text);
}

std::string_view TextTokenizer::Impl::piece(uint32_t id) const {
    const Added* const added = added_by_id(id);
    return added ? added_texts_[added->shown] : table->piece(id);
}

// As the library `tokenizers` finds them: one may begin in the white space that the one before has taken.
std::vector<TextTokenizer::Impl::Found> TextTokenizer::Impl::find_added(const PrefixOrder& set,
                                                                        std::string_view text) const {
    std::vector<Found> out;
    size_t done = 0, spaces_end = 0;
    for (size_t at = 0; !set.empty() && at < text.size();) {
        size_t length = 0;
        uint32_t row = 0;
        set.each_prefix(text.substr(at), [&](size_t bytes, uint32_t found) { length = bytes, row = found; });
        const size_t end = at + length;
        const Added* token = length > 0 ? &added_[added_of_[row]] : nullptr;
        if (token && token->single_word &&
            ((at > 0 && word_ends_at(text, at)) || (end < text.size() && word_begins_at(text, end))))
            token = nullptr;
        if (token) {
            const size_t first = token->strips_left ? std::max(spaces_before(text, at, done), done) : at;
            // A run of white space is walked once.
            if (token->strips_right && end > spaces_end) spaces_end = spaces_behind(text, end);
            done = token->strips_right ? spaces_end : end;
            if (first < done) out.push_back({token, first, done});  // else the one before has all of it
        }
        at += length > 0 ? length : 1;
    }
    return out;
}

// As llama.cpp finds them: each token by itself in what is left of the text, longer ones first. Its white
// space is that of the C language.
std::vector<TextTokenizer::Impl::Found> TextTokenizer::Impl::find_longest(const PrefixOrder& set,
                                                                          std::string_view text) const {
    struct Place {
        size_t length;
        const Added* token;
        size_t at;
        bool operator<(const Place& other) const {
            return std::tuple(other.length, token->id, at) < std::tuple(length, other.token->id, other.at);
        }
    };
    std::vector<Place> places;
    for (size_t at = 0; !set.empty() && at < text.size(); ++at)
        set.each_prefix(text.substr(at), [&](size_t bytes, uint32_t row) {
            places.push_back({bytes, &added_[added_of_[row]], at});
        });
    std::sort(places.begin(), places.end());
    const auto is_blank = [&](size_t at) {
        return std::string_view(" \t\n\v\f\r").find(text[at]) != std::string_view::npos;
    };
    std::map<size_t, Found> taken;  // by where they begin
    for (const Place& place : places) {
        const auto after = taken.lower_bound(place.at);
        const size_t least = after == taken.begin() ? 0 : std::prev(after)->second.end;
        const size_t most = after == taken.end() ? text.size() : after->first;
        size_t begin = place.at, end = place.at + place.length;
        if (begin < least || end > most) continue;
        const Added& token = *place.token;
        while (token.strips_left && begin > least && is_blank(begin - 1)) --begin;
        while (token.strips_right && end < most && is_blank(end)) ++end;
        taken.emplace(begin, Found{&token, begin, end});
    }
    std::vector<Found> out;
    for (const auto& [begin, found] : taken) out.push_back(found);
    return out;
}

void TextTokenizer::Impl::split_added(const PrefixOrder& set, const AlignedText& piece,
                                      std::vector<Segment>& out) const {
    size_t done = 0;
    for (const Found& found : longest_first ? find_longest(set, piece.text) : find_added(set, piece.text)) {
        if (found.begin > done) out.push_back({nullptr, piece.part(done, found.begin), {}});
        out.push_back({found.token, {}, piece.source(found.begin, found.end)});
        done = found.end;
    }
    if (done < piece.text.size()) out.push_back({nullptr, piece.part(done, piece.text.size()), {}});
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
            if (!model->split(word.text, made))
                return broken_tokenizer(
                    "'" + printable_name(word.text, 60) +
                    "' is not in the vocabulary, and the tokenizer has no unknown token to use instead; "
                    "leave the text out");
            for (const WordToken& token : made) {
                const ByteRange place = word.source(token.begin, token.end);
                out.push_back({token.id, place.begin, place.end});
            }
        }
    }
    return {};
}

Result<std::vector<SplitToken>> TextTokenizer::Impl::tokens(std::string_view given, bool special) const {
    if (given.size() > kMaxText)
        return broken_tokenizer("the text has " + std::to_string(given.size()) +
                                " bytes; the limit is 1 GiB");
    if (const size_t fault = files::utf8_fault(given); fault != given.size())
        return broken_tokenizer("the text is not valid UTF-8 from its byte " + std::to_string(fault) + " on");
    std::vector<SplitToken> out;
    std::vector<Segment> segments;
    split_added(raw_, AlignedText::of(given, 0), segments);
    for (Segment& segment : segments) {
        if (segment.token)
            out.push_back({segment.token->id, segment.place.begin, segment.place.end});
        else if (Result<void> r = words(std::move(segment.piece), out); !r)
            return r.error();
    }
    std::vector<SplitToken> framed;
    size_t at = 0;  // position of the next special token
    for (const uint32_t id : frame) {
        if (id == kNoToken)
            framed.insert(framed.end(), out.begin(), out.end()), at = given.size();
        else if (special)
            framed.push_back({id, at, at});
    }
    return framed;
}

// ---- and back ----

std::string TextTokenizer::Impl::decode(std::span<const uint32_t> ids) const {
    std::vector<std::string> texts;
    for (const uint32_t id : ids) {
        const std::string_view one = piece(id);
        const Added* const added = added_by_text(one);
        if (!one.empty() && !(added && added->special)) texts.emplace_back(one);
    }
    for (const DecodeStep& step : decoders) step(texts);
    std::string out;
    for (const std::string& text : texts) out += text;
    return out;
}

// ---- the public face ----

bool TextTokenizer::available() { return has_character_tables(); }

Result<TextTokenizer> TextTokenizer::parse(std::string_view text, std::string_view config) {
    if (text.size() > kMaxBytes)
        return broken_tokenizer("tokenizer.json has " + std::to_string(text.size()) +
                                " bytes; the limit is 200 MiB");
    const Result<JsonValue> json = parse_json(text);
    if (!json) return json.error();
    const Result<JsonValue> more = config.empty() ? Result<JsonValue>(JsonValue()) : parse_json(config);
    if (!more) return broken_tokenizer("tokenizer_config.json: " + more.error().text);
    auto impl = std::make_shared<Impl>();
    if (Result<void> r = read_tokenizer(*json, *more, *impl); !r) return r.error();
    return TextTokenizer(std::move(impl));
}

Result<TextTokenizer> TextTokenizer::open(const std::filesystem::path& given) {
    std::error_code ignored;
    if (const std::vector<NamedFile> learned = learned_checkpoint(given); !learned.empty()) {
        const std::span<const std::byte> bytes = learned.back().file->held();
        if (learned.back().name == "tokenizer.json")
            return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        return unknown_tokenizer("the tokenizer of the model '" + given.string() + "' is not supported here");
    }
    const std::filesystem::path path =
        std::filesystem::is_directory(given, ignored) ? given / "tokenizer.json" : given;
    if (!std::filesystem::exists(path, ignored))
        return broken_tokenizer(printable_name(path.string(), 400) + " is missing");
    const auto text_of = [](const files::MappedFile& file) {
        return std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    };
    const auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    std::string_view config;
    const std::filesystem::path beside = path.parent_path() / "tokenizer_config.json";
    const bool has_config = path.filename() == "tokenizer.json" && std::filesystem::exists(beside, ignored);
    const auto config_file = has_config ? files::MappedFile::open(beside) : file;
    if (!config_file) return config_file.error();
    if (has_config) config = text_of(**config_file);
    Result<TextTokenizer> made = parse(text_of(**file), config);
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
