#include "document/projected.hpp"

#include "document/opened_model.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {
namespace {

// Scores, masked scores and weights are each kept whole up to here.
constexpr uint64_t kMaxKeptCells = 24u << 20;

F32Tensor with_batch(F32Tensor t) {
    if (t.rank() == 2) return reshaped(t, {1, 1, t.shape[0], t.shape[1]});
    return reshaped(t, {1, t.shape[0], t.shape[1], t.shape[2]});
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

F32Tensor without_batch(const F32Tensor& t) { return reshaped(t, {t.shape[1], t.shape[2], t.shape[3]}); }

std::vector<std::string> text_tokens(const Settings& settings) {
    return texts_of(session_tokens(settings).tokens);
}

namespace {

// Collects the stages before the call, and the call's queries, keys and values.
Result<Projected> seen_of(SessionModel made, uint32_t layer, bool whole) {
    Projected p;
    p.tokens = texts_of(made.input.tokens);
    p.warnings = texts_of(made.notes);
    p.layer = layer;
    Result<Trace> trace = Trace::open(made.model, made.input);
    if (!trace) return trace.error();
    if (layer > 0) {
        Result<F32Tensor> x = trace->leaving(layer - 1);
        if (!x) return x.error();
        p.stages.push_back({"inputs", "x, what leaves layer " + std::to_string(layer - 1), std::move(*x)});
    }
    for (const TraceStage& stage : trace->stages(layer)) {
        if (!is_before_call(stage.id)) break;
        Result<F32Tensor> values = trace->whole_stage(stage.id, layer);
        if (!values) return values.error();
        const std::pair<StageId, F32Tensor*> taken[] = {
            {StageId::queries, &p.q}, {StageId::keys, &p.k}, {StageId::values, &p.v}};
        for (const auto& [id, to] : taken)
            if (stage.id == id)
                *to =
                    with_batch(stage.heads > 1 ? *values : reshaped(*values, {1, stage.rows, stage.columns}));
        p.stages.push_back({stage_name(stage.id), stage.formula, std::move(*values)});
    }
    // Without weights the vectors are queries, keys and values themselves.
    if (p.q.values.empty()) p.q = p.k = p.v = with_batch(made.input.x);
    p.source = std::make_shared<const SessionModel>(std::move(made));
    if (whole) p.trace = std::make_shared<Trace>(std::move(*trace));
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
    Result<Projected> projected = seen_of(std::move(made), 0, true);
    if (projected) projected->run = std::move(run);
    return projected;
}

Result<Projected> project(const Settings& settings, const Projected* previous) {
    const bool whole = shows_model(settings);
    Session session = settings;
    session.tensors = nullptr;
    if (!whole) session.precision = Precision::f32;  // rounded by the call
    Result<SessionModel> made =
        whole ? session_model(session, nullptr, {std::shared_ptr<void>(), &learned_of(settings)})
              : session_model(session, previous && previous->source ? previous->source.get() : nullptr);
    if (!made) return made.error();
    if (const size_t count = session.edits.size(); count != 0)
        made->notes.push_back({"edits", std::to_string(count) + (count == 1 ? " cell is" : " cells are") +
                                            " set by hand in the session: its edits"});
    const auto last = uint32_t(made->model->blocks.size() - 1);
    return seen_of(std::move(*made), whole ? std::min(settings.mapping.layer, last) : 0, whole);
}

Result<Trace> trace_of_call(const Projected& p, const AttentionRules& rules, const TraceOptions& options) {
    Model model;
    AttentionPart& part = model.blocks.emplace_back().attention;
    part.heads = uint32_t(p.q.shape[1]), part.kv_heads = uint32_t(p.k.shape[1]);
    part.rules = rules;
    if (p.source) part.output = p.block().attention.output;
    ModelInput input;
    for (const std::string& token : p.tokens) input.tokens.push_back({token, 0, 0});
    input.q = without_batch(p.q), input.k = without_batch(p.k), input.v = without_batch(p.v);
    input.extras = p.extras;
    return Trace::open(std::make_shared<const Model>(std::move(model)), std::move(input), options);
}

Result<CallTrace> trace_of(const Projected& p, const Settings& settings) {
    if (p.trace) return CallTrace{p.trace, p.trace->stages(p.layer), {}, p.block().attention.rules};
    const AttentionRules rules = rules_of(settings);
    CallTrace out;
    out.rules = rules;
    TraceOptions options;
    if (p.source) {
        // The whole model uses the reader's rules and arithmetic.
        Model whole = *p.source->model;
        whole.blocks[0].attention.rules = rules;
        const Result<Trace> seen =
            Trace::open(std::make_shared<const Model>(std::move(whole)), p.source->input);
        if (!seen) return seen.error();
        out.stages = seen->stages();
        options.arithmetic = seen->is_strict() ? Arithmetic::strict : Arithmetic::engine;
    }
    Result<Trace> call = trace_of_call(p, rules, options);
    if (!call) return call.error();
    out.trace = std::make_shared<Trace>(std::move(*call));
    if (!p.source) out.stages = out.trace->stages();
    return out;
}

bool fits_matrices(const Projected& p) { return p.q.shape[1] * p.q.shape[2] * p.k.shape[2] <= kMaxKeptCells; }

float slope_of(const CallExtras& extras, uint32_t head, uint64_t heads) {
    return head < extras.alibi.size() ? extras.alibi[head] : alibi_slope(head, heads);
}

}  // namespace fovea::visualizer
