#include "data/session_file.hpp"

#include "data/text_file.hpp"
#include "document/opened_model.hpp"
#include "files/sha256.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <span>

namespace fovea::visualizer {
namespace {

constexpr std::array<std::string_view, 5> kImportKinds = {"qkv", "fused", "gpt2", "llama", "tables"};
constexpr std::array<std::string_view, 3> kCompareHow = {"side", "triangle", "difference"};
// Keys without a place in the window; a file with such a key gets a note.
constexpr std::string_view kUnseen[] = {"table"};

template <size_t N>
size_t index_of(const std::array<std::string_view, N>& names, std::string_view name, size_t otherwise) {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? otherwise : size_t(at - names.begin());
}

float limit_of(const std::string& text) {
    float value = NAN;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}
std::string text_of(float limit) { return std::isnan(limit) ? "" : format_number(double(limit), 9); }

// Formats at most this many decimals, without trailing zeros.
std::string plain_number(double value, int digits) {
    char text[64];
    const auto [end, code] =
        std::to_chars(text, text + sizeof text, std::max(value, 0.0), std::chars_format::fixed, digits);
    std::string out(text, code == std::errc() ? end : text);
    if (out.find('.') == std::string::npos) return out;
    out.erase(out.find_last_not_of('0') + 1);
    if (out.ends_with('.')) out.pop_back();
    return out;
}

// The parts between the commas as values; other text is 0.
std::vector<double> numbers_of(std::string_view text) {
    std::vector<double> all;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(','));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        std::from_chars(part.data(), part.data() + part.size(), all.emplace_back(0));
    }
    return all;
}

// A map that is seen whole has this many pixels where a reader says a place in cells for each.
constexpr double kWholeMap = 512;
constexpr uint64_t kMaxZoomed = 1u << 20;  // tokens that a session knows a place in

// ---- to a session ----

// The matrix's first row and column in sight and its zoom; empty: all of it.
std::string view_text(const Workbench& bench) {
    const ViewState& view = bench.past.own_view();
    if (!(view.zoom > 1)) return "";
    ViewState::FirstCell first;
    if (view.first_cell) {
        first = *view.first_cell;
    } else {
        if (bench.past.restoring() || !bench.computation.ready()) return "";
        first = {-view.pan_y * float(bench.stage().rows), -view.pan_x * float(bench.stage().columns)};
    }
    return plain_number(double(first.row), 2) + "," + plain_number(double(first.column), 2) + "," +
           plain_number(double(view.zoom), 2);
}

// Where the map in front is looked at; empty: no map is.
std::string zoom_text(const Workbench& bench) {
    if (bench.window.centre != CentreTab::map || !bench.map) return "";
    // Others than a file's and the synthetic ones cannot be computed again.
    if (!bench.document.settings().file && !bench.map.head()->head().always_causal) return "";
    const uint64_t tokens = bench.map.head()->tokens();
    if (tokens > kMaxZoomed) return "";
    const MapPlace& place = bench.map.place;
    const double cells = place.cells_a_pixel > 0 ? place.cells_a_pixel : double(tokens) / kWholeMap;
    return std::to_string(tokens) + "," + plain_number(std::floor(place.row), 0) + "," +
           plain_number(std::floor(place.key), 0) + "," + plain_number(cells, 4) + "," +
           (place.largest ? "max" : "mass");
}

// As a session file in a folder names it.
std::string path_from(const std::filesystem::path& folder, const std::string& path) {
    std::error_code error;
    const std::filesystem::path relative = std::filesystem::relative(path, folder, error);
    return error || relative.empty() ? path : relative.generic_string();
}

// Tensors of a file as a session names or holds them; one value for each file, so that results which share
// one are written once.
class TensorWriter {
  public:
    explicit TensorWriter(std::filesystem::path folder) : folder_(std::move(folder)) {}
    const std::filesystem::path& folder() const { return folder_; }

    std::shared_ptr<const SessionTensors> of(const Settings& s) {
        if (!s.file) return nullptr;
        std::shared_ptr<const SessionTensors>& known =
            written_[{s.file.get(), s.mapping.q + "\n" + s.mapping.k + "\n" + s.mapping.v}];
        if (known) return known;
        SessionTensors all;
        const std::pair<SessionTensor*, const std::string*> names[] = {
            {&all.q, &s.mapping.q}, {&all.k, &s.mapping.k}, {&all.v, &s.mapping.v}};
        for (const auto& [to, name] : names) {
            if (!s.file->path.empty()) {
                to->path = path_from(folder_, s.file->path);
                to->name = *name;
                to->sha256 = s.file->sha256;
            } else if (const Tensor* t = s.file->set.find(*name)) {
                if (Result<std::vector<float>> values = to_f32(*t)) {
                    to->shape = t->shape;
                    to->values = std::move(*values);
                }
            }
        }
        // A file has its own.
        if (s.file->path.empty()) all.tokens = s.file->tokens;
        return known = std::make_shared<const SessionTensors>(std::move(all));
    }

  private:
    std::filesystem::path folder_;
    std::map<std::pair<const ImportedFile*, std::string>, std::shared_ptr<const SessionTensors>> written_;
};

// SHA-256 of the names, sizes and contents of what the model consists of: a .gguf file, or all files of its
// folder. Of a file above 64 MiB 64 parts of 1 MiB count, spread over it, as a whole model takes minutes.
Result<std::string> fingerprint_of(const OpenedModel& model) {
    namespace fs = std::filesystem;
    if (!model.fingerprint.empty()) return model.fingerprint;
    std::error_code error;
    std::vector<fs::path> files;
    if (fs::is_directory(model.path, error)) {
        for (fs::directory_iterator at(model.path, error), end; !error && at != end; at.increment(error))
            if (at->is_regular_file(error)) files.push_back(at->path());
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(model.path);
    }
    constexpr uint64_t kPart = 1u << 20, kParts = 64;
    std::string all;
    std::vector<char> part(kPart);
    for (const fs::path& file : files) {
        const uint64_t size = fs::file_size(file, error);
        std::ifstream in(file, std::ios::binary);
        if (error || !in)
            return Error{FOVEA_IO_ERROR, "model", printable_name(file.string(), 400) + " cannot be read"};
        all += file.filename().string() + "\n" + std::to_string(size) + "\n";
        const bool whole = size <= kPart * kParts;
        const uint64_t parts = whole ? (size + kPart - 1) / kPart : kParts;
        for (uint64_t n = 0; n < parts; ++n) {
            in.seekg(std::streamoff(whole ? n * kPart : n * (size - kPart) / (kParts - 1)));
            in.read(part.data(), std::streamsize(whole ? std::min(kPart, size - n * kPart) : kPart));
            if (!in)
                return Error{FOVEA_IO_ERROR, "model", printable_name(file.string(), 400) + " cannot be read"};
            all += sha256(std::as_bytes(std::span(part).first(size_t(in.gcount()))));
        }
    }
    return model.fingerprint = sha256(std::as_bytes(std::span(all)));
}

// Writes "2 1 0", a line for each head, and reads it. Rejects heads that the model does not have.
std::string changes_text(const std::vector<HeadChange>& changed) {
    std::string text;
    for (const HeadChange& change : changed)
        text += (text.empty() ? "" : "\n") + std::to_string(change.at.layer) + " " +
                std::to_string(change.at.head) + " " +
                (change.patch.empty() ? format_number(double(change.scale), 9) : "from " + change.patch);
    return text;
}

Result<void> read_changes(std::string_view text, Settings& s) {
    const ModelConfig& config = s.model->weights.config();
    while (!text.empty()) {
        const std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        HeadChange change;
        int begin = 0;
        const bool place =
            std::sscanf(line.c_str(), "%u %u %n", &change.at.layer, &change.at.head, &begin) == 2 &&
            begin > 0 && change.at.layer < config.layers && change.at.head < config.heads;
        const std::string what = line.substr(size_t(begin));
        if (what.starts_with("from ")) {
            change.patch = what.substr(5);
        } else {
            const auto [end, error] = std::from_chars(what.data(), what.data() + what.size(), change.scale);
            if (error != std::errc{} || end != what.data() + what.size()) change.scale = NAN;
        }
        if (!place || !(change.scale >= 0 && change.scale <= 2))
            return Error{FOVEA_INVALID_ARGUMENT, "changed_heads",
                         "changed_heads has '" + printable_name(line, 80) +
                             "'; it must be LAYER HEAD SCALE or LAYER HEAD from TEXT, layers 0 to " +
                             std::to_string(config.layers - 1) + ", heads 0 to " +
                             std::to_string(config.heads - 1) + ", scales 0 to 2"};
        change_head(s, std::move(change));
    }
    return {};
}

Session session_of(const Settings& settings, const ViewState& view, const std::string& stage,
                   TensorWriter& tensors) {
    Session s = settings;
    s.stage = stage_from_name(stage).value_or(StageId::weights);
    s.head = view.head + (shows_model(settings) ? settings.mapping.layer * heads_of_layer(settings) : 0);
    s.row = uint32_t(view.picked_row), s.column = uint32_t(view.picked_column);
    s.colormap = view.colors.automatic_map ? "auto" : std::string(colormap_name(view.colors.map));
    s.logarithmic = view.colors.spread == Spread::logarithmic;
    s.spread = int32_t(view.colors.spread);
    s.low = text_of(view.colors.range_low), s.high = text_of(view.colors.range_high);
    s.compared_head = view.compared_head;
    s.compare_how = kCompareHow[size_t(view.how)];
    s.pinned = view.pinned;
    s.tensors = tensors.of(settings);
    if (const std::shared_ptr<const OpenedModel>& model = settings.model) {
        s.published = path_from(tensors.folder(), model->path);
        s.published_sha256 = model->fingerprint;
        s.changed_heads = changes_text(settings.changed);
    }
    if (!settings.file) return s;
    const ImportMapping& m = settings.mapping;
    s.import_kind = kImportKinds[size_t(m.kind)];
    s.import_fused = m.fused, s.import_order = m.order;
    s.import_tokens_first = m.layout == TensorLayout::tokens_first;
    s.import_heads = m.heads, s.import_layer = m.layer;
    s.import_rotates = m.rotate;
    s.import_divisor = double(m.divisor);
    return s;
}

// ---- from a session ----

// Files that a session's results share are opened once.
class TensorReader {
  public:
    explicit TensorReader(std::filesystem::path folder) : folder_(std::move(folder)) {}
    bool changed = false;  // a file is not the one that was saved

    Result<std::shared_ptr<const OpenedModel>> open_model(const Session& s) {
        std::shared_ptr<const OpenedModel>& model = models_[s.published];
        if (!model) {
            Result<std::shared_ptr<const OpenedModel>> made = visualizer::open_model(folder_ / s.published);
            if (!made)
                return Error{made.error().code, "model",
                             "the session's model cannot be opened: " + made.error().text};
            model = std::move(*made);
        }
        if (s.published_sha256.empty()) return model;
        const Result<std::string> found = fingerprint_of(*model);
        if (!found) return found.error();
        changed = changed || *found != s.published_sha256;
        return model;
    }

    Result<std::shared_ptr<const ImportedFile>> open(const std::shared_ptr<const SessionTensors>& tensors) {
        const SessionTensor& q = tensors->q;
        if (q.path.empty()) return embedded(tensors);
        std::shared_ptr<const ImportedFile>& file = opened_[q.path];
        if (!file) {
            Result<std::shared_ptr<const ImportedFile>> made =
                open_import(folder_ / std::filesystem::path(q.path));
            if (!made) return made.error();
            file = std::move(*made);
        }
        if (q.sha256.empty()) return file;
        if (file->sha256.empty()) {
            Result<std::string> found = sha256_of_file(file->path);
            if (!found) return found.error();
            file->sha256 = std::move(*found);
        }
        changed = changed || file->sha256 != q.sha256;
        return file;
    }

  private:
    Result<std::shared_ptr<const ImportedFile>> embedded(
        const std::shared_ptr<const SessionTensors>& tensors) {
        std::shared_ptr<const ImportedFile>& file = embedded_[tensors.get()];
        if (file) return file;
        auto made = std::make_shared<ImportedFile>();
        const std::pair<const char*, const SessionTensor*> all[] = {
            {"q", &tensors->q}, {"k", &tensors->k}, {"v", &tensors->v}};
        for (const auto& [name, from] : all) {
            if (from->values.empty()) continue;
            const size_t rank = from->shape.size();
            if (rank < 2 || rank > 4 || (rank == 4 && from->shape[0] != 1))
                return Error{FOVEA_INVALID_ARGUMENT, "tensors",
                             std::string(name) + " has " + std::to_string(rank) +
                                 " dimensions; it must be [heads, tokens, width]"};
            Result<Tensor> t = make_tensor(name, from->shape, from->values);
            if (!t) return t.error();
            made->set.tensors.push_back(std::move(*t));
        }
        const auto tokens_of = [](const SessionTensor& t) {
            return t.shape.size() < 2 ? 0 : t.shape[t.shape.size() - 2];
        };
        const uint64_t rows = tokens_of(tensors->q), keys = tokens_of(tensors->k),
                       count = tensors->tokens.size();
        if (count != 0 && (count != rows || count != keys))
            return Error{FOVEA_INVALID_ARGUMENT, "tensors",
                         "the session names " + std::to_string(count) + " tokens for " +
                             std::to_string(rows) + " queries and " + std::to_string(keys) +
                             " keys; all three must be equal"};
        made->tokens = tensors->tokens;
        return file = std::move(made);
    }

    std::filesystem::path folder_;
    std::map<std::string, std::shared_ptr<const ImportedFile>> opened_;
    std::map<std::string, std::shared_ptr<const OpenedModel>> models_;
    std::map<const SessionTensors*, std::shared_ptr<const ImportedFile>> embedded_;
};

Result<Settings> settings_of(const Session& session, TensorReader& reader) {
    Settings s;
    static_cast<Session&>(s) = session;
    const Session none;
    s.stage = none.stage, s.head = none.head, s.row = none.row, s.column = none.column,
    s.colormap = none.colormap;
    s.logarithmic = none.logarithmic, s.spread = none.spread, s.low = none.low, s.high = none.high;
    s.compared_head = none.compared_head, s.compare_how = none.compare_how, s.pinned = none.pinned;
    s.published.clear(), s.published_sha256.clear(), s.changed_heads.clear();
    s.table = none.table, s.view = none.view, s.zoom = none.zoom, s.training = none.training;
    s.kept.clear(), s.locked.clear();
    s.tensors = nullptr;
    if (!session.published.empty()) {
        Result<std::shared_ptr<const OpenedModel>> model = reader.open_model(session);
        if (!model) return model.error();
        s.model = std::move(*model);
        if (Result<void> r = read_changes(session.changed_heads, s); !r) return r.error();
    }
    if (shows_model(s))
        s.mapping.layer = std::min(session.head / heads_of_layer(s), uint32_t(shown_layers(s).size() - 1));
    if (!session.tensors) return s;
    Result<std::shared_ptr<const ImportedFile>> file = reader.open(session.tensors);
    if (!file) return file.error();
    ImportMapping m = guess_mapping(**file);
    if (!session.import_kind.empty()) {
        m.kind = ImportKind(index_of(kImportKinds, session.import_kind, size_t(m.kind)));
        m.fused = session.import_fused, m.order = session.import_order;
        m.layout = session.import_tokens_first ? TensorLayout::tokens_first : TensorLayout::heads_first;
        m.heads = session.import_heads, m.layer = session.import_layer;
        m.rotate = session.import_rotates;
        m.divisor = float(session.import_divisor);
    }
    const std::pair<const SessionTensor*, std::string*> names[] = {
        {&session.tensors->q, &m.q}, {&session.tensors->k, &m.k}, {&session.tensors->v, &m.v}};
    for (const auto& [tensor, name] : names)
        if (!tensor->path.empty()) *name = tensor->name;
    s.file = std::move(*file);
    s.mapping = m;
    return s;
}

void take_view(const Session& s, ViewState& view) {
    view.head = s.head;
    view.picked_row = int(s.row), view.picked_column = int(s.column);
    const std::optional<Colormap> map = colormap_from_name(s.colormap);
    view.colors.automatic_map = !map;
    if (map) view.colors.map = *map;
    view.colors.spread = s.spread == 0 && s.logarithmic ? Spread::logarithmic : Spread(s.spread);
    view.colors.range_low = limit_of(s.low), view.colors.range_high = limit_of(s.high);
    view.compared_head = s.compared_head;
    view.how = CompareHow(index_of(kCompareHow, s.compare_how, 0));
    view.pinned = s.pinned;
    view.zoom = view.pan_x = view.pan_y = 0;
    view.first_cell.reset();
    if (const std::vector<double> place = numbers_of(s.view); place.size() == 3 && place[2] > 1) {
        view.first_cell = ViewState::FirstCell{float(place[0]), float(place[1])};
        view.zoom = float(place[2]);
    }
    view.wanted_stage = stage_name(s.stage);
}

// The map of the key `zoom`, at its place: of the session's own tensors, or a synthetic one of that length.
void go_to_map(Workbench& bench, const Session& session, bool own) {
    if (session.zoom.empty()) {
        if (bench.window.centre == CentreTab::map) bench.window.centre = CentreTab::matrix;
        return;
    }
    const std::vector<double> numbers = numbers_of(session.zoom);
    const auto tokens = uint64_t(numbers[0]);
    const double last = double(tokens) - 1;
    MapPlace place;
    place.picked_row = uint64_t(std::min(numbers[1], last)),
    place.picked_key = uint64_t(std::min(numbers[2], last));
    place.row = double(place.picked_row), place.key = double(place.picked_key);
    place.cells_a_pixel = numbers[3] >= double(tokens) / kWholeMap ? 0 : numbers[3];
    place.largest = session.zoom.ends_with(",max");
    if (own) return bench.map.want_place(tokens, place);
    for (const LongContextPreset& preset : long_context_presets()) {
        if (preset.tokens != tokens) continue;
        bench.map.want_place(tokens, place);
        bench.map.want_preset(preset.name);
        bench.window.centre = CentreTab::map;
        return;
    }
    bench.problems.report("session", "there is no map of " + format_count(tokens) + " tokens to go to",
                          false);
}

// The run of the key `train`, in the panel that shows it; a text that is none becomes a line of the problems.
void go_to_training(Workbench& bench, std::string_view train) {
    if (train.empty()) return;
    const Result<TrainingPlace> place = read_training_place(train);
    if (!place) return bench.problems.report("train", place.error().text, false);
    bench.training.playground().go_to(*place);
    bench.window.centre = CentreTab::train;
}

// The head within its layer.
uint32_t head_of(const Session& session, const Settings& settings) {
    return shows_model(settings) ? session.head % heads_of_layer(settings) : session.head;
}

// A and the locked tabs; one that cannot be read is left out, and a line of the problems says why.
std::vector<PastResult> past_of(const Session& session, TensorReader& reader, Problems& problems) {
    std::vector<PastResult> all;
    const auto add = [&](const Session& one, bool locked, const std::string& what) {
        Result<Settings> settings = settings_of(one, reader);
        if (settings)
            all.push_back({*settings, head_of(one, *settings), locked, stage_name(one.stage)});
        else
            problems.report("session", what + " is left out: " + settings.error().text, false);
    };
    for (const Session& kept : session.kept) add(kept, false, "A");
    for (size_t i = 0; i < session.locked.size() && i < PastResults::kMaxLocked; ++i)
        add(session.locked[i], true, "the locked tab " + std::to_string(i + 1));
    return all;
}

}  // namespace

std::string session_text(const Workbench& bench, const std::filesystem::path& folder) {
    TensorWriter tensors(folder);
    const std::string stage = bench.past.own_stage();
    Session s = session_of(bench.document.settings(), bench.past.own_view(), stage, tensors);
    s.view = view_text(bench), s.zoom = zoom_text(bench);
    const std::optional<TrainingPlace> place = bench.training.place();
    if (place && place->step > 0 && bench.window.centre == CentreTab::train)
        s.training = write_training_place(*place);
    for (const PastResult& past : bench.past.all()) {
        ViewState view;
        view.head = past.head;
        Session one =
            session_of(past.settings, view, past.locked ? past.stage : stage_name(StageId::weights), tensors);
        (past.locked ? s.locked : s.kept).push_back(std::move(one));
    }
    return write_session(s);
}

Result<void> save_session(const Workbench& bench, const std::filesystem::path& path) {
    std::vector<PastResult> all = bench.past.all();
    all.push_back({bench.document.settings()});
    std::map<std::string, std::string> hashes;
    for (const PastResult& one : all) {
        if (one.settings.model)
            if (const Result<std::string> known = fingerprint_of(*one.settings.model); !known)
                return known.error();
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

std::string session_left_out(const Workbench& bench) {
    std::string text;
    const auto add = [&](bool left, const char* what) {
        if (left) text += (text.empty() ? "" : ", ") + std::string(what);
    };
    std::vector<PastResult> all = bench.past.all();
    all.push_back({bench.document.settings()});
    add(std::any_of(all.begin(), all.end(),
                    [](const PastResult& one) { return one.settings.learned != nullptr; }),
        "the weights trained here (it opens with the library's; Train saves its own state)");
    const std::optional<TrainingPlace> place = bench.training.place();
    add(place && place->step > 0 && bench.window.centre != CentreTab::train,
        "the training run (it is kept while Train is in front)");
    add(bench.window.centre == CentreTab::map && bench.map && zoom_text(bench).empty(), "the map");
    return text;
}

Result<void> read_session(Workbench& bench, std::string_view text, const std::filesystem::path& folder) {
    const Result<ReadSession> read = fovea::read_session(text, {"the window", kUnseen});
    if (!read) return read.error();
    TensorReader reader(folder);
    const Result<Settings> settings = settings_of(read->session, reader);
    if (!settings) return settings.error();
    if (settings->file && reads_tensors(*settings))
        if (const Result<Projected> projected = project(*settings); !projected) return projected.error();
    std::vector<PastResult> past = past_of(read->session, reader, bench.problems);
    bench.past.restore({});  // results of an earlier session
    bench.document.change(*settings);
    take_view(read->session, bench.view);
    bench.view.head = head_of(read->session, *settings);
    bench.view.came_from.clear();
    if (bench.window.centre == CentreTab::train) bench.window.centre = CentreTab::matrix;
    bench.window.show_panels();
    go_to_map(bench, read->session, settings->file != nullptr);
    go_to_training(bench, read->session.training);
    for (const SessionNote& note : read->notes) bench.problems.report("session", note.text, false);
    if (reader.changed)
        bench.problems.report("file",
                              "a file of the session has changed since the session was saved; the session "
                              "shows its present values",
                              false);
    bench.past.restore(std::move(past));
    return {};
}

Result<void> set_session_key(Workbench& bench, std::string_view key, std::string_view value,
                             uint64_t gesture) {
    const Settings before = bench.document.settings();
    TensorWriter tensors(".");
    Session now = session_of(before, bench.past.own_view(), bench.past.own_stage(), tensors);
    now.tensors = nullptr;
    now.published.clear(), now.published_sha256.clear(), now.changed_heads.clear();
    std::string address = write_address(now);
    const std::string name = "&" + std::string(key) + "=";
    if (const size_t at = address.find(name); at != std::string::npos)
        address.erase(at, std::min(address.find('&', at + 1), address.size()) - at);
    address += name;
    for (const char c : value)
        address += c == '&' ? "%26" : c == '+' ? "%2B" : c == '%' ? "%25" : std::string(1, c);
    const Result<ReadSession> read = read_address(address, {"the window", kUnseen});
    if (!read) return read.error();
    TensorReader reader(".");
    Result<Settings> next = settings_of(read->session, reader);
    if (!next) return next.error();
    next->file = before.file, next->model = before.model, next->changed = before.changed;
    if (next->task == before.task) next->learned = before.learned;
    if (before.file || before.model) next->mapping = before.mapping;
    bench.document.change(*next, gesture);
    take_view(read->session, bench.view);
    if (key == "train") go_to_training(bench, read->session.training);
    bench.view.head = head_of(read->session, *next);
    for (const SessionNote& note : read->notes) bench.problems.report("session", note.text, false);
    return {};
}

Result<void> open_session(Workbench& bench, const std::filesystem::path& path) {
    const Result<std::string> text = read_text_file(path);
    if (!text) return text.error();
    Result<void> read = read_session(bench, *text, std::filesystem::absolute(path).parent_path());
    if (read) return read;
    Error error = read.error();
    error.text = printable_name(path.filename().string(), 60) + ": " + error.text;
    return error;
}

bool open_any(Workbench& bench, const std::string& path) {
    if (!path.ends_with(".fovea")) return bench.open_file(path);
    const Result<void> opened = open_session(bench, path);
    if (opened) return true;
    bench.problems.report(opened.error().field, opened.error().text, true);
    bench.window.show(BottomTab::problems);
    return false;
}

}  // namespace fovea::visualizer
