#include "data/session_file.hpp"

#include "data/base64.hpp"
#include "data/sha256.hpp"
#include "data/text_file.hpp"
#include "files/json_string.hpp"
#include "files/json_text.hpp"
#include "model/imported_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostDepth = 6;
constexpr uint64_t kMostPainted = 4096 * 4096;
constexpr std::string_view kFormat = "fovea-session";
constexpr std::string_view kSameTensors = "same";  // as the session's own result
constexpr std::array<std::string_view, 5> kImportKinds = {"qkv", "fused", "gpt2", "llama", "tables"};
constexpr std::array<std::string_view, 3> kCompareHow = {"side", "triangle", "difference"};

Error refused(std::string text) { return Error{FOVEA_INVALID_ARGUMENT, "session", std::move(text)}; }

// ---- the JSON as "state.level" -> "3" ----

using Values = std::map<std::string, std::string, std::less<>>;

void flatten(files::JsonCursor& cursor, std::string_view text, const std::string& name, Values& out) {
    switch (cursor.kind()) {
        case files::JsonKind::object:
            cursor.enter();
            while (cursor.next()) {
                const std::string key = cursor.key().decoded();
                flatten(cursor, text, name.empty() ? key : name + "." + key, out);
            }
            return;
        case files::JsonKind::array: {
            cursor.enter();
            std::string all;
            for (int index = 0; cursor.next(); ++index) {
                if (cursor.kind() == files::JsonKind::number)
                    all += std::string(cursor.number()) + " ";
                else if (cursor.kind() == files::JsonKind::object)
                    flatten(cursor, text, name + "." + std::to_string(index), out);
                else
                    cursor.skip_value();
            }
            out[name] = all;
            return;
        }
        case files::JsonKind::string:
            out[name] = cursor.string().decoded();
            return;
        case files::JsonKind::number:
            out[name] = std::string(cursor.number());
            return;
        default:
            out[name] = cursor.kind() == files::JsonKind::true_ ? "true" : "false";
            cursor.skip_value();
    }
}

struct Reader {
    const Values& values;
    std::string prefix = {};  // of every key

    const std::string* find(std::string_view key) const {
        const auto found = values.find(prefix + std::string(key));
        return found == values.end() ? nullptr : &found->second;
    }
    template <class T>
    void number(std::string_view key, T& value, double low, double high) const {
        const std::string* text = find(key);
        double read = 0;
        if (!text || std::from_chars(text->data(), text->data() + text->size(), read).ec != std::errc{})
            return;
        if (read >= low && read <= high) value = T(read);
    }
    void boolean(std::string_view key, bool& value) const {
        if (const std::string* text = find(key)) value = *text == "true" || *text == "1";
    }
    template <size_t N>
    int choice(std::string_view key, const std::array<std::string_view, N>& names, int otherwise) const {
        const std::string* text = find(key);
        for (size_t i = 0; text && i < N; ++i)
            if (*text == names[i]) return int(i);
        return otherwise;
    }
};

struct Writer {
    std::string out = "{";
    bool first = true;

    void raw(std::string_view key, std::string_view json) {
        out += std::string(first ? "" : ", ");
        first = false;
        files::append_json_string(out, key);
        out += ": ";
        out += json;
    }
    void text(std::string_view key, std::string_view value) {
        std::string quoted;
        files::append_json_string(quoted, value);
        raw(key, quoted);
    }
    void number(std::string_view key, double value) { raw(key, format_number(value, 9)); }
    void boolean(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
    std::string done() const { return out + "}"; }
};

// ---- the page's keys ----

// The page also keeps stages between these; they are read as the nearest one here.
std::string stage_key(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return char(std::tolower(static_cast<unsigned char>(c))); });
    return name == "scores" ? "scaled" : name;
}

std::string stage_of_key(std::string key) {
    if (key == "capped" || key == "scores") key = "scaled";
    if (key == "weights_all" || key == "masked_weights" || key == "row_sums" || key == "keep" ||
        key == "dropped" || key == "lse")
        key = "weights";
    return key;
}

std::string mask_key(const Settings& s) {
    if (s.pattern != MaskPattern::none) return std::string(mask_pattern_name(s.pattern));
    return s.windowed ? "window" : s.causal ? "causal" : "none";
}

std::string painted_bits(const std::vector<uint8_t>& cells) {
    std::vector<std::byte> bytes((cells.size() + 7) / 8);
    for (size_t i = 0; i < cells.size(); ++i)
        if (cells[i]) bytes[i >> 3] |= std::byte(1 << (i & 7));
    return to_base64(bytes, true);
}

std::string limit_text(float limit) { return std::isnan(limit) ? "" : format_number(double(limit), 9); }

struct Looked {  // what is written of a result
    const Settings& s;
    const ViewState& view;
    std::string stage;
    uint64_t heads = 1, kv_heads = 1;
};

std::string state_json(const Looked& looked) {
    const Settings& s = looked.s;
    const ViewState& view = looked.view;
    Writer w;
    w.number("level", s.level);
    w.text("text", s.text);
    w.number("len", s.length);
    w.text("stage", stage_key(looked.stage));
    w.number("head", view.head);
    w.number("i", view.picked_row);
    w.number("j", view.picked_column);
    w.text("init", s.level == 1 ? "none" : s.level == 2 ? "rand" : "linear");
    w.number("seed", double(s.weight_seed));
    w.text("scale", s.scaled ? "auto" : "none");
    w.number("temp", double(s.temperature));
    w.text("mask", mask_key(s));
    w.text("bits", painted_bits(s.painted));
    w.text("route", "before");
    w.number("win", std::max(s.window_left, 0));
    w.boolean("alibi", s.alibi);
    w.number("cap", double(s.softcap));
    w.number("p", s.dropout ? double(s.dropout_p) : 0);
    w.number("dseed", double(s.dropout_seed));
    w.text("rng", "native");
    w.number("heads", double(looked.heads));
    w.number("kv", double(looked.kv_heads));
    w.text("map", view.colours.automatic_map ? "auto" : colour_map_name(view.colours.map));
    w.boolean("log", view.colours.spread == Spread::logarithmic);
    w.text("lo", limit_text(view.colours.range_low));
    w.text("hi", limit_text(view.colours.range_high));
    w.boolean("table", false);
    w.number("cmp", view.compared_head);
    w.text("how", kCompareHow[size_t(view.how)]);
    return w.done();
}

// What only this program has.
std::string desktop_json(const Workbench& bench, const Looked& looked) {
    const Settings& s = looked.s;
    Writer w;
    w.boolean("causal", s.causal);
    w.boolean("windowed", s.windowed);
    w.number("window_left", s.window_left);
    w.number("window_right", s.window_right);
    w.boolean("dropout", s.dropout);
    w.number("dropout_p", double(s.dropout_p));
    w.boolean("rope", s.rope);
    w.number("kv_heads", s.kv_heads);
    w.text("precision", precision_key(s.precision));
    w.text("tokenizer", tokenizer_name(s.tokenizer));
    std::string hidden;
    for (const uint32_t key : s.hidden_keys) hidden += (hidden.empty() ? "" : ", ") + std::to_string(key);
    w.raw("hidden", "[" + hidden + "]");
    w.text("theme", bench.window.theme == Theme::dark ? "dark" : "light");
    w.number("spread", int(looked.view.colours.spread));
    w.boolean("pinned", looked.view.pinned);
    if (s.file) {
        const ImportMapping& m = s.mapping;
        w.text("import", kImportKinds[size_t(m.kind)]);
        w.text("fused", m.fused);
        w.text("order", m.order);
        w.boolean("tokens_first", m.layout == TensorLayout::tokens_first);
        w.number("import_heads", m.heads);
        w.number("layer", m.layer);
        w.boolean("rotate", m.rotate);
        w.number("divisor", double(m.divisor));
    }
    return w.done();
}

std::string tensors_json(const Settings& s, const std::filesystem::path& folder) {
    Writer all;
    const std::pair<const char*, const std::string*> names[] = {
        {"q", &s.mapping.q}, {"k", &s.mapping.k}, {"v", &s.mapping.v}};
    for (const auto& [key, name] : names) {
        Writer w;
        if (!s.file->path.empty()) {
            std::error_code error;
            const std::filesystem::path relative = std::filesystem::relative(s.file->path, folder, error);
            w.text("path", error || relative.empty() ? s.file->path : relative.generic_string());
            w.text("name", *name);
            if (!s.file->sha256.empty()) w.text("sha256", s.file->sha256);
        } else if (const Tensor* t = s.file->set.find(*name)) {
            w.raw("shape", format_shape(t->shape));
            w.text("f32", to_base64(t->bytes, false));
        } else {
            continue;
        }
        all.raw(key, w.done());
    }
    return all.done();
}

void read_settings(const Reader& r, Settings& s) {
    int level = 2;
    r.number("state.level", level, 1, kLevelCount);
    s = level_settings(level);
    if (const std::string* text = r.find("state.text")) s.text = *text;
    r.number("state.len", s.length, 0, 1024);
    r.number("state.seed", s.weight_seed, 0, 4294967295.0);
    if (const std::string* scale = r.find("state.scale")) s.scaled = *scale != "none";
    r.number("state.temp", s.temperature, 0.05, 10);
    if (const std::string* mask = r.find("state.mask")) {
        s.causal = *mask == "causal" || *mask == "window";
        s.windowed = *mask == "window";
        for (int i = 1; i < kMaskPatternCount; ++i)
            if (*mask == mask_pattern_name(MaskPattern(i))) s.pattern = MaskPattern(i);
        if (s.windowed) s.window_right = 0;
    }
    r.number("state.win", s.window_left, 0, 4096);
    r.boolean("state.alibi", s.alibi);
    r.number("state.cap", s.softcap, 0, 100);
    float p = s.dropout ? s.dropout_p : 0;
    r.number("state.p", p, 0, 0.95);
    s.dropout = p > 0;
    if (p > 0) s.dropout_p = p;
    r.number("state.dseed", s.dropout_seed, 0, 4294967295.0);
    if (s.level == 7) r.number("state.kv", s.kv_heads, 1, 12);
    r.boolean("desktop.causal", s.causal);
    r.boolean("desktop.windowed", s.windowed);
    r.number("desktop.window_left", s.window_left, -1, 4096);
    r.number("desktop.window_right", s.window_right, -1, 4096);
    r.boolean("desktop.dropout", s.dropout);
    r.number("desktop.dropout_p", s.dropout_p, 0, 0.95);
    r.boolean("desktop.rope", s.rope);
    r.number("desktop.kv_heads", s.kv_heads, 0, 12);
    for (int i = 0; i < kPrecisionCount; ++i)
        if (const std::string* key = r.find("desktop.precision"); key && *key == precision_key(Precision(i)))
            s.precision = Precision(i);
    for (int i = 0; i < kTokenizerCount; ++i)
        if (const std::string* name = r.find("desktop.tokenizer");
            name && *name == tokenizer_name(Tokenizer(i)))
            s.tokenizer = Tokenizer(i);
    const std::string* hidden = r.find("desktop.hidden");
    for (const char *at = hidden ? hidden->data() : nullptr, *end = hidden ? at + hidden->size() : at;
         at < end;) {
        uint32_t key = 0;
        const auto read = std::from_chars(at, end, key);
        if (read.ec != std::errc{} || s.hidden_keys.size() >= 4096) break;
        if (s.hidden_keys.empty() || key > s.hidden_keys.back()) s.hidden_keys.push_back(key);
        at = read.ptr + 1;
    }
}

// Bits of a painted mask know no size: it is that of the tokens, and so is known before anything is computed.
void read_painted(const Reader& r, Settings& s, uint64_t cells) {
    const std::string* bits = r.find("state.bits");
    if (!bits || s.pattern != MaskPattern::painted || cells == 0 || cells > kMostPainted) return;
    const std::optional<std::vector<uint8_t>> bytes = from_base64(*bits);
    if (!bytes) return;
    s.painted.assign(cells, 1);
    for (size_t i = 0; i < cells && i >> 3 < bytes->size(); ++i)
        s.painted[i] = (*bytes)[i >> 3] >> (i & 7) & 1;
}

Result<Tensor> embedded_tensor(const Reader& r, const std::string& name) {
    const std::string *data = r.find("tensors." + name + ".f32"),
                      *dims = r.find("tensors." + name + ".shape");
    if (!dims) return refused("tensor '" + name + "' has no shape");
    std::vector<uint64_t> shape;
    uint64_t count = 1;
    for (const char *at = dims->data(), *end = at + dims->size(); at < end;) {
        uint64_t n = 0;
        const auto read = std::from_chars(at, end, n);
        if (read.ec != std::errc{} || n == 0 || n > 1u << 24 || shape.size() == 4 || count > 1u << 28)
            return refused("tensor '" + name + "' has an impossible shape");
        shape.push_back(n);
        count *= n;
        at = read.ptr + 1;
    }
    const std::optional<std::vector<uint8_t>> bytes = from_base64(*data);
    if (!bytes || bytes->size() != count * 4)
        return refused("tensor '" + name + "': its data are not the " + format_count(count) +
                       " float32 of its shape");
    return make_tensor(name, ElementType::f32, shape, std::as_bytes(std::span(*bytes)));
}

struct TensorSource {  // of a session's results
    std::filesystem::path folder;
    std::map<std::filesystem::path, std::shared_ptr<const ImportedFile>> opened = {};
    std::shared_ptr<const ImportedFile> own = nullptr;  // of the session's own result
    bool changed = false;                               // a file is not the one that was saved
};

Result<std::shared_ptr<const ImportedFile>> open_once(const Reader& r, const std::string& name,
                                                      TensorSource& source) {
    const std::filesystem::path path = source.folder / std::filesystem::path(name);
    std::shared_ptr<const ImportedFile>& file = source.opened[path];
    if (!file) {
        Result<std::shared_ptr<const ImportedFile>> opened = open_import(path);
        if (!opened) return opened.error();
        file = std::move(*opened);
    }
    if (const std::string* wanted = r.find("tensors.q.sha256")) {
        if (file->sha256.empty()) {
            Result<std::string> found = sha256_of_file(file->path);
            if (!found) return found.error();
            file->sha256 = std::move(*found);
        }
        source.changed = source.changed || file->sha256 != *wanted;
    }
    return file;
}

Result<void> read_tensors(const Reader& r, TensorSource& source, Settings& s) {
    const std::string *path = r.find("tensors.q.path"), *same = r.find("tensors");
    const bool as_own = same && *same == kSameTensors && source.own;
    if (!path && !as_own && !r.find("tensors.q.f32")) return {};
    std::shared_ptr<const ImportedFile> file = as_own ? source.own : nullptr;
    if (path) {
        Result<std::shared_ptr<const ImportedFile>> opened = open_once(r, *path, source);
        if (!opened) return opened.error();
        file = std::move(*opened);
    } else if (!file) {
        auto embedded = std::make_shared<ImportedFile>();
        for (const char* name : {"q", "k", "v"}) {
            if (!r.find(std::string("tensors.") + name + ".f32")) continue;
            Result<Tensor> t = embedded_tensor(r, name);
            if (!t) return t.error();
            embedded->set.tensors.push_back(std::move(*t));
        }
        file = std::move(embedded);
    }
    ImportMapping m = guess_mapping(*file);
    m.kind = ImportKind(r.choice("desktop.import", kImportKinds, int(m.kind)));
    const std::pair<const char*, std::string*> names[] = {{"tensors.q.name", &m.q},
                                                          {"tensors.k.name", &m.k},
                                                          {"tensors.v.name", &m.v},
                                                          {"desktop.fused", &m.fused},
                                                          {"desktop.order", &m.order}};
    for (const auto& [key, value] : names)
        if (const std::string* text = r.find(key)) *value = *text;
    bool tokens_first = m.layout == TensorLayout::tokens_first;
    r.boolean("desktop.tokens_first", tokens_first);
    m.layout = tokens_first ? TensorLayout::tokens_first : TensorLayout::heads_first;
    r.number("desktop.import_heads", m.heads, 1, 1024);
    r.number("desktop.layer", m.layer, 0, 100000);
    r.boolean("desktop.rotate", m.rotate);
    r.number("desktop.divisor", m.divisor, 0, 1e30);
    s.file = std::move(file);
    s.mapping = m;
    return {};
}

void read_view(const Reader& r, ViewState& view) {
    r.number("state.head", view.head, 0, 1023);
    r.number("state.i", view.picked_row, 0, 1 << 20);
    r.number("state.j", view.picked_column, 0, 1 << 20);
    if (const std::string* name = r.find("state.map")) {
        const std::optional<ColourMap> map = colour_map_from_name(*name);
        view.colours.automatic_map = !map;
        if (map) view.colours.map = *map;
    }
    bool logarithmic = false;
    r.boolean("state.log", logarithmic);
    int spread = logarithmic ? int(Spread::logarithmic) : int(Spread::automatic);
    r.number("desktop.spread", spread, 0, kSpreadCount - 1);
    view.colours.spread = Spread(spread);
    view.colours.range_low = view.colours.range_high = NAN;
    r.number("state.lo", view.colours.range_low, -1e30, 1e30);
    r.number("state.hi", view.colours.range_high, -1e30, 1e30);
    r.number("state.cmp", view.compared_head, -1, 1023);
    view.how = CompareHow(r.choice("state.how", kCompareHow, int(view.how)));
    r.boolean("desktop.pinned", view.pinned);
    view.zoom = view.pan_x = view.pan_y = 0;
}

}  // namespace

// A or a locked tab.
static std::string past_json(const Workbench& bench, const PastResult& past,
                             const std::filesystem::path& folder) {
    ViewState view;
    view.head = past.head;
    const Looked looked{past.settings, view, past.locked ? past.stage : "weights"};
    std::string text = "{\"state\": " + state_json(looked) + ", \"desktop\": " + desktop_json(bench, looked);
    const std::shared_ptr<const ImportedFile>& file = past.settings.file;
    const bool embedded_above = file && file->path.empty() && file == bench.document.settings().file;
    if (embedded_above)
        text += ", \"tensors\": \"" + std::string(kSameTensors) + "\"";
    else if (file)
        text += ", \"tensors\": " + tensors_json(past.settings, folder);
    return text + "}";
}

std::string session_text(const Workbench& bench, const std::filesystem::path& folder) {
    const bool ready = bench.computation.ready();
    const std::string stage = bench.own_stage();
    const Looked now{bench.document.settings(), bench.own_view(), stage.empty() ? "weights" : stage,
                     ready ? bench.computation.run().desc().heads_q : 1,
                     ready ? bench.computation.run().desc().heads_kv : 1};
    std::string text = "{\"format\": \"" + std::string(kFormat) +
                       "\", \"version\": 1,\n \"state\": " + state_json(now) +
                       ",\n \"desktop\": " + desktop_json(bench, now);
    if (now.s.file) text += ",\n \"tensors\": " + tensors_json(now.s, folder);
    std::string locked;
    for (const PastResult& past : bench.past()) {
        if (past.locked)
            locked += (locked.empty() ? "\n  " : ",\n  ") + past_json(bench, past, folder);
        else
            text += ",\n \"kept\": " + past_json(bench, past, folder);
    }
    if (!locked.empty()) text += ",\n \"locked\": [" + locked + "]";
    return text + "}\n";
}

Result<void> save_session(const Workbench& bench, const std::filesystem::path& path) {
    std::vector<PastResult> all = bench.past();
    all.push_back({bench.document.settings()});
    std::map<std::string, std::string> hashes;
    for (const PastResult& one : all) {
        const std::shared_ptr<const ImportedFile>& file = one.settings.file;
        if (!file || file->path.empty()) continue;
        std::string& known = hashes[file->path];
        if (known.empty()) {
            Result<std::string> hash = sha256_of_file(file->path);
            if (!hash) return hash.error();
            known = std::move(*hash);
        }
        file->sha256 = known;
    }
    return write_text_file(path, session_text(bench, std::filesystem::absolute(path).parent_path()));
}

// The settings of one result, with its tensors.
static Result<Settings> read_result(const Reader& r, TensorSource& source) {
    Settings s;
    read_settings(r, s);
    if (Result<void> done = read_tensors(r, source, s); !done) return done.error();
    uint64_t tokens = text_tokens(s).size(), rows = tokens;
    if (s.file && s.mapping.kind != ImportKind::tables) {
        const Result<Projected> projected = project_import(s);
        if (!projected) return projected.error();
        rows = projected->q.shape[2], tokens = projected->k.shape[2];
    }
    read_painted(r, s, rows * tokens);
    return s;
}

// A and the locked tabs; one that cannot be read is left out, and `refusals` say why.
static std::vector<PastResult> read_past(const Values& values, TensorSource& source,
                                         std::vector<std::string>& refusals) {
    std::vector<PastResult> all;
    for (int tab = -1; tab < int(Computation::kMostLocked); ++tab) {
        const Reader r{values, tab < 0 ? "kept." : "locked." + std::to_string(tab) + "."};
        if (!r.find("state.level")) continue;
        Result<Settings> s = read_result(r, source);
        if (!s) {
            refusals.push_back((tab < 0 ? "A" : "the locked tab " + std::to_string(tab + 1)) +
                               " is left out: " + s.error().text);
            continue;
        }
        PastResult one{std::move(*s)};
        r.number("state.head", one.head, 0, 1023);
        one.locked = tab >= 0;
        const std::string* stage = r.find("state.stage");
        one.stage = stage_of_key(stage ? *stage : "weights");
        all.push_back(std::move(one));
    }
    return all;
}

Result<void> read_session(Workbench& bench, std::string_view text, const std::filesystem::path& folder) {
    if (const std::optional<files::JsonFault> fault = files::check_json(text, kMostDepth))
        return refused("it is not a session file: byte " + std::to_string(fault->offset) + ": " +
                       fault->reason);
    Values values;
    files::JsonCursor cursor(text);
    flatten(cursor, text, "", values);
    const Reader r{values};
    const std::string *format = r.find("format"), *version = r.find("version");
    if (!format || *format != kFormat) return refused("it is not a session file of this program");
    if (!version || *version != "1")
        return refused("it is of version " + printable_name(version ? *version : "none", 20) +
                       "; this program reads version 1");
    TensorSource source{folder};
    const Result<Settings> s = read_result(r, source);
    if (!s) return s.error();
    source.own = s->file;
    std::vector<std::string> refusals;
    std::vector<PastResult> past = read_past(values, source, refusals);
    bench.restore({});  // of a session before this one
    bench.document.change(*s);
    read_view(r, bench.view);
    if (const std::string* theme = r.find("desktop.theme"))
        bench.window.theme = *theme == "light" ? Theme::light : Theme::dark;
    if (const std::string* stage = r.find("state.stage")) bench.view.wanted_stage = stage_of_key(*stage);
    for (std::string& refusal : refusals) bench.problems.report("session", std::move(refusal), false);
    if (source.changed)
        bench.problems.report(
            "file",
            "the file of the tensors has changed since the session was saved: its numbers are those of now",
            false);
    bench.restore(std::move(past));
    return {};
}

Result<void> open_session(Workbench& bench, const std::filesystem::path& path) {
    const Result<std::string> text = read_text_file(path);
    if (!text) return text.error();
    return read_session(bench, *text, std::filesystem::absolute(path).parent_path());
}

}  // namespace fovea::visualizer
