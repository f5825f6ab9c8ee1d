// Sessions as files of JSON.
#include <fovea/model/session.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include <fovea/files.hpp>

#include "model/session/session_checks.hpp"
#include "model/tables.hpp"

namespace fovea {
namespace {

constexpr size_t kMaxDepth = 16, kMaxLocked = 64;

// JSON of a page can have halves of a character that a browser's text was cut in ("\ud83d"): each becomes
// U+FFFD. How many there were is added to `count`.
std::string without_half_characters(std::string_view json, size_t& count) {
    const auto half_at = [&](size_t at) -> unsigned {  // 0: none
        unsigned value = 0;
        if (json.size() - at < 6 || json[at] != '\\' || json[at + 1] != 'u') return 0;
        const char* const digits = json.data() + at + 2;
        const auto [end, error] = std::from_chars(digits, digits + 4, value, 16);
        return error == std::errc() && end == digits + 4 && value >= 0xd800 && value < 0xe000 ? value : 0;
    };
    std::string out(json);
    for (size_t at = out.find('\\'); at < out.size(); at = out.find('\\', at)) {
        const unsigned first = half_at(at);
        if (first == 0) {
            at += 2;
        } else if (first < 0xdc00 && at + 12 <= out.size() && half_at(at + 6) >= 0xdc00) {
            at += 12;
        } else {
            out.replace(at, 6, "\\ufffd");
            at += 6, ++count;
        }
    }
    return out;
}

GivenKey given_of(const std::string& key, const JsonValue& value) {
    GivenKey given{key, std::string(value.scalar_text())};
    given.scalar = value.kind() != JsonValue::Kind::object && value.kind() != JsonValue::Kind::null;
    for (const JsonValue& item : value.items()) {
        given.scalar = given.scalar && item.kind() == JsonValue::Kind::number;
        given.text += (given.text.empty() ? "" : ",") + std::string(item.scalar_text());
    }
    return given;
}

Result<void> read_values(const std::string& name, const JsonValue& json, SessionTensor& out) {
    constexpr double kMaxSide = 1 << 24, kMaxElements = 1 << 28;
    double count = 1;
    for (const JsonValue& side : json["shape"].items()) {
        const double n = side.number();
        count *= n;
        if (!(n >= 1 && n <= kMaxSide && n == std::floor(n) && count <= kMaxElements))
            return refused_session("the shape of " + name +
                                   " must be [heads, tokens, width], integers from 1 to 16777216");
        out.shape.push_back(uint64_t(n));
    }
    if (out.shape.size() < 2 || out.shape.size() > 4)
        return refused_session(name + " has " + std::to_string(out.shape.size()) +
                               " dimensions; it must be [heads, tokens, width]");
    if (json["f32"].kind() != JsonValue::Kind::text) return refused_session(name + " has no data");
    const std::optional<std::vector<uint8_t>> bytes = from_base64(json["f32"].text());
    if (!bytes) return refused_session("the data of " + name + " are not base64");
    if (double(bytes->size()) != count * 4)
        return refused_session(name + " has " + std::to_string(bytes->size()) + " bytes; its shape needs " +
                               json_number(count * 4));
    out.values.resize(bytes->size() / 4);
    for (size_t i = 0; i < out.values.size(); ++i) {
        uint32_t bits = 0;
        for (size_t b = 0; b < 4; ++b) bits |= uint32_t((*bytes)[4 * i + b]) << (8 * b);
        std::memcpy(&out.values[i], &bits, 4);
    }
    return {};
}

Result<void> read_tensor(const std::string& name, const JsonValue& json, SessionTensor& out) {
    if (json.kind() != JsonValue::Kind::object)
        return refused_session("tensor " + name + " is not an object");
    if (!json.find("path")) return read_values(name, json, out);
    out.path = json["path"].text();
    out.name = json["name"].text();
    out.sha256 = json["sha256"].text();
    if (out.path.empty()) return refused_session("the path of " + name + " is empty");
    return {};
}

Result<void> read_tokens(const JsonValue& json, std::vector<std::string>& out) {
    const auto is_text = [](const JsonValue& token) { return token.kind() == JsonValue::Kind::text; };
    if (json.kind() != JsonValue::Kind::array ||
        !std::all_of(json.items().begin(), json.items().end(), is_text))
        return refused_session("the tokens of the session's tensors are not a list of texts");
    out.reserve(json.items().size());
    for (const JsonValue& token : json.items()) out.emplace_back(token.text());
    return {};
}

Result<std::shared_ptr<const SessionTensors>> read_tensors(const JsonValue& json, const Session* parent,
                                                           SessionReading& reading) {
    if (parent && json.text() == "same") return parent->tensors;
    if (json.kind() == JsonValue::Kind::null) return std::shared_ptr<const SessionTensors>();
    if (json.kind() != JsonValue::Kind::object)
        return refused_session("the tensors of the session are not an object");
    auto tensors = std::make_shared<SessionTensors>();
    for (const auto& [name, value] : json.members()) {
        if (name == "tokens") {
            if (Result<void> r = read_tokens(value, tensors->tokens); !r) return r.error();
            continue;
        }
        SessionTensor* const tensor = name == "q"   ? &tensors->q
                                      : name == "k" ? &tensors->k
                                      : name == "v" ? &tensors->v
                                                    : nullptr;
        if (!tensor) {
            reading.note("tensors",
                         "a session has no tensor " + printable_name(name, 40) + "; it is left out");
            continue;
        }
        if (Result<void> r = read_tensor(name, value, *tensor); !r) return r.error();
    }
    const auto missing = [](const SessionTensor& t) { return t.values.empty() && t.path.empty(); };
    if (missing(tensors->q) || missing(tensors->k))
        return refused_session("q or k is missing from the session's tensors; both are needed");
    return std::shared_ptr<const SessionTensors>(std::move(tensors));
}

// A session, or a part of one: `kept`, or an item of `locked`.
Result<ReadSession> read_part(const JsonValue& json, const SessionReader& reader, const Session* parent,
                              const std::string& place) {
    SessionReading reading{reader, place, {}};
    if (json["state"].kind() != JsonValue::Kind::object)
        return refused_session(place + "the state of the session is not an object");
    for (const char* group : {"state", "desktop"})
        for (const auto& [key, value] : json[group].members()) reading.add(given_of(key, value));
    ReadSession read{reading.take(), {}};
    Result<std::shared_ptr<const SessionTensors>> tensors = read_tensors(json["tensors"], parent, reading);
    if (!tensors) return tensors.error();
    read.session.tensors = std::move(*tensors);
    for (const auto& [name, value] : json.members()) {
        constexpr std::string_view kParts[] = {"format",  "version", "state", "desktop",
                                               "tensors", "kept",    "locked"};
        const bool known = std::find(std::begin(kParts), std::end(kParts), name) != std::end(kParts);
        if (!known)
            reading.note(name, "a session has no part " + printable_name(name, 40) + ": it is left out");
    }
    read.notes = std::move(reading.notes);
    return read;
}

// ---- writing ----

std::string key_json(const Session& s, const SessionKey& key) {
    const std::string text = session_key_text(s, key);
    if (key.type == "integer" || key.type == "number" || key.type == "boolean") return text;
    if (key.type == "list") return "[" + text + "]";
    return json_string(text);
}

std::string group_json(const Session& s, std::string_view group) {
    JsonObject object;
    for (const SessionKey& key : session_keys())
        if (key.group == group) object.raw(key.key, key_json(s, key));
    return object.done();
}

std::string tensor_json(const SessionTensor& t) {
    JsonObject object;
    if (!t.path.empty()) {
        object.text("path", t.path).text("name", t.name);
        if (!t.sha256.empty()) object.text("sha256", t.sha256);
        return object.done();
    }
    std::string shape;
    for (const uint64_t side : t.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(side);
    std::vector<std::byte> bytes(t.values.size() * 4);
    for (size_t i = 0; i < t.values.size(); ++i) {
        uint32_t bits = 0;
        std::memcpy(&bits, &t.values[i], 4);
        for (size_t b = 0; b < 4; ++b) bytes[4 * i + b] = std::byte(bits >> (8 * b));
    }
    return object.raw("shape", "[" + shape + "]").text("f32", to_base64(bytes, false)).done();
}

std::string tensors_json(const SessionTensors& tensors) {
    JsonObject object;
    object.raw("q", tensor_json(tensors.q)).raw("k", tensor_json(tensors.k));
    if (!tensors.v.values.empty() || !tensors.v.path.empty()) object.raw("v", tensor_json(tensors.v));
    std::string tokens;
    for (const std::string& token : tensors.tokens)
        tokens += (tokens.empty() ? "" : ", ") + json_string(token);
    if (!tokens.empty()) object.raw("tokens", "[" + tokens + "]");
    return object.done();
}

std::string part_json(const Session& part, const Session& whole) {
    JsonObject object;
    object.raw("state", group_json(part, "state")).raw("desktop", group_json(part, "desktop"));
    if (part.tensors)
        object.raw("tensors", part.tensors == whole.tensors ? "\"same\"" : tensors_json(*part.tensors));
    return object.done();
}

}  // namespace

Result<ReadSession> read_session(std::string_view text, const SessionReader& reader) {
    size_t halves = 0;
    const Result<JsonValue> json = parse_json(without_half_characters(text, halves), kMaxDepth);
    if (!json)
        return refused_session("this is not a session file, or a damaged one (" + json.error().text +
                               "); give a file that ends in .fovea");
    const JsonValue& table = model_table("session");
    if ((*json)["format"].text() != table["format"].text())
        return refused_session("this is not a session file of Fovea; give a file that ends in .fovea");
    const JsonValue& version = (*json)["version"];
    const std::string known(table["version"].number_text());
    if (version.kind() != JsonValue::Kind::number || version.number() != table["version"].number())
        return refused_session(
            "the session has version " +
            (version.scalar_text().empty() ? "none" : printable_name(version.scalar_text(), 20)) +
            "; this program reads version " + known);
    Result<ReadSession> read = read_part(*json, reader, nullptr, "");
    if (!read) return read;
    if (halves > 0)
        add_note(read->notes,
                 {"", std::to_string(halves) + " halves of characters (lone surrogates) are read as U+FFFD"});
    const auto add = [&](const JsonValue& part, const std::string& place, std::vector<Session>& to) {
        Result<ReadSession> one = read_part(part, reader, &read->session, place);
        if (!one) return add_note(read->notes, {place, "this part is left out: " + one.error().text});
        to.push_back(std::move(one->session));
        for (SessionNote& note : one->notes) add_note(read->notes, std::move(note));
    };
    if (const auto kept = json->find("kept")) add(*kept, "kept: ", read->session.kept);
    const JsonValue locked = (*json)["locked"];
    if (const size_t all = locked.items().size(); all > kMaxLocked)
        add_note(read->notes, {"locked", "there are " + std::to_string(all) + " locked matrices; the first " +
                                             std::to_string(kMaxLocked) + " are taken"});
    size_t number = 0;
    for (const JsonValue& part : locked.items())
        if (number < kMaxLocked) add(part, "locked " + std::to_string(++number) + ": ", read->session.locked);
    return read;
}

std::string write_session(const Session& s) {
    JsonObject head;
    head.text("format", model_table("session")["format"].text())
        .raw("version", model_table("session")["version"].number_text());
    std::string text = head.done();
    text.pop_back();
    text += ",\n \"state\": " + group_json(s, "state") + ",\n \"desktop\": " + group_json(s, "desktop");
    if (s.tensors) text += ",\n \"tensors\": " + tensors_json(*s.tensors);
    if (!s.kept.empty()) text += ",\n \"kept\": " + part_json(s.kept[0], s);
    for (size_t i = 0; i < s.locked.size(); ++i)
        text += (i == 0 ? ",\n \"locked\": [\n  " : ",\n  ") + part_json(s.locked[i], s);
    if (!s.locked.empty()) text += "]";
    return text + "}\n";
}

}  // namespace fovea
