#include "tokenizer/text_decoders.hpp"

#include <fovea/files.hpp>
#include <fovea/tokenizer/characters.hpp>

#include <algorithm>
#include <unordered_map>

#include "tokenizer/split_pattern.hpp"
#include "tokenizer/text_steps.hpp"

namespace fovea {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::string out;
    size_t done = 0;
    for (size_t at = from.empty() ? std::string::npos : text.find(from); at != std::string::npos;
         at = text.find(from, done)) {
        out.append(text, done, at - done).append(to);
        done = at + from.size();
    }
    if (done > 0) text = out.append(text, done);
}

// Joins words and marks, token by token.
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

// A step that changes each text by itself; `change(text, index)`.
template <class Change>
DecodeStep each_text(Change change) {
    return [change](std::vector<std::string>& texts) {
        for (size_t i = 0; i < texts.size(); ++i) change(texts[i], i);
    };
}

int hex_digit(char c) {
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

Result<DecodeStep> pattern_decoder(std::string_view pattern, std::string content) {
    Result<SplitPattern> compiled = SplitPattern::compile(pattern);
    if (!compiled) return compiled.error();
    return each_text([pattern = *compiled, content](std::string& text, size_t) {
        std::string out;
        // A text that takes too many steps stays as it is: tokens are short.
        if (!text.empty() && pattern.split(text, [&](size_t begin, size_t end, bool match) {
                match ? out.append(content) : out.append(text, begin, end - begin);
            }))
            text = out;
    });
}

}  // namespace

DecodeStep bytes_decoder() {
    static const std::unordered_map<std::string_view, char> kBytes = [] {
        std::unordered_map<std::string_view, char> map;
        for (unsigned b = 0; b < 256; ++b)
            map.emplace(byte_character(static_cast<unsigned char>(b)), char(b));
        return map;
    }();
    return each_text([](std::string& text, size_t) {
        std::string bytes;
        for (size_t at = 0; at < text.size();) {
            const size_t length = character_at(text, at).bytes;
            const auto byte = kBytes.find(std::string_view(text).substr(at, length));
            if (byte == kBytes.end()) return;  // such a token is text
            bytes += byte->second;
            at += length;
        }
        text = bytes;
    });
}

DecodeStep byte_fallback_decoder() {
    return [](std::vector<std::string>& texts) {
        std::vector<std::string> out;
        bool was_byte = false;  // bytes that follow each other become one text
        for (std::string& text : texts) {
            const bool shaped = text.size() == 6 && text.starts_with("<0x") && text[5] == '>';
            const int high = shaped ? hex_digit(text[3]) : -1, low = shaped ? hex_digit(text[4]) : -1;
            const bool is_byte = high >= 0 && low >= 0;
            if (is_byte && was_byte)
                out.back() += char(high * 16 + low);
            else
                out.push_back(is_byte ? std::string(1, char(high * 16 + low)) : std::move(text));
            was_byte = is_byte;
        }
        texts = std::move(out);
    };
}

DecodeStep replace_decoder(std::string from, std::string to) {
    return each_text([from, to](std::string& text, size_t) { replace_all(text, from, to); });
}

DecodeStep join_decoder() {
    return [](std::vector<std::string>& texts) {
        std::string all;
        for (const std::string& text : texts) all += text;
        texts = {std::move(all)};
    };
}

DecodeStep strip_decoder(std::string character, uint64_t start, uint64_t stop) {
    return each_text([character, start, stop](std::string& text, size_t) {
        size_t begin = 0, end = text.size();
        const size_t step = character.size();
        for (uint64_t i = 0; i < start && std::string_view(text).substr(begin).starts_with(character); ++i)
            begin += step;
        for (uint64_t i = 0;
             i < stop && end >= begin + step && text.compare(end - step, step, character) == 0; ++i)
            end -= step;
        text = text.substr(begin, end - begin);
    });
}

DecodeStep word_piece_decoder(std::string prefix, bool cleans_up) {
    return each_text([prefix, cleans_up](std::string& text, size_t index) {
        if (index > 0 && text.starts_with(prefix))
            text.erase(0, prefix.size());
        else if (index > 0)
            text.insert(0, 1, ' ');
        if (cleans_up) clean_up(text);
    });
}

DecodeStep space_decoder() {
    return each_text([](std::string& text, size_t index) {
        if (index > 0) text.insert(0, 1, ' ');
    });
}

Result<void> read_decoder(const JsonValue& step, std::vector<DecodeStep>& to) {
    const auto refuse = [](std::string what) {
        return Error{FOVEA_UNSUPPORTED, "tokenizer", std::move(what)};
    };
    const std::string_view type = step["type"].text();
    if (step.kind() == JsonValue::Kind::null) {
        to.push_back(space_decoder());
    } else if (type == "Sequence") {
        for (const JsonValue& one : step["decoders"].items())
            if (Result<void> r = read_decoder(one, to); !r) return r;
    } else if (type == "ByteLevel") {
        to.push_back(bytes_decoder());
        to.push_back(join_decoder());
    } else if (type == "ByteFallback") {
        to.push_back(byte_fallback_decoder());
    } else if (type == "Fuse") {
        to.push_back(join_decoder());
    } else if (type == "WordPiece") {
        to.push_back(word_piece_decoder(std::string(step["prefix"].text()), step["cleanup"].boolean()));
    } else if (type == "Strip") {
        const double start = step["start"].number(), stop = step["stop"].number();
        const std::string content(step["content"].text());
        if (content.empty() || content.size() != character_at(content, 0).bytes || !(start >= 0) ||
            !(stop >= 0) || start > 1e6 || stop > 1e6)
            return refuse(
                "the decoder Strip needs a content of one character, and a start and a stop from 0 to "
                "1000000");
        to.push_back(strip_decoder(content, uint64_t(start), uint64_t(stop)));
    } else if (type == "Replace") {
        const JsonValue& pattern = step["pattern"];
        const std::string_view from = pattern["String"].text();
        const std::string content(step["content"].text());
        if (pattern.find("String") && !from.empty()) {
            to.push_back(replace_decoder(std::string(from), content));
        } else {
            Result<DecodeStep> made = pattern_decoder(pattern["Regex"].text(), content);
            if (!made) return made.error();
            to.push_back(std::move(*made));
        }
    } else if (type == "Metaspace") {
        const std::string mark(step["replacement"].text());
        const bool prepends = step["prepend_scheme"].kind() == JsonValue::Kind::text
                                  ? step["prepend_scheme"].text() != "never"
                                  : step["add_prefix_space"].kind() == JsonValue::Kind::null ||
                                        step["add_prefix_space"].boolean();
        to.push_back(each_text([mark, prepends](std::string& text, size_t index) {
            replace_all(text, mark, index == 0 && prepends ? "" : " ");
        }));
    } else if (type == "BPEDecoder") {
        to.push_back([suffix = std::string(step["suffix"].text())](std::vector<std::string>& texts) {
            for (std::string& text : texts) replace_all(text, suffix, &text == &texts.back() ? "" : " ");
        });
    } else if (type == "CTC") {
        to.push_back(
            [pad = std::string(step["pad_token"].text()), cleans_up = step["cleanup"].boolean(),
             mark = std::string(step["word_delimiter_token"].text())](std::vector<std::string>& texts) {
                texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
                for (std::string& text : texts) {
                    replace_all(text, pad, "");
                    if (!cleans_up) continue;
                    clean_up(text);
                    replace_all(text, mark, " ");
                }
                std::erase_if(texts, [](const std::string& text) { return text.empty(); });
            });
    } else {
        return refuse("the tokenizer's decoder '" + printable_name(type, 40) + "' is not supported");
    }
    return {};
}

}  // namespace fovea
