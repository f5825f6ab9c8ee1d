// The C boundary of inspection, <fovea/fovea_inspect.h>, over <fovea/inspect.hpp> and <fovea/model.hpp>.
#include "problem/abi_struct.hpp"

#include <fovea/fovea_inspect.h>
#include <fovea/inspect.hpp>
#include <fovea/inspect/directions.hpp>
#include <fovea/inspect/json.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model.hpp>

#include <algorithm>
#include <string>

#include "inspect/made_text.hpp"

namespace fovea {
FOVEA_FIELDS(FoveaCell, struct_size, batch, head, reserved0, query, key);
FOVEA_FIELDS(FoveaHeadStats, struct_size, reserved0, entropy, relative_entropy, mean_distance,
             first_token_mass, previous_token, largest_weight, rows);
FOVEA_FIELDS(FoveaColormap, struct_size, scale, map, low, high);
}  // namespace fovea

using namespace fovea;

namespace {

Error no_such_form(FoveaTextForm form, const char* what) {
    return refused("form",
                   "form is " + std::to_string(enum_number(form)) + ", which " + what + " does not have");
}

// Text of a token where no tokenizer is read.
std::string no_text(uint64_t) { return {}; }

Result<std::string> derivation_as(const Derivation& derivation, FoveaTextForm form) {
    switch (enum_number(form)) {
        case FOVEA_TEXT_PLAIN:
            return derivation_text(derivation);
        case FOVEA_TEXT_JSON: {
            JsonObject json;
            add_derivation(json, derivation);
            return json.done();
        }
        case FOVEA_TEXT_CSV:
            return derivation_csv(derivation);
        case FOVEA_TEXT_LATEX:
            return derivation_latex(derivation);
        case FOVEA_TEXT_PYTHON:
            return derivation_python(derivation);
        default:
            return no_such_form(form, "a derivation");
    }
}

std::string printed_stages(const Lesson& lesson, const LessonRun& run) {
    std::string text = lesson.name + ": " + lesson.title + "\n";
    for (const LessonStage& stage : run.stages)
        text += "\n" + stage.name + " " + format_shape(stage.tensor.shape) + "\n  " + stage.formula + "\n" +
                stage.printed + "\n";
    return text;
}

// A tensor of a session; the same of `data` null where it is left out.
Result<SessionTensor> session_tensor(const char* name, const FoveaSessionTensor& from) {
    if (!from.data) return refused(name, std::string(name) + ".data is null");
    constexpr uint64_t kMaxElements = uint64_t{1} << 28;  // 1 GiB of float32, and a third more as text
    if (from.heads == 0 || from.tokens == 0 || from.width == 0 || from.heads > kMaxElements ||
        from.tokens > kMaxElements / from.heads || from.width > kMaxElements / (from.heads * from.tokens))
        return refused(name, std::string(name) + " is " + std::to_string(from.heads) + " x " +
                                 std::to_string(from.tokens) + " x " + std::to_string(from.width) +
                                 "; each must be at least 1, and all together at most 2^28 elements");
    SessionTensor tensor;
    tensor.shape = {from.heads, from.tokens, from.width};
    tensor.values.assign(from.data, from.data + from.heads * from.tokens * from.width);
    return tensor;
}

}  // namespace

const char* foveaTextData(FoveaText text) { return text ? text->bytes.c_str() : ""; }
size_t foveaTextSize(FoveaText text) { return text ? text->bytes.size() : 0; }
void foveaDestroyText(FoveaText text) { delete text; }

FoveaResult foveaDeriveCell(const FoveaAttentionDesc* given, const FoveaHostBuffer* bindings,
                            const FoveaCell* given_cell, FoveaTextForm form, FoveaText* out,
                            FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!bindings) return null_refused(diag, "bindings");
    FoveaAttentionDesc desc{};
    FoveaCell cell{};
    if (FoveaResult r = read_struct(given, desc, "desc", diag); r != FOVEA_OK) return r;
    if (FoveaResult r = read_struct(given_cell, cell, "cell", diag); r != FOVEA_OK) return r;
    return make_text(out, diag, [&]() -> Result<std::string> {
        const Result<Derivation> found =
            derive_cell(desc, bindings, Cell{cell.batch, cell.head, cell.query, cell.key});
        if (!found) return found.error();
        return derivation_as(*found, form);
    });
}

FoveaResult foveaScoreWriters(const char* path, const uint32_t* tokens, uint64_t token_count, uint32_t layer,
                              const FoveaCell* given, uint64_t most, FoveaTextForm form, FoveaText* out,
                              FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!path) return null_refused(diag, "path");
    if (!tokens) return null_refused(diag, "tokens");
    FoveaCell cell{};
    if (FoveaResult r = read_struct(given, cell, "cell", diag); r != FOVEA_OK) return r;
    return make_text(out, diag, [&]() -> Result<std::string> {
        if (cell.batch != 0)
            return refused("cell.batch", "cell.batch is " + std::to_string(cell.batch) +
                                             "; a model runs one text, so it must be 0");
        const int number = enum_number(form);
        if (number < FOVEA_TEXT_PLAIN || number > FOVEA_TEXT_CSV)
            return no_such_form(form, "a list of writers");
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        if (!model) return model.error();
        const Result<ScoreWriters> of = score_writers(*model, std::span(tokens, size_t(token_count)),
                                                      {layer, cell.head, cell.query, cell.key}, {}, true);
        if (!of) return of.error();
        const auto count = size_t(most);
        return number == FOVEA_TEXT_PLAIN  ? writers_text(*of, count, no_text)
               : number == FOVEA_TEXT_JSON ? writers_json(*of, count, no_text)
                                           : writers_csv(*of, count, no_text);
    });
}

FoveaResult foveaLogitWriters(const char* path, const uint32_t* tokens, uint64_t token_count,
                              uint64_t position, const uint32_t* token, uint64_t most, FoveaTextForm form,
                              FoveaText* out, FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!path) return null_refused(diag, "path");
    if (!tokens) return null_refused(diag, "tokens");
    return make_text(out, diag, [&]() -> Result<std::string> {
        const int number = enum_number(form);
        if (number != FOVEA_TEXT_PLAIN && number != FOVEA_TEXT_JSON) return no_such_form(form, "a logit");
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        if (!model) return model.error();
        const Result<LogitWriters> of = logit_writers(*model, std::span(tokens, size_t(token_count)),
                                                      position, token ? std::optional(*token) : std::nullopt);
        if (!of) return of.error();
        return number == FOVEA_TEXT_PLAIN ? logit_text(*of, size_t(most), no_text, "")
                                          : logit_json(*of, size_t(most), no_text);
    });
}

FoveaResult foveaHeadDirections(const char* path, uint32_t layer, uint32_t head, uint64_t count,
                                uint64_t most, FoveaTextForm form, FoveaText* out, FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!path) return null_refused(diag, "path");
    return make_text(out, diag, [&]() -> Result<std::string> {
        const int number = enum_number(form);
        if (number != FOVEA_TEXT_PLAIN && number != FOVEA_TEXT_JSON)
            return no_such_form(form, "a list of directions");
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        if (!model) return model.error();
        const Result<HeadDirections> of = head_directions(*model, layer, head, size_t(count), size_t(most));
        if (!of) return of.error();
        return number == FOVEA_TEXT_PLAIN ? directions_text(*of, no_text) : directions_json(*of);
    });
}

FoveaResult foveaHeadStats(const float* weights, uint64_t rows, uint64_t keys, int64_t offset,
                           FoveaHeadStats* out, FoveaDiag* diag) {
    if (!weights && rows > 0 && keys > 0) return null_refused(diag, "weights");
    return without_exceptions(diag, [&] {
        HeadStatsCollector collector;
        for (uint64_t row = 0; row < rows; ++row)
            collector.add_row(int64_t(row) + offset, std::span(weights + row * keys, size_t(keys)));
        const HeadStats stats = collector.result();
        FoveaHeadStats made = foveaHeadStatsDesc();
        made.entropy = stats.entropy;
        made.relative_entropy = stats.relative_entropy;
        made.mean_distance = stats.mean_distance;
        made.first_token_mass = stats.first_token_mass;
        made.previous_token = stats.previous_token;
        made.largest_weight = stats.largest_weight;
        made.rows = stats.rows;
        return write_struct(made, out, "out", diag);
    });
}

FoveaResult foveaMapValues(const FoveaMapTileDesc* given, uint64_t len_q, const uint64_t* mass, float* values,
                           FoveaDiag* diag) {
    if (!mass) return null_refused(diag, "mass");
    if (!values) return null_refused(diag, "values");
    FoveaMapTileDesc tile{};
    if (FoveaResult r = read_struct(given, tile, "tile", diag); r != FOVEA_OK) return r;
    if (tile.width == 0 || tile.height == 0 || tile.row_count < tile.height)
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "tile",
            "tile.width is %u, tile.height %u and tile.row_count %llu; they must be given, with a row for "
            "each pixel",
            tile.width, tile.height, static_cast<unsigned long long>(tile.row_count));
    return without_exceptions(diag, [&] {
        const std::vector<float> made =
            map_values(tile, len_q, std::span(mass, size_t{tile.width} * tile.height));
        std::copy(made.begin(), made.end(), values);
        return FOVEA_OK;
    });
}

FoveaResult foveaColorValues(const float* values, uint64_t count, const FoveaColormap* given, uint8_t* rgb,
                             FoveaDiag* diag) {
    if (!values) return null_refused(diag, "values");
    if (!rgb) return null_refused(diag, "rgb");
    FoveaColormap colormap{};
    if (FoveaResult r = read_struct(given, colormap, "colormap", diag); r != FOVEA_OK) return r;
    const char* const name = colormap.name ? colormap.name : "viridis";
    const std::optional<Colormap> map = colormap_from_name(name);
    if (!map)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "colormap",
                    "colormap is '%.40s'; it must be viridis, magma, cividis, grey or blue-orange", name);
    const int scale = enum_number(colormap.scale);
    if (scale < FOVEA_COLOR_SCALE_LINEAR || scale > FOVEA_COLOR_SCALE_SYMMETRIC)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "scale", "scale is %d; it must be 0 to 2", scale);
    ColorRange range{colormap.low, colormap.high, static_cast<ColorScale>(scale)};
    if (scale == FOVEA_COLOR_SCALE_LOGARITHMIC && !(colormap.low > 0 && colormap.high >= colormap.low))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "low",
                    "low is %g and high %g; a logarithmic scale needs 0 < low <= high", colormap.low,
                    colormap.high);
    if (colormap.low == 0 && colormap.high == 0) range = fitted_range(std::span(values, size_t(count)));
    const ColorTable table = color_table(*map);
    for (uint64_t i = 0; i < count; ++i) {
        const Rgb color = color_of(values[i], table, range);
        rgb[3 * i] = color.r, rgb[3 * i + 1] = color.g, rgb[3 * i + 2] = color.b;
    }
    return FOVEA_OK;
}

FoveaResult foveaListLessons(FoveaText* out, FoveaDiag* diag) {
    return make_text(out, diag, []() -> Result<std::string> { return lessons_json(list_lessons()); });
}

FoveaResult foveaRunLesson(const char* name, const uint64_t* seed, FoveaTextForm form, FoveaText* out,
                           FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!name) return null_refused(diag, "name");
    return make_text(out, diag, [&]() -> Result<std::string> {
        const int number = enum_number(form);
        if (number != FOVEA_TEXT_PLAIN && number != FOVEA_TEXT_JSON) return no_such_form(form, "a lesson");
        Result<Lesson> lesson = find_lesson(name);
        if (!lesson) return lesson.error();
        if (seed) lesson = with_seed(std::move(*lesson), *seed);
        const Result<LessonRun> run = run_lesson(*lesson);
        if (!run) return run.error();
        return number == FOVEA_TEXT_JSON ? lesson_json(*lesson, *run) : printed_stages(*lesson, *run);
    });
}

FoveaResult foveaWriteSession(const char* address, const FoveaSessionTensor* q, const FoveaSessionTensor* k,
                              const FoveaSessionTensor* v, FoveaText* out, FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!address) return null_refused(diag, "address");
    if (!q != !k || (v && !q))
        return fail(diag, FOVEA_INVALID_ARGUMENT, q ? "k" : "q",
                    "q and k must be given together, with or without v");
    return make_text(out, diag, [&]() -> Result<std::string> {
        Result<ReadSession> read = read_address(address);
        if (!read) return read.error();
        if (!read->notes.empty()) return refused("address", read->notes[0].text);
        if (q) {
            auto tensors = std::make_shared<SessionTensors>();
            const std::tuple<const char*, const FoveaSessionTensor*, SessionTensor*> parts[] = {
                {"q", q, &tensors->q}, {"k", k, &tensors->k}, {"v", v, &tensors->v}};
            for (const auto& [name, from, to] : parts) {
                if (!from) continue;
                Result<SessionTensor> made = session_tensor(name, *from);
                if (!made) return made.error();
                *to = std::move(*made);
            }
            read->session.tensors = std::move(tensors);
        }
        return write_session(read->session);
    });
}

FoveaResult foveaReadSession(const char* text, FoveaText* out, FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!text) return null_refused(diag, "text");
    return make_text(out, diag, [&]() -> Result<std::string> {
        const Result<ReadSession> read = read_session(text);
        if (!read) return read.error();
        return JsonObject()
            .raw("session", write_session(read->session))
            .raw("notes", notes_json(read->notes))
            .done();
    });
}

FoveaResult foveaSessionStage(const char* session, const char* stage, uint32_t head, FoveaText* out,
                              FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!session) return null_refused(diag, "session");
    if (!stage) return null_refused(diag, "stage");
    return make_text(out, diag, [&]() -> Result<std::string> {
        Result<ReadSession> read = read_session(session);
        if (!read) return read.error();
        Result<SessionStageText> made = session_stage_text(std::move(*read), stage, head);
        if (!made) return made.error();
        return std::move(made->text);
    });
}
