// Sessions as addresses: the part of a page's address after #.
#include <fovea/model/session.hpp>

#include <algorithm>

#include <fovea/files.hpp>

#include "files/utf8.hpp"
#include "model/session/session_checks.hpp"
#include "model/tables.hpp"

namespace fovea {
namespace {

int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Replaces bytes that are not valid UTF-8 with U+FFFD, as browsers do.
std::string valid_utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const size_t length = files::utf8_length(text);
        out += length ? text.substr(0, length) : "\xef\xbf\xbd";
        text.remove_prefix(std::max<size_t>(length, 1));
    }
    return out;
}

// application/x-www-form-urlencoded, as URLSearchParams reads it.
std::string decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                            hex_value(text[i + 2]) >= 0;
        if (escape) {
            out += char(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
            i += 2;
        } else {
            out += text[i] == '+' ? ' ' : text[i];
        }
    }
    return valid_utf8(out);
}

std::string encoded(std::string_view text) {
    constexpr char kHex[] = "0123456789ABCDEF";
    constexpr std::string_view kPlain = "-_.!~*'(),";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || kPlain.find(c) != std::string_view::npos)
            out += c;
        else if (c == ' ')
            out += '+';
        else
            out += {'%', kHex[byte >> 4], kHex[byte & 15u]};
    }
    return out;
}

}  // namespace

Result<ReadSession> read_address(std::string_view fragment, const SessionReader& reader) {
    SessionReading reading{reader, "", {}};
    if (fragment.starts_with('#')) fragment.remove_prefix(1);
    while (!fragment.empty()) {
        const size_t end = std::min(fragment.find('&'), fragment.size());
        const std::string_view pair = fragment.substr(0, end);
        const size_t equals = std::min(pair.find('='), pair.size());
        GivenKey given{decoded(pair.substr(0, equals)),
                       decoded(pair.substr(std::min(equals + 1, pair.size())))};
        fragment.remove_prefix(std::min(end + 1, fragment.size()));
        if (given.key == "v") {
            if (given.text != model_table("session")["version"].number_text())
                return refused_session("the address has version " + printable_name(given.text, 20) +
                                       "; this program reads version 1");
        } else if (!given.key.empty()) {
            reading.add(std::move(given));
        }
    }
    ReadSession read{reading.take(), {}};
    read.notes = std::move(reading.notes);
    return read;
}

std::string write_address(const Session& s) {
    Session own = level_session(s.level, s.task);
    own.task.clear();  // written, so that the other keys are read as that task's
    std::string text = "v=1&level=" + std::to_string(s.level);
    for (const SessionKey& key : session_keys()) {
        std::string value = session_key_text(s, key);
        if (key.key == "level" || value == session_key_text(own, key)) continue;
        // Keys that follow from the mask, such as causal, are not written in addition.
        if (key.key == "mask") set_mask_key(own, value);
        if (key.type == "boolean") value = value == "true" ? "1" : "0";
        text += "&" + key.key + "=" + encoded(value);
    }
    return text;
}

}  // namespace fovea
