#include "web_engine.h"

#include "deep_zoom.hpp"
#include "engine_state.hpp"
#include "page.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/inspect.hpp>
#include <fovea/inspect/head_role.hpp>
#include <fovea/inspect/json.hpp>
#include <fovea/model.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

namespace {

using namespace fovea;
using namespace fovea::web;

// All that lives between calls. One page, one engine, one calling thread.
struct State {
    ThreadPool* pool = nullptr;  // the threads of the runner
    std::unique_ptr<Runner> runner;
    std::optional<Page> page;
    std::vector<PageStage> stages;  // the last requested stages
    int32_t head = kNoHead;         // head of the weights and pictures
    std::vector<float> weights;     // weights of that head, as they multiply the values
    SessionTensors given;           // tensors of the session that was read last
    // The model of the task that was shown last: the page fetches one and gives it.
    std::shared_ptr<const LearnedModel> learned;
    std::optional<DeepZoom> map;
    TensorSet file;
    std::vector<float> array;
    std::string text, error;

    static constexpr int32_t kNoHead = -2;

    const char* answer(std::string json) {
        text = std::move(json);
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

State& state() {
    static State instance;
    return instance;
}

// ---- JSON ----

double address_of(const std::vector<float>& values) {
    return double(reinterpret_cast<uintptr_t>(values.data()));
}

std::string stage_json(const PageStage& stage) {
    return JsonObject()
        .text("id", stage_name(stage.about.id))
        .text("formula", stage.about.formula)
        .raw("shape", shape_json(stage.values.shape))
        .number("address", address_of(stage.values.values))
        .number("count", double(stage.values.values.size()))
        .done();
}

// ---- the page ----

// A painted mask is edited up to so many tokens a side.
constexpr uint64_t kMaxEditedSide = 128;
// The largest pairs of writers that are listed.
constexpr size_t kWhyEntries = 24;
// Entropy, mean distance, weight on the first and on the previous token, after the thumbnails.
constexpr size_t kHeadFacts = 4;

// Returns the additional data of a session with a task; null without one.
Result<std::string> learned_json(Page& page) {
    if (!page.learned()) return std::string("null");
    const auto said = page.said();
    if (!said) return said.error();
    const std::vector<std::string>& words = page.trace().model().vocabulary;
    const AttentionPart& part = page.trace().model().blocks[page.layer()].attention;
    const auto bias = [](const Linear& layer) { return numbers_json(std::span(layer.bias.values)); };
    const Session& session = page.session();
    const std::vector<std::string>& labels = page.learned()->head_labels;
    const size_t head = std::min(session.head, page.heads() - 1);
    const Result<F32Tensor> weights = page.final_weights(uint32_t(head));
    if (!weights) return weights.error();
    std::vector<float> stripe;
    if (const auto found = longest_stripe(weights->values, page.trace().keys()))
        stripe = {float(found->row), float(found->column), float(found->length), float(found->step)};
    const HeadRole role = head_role(head < labels.size() ? labels[head] : "", session.task);
    std::vector<std::string> tokens;
    for (const Token& token : page.tokens()) tokens.push_back(token.text);
    std::vector<float> gaps;
    const std::vector<bool> starts = word_starts(session.text, tokens);
    for (size_t n = 0; n < starts.size(); ++n)
        if (starts[n]) gaps.push_back(float(n));
    return JsonObject()
        .text("role", role.sentence)
        .text("stripeText", role.stripe)
        .raw("stripe", numbers_json(std::span<const float>(stripe)))
        .raw("starts", numbers_json(std::span<const float>(gaps)))
        .raw("queryBias", bias(part.query))
        .raw("keyBias", bias(part.key))
        .raw("valueBias", bias(part.value))
        .boolean("rotates", part.rope.has_value())
        .number("layers", page.trace().layers())
        .raw("labels", array_json(labels, json_string))
        .raw("vocabulary", array_json(words, json_string))
        .raw("said", array_json(*said,
                                [&](const auto& row) {
                                    return array_json(row, [&](const NextToken& next) {
                                        return json_string(words[next.id]);
                                    });
                                }))
        .raw("sure", array_json(*said,
                                [](const auto& row) {
                                    return array_json(row, [](const NextToken& next) {
                                        return json_number(next.probability);
                                    });
                                }))
        .done();
}

const char* page_json(State& s) {
    Page& page = *s.page;
    const Result<std::string> learned = learned_json(page);
    if (s.failed(learned)) return nullptr;
    const uint64_t rows = page.trace().rows(), keys = page.trace().keys();
    const Linear& output = page.trace().model().blocks[page.layer()].attention.output;
    std::string visible;
    if (std::max(rows, keys) <= kMaxEditedSide) {
        const std::vector<uint8_t> cells = visible_cells(page.session(), rows, keys);
        std::vector<std::byte> bits((cells.size() + 7) / 8);
        for (size_t i = 0; i < cells.size(); ++i)
            if (cells[i]) bits[i / 8] |= std::byte(1 << (i % 8));
        visible = to_base64(bits, true);
    }
    return s.answer(
        JsonObject()
            .raw("notes", notes_json(page.notes()))
            .raw("tokens", array_json(page.tokens(), [](const Token& t) { return json_string(t.text); }))
            .number("rows", double(rows))
            .number("keys", double(keys))
            .number("heads", page.heads())
            .raw("outputBias", numbers_json(std::span<const float>(output.bias.values)))
            .text("visible", visible)
            .text("arithmetic", page.trace().arithmetic())
            .raw("learned", *learned)
            .done());
}

const char* open_page(State& s, std::string_view address, std::shared_ptr<const SessionTensors> tensors) {
    Result<Page> page =
        Page::open(address, std::move(tensors), s.learned, *s.runner, s.page ? &*s.page : nullptr);
    if (s.failed(page)) return nullptr;
    s.page.emplace(std::move(*page));
    s.stages.clear();
    s.head = State::kNoHead;
    return page_json(s);
}

bool hold_stages(State& s, int32_t head) {
    if (!s.page) return s.refuse("nothing has been computed yet; compute first"), false;
    if (s.head == head) return true;
    s.head = State::kNoHead;
    Result<std::vector<PageStage>> stages =
        head < 0 ? s.page->shared_stages() : s.page->head_stages(uint32_t(head));
    if (s.failed(stages)) return false;
    s.stages = std::move(*stages);
    if (head >= 0) {
        Result<F32Tensor> weights = s.page->final_weights(uint32_t(head));
        if (s.failed(weights)) return false;
        s.weights = std::move(weights->values);
    }
    s.head = head;
    return true;
}

std::optional<Derivation> derive(State& s, int32_t head, int32_t query, int32_t key) {
    if (!hold_stages(s, head)) return {};
    Result<Derivation> found = s.page->derive({0, uint32_t(head), uint64_t(query), uint64_t(key)});
    if (s.failed(found)) return {};
    return std::move(*found);
}

// The row's final weights, as the engine computed them, and how many of them are larger than this one.
void add_row(JsonObject& json, const State& s, uint64_t query, uint64_t key) {
    const uint64_t keys = s.weights.size() / s.page->trace().rows();
    const std::span<const float> row = std::span(s.weights).subspan(query * keys, keys);
    json.raw("rowWeights", numbers_json(row));
    json.number("rank", double(std::count_if(row.begin(), row.end(), [&](float w) { return w > row[key]; })));
}

// ---- lessons, the map ----

std::string piece_json(const MapPiece& piece) {
    const double parts[] = {piece.target.first_row, piece.target.first_key, piece.target.rows,
                            piece.target.keys,      piece.source_x,         piece.source_y,
                            piece.source_width,     piece.source_height};
    return JsonObject()
        .number("level", piece.id.level)
        .number("y", piece.id.y)
        .number("x", piece.id.x)
        .boolean("sampled", piece.id.sampled)
        .boolean("exact", piece.exact)
        .raw("at", numbers_json(std::span<const double>(parts)))
        .done();
}

// `with_pieces`: what to draw may have changed.
std::string map_json(DeepZoom& map, bool with_pieces) {
    const MapProgress progress = map.tiles().progress();
    JsonObject json;
    json.number("level", progress.level)
        .number("needed", double(progress.needed))
        .number("exact", double(progress.exact))
        .number("bytes", double(progress.cached_bytes));
    if (with_pieces) json.raw("pieces", array_json(map.pieces(), piece_json));
    return json.done();
}

}  // namespace

namespace fovea::web {

Runner& open_runner() { return *state().runner; }
DeepZoom* open_map() { return state().map ? &*state().map : nullptr; }
const char* answer_text(std::string text) { return state().answer(std::move(text)); }
int32_t refuse_call(std::string reason) { return state().refuse(std::move(reason)); }
std::string map_state_json(bool with_pieces) { return map_json(*state().map, with_pieces); }

}  // namespace fovea::web

int32_t webStart(int32_t threads) {
    State& s = state();
    auto pool = std::make_unique<ThreadPool>(static_cast<uint32_t>(std::clamp(threads, 1, 16)));
    s.pool = pool.get();
    s.runner = make_cpu_runner(std::move(pool));
    return 1;
}

const char* webInfo(void) {
    State& s = state();
    const FoveaDeviceProperties& properties = s.runner->properties();
    return s.answer(JsonObject()
                        .number("abi", foveaAbiVersion())
                        .text("target", foveaCpuTargetName(properties.cpu_target))
                        .number("threads", properties.cpu_threads)
                        .done());
}

const char* webError(void) { return state().error.c_str(); }

void* webAllocate(uint32_t size_bytes) { return std::malloc(size_bytes); }
void webRelease(void* memory) { std::free(memory); }

const char* webReadSession(const char* text, int32_t is_file) {
    State& s = state();
    Result<ReadSession> read =
        is_file ? read_session(text, page_reader()) : read_address(text, page_reader());
    if (s.failed(read)) return nullptr;
    Session& session = read->session;
    for (const auto& [part, list] : {std::pair{"kept", &session.kept}, {"locked", &session.locked}})
        if (!list->empty()) read->notes.push_back({part, std::string("this page does not show ") + part});
    s.given = session.tensors ? *session.tensors : SessionTensors{};
    for (const auto& [name, tensor] : {std::pair{"q", &s.given.q}, {"k", &s.given.k}, {"v", &s.given.v}})
        if (!tensor->path.empty()) {
            s.refuse(std::string(name) + " is in the file " + printable_name(tensor->path) +
                     ", which a page cannot open by itself: open that file here");
            return nullptr;
        }
    session.tensors = nullptr;
    session.kept.clear(), session.locked.clear();
    const auto tensor = [](const SessionTensor& t) {
        return JsonObject()
            .raw("shape", shape_json(t.shape))
            .number("address", address_of(t.values))
            .number("count", double(t.values.size()))
            .done();
    };
    return s.answer(
        JsonObject()
            .raw("session", write_session(session))
            .raw("notes", notes_json(read->notes))
            .raw("tensors", "[" + tensor(s.given.q) + "," + tensor(s.given.k) + "," + tensor(s.given.v) + "]")
            .raw("tokens", array_json(s.given.tokens, json_string))
            .done());
}

const char* webWriteSession(const char* address) {
    State& s = state();
    Result<ReadSession> read = read_address(address);
    if (s.failed(read)) return nullptr;
    if (s.page) read->session.tensors = s.page->session().tensors;
    return s.answer(write_session(read->session));
}

const char* webWriteAddress(const char* address) {
    State& s = state();
    const Result<ReadSession> read = read_address(address);
    if (s.failed(read)) return nullptr;
    return s.answer(write_address(read->session));
}

const char* webSessionStage(const char* session, const char* stage, uint32_t head) {
    State& s = state();
    TraceOptions options;
    options.engine = s.runner.get();
    Result<ReadSession> read = read_session(session);
    if (s.failed(read)) return nullptr;
    const Result<SessionStageText> made =
        session_stage_text(std::move(*read), stage, head, options, s.learned);
    if (s.failed(made)) return nullptr;
    return s.answer(JsonObject().text("text", made->text).raw("notes", notes_json(made->notes)).done());
}

int32_t webLearned(const void* bytes, uint32_t size_bytes) {
    State& s = state();
    Result<TensorSet> file = parse_safetensors({static_cast<const std::byte*>(bytes), size_bytes});
    if (s.failed(file)) return 0;
    Result<LearnedModel> model = read_learned_model(*file);
    if (s.failed(model)) return 0;
    s.learned = std::make_shared<const LearnedModel>(std::move(*model));
    return 1;
}

const char* webCompute(const char* address) { return open_page(state(), address, nullptr); }

const char* webComputeTensors(const char* address, uint32_t heads, uint32_t kv_heads, uint32_t rows,
                              uint32_t keys, uint32_t dim, uint32_t dim_v, const float* q, const float* k,
                              const float* v, const char* tokens) {
    auto tensors = std::make_shared<SessionTensors>();
    const auto take = [](SessionTensor& to, Shape shape, const float* from) {
        to.shape = std::move(shape);
        to.values.assign(from, from + to.shape[0] * to.shape[1] * to.shape[2]);
    };
    take(tensors->q, {heads, rows, dim}, q);
    take(tensors->k, {kv_heads, keys, dim}, k);
    if (v) take(tensors->v, {kv_heads, keys, dim_v}, v);
    if (*tokens) {
        const Result<JsonValue> list = parse_json(tokens, 2);
        if (state().failed(list)) return nullptr;
        for (const JsonValue& token : list->items()) tensors->tokens.emplace_back(token.text());
    }
    return open_page(state(), address, std::move(tensors));
}

const char* webStages(int32_t head) {
    State& s = state();
    if (!hold_stages(s, head)) return nullptr;
    return s.answer(array_json(s.stages, stage_json));
}

float* webThumbnails(int32_t size) {
    State& s = state();
    if (!s.page) return s.refuse("nothing has been computed yet; compute first"), nullptr;
    const uint64_t rows = s.page->trace().rows(), keys = s.page->trace().keys(),
                   side = uint64_t(std::max(1, size));
    const uint32_t heads = s.page->heads();
    s.array.assign(heads * (side * side + kHeadFacts), 0.0f);
    for (uint32_t h = 0; h < heads; ++h) {
        const Result<F32Tensor> weights = s.page->final_weights(h);
        if (s.failed(weights)) return nullptr;
        float* out = &s.array[h * side * side];
        // The mean over each pixel's cells; a pixel smaller than a cell shows that cell.
        for (uint64_t y = 0; y < side; ++y) {
            const uint64_t top = y * rows / side, bottom = std::max(top + 1, (y + 1) * rows / side);
            for (uint64_t x = 0; x < side; ++x) {
                const uint64_t left = x * keys / side, right = std::max(left + 1, (x + 1) * keys / side);
                float sum = 0;
                for (uint64_t i = top; i < bottom; ++i)
                    for (uint64_t j = left; j < right; ++j) sum += weights->values[i * keys + j];
                out[y * side + x] = sum / float((bottom - top) * (right - left));
            }
        }
        const HeadStats stats = head_stats(weights->values, keys);
        const double properties[kHeadFacts] = {stats.entropy, stats.mean_distance, stats.first_token_mass,
                                               stats.previous_token};
        std::copy(std::begin(properties), std::end(properties),
                  &s.array[heads * side * side + h * kHeadFacts]);
    }
    return s.array.data();
}

const char* webDerive(int32_t head, int32_t query, int32_t key) {
    State& s = state();
    const std::optional<Derivation> steps = derive(s, head, query, key);
    if (!steps) return nullptr;
    JsonObject json;
    add_derivation(json, *steps);
    add_row(json, s, uint64_t(query), uint64_t(key));
    return s.answer(json.done());
}

const char* webDeriveText(int32_t head, int32_t query, int32_t key, int32_t format) {
    State& s = state();
    const std::optional<Derivation> steps = derive(s, head, query, key);
    if (!steps) return nullptr;
    const std::vector<Token>& tokens = s.page->tokens();
    DerivationStyle style;
    if (size_t(query) < tokens.size()) style.query_token = tokens[size_t(query)].text;
    if (size_t(key) < tokens.size()) style.key_token = tokens[size_t(key)].text;
    return s.answer(format == 1   ? derivation_csv(*steps)
                    : format == 2 ? derivation_latex(*steps, style)
                    : format == 3 ? derivation_python(*steps)
                                  : derivation_text(*steps, style));
}

const char* webWhy(int32_t head, int32_t query, int32_t key) {
    State& s = state();
    if (!s.page) return s.refuse("nothing has been computed yet; compute first"), nullptr;
    const Result<ScoreWriters> of = s.page->why({0, uint32_t(head), uint64_t(query), uint64_t(key)});
    if (s.failed(of)) return nullptr;
    s.array.assign(of->matrix.begin(), of->matrix.end());
    return s.answer(JsonObject()
                        .raw("split", writers_json(*of, kWhyEntries, [](uint64_t) { return std::string(); }))
                        .raw("matrix", JsonObject()
                                           .number("address", address_of(s.array))
                                           .number("count", double(s.array.size()))
                                           .done())
                        .done());
}

const char* webOpenFile(void* bytes, uint32_t size_bytes, int32_t format) {
    State& s = state();
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
    return s.answer(array_json(s.file.tensors, [](const Tensor& tensor) {
        return JsonObject()
            .text("name", tensor.name)
            .text("type", dtype_name(tensor.type))
            .raw("shape", shape_json(tensor.shape))
            .done();
    }));
}

float* webFileTensor(uint32_t index) {
    State& s = state();
    if (index >= s.file.tensors.size()) return s.refuse("the file does not have that tensor"), nullptr;
    Result<std::vector<float>> values = to_f32(s.file.tensors[index]);
    if (s.failed(values)) return nullptr;
    s.array = std::move(*values);
    return s.array.data();
}

const char* webLessons(void) { return state().answer(lessons_json(list_lessons())); }

const char* webLesson(const char* name, double seed) {
    State& s = state();
    Result<Lesson> lesson = find_lesson(name);
    if (s.failed(lesson)) return nullptr;
    if (seed >= 0) lesson = with_seed(std::move(*lesson), uint64_t(seed));
    const Result<LessonRun> run = run_lesson(*lesson);
    if (s.failed(run)) return nullptr;
    return s.answer(lesson_json(*lesson, *run));
}

int32_t webMapBegin(uint32_t tokens) {
    State& s = state();
    s.map.reset();
    Result<DeepZoom> map = DeepZoom::of_tokens(tokens);
    if (s.failed(map)) return 0;
    s.map.emplace(std::move(*map));
    return 1;
}

const char* webMapSession(const char* address, uint32_t head, uint32_t heads, uint32_t rows, uint32_t keys,
                          uint32_t dim, const float* q, const float* k) {
    State& s = state();
    s.map.reset();
    Result<DeepZoom> map =
        DeepZoom::of_session(address, {head, heads, rows, keys, dim, q, k}, s.learned, *s.runner);
    if (s.failed(map)) return nullptr;
    s.map.emplace(std::move(*map));
    return s.answer(
        JsonObject()
            .number("rows", double(s.map->extent().rows))
            .number("keys", double(s.map->extent().keys))
            .raw("notes", notes_json(s.map->notes()))
            .raw("tokens", array_json(s.map->tokens(), [](const Token& t) { return json_string(t.text); }))
            .done());
}

double webMapPrepare(double max_flops) {
    State& s = state();
    if (!s.map) return s.refuse("no map is open; call webMapBegin first"), -1;
    Result<double> progress = s.map->prepare(*s.runner, max_flops);
    if (s.failed(progress)) return -1;
    return *progress;
}

const char* webMapView(double row, double key, double rows, double keys, uint32_t width, uint32_t height) {
    State& s = state();
    if (!s.map) return s.refuse("no map is open; call webMapBegin first"), nullptr;
    s.map->set_view({0, 0, {row, key, rows, keys}, width, height});
    return s.answer(map_json(*s.map, true));
}

const char* webMapStep(double max_flops) {
    State& s = state();
    if (!s.map) return s.refuse("no map is open; call webMapBegin first"), nullptr;
    const Result<bool> finished = s.map->step(*s.runner, max_flops);
    if (s.failed(finished)) return nullptr;
    return s.answer(map_json(*s.map, *finished));
}

float* webMapPixels(uint32_t level, uint32_t y, uint32_t x, int32_t sampled) {
    State& s = state();
    const MapTileId id{0, 0, level, y, x, sampled != 0};
    const MapPixels* pixels = s.map ? s.map->tiles().find(id) : nullptr;
    if (!pixels) return s.refuse("the map does not have that tile"), nullptr;
    s.array = map_values(s.map->tiles(), id, *pixels, MapReducer::mass);
    s.array.insert(s.array.end(), pixels->max.begin(), pixels->max.end());
    return s.array.data();
}

double webMapCell(double query, double key) {
    State& s = state();
    if (!s.map) return s.refuse("no map is open; call webMapBegin first"), -1;
    Result<double> weight = s.map->weight(*s.runner, uint64_t(query), uint64_t(key));
    return s.failed(weight) ? -1 : *weight;
}

const char* webMapDerive(double query, double key) {
    State& s = state();
    if (!s.map) return s.refuse("no map is open; call webMapBegin first"), nullptr;
    const Result<Derivation> steps = s.map->derive(uint64_t(query), uint64_t(key));
    if (s.failed(steps)) return nullptr;
    JsonObject json;
    add_derivation(json, *steps);
    return s.answer(json.done());
}

double webBench(uint32_t heads, uint32_t tokens, uint32_t dim, int32_t causal, int32_t threads,
                int32_t repeats) {
    State& s = state();
    const struct Fewer {  // lends all workers again at the end
        ThreadPool& pool;
        ~Fewer() { pool.parallel(); }
    } fewer{*s.pool};
    const FoveaParallel parallel = fewer.pool.parallel(uint32_t(std::max(1, threads)));
    const std::unique_ptr<Runner> runner = make_cpu_runner(&parallel, parallel.worker_count);
    Attention call;
    call.batch(1).heads(heads).lengths(tokens, tokens).dims(dim);
    if (causal) call.causal();
    const Result<Plan> plan = plan_attention(runner->properties(), call);
    if (s.failed(plan)) return -1;
    const size_t count = size_t{heads} * tokens * dim;
    std::vector<float> qkv(3 * count);
    for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = float((i * 2654435761u >> 8) & 0xFFFF) / 32768.0f - 1.0f;
    std::vector<float> o(count);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t n = FOVEA_BIND_Q; n <= FOVEA_BIND_V; ++n)
        bindings[n] = {qkv.data() + n * count, count * sizeof(float)};
    bindings[FOVEA_BIND_O] = {o.data(), count * sizeof(float)};
    // A browser's clock may go in steps of a tenth of a millisecond or more: short calls are timed many at
    // once.
    constexpr double kMinSeconds = 0.005;
    double best = 1e30;
    for (int32_t i = 0, calls = 1; i < std::max(1, repeats);) {
        const auto start = std::chrono::steady_clock::now();
        for (int32_t n = 0; n < calls; ++n) {
            const Result<void> ran = runner->run(*plan, bindings);
            if (s.failed(ran)) return -1;
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (seconds < kMinSeconds && calls < (1 << 22)) {
            calls *= 2;
            continue;
        }
        best = std::min(best, seconds / calls);
        ++i;
    }
    return best;
}
