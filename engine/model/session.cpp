#include <fovea/model/session.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fovea/files.hpp>

#include "files/utf8.hpp"
#include "model/tables.hpp"

namespace fovea {
namespace {

constexpr size_t kMostDepth = 16;
constexpr uint64_t kMostPaintedSide = 4096;

// ---- a key's value as text, and back ----

// A value as it was given: scalars as text, a list's items by comma.
struct Given {
    std::string key, text;
    bool scalar = true;  // false: an object, or null
};

std::optional<double> number_of(const std::string& text) {
    if (text.empty() || std::string_view("+ \t").find(text[0]) != std::string_view::npos) return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

// strtod also reads what no session holds: hexadecimal numbers.
bool is_decimal(std::string_view text) {
    return text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
}

std::optional<double> in_limits(const std::string& text, const SessionKey& key, bool whole) {
    const std::optional<double> value = is_decimal(text) ? number_of(text) : std::nullopt;
    if (!value || *value < key.low || *value > key.high || (whole && *value != std::floor(*value)))
        return std::nullopt;
    return value;
}

std::optional<size_t> choice_of(const std::string& text, const SessionKey& key) {
    const auto found = std::find(key.choices.begin(), key.choices.end(), text);
    if (found == key.choices.end()) return std::nullopt;
    return size_t(found - key.choices.begin());
}

// How one key is taken from a text, which may be refused, and written as one.
struct Field {
    std::string_view key;
    bool (*set)(Session&, const std::string&, const SessionKey&);
    std::string (*get)(const Session&, const SessionKey&);
};

template <auto Member>
bool set_member(Session& s, const std::string& text, const SessionKey& key) {
    auto& member = s.*Member;
    using T = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_same_v<T, bool>) {
        if (text != "true" && text != "1" && text != "false" && text != "0") return false;
        member = text == "true" || text == "1";
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!key.choices.empty() && !choice_of(text, key)) return false;
        member = text;
    } else if constexpr (std::is_enum_v<T>) {
        const std::optional<size_t> choice = choice_of(text, key);
        if (!choice) return false;
        member = T(int(*choice));
    } else {
        const std::optional<double> value = in_limits(text, key, std::is_integral_v<T>);
        if (!value) return false;
        member = T(*value);
    }
    return true;
}

template <auto Member>
std::string get_member(const Session& s, const SessionKey& key) {
    const auto& member = s.*Member;
    using T = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<T, bool>)
        return member ? "true" : "false";
    else if constexpr (std::is_same_v<T, std::string>)
        return member;
    else if constexpr (std::is_enum_v<T>)
        return key.choices.at(size_t(member));
    else
        return json_number(double(member));
}

template <auto Member>
constexpr Field member(std::string_view key) {
    return {key, set_member<Member>, get_member<Member>};
}

bool set_scale(Session& s, const std::string& text, const SessionKey&) {
    const std::optional<double> value = is_decimal(text) ? number_of(text) : std::nullopt;
    if (text != "auto" && text != "none" && !(value && *value > 0)) return false;
    s.scale = text;
    return true;
}

bool set_stage(Session& s, const std::string& text, const SessionKey&) {
    if (!find_stage_text(text)) return false;
    s.stage = text;
    return true;
}

template <auto Member>
bool set_limit(Session& s, const std::string& text, const SessionKey&) {
    if (!text.empty() && !(is_decimal(text) && number_of(text))) return false;
    s.*Member = text;
    return true;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) c == ',' ? void(parts.emplace_back()) : void(parts.back() += c);
    return parts;
}

bool is_unsigned(const std::string& text, bool fraction) {
    const size_t dot = fraction ? text.find('.') : std::string::npos;
    const std::string whole = text.substr(0, dot);
    const auto digits = [](const std::string& t) {
        return !t.empty() && t.find_first_not_of("0123456789") == std::string::npos;
    };
    return text.size() < 32 && digits(whole) && (dot == std::string::npos || digits(text.substr(dot + 1)));
}

bool set_view(Session& s, const std::string& text, const SessionKey&) {
    const std::vector<std::string> parts = split(text);
    const bool numbers = parts.size() == 3 && std::all_of(parts.begin(), parts.end(),
                                                          [](const auto& p) { return is_unsigned(p, true); });
    if (!text.empty() && !numbers) return false;
    s.view = text;
    return true;
}

bool set_zoom(Session& s, const std::string& text, const SessionKey&) {
    constexpr double kMostZoomed = 1 << 20;
    const std::vector<std::string> parts = split(text);
    const auto valid = [&] {
        if (parts.size() != 5 || (parts[4] != "mass" && parts[4] != "max") || !is_unsigned(parts[3], true))
            return false;
        for (size_t i = 0; i < 3; ++i)
            if (!is_unsigned(parts[i], false)) return false;
        const double tokens = *number_of(parts[0]);
        return tokens >= 1 && tokens <= kMostZoomed;
    };
    if (!text.empty() && !valid()) return false;
    s.zoom = text;
    return true;
}

bool set_bits(Session& s, const std::string& text, const SessionKey&) {
    const std::optional<std::vector<uint8_t>> bytes = from_base64(text);
    if (!bytes || bytes->size() > kMostPaintedSide * kMostPaintedSide / 8) return false;
    s.painted.cells.resize(bytes->size() * 8);
    for (size_t i = 0; i < s.painted.cells.size(); ++i) s.painted.cells[i] = (*bytes)[i / 8] >> (i % 8) & 1;
    return true;
}

std::string get_bits(const Session& s, const SessionKey&) {
    std::vector<std::byte> bytes((s.painted.cells.size() + 7) / 8);
    for (size_t i = 0; i < s.painted.cells.size(); ++i)
        if (s.painted.cells[i]) bytes[i / 8] |= std::byte(1 << (i % 8));
    return to_base64(bytes, true);
}

// "6x6"
bool set_side(Session& s, const std::string& text, const SessionKey&) {
    uint32_t sides[2] = {0, 0};
    if (!text.empty()) {
        const size_t x = text.find('x');
        if (x == std::string::npos) return false;
        const std::string parts[2] = {text.substr(0, x), text.substr(x + 1)};
        for (int i = 0; i < 2; ++i) {
            if (!is_unsigned(parts[i], false)) return false;
            const double side = *number_of(parts[i]);
            if (side < 1 || side > kMostPaintedSide) return false;
            sides[i] = uint32_t(side);
        }
    }
    s.painted.rows = sides[0], s.painted.keys = sides[1];
    return true;
}

std::string get_side(const Session& s, const SessionKey&) {
    if (s.painted.rows == 0) return "";
    return std::to_string(s.painted.rows) + "x" + std::to_string(s.painted.keys);
}

bool set_mask(Session& s, const std::string& text, const SessionKey&) { return set_mask_key(s, text); }
std::string get_mask(const Session& s, const SessionKey&) { return std::string(mask_key(s)); }

bool set_hidden(Session& s, const std::string& text, const SessionKey& key) {
    std::vector<uint32_t> hidden;
    for (const std::string& part : text.empty() ? std::vector<std::string>() : split(text)) {
        const std::optional<double> value = in_limits(part, key, true);
        if (!value) return false;
        hidden.push_back(uint32_t(*value));
    }
    std::sort(hidden.begin(), hidden.end());
    hidden.erase(std::unique(hidden.begin(), hidden.end()), hidden.end());
    s.hidden_keys = std::move(hidden);
    return true;
}

std::string get_hidden(const Session& s, const SessionKey&) {
    std::string text;
    for (const uint32_t key : s.hidden_keys) text += (text.empty() ? "" : ",") + std::to_string(key);
    return text;
}

using S = Session;
constexpr Field kFields[] = {member<&S::level>("level"),
                             member<&S::text>("text"),
                             member<&S::length>("len"),
                             {"stage", set_stage, get_member<&S::stage>},
                             member<&S::head>("head"),
                             member<&S::row>("i"),
                             member<&S::column>("j"),
                             member<&S::init>("init"),
                             member<&S::seed>("seed"),
                             {"scale", set_scale, get_member<&S::scale>},
                             member<&S::temperature>("temp"),
                             {"mask", set_mask, get_mask},
                             member<&S::window_left>("win"),
                             {"bits", set_bits, get_bits},
                             {"side", set_side, get_side},
                             member<&S::under>("under"),
                             member<&S::route>("route"),
                             member<&S::alibi>("alibi"),
                             member<&S::softcap>("cap"),
                             member<&S::dropout_p>("p"),
                             member<&S::dropout_seed>("dseed"),
                             member<&S::dropout_random>("rng"),
                             member<&S::heads>("heads"),
                             member<&S::kv_heads>("kv"),
                             member<&S::map>("map"),
                             member<&S::logarithmic>("log"),
                             {"lo", set_limit<&S::low>, get_member<&S::low>},
                             {"hi", set_limit<&S::high>, get_member<&S::high>},
                             member<&S::table>("table"),
                             member<&S::compared_head>("cmp"),
                             member<&S::compare_how>("how"),
                             {"view", set_view, get_member<&S::view>},
                             {"zoom", set_zoom, get_member<&S::zoom>},
                             member<&S::step>("step"),
                             member<&S::training>("train"),
                             member<&S::tokenizer>("tokenizer"),
                             member<&S::rope>("rope"),
                             member<&S::causal>("causal"),
                             member<&S::windowed>("windowed"),
                             member<&S::window_right>("right"),
                             {"hidden", set_hidden, get_hidden},
                             member<&S::precision>("precision"),
                             member<&S::theme>("theme"),
                             member<&S::spread>("spread"),
                             member<&S::pinned>("pinned"),
                             member<&S::dropout_rate>("dropout_p"),
                             member<&S::import_kind>("import"),
                             member<&S::import_fused>("fused"),
                             member<&S::import_order>("order"),
                             member<&S::import_tokens_first>("tokens_first"),
                             member<&S::import_heads>("import_heads"),
                             member<&S::import_layer>("layer"),
                             member<&S::import_rotates>("rotate"),
                             member<&S::import_divisor>("divisor")};

const Field& field_of(std::string_view key) {
    return *std::find_if(std::begin(kFields), std::end(kFields),
                         [&](const Field& f) { return f.key == key; });
}

const SessionKey& key_named(std::string_view name) {
    const std::span<const SessionKey> keys = session_keys();
    return *std::find_if(keys.begin(), keys.end(), [&](const SessionKey& k) { return k.key == name; });
}

// A table's default as the text of a key.
std::string default_text(const JsonValue& value) { return std::string(value.scalar_text()); }

// Keys by which older files of the desktop program say what another key says.
constexpr std::pair<std::string_view, std::string_view> kFormerNames[] = {
    {"window_left", "win"}, {"window_right", "right"}, {"dropout", ""}, {"kv_heads", ""}};

// ---- reading ----

std::string limits_text(const SessionKey& key) {
    if (key.type == "integer" || key.type == "number")
        return json_number(key.low) + " to " + json_number(key.high) +
               (key.type == "integer" ? ", whole" : "");
    if (key.type == "boolean") return "true or false";
    std::string all;
    for (const std::string& choice : key.choices)
        all += (all.empty() ? "" : ", ") + (choice.empty() ? "empty" : choice);
    if (!all.empty()) return "one of " + all;
    if (key.type == "scale") return "auto, none or a number above 0";
    if (key.type == "stage") return "the name of a stage";
    if (key.type == "text") return "a text";
    return "as docs/files.md says";
}

class Reading {
  public:
    Reading(const SessionReader& reader, std::string place) : reader_(reader), place_(std::move(place)) {}

    std::vector<SessionNote> notes;

    void note(std::string_view key, std::string text) {
        notes.push_back({std::string(key), place_ + std::move(text)});
    }

    Session take(const std::vector<Given>& all) {
        Session s = level_session(level_of(all));
        for (const SessionKey& key : session_keys())
            for (const Given& given : all)
                if (given.key == key.key && key.key != "level") set(s, given, key);
        for (const Given& given : all) take_former(s, given);
        settle_paint(s);
        settle(s, all);
        for (const Given& given : all) tell_unseen(s, given);
        return s;
    }

  private:
    static bool has(const std::vector<Given>& all, std::string_view key) {
        return std::any_of(all.begin(), all.end(), [&](const Given& g) { return g.key == key; });
    }

    int level_of(const std::vector<Given>& all) {
        Session s;
        for (const Given& given : all)
            if (given.key == "level") set(s, given, key_named("level"));
        return s.level;
    }

    void set(Session& s, const Given& given, const SessionKey& key) {
        const Field& field = field_of(key.key);
        if (given.scalar && field.set(s, given.text, key)) return;
        const std::string taken = field.get(s, key);
        note(given.key, given.key + " is " +
                            (given.scalar ? printable_name(given.text, 40) : "no single value") +
                            "; it must be " + limits_text(key) + ": " + (taken.empty() ? "nothing" : taken) +
                            " is taken");
    }

    void take_former(Session& s, const Given& given) {
        for (const auto& [former, now] : kFormerNames)
            if (given.key == former && !now.empty()) set(s, given, key_named(now));
    }

    // Cells that the bits do not have are visible, those beyond the side are padding.
    void settle_paint(Session& s) {
        PaintedMask& painted = s.painted;
        if (painted.rows == 0) return;
        const size_t cells = size_t(painted.rows) * painted.keys;
        if (s.pattern == MaskPattern::painted && painted.cells.size() < cells)
            note("bits", "bits has " + std::to_string(painted.cells.size()) + " cells, side asks for " +
                             std::to_string(cells) + ": the missing ones are visible");
        painted.cells.resize(cells, 1);
    }

    // What holds between keys.
    void settle(Session& s, const std::vector<Given>& all) {
        const std::string level = "level " + std::to_string(s.level);
        const JsonValue& shape = model_table("levels").items()[size_t(s.level - 1)]["shape"];
        const bool normal = shape.find("spread") != nullptr;
        if (normal && s.init == WeightInit::rand) {
            note("init", level + " draws its weights from a normal distribution; init rand is not used");
            s.init = WeightInit::linear;
        }
        const uint32_t most = s.init == WeightInit::none ? 1 : uint32_t(shape["heads"].number());
        if (s.heads > most) {
            const std::string why =
                s.init == WeightInit::none ? "without weights (init none) there is" : level + " has";
            note("heads", why + " one head; heads " + std::to_string(s.heads) + " is not used");
            s.heads = most;
        }
        const auto width = uint32_t(shape["all_heads_width"].number());
        if (normal && width % s.heads != 0) {
            const uint32_t own = level_session(s.level).heads;
            note("heads", "heads is " + std::to_string(s.heads) + ", which does not divide the width " +
                              std::to_string(width) + " of " + level + ": " + std::to_string(own) +
                              " is taken");
            s.heads = own;
        }
        if (s.heads % s.kv_heads != 0) {
            if (has(all, "kv"))
                note("kv", "kv is " + std::to_string(s.kv_heads) + ", which does not divide " +
                               std::to_string(s.heads) + " heads: " + std::to_string(s.heads) + " is taken");
            s.kv_heads = s.heads;
        }
        if (s.length != 0 && s.level != kLevelCount) {
            note("len",
                 "the tokens are repeated on level 7 only; len " + std::to_string(s.length) + " is not used");
            s.length = 0;
        }
    }

    void tell_unseen(const Session& s, const Given& given) {
        const std::span<const SessionKey> keys = session_keys();
        const auto key =
            std::find_if(keys.begin(), keys.end(), [&](const SessionKey& k) { return k.key == given.key; });
        const bool former = std::any_of(std::begin(kFormerNames), std::end(kFormerNames),
                                        [&](const auto& f) { return f.first == given.key; });
        if (key == keys.end()) {
            if (!former)
                note(given.key, "there is no key " + printable_name(given.key, 40) + ": it is left out");
            return;
        }
        if (std::find(reader_.unseen.begin(), reader_.unseen.end(), given.key) == reader_.unseen.end())
            return;
        const Field& field = field_of(given.key);
        if (field.get(s, *key) != field.get(level_session(s.level), *key))
            note(given.key,
                 std::string(reader_.program) + " does not show " + given.key + " (" + key->about + ")");
    }

    const SessionReader& reader_;
    std::string place_;  // of a part: "kept: "
};

Error refused(std::string text) { return {FOVEA_INVALID_ARGUMENT, "session", std::move(text)}; }

Given given_of(const std::string& key, const JsonValue& value) {
    Given given{key, std::string(value.scalar_text())};
    given.scalar = value.kind() != JsonValue::Kind::object && value.kind() != JsonValue::Kind::null;
    for (size_t i = 0; i < value.items().size(); ++i) {
        const JsonValue& item = value.items()[i];
        given.scalar = given.scalar && item.kind() == JsonValue::Kind::number;
        given.text += (i == 0 ? "" : ",") + std::string(item.scalar_text());
    }
    return given;
}

// Every key once; of one that stands twice the last counts, as in every reader of JSON that does not refuse.
void add_given(std::vector<Given>& all, Given given, Reading& reading) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Given& g) { return g.key == given.key; });
    if (same == all.end()) return void(all.push_back(std::move(given)));
    reading.note(given.key, given.key + " is given twice: the second counts");
    *same = std::move(given);
}

Result<void> read_values(const std::string& name, const JsonValue& json, SessionTensor& out) {
    constexpr double kMostSide = 1 << 24, kMostElements = 1 << 28;
    double count = 1;
    for (const JsonValue& side : json["shape"].items()) {
        const double n = side.number();
        count *= n;
        if (!(n >= 1 && n <= kMostSide && n == std::floor(n) && count <= kMostElements))
            return refused("the shape of " + name +
                           " is not [heads, tokens, width] of numbers from 1 to 16777216");
        out.shape.push_back(uint64_t(n));
    }
    if (out.shape.size() < 2 || out.shape.size() > 4)
        return refused("the shape of " + name + " is not [heads, tokens, width]");
    if (json["f32"].kind() != JsonValue::Kind::text) return refused(name + " has no data");
    const std::optional<std::vector<uint8_t>> bytes = from_base64(json["f32"].text());
    if (!bytes) return refused(name + ": its data are not base64");
    if (double(bytes->size()) != count * 4)
        return refused(name + " has " + std::to_string(bytes->size()) + " bytes; its shape asks for " +
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
    if (json.kind() != JsonValue::Kind::object) return refused("tensor " + name + " is no object");
    if (json.find("path") == nullptr) return read_values(name, json, out);
    out.path = json["path"].text();
    out.name = json["name"].text();
    out.sha256 = json["sha256"].text();
    if (out.path.empty()) return refused("the path of " + name + " is empty");
    return {};
}

Result<std::shared_ptr<const SessionTensors>> read_tensors(const JsonValue& json, const Session* parent,
                                                           Reading& reading) {
    if (parent && json.text() == "same") return parent->tensors;
    if (json.kind() == JsonValue::Kind::null) return std::shared_ptr<const SessionTensors>();
    if (json.kind() != JsonValue::Kind::object) return refused("its tensors are no object");
    auto tensors = std::make_shared<SessionTensors>();
    for (const auto& [name, value] : json.members()) {
        SessionTensor* const tensor = name == "q"   ? &tensors->q
                                      : name == "k" ? &tensors->k
                                      : name == "v" ? &tensors->v
                                                    : nullptr;
        if (!tensor) {
            reading.note("tensors",
                         "there is no tensor " + printable_name(name, 40) + " in a session: it is left out");
            continue;
        }
        if (Result<void> r = read_tensor(name, value, *tensor); !r) return r.error();
    }
    const auto missing = [](const SessionTensor& t) { return t.values.empty() && t.path.empty(); };
    if (missing(tensors->q) || missing(tensors->k)) return refused("its tensors lack q or k");
    return std::shared_ptr<const SessionTensors>(std::move(tensors));
}

// A session, or a part of one: `kept`, or an item of `locked`.
Result<ReadSession> read_part(const JsonValue& json, const SessionReader& reader, const Session* parent,
                              const std::string& place) {
    Reading reading(reader, place);
    if (json["state"].kind() != JsonValue::Kind::object) return refused(place + "its state is no object");
    std::vector<Given> all;
    for (const char* group : {"state", "desktop"})
        for (const auto& [key, value] : json[group].members()) add_given(all, given_of(key, value), reading);
    ReadSession read{reading.take(all), {}};
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

int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// Bytes that are no UTF-8 become U+FFFD, as a browser has it.
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

// ---- writing ----

std::string key_json(const Session& s, const SessionKey& key) {
    const std::string text = field_of(key.key).get(s, key);
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

Session level_session(int level) {
    Session s;
    const auto set = [&](std::string_view key, const JsonValue& value) {
        field_of(key).set(s, default_text(value), key_named(key));
    };
    for (const JsonValue& row : model_table("session")["keys"].items())
        set(row["key"].text(), row["default"]);
    s.level = level;
    for (const auto& [key, value] : model_table("levels").items()[size_t(level - 1)]["session"].members())
        set(key, value);
    s.under = mask_key(s);
    return s;
}

Result<ReadSession> read_session(std::string_view text, const SessionReader& reader) {
    const Result<JsonValue> json = parse_json(text, kMostDepth);
    if (!json) return refused("it is not a session file: " + json.error().text);
    const JsonValue& table = model_table("session");
    if ((*json)["format"].text() != table["format"].text())
        return refused("it is not a session file of this program");
    const JsonValue& version = (*json)["version"];
    const std::string known(table["version"].number_text());
    if (version.kind() != JsonValue::Kind::number || version.number() != table["version"].number())
        return refused("it is of version " +
                       (version.scalar_text().empty() ? "none" : printable_name(version.scalar_text(), 20)) +
                       "; this program reads version " + known);
    Result<ReadSession> read = read_part(*json, reader, nullptr, "");
    if (!read) return read;
    const auto add = [&](const JsonValue& part, const std::string& place, std::vector<Session>& to) {
        Result<ReadSession> one = read_part(part, reader, &read->session, place);
        if (!one) return read->notes.push_back({place, "this part is left out: " + one.error().text});
        to.push_back(std::move(one->session));
        read->notes.insert(read->notes.end(), one->notes.begin(), one->notes.end());
    };
    if (const JsonValue* kept = json->find("kept")) add(*kept, "kept: ", read->session.kept);
    const std::vector<JsonValue>& locked = (*json)["locked"].items();
    for (size_t i = 0; i < locked.size(); ++i)
        add(locked[i], "locked " + std::to_string(i + 1) + ": ", read->session.locked);
    return read;
}

Result<ReadSession> read_address(std::string_view fragment, const SessionReader& reader) {
    Reading reading(reader, "");
    if (fragment.starts_with('#')) fragment.remove_prefix(1);
    std::vector<Given> all;
    while (!fragment.empty()) {
        const size_t end = std::min(fragment.find('&'), fragment.size());
        const std::string_view pair = fragment.substr(0, end);
        const size_t equals = std::min(pair.find('='), pair.size());
        Given given{decoded(pair.substr(0, equals)), decoded(pair.substr(std::min(equals + 1, pair.size())))};
        fragment.remove_prefix(std::min(end + 1, fragment.size()));
        if (given.key == "v") {
            if (given.text != model_table("session")["version"].number_text())
                return refused("the address is of version " + printable_name(given.text, 20) +
                               "; this program reads version 1");
        } else if (!given.key.empty()) {
            add_given(all, std::move(given), reading);
        }
    }
    ReadSession read{reading.take(all), {}};
    read.notes = std::move(reading.notes);
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

std::string write_address(const Session& s) {
    Session own = level_session(s.level);
    std::string text = "v=1&level=" + std::to_string(s.level);
    for (const SessionKey& key : session_keys()) {
        const Field& field = field_of(key.key);
        std::string value = field.get(s, key);
        if (key.key == "level" || value == field.get(own, key)) continue;
        // What follows from the mask, such as causal, is not written beside it.
        if (key.key == "mask") set_mask_key(own, value);
        if (key.type == "boolean") value = value == "true" ? "1" : "0";
        text += "&" + key.key + "=" + encoded(value);
    }
    return text;
}

}  // namespace fovea
