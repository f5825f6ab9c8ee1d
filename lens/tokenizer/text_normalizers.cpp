#include <fovea/files.hpp>
#include <fovea/tokenizer/characters.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include "files/little_endian.hpp"
#include "tokenizer/code_set.hpp"
#include "tokenizer/split_pattern.hpp"
#include "tokenizer/text_steps.hpp"

namespace fovea {
namespace {

// A step that rewrites each piece by itself; what becomes empty is dropped.
template <class Rewrite>  // AlignedText(const AlignedText&)
TextStep each_piece(Rewrite rewrite, bool only_ascii_without_tables = true) {
    return [rewrite, only_ascii_without_tables](TextPieces& pieces) -> Result<void> {
        for (AlignedText& piece : pieces) {
            if (only_ascii_without_tables && !has_character_tables() && !is_ascii(piece.text))
                return unknown("this build has no utf8proc, which rewrites texts beyond ASCII");
            piece = rewrite(piece);
        }
        std::erase_if(pieces, [](const AlignedText& piece) { return piece.empty(); });
        return {};
    };
}

// `change(c, out)` appends what a character becomes.
template <class Change>
AlignedText by_character(const AlignedText& piece, Change change) {
    AlignedText out;
    std::string made;
    for (size_t at = 0; at < piece.text.size();) {
        const Character c = character_at(piece.text, at);
        made.clear();
        change(c.value, made);
        if (std::string_view(piece.text).substr(at, c.bytes) == made)
            out.append(piece, at, at + c.bytes);
        else
            out.append(made, piece.source(at, at + c.bytes));
        at += c.bytes;
    }
    return out;
}

// `made` is the result for characters that interact, `alone` the result for each one separately. Characters
// in the common beginning and end keep their own bytes; those that composed or changed places between have
// the bytes of that whole part.
AlignedText joined(const AlignedText& alone, const std::string& made) {
    const size_t most = std::min(made.size(), alone.text.size());
    size_t front = 0, back = 0;
    while (front < most) {
        const size_t bytes = character_at(made, front).bytes;
        if (alone.text.compare(front, bytes, made, front, bytes) != 0) break;
        front += bytes;
    }
    while (front + back < most) {
        const size_t at = made.size() - back;
        size_t start = at - 1;
        while (start > 0 && (static_cast<unsigned char>(made[start]) & 0xc0u) == 0x80u) --start;
        const size_t bytes = at - start;
        if (front + back + bytes > most) break;
        if (alone.text.compare(alone.text.size() - back - bytes, bytes, made, start, bytes) != 0) break;
        back += bytes;
    }
    AlignedText out;
    out.append(alone, 0, front);
    out.append(std::string_view(made).substr(front, made.size() - front - back),
               alone.source(front, alone.text.size() - back));
    out.append(alone, alone.text.size() - back, alone.text.size());
    return out;
}

AlignedText in_form(const AlignedText& piece, NormalForm form) {
    AlignedText out;
    size_t begin = 0;
    for (const size_t end : grapheme_ends(piece.text)) {
        const std::string_view before = std::string_view(piece.text).substr(begin, end - begin);
        const std::string made = normal_form(before, form);
        // Where characters do not act on each other, each knows its own bytes.
        AlignedText alone;
        for (size_t at = begin; at < end;) {
            const size_t next = at + character_at(piece.text, at).bytes;
            const std::string_view one = std::string_view(piece.text).substr(at, next - at);
            const std::string changed = normal_form(one, form);
            if (changed == one)
                alone.append(piece, at, next);
            else
                alone.append(changed, piece.source(at, next));
            at = next;
        }
        out.append(alone.text == made ? alone : joined(alone, made), 0, made.size());
        begin = end;
    }
    return out;
}

AlignedText without(const AlignedText& piece, bool (*is_dropped)(uint32_t)) {
    return by_character(piece, [&](uint32_t c, std::string& made) {
        if (!is_dropped(c)) append_utf8(made, c);
    });
}

AlignedText lowered(const AlignedText& piece) {
    return by_character(piece, [](uint32_t c, std::string& made) { append_lower(made, c); });
}

// The bytes that a text in place of [begin, end) comes from: those of the last character, as in the library.
ByteRange replaced(const AlignedText& piece, size_t begin, size_t end) {
    size_t at = end;
    while (at > begin && (at == end || (static_cast<unsigned char>(piece.text[at]) & 0xc0u) == 0x80u)) --at;
    return piece.source(at, end);
}

AlignedText with_replaced(const AlignedText& piece, std::string_view from, std::string_view to) {
    AlignedText out;
    for (size_t at = 0; at < piece.text.size();) {
        const size_t found = from.empty() ? std::string::npos : piece.text.find(from, at);
        if (found == std::string::npos) {
            out.append(piece, at, piece.text.size());
            break;
        }
        out.append(piece, at, found);
        out.append(to, replaced(piece, found, found + from.size()));
        at = found + from.size();
    }
    return out;
}

AlignedText stripped(const AlignedText& piece, bool left, bool right) {
    size_t begin = 0, end = piece.text.size();
    while (left && begin < end) {
        const Character c = character_at(piece.text, begin);
        if (!is_space(c.value)) break;
        begin += c.bytes;
    }
    while (right && end > begin) {
        size_t start = end - 1;
        while (start > begin && (static_cast<unsigned char>(piece.text[start]) & 0xc0u) == 0x80u) --start;
        if (!is_space(character_at(piece.text, start).value)) break;
        end = start;
    }
    return piece.part(begin, end);
}

// SentencePiece's rules for machine translation.
void nmt(uint32_t c, std::string& made) {
    static const CodeSet kGone = {{1, 8}, {0xb, 0xb}, {0xe, 0x1f}, {0x7f, 0x7f}, {0x8f, 0x8f}, {0x9f, 0x9f}};
    static const CodeSet kSpaces = {{9, 10},          {12, 13},         {0x1680, 0x1680}, {0x200b, 0x200f},
                                    {0x2028, 0x2029}, {0x2581, 0x2581}, {0xfeff, 0xfeff}, {0xfffd, 0xfffd}};
    if (!kGone.has(c)) append_utf8(made, kSpaces.has(c) ? uint32_t{' '} : c);
}

bool is_ideograph(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) ||
           (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

// ---- SentencePiece's table of normalisations ----

// A double array (Aoe, 1989) in Darts' layout: units of 32 bits, and the texts that their values lead to.
class PrecompiledTable {
  public:
    // Empty where the table's sizes do not fit.
    static std::shared_ptr<const PrecompiledTable> read(const std::vector<uint8_t>& bytes) {
        const auto data = std::as_bytes(std::span(bytes));
        if (data.size() < 4) return nullptr;
        const uint64_t size = files::read_le(data, 0, 4);
        if (size == 0 || size % 4 != 0 || size > data.size() - 4) return nullptr;
        auto table = std::make_shared<PrecompiledTable>();
        for (uint64_t at = 0; at < size; at += 4)
            table->units_.push_back(uint32_t(files::read_le(data, 4 + at, 4)));
        table->texts_.assign(reinterpret_cast<const char*>(bytes.data()) + 4 + size, bytes.size() - 4 - size);
        return table;
    }

    // Returns the replacement of the shortest, or the longest, beginning of `text` in the table; `bytes` is
    // its length.
    const char* find(std::string_view text, bool longest, size_t& bytes) const {
        uint64_t at = 0;
        uint32_t unit = units_[0];
        const char* found = nullptr;
        at ^= offset(unit);
        for (size_t i = 0; i < text.size() && (longest || !found); ++i) {
            const auto c = static_cast<unsigned char>(text[i]);
            at ^= c;
            if (c == 0 || at >= units_.size()) break;
            unit = units_[at];
            if ((unit & 0x800000ffu) != c) break;
            at ^= offset(unit);
            if ((unit >> 8 & 1u) == 0) continue;
            const uint64_t value = at < units_.size() ? units_[at] & 0x7fffffffu : UINT64_MAX;
            if (value >= texts_.size()) break;
            found = texts_.c_str() + value, bytes = i + 1;
        }
        return found;
    }

  private:
    static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
    std::vector<uint32_t> units_;
    std::string texts_;
};

AlignedText precompiled(const PrecompiledTable& table, const AlignedText& piece) {
    AlignedText out;
    const auto put = [&](size_t begin, size_t end) {
        size_t bytes = 0;
        const char* made = table.find(std::string_view(piece.text).substr(begin, end - begin), false, bytes);
        if (made) out.append(made, piece.source(begin, end));
        return made != nullptr;
    };
    size_t begin = 0;
    for (const size_t end : grapheme_ends(piece.text)) {
        // As the library has it: a short grapheme is looked up as a whole first, then by character.
        if (!(end - begin < 6 && put(begin, end)))
            for (size_t at = begin; at < end;) {
                const size_t next = at + character_at(piece.text, at).bytes;
                if (!put(at, next)) out.append(piece, at, next);
                at = next;
            }
        begin = end;
    }
    return out;
}

}  // namespace

AlignedText with_before(const AlignedText& piece, std::string_view text) {
    AlignedText out;
    const uint32_t at = piece.from.empty() ? 0 : piece.from[0].begin;
    out.append(text, {at, at});
    out.append(piece, 0, piece.text.size());
    return out;
}

TextStep in_order(std::vector<TextStep> steps, bool needs_tables) {
    return [steps = std::move(steps), needs_tables](TextPieces& pieces) -> Result<void> {
        for (const AlignedText& piece : pieces)
            if (needs_tables && !has_character_tables() && !is_ascii(piece.text))
                return unknown("this build has no utf8proc, which knows characters beyond ASCII");
        for (const TextStep& step : steps)
            if (Result<void> r = step(pieces); !r) return r;
        return {};
    };
}

std::string_view byte_character(unsigned char byte) {
    // Printable bytes map to themselves, the others to U+0100 and on.
    static const std::array<std::string, 256> kTable = [] {
        std::array<std::string, 256> table;
        uint32_t next = 256;
        for (uint32_t b = 0; b < 256; ++b) {
            const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            append_utf8(table[b], itself ? b : next++);
        }
        return table;
    }();
    return kTable[byte];
}

TextStep byte_writer() {
    return each_piece(
        [](const AlignedText& piece) {
            AlignedText out;
            for (size_t i = 0; i < piece.text.size(); ++i)
                out.append(byte_character(static_cast<unsigned char>(piece.text[i])), piece.from[i]);
            return out;
        },
        false);
}

TextStep replacer(std::string from, std::string to) {
    return each_piece([from = std::move(from), to = std::move(to)](
                          const AlignedText& piece) { return with_replaced(piece, from, to); },
                      false);
}

TextStep prepender(std::string text) {
    return [text = std::move(text)](TextPieces& pieces) -> Result<void> {
        if (!pieces.empty()) pieces[0] = with_before(pieces[0], text);
        return {};
    };
}

TextStep bert_normalizer(const BertNormalizer& options) {
    std::vector<TextStep> steps;
    if (options.clean)
        steps.push_back(each_piece([](const AlignedText& piece) {
            return by_character(piece, [](uint32_t c, std::string& made) {
                const bool kept = c == '\t' || c == '\n' || c == '\r';
                if (c == 0 || c == 0xfffd || (!kept && is_other(c))) return;
                if (is_space(c))
                    made += ' ';
                else
                    append_utf8(made, c);
            });
        }));
    if (options.ideographs)
        steps.push_back(each_piece([](const AlignedText& piece) {
            return by_character(piece, [](uint32_t c, std::string& made) {
                if (is_ideograph(c)) made += ' ';
                append_utf8(made, c);
                if (is_ideograph(c)) made += ' ';
            });
        }));
    if (options.strip_marks) {
        steps.push_back(each_piece([](const AlignedText& piece) { return in_form(piece, NormalForm::nfd); }));
        steps.push_back(each_piece([all = options.all_marks](const AlignedText& piece) {
            return without(piece, all ? is_mark : is_nonspacing_mark);
        }));
    }
    if (options.lower) steps.push_back(each_piece(lowered));
    return in_order(std::move(steps), false);
}

TextStep unigram_spaces(const UnigramSpaces& options) {
    return each_piece(
        [options](const AlignedText& piece) {
            AlignedText out;
            bool in_word = false, added = false;
            for (size_t at = 0; at < piece.text.size(); ++at) {
                const bool is_space = piece.text[at] == ' ';
                if (is_space && !options.merges) out.append(options.mark, piece.source(at, at + 1));
                if (!is_space && !in_word &&
                    ((options.adds && !options.at_end && !added) || options.merges)) {
                    // A space that is there has its place, one that is put before has none.
                    out.append(options.mark,
                               at > 0 && options.merges ? piece.source(at - 1, at) : piece.source(at, at));
                    added = true;
                }
                if (!is_space) out.append(piece, at, at + 1);
                in_word = !is_space;
            }
            if (options.adds && options.at_end)
                out.append(options.mark, piece.source(piece.text.size(), piece.text.size()));
            return out;
        },
        false);
}

Result<TextStep> precompiled_normalizer(std::vector<uint8_t> bytes, bool longest) {
    const auto table = PrecompiledTable::read(bytes);
    if (!table) return broken("the table of normalisations leads beyond its end");
    if (longest)
        return each_piece(
            [table](const AlignedText& piece) {
                AlignedText out;
                for (size_t at = 0; at < piece.text.size();) {
                    size_t length = character_at(piece.text, at).bytes;
                    const char* made = table->find(std::string_view(piece.text).substr(at), true, length);
                    if (made)
                        out.append(made, piece.source(at, at + length));
                    else
                        out.append(piece, at, at + length);
                    at += length;
                }
                return out;
            },
            false);
    return each_piece([table](const AlignedText& piece) { return precompiled(*table, piece); });
}

Result<void> read_normalizer(const JsonValue& step, std::vector<TextStep>& to) {
    if (step.kind() == JsonValue::Kind::null) return {};
    const std::string_view type = step["type"].text();
    constexpr std::pair<std::string_view, NormalForm> kForms[] = {{"NFC", NormalForm::nfc},
                                                                  {"NFD", NormalForm::nfd},
                                                                  {"NFKC", NormalForm::nfkc},
                                                                  {"NFKD", NormalForm::nfkd}};
    for (const auto& [name, form] : kForms)
        if (type == name) {
            to.push_back(
                each_piece([form = form](const AlignedText& piece) { return in_form(piece, form); }));
            return {};
        }
    if (type == "Sequence") {
        for (const JsonValue& one : step["normalizers"].items())
            if (Result<void> r = read_normalizer(one, to); !r) return r;
    } else if (type == "Lowercase") {
        to.push_back(each_piece(lowered));
    } else if (type == "StripAccents") {
        to.push_back(each_piece([](const AlignedText& piece) { return without(piece, is_mark); }));
    } else if (type == "BertNormalizer") {
        BertNormalizer options;
        options.clean = step["clean_text"].boolean();
        options.ideographs = step["handle_chinese_chars"].boolean();
        options.lower = step["lowercase"].boolean();
        const JsonValue& marks = step["strip_accents"];
        options.strip_marks = marks.kind() == JsonValue::Kind::null ? options.lower : marks.boolean();
        to.push_back(bert_normalizer(options));
    } else if (type == "Strip") {
        const bool left = step["strip_left"].boolean(), right = step["strip_right"].boolean();
        to.push_back(
            each_piece([left, right](const AlignedText& piece) { return stripped(piece, left, right); }));
    } else if (type == "Nmt") {
        to.push_back(each_piece([](const AlignedText& piece) { return by_character(piece, nmt); }, false));
    } else if (type == "ByteLevel") {
        to.push_back(byte_writer());
    } else if (type == "Prepend") {
        to.push_back(prepender(std::string(step["prepend"].text())));
    } else if (type == "Replace" && !step["pattern"]["String"].text().empty()) {
        to.push_back(
            replacer(std::string(step["pattern"]["String"].text()), std::string(step["content"].text())));
    } else if (type == "Replace") {
        if (!step["pattern"].find("String") && !step["pattern"].find("Regex"))
            return broken("a pattern is neither a Regex nor a String");
        // An empty text is found everywhere.
        Result<SplitPattern> pattern = SplitPattern::compile(step["pattern"]["Regex"].text());
        if (!pattern) return pattern.error();
        to.push_back([pattern = std::move(*pattern),
                      text = std::string(step["content"].text())](TextPieces& pieces) -> Result<void> {
            for (AlignedText& piece : pieces) {
                AlignedText out;
                const bool done = pattern.split(piece.text, [&](size_t begin, size_t end, bool match) {
                    if (match)
                        out.append(text, replaced(piece, begin, end));
                    else
                        out.append(piece, begin, end);
                });
                if (!done) return too_costly();
                piece = std::move(out);
            }
            std::erase_if(pieces, [](const AlignedText& piece) { return piece.empty(); });
            return {};
        });
    } else if (type == "Precompiled") {
        const auto bytes = from_base64(step["precompiled_charsmap"].text());
        if (!bytes) return broken("the table of normalisations is not base64");
        Result<TextStep> made = precompiled_normalizer(std::move(*bytes));
        if (!made) return made.error();
        to.push_back(std::move(*made));
    } else {
        return unknown("the step '" + printable_name(type, 40) + "' is not supported");
    }
    return {};
}

}  // namespace fovea
