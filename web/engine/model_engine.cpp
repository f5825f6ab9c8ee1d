#include "model_engine.h"

#include "browser_host.hpp"
#include "model_json.hpp"

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model/session.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>
#include <set>

namespace {

using namespace fovea;
using namespace fovea::web;

// The reach of WebAssembly's 32-bit addresses, less room for a run's small allocations.
constexpr uint64_t kMaxMemory = uint64_t{3} << 30;
constexpr uint64_t kMaxTokens = 1024;
constexpr uint32_t kThumbnailSide = 48;
constexpr int64_t kMaxMapWindow = 4096;               // as session.json has it
constexpr uint64_t kMaxWrites = uint64_t{256} << 20;  // for LayerWrites of all layers, in bytes
constexpr size_t kNextTokens = 10, kLensTokens = 4, kSumTerms = 12, kWhyEntries = 24;

struct HeldStage {
    StageId id;
    uint32_t head = 0;
    F32Tensor values{Shape{0}};
};

// All that lives between calls. One page, one model, one calling thread.
struct State {
    std::unique_ptr<Runner> runner;
    std::vector<std::pair<std::string, uint64_t>> files;
    std::optional<TextModel> model;
    std::vector<SplitToken> tokens;  // tokens of the run
    std::unique_ptr<PromptRun> run;  // the last one, for the next one and for what a reader looks at
    std::vector<float> pictures;     // thumbnails of its heads, [layers, heads, side, side]
    std::optional<Trace> layer;      // the one that was looked into last
    uint32_t layer_number = 0;
    std::list<HeldStage> stages;  // stages of that layer; their tensors do not move
    std::optional<PreparedAttention> prepared;
    std::vector<float> weights, masked, valued, numbers;
    std::string text, error;
};

State& state() {
    static State instance;
    return instance;
}

const char* answer(std::string json) {
    state().text = std::move(json);
    return state().text.c_str();
}
const char* refuse(std::string reason) {
    state().error = std::move(reason);
    return nullptr;
}

void add_memory(JsonObject& json, const char* name, const std::vector<float>& values) {
    json.raw(name, JsonObject()
                       .number("address", double(reinterpret_cast<uintptr_t>(values.data())))
                       .number("count", double(values.size()))
                       .done());
}

std::string megabytes(uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

Result<void> check_count(uint64_t tokens, uint64_t most, const char* who) {
    if (tokens <= most) return {};
    return Error{FOVEA_LIMIT_EXCEEDED, "tokens",
                 "the text has " + std::to_string(tokens) + " tokens; the " + who + " " +
                     std::to_string(most) + " at most"};
}
Result<void> check_memory(uint64_t bytes) {
    if (bytes <= kMaxMemory) return {};
    return Error{FOVEA_OUT_OF_HOST_MEMORY, "tokens",
                 "this run needs about " + megabytes(bytes) + " of memory; the page has " +
                     megabytes(kMaxMemory) +
                     " at most; give fewer tokens, or open the model in the visualizer"};
}

Result<std::pair<uint64_t, uint32_t>> head_of(const JsonValue& layer, const JsonValue& head,
                                              const ModelConfig& f) {
    const double n = layer.number(), h = head.number();
    if (!(n >= 0 && n < double(f.layers)) || !(h >= 0 && h < double(f.heads)))
        return Error{FOVEA_INVALID_ARGUMENT, "head", "the model does not have that head"};
    return std::pair{uint64_t(n), uint32_t(h)};
}

// A text and what `ask` changes of the model on it.
Result<Prompt> prompt_of(const State& s, const JsonValue& ask, const std::vector<SplitToken>& tokens) {
    const ModelConfig& f = s.model->weights.config();
    Prompt prompt;
    prompt.side = kThumbnailSide;
    for (const SplitToken& token : tokens) prompt.ids.push_back(token.id);
    for (const JsonValue& one : ask["scales"].items()) {
        if (one.items().size() != 3)
            return Error{FOVEA_INVALID_ARGUMENT, "scales",
                         "each of scales must be a layer, a head and a number"};
        const auto at = head_of(one.items()[0], one.items()[1], f);
        if (!at) return at.error();
        prompt.changes.scale_head(at->first, at->second, one.items()[2].number_f32());
    }
    std::set<uint32_t> hidden;
    for (const JsonValue& token : ask["hidden"].items()) hidden.insert(uint32_t(token.number()));
    prompt.changes.hidden_tokens.assign(hidden.begin(), hidden.end());
    for (const JsonValue& one : ask["patches"].items()) {
        if (one.items().size() != 3)
            return Error{FOVEA_INVALID_ARGUMENT, "patches",
                         "each of patches must be a layer, a head and a text"};
        const auto at = head_of(one.items()[0], one.items()[1], f);
        if (!at) return at.error();
        Result<std::vector<uint32_t>> ids = tokens_of(*s.model, one.items()[2].text());
        if (!ids) return ids.error();
        if (ids->size() != prompt.ids.size())
            return Error{FOVEA_INVALID_ARGUMENT, "patches",
                         "the text that the head is taken from has " + std::to_string(ids->size()) +
                             " tokens; it must have as many as this one, " +
                             std::to_string(prompt.ids.size())};
        prompt.patches.push_back({at->first, at->second, std::move(*ids)});
    }
    return prompt;
}

bool progress(double share) {
    tell_progress(share);
    return true;
}

// Runs what the prompt has other than the run before, whose results it takes over: the first layer that was
// computed.
Result<uint64_t> compute(State& s, Prompt prompt) {
    auto next = std::make_unique<PromptRun>(std::move(prompt), s.run.get());
    s.run.reset();  // a run that is given up leaves nothing half done
    s.layer.reset(), s.prepared.reset(), s.stages.clear();
    PromptOptions options;
    options.trace.engine = s.runner.get();
    options.progress = progress;
    options.check_memory = check_memory;
    const CheckpointModel& model = s.model->weights;
    options.keep_writes =
        model.config().layers * layer_writes_bytes(model, next->prompt().ids.size()) <= kMaxWrites;
    const uint64_t first = next->finished_layers();
    if (Result<void> r = next->run(model, options); !r) return r.error();
    s.run = std::move(next);
    return first;
}

std::string shown_token(const TextModel& model, const SplitToken& token) {
    return JsonObject()
        .number("id", token.id)
        .text("text", token_text(model, token.id))
        .number("begin", double(token.begin))
        .number("end", double(token.end))
        .done();
}

std::string tokens_json(const std::vector<SplitToken>& tokens) {
    return array_json(tokens, [](const SplitToken& t) { return shown_token(*state().model, t); });
}

const char* run_json(uint64_t first) {
    State& s = state();
    s.pictures.clear();
    std::vector<std::string> layers;
    for (size_t n = 0; n < s.run->finished_layers(); ++n) {
        const PromptLayer& layer = *s.run->layer(n);
        layers.push_back(array_json(layer.heads, head_json));
        // Masked cells have the weight 0 here.
        for (const float pixel : layer.pictures) s.pictures.push_back(pixel == -INFINITY ? 0.0f : pixel);
    }
    JsonObject json;
    json.raw("tokens", tokens_json(s.tokens))
        .number("side", double(s.run->layer(0)->rows))
        .number("firstLayer", double(first))
        .raw("heads", array_json(layers, [](const std::string& layer) { return layer; }));
    add_memory(json, "pictures", s.pictures);
    return answer(json.done());
}

// Returns layer `n` of the last run as a separate trace.
Result<Trace*> layer_of(uint32_t n) {
    State& s = state();
    if (!s.run) return Error{FOVEA_INVALID_ARGUMENT, "layer", "no model has been run; run it first"};
    if (s.layer && s.layer_number == n) return &*s.layer;
    if (n >= s.run->finished_layers())
        return Error{FOVEA_INVALID_ARGUMENT, "layer", "the model does not have that layer"};
    TraceOptions options;
    options.engine = s.runner.get();
    Result<Trace> trace = trace_layer(s.model->weights, n, *s.run->entering(n), s.run->changes(), options);
    if (!trace) return trace.error();
    s.layer = std::move(*trace);
    s.layer_number = n;
    s.prepared.reset(), s.stages.clear();
    return &*s.layer;
}

// A stage of the layer that is looked into, kept until another layer is.
StageNumbers stage_numbers(Trace& trace, StageId id, uint32_t head) {
    const std::vector<TraceStage> all = trace.stages();
    const auto info =
        std::find_if(all.begin(), all.end(), [&](const TraceStage& one) { return one.id == id; });
    if (info == all.end() || head >= info->heads) return {};
    std::list<HeldStage>& held = state().stages;
    auto at = std::find_if(held.begin(), held.end(),
                           [&](const HeldStage& one) { return one.id == id && one.head == head; });
    if (at == held.end()) {
        Result<F32Tensor> made = trace.stage(id, head);
        if (!made) return {};
        held.push_back({id, head, std::move(*made)});
        at = std::prev(held.end());
    }
    return {at->values.values, info->heads, info->rows, info->columns};
}

// With `unchanged` the same token's probability without the reader's changes.
std::string next_json(const NextToken& next, const NextToken* unchanged = nullptr) {
    JsonObject json;
    json.text("text", token_text(*state().model, next.id)).number("probability", next.probability);
    if (unchanged) json.number("unchanged", unchanged->probability);
    return json.done();
}

std::string list_json(std::span<const NextToken> list, size_t most) {
    return array_json(list.first(std::min(most, list.size())),
                      [](const NextToken& one) { return next_json(one); });
}

}  // namespace

const char* webModelError(void) { return state().error.c_str(); }

void webModelStart(uint32_t threads) {
    state().runner = make_cpu_runner(std::make_unique<ThreadPool>(threads));
}

void webModelFile(const char* name, double size_bytes) {
    state().files.emplace_back(name, uint64_t(size_bytes));
}

const char* webModelOpen(double held) {
    State& s = state();
    const auto given = std::move(s.files);
    s.files.clear();
    s.model.reset(), s.layer.reset(), s.prepared.reset(), s.stages.clear();
    s.run.reset();
    uint64_t all = 0;
    for (const auto& [name, size] : given) all += size;
    const bool holds = double(all) <= held;
    std::vector<NamedFile> files;
    for (uint32_t i = 0; i < given.size(); ++i) {
        const auto& [name, size] = given[i];
        if (!holds) {
            files.push_back({name, host_file(i, size)});
            continue;
        }
        Result<std::shared_ptr<const StoredFile>> file = held_host_file(i, size);
        if (!file) return refuse(printable_name(name, 200) + ": " + file.error().text);
        files.push_back({name, std::move(*file)});
    }
    Result<TextModel> model = open_text_model(files);
    if (!model) return refuse(model.error().text);
    if (const uint64_t layer = model->weights.block_bytes() + (holds ? all : 0); layer > kMaxMemory)
        return refuse("one layer takes " + megabytes(layer) + " of memory; the page has " +
                      megabytes(kMaxMemory) + " at most");
    s.model = std::move(*model);
    return answer(config_json(*s.model, holds));
}

const char* webModelSplit(const char* text) {
    if (!state().model) return refuse("no model is open; open one first");
    const Result<std::vector<SplitToken>> tokens = split_text(*state().model, text);
    if (!tokens) return refuse(tokens.error().text);
    return answer(JsonObject().raw("tokens", tokens_json(*tokens)).done());
}

const char* webModelRun(const char* text) {
    State& s = state();
    if (!s.model) return refuse("no model is open; open one first");
    const Result<JsonValue> ask = parse_json(text);
    if (!ask) return refuse(ask.error().text);
    Result<std::vector<SplitToken>> tokens = split_text(*s.model, (*ask)["text"].text());
    if (!tokens) return refuse(tokens.error().text);
    const ModelConfig& f = s.model->weights.config();
    const uint64_t most = f.context ? std::min(f.context, kMaxTokens) : kMaxTokens;
    if (Result<void> r = check_count(tokens->size(), most, most < kMaxTokens ? "model reads" : "page shows");
        !r)
        return refuse(r.error().text);
    Result<Prompt> prompt = prompt_of(s, *ask, *tokens);
    if (!prompt) return refuse(prompt.error().text);
    s.tokens = std::move(*tokens);
    // The unchanged model's predictions are shown next to the changed ones.
    if (prompt->changed() && (!s.run || s.run->prompt().ids != prompt->ids || !s.run->unchanged())) {
        Prompt plain;
        plain.ids = prompt->ids, plain.side = prompt->side;
        if (const Result<uint64_t> ran = compute(s, std::move(plain)); !ran) return refuse(ran.error().text);
    }
    const Result<uint64_t> first = compute(s, std::move(*prompt));
    if (!first) return refuse(first.error().text);
    return run_json(*first);
}

const char* webModelNext(uint32_t token) {
    State& s = state();
    if (!s.run || token >= s.run->prompt().ids.size()) return refuse("the text does not have that token");
    if (!s.model->weights.has_unembedding()) return answer("{\"next\":null,\"said\":null,\"lens\":null}");
    const Result<PromptNext> next = s.run->next(token, kNextTokens, [&s](F32Tensor rows) {
        return s.model->weights.logits(std::move(rows), s.runner.get());
    });
    if (!next) return refuse(next.error().text);
    std::vector<std::string> said;
    const std::vector<NextToken>& last = next->after.back();
    for (size_t i = 0; i < last.size(); ++i)
        said.push_back(next_json(last[i], next->unchanged.empty() ? nullptr : &next->unchanged[i]));
    return answer(
        JsonObject()
            .raw("next", array_json(said, [](const std::string& one) { return one; }))
            .raw("said", next->before.empty() ? "null" : list_json(next->before, kNextTokens))
            .raw("lens",
                 array_json(next->after, [](const auto& after) { return list_json(after, kLensTokens); }))
            .done());
}

const char* webModelHead(uint32_t layer, uint32_t head) {
    State& s = state();
    const Result<Trace*> trace = layer_of(layer);
    if (!trace) return refuse(trace.error().text);
    for (const auto& [id, out] : {std::pair{StageId::weights, &s.weights}, {StageId::masked, &s.masked}}) {
        Result<F32Tensor> stage = (*trace)->stage(id, head);
        if (!stage) return refuse(stage.error().text);
        *out = std::move(stage->values);
    }
    const ModelConfig& f = s.model->weights.config();
    const Result<F32Tensor> values = (*trace)->stage(StageId::values, uint32_t(head * f.kv_heads / f.heads));
    if (!values) return refuse(values.error().text);
    // Kobayashi et al., 2020: a weight on a short value moves little.
    const uint64_t tokens = s.tokens.size();
    std::vector<double> lengths;
    for (uint64_t j = 0; j < tokens; ++j) {
        double sum = 0;
        for (const float x : values->row(j)) sum += double(x) * double(x);
        lengths.push_back(std::sqrt(sum));
    }
    s.valued.resize(s.weights.size());
    for (size_t i = 0; i < s.weights.size(); ++i)
        s.valued[i] = float(double(s.weights[i]) * lengths[i % tokens]);
    std::vector<double> entropy;
    for (uint64_t i = 0; i < tokens; ++i) {
        HeadStatsCollector row;
        row.add_row(int64_t(i), std::span(s.weights).subspan(i * tokens, tokens));
        entropy.push_back(row.result().entropy);
    }
    JsonObject json;
    json.raw("entropy", numbers_json(std::span<const double>(entropy)));
    add_memory(json, "weights", s.weights);
    add_memory(json, "masked", s.masked);
    add_memory(json, "valued", s.valued);
    return answer(json.done());
}

const char* webModelDerive(uint32_t layer, uint32_t head, uint32_t query, uint32_t key) {
    State& s = state();
    const Result<Trace*> trace = layer_of(layer);
    if (!trace) return refuse(trace.error().text);
    if (!s.prepared) {
        Result<PreparedAttention> prepared = (*trace)->prepare();
        if (!prepared) return refuse(prepared.error().text);
        s.prepared = std::move(*prepared);
    }
    const Result<Derivation> steps =
        derive_cell(s.prepared->call, s.prepared->bindings().data(), {0, head, query, key});
    if (!steps) return refuse(steps.error().text);
    const Result<F32Tensor> weights = (*trace)->stage(StageId::weights, head);
    if (!weights) return refuse(weights.error().text);
    const std::span<const float> row = weights->row(query);
    const ModelConfig& f = s.model->weights.config();
    const auto origin = [&](const char* part, uint32_t of) {
        return s.model->weights.origin(layer, part, of * f.head_width);
    };
    JsonObject json;
    add_derivation(json, *steps);
    json.raw("scale", number_json(steps->scale));
    json.raw("rowWeights", numbers_json(row))
        .number("rank", double(std::count_if(row.begin(), row.end(), [&](float w) { return w > row[key]; })))
        .raw("origins", texts_json({origin("query", head), origin("key", steps->kv_head),
                                    origin("value", steps->kv_head)}));
    return answer(json.done());
}

const char* webModelWhy(uint32_t layer, uint32_t head, uint32_t query, uint32_t key) {
    State& s = state();
    const Result<Trace*> trace = layer_of(layer);
    if (!trace) return refuse(trace.error().text);
    ModelRunOptions options;
    options.trace.engine = s.runner.get();
    options.progress = progress;
    options.changes = s.run->changes();
    const Result<ScoreWriters> of =
        score_writers(s.model->weights, s.run->prompt().ids, **trace, {layer, head, query, key}, options,
                      [&](uint64_t n) { return s.run->writes(n); });
    if (!of) return refuse(of.error().text);
    s.numbers.assign(of->matrix.begin(), of->matrix.end());
    JsonObject json;
    json.raw("split", writers_json(*of, kWhyEntries, [](uint64_t) { return std::string(); }));
    add_memory(json, "matrix", s.numbers);
    return answer(json.done());
}

const char* webModelRow(uint32_t layer, const char* stage, uint32_t head, uint32_t row) {
    State& s = state();
    const Result<Trace*> trace = layer_of(layer);
    if (!trace) return refuse(trace.error().text);
    std::vector<TraceStage> shown = (*trace)->stages();
    std::erase_if(shown, [](const TraceStage& one) {
        return stage_text(one.id).pairs || stage_name(one.id).starts_with("w_");
    });
    const StageId id = (*trace)->nearest_stage(stage_from_name(stage).value_or(StageId::weights));
    const auto info =
        std::find_if(shown.begin(), shown.end(), [&](const TraceStage& one) { return one.id == id; });
    if (info == shown.end() || row >= info->rows)
        return refuse("stage '" + printable_name(stage, 24) + "' does not have that row");
    const StageNumbers of =
        stage_numbers(**trace, id, uint32_t(head * info->heads / s.model->weights.config().heads));
    if (row >= of.rows) return refuse("stage '" + stage_name(id) + "' does not have that head");
    s.numbers.assign(of.values.begin() + int64_t(row * of.columns),
                     of.values.begin() + int64_t((row + 1) * of.columns));
    JsonObject json;
    json.text("stage", stage_name(id)).raw("stages", array_json(shown, [](const TraceStage& one) {
                                               return JsonObject()
                                                   .text("id", stage_name(one.id))
                                                   .text("formula", one.formula)
                                                   .number("heads", double(one.heads))
                                                   .number("rows", double(one.rows))
                                                   .number("columns", double(one.columns))
                                                   .done();
                                           }));
    add_memory(json, "row", s.numbers);
    return answer(json.done());
}

const char* webModelSum(uint32_t layer, const char* stage, uint32_t head, uint32_t row, uint32_t column) {
    State& s = state();
    const Result<Trace*> trace = layer_of(layer);
    if (!trace) return refuse(trace.error().text);
    StageNumbers shown;
    const std::optional<StageId> id = stage_from_name(stage);
    if (id) {
        const StageNumbers whole = stage_numbers(**trace, *id, 0);
        head = uint32_t(head * whole.heads / s.model->weights.config().heads);
        shown = stage_numbers(**trace, *id, head);
    }
    if (row >= shown.rows || column >= shown.columns)
        return refuse("stage '" + printable_name(stage, 24) + "' does not have that cell");
    const std::vector<std::string> tokens = [&] {
        std::vector<std::string> texts;
        for (const SplitToken& token : s.tokens) texts.push_back(token_text(*s.model, token.id));
        return texts;
    }();
    LayerNumbers of;
    of.model = &(*trace)->model(), of.block = &of.model->blocks[0];
    of.tokens = tokens;
    for (uint32_t h = 0; h < s.model->weights.config().heads; ++h)
        if (s.run->changes().changes_head(layer, h)) of.changed_heads.push_back(h);
    of.stage = [&](StageId from, uint32_t h) { return stage_numbers(**trace, from, h); };
    of.origin = [&](std::string_view part, uint64_t output) {
        return s.model->weights.origin(layer, part, output);
    };
    const std::optional<CellSum> sum = cell_sum(of, *id, head, row, column);
    return answer(JsonObject()
                      .raw("value", number_json(double(shown.values[row * shown.columns + column])))
                      .raw("sum", sum ? sum_json(*sum, kSumTerms) : "null")
                      .done());
}

const char* webModelMap(const char* text) {
    State& s = state();
    if (!s.model) return refuse("no model is open; open one first");
    const Result<JsonValue> ask = parse_json(text);
    if (!ask) return refuse(ask.error().text);
    const CheckpointModel& model = s.model->weights;
    const ModelConfig& f = model.config();
    const auto at = head_of((*ask)["layer"], (*ask)["head"], f);
    if (!at) return refuse(at.error().text);
    if (!(*ask)["hidden"].items().empty() || !(*ask)["patches"].items().empty())
        return refuse("a map cannot show masked tokens or heads patched from another text; undo them first");
    const Result<std::vector<SplitToken>> tokens = split_text(*s.model, (*ask)["text"].text());
    if (!tokens) return refuse(tokens.error().text);
    const uint64_t count = tokens->size();
    if (Result<void> r = check_count(count, f.context ? f.context : count, "model reads"); !r)
        return refuse(r.error().text);
    Result<Prompt> prompt = prompt_of(s, *ask, *tokens);
    if (!prompt) return refuse(prompt.error().text);
    ModelRunOptions options;
    options.trace.engine = s.runner.get();
    options.with_logits = false;
    options.changes = std::move(prompt->changes);
    options.progress = progress;
    if (Result<void> r = check_memory(run_model_bytes(model, count, options)); !r)
        return refuse(r.error().text);
    AttentionRules rules;
    bool taken = false;
    options.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        if (layer != at->first) return {};
        Result<F32Tensor> q = trace.stage(StageId::queries, at->second),
                          k = trace.stage(StageId::keys, uint32_t(at->second * f.kv_heads / f.heads));
        if (!q) return q.error();
        if (!k) return k.error();
        s.weights = std::move(q->values), s.masked = std::move(k->values);
        rules = trace.model().blocks[0].attention.rules;
        taken = true;
        return Error{FOVEA_CANCELLED, "run", "no further layer is needed"};
    };
    const Result<ModelRun> ran = run_model(model, prompt->ids, options);
    if (!taken) return refuse(ran.error().text);
    const int64_t widest = std::max(rules.window_left, rules.window_right);
    if (widest >= int64_t(count)) rules.windowed = false;
    if (rules.windowed && widest > kMaxMapWindow)
        return refuse("the layer's window is " + std::to_string(widest) + " keys; a map has one of " +
                      std::to_string(kMaxMapWindow) + " at most");
    std::vector<std::string> texts;
    for (const uint32_t id : prompt->ids) texts.push_back(token_text(*s.model, id));
    JsonObject json;
    json.number("dim", double(s.weights.size() / count))
        .raw("tokens", texts_json(texts))
        .text("scale", rules.scale)
        .number("softcap", rules.softcap)
        .boolean("causal", rules.causal)
        .boolean("windowed", rules.windowed)
        .number("left", rules.window_left)
        .number("right", rules.window_right);
    add_memory(json, "q", s.weights);
    add_memory(json, "k", s.masked);
    return answer(json.done());
}

const char* webModelNumbers(const char* numbers) {
    State& s = state();
    if (!s.model) return refuse("no model is open; open one first");
    if (numbers && *numbers) {
        Prompt prompt;
        prompt.side = kThumbnailSide;
        s.tokens.clear();
        for (std::string_view text = numbers; !text.empty();) {
            uint32_t id = 0;
            const char* const end = std::from_chars(text.data(), text.data() + text.size(), id).ptr;
            prompt.ids.push_back(id);
            s.tokens.push_back({id, 0, 0});
            text.remove_prefix(std::min(text.size(), size_t(end - text.data()) + 1));
        }
        const Result<uint64_t> first = compute(s, std::move(prompt));
        if (!first) return refuse(first.error().text);
    }
    JsonObject json;
    s.numbers.clear();
    const size_t layers = s.run ? s.run->finished_layers() : 0;
    for (size_t n = 0; s.run && n <= layers; ++n) {
        const std::vector<float>& values = s.run->entering(n)->values;
        s.numbers.insert(s.numbers.end(), values.begin(), values.end());
    }
    s.weights.clear();
    if (s.run && s.model->weights.has_unembedding()) {
        Result<F32Tensor> logits = s.model->weights.logits(*s.run->entering(layers), s.runner.get());
        if (!logits) return refuse(logits.error().text);
        s.weights = std::move(logits->values);
    }
    add_memory(json, "hidden", s.numbers);
    add_memory(json, "logits", s.weights);
    return answer(json.done());
}
