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

Result<Linear> widened(Linear layer) {
    if (!layer.stored) return layer;
    layer.weight = F32Tensor(layer.weight.shape);
    if (Result<void> r = read_rows(*layer.stored, 0, layer.weight.values); !r) return r.error();
    layer.stored.reset();
    return layer;
}

Result<std::vector<float>> weights_of_output(const Linear& layer, uint64_t output) {
    const uint64_t count = layer.d_in();
    std::vector<float> row(count);
    if (layer.stored) {
        if (Result<void> r = read_rows(*layer.stored, output, row); !r) return r.error();
        return row;
    }
    const bool by_output = layer.layout == WeightLayout::out_in;
    for (uint64_t c = 0; c < count; ++c)
        row[c] = layer.weight.values[by_output ? output * count + c : c * layer.d_out() + output];
    return row;
}

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

Result<void> BlockLoops::linears(const F32Tensor& x, std::span<const LinearProduct> products) const {
    for (const auto& [layer, y] : products)
        if (engine_) {
            *y = F32Tensor({x.rows(), layer->d_out()});
        } else if (layer->stored) {
            const Result<Linear> plain = widened(*layer);
            if (!plain) return plain.error();
            *y = strict::linear(x, *plain);
        } else {
            *y = strict::linear(x, *layer);
        }
    return engine_ ? run_linears(*engine_, x, products) : Result<void>();
}

Result<F32Tensor> BlockLoops::linear(const F32Tensor& x, const Linear& layer) const {
    F32Tensor y(Shape{0});
    const LinearProduct one{&layer, &y};
    if (Result<void> r = linears(x, std::span(&one, 1)); !r) return r.error();
    return y;
}

Result<ProjectedHeads> project_heads(const Block& block, const F32Tensor& x, const F32Tensor* memory,
                                     const BlockLoops& loops) {
    const AttentionPart& a = block.attention;
    ProjectedHeads out;
    out.normed = block.order == BlockOrder::post ? x : loops.normalised(block.attention_norm, x);
    if (is_present(a.query)) {
        const LinearProduct all[] = {{&a.query, &out.q}, {&a.key, &out.k}, {&a.value, &out.v}};
        const size_t of_x = memory ? 1 : 3;
        if (Result<void> r = loops.linears(out.normed, std::span(all).first(of_x)); !r) return r.error();
        if (memory)
            if (Result<void> r = loops.linears(*memory, std::span(all).subspan(of_x)); !r) return r.error();
    } else {
        out.q = out.normed;
        out.k = out.v = memory ? *memory : out.normed;
    }
    for (const auto& [heads, count] :
         {std::pair{&out.q, a.heads}, {&out.k, a.kv_heads}, {&out.v, a.kv_heads}})
        *heads = without_batch(split_heads(with_batch(std::move(*heads)), count));
    return out;
}

void place_heads(const AttentionPart& part, F32Tensor& q, F32Tensor& k, const BlockLoops& loops) {
    q = loops.normalised(part.query_norm, std::move(q));
    k = loops.normalised(part.key_norm, std::move(k));
    if (part.rope) loops.rotate(q, k, *part.rope);
}

Result<BlockEnd> finish_block(const Block& b, const F32Tensor* x, const F32Tensor& context,
                              const BlockLoops& loops) {
    BlockEnd end;
    const auto through = [&](const Linear& layer, const F32Tensor& from, F32Tensor& y) {
        const LinearProduct one{&layer, &y};
        return loops.linears(from, std::span(&one, 1));
    };
    const bool post = b.order == BlockOrder::post;
    end.output = context;
    if (is_present(b.attention.output))
        if (Result<void> r = through(b.attention.output, context, end.output); !r) return r.error();
    end.sum = loops.normalised(b.attention_output_norm, end.output);
    if (b.residual) add(end.sum, *x);
    if (post) end.sum = loops.normalised(b.attention_norm, std::move(end.sum));
    end.result = end.sum;
    const FeedForward& f = b.feed_forward;
    if (!is_present(f.up)) return end;
    const F32Tensor& from = b.order == BlockOrder::parallel ? *x : end.sum;
    end.ff_normed = post ? from : loops.normalised(b.feed_forward_norm, from);
    const bool gated = is_present(f.gate);
    F32Tensor up;
    const LinearProduct both[] = {{&f.up, gated ? &up : &end.ff_hidden}, {&f.gate, &end.ff_hidden}};
    if (Result<void> r = loops.linears(end.ff_normed, std::span(both).first(gated ? 2 : 1)); !r)
        return r.error();
    loops.activate(f.activation, end.ff_hidden, gated ? &up : nullptr);
    if (Result<void> r = through(f.down, end.ff_hidden, end.ff_output); !r) return r.error();
    end.result = loops.normalised(b.feed_forward_output_norm, end.ff_output);
    if (b.residual) add(end.result, end.sum);
    if (post) end.result = loops.normalised(b.feed_forward_norm, std::move(end.result));
    return end;
}

Result<F32Tensor> predict(const Model& model, F32Tensor rows, const BlockLoops& loops) {
    rows = loops.normalised(model.final_norm, std::move(rows));
    if (is_present(model.prediction.dense)) {
        Result<F32Tensor> made = loops.linear(rows, model.prediction.dense);
        if (!made) return made;
        loops.activate(model.prediction.activation, *made);
        rows = loops.normalised(model.prediction.norm, std::move(*made));
    }
    if (!is_present(model.unembedding)) return rows;
    Result<F32Tensor> logits = loops.linear(rows, model.unembedding);
    if (logits) cap_logits(model.logit_softcap, logits->values);
    return logits;
}

}  // namespace fovea
