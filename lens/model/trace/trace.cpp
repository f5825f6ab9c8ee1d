#include <fovea/model/trace.hpp>

#include <fovea/model/strict.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "files/locale_point.hpp"
#include "model/trace/trace_impl.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

using Role = TraceSteps::Role;

constexpr float kBeyondHalf = 65520.0f;  // from here on float16 rounds to infinity

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Result<void> round_to_half(F32Tensor& tensor, const char* name) {
    for (float& value : tensor.values) {
        if (std::isfinite(value) && std::abs(value) >= kBeyondHalf) {
            return wrong("precision", std::string(name) + " contain " +
                                          files::number_by("%.*g", 6, double(value)) +
                                          "; the largest float16 is 65504");
        }
        value = foveaHalfToFloat(foveaFloatToHalf(value));
    }
    return {};
}

// Multiplications of the whole computation.
double products_of(const Model& model, const ModelInput& input) {
    const auto of = [](const Linear& l) {
        return is_present(l) ? double(l.d_in()) * double(l.d_out()) : 0.0;
    };
    const auto rows = double(input.q.values.empty() ? input.x.rows() : input.q.shape[1]);
    const auto keys = double(!input.q.values.empty()        ? input.k.shape[1]
                             : !input.memory.values.empty() ? input.memory.rows()
                                                            : input.x.rows());
    double sum = 0, width = double(input.x.columns());
    for (const Block& b : model.blocks) {
        const AttentionPart& a = b.attention;
        const bool given = &b == &model.blocks[0] && !input.q.values.empty();
        const double head = given                 ? double(input.q.shape[2])
                            : is_present(a.query) ? double(a.query.d_out()) / a.heads
                                                  : width;
        sum += rows * (of(a.query) + of(a.key) + of(a.value) + of(a.output));
        sum += rows * keys * a.heads * 2 * head;
        sum += rows * (of(b.feed_forward.up) + of(b.feed_forward.gate) + of(b.feed_forward.down));
        if (is_present(a.output)) width = double(a.output.d_out());
    }
    return sum + rows * of(model.unembedding);
}

}  // namespace

F32Tensor matrix_of(const F32Tensor& all, uint64_t head) {
    const uint64_t size = all.shape[1] * all.shape[2];
    const auto first = all.values.begin() + int64_t(head * size);
    return F32Tensor({all.shape[1], all.shape[2]}, {first, first + int64_t(size)});
}

Trace::Impl::Impl(std::shared_ptr<const Model> model, ModelInput input, const TraceOptions& options)
    : model_(std::move(model)),
      input_(std::move(input)),
      layers_(model_->blocks.size()),
      engine_(options.engine),
      keeps_stages_(options.keeps_stages) {
    const bool few = products_of(*model_, input_) <= double(kStrictProducts);
    strict_ = options.arithmetic == Arithmetic::strict || (options.arithmetic == Arithmetic::by_size && few);
    for (const Block& b : model_->blocks) rules_.push_back(b.attention.rules);
}

Trace::Impl::Impl(const Impl& of, const AttentionRules& rules, uint32_t n)
    : model_(of.model_),
      input_(of.input_),
      rules_(of.rules_),
      layers_(of.layers_.begin(), of.layers_.begin() + n),
      engine_(of.own_engine_ ? nullptr : of.engine_),
      strict_(of.strict_),
      keeps_stages_(of.keeps_stages_) {
    rules_.at(n) = rules;
    layers_.resize(of.layers_.size());
    const Layer& known = of.layers_[n];
    if (!known.projected || known.rounded) return;
    Layer& l = layers_[n];
    l.projected = true;
    l.stages = known.stages;
    l.q = known.q, l.k = known.k, l.v = known.v;
}

// ---- steps ----

// [rows, heads * width] to [heads, rows, width], of the roles that are of heads.
void TraceSteps::split(Role role) {
    if (role != queries && role != keys && role != values) return;
    const AttentionPart& a = block_->attention;
    F32Tensor& x = rooms_[role];
    const uint64_t heads = role == queries ? a.heads : a.kv_heads, rows = x.rows(), all = x.columns();
    x = reshaped(split_heads(reshaped(std::move(x), {1, rows, all}), heads), {heads, rows, all / heads});
}

Result<void> TraceSteps::copy(Role from, Role to) {
    rooms_[to] = rooms_[from];
    split(to);
    return {};
}

Result<void> TraceSteps::linear(std::span<const Product> products, Role from) {
    std::vector<LinearProduct> all;
    for (const Product& one : products) all.push_back({one.layer, &rooms_[one.to]});
    if (Result<void> r = loops_.linears(rooms_[from], all); !r) return r;
    for (const Product& one : products) split(one.to);
    return {};
}

Result<void> TraceSteps::norm(const Norm& n, uint32_t, Role from, Role to) {
    rooms_[to] = loops_.normalised(n, rooms_[from]);
    return {};
}

Result<void> TraceSteps::rotate(const Rope& rope, uint32_t, Role role) {
    loops_.rotate(rooms_[role], rope);
    return {};
}

Result<void> TraceSteps::activate(Activation activation, Role role, const Role* other) {
    loops_.activate(activation, rooms_[role], other ? &rooms_[*other] : nullptr);
    return {};
}

Result<void> TraceSteps::add(Role from, const Norm* next, Role to) {
    F32Tensor& sum = rooms_[stream];
    for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += rooms_[from].values[i];
    return next ? norm(*next, 0, stream, to) : Result<void>();
}

void TraceSteps::done(const BlockStep& step) {
    if (step.stage && stages_) (*stages_)[*step.stage] = rooms_[step.to];
}

// ---- from the input to queries, keys and values ----

Result<const F32Tensor*> Trace::Impl::leaving(uint32_t n) {
    if (Result<void> r = finish(n); !r) return r.error();
    return &layers_[n].leaves;
}

Result<const F32Tensor*> Trace::Impl::layer_input(uint32_t n) { return n == 0 ? &input_.x : leaving(n - 1); }

Result<void> Trace::Impl::project(uint32_t n) {
    Layer& l = layers_[n];
    const auto round = [&]() -> Result<void> {
        if (l.rounded || rules(n).precision == Precision::f32) return {};
        for (const auto& [t, name] : {std::pair{&l.q, "queries"}, {&l.k, "keys"}, {&l.v, "values"}})
            if (Result<void> r = round_to_half(*t, name); !r) {
                l.projected = false;
                return r;
            }
        l.rounded = true;
        return {};
    };
    if (l.projected) return round();
    const bool crosses = n == 0 && !input_.memory.values.empty();
    TraceSteps rooms = rooms_of(l);
    if (is_given(n)) {
        rooms[Role::queries] = input_.q, rooms[Role::keys] = input_.k;
        rooms[Role::values] = has_values(n) ? input_.v : F32Tensor({input_.k.shape[0], input_.k.shape[1], 1});
    } else {
        const Result<const F32Tensor*> x = layer_input(n);
        if (!x) return x.error();
        rooms[Role::stream] = **x;
        if (crosses) rooms[Role::memory] = input_.memory;
    }
    const std::vector<BlockStep> steps = block_steps(block(n), is_given(n) ? BlockInput::heads
                                                               : crosses   ? BlockInput::memory
                                                                           : BlockInput::stream);
    if (Result<void> r = rooms.run(block(n), before_attention(steps)); !r) return r.error();
    l.q = std::move(rooms[Role::queries]), l.k = std::move(rooms[Role::keys]);
    l.v = std::move(rooms[Role::values]);
    l.projected = true;
    return round();
}

// ---- what follows the contexts ----

Result<void> Trace::Impl::supply(uint32_t n, F32Tensor context) {
    const uint64_t columns = value_width(n) * block(n).attention.heads;
    if (context.values.size() != rows() * columns)
        return wrong("context", "the context has " + std::to_string(context.values.size()) +
                                    " values; it must have " + std::to_string(rows() * columns));
    if (Result<void> r = attend(n); !r) return r;  // lse
    for (size_t behind = n; behind < layers_.size(); ++behind) {
        if (behind > n) layers_[behind] = {};
        layers_[behind].finished = false;
    }
    layers_[n].context = reshaped(std::move(context), {rows(), columns});
    return {};
}

Result<void> Trace::Impl::finish(uint32_t n) {
    Layer& l = layers_[n];
    if (l.finished) return {};
    if (Result<void> r = attend(n); !r) return r;
    const Block& b = block(n);
    TraceSteps rooms = rooms_of(l);
    rooms[Role::context] = l.context;
    if (b.residual) {
        const Result<const F32Tensor*> x = layer_input(n);
        if (!x) return x.error();
        rooms[Role::stream] = **x;
    }
    const std::vector<BlockStep> steps = block_steps(b);
    if (Result<void> r = rooms.run(b, after_attention(steps)); !r) return r;
    l.leaves = std::move(rooms[Role::stream]);
    l.finished = true;
    return {};
}

Result<F32Tensor> Trace::Impl::behind(StageId id) {
    const auto last = uint32_t(layers_.size() - 1);
    const Result<const F32Tensor*> x = leaving(last);
    if (!x) return x.error();
    if (id == StageId::final) return loops().normalised(model_->final_norm, **x);
    Result<F32Tensor> logits = predict(*model_, **x, loops());
    if (logits && id == StageId::probabilities) softmax_rows(*logits);
    return logits;
}

// ---- stages ----

Result<F32Tensor> Trace::Impl::pair_stage(StageId id, uint32_t head, uint32_t n) {
    if (Result<void> r = head_matrices(n, head); !r) return r.error();
    const Layer& l = layers_[n];
    switch (id) {
        case StageId::scores:
            return l.scores;
        case StageId::scaled:
            return l.scaled;
        case StageId::capped:
            return l.capped;
        case StageId::masked:
            return l.masked;
        case StageId::weights_all:
            return l.weights_all;
        case StageId::masked_weights:
            return l.masked_weights;
        case StageId::row_sums:
            return l.row_sums;
        case StageId::weights:
            return l.weights;
        case StageId::dropped:
            return l.dropped;
        default:
            break;
    }
    F32Tensor keep({rows(), keys(n)});
    for (size_t i = 0; i < keep.values.size(); ++i) keep.values[i] = l.keep[head * keep.values.size() + i];
    return keep;
}

// Computes stages other than matrices of queries and keys.
Result<F32Tensor> Trace::Impl::flow_stage(StageId id, uint32_t head, uint32_t n) {
    const AttentionPart& a = block(n).attention;
    const auto weight = [](const Linear& layer) {
        const Result<Linear> whole = widened(layer);
        return whole ? Result<F32Tensor>(whole->weight) : whole.error();
    };
    if (id == StageId::inputs) return input_.x;
    if (id == StageId::w_query) return weight(a.query);
    if (id == StageId::w_key) return weight(a.key);
    if (id == StageId::w_value) return weight(a.value);
    if (id == StageId::w_output) return weight(a.output);
    if (Result<void> r = project(n); !r) return r.error();
    Layer& l = layers_[n];
    if (id == StageId::queries) return matrix_of(l.q, head);
    if (id == StageId::keys) return matrix_of(l.k, head);
    if (id == StageId::values) return matrix_of(l.v, head);
    const auto kept = [&]() -> Result<F32Tensor> {
        const auto at = l.stages.find(id);
        if (at != l.stages.end()) return at->second;
        if (keeps_stages_) return F32Tensor();
        return wrong("stage", stage_name(id) + " is not kept by this run, whose keeps_stages is false");
    };
    if (id == StageId::normed) return kept();
    if (Result<void> r = attend(n); !r) return r.error();
    if (id == StageId::context) return l.context;
    if (id == StageId::lse) return matrix_of(l.lse, head);
    if (id >= StageId::final) return behind(id);
    if (Result<void> r = finish(n); !r) return r.error();
    return kept();
}

Error Trace::Impl::no_stage(std::string_view name, uint32_t n) const {
    std::string known;
    for (const TraceStage& one : stages(n)) known += (known.empty() ? "" : ", ") + stage_name(one.id);
    return wrong("stage", "stage is '" + printable_name(name, 40) + "'; this layer has " + known);
}

Result<F32Tensor> Trace::Impl::stage(StageId id, uint32_t head, uint32_t n) {
    if (n >= layers_.size())
        return wrong("layer", "layer is " + std::to_string(n) + "; the model has layers 0 to " +
                                  std::to_string(layers_.size() - 1));
    for (const TraceStage& one : stages(n)) {
        if (one.id != id) continue;
        // A stage with one matrix for all heads shows it whichever is asked for.
        const uint64_t heads = one.heads > 1 ? one.heads : std::max(1u, block(n).attention.heads);
        if (head >= heads)
            return wrong("head", "head is " + std::to_string(head) + "; " + stage_name(id) +
                                     " has heads 0 to " + std::to_string(heads - 1));
        const bool of_head = stage_text(id).pairs || id == StageId::row_sums;
        return of_head ? pair_stage(id, head, n) : flow_stage(id, one.heads > 1 ? head : 0, n);
    }
    return no_stage(stage_name(id), n);
}

// ---- the public face ----

Result<Trace> Trace::open(std::shared_ptr<const Model> model, ModelInput input, const TraceOptions& options) {
    if (Result<void> r = check_model(*model, input); !r) return r.error();
    return Trace(std::make_shared<Impl>(std::move(model), std::move(input), options));
}

Trace Trace::with_rules(const AttentionRules& rules, uint32_t layer) const {
    return Trace(std::make_shared<Impl>(*impl_, rules, layer));
}

const Model& Trace::model() const { return impl_->model(); }
const ModelInput& Trace::input() const { return impl_->input(); }
uint32_t Trace::layers() const { return uint32_t(model().blocks.size()); }
uint64_t Trace::rows() const { return impl_->rows(); }
uint64_t Trace::keys() const { return impl_->keys(0); }
uint32_t Trace::heads(uint32_t layer) const { return model().blocks.at(layer).attention.heads; }
const AttentionRules& Trace::rules(uint32_t layer) const { return impl_->rules(layer); }
bool Trace::is_strict() const { return impl_->is_strict(); }
std::string Trace::arithmetic() const { return impl_->arithmetic(); }
std::vector<TraceStage> Trace::stages(uint32_t layer) const { return impl_->stages(layer); }

StageId Trace::nearest_stage(StageId id, uint32_t layer) const {
    const std::vector<TraceStage> all = stages(layer);
    const auto has = [&](StageId wanted) {
        return std::any_of(all.begin(), all.end(), [&](const TraceStage& s) { return s.id == wanted; });
    };
    if (has(id)) return id;
    for (const StageId near : stage_text(id).nearest)
        if (has(near)) return near;
    return StageId::weights;
}

Result<StageId> Trace::stage_named(std::string_view name, uint32_t layer) const {
    if (const std::optional<StageId> id = stage_from_name(name)) return *id;
    return impl_->no_stage(name, layer);
}

Result<F32Tensor> Trace::stage(StageId id, uint32_t head, uint32_t layer) {
    return impl_->stage(id, head, layer);
}

Result<F32Tensor> Trace::whole_stage(StageId id, uint32_t layer) {
    Result<F32Tensor> first = stage(id, 0, layer);
    if (!first) return first;
    const std::vector<TraceStage> all = stages(layer);
    const auto info = std::find_if(all.begin(), all.end(), [&](const TraceStage& s) { return s.id == id; });
    if (info->heads == 1) return first;
    F32Tensor whole({info->heads, info->rows, info->columns});
    for (uint32_t h = 0; h < info->heads; ++h) {
        const Result<F32Tensor> one = stage(id, h, layer);
        if (!one) return one;
        std::copy(one->values.begin(), one->values.end(),
                  whole.values.begin() + int64_t(h * one->values.size()));
    }
    return whole;
}

Result<PreparedAttention> Trace::prepare(uint32_t layer) {
    return impl_->prepare(layer, 0, heads(layer), rules(layer).precision != Precision::f32, true);
}

Result<PreparedAttention> Trace::prepare_head(uint32_t head, uint32_t layer) {
    if (head >= heads(layer))
        return wrong("head", "head is " + std::to_string(head) + "; the layer has heads 0 to " +
                                 std::to_string(heads(layer) - 1));
    return impl_->prepare(layer, head, 1, rules(layer).precision != Precision::f32, false);
}

Result<F32Tensor> Trace::leaving(uint32_t layer) {
    const Result<const F32Tensor*> x = impl_->leaving(layer);
    return x ? Result<F32Tensor>(**x) : x.error();
}

Result<void> Trace::supply_context(uint32_t layer, F32Tensor context) {
    return impl_->supply(layer, std::move(context));
}

std::string matrix_text(const F32Tensor& matrix) {
    std::string text;
    for (uint64_t i = 0; i < matrix.rows(); ++i) {
        for (size_t j = 0; j < matrix.columns(); ++j) {
            const float value = matrix.row(i)[j];
            text += j == 0 ? "" : " ";
            text += std::isnan(value) ? "nan"
                                      : files::number_by("%.*g", 9, double(value));  // whatever a NaN's sign
        }
        text += '\n';
    }
    return text;
}

Result<SessionStageText> session_stage_text(ReadSession read, std::string_view stage, uint32_t head,
                                            const TraceOptions& options,
                                            std::shared_ptr<const LearnedModel> learned) {
    Result<SessionModel> made = session_model(read.session, nullptr, std::move(learned));
    if (!made) return made.error();
    Result<Trace> trace = Trace::open(made->model, std::move(made->input), options);
    if (!trace) return trace.error();
    // A session counts the heads of all layers.
    const uint32_t layer = trace->layers() > 1 ? head / trace->heads() : 0;
    if (layer >= trace->layers())
        return wrong("head", "head is " + std::to_string(head) + "; the model has heads 0 to " +
                                 std::to_string(trace->layers() * trace->heads() - 1));
    const Result<StageId> id =
        stage.empty() ? trace->nearest_stage(read.session.stage, layer) : trace->stage_named(stage, layer);
    if (!id) return id.error();
    const Result<F32Tensor> matrix = trace->stage(*id, head - layer * trace->heads(), layer);
    if (!matrix) return matrix.error();
    SessionStageText out{matrix_text(*matrix), std::move(read.notes)};
    out.notes.insert(out.notes.end(), made->notes.begin(), made->notes.end());
    return out;
}

}  // namespace fovea
