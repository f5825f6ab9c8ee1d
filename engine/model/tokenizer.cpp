#include "model/tokenizer.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <unordered_map>

#include "files/mapped_file.hpp"
#include "files/utf8.hpp"
#include "model/split_pattern.hpp"

namespace fovea {
namespace {

constexpr uint64_t kMostBytes = uint64_t{200} << 20;
constexpr uint32_t kNoToken = UINT32_MAX;
constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581, SentencePiece's space
// GPT-2's own split into words (Radford et al., 2019).
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error unknown(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
Error broken(std::string what) { return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)}; }

void append_utf8(std::string& out, uint32_t c) {
    if (c < 0x80) {
        out += char(c);
    } else if (c < 0x800) {
        out += char(0xc0 | c >> 6);
        out += char(0x80 | (c & 0x3f));
    } else {
        out += char(0xe0 | c >> 12);
        out += char(0x80 | (c >> 6 & 0x3f));
        out += char(0x80 | (c & 0x3f));
    }
}

// GPT-2's characters for bytes: those that can be printed stand for themselves, the others for U+0100 on.
const std::array<std::string, 256>& byte_characters() {
    static const std::array<std::string, 256> kTable = [] {
        std::array<std::string, 256> table;
        uint32_t next = 256;
        for (uint32_t b = 0; b < 256; ++b) {
            const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            append_utf8(table[b], itself ? b : next++);
        }
        return table;
    }();
    return kTable;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const size_t found = from.empty() ? std::string_view::npos : text.find(from, at);
        if (found == std::string_view::npos) return out += text.substr(at);
        out += text.substr(at, found - at);
        out += to;
        at = found + from.size();
    }
    return out;
}

// Whether composition (NFC) changes nothing: characters of blocks in which all are composed already and none
// combines with the one before.
bool is_composed(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const size_t length = files::utf8_length(text.substr(at));
        uint32_t c = static_cast<unsigned char>(text[at]) & (length == 1 ? 0x7fu : 0xffu >> (length + 1));
        for (size_t i = 1; i < length; ++i) c = c << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
        const bool safe = c < 0x300 || (c >= 0x400 && c <= 0x482) || (c >= 0x48a && c <= 0x52f) ||
                          (c >= 0x2010 && c <= 0x205f) || (c >= 0x20a0 && c <= 0x20bf) ||
                          (c >= 0x3001 && c <= 0x3029) || (c >= 0x3041 && c <= 0x3094) ||
                          (c >= 0x30a1 && c <= 0x30fa) || (c >= 0x4e00 && c <= 0x9fff) ||
                          (c >= 0xac00 && c <= 0xd7a3) || (c >= 0x1f300 && c <= 0x1faff);
        if (!safe) return false;
        at += length;
    }
    return true;
}

struct Added {
    std::string text;
    uint32_t id = 0;
    bool special = false, strips_left = false, strips_right = false;
};

// One step before the merges: a change of the text, or a split.
struct Step {
    enum class Kind { replace, prepend, composed, lower_only, split, remove, bytes, metaspace } kind;
    std::string from, to;
    SplitPattern pattern;
    bool only_first = false;
};

struct Merge {
    uint32_t rank, id;
};

}  // namespace

class TextTokenizer::Impl {
  public:
    Result<void> read(const JsonValue& json);
    Result<std::vector<uint32_t>> encode(std::string_view text, bool special) const;
    std::string decode(std::span<const uint32_t> ids) const;
    std::string_view piece(uint32_t id) const {
        return id < pieces_.size() ? std::string_view(pieces_[id]) : "";
    }

  private:
    using Words = std::vector<std::string>;

    Result<void> read_model(const JsonValue& model);
    Result<void> read_steps(const JsonValue& step, std::vector<Step>& to, bool normalises);
    Result<void> read_ends(const JsonValue& post);
    Result<void> words_of(std::string_view text, bool first, Words& words) const;
    void merge(std::string_view word, std::vector<uint32_t>& ids) const;
    uint32_t id_of(std::string_view piece) const {
        const auto found = ids_.find(std::string(piece));
        return found == ids_.end() ? kNoToken : found->second;
    }

    std::vector<std::string> pieces_;
    std::unordered_map<std::string, uint32_t> ids_;
    std::unordered_map<uint64_t, Merge> merges_;
    std::vector<Added> added_;
    std::vector<Step> steps_;
    std::vector<uint32_t> begin_, end_;
    std::vector<bool> is_special_;
    uint32_t unknown_ = kNoToken;
    bool bytes_ = false, byte_fallback_ = false, whole_words_ = false, space_before_ = false;
};

Result<void> TextTokenizer::Impl::read_model(const JsonValue& model) {
    const std::string_view type = model["type"].text();
    if (type != "BPE" && !(type.empty() && model.find("merges")))
        return unknown("the tokenizer is of the kind '" + printable_name(type, 40) + "'; BPE is computed");
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"})
        if (!model[key].text().empty())
            return unknown("the tokenizer's " + std::string(key) + " is not computed");
    const auto& vocabulary = model["vocab"].members();
    const auto put = [&](const std::string& text, double number) {
        if (!(number >= 0) || number >= double(1u << 28)) return false;
        const auto id = uint32_t(number);
        if (id >= pieces_.size()) pieces_.resize(id + 1);
        pieces_[id] = text;
        return ids_.emplace(text, id).second || ids_[text] == id;
    };
    if (vocabulary.empty()) return broken("the tokenizer has no vocabulary");
    for (const auto& [text, id] : vocabulary)
        if (id.kind() != JsonValue::Kind::number || !put(text, id.number()))
            return broken("token '" + printable_name(text, 60) +
                          "' has no number of its own from 0 to 268435455");
    uint32_t rank = 0;
    for (const JsonValue& merge : model["merges"].items()) {
        std::string first, second;
        if (merge.kind() == JsonValue::Kind::text) {
            const std::string_view text = merge.text();
            const size_t space = text.find(' ');
            first = text.substr(0, space),
            second = space == std::string_view::npos ? "" : text.substr(space + 1);
        } else if (merge.items().size() == 2) {
            first = merge.items()[0].text(), second = merge.items()[1].text();
        }
        const uint32_t a = id_of(first), b = id_of(second), both = id_of(first + second);
        if (a == kNoToken || b == kNoToken || both == kNoToken)
            return broken("merge " + std::to_string(rank) + " is of tokens that the vocabulary lacks");
        merges_.emplace(uint64_t{a} << 32 | b, Merge{rank++, both});
    }
    byte_fallback_ = model["byte_fallback"].boolean();
    whole_words_ = model["ignore_merges"].boolean();
    if (!model["unk_token"].text().empty()) unknown_ = id_of(model["unk_token"].text());
    return {};
}

// A normalizer or pre_tokenizer of tokenizer.json, or a sequence of them.
Result<void> TextTokenizer::Impl::read_steps(const JsonValue& step, std::vector<Step>& to, bool normalises) {
    if (step.kind() == JsonValue::Kind::null) return {};
    const std::string_view type = step["type"].text();
    if (type == "Sequence") {
        for (const JsonValue& one : step[normalises ? "normalizers" : "pretokenizers"].items())
            if (Result<void> r = read_steps(one, to, normalises); !r) return r;
        return {};
    }
    Step made{Step::Kind::replace, {}, {}, {}, false};
    const auto with_pattern = [&](std::string_view pattern) -> Result<void> {
        Result<SplitPattern> compiled = SplitPattern::compile(pattern);
        if (!compiled) return compiled.error();
        made.pattern = std::move(*compiled);
        to.push_back(made);
        return {};
    };
    if (type == "NFC") {
        made.kind = Step::Kind::composed;
        to.push_back(std::move(made));
    } else if (type == "Prepend") {
        made.kind = Step::Kind::prepend, made.to = step["prepend"].text();
        space_before_ = true;
        to.push_back(std::move(made));
    } else if (type == "Replace" && step["pattern"].find("String")) {
        made.from = step["pattern"]["String"].text(), made.to = step["content"].text();
        to.push_back(std::move(made));
    } else if (type == "Split") {
        const std::string_view behaviour = step["behavior"].text();
        if (step["invert"].boolean() ||
            (behaviour != "Isolated" && behaviour != "Removed" && behaviour != "MergedWithPrevious"))
            return unknown("a split of the kind '" + printable_name(behaviour, 40) + "' is not computed");
        // "Merged with the previous" of single spaces leaves normalised text whole, which has none.
        if (behaviour == "MergedWithPrevious") return {};
        made.kind = behaviour == "Isolated" ? Step::Kind::split : Step::Kind::remove;
        if (const JsonValue* regex = step["pattern"].find("Regex")) return with_pattern(regex->text());
        return with_pattern("\\Q" + std::string(step["pattern"]["String"].text()) + "\\E");
    } else if (type == "Digits") {
        made.kind = Step::Kind::split;
        return with_pattern(step["individual_digits"].boolean() ? "\\p{N}" : "\\p{N}+");
    } else if (type == "ByteLevel") {
        if (step["add_prefix_space"].boolean()) {
            Step prefix{Step::Kind::prepend, {}, " ", {}, true};
            to.push_back(std::move(prefix));
        }
        const JsonValue& regex = step["use_regex"];
        if (regex.kind() == JsonValue::Kind::null || regex.boolean()) {
            made.kind = Step::Kind::split;
            if (Result<void> r = with_pattern(kGpt2Pattern); !r) return r;
        }
        bytes_ = true;
    } else if (type == "Metaspace") {
        const std::string_view scheme = step["prepend_scheme"].text();
        made.from = " ", made.to = step["replacement"].text();
        to.push_back(made);
        if (scheme != "never") {
            Step prefix{
                Step::Kind::prepend, {}, std::string(step["replacement"].text()), {}, scheme == "first"};
            space_before_ = true;
            to.push_back(std::move(prefix));
        }
        if (step["split"].boolean())
            return unknown("words that are split at their spaces' marks are not computed");
    } else {
        return unknown("the step '" + printable_name(type, 40) + "' is not computed");
    }
    return {};
}

// What the post-processor puts before and behind one text.
Result<void> TextTokenizer::Impl::read_ends(const JsonValue& post) {
    const std::string_view type = post["type"].text();
    if (post.kind() == JsonValue::Kind::null || type == "ByteLevel") return {};
    if (type == "Sequence") {
        for (const JsonValue& one : post["processors"].items())
            if (Result<void> r = read_ends(one); !r) return r;
        return {};
    }
    if (type == "RobertaProcessing" || type == "BertProcessing") {
        for (const auto& [key, to] : {std::pair{"cls", &begin_}, {"sep", &end_}})
            if (post[key].items().size() == 2) to->push_back(uint32_t(post[key].items()[1].number()));
        return {};
    }
    if (type != "TemplateProcessing")
        return unknown("the post-processor '" + printable_name(type, 40) + "' is not computed");
    bool behind = false;
    for (const JsonValue& part : post["single"].items()) {
        if (part.find("Sequence")) behind = true;
        if (const JsonValue* token = part.find("SpecialToken"))
            for (const JsonValue& id : post["special_tokens"][(*token)["id"].text()]["ids"].items())
                (behind ? end_ : begin_).push_back(uint32_t(id.number()));
    }
    return {};
}

Result<void> TextTokenizer::Impl::read(const JsonValue& json) {
    if (Result<void> r = read_model(json["model"]); !r) return r;
    if (Result<void> r = read_steps(json["normalizer"], steps_, true); !r) return r;
    if (Result<void> r = read_steps(json["pre_tokenizer"], steps_, false); !r) return r;
    if (Result<void> r = read_ends(json["post_processor"]); !r) return r;
    for (const JsonValue& token : json["added_tokens"].items()) {
        Added a{std::string(token["content"].text()),
                uint32_t(std::clamp(token["id"].number(), 0.0, double(1u << 28))), token["special"].boolean(),
                token["lstrip"].boolean(), token["rstrip"].boolean()};
        if (a.text.empty()) return broken("an added token has no text");
        if (a.id >= pieces_.size()) pieces_.resize(a.id + 1);
        pieces_[a.id] = a.text;
        if (is_special_.size() <= a.id) is_special_.resize(a.id + 1);
        is_special_[a.id] = a.special;
        added_.push_back(std::move(a));
    }
    // Of two that begin at one place the longer is taken.
    std::stable_sort(added_.begin(), added_.end(),
                     [](const Added& a, const Added& b) { return a.text.size() > b.text.size(); });
    return {};
}

Result<void> TextTokenizer::Impl::words_of(std::string_view text, bool first, Words& words) const {
    Words pieces = {std::string(text)};
    for (const Step& step : steps_) {
        Words next;
        for (size_t i = 0; i < pieces.size(); ++i) {
            std::string& piece = pieces[i];
            switch (step.kind) {
                case Step::Kind::replace:
                    next.push_back(replaced(piece, step.from, step.to));
                    break;
                case Step::Kind::prepend:
                    // ByteLevel's own space is left out where there is one already.
                    if (!piece.empty() && i == 0 && (!step.only_first || first || step.to == " ") &&
                        !piece.starts_with(step.to))
                        piece = step.to + piece;
                    else if (!piece.empty() && i == 0 && !step.only_first)
                        piece = step.to + piece;
                    next.push_back(std::move(piece));
                    break;
                case Step::Kind::composed:
                    if (!is_composed(piece))
                        return unknown(
                            "the text has characters that may have to be composed (NFC), which is not "
                            "computed");
                    next.push_back(std::move(piece));
                    break;
                default: {
                    const bool keeps = step.kind == Step::Kind::split;
                    const bool whole = step.pattern.split(piece, [&](size_t begin, size_t end, bool match) {
                        if (keeps || !match) next.push_back(piece.substr(begin, end - begin));
                    });
                    if (!whole) return unknown("the text takes the pattern beyond PCRE2's limits");
                }
            }
        }
        pieces = std::move(next);
    }
    for (std::string& piece : pieces) {
        if (piece.empty()) continue;
        if (!bytes_) {
            words.push_back(std::move(piece));
            continue;
        }
        std::string characters;
        for (const char c : piece) characters += byte_characters()[static_cast<unsigned char>(c)];
        words.push_back(std::move(characters));
    }
    return {};
}

// The pair of the lowest rank is merged first, the leftmost of equals; a heap keeps long words affordable.
void TextTokenizer::Impl::merge(std::string_view word, std::vector<uint32_t>& ids) const {
    if (whole_words_)
        if (const uint32_t whole = id_of(word); whole != kNoToken) return ids.push_back(whole);
    struct Symbol {
        uint32_t id;
        int32_t before, after;
    };
    std::vector<Symbol> symbols;
    const auto add = [&](uint32_t id) {
        const auto at = int32_t(symbols.size());
        if (at > 0) symbols.back().after = at;
        symbols.push_back({id, at - 1, -1});
    };
    for (size_t at = 0; at < word.size();) {
        const size_t length = std::max<size_t>(1, files::utf8_length(word.substr(at)));
        const std::string_view character = word.substr(at, length);
        at += length;
        if (const uint32_t id = id_of(character); id != kNoToken) {
            add(id);
            continue;
        }
        for (const char c : character) {
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", unsigned(static_cast<unsigned char>(c)));
            const uint32_t id = byte_fallback_ ? id_of(name) : kNoToken;
            if (id != kNoToken) add(id);
            if (id == kNoToken && unknown_ != kNoToken && c == character[0]) add(unknown_);
        }
    }
    struct Candidate {
        uint32_t rank;
        int32_t at;
        uint32_t first, second, made;
        bool operator<(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : at > other.at;
        }
    };
    std::priority_queue<Candidate> heap;
    const auto look = [&](int32_t at) {
        if (at < 0 || symbols[size_t(at)].after < 0) return;
        const uint32_t first = symbols[size_t(at)].id, second = symbols[size_t(symbols[size_t(at)].after)].id;
        const auto found = merges_.find(uint64_t{first} << 32 | second);
        if (found != merges_.end()) heap.push({found->second.rank, at, first, second, found->second.id});
    };
    for (size_t i = 0; i < symbols.size(); ++i) look(int32_t(i));
    while (!heap.empty()) {
        const Candidate top = heap.top();
        heap.pop();
        Symbol& left = symbols[size_t(top.at)];
        if (left.id != top.first || left.after < 0 || symbols[size_t(left.after)].id != top.second) continue;
        Symbol& right = symbols[size_t(left.after)];
        left.id = top.made;
        left.after = right.after;
        right.id = kNoToken;
        if (left.after >= 0) symbols[size_t(left.after)].before = top.at;
        look(left.before);
        look(top.at);
    }
    for (int32_t at = symbols.empty() ? -1 : 0; at >= 0; at = symbols[size_t(at)].after)
        ids.push_back(symbols[size_t(at)].id);
}

Result<std::vector<uint32_t>> TextTokenizer::Impl::encode(std::string_view text, bool special) const {
    if (const size_t fault = files::utf8_fault(text); fault != text.size())
        return broken("the text is not valid UTF-8 from its byte " + std::to_string(fault) + " on");
    std::vector<uint32_t> ids;
    if (special) ids = begin_;
    size_t done = 0;
    const auto plain = [&](size_t end) -> Result<void> {
        if (end <= done) return {};
        Words words;
        if (Result<void> r = words_of(text.substr(done, end - done), done == 0, words); !r) return r;
        for (const std::string& word : words) merge(word, ids);
        return {};
    };
    while (done < text.size()) {
        const Added* next = nullptr;
        size_t at = std::string_view::npos;
        for (const Added& a : added_)
            if (const size_t found = text.find(a.text, done); found < at) at = found, next = &a;
        if (!next) break;
        size_t begin = at, end = at + next->text.size();
        while (next->strips_left && begin > done && text[begin - 1] == ' ') --begin;
        while (next->strips_right && end < text.size() && text[end] == ' ') ++end;
        if (Result<void> r = plain(begin); !r) return r.error();
        ids.push_back(next->id);
        done = end;
    }
    if (Result<void> r = plain(text.size()); !r) return r.error();
    if (special) ids.insert(ids.end(), end_.begin(), end_.end());
    return ids;
}

std::string TextTokenizer::Impl::decode(std::span<const uint32_t> ids) const {
    static const std::unordered_map<std::string, char> kBytes = [] {
        std::unordered_map<std::string, char> map;
        for (size_t b = 0; b < 256; ++b) map.emplace(byte_characters()[b], char(b));
        return map;
    }();
    std::string out;
    for (const uint32_t id : ids) {
        const std::string_view text = piece(id);
        if (id < is_special_.size() && is_special_[id]) continue;
        if (!bytes_) {
            unsigned byte = 0;
            if (byte_fallback_ && text.size() == 6 &&
                std::sscanf(std::string(text).c_str(), "<0x%2X>", &byte) == 1)
                out += char(byte);
            else
                out += replaced(text, kSpaceMark, " ");
            continue;
        }
        for (size_t at = 0; at < text.size();) {
            const size_t length = std::max<size_t>(1, files::utf8_length(text.substr(at)));
            const auto byte = kBytes.find(std::string(text.substr(at, length)));
            if (byte != kBytes.end())
                out += byte->second;
            else
                out += text.substr(at, length);
            at += length;
        }
    }
    if (space_before_ && out.starts_with(' ')) out.erase(0, 1);
    return out;
}

bool TextTokenizer::available() { return SplitPattern::available(); }

Result<TextTokenizer> TextTokenizer::open(const std::filesystem::path& given) {
    std::error_code ignored;
    const std::filesystem::path path =
        std::filesystem::is_directory(given, ignored) ? given / "tokenizer.json" : given;
    if (!std::filesystem::exists(path, ignored))
        return broken(printable_name(path.string(), 400) + " is not there: give token numbers with --tokens");
    if (!available()) return SplitPattern::compile("").error();
    const auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    const auto bytes = (*file)->bytes();
    const auto in_file = [&](Error error) {
        error.text = printable_name(path.string(), 400) + ": " + error.text;
        return error;
    };
    if (bytes.size() > kMostBytes) return in_file(broken("a tokenizer has up to 200 MiB"));
    const Result<JsonValue> json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!json) return in_file(json.error());
    auto impl = std::make_shared<Impl>();
    if (Result<void> r = impl->read(*json); !r) return in_file(r.error());
    return TextTokenizer(std::move(impl));
}

Result<std::vector<uint32_t>> TextTokenizer::encode(std::string_view text, bool special) const {
    return impl_->encode(text, special);
}
std::string TextTokenizer::decode(std::span<const uint32_t> ids) const { return impl_->decode(ids); }
std::string_view TextTokenizer::piece(uint32_t id) const { return impl_->piece(id); }

}  // namespace fovea
