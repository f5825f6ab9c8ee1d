#include "model/block_run.hpp"

#include <fovea/model/strict.hpp>

namespace fovea {
namespace {

F32Tensor with_batch(F32Tensor t) {
    Shape shape = t.shape;
    shape.insert(shape.begin(), 1);
    return reshaped(std::move(t), std::move(shape));
}

F32Tensor without_batch(F32Tensor t) {
    Shape shape(t.shape.begin() + 1, t.shape.end());
    return reshaped(std::move(t), std::move(shape));
}

void add(F32Tensor& to, const F32Tensor& x) {
    for (size_t i = 0; i < to.values.size(); ++i) to.values[i] += x.values[i];
}

}  // namespace

Result<void> run_linears(EngineRunner& engine, const F32Tensor& x, std::span<const LinearProduct> products) {
    std::vector<StoredProduct> stored;
    for (const auto& [layer, y] : products) {
        if (layer->stored) {
            stored.push_back({&*layer->stored, &layer->bias, y});
            continue;
        }
        FoveaLinearDesc call{};
        call.struct_size = sizeof call;
        call.n_in = uint32_t(layer->d_in()), call.n_out = uint32_t(layer->d_out());
        call.rows = x.rows();
        call.has_bias = layer->has_bias();
        call.weight_is_in_out = layer->layout == WeightLayout::in_out;
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        const auto bind = [&](FoveaBinding binding, const F32Tensor& t) {
            bindings[binding] = {const_cast<float*>(t.values.data()), t.values.size() * 4};
        };
        bind(FOVEA_BIND_X, x), bind(FOVEA_BIND_WEIGHT, layer->weight), bind(FOVEA_BIND_Y, *y);
        if (layer->has_bias()) bind(FOVEA_BIND_BIAS, layer->bias);
        if (Result<void> r = engine.linear(call, bindings); !r) return r;
    }
    return stored.empty() ? Result<void>{} : engine.stored_linears(stored, x);
}

Result<F32Tensor> run_linear(EngineRunner& engine, const F32Tensor& x, const Linear& layer) {
    F32Tensor y({x.rows(), layer.d_out()});
    const LinearProduct one{&layer, &y};
    if (Result<void> r = run_linears(engine, x, std::span(&one, 1)); !r) return r.error();
    return y;
}

Result<ProjectedHeads> project_heads(const Block& block, const F32Tensor& x, const F32Tensor* memory,
                                     const LinearRun& linear) {
    const AttentionPart& a = block.attention;
    ProjectedHeads out;
    out.normed = block.order == BlockOrder::post ? x : normalised(block.attention_norm, x);
    for (const auto& [layer, count, to] : {std::tuple{&a.query, a.heads, &out.q},
                                           {&a.key, a.kv_heads, &out.k},
                                           {&a.value, a.kv_heads, &out.v}}) {
        const F32Tensor& from = memory && to != &out.q ? *memory : out.normed;
        F32Tensor y = from;
        if (is_present(*layer)) {
            Result<F32Tensor> made = linear(from, *layer);
            if (!made) return made.error();
            y = std::move(*made);
        }
        *to = without_batch(split_heads(with_batch(std::move(y)), count));
    }
    return out;
}

Result<void> place_heads(const AttentionPart& part, uint64_t first, F32Tensor& q, F32Tensor& k) {
    q = normalised(part.query_norm, std::move(q));
    k = normalised(part.key_norm, std::move(k));
    if (!part.rope) return {};
    Rope rope = *part.rope;
    rope.first_position += first;
    for (F32Tensor* t : {&q, &k}) *t = strict::rotated(std::move(*t), rope);
    return {};
}

Result<BlockEnd> finish_block(const Block& b, const F32Tensor* x, const F32Tensor& context,
                              const LinearRun& linear) {
    BlockEnd end;
    const auto through = [&](const Linear& layer, const F32Tensor& from, F32Tensor& y) -> Result<void> {
        Result<F32Tensor> made = linear(from, layer);
        if (!made) return made.error();
        y = std::move(*made);
        return {};
    };
    const bool post = b.order == BlockOrder::post;
    end.output = context;
    if (is_present(b.attention.output))
        if (Result<void> r = through(b.attention.output, context, end.output); !r) return r.error();
    end.sum = normalised(b.attention_output_norm, end.output);
    if (b.residual) add(end.sum, *x);
    if (post) end.sum = normalised(b.attention_norm, std::move(end.sum));
    end.result = end.sum;
    const FeedForward& f = b.feed_forward;
    if (!is_present(f.up)) return end;
    const F32Tensor& from = b.order == BlockOrder::parallel ? *x : end.sum;
    end.ff_normed = post ? from : normalised(b.feed_forward_norm, from);
    if (Result<void> r = through(f.up, end.ff_normed, end.ff_hidden); !r) return r.error();
    if (is_present(f.gate)) {
        F32Tensor gate;
        if (Result<void> r = through(f.gate, end.ff_normed, gate); !r) return r.error();
        activate(f.activation, gate.values);
        for (size_t i = 0; i < gate.values.size(); ++i) end.ff_hidden.values[i] *= gate.values[i];
    } else {
        activate(f.activation, end.ff_hidden.values);
    }
    if (Result<void> r = through(f.down, end.ff_hidden, end.ff_output); !r) return r.error();
    end.result = normalised(b.feed_forward_output_norm, end.ff_output);
    if (b.residual) add(end.result, end.sum);
    if (post) end.result = normalised(b.feed_forward_norm, std::move(end.result));
    return end;
}

Result<F32Tensor> predict(const Model& model, F32Tensor rows, const LinearRun& linear) {
    if (is_present(model.prediction.dense)) {
        Result<F32Tensor> made = linear(rows, model.prediction.dense);
        if (!made) return made;
        activate(model.prediction.activation, made->values);
        rows = normalised(model.prediction.norm, std::move(*made));
    }
    if (!is_present(model.unembedding)) return rows;
    Result<F32Tensor> logits = linear(rows, model.unembedding);
    if (logits) cap_logits(model.logit_softcap, logits->values);
    return logits;
}

}  // namespace fovea
