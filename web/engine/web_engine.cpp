#include "web_engine.h"

#include "deep_zoom.hpp"
#include "json_text.hpp"
#include "page_model.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

namespace {

using namespace fovea;
using namespace fovea::web;

// All that lives between calls. One page, one engine, one calling thread.
struct Session {
    std::unique_ptr<Engine> engine;
    std::optional<PageModel> model;
    std::vector<PageStage> head_stages;
    int32_t head = -1;  // whose stages are held; -1: nobody's
    std::optional<DeepZoom> map;
    TensorSet file;
    std::vector<float> array;
    std::string text, error;

    const char* answer(const JsonText& json) {
        text = json.str();
        return text.c_str();
    }
    int32_t refuse(std::string reason) {
        error = std::move(reason);
        return 0;
    }
    template <class T>
    bool failed(const Result<T>& result) {
        if (result) return false;
        error = result.error().text;
        return true;
    }
};

Session& session() {
    static Session instance;
    return instance;
}

void write_stage(JsonText& json, const PageStage& stage) {
    json.begin_object().key("id").text(stage.id).key("shape").shape(stage.shape);
    json.key("address").whole(static_cast<int64_t>(reinterpret_cast<uintptr_t>(stage.values.data())));
    json.key("count").whole(static_cast<int64_t>(stage.values.size())).end_object();
}

bool hold_head(Session& s, int32_t head) {
    if (!s.model) return s.refuse("nothing has been computed yet"), false;
    if (head < 0 || uint32_t(head) >= s.model->state().heads) {
        s.refuse("head " + std::to_string(head) + " of " + std::to_string(s.model->state().heads) +
                 " does not exist");
        return false;
    }
    if (s.head == head) return true;
    Result<std::vector<PageStage>> stages = s.model->head_stages(*s.engine, uint32_t(head));
    if (s.failed(stages)) return false;
    s.head_stages = std::move(*stages);
    s.head = head;
    return true;
}

int32_t keep_model(Session& s, Result<PageModel> model) {
    if (s.failed(model)) return 0;
    s.model.emplace(std::move(*model));
    s.head = -1;
    return 1;
}

std::vector<float> column_of(const std::vector<DerivationTerm>& terms, float DerivationTerm::*member) {
    std::vector<float> out;
    for (const DerivationTerm& term : terms) out.push_back(term.*member);
    return out;
}

void write_steps(JsonText& json, const Derivation& d) {
    json.key("hiddenBy").text(d.hidden_by);
    json.key("q")
        .numbers(column_of(d.terms, &DerivationTerm::q))
        .key("k")
        .numbers(column_of(d.terms, &DerivationTerm::k));
    json.key("products").numbers(column_of(d.terms, &DerivationTerm::product));
    json.key("running").numbers(column_of(d.terms, &DerivationTerm::running_sum));
    json.key("dot").number(d.dot).key("score").number(d.score).key("capped").number(d.capped);
    json.key("alibi").number(d.alibi).key("masked").number(d.masked).key("visibleKeys").whole(d.visible_keys);
    json.key("rowMax").number(d.row_max).key("exponential").number(d.exponential);
    json.key("denominator").number(d.denominator).key("lse").number(d.lse).key("weight").number(d.weight);
    json.key("hasDropout").boolean(d.has_dropout).key("kept").boolean(d.kept);
    json.key("finalWeight").number(d.has_dropout ? d.dropped_weight : d.weight);
    std::vector<float> values, contributions, context;
    for (const DerivationValue& v : d.values) {
        values.push_back(v.value);
        contributions.push_back(v.contribution);
        context.push_back(v.context);
    }
    json.key("v").numbers(values).key("contributions").numbers(contributions).key("context").numbers(context);
}

// The row's final weights, as the engine computed them, and how many of them are larger than this one.
void write_row(JsonText& json, const Session& s, uint64_t query, uint64_t key) {
    const auto last = std::find_if(s.head_stages.rbegin(), s.head_stages.rend(), [](const PageStage& stage) {
        return stage.id == "dropped" || stage.id == "weights";
    });
    const std::span<const float> row =
        std::span(last->values).subspan(query * s.model->keys(), s.model->keys());
    json.key("rowWeights").numbers(row);
    json.key("rank").whole(std::count_if(row.begin(), row.end(), [&](float w) { return w > row[key]; }));
}

std::optional<Derivation> derive(Session& s, int32_t head, int32_t query, int32_t key) {
    if (!hold_head(s, head)) return {};
    Result<Derivation> found = s.model->derive(uint32_t(head), uint64_t(query), uint64_t(key));
    if (s.failed(found)) return {};
    return std::move(*found);
}

void write_table(JsonText& json, const PrintedTable& table, const LessonRun& run, uint32_t& exact) {
    const LessonStage* stage = run.find(table.tensor);
    std::vector<std::string> ours;
    if (stage)
        for (const float value : stage->tensor.values) ours.push_back(element_text(value, table.notation));
    const bool equal = ours == table.elements;
    exact += equal ? table.times : 0;
    json.begin_object()
        .key("label")
        .text(table.label)
        .key("tensor")
        .text(table.tensor)
        .key("note")
        .text(table.note);
    json.key("times")
        .whole(table.times)
        .key("exact")
        .boolean(equal)
        .key("formula")
        .text(stage ? stage->formula : "");
    json.key("shape").shape(stage ? stage->tensor.shape : Shape{});
    json.key("theirs").texts(table.elements).key("ours").texts(ours).end_object();
}

void write_piece(JsonText& json, const MapPiece& piece) {
    const double parts[] = {piece.target.first_row, piece.target.first_key, piece.target.rows,
                            piece.target.keys,      piece.source_x,         piece.source_y,
                            piece.source_width,     piece.source_height};
    json.begin_object()
        .key("level")
        .whole(piece.id.level)
        .key("y")
        .whole(piece.id.y)
        .key("x")
        .whole(piece.id.x);
    json.key("sampled").boolean(piece.id.sampled).key("exact").boolean(piece.exact).key("at").begin_array();
    for (const double part : parts) json.number(part);
    json.end_array().end_object();
}

// `with_pieces`: what to draw may have changed.
JsonText map_text(DeepZoom& map, bool with_pieces) {
    JsonText json;
    const MapProgress progress = map.tiles().progress();
    json.begin_object().key("level").whole(progress.level).key("needed").whole(progress.needed);
    json.key("exact").whole(progress.exact).key("bytes").whole(progress.cached_bytes);
    if (with_pieces) {
        json.key("pieces").begin_array();
        for (const MapPiece& piece : map.pieces()) write_piece(json, piece);
        json.end_array();
    }
    json.end_object();
    return json;
}

}  // namespace

int32_t webStart(int32_t threads) {
    Session& s = session();
    s.engine = std::make_unique<Engine>(static_cast<uint32_t>(std::clamp(threads, 1, 16)));
    return 1;
}

const char* webInfo(void) {
    Session& s = session();
    Result<FoveaDeviceFacts> facts = s.engine->facts(s.engine->worker_count());
    JsonText json;
    json.begin_object().key("abi").whole(foveaAbiVersion());
    json.key("target").text(facts ? foveaCpuTargetName(facts->cpu_target) : "unknown");
    json.key("threads").whole(s.engine->worker_count());
    json.key("kernel").text(s.model ? s.model->kernel() : "").end_object();
    return s.answer(json);
}

const char* webError(void) { return session().error.c_str(); }

void* webAllocate(uint32_t size_bytes) { return std::malloc(size_bytes); }
void webRelease(void* memory) { std::free(memory); }

int32_t webCompute(const char* state) {
    Session& s = session();
    PageState parsed;
    if (std::string reason = parse_page_state(state, parsed); !reason.empty())
        return s.refuse(std::move(reason));
    if (parsed.tokens.empty()) return s.refuse("there are no tokens");
    return keep_model(s, PageModel::from_tokens(*s.engine, parsed, s.model ? &*s.model : nullptr));
}

int32_t webComputeTensors(const char* state, const float* q, const float* k, const float* v) {
    Session& s = session();
    PageState parsed;
    if (std::string reason = parse_page_state(state, parsed); !reason.empty())
        return s.refuse(std::move(reason));
    if (parsed.rows == 0 || !q || !k) return s.refuse("q and k are needed");
    return keep_model(s, PageModel::from_tensors(*s.engine, parsed, q, k, v));
}

const char* webStages(int32_t head) {
    Session& s = session();
    if (!s.model) return s.refuse("nothing has been computed yet"), nullptr;
    if (head >= 0 && !hold_head(s, head)) return nullptr;
    JsonText json;
    json.begin_array();
    for (const PageStage& stage : head < 0 ? s.model->shared_stages() : s.head_stages)
        write_stage(json, stage);
    json.end_array();
    return s.answer(json);
}

float* webThumbnails(int32_t size) {
    Session& s = session();
    if (!s.model) return s.refuse("nothing has been computed yet"), nullptr;
    const uint64_t rows = s.model->rows(), keys = s.model->keys(), side = uint64_t(std::max(1, size));
    const uint32_t heads = s.model->state().heads;
    s.array.assign(heads * side * side, 0.0f);
    for (uint32_t h = 0; h < heads; ++h) {
        Result<std::vector<float>> weights = s.model->head_weights(*s.engine, h);
        if (s.failed(weights)) return nullptr;
        float* out = &s.array[h * side * side];
        // The mean over each pixel's cells; a pixel smaller than a cell shows that cell.
        for (uint64_t y = 0; y < side; ++y) {
            const uint64_t top = y * rows / side, bottom = std::max(top + 1, (y + 1) * rows / side);
            for (uint64_t x = 0; x < side; ++x) {
                const uint64_t left = x * keys / side, right = std::max(left + 1, (x + 1) * keys / side);
                float sum = 0;
                for (uint64_t i = top; i < bottom; ++i)
                    for (uint64_t j = left; j < right; ++j) sum += (*weights)[i * keys + j];
                out[y * side + x] = sum / float((bottom - top) * (right - left));
            }
        }
    }
    return s.array.data();
}

const char* webDerive(int32_t head, int32_t query, int32_t key) {
    Session& s = session();
    const std::optional<Derivation> steps = derive(s, head, query, key);
    if (!steps) return nullptr;
    JsonText json;
    json.begin_object();
    write_steps(json, *steps);
    write_row(json, s, uint64_t(query), uint64_t(key));
    json.end_object();
    return s.answer(json);
}

const char* webDeriveText(int32_t head, int32_t query, int32_t key, int32_t format) {
    Session& s = session();
    const std::optional<Derivation> steps = derive(s, head, query, key);
    if (!steps) return nullptr;
    const std::vector<std::string>& tokens = s.model->state().tokens;
    DerivationStyle style;
    if (size_t(query) < tokens.size()) style.query_token = tokens[size_t(query)];
    if (size_t(key) < tokens.size()) style.key_token = tokens[size_t(key)];
    s.text = format == 1   ? derivation_csv(*steps)
             : format == 2 ? derivation_latex(*steps, style)
             : format == 3 ? derivation_python(*steps)
                           : derivation_text(*steps, style);
    return s.text.c_str();
}

const char* webHeadStats(void) {
    Session& s = session();
    if (!s.model) return s.refuse("nothing has been computed yet"), nullptr;
    JsonText json;
    json.begin_array();
    for (uint32_t h = 0; h < s.model->state().heads; ++h) {
        const Result<std::vector<float>> weights = s.model->head_weights(*s.engine, h);
        if (s.failed(weights)) return nullptr;
        const HeadStats stats = head_stats(*weights, s.model->keys());
        json.begin_object().key("entropy").number(stats.entropy).key("distance").number(stats.mean_distance);
        json.key("first")
            .number(stats.first_token_mass)
            .key("previous")
            .number(stats.previous_token)
            .end_object();
    }
    json.end_array();
    return s.answer(json);
}

const char* webOpenFile(void* bytes, uint32_t size_bytes, int32_t format) {
    Session& s = session();
    const std::shared_ptr<const void> owner(bytes,
                                            [](const void* memory) { std::free(const_cast<void*>(memory)); });
    const std::span<const std::byte> content(static_cast<const std::byte*>(bytes), size_bytes);
    s.file = {};
    if (format == 1) {
        Result<Tensor> tensor = parse_npy(content, owner);
        if (s.failed(tensor)) return nullptr;
        s.file.tensors.push_back(std::move(*tensor));
    } else {
        Result<TensorSet> set = parse_safetensors(content, owner);
        if (s.failed(set)) return nullptr;
        s.file = std::move(*set);
    }
    JsonText json;
    json.begin_array();
    for (const Tensor& tensor : s.file.tensors) {
        json.begin_object().key("name").text(printable_name(tensor.name));
        json.key("type").text(element_type_name(tensor.type)).key("shape").shape(tensor.shape).end_object();
    }
    json.end_array();
    return s.answer(json);
}

float* webFileTensor(uint32_t index) {
    Session& s = session();
    if (index >= s.file.tensors.size()) return s.refuse("the file has no such tensor"), nullptr;
    Result<std::vector<float>> values = to_f32(s.file.tensors[index]);
    if (s.failed(values)) return nullptr;
    s.array = std::move(*values);
    return s.array.data();
}

const char* webLessons(void) {
    JsonText json;
    json.begin_array();
    for (const Lesson& lesson : list_lessons()) {
        uint32_t tables = 0;
        for (const PrintedTable& table : lesson.tables) tables += table.times;
        json.begin_object().key("name").text(lesson.name).key("title").text(lesson.title);
        json.key("tutorial").text(lesson.tutorial).key("level").whole(lesson.level);
        json.key("tables").whole(tables).end_object();
    }
    json.end_array();
    return session().answer(json);
}

const char* webLesson(const char* name, double seed) {
    Session& s = session();
    Result<Lesson> lesson = find_lesson(name);
    if (s.failed(lesson)) return nullptr;
    const auto seeded = std::find_if(lesson->draws.begin(), lesson->draws.end(),
                                     [](const Draw& draw) { return draw.kind == Draw::Kind::manual_seed; });
    if (seeded != lesson->draws.end() && seed >= 0) seeded->value = uint64_t(seed);
    StrictExecutor strict;
    const Result<LessonRun> run = run_lesson(*lesson, strict);
    if (s.failed(run)) return nullptr;
    uint32_t exact = 0, tables = 0;
    JsonText json;
    json.begin_object().key("name").text(lesson->name).key("title").text(lesson->title);
    json.key("tutorial").text(lesson->tutorial).key("about").text(lesson->about);
    json.key("seed").number(seeded != lesson->draws.end() ? double(seeded->value) : -1);
    json.key("notes").texts(lesson->notes).key("list").begin_array();
    for (const PrintedTable& table : lesson->tables) {
        tables += table.times;
        write_table(json, table, *run, exact);
    }
    json.end_array().key("tables").whole(tables).key("exact").whole(exact).end_object();
    return s.answer(json);
}

int32_t webMapBegin(uint32_t tokens) {
    Session& s = session();
    s.map.reset();
    Result<DeepZoom> map = DeepZoom::of_tokens(tokens);
    if (s.failed(map)) return 0;
    s.map.emplace(std::move(*map));
    return 1;
}

double webMapPrepare(double max_flops) {
    Session& s = session();
    if (!s.map) return s.refuse("webMapBegin comes first"), -1;
    Result<double> progress = s.map->prepare(*s.engine, max_flops);
    if (s.failed(progress)) return -1;
    return *progress;
}

const char* webMapView(double row, double key, double rows, double keys, uint32_t width, uint32_t height) {
    Session& s = session();
    if (!s.map) return s.refuse("webMapBegin comes first"), nullptr;
    s.map->set_view({0, 0, {row, key, rows, keys}, width, height});
    return s.answer(map_text(*s.map, true));
}

const char* webMapStep(double max_flops) {
    Session& s = session();
    if (!s.map) return s.refuse("webMapBegin comes first"), nullptr;
    const Result<bool> finished = s.map->step(*s.engine, max_flops);
    if (s.failed(finished)) return nullptr;
    return s.answer(map_text(*s.map, *finished));
}

float* webMapPixels(uint32_t level, uint32_t y, uint32_t x, int32_t sampled) {
    Session& s = session();
    const MapTileId id{0, 0, level, y, x, sampled != 0};
    const MapPixels* pixels = s.map ? s.map->tiles().find(id) : nullptr;
    if (!pixels) return s.refuse("there is no such tile"), nullptr;
    s.array = map_values(s.map->tiles(), id, *pixels, MapReducer::mass);
    s.array.insert(s.array.end(), pixels->max.begin(), pixels->max.end());
    return s.array.data();
}

double webMapCell(double query, double key) {
    return session().map ? session().map->weight(uint64_t(query), uint64_t(key)) : 0;
}

double webBench(uint32_t heads, uint32_t tokens, uint32_t dim, int32_t causal, int32_t threads,
                int32_t repeats) {
    Session& s = session();
    const uint32_t workers =
        std::clamp<uint32_t>(uint32_t(std::max(1, threads)), 1, s.engine->worker_count());
    Attention call;
    call.batch(1).heads(heads).lengths(tokens, tokens).dims(dim);
    if (causal) call.causal();
    Result<FoveaDeviceFacts> facts = s.engine->facts(workers);
    if (s.failed(facts)) return -1;
    Result<Plan> plan = plan_attention(*facts, call);
    if (s.failed(plan)) return -1;
    const size_t count = size_t{heads} * tokens * dim;
    std::vector<float> qkv(3 * count);
    for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = float((i * 2654435761u >> 8) & 0xFFFF) / 32768.0f - 1.0f;
    std::vector<float> o(count);
    Bindings b;
    b.read(FOVEA_BIND_Q, qkv.data(), count * sizeof(float));
    b.read(FOVEA_BIND_K, qkv.data() + count, count * sizeof(float));
    b.read(FOVEA_BIND_V, qkv.data() + 2 * count, count * sizeof(float));
    b.write(FOVEA_BIND_O, o.data(), count * sizeof(float));
    // A browser's clock may go in steps of a tenth of a millisecond or more: short calls are timed many at
    // once.
    constexpr double kLeastSeconds = 0.005;
    double best = 1e30;
    for (int32_t i = 0, calls = 1; i < std::max(1, repeats);) {
        const auto start = std::chrono::steady_clock::now();
        for (int32_t n = 0; n < calls; ++n) {
            Result<void> ran = s.engine->run(*plan, b, workers);
            if (s.failed(ran)) return -1;
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (seconds < kLeastSeconds && calls < (1 << 22)) {
            calls *= 2;
            continue;
        }
        best = std::min(best, seconds / calls);
        ++i;
    }
    return best;
}
