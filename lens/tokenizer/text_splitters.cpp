#include <fovea/tokenizer/characters.hpp>

#include <algorithm>

#include "tokenizer/split_pattern.hpp"
#include "tokenizer/text_steps.hpp"

namespace fovea {
namespace {

struct Cut {
    size_t begin, end;
    bool is_match;
};
using Finder = std::function<bool(const std::string&, std::vector<Cut>&)>;  // false: beyond limits

enum class Behaviour { isolated, removed, with_previous, with_next, contiguous };

// A step that cuts each piece at what `find` gives, which covers the whole piece in order.
TextStep cutter(Finder find, Behaviour behaviour) {
    return [find = std::move(find), behaviour](TextPieces& pieces) -> Result<void> {
        TextPieces out;
        std::vector<Cut> cuts, joined;
        for (const AlignedText& piece : pieces) {
            cuts.clear(), joined.clear();
            if (!find(piece.text, cuts)) return too_costly();
            bool before = false;
            for (size_t n = 0; n < cuts.size(); ++n) {
                const Cut& cut = cuts[behaviour == Behaviour::with_next ? cuts.size() - 1 - n : n];
                const bool joins =
                    behaviour == Behaviour::contiguous
                        ? !joined.empty() && cut.is_match == before
                        : (behaviour == Behaviour::with_previous || behaviour == Behaviour::with_next) &&
                              cut.is_match && !before && !joined.empty();
                if (joins) {
                    joined.back().begin = std::min(joined.back().begin, cut.begin);
                    joined.back().end = std::max(joined.back().end, cut.end);
                } else if (behaviour != Behaviour::removed || !cut.is_match) {
                    joined.push_back(cut);
                }
                before = cut.is_match;
            }
            if (behaviour == Behaviour::with_next) std::reverse(joined.begin(), joined.end());
            for (const Cut& cut : joined)
                if (cut.begin < cut.end) out.push_back(piece.part(cut.begin, cut.end));
        }
        pieces = std::move(out);
        return {};
    };
}

Finder by_pattern(SplitPattern pattern, bool invert) {
    return [pattern = std::move(pattern), invert](const std::string& text, std::vector<Cut>& cuts) {
        return pattern.split(text, [&](size_t begin, size_t end, bool match) {
            cuts.push_back({begin, end, match != invert});
        });
    };
}

Finder by_text(std::string needle, bool invert) {
    return [needle = std::move(needle), invert](const std::string& text, std::vector<Cut>& cuts) {
        for (size_t at = 0; at < text.size();) {
            const size_t found = needle.empty() ? std::string::npos : text.find(needle, at);
            if (found != at) cuts.push_back({at, std::min(found, text.size()), invert});
            if (found == std::string::npos) break;
            cuts.push_back({found, found + needle.size(), !invert});
            at = found + needle.size();
        }
        return true;
    };
}

Finder by_length(uint64_t characters) {
    return [characters](const std::string& text, std::vector<Cut>& cuts) {
        uint64_t count = 0;
        size_t begin = 0;
        for (size_t at = 0; at < text.size();) {
            at += character_at(text, at).bytes;
            if (++count % characters != 0 && at < text.size()) continue;
            cuts.push_back({begin, at, true});
            begin = at;
        }
        return true;
    };
}

// Each character of the class by itself is a match.
Finder by_class(bool (*is_in)(uint32_t)) {
    return [is_in](const std::string& text, std::vector<Cut>& cuts) {
        size_t begin = 0;
        for (size_t at = 0; at < text.size();) {
            const Character c = character_at(text, at);
            if (is_in(c.value)) {
                if (at > begin) cuts.push_back({begin, at, false});
                cuts.push_back({at, at + c.bytes, true});
                begin = at + c.bytes;
            }
            at += c.bytes;
        }
        if (begin < text.size()) cuts.push_back({begin, text.size(), false});
        return true;
    };
}

// The equivalents of \w+ and [^\w\s]+ in Rust's regular expressions, whose words may contain joiners.
constexpr std::string_view kWords = R"([\w\p{Join_Control}]+|[^\w\p{Join_Control}\s]+)";

bool is_bert_punctuation(uint32_t c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~') || is_punctuation(c);
}

Result<Behaviour> behaviour_of(const JsonValue& step) {
    const std::string_view name = step["behavior"].text();
    constexpr std::pair<std::string_view, Behaviour> kNames[] = {
        {"Isolated", Behaviour::isolated},
        {"Removed", Behaviour::removed},
        {"MergedWithPrevious", Behaviour::with_previous},
        {"MergedWithNext", Behaviour::with_next},
        {"Contiguous", Behaviour::contiguous}};
    for (const auto& [known, behaviour] : kNames)
        if (name == known) return behaviour;
    return unknown("a split of the kind '" + printable_name(name, 40) + "' is not supported");
}

Result<Finder> finder_of(const JsonValue& pattern, bool invert) {
    // An empty text is found everywhere, as an empty pattern is.
    auto regex = pattern.find("String");
    if (regex && !regex->text().empty()) return by_text(std::string(regex->text()), invert);
    if (!regex) regex = pattern.find("Regex");
    if (!regex) return broken("a pattern is neither a Regex nor a String");
    Result<SplitPattern> compiled = SplitPattern::compile(regex->text());
    if (!compiled) return compiled.error();
    return by_pattern(std::move(*compiled), invert);
}

}  // namespace

Result<TextStep> pattern_splitter(std::string_view pattern) {
    Result<SplitPattern> compiled = SplitPattern::compile(pattern);
    if (!compiled) return compiled.error();
    return cutter(by_pattern(std::move(*compiled), false), Behaviour::isolated);
}

TextStep bert_splitter() {
    return in_order({cutter(by_class(is_space), Behaviour::removed),
                     cutter(by_class(is_bert_punctuation), Behaviour::isolated)},
                    true);
}

namespace {

// Spaces as marks, one more before the text, words at the marks.
Result<void> read_metaspace(const JsonValue& step, std::vector<TextStep>& to) {
    const std::string mark(step["replacement"].text());
    if (mark.empty()) return broken("the step Metaspace has no replacement, which it needs");
    // Versions before 0.15 of the library say true or false.
    std::string_view scheme = step["prepend_scheme"].text();
    const JsonValue& adds = step["add_prefix_space"];
    if (scheme.empty()) scheme = adds.kind() == JsonValue::Kind::null || adds.boolean() ? "always" : "never";
    to.push_back(replacer(" ", mark));
    if (scheme != "never") {
        to.push_back([mark, only_first = scheme == "first"](TextPieces& pieces) -> Result<void> {
            for (AlignedText& piece : pieces)
                if (!piece.text.starts_with(mark) && !(only_first && piece.from[0].begin != 0))
                    piece = with_before(piece, mark);
            return {};
        });
    }
    const JsonValue& split = step["split"];
    if (split.kind() == JsonValue::Kind::null || split.boolean())
        to.push_back(cutter(by_text(mark, false), Behaviour::with_next));
    return {};
}

Result<void> read_byte_level(const JsonValue& step, std::vector<TextStep>& to) {
    if (step["add_prefix_space"].boolean())
        to.push_back([](TextPieces& pieces) -> Result<void> {
            for (AlignedText& piece : pieces)
                if (!piece.text.starts_with(' ')) piece = with_before(piece, " ");
            return {};
        });
    const JsonValue& regex = step["use_regex"];
    if (regex.kind() == JsonValue::Kind::null || regex.boolean()) {
        Result<TextStep> made = pattern_splitter(kGpt2Pattern);
        if (!made) return made.error();
        to.push_back(std::move(*made));
    }
    to.push_back(byte_writer());
    return {};
}

}  // namespace

Result<void> read_splitter(const JsonValue& step, std::vector<TextStep>& to) {
    if (step.kind() == JsonValue::Kind::null) return {};
    const std::string_view type = step["type"].text();
    if (type == "Sequence") {
        for (const JsonValue& one : step["pretokenizers"].items())
            if (Result<void> r = read_splitter(one, to); !r) return r;
    } else if (type == "ByteLevel") {
        return read_byte_level(step, to);
    } else if (type == "Metaspace") {
        return read_metaspace(step, to);
    } else if (type == "BertPreTokenizer") {
        to.push_back(bert_splitter());
    } else if (type == "WhitespaceSplit") {
        to.push_back(in_order({cutter(by_class(is_space), Behaviour::removed)}, true));
    } else if (type == "Whitespace") {
        Result<SplitPattern> words = SplitPattern::compile(kWords);
        if (!words) return words.error();
        to.push_back(cutter(by_pattern(std::move(*words), true), Behaviour::removed));
    } else if (type == "Digits") {
        to.push_back(in_order(
            {cutter(by_class(is_number),
                    step["individual_digits"].boolean() ? Behaviour::isolated : Behaviour::contiguous)},
            true));
    } else if (type == "FixedLength") {
        const JsonValue& given = step["length"];
        const double length = given.kind() == JsonValue::Kind::null ? 5 : given.number();
        if (!(length >= 1) || length > double(UINT32_MAX))
            return broken("the length of FixedLength is " + printable_name(given.scalar_text(), 40) +
                          "; it must be from 1 to 4294967295");
        to.push_back(cutter(by_length(uint64_t(length)), Behaviour::isolated));
    } else if (type == "CharDelimiterSplit") {
        to.push_back(cutter(by_text(std::string(step["delimiter"].text()), false), Behaviour::removed));
    } else if (type == "Punctuation" || type == "Split") {
        const bool marks = type == "Punctuation" && step["behavior"].text().empty();
        const Result<Behaviour> behaviour = marks ? Behaviour::isolated : behaviour_of(step);
        if (!behaviour) return behaviour.error();
        if (type == "Punctuation") {
            to.push_back(in_order({cutter(by_class(is_bert_punctuation), *behaviour)}, true));
            return {};
        }
        Result<Finder> find = finder_of(step["pattern"], step["invert"].boolean());
        if (!find) return find.error();
        to.push_back(cutter(std::move(*find), *behaviour));
    } else {
        return unknown("the step '" + printable_name(type, 40) + "' is not supported");
    }
    return {};
}

}  // namespace fovea
