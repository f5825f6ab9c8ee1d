#include "document/projected.hpp"

#include "document/imported_file.hpp"
#include "document/opened_model.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {
namespace {

// Scores, masked scores and weights are each kept whole up to here.
constexpr uint64_t kMaxKeptCells = 24u << 20;

F32Tensor as_heads(F32Tensor t) {
    if (t.rank() == 3) return t;
    Shape shape = {1, t.shape[0], t.shape[1]};
    return reshaped(std::move(t), std::move(shape));
}

std::vector<std::string> texts_of(const std::vector<Token>& tokens) {
    std::vector<std::string> texts;
    for (const Token& token : tokens) texts.push_back(token.text);
    return texts;
}

// Float16 inputs are used only by the device: the model's notes about its own arithmetic do not mention them.
std::vector<std::string> texts_of(const std::vector<SessionNote>& notes) {
    std::vector<std::string> texts;
    for (const SessionNote& note : notes)
        if (note.key != "precision") texts.push_back(note.text);
    return texts;
}

// True for a stage before the scores.
bool is_before_call(StageId id) { return id < StageId::scores; }

}  // namespace

std::vector<std::string> text_tokens(const Settings& settings) {
    return texts_of(session_tokens(settings).tokens);
}

namespace {

// Collects the stages before the call, and the call's queries, keys and values.
Result<Projected> seen_of(SessionModel made, uint32_t layer) {
    Projected p;
    p.tokens = texts_of(made.input.tokens);
    p.warnings = texts_of(made.notes);
    p.layer = layer;
    Result<Trace> trace = Trace::open(made.model, made.input);
    if (!trace) return trace.error();
    if (layer > 0) {
        Result<F32Tensor> x = trace->leaving(layer - 1);
        if (!x) return x.error();
        p.stages.push_back(
            {StageId::inputs, "x, what leaves layer " + std::to_string(layer - 1), std::move(*x)});
    }
    for (const TraceStage& stage : trace->stages(layer)) {
        if (!is_before_call(stage.id)) break;
        Result<F32Tensor> values = trace->whole_stage(stage.id, layer);
        if (!values) return values.error();
        const std::pair<StageId, F32Tensor*> taken[] = {
            {StageId::queries, &p.q}, {StageId::keys, &p.k}, {StageId::values, &p.v}};
        for (const auto& [id, to] : taken)
            if (stage.id == id) *to = as_heads(*values);
        p.stages.push_back({stage.id, stage.formula, std::move(*values)});
    }
    // Without weights the vectors are queries, keys and values themselves.
    if (p.q.values.empty()) p.q = p.k = p.v = as_heads(made.input.x);
    p.source = std::make_shared<const SessionModel>(std::move(made));
    p.trace = std::make_shared<Trace>(std::move(*trace));
    return p;
}

// Combines a layer's own rules with those that a reader sets.
AttentionRules rules_beside(const AttentionRules& own, const AttentionRules& reader) {
    const AttentionRules none;
    AttentionRules both = reader;
    if (reader.scale == none.scale) both.scale = own.scale;
    if (reader.softcap == none.softcap) both.softcap = own.softcap;
    both.causal = own.causal || reader.causal;
    if (!reader.windowed)
        both.windowed = own.windowed, both.window_left = own.window_left,
        both.window_right = own.window_right;
    return both;
}

}  // namespace

Result<Projected> project_layer(const Settings& s, std::shared_ptr<const PromptRun> run) {
    const uint32_t layer = s.mapping.layer;
    const std::vector<uint32_t>& ids = run->prompt().ids;
    Result<Block> block = s.model->weights.block(layer, ids.size(), true);
    if (!block) return block.error();
    block->attention.rules = rules_beside(block->attention.rules, s);
    auto one = std::make_shared<Model>();
    one->name = s.model->name;
    one->blocks.push_back(std::move(*block));
    SessionModel made;
    made.session = s;
    made.model = std::move(one);
    made.input.x = *run->entering(layer);
    for (const uint32_t id : ids) made.input.tokens.push_back({token_text(*s.model, id), 0, 0});
    Result<Projected> projected = seen_of(std::move(made), 0);
    if (projected) projected->run = std::move(run);
    return projected;
}

Result<Projected> project(const Settings& settings, const Projected* previous) {
    if (reads_tensors(settings)) return project_import(settings);
    const bool whole = shows_model(settings);
    Session session = settings;
    session.tensors = nullptr;
    if (!whole) session.precision = Precision::f32;  // trace_of() rounds
    Result<SessionModel> made =
        whole ? session_model(session, nullptr, {std::shared_ptr<void>(), &learned_of(settings)})
              : session_model(session, previous && previous->source ? previous->source.get() : nullptr);
    if (!made) return made.error();
    if (const size_t count = session.edits.size(); count != 0)
        made->notes.push_back({"edits", std::to_string(count) + (count == 1 ? " cell is" : " cells are") +
                                            " set by hand in the session: its edits"});
    const auto last = uint32_t(made->model->blocks.size() - 1);
    return seen_of(std::move(*made), whole ? std::min(settings.mapping.layer, last) : 0);
}

Result<std::shared_ptr<Trace>> trace_of(const Projected& p, const Settings& settings) {
    if (p.is_model()) return p.trace;
    const AttentionRules rules = rules_of(settings);
    Result<Trace> trace =
        p.trace ? Result<Trace>(p.trace->with_rules(rules, p.layer)) : trace_of_call(call_of(p), rules);
    if (!trace) return trace.error();
    return std::make_shared<Trace>(std::move(*trace));
}

ModelInput call_of(const Projected& p) {
    ModelInput call;
    for (const std::string& token : p.tokens) call.tokens.push_back({token, 0, 0});
    call.q = p.q, call.k = p.k, call.v = p.v;
    call.extras = p.extras;
    return call;
}

Result<Trace> trace_of_call(ModelInput call, const AttentionRules& rules) {
    Model model;
    AttentionPart& part = model.blocks.emplace_back().attention;
    part.heads = uint32_t(call.q.shape[0]), part.kv_heads = uint32_t(call.k.shape[0]);
    part.rules = rules;
    return Trace::open(std::make_shared<const Model>(std::move(model)), std::move(call));
}

bool fits_matrices(const Projected& p) { return p.q.shape[0] * p.q.shape[1] * p.k.shape[1] <= kMaxKeptCells; }

float slope_of(const CallExtras& extras, uint32_t head, uint64_t heads) {
    return head < extras.alibi.size() ? extras.alibi[head] : alibi_slope(head, heads);
}

}  // namespace fovea::visualizer
