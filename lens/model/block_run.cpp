#include "model/block_run.hpp"

#include <fovea/model/strict.hpp>

namespace fovea {

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

Result<void> run_linears(Runner& engine, const F32Tensor& x, std::span<const LinearProduct> products) {
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
