// Carries a result's gradient back to what wrote, and splits what heads and feed-forward parts wrote by what
// they read.
#include <fovea/inspect/derivation.hpp>

#include "writer_steps.hpp"

namespace fovea::writing {

void FrozenNorm::apply_back(std::span<double> gradient) const {
    double mean = 0;
    for (size_t c = 0; c < gradient.size(); ++c) mean += gradient[c] *= gains[c];
    mean /= double(gradient.size());
    if (centred)
        for (double& value : gradient) value -= mean;
}

Result<std::vector<double>> back_through(const Linear& layer, uint64_t first,
                                         std::span<const double> outputs) {
    std::vector<double> made(layer.d_in());
    if (!layer.stored && layer.layout == WeightLayout::in_out) {
        for (size_t c = 0; c < made.size(); ++c)
            made[c] = dot(outputs.data(), &layer.weight.values[c * layer.d_out() + first], outputs.size());
        return made;
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
        const Result<std::vector<float>> row = weights_of_output(layer, first + o);
        if (!row) return row.error();
        for (size_t c = 0; c < made.size(); ++c) made[c] += outputs[o] * double((*row)[c]);
    }
    return made;
}

// Keeps the values that a layer's heads read, and by what weights the sides' rows read them.
Result<void> WriterSteps::keep_read(Trace& trace, uint32_t n, Layer& layer) const {
    for (uint32_t h = 0; h < layer.kv_heads; ++h) {
        Result<F32Tensor> made = trace.stage(StageId::values, h, n);
        if (!made) return made.error();
        layer.values.push_back(std::move(*made));
    }
    const std::vector<TraceStage> stages = trace.stages(n);
    const auto has_stage = [&](StageId id) {
        return std::ranges::any_of(stages, [&](const TraceStage& one) { return one.id == id; });
    };
    // The engine's call does not know masks that apply after the softmax.
    const bool after = has_stage(StageId::masked_weights);
    const StageId last = has_stage(StageId::dropped) ? StageId::dropped : StageId::weights;
    const Result<PreparedAttention> call = trace.prepare(n);
    if (!call) return call.error();
    for (const Side& side : sides_)
        for (uint32_t h = 0; h < layer.heads; ++h) {
            std::vector<float>& row = layer.weights.emplace_back();
            if (after) {
                const Result<F32Tensor> all = trace.stage(last, h, n);
                if (!all) return all.error();
                row.assign(all->row(side.row).begin(), all->row(side.row).end());
                continue;
            }
            Result<std::vector<float>> made =
                row_weights(call->call, call->bindings().data(), {0, h, side.row, 0});
            if (!made) return made.error();
            row = std::move(*made);
        }
    return {};
}

Result<std::vector<double>> WriterSteps::predict(const Model& ends, uint32_t token) {
    using Kind = Side::Step::Kind;
    biases_are_of({.kind = Writer::Kind::reader_bias});
    reading_ = true;
    if (ends.final_norm.kind != NormKind::none)
        if (Result<void> r = norm(ends.final_norm, 0, stream, stream); !r) return r.error();
    const PredictionHead& head = ends.prediction;
    if (is_present(head.dense)) {
        const uint64_t width = head.dense.d_out();
        if (Result<void> r = multiply(head.dense, stream, part, 0, width); !r) return r.error();
        for (Side& side : sides_) {
            Row& row = side.rooms[part];
            const std::vector<double> before = row.sum();
            F32Tensor after({1, width}, {before.begin(), before.end()});
            fovea::activate(head.activation, after.values);
            FrozenNorm gain{false, std::vector<double>(width)};
            for (size_t c = 0; c < width; ++c)
                gain.gains[c] = before[c] == 0 ? 0.0 : double(after.values[c]) / before[c];
            for (Part& one : row.parts) gain.apply(one.values);
            side.steps.push_back({.kind = Kind::project, .from = stream, .to = part, .layer = &head.dense});
            side.steps.push_back({.kind = Kind::norm, .from = part, .to = part, .norm = std::move(gain)});
        }
        if (head.norm.kind != NormKind::none)
            if (Result<void> r = norm(head.norm, 0, part, part); !r) return r.error();
    } else if (Result<void> r = copy(stream, part); !r) {
        return r.error();
    }
    const Result<std::vector<float>> row = weights_of_output(ends.unembedding, token);
    if (!row) return row.error();
    prediction_.assign(row->begin(), row->end());
    if (ends.unembedding.has_bias()) bias_writer();
    std::vector<double> logit(writers.size());
    for (const Part& one : sides_.front().rooms[part].parts)
        logit[one.writer] = dot(one.values.data(), &prediction_[one.first], one.values.size());
    if (ends.unembedding.has_bias()) logit[bias_writer()] += double(ends.unembedding.bias.values[token]);
    return logit;
}

// `gradient`: of the part that the layer's heads wrote together.
Result<void> WriterSteps::add_heads(const Layer& of, const Linear& output, size_t side,
                                    std::span<const double> gradient, std::vector<WriterShares>& to) const {
    std::vector<double> read(gradient.begin(), gradient.end());
    if (is_present(output)) {
        Result<std::vector<double>> made = back_through(output, 0, gradient);
        if (!made) return made.error();
        read = std::move(*made);
    }
    const size_t width = read.size() / of.heads, tokens = of.values[0].rows();
    for (uint32_t h = 0; h < of.heads; ++h) {
        WriterShares& one = to.emplace_back(WriterShares{of.first_writer + h, {}});
        const auto is_patch = [&](const HeadPatch& patch) {
            return patch.layer == of.layer && patch.head == h;
        };
        if (changes_ && std::ranges::any_of(changes_->patches, is_patch)) continue;
        const double scale = changes_ ? double(changes_->scale_of(of.layer, h)) : 1.0;
        const F32Tensor& sources = of.values[h / (of.heads / of.kv_heads)];
        const std::vector<float>& weights = of.weights[side * of.heads + h];
        for (size_t j = 0; j < tokens; ++j)
            one.values.push_back(weights[j] == 0 || scale == 0
                                     ? 0.0
                                     : scale * double(weights[j]) *
                                           dot(&read[h * width], sources.row(j).data(), width));
    }
    return {};
}

Result<std::vector<WriterShares>> WriterSteps::shares(Gradient from, const LayerWeights& weights) const {
    using Kind = Side::Step::Kind;
    const Side& side = sides_[from.side];
    std::array<std::vector<double>, role_count> gradients;
    gradients[from.role] = std::move(from.values);
    std::vector<WriterShares> made;
    for (size_t s = side.steps.size(); s-- > 0;) {
        const Side::Step& step = side.steps[s];
        std::vector<double>& gradient = gradients[step.to];
        if (gradient.empty()) continue;
        const Layer* const layer = step.block < layers_.size() ? &layers_[step.block] : nullptr;
        switch (step.kind) {
            case Kind::norm:
                step.norm.apply_back(gradient);
                break;
            case Kind::project: {
                Result<std::vector<double>> inputs = back_through(*step.layer, step.first, gradient);
                if (!inputs) return inputs.error();
                gradient = std::move(*inputs);
                break;
            }
            case Kind::rotate:
                for (size_t n = 0, pairs = step.angles.cos.values.size(); n < pairs; ++n) {
                    const double cos = double(step.angles.cos.values[n]);
                    const double sin = double(step.angles.sin.values[n]);
                    double& a = gradient[step.interleaved ? 2 * n : n];
                    double& b = gradient[step.interleaved ? 2 * n + 1 : n + pairs];
                    const double from_a = a;
                    a = cos * from_a + sin * b;
                    b = cos * b - sin * from_a;
                }
                break;
            case Kind::copy:
                break;
            case Kind::add:
                gradients[step.from] = gradient;
                continue;
            case Kind::heads: {
                const Result<Linear> output = weights(layer->layer, false);
                if (!output) return output.error();
                if (Result<void> r = add_heads(*layer, *output, from.side, gradient, made); !r)
                    return r.error();
                continue;
            }
            case Kind::neurons: {
                if (keep_ != Keep::sources_and_neurons) continue;
                const Result<Linear> down = weights(layer->layer, true);
                if (!down) return down.error();
                Result<std::vector<double>> read = back_through(*down, 0, gradient);
                if (!read) return read.error();
                for (size_t c = 0; c < read->size(); ++c) (*read)[c] *= double(layer->hidden[from.side][c]);
                made.push_back({layer->first_writer + layer->heads, std::move(*read)});
                continue;
            }
        }
        if (step.from == step.to) continue;
        gradients[step.from] = std::move(gradient);
        gradient.clear();
    }
    std::ranges::sort(made, {}, &WriterShares::writer);
    return made;
}

}  // namespace fovea::writing
