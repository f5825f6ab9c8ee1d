// The keys of a session: how each is taken from a text, checked, settled with the others, and written.
#include <fovea/model/session.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <tuple>

#include <fovea/files.hpp>

#include "files/locale_point.hpp"
#include "model/session/session_checks.hpp"
#include "model/tables.hpp"

namespace fovea {
namespace {

constexpr uint64_t kMaxPaintedSide = 4096;
constexpr size_t kMaxEdits = 256;
constexpr double kMaxEditedPlace = 4095;
constexpr StageId kEditedStages[] = {StageId::inputs, StageId::w_query, StageId::w_key, StageId::w_value,
                                     StageId::w_output};

// ---- a key's value as text, and back ----

std::optional<double> number_of(const std::string& text) {
    if (text.empty() || std::string_view("+ \t").find(text[0]) != std::string_view::npos) return std::nullopt;
    const std::string number = files::for_strtod(text);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (end != number.c_str() + number.size() || !std::isfinite(value)) return std::nullopt;
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

// How one key is taken from a text, which may be rejected, and written as one.
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
    const std::optional<StageId> stage = stage_from_name(text);
    s.stage = stage.value_or(s.stage);
    return stage.has_value();
}
std::string get_stage(const Session& s, const SessionKey&) { return stage_name(s.stage); }

template <auto Member>
bool set_limit(Session& s, const std::string& text, const SessionKey&) {
    if (!text.empty() && !(is_decimal(text) && number_of(text))) return false;
    s.*Member = text;
    return true;
}

std::vector<std::string> split(const std::string& text, char at = ',') {
    std::vector<std::string> parts(1);
    for (const char c : text) c == at ? void(parts.emplace_back()) : void(parts.back() += c);
    return parts;
}

// False where `take` gives false for a part between commas; an empty text has none.
template <class Take>  // bool(const std::string&)
bool each_part(const std::string& text, Take take) {
    for (size_t at = 0; !text.empty() && at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        if (!take(text.substr(at, end - at))) return false;
        at = end + 1;
    }
    return true;
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
    constexpr double kMaxZoomed = 1 << 20;
    const std::vector<std::string> parts = split(text);
    const auto valid = [&] {
        if (parts.size() != 5 || (parts[4] != "mass" && parts[4] != "max") || !is_unsigned(parts[3], true))
            return false;
        for (size_t i = 1; i < 3; ++i)
            if (!is_unsigned(parts[i], false)) return false;
        if (parts[0] == "own") return true;
        if (!is_unsigned(parts[0], false)) return false;
        const double tokens = *number_of(parts[0]);
        return tokens >= 1 && tokens <= kMaxZoomed;
    };
    if (!text.empty() && !valid()) return false;
    s.zoom = text;
    return true;
}

bool set_bits(Session& s, const std::string& text, const SessionKey&) {
    const std::optional<std::vector<uint8_t>> bytes = from_base64(text);
    if (!bytes || bytes->size() > kMaxPaintedSide * kMaxPaintedSide / 8) return false;
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
            if (side < 1 || side > kMaxPaintedSide) return false;
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
    hidden.reserve(size_t(std::count(text.begin(), text.end(), ',')) + 1);
    const auto take = [&](const std::string& part) {
        const std::optional<double> value = in_limits(part, key, true);
        if (value) hidden.push_back(uint32_t(*value));
        return value.has_value();
    };
    if (!each_part(text, take)) return false;
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

// "w_query 0 1 -0.25"
std::optional<CellEdit> edit_of(const std::string& text, const SessionKey& key) {
    const std::vector<std::string> parts = split(text, ' ');
    if (parts.size() != 4 || !is_unsigned(parts[1], false) || !is_unsigned(parts[2], false))
        return std::nullopt;
    const std::optional<StageId> stage = stage_from_name(parts[0]);
    const bool is_edited = std::ranges::find(kEditedStages, stage) != std::end(kEditedStages);
    const double row = *number_of(parts[1]), column = *number_of(parts[2]);
    const std::optional<double> value = in_limits(parts[3], key, false);
    if (!is_edited || row > kMaxEditedPlace || column > kMaxEditedPlace || !value) return std::nullopt;
    return CellEdit{*stage, uint32_t(row), uint32_t(column), *value};
}

// In the order of their cells; of two edits of one cell the later counts.
bool set_edits(Session& s, const std::string& text, const SessionKey& key) {
    const auto cell = [](const CellEdit& e) { return std::tie(e.stage, e.row, e.column); };
    std::vector<CellEdit> edits;
    const auto take = [&](const std::string& part) {
        const std::optional<CellEdit> edit = edit_of(part, key);
        if (!edit) return false;
        auto at = edits.begin();
        while (at != edits.end() && cell(*at) < cell(*edit)) ++at;
        if (at != edits.end() && cell(*at) == cell(*edit))
            *at = *edit;
        else if (edits.size() == kMaxEdits)
            return false;
        else
            edits.insert(at, *edit);
        return true;
    };
    if (!each_part(text, take)) return false;
    s.edits = std::move(edits);
    return true;
}

std::string get_edits(const Session& s, const SessionKey&) {
    std::string text;
    for (const CellEdit& edit : s.edits)
        text += (text.empty() ? "" : ",") + stage_name(edit.stage) + " " + std::to_string(edit.row) + " " +
                std::to_string(edit.column) + " " + json_number(edit.value);
    return text;
}

using S = Session;
constexpr Field kFields[] = {member<&S::level>("level"),
                             member<&S::text>("text"),
                             member<&S::task>("task"),
                             member<&S::heads_off>("off"),
                             member<&S::length>("len"),
                             {"stage", set_stage, get_stage},
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
                             {"edits", set_edits, get_edits},
                             member<&S::colormap>("colormap"),
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
                             member<&S::published>("published"),
                             member<&S::published_sha256>("published_sha256"),
                             member<&S::changed_heads>("changed_heads"),
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
    {"window_left", "win"}, {"window_right", "right"}, {"dropout", ""}, {"kv_heads", ""}, {"theme", ""}};

// ---- reading ----

constexpr size_t kMaxUnknown = 20;

bool is_key(std::string_view name) {
    const std::span<const SessionKey> keys = session_keys();
    return std::any_of(keys.begin(), keys.end(), [&](const SessionKey& k) { return k.key == name; }) ||
           std::any_of(std::begin(kFormerNames), std::end(kFormerNames),
                       [&](const auto& former) { return former.first == name; });
}

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
    if (key.type == "edits")
        return "at most " + std::to_string(kMaxEdits) +
               " cells as inputs 1 2 0.9,w_query 0 1 -0.25, numbers from " + json_number(key.low) + " to " +
               json_number(key.high);
    return "as docs/reference/sessions.md says";
}

class Reading {
  public:
    Reading(const SessionReader& reader, std::string place) : reader_(reader), place_(std::move(place)) {}

    std::vector<SessionNote> notes;

    void note(std::string_view key, std::string text) {
        notes.push_back({std::string(key), place_ + std::move(text)});
    }

    Session take(const std::vector<GivenKey>& all) {
        Session s = level_session(level_of(all), task_of(all));
        for (const SessionKey& key : session_keys())
            for (const GivenKey& given : all)
                if (given.key == key.key && key.key != "level") set(s, given, key);
        for (const GivenKey& given : all) take_former(s, given);
        settle_paint(s);
        settle(s, all);
        for (const GivenKey& given : all) tell_unseen(s, given);
        return s;
    }

  private:
    static bool has(const std::vector<GivenKey>& all, std::string_view key) {
        return std::any_of(all.begin(), all.end(), [&](const GivenKey& g) { return g.key == key; });
    }

    int level_of(const std::vector<GivenKey>& all) {
        Session s;
        for (const GivenKey& given : all)
            if (given.key == "level") set(s, given, key_named("level"));
        return s.level;
    }

    static std::string task_of(const std::vector<GivenKey>& all) {
        for (const GivenKey& given : all)
            if (given.key == "task") return given.text;
        return {};
    }

    void set(Session& s, const GivenKey& given, const SessionKey& key) {
        const Field& field = field_of(key.key);
        if (given.scalar && field.set(s, given.text, key)) return;
        const std::string taken = field.get(s, key);
        note(given.key, given.key + " is " +
                            (given.scalar ? printable_name(given.text, 40) : "a list or an object") +
                            "; it must be " + limits_text(key) + ": " + (taken.empty() ? "nothing" : taken) +
                            " is taken");
    }

    void take_former(Session& s, const GivenKey& given) {
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

    // Resolves conditions that involve several keys.
    void settle(Session& s, const std::vector<GivenKey>& all) {
        const std::string level = "level " + std::to_string(s.level);
        const JsonValue& shape = model_table("levels").items()[size_t(s.level - 1)]["shape"];
        const bool normal = shape.find("spread").has_value();
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

    void tell_unseen(const Session& s, const GivenKey& given) {
        const std::span<const SessionKey> keys = session_keys();
        const auto key =
            std::find_if(keys.begin(), keys.end(), [&](const SessionKey& k) { return k.key == given.key; });
        const bool former = std::any_of(std::begin(kFormerNames), std::end(kFormerNames),
                                        [&](const auto& f) { return f.first == given.key; });
        if (key == keys.end()) {
            if (!former)
                note(given.key, "a session has no key " + printable_name(given.key, 40) + "; it is left out");
            return;
        }
        if (std::find(reader_.unseen.begin(), reader_.unseen.end(), given.key) == reader_.unseen.end())
            return;
        const Field& field = field_of(given.key);
        if (field.get(s, *key) != field.get(level_session(s.level, s.task), *key))
            note(given.key,
                 std::string(reader_.program) + " does not show " + given.key + " (" + key->about + ")");
    }

    const SessionReader& reader_;
    std::string place_;  // prefix of a part: "kept: "
};

}  // namespace

Error refused_session(std::string text) { return {FOVEA_INVALID_ARGUMENT, "session", std::move(text)}; }

void add_note(std::vector<SessionNote>& notes, SessionNote note) {
    constexpr size_t kMost = 100;
    if (notes.size() < kMost)
        notes.push_back(std::move(note));
    else if (notes.size() == kMost)
        notes.push_back({"", "more of the session could not be used as it is"});
}

void SessionReading::note(std::string_view key, std::string text) {
    add_note(notes, {std::string(key), place + std::move(text)});
}

void SessionReading::add(GivenKey given) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const GivenKey& g) { return g.key == given.key; });
    if (same == all.end()) {
        if (is_key(given.key) || unknown++ < kMaxUnknown) all.push_back(std::move(given));
        return;
    }
    if (!same->twice) note(given.key, printable_name(given.key, 40) + " is given twice: the second counts");
    given.twice = true;
    *same = std::move(given);
}

Session SessionReading::take() {
    Reading reading(reader, place);
    Session s = reading.take(all);
    for (SessionNote& one : reading.notes) add_note(notes, std::move(one));
    if (unknown > kMaxUnknown)
        note("", std::to_string(unknown - kMaxUnknown) + " more keys are unknown; they are left out");
    return s;
}

std::string session_key_text(const Session& s, const SessionKey& key) {
    return field_of(key.key).get(s, key);
}

Session level_session(int level, std::string_view task) {
    Session s;
    const auto set = [&](std::string_view key, const JsonValue& value) {
        field_of(key).set(s, default_text(value), key_named(key));
    };
    for (const JsonValue& row : model_table("session")["keys"].items())
        set(row["key"].text(), row["default"]);
    s.level = level;
    JsonValue own = model_table("levels").items()[size_t(level - 1)];
    // A task's model has its own rules: the level's scale or dropout would change its values.
    for (const JsonValue& row : model_table("learned").items())
        if (row["task"].text() == task) own = row, s.task = task;
    for (const auto& [key, value] : own["session"].members()) set(key, value);
    s.under = mask_key(s);
    return s;
}

}  // namespace fovea
