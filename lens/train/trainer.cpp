#include <fovea/model/linear.hpp>
#include <fovea/train/trainer.hpp>
#include <fovea/train/training_text.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "model/block_steps.hpp"
#include "train/layers.hpp"
#include "train/step_parts.hpp"

namespace fovea {
namespace {

constexpr uint32_t kHeldOutBatches = 4;
constexpr size_t kAbsent = std::numeric_limits<size_t>::max();

// Offsets of one layer's weights in the array; kAbsent if it has none.
struct LayerOffsets {
    size_t norm_weight, norm_bias, query, query_bias, key, key_bias, value, output;
};
struct Offsets {
    size_t embedding, positions, final_weight, final_bias, unembedding, count;
    std::vector<LayerOffsets> layers;
};

Offsets offsets_of(const TaskModel& model) {
    const std::vector<WeightEntry> entries = weight_entries(model);
    const auto at = [&](const std::string& name) {
        for (const WeightEntry& entry : entries)
            if (entry.name == name) return entry.offset;
        return kAbsent;
    };
    Offsets o{at("embedding.weight"),
              at("positions.weight"),
              at("final_norm.weight"),
              at("final_norm.bias"),
              at("unembedding.weight"),
              entries.back().offset + entries.back().count,
              {}};
    for (uint32_t n = 0; n < model.layers; ++n) {
        const std::string layer = "layers." + std::to_string(n) + ".";
        o.layers.push_back({at(layer + "norm.weight"), at(layer + "norm.bias"), at(layer + "query.weight"),
                            at(layer + "query.bias"), at(layer + "key.weight"), at(layer + "key.bias"),
                            at(layer + "value.weight"), at(layer + "output.weight")});
    }
    return o;
}

// The values of a layer's forward pass that its backward pass needs. Matrices are [rows, width].
struct LayerMemory {
    std::vector<float> input;    // input of the projections: after the norm
    std::vector<float> q, k, v;  // q and k rotated
    std::vector<float> context;  // contexts of all heads, side by side
    std::vector<float> lse;
    std::optional<NormLayer> norm;
};

FoveaHostBuffer buffer_of(const std::vector<float>& values) {
    return {const_cast<float*>(values.data()), values.size() * sizeof(float)};  // inputs are only read
}

void add(const std::vector<float>& what, std::vector<float>& to) {
    for (size_t n = 0; n < to.size(); ++n) to[n] += what[n];
}

}  // namespace

// The forward pass runs the steps of a block whose matrices are parts of the weights' array.
class Trainer::Impl final : BlockExecutor {
  public:
    static Result<std::unique_ptr<Impl>> open(const Task& task, Runner* device);

    // Runs the model; the normalized residual stream after the last block goes to final_, the logits to
    // logits_.
    Result<void> forward(const float* weights, const Batch& batch, uint64_t heads_off);
    // From logits_, which hold the gradient of the logits by now.
    Result<void> backward(const float* weights, const Batch& batch);
    Result<void> check(const TrainState& state) const;
    // Checks that there are batches to draw.
    Result<void> check_data() const;
    // Sums over the cells become means over the rows.
    void add_scores_of(const Batch& batch);
    StepReport report(const LossReport& loss, uint32_t step,
                      const std::array<double, kHeadScores>& rows) const;
    LayerWeights layer_weights(uint32_t layer) const {
        return {memory_[layer].q.data(), memory_[layer].k.data(), memory_[layer].lse.data()};
    }
    void clear_scores() { score_sums_.assign(size_t(task_.model.layers) * task_.model.heads, {}); }

    Task task_;
    std::vector<float> logits_, gradient_;
    std::vector<std::array<double, kHeadScores>> score_sums_;  // [layers * heads]

  private:
    explicit Impl(const Task& task) : task_(task), offsets_(offsets_of(task.model)) {}
    void make_steps();
    Result<void> make_plans();
    Result<void> rotate(const Plan& plan, const std::vector<float>& sines, std::vector<float>& x);
    Result<void> copy(Role, Role) override { return {}; }  // no part is absent
    Result<void> linear(std::span<const Product> products, Role from) override;
    Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart& a) override;
    Result<void> activate(Activation, Role, const Role*) override { return {}; }
    Result<void> add(Role from, const Norm* next, Role to) override;
    Result<void> layer_backward(const float* weights, uint32_t n);
    Result<void> project_back(LinearLayer& layer, const std::vector<float>& input, const float* weights,
                              size_t weight, size_t bias, const std::vector<float>& upstream);
    uint64_t rows() const { return uint64_t{task_.recipe.batch} * task_.model.context; }
    // Null where the model has no such weights.
    static const float* at(const float* weights, size_t offset) {
        return offset == kAbsent ? nullptr : weights + offset;
    }
    float* gradient_at(size_t offset) { return offset == kAbsent ? nullptr : gradient_.data() + offset; }

    // Inputs of the steps in addition to their roles: the layer and the ablated heads.
    struct Forward {
        const float* weights = nullptr;
        uint32_t layer = 0;
        uint64_t heads_off = 0;
    } now_;
    Block block_of_all_;  // every layer's parts; matrices without values
    std::vector<BlockStep> steps_;
    Offsets offsets_;
    std::unique_ptr<Runner> own_device_;
    Runner* device_ = nullptr;
    FoveaAttentionDesc call_ = foveaAttentionDesc();
    Plan attention_, attention_backward_, rope_;
    std::optional<LinearLayer> biased_, square_, unembed_;  // query and key; value and output
    std::vector<LayerMemory> memory_;
    std::optional<NormLayer> final_norm_;
    std::vector<float> cosines_, sines_, minus_sines_;
    std::vector<float> stream_, final_;                          // [rows, width]
    std::vector<float> upstream_, d_context_, d_q_, d_k_, d_v_;  // [rows, width]
    std::vector<float> part_, d_input_;                          // [rows, width]
};

Result<std::unique_ptr<Trainer::Impl>> Trainer::Impl::open(const Task& task, Runner* device) {
    std::unique_ptr<Impl> impl(new Impl(task));
    impl->device_ = &runner_or_own(device, impl->own_device_);
    if (Result<void> r = impl->make_plans(); !r) return r.error();
    impl->make_steps();
    const size_t size = size_t(impl->rows()) * task.model.width();
    impl->memory_.resize(task.model.layers);
    for (LayerMemory& layer : impl->memory_) {
        for (std::vector<float>* part : {&layer.input, &layer.q, &layer.k, &layer.v, &layer.context})
            part->resize(size);
        layer.lse.resize(size_t(impl->rows()) * task.model.heads);
        if (task.model.layer_norm) layer.norm.emplace(impl->rows(), task.model.width());
    }
    if (task.model.layer_norm) impl->final_norm_.emplace(impl->rows(), task.model.width());
    for (std::vector<float>* part : {&impl->stream_, &impl->final_, &impl->upstream_, &impl->d_context_,
                                     &impl->d_q_, &impl->d_k_, &impl->d_v_, &impl->part_, &impl->d_input_})
        part->resize(size);
    impl->logits_.resize(size_t(impl->rows()) * task.model.vocabulary);
    impl->gradient_.resize(impl->offsets_.count);
    return impl;
}

Result<void> Trainer::Impl::make_plans() {
    const TaskModel& m = task_.model;
    call_.batch = task_.recipe.batch;
    call_.heads_q = call_.heads_kv = m.heads;
    call_.dim_qk = call_.dim_v = m.head_dim;
    call_.len_q = call_.len_kv = m.context;
    call_.flags = FOVEA_FLAG_CAUSAL;
    call_.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    const FoveaStrides side_by_side{int64_t(m.context) * m.width(), m.head_dim, m.width()};
    call_.q_strides = call_.k_strides = call_.v_strides = call_.o_strides = side_by_side;
    FoveaAttentionBackwardDesc back = attention_backward();
    back.do_strides = back.dq_strides = back.dk_strides = back.dv_strides = side_by_side;
    Result<Plan> attention = plan_attention(device_->properties(), call_);
    if (!attention) return attention.error();
    attention_ = std::move(*attention);
    Result<Plan> backward = plan_attention_backward(device_->properties(), call_, back);
    if (!backward) return backward.error();
    attention_backward_ = std::move(*backward);

    const struct {
        std::optional<LinearLayer>& layer;
        uint32_t n_out;
        bool has_bias;
    } linear[] = {
        {biased_, m.width(), m.query_key_bias}, {square_, m.width(), false}, {unembed_, m.vocabulary, false}};
    for (const auto& l : linear) {
        Result<LinearLayer> layer = LinearLayer::open(*device_, m.width(), l.n_out, rows(), l.has_bias);
        if (!layer) return layer.error();
        l.layer.emplace(std::move(*layer));
    }
    if (m.positions != Positions::rotary) return {};

    FoveaRopeDesc rope = foveaRopeDesc();
    rope.batch = task_.recipe.batch;
    rope.heads = m.heads;
    rope.dim = m.head_dim;
    rope.len = m.context;
    rope.x_strides = rope.y_strides = side_by_side;
    Result<Plan> turn = plan_rope(device_->properties(), rope);
    if (!turn) return turn.error();
    rope_ = std::move(*turn);
    Rope angles;
    angles.theta = m.rope_theta;
    const RopeTables tables = rope_tables(angles, m.context, m.head_dim);
    for (uint32_t b = 0; b < task_.recipe.batch; ++b) {  // the same in every sequence
        cosines_.insert(cosines_.end(), tables.cos.values.begin(), tables.cos.values.end());
        sines_.insert(sines_.end(), tables.sin.values.begin(), tables.sin.values.end());
    }
    for (const float sine : sines_) minus_sines_.push_back(-sine);
    return {};
}

void Trainer::Impl::make_steps() {
    Block& block = block_of_all_;
    AttentionPart& a = block.attention;
    block.residual = true;
    if (task_.model.layer_norm) block.attention_norm.kind = NormKind::layer;
    if (rope_) a.rope.emplace();
    for (Linear* layer : {&a.query, &a.key, &a.value, &a.output})
        layer->weight.shape = {task_.model.width(), task_.model.width()};
    steps_ = block_steps(block);
}

Result<void> Trainer::Impl::rotate(const Plan& plan, const std::vector<float>& sines, std::vector<float>& x) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = bindings[FOVEA_BIND_Y] = buffer_of(x);
    bindings[FOVEA_BIND_COS] = buffer_of(cosines_);
    bindings[FOVEA_BIND_SIN] = buffer_of(sines);
    return device_->run(plan, bindings);
}

Result<void> Trainer::Impl::norm(const Norm&, uint32_t, Role, Role) {
    const LayerOffsets& at_layer = offsets_.layers[now_.layer];
    LayerMemory& layer = memory_[now_.layer];
    layer.norm->forward(stream_.data(), now_.weights + at_layer.norm_weight,
                        now_.weights + at_layer.norm_bias, layer.input.data());
    return {};
}

Result<void> Trainer::Impl::linear(std::span<const Product> products, Role from) {
    const LayerOffsets& at_layer = offsets_.layers[now_.layer];
    LayerMemory& layer = memory_[now_.layer];
    if (from == stream) layer.input = stream_;
    const float* const x = from == context ? layer.context.data() : layer.input.data();
    for (const Product& one : products) {
        const auto [matrix, weight, bias, to] =
            one.to == queries  ? std::tuple{&biased_, at_layer.query, at_layer.query_bias, &layer.q}
            : one.to == keys   ? std::tuple{&biased_, at_layer.key, at_layer.key_bias, &layer.k}
            : one.to == values ? std::tuple{&square_, at_layer.value, kAbsent, &layer.v}
                               : std::tuple{&square_, at_layer.output, kAbsent, &part_};
        if (Result<void> r = (*matrix)->forward(x, now_.weights + weight, at(now_.weights, bias), to->data());
            !r)
            return r;
    }
    return {};
}

Result<void> Trainer::Impl::rotate(const Rope&, uint32_t, Role role) {
    LayerMemory& layer = memory_[now_.layer];
    return rotate(rope_, sines_, role == queries ? layer.q : layer.k);
}

Result<void> Trainer::Impl::attend(const AttentionPart&) {
    const TaskModel& m = task_.model;
    LayerMemory& layer = memory_[now_.layer];
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = buffer_of(layer.q);
    bindings[FOVEA_BIND_K] = buffer_of(layer.k);
    bindings[FOVEA_BIND_V] = buffer_of(layer.v);
    bindings[FOVEA_BIND_O] = buffer_of(layer.context);
    bindings[FOVEA_BIND_LSE] = buffer_of(layer.lse);
    if (Result<void> r = device_->run(attention_, bindings); !r) return r;
    for (uint32_t head = 0; head < m.heads; ++head) {
        if (!(now_.heads_off >> (now_.layer * m.heads + head) & 1)) continue;
        for (uint64_t row = 0; row < rows(); ++row)
            std::fill_n(&layer.context[row * m.width() + head * m.head_dim], m.head_dim, 0.0f);
    }
    return {};
}

Result<void> Trainer::Impl::add(Role, const Norm*, Role) {
    fovea::add(part_, stream_);
    return {};
}

Result<void> Trainer::Impl::forward(const float* weights, const Batch& batch, uint64_t heads_off) {
    const TaskModel& m = task_.model;
    const uint32_t width = m.width();
    for (uint64_t row = 0; row < rows(); ++row)
        std::copy_n(weights + offsets_.embedding + size_t(batch.tokens[row]) * width, width,
                    &stream_[row * width]);
    if (m.positions == Positions::learned)
        for (uint64_t row = 0; row < rows(); ++row)
            for (uint32_t n = 0; n < width; ++n)
                stream_[row * width + n] += weights[offsets_.positions + (row % m.context) * width + n];
    for (uint32_t n = 0; n < m.layers; ++n) {
        now_ = {weights, n, heads_off};
        if (Result<void> r = walk(block_of_all_, steps_); !r) return r;
    }
    if (final_norm_)
        final_norm_->forward(stream_.data(), weights + offsets_.final_weight, weights + offsets_.final_bias,
                             final_.data());
    else
        final_ = stream_;
    return unembed_->forward(final_.data(), weights + offsets_.unembedding, nullptr, logits_.data());
}

// Gradients of one projection's weights, and what it sends back to its input, added to d_input_.
Result<void> Trainer::Impl::project_back(LinearLayer& layer, const std::vector<float>& input,
                                         const float* weights, size_t weight, size_t bias,
                                         const std::vector<float>& upstream) {
    Result<void> r =
        layer.weight_gradient(input.data(), upstream.data(), gradient_at(weight), gradient_at(bias));
    if (r) r = layer.input_gradient(upstream.data(), weights + weight, part_.data());
    if (r) fovea::add(part_, d_input_);
    return r;
}

Result<void> Trainer::Impl::layer_backward(const float* weights, uint32_t n) {
    const LayerOffsets& at_layer = offsets_.layers[n];
    LayerMemory& layer = memory_[n];
    Result<void> r = square_->weight_gradient(layer.context.data(), upstream_.data(),
                                              gradient_at(at_layer.output), nullptr);
    if (r) r = square_->input_gradient(upstream_.data(), weights + at_layer.output, d_context_.data());
    if (!r) return r;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_Q] = buffer_of(layer.q);
    bindings[FOVEA_BIND_K] = buffer_of(layer.k);
    bindings[FOVEA_BIND_V] = buffer_of(layer.v);
    bindings[FOVEA_BIND_O] = buffer_of(layer.context);
    bindings[FOVEA_BIND_LSE] = buffer_of(layer.lse);
    bindings[FOVEA_BIND_DO] = buffer_of(d_context_);
    bindings[FOVEA_BIND_DQ] = buffer_of(d_q_);
    bindings[FOVEA_BIND_DK] = buffer_of(d_k_);
    bindings[FOVEA_BIND_DV] = buffer_of(d_v_);
    r = device_->run(attention_backward_, bindings);
    // Turned back by the same angles.
    if (r && rope_) r = rotate(rope_, minus_sines_, d_q_);
    if (r && rope_) r = rotate(rope_, minus_sines_, d_k_);
    std::fill(d_input_.begin(), d_input_.end(), 0.0f);
    if (r) r = project_back(*biased_, layer.input, weights, at_layer.query, at_layer.query_bias, d_q_);
    if (r) r = project_back(*biased_, layer.input, weights, at_layer.key, at_layer.key_bias, d_k_);
    if (r) r = project_back(*square_, layer.input, weights, at_layer.value, kAbsent, d_v_);
    if (!r) return r;
    if (layer.norm)
        layer.norm->backward(d_input_.data(), weights + at_layer.norm_weight, upstream_.data(),
                             gradient_at(at_layer.norm_weight), gradient_at(at_layer.norm_bias));
    else
        fovea::add(d_input_, upstream_);
    return {};
}

Result<void> Trainer::Impl::backward(const float* weights, const Batch& batch) {
    const TaskModel& m = task_.model;
    const uint32_t width = m.width();
    Result<void> r =
        unembed_->weight_gradient(final_.data(), logits_.data(), gradient_at(offsets_.unembedding), nullptr);
    if (r) r = unembed_->input_gradient(logits_.data(), weights + offsets_.unembedding, d_input_.data());
    if (!r) return r;
    if (final_norm_) {
        std::fill(upstream_.begin(), upstream_.end(), 0.0f);
        final_norm_->backward(d_input_.data(), weights + offsets_.final_weight, upstream_.data(),
                              gradient_at(offsets_.final_weight), gradient_at(offsets_.final_bias));
    } else {
        upstream_ = d_input_;
    }
    for (uint32_t n = m.layers; n-- > 0;)
        if (r = layer_backward(weights, n); !r) return r;
    float* d_embedding = gradient_at(offsets_.embedding);
    std::fill_n(d_embedding, size_t(m.vocabulary) * width, 0.0f);
    float* d_positions = gradient_at(offsets_.positions);
    if (d_positions) std::fill_n(d_positions, size_t(m.context) * width, 0.0f);
    for (uint64_t row = 0; row < rows(); ++row) {
        const float* up = &upstream_[row * width];
        float* token = d_embedding + size_t(batch.tokens[row]) * width;
        for (uint32_t n = 0; n < width; ++n) token[n] += up[n];
        if (!d_positions) continue;
        float* place = d_positions + (row % m.context) * width;
        for (uint32_t n = 0; n < width; ++n) place[n] += up[n];
    }
    return {};
}

Result<void> Trainer::Impl::check(const TrainState& state) const {
    if (!(state.options == task_.options))
        return Error{FOVEA_INVALID_ARGUMENT, "state.options",
                     "state.options differ from those of the trainer's task, " +
                         std::string(task_name(task_.options.kind)) + "; they must be the same"};
    for (const std::vector<float>* one : {&state.weights, &state.mean, &state.square})
        if (one->size() != offsets_.count)
            return Error{FOVEA_INVALID_ARGUMENT, "state.weights",
                         "state.weights, mean and square have " + std::to_string(one->size()) +
                             " elements; the task's model has " + std::to_string(offsets_.count)};
    return {};
}

Result<void> Trainer::Impl::check_data() const {
    if (task_.options.kind != TaskKind::text || (task_.text && task_.text->has_text())) return {};
    return Error{FOVEA_INVALID_ARGUMENT, "task.text",
                 "task.text has only a vocabulary; training needs the text that it was learned from"};
}

void Trainer::Impl::add_scores_of(const Batch& batch) {
    const TaskModel& m = task_.model;
    for (uint32_t n = 0; n < m.layers; ++n)
        add_scores(m, batch, layer_weights(n), std::span(score_sums_).subspan(size_t(n) * m.heads, m.heads));
}

StepReport Trainer::Impl::report(const LossReport& loss, uint32_t step,
                                 const std::array<double, kHeadScores>& rows) const {
    StepReport result;
    result.step = step;
    result.objective = loss.objective;
    result.loss = loss.loss;
    result.accuracy = loss.accuracy;
    for (const auto& sums : score_sums_) {
        HeadScores scores;
        for (size_t n = 0; n < kHeadScores; ++n)
            scores[n] = float(sums[n] / rows[n]);  // 0 / 0: no such score
        result.heads.push_back(scores);
    }
    return result;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;
const Task& Trainer::task() const { return impl_->task_; }

Result<Trainer> Trainer::open(const Task& task, Runner* device) {
    Result<std::unique_ptr<Impl>> impl = Impl::open(task, device);
    if (!impl) return impl.error();
    return Trainer(std::move(*impl));
}

Result<StepReport> Trainer::step(TrainState& state) {
    Impl& t = *impl_;
    if (Result<void> r = t.check(state); !r) return r.error();
    if (Result<void> r = t.check_data(); !r) return r.error();
    const Batch batch = training_batch(t.task_, state.seed, state.step);
    if (Result<void> r = t.forward(state.weights.data(), batch, 0); !r) return r.error();
    t.clear_scores();
    t.add_scores_of(batch);
    const LossReport loss =
        cross_entropy(batch, t.task_.model.vocabulary, t.logits_.data(), t.logits_.data(), nullptr, nullptr);
    std::array<double, kHeadScores> rows;
    std::copy(batch.score_rows.begin(), batch.score_rows.end(), rows.begin());
    const StepReport report = t.report(loss, state.step, rows);
    if (Result<void> r = t.backward(state.weights.data(), batch); !r) return r.error();
    if (!std::isfinite(loss.objective) || !adam_step(t.task_.recipe, t.gradient_, state))
        return Error{FOVEA_INVALID_ARGUMENT, "state.weights",
                     "the loss or a gradient of step " + std::to_string(state.step) +
                         " is not finite; the state is unchanged"};
    return report;
}

Result<std::vector<float>> Trainer::gradient(const TrainState& state) {
    Impl& t = *impl_;
    if (Result<void> r = t.check(state); !r) return r.error();
    if (Result<void> r = t.check_data(); !r) return r.error();
    const Batch batch = training_batch(t.task_, state.seed, state.step);
    if (Result<void> r = t.forward(state.weights.data(), batch, 0); !r) return r.error();
    cross_entropy(batch, t.task_.model.vocabulary, t.logits_.data(), t.logits_.data(), nullptr, nullptr);
    if (Result<void> r = t.backward(state.weights.data(), batch); !r) return r.error();
    return t.gradient_;
}

Result<StepReport> Trainer::evaluate(const TrainState& state, const ForwardOptions& options) {
    Impl& t = *impl_;
    if (Result<void> r = t.check(state); !r) return r.error();
    if (Result<void> r = t.check_data(); !r) return r.error();
    t.clear_scores();
    LossReport sum;
    double scored = 0;
    std::array<double, kHeadScores> rows{};
    for (uint32_t part = 0; part < kHeldOutBatches; ++part) {
        const Batch batch = held_out_batch(t.task_, part);
        if (Result<void> r = t.forward(state.weights.data(), batch, options.heads_off); !r) return r.error();
        t.add_scores_of(batch);
        for (size_t n = 0; n < kHeadScores; ++n) rows[n] += batch.score_rows[n];
        const LossReport loss =
            cross_entropy(batch, t.task_.model.vocabulary, t.logits_.data(), nullptr, nullptr, nullptr);
        const double count = double(std::count(batch.scored.begin(), batch.scored.end(), uint8_t{1}));
        sum.objective += loss.objective / kHeldOutBatches;
        sum.loss += loss.loss * count;
        sum.accuracy += loss.accuracy * count;
        scored += count;
    }
    sum.loss /= scored;
    sum.accuracy /= scored;
    return t.report(sum, state.step, rows);
}

Result<Probe> Trainer::probe(const TrainState& state, std::span<const uint32_t> tokens,
                             const ForwardOptions& options) {
    Impl& t = *impl_;
    const TaskModel& m = t.task_.model;
    if (Result<void> r = t.check(state); !r) return r.error();
    const Result<Batch> batch = probe_batch(t.task_, tokens);
    if (!batch) return batch.error();
    if (Result<void> r = t.forward(state.weights.data(), *batch, options.heads_off); !r) return r.error();
    std::vector<float> probabilities(t.logits_.size());
    std::vector<uint32_t> said(batch->tokens.size());
    const LossReport loss =
        cross_entropy(*batch, m.vocabulary, t.logits_.data(), nullptr, probabilities.data(), said.data());
    t.clear_scores();
    t.add_scores_of(*batch);
    std::array<double, kHeadScores> rows;
    std::copy(batch->score_rows.begin(), batch->score_rows.end(), rows.begin());

    Probe probe;
    probe.length = static_cast<uint32_t>(tokens.size());
    probe.vocabulary = m.vocabulary;
    probe.heads = m.layers * m.heads;
    probe.accuracy = loss.accuracy;
    probe.loss = loss.loss;
    probe.scores = t.report(loss, state.step, rows).heads;
    probabilities.resize(size_t(probe.length) * m.vocabulary);
    said.resize(probe.length);
    probe.probabilities = std::move(probabilities);
    probe.said = std::move(said);
    for (uint32_t n = 0; n < m.layers; ++n)
        for (uint32_t head = 0; head < m.heads; ++head)
            for (uint32_t i = 0; i < probe.length; ++i)
                for (uint32_t j = 0; j < probe.length; ++j)
                    probe.weights.push_back(j > i ? 0 : weight_of(m, t.layer_weights(n), 0, head, i, j));
    return probe;
}

Result<StepReport> train_step(TrainState& state) {
    const Result<Task> task = make_task(state.options);
    if (!task) return task.error();
    Result<Trainer> trainer = Trainer::open(*task);
    if (!trainer) return trainer.error();
    return trainer->step(state);
}

}  // namespace fovea
