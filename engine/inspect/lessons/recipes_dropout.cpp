#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

struct Variant {
    const char* suffix;
    Training::Dropout kind;
};
constexpr Variant kVariants[] = {{"_native", Training::Dropout::torch_native},
                                 {"_mkl", Training::Dropout::torch_mkl}};

}  // namespace

Result<void> add_dropout_variants(LessonBuilder& builder, const SelfAttention& layer, bool with_context) {
    const F32Tensor x = builder.input();
    for (const Variant& variant : kVariants) {
        TorchGenerator generator = builder.dropout_generator();
        Training training;
        training.dropout = variant.kind;
        training.generator = &generator;
        LayerTrace trace = LayerTrace::only({"keep", "dropped", "context"});
        if (const auto ok = layer.forward(builder.executor(), x, trace, training); !ok) return ok.error();
        builder.add(trace, [&](const std::string& name) {
            return name == "context" && !with_context ? std::string() : name + variant.suffix;
        });
    }
    return {};
}

Result<void> dropout_ones(LessonBuilder& builder) {
    const Draw& draw = *builder.dropout_draw();
    F32Tensor ones(draw.shape);
    for (float& value : ones.values) value = 1.0f;
    builder.add("input", "input = ones" + format_shape(draw.shape), ones);
    for (const Variant& variant : kVariants) {
        TorchGenerator generator = builder.dropout_generator();
        std::vector<uint8_t> mask(ones.values.size());
        if (variant.kind == Training::Dropout::torch_mkl) {
            generator.keep_mask_mkl(mask, draw.drop_probability);
        } else {
            generator.keep_mask_native(mask, draw.drop_probability);
        }
        F32Tensor keep(draw.shape, {mask.begin(), mask.end()}), dropped = ones;
        for (size_t i = 0; i < mask.size(); ++i) {
            dropped.values[i] *= dropout_factor(mask[i], draw.drop_probability);
        }
        const std::string suffix = variant.suffix;
        builder.add("keep" + suffix, "keep" + suffix + " = 1 where an element is kept", std::move(keep));
        builder.add("dropped" + suffix, "dropped" + suffix + " = input * keep" + suffix + " / (1 - p)",
                    std::move(dropped));
    }
    return {};
}

Result<void> dropout_weights(LessonBuilder& builder) {
    const SelfAttention layer = builder.self_attention(true);
    const F32Tensor x = builder.input();
    LayerTrace trace = LayerTrace::only({"masked_scores", "weights"});
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    builder.add(trace);
    return add_dropout_variants(builder, layer, false);
}

Result<void> dropout_causal_weights(LessonBuilder& builder) {
    const SelfAttention layer = builder.self_attention(true);
    const F32Tensor x = builder.input();
    LayerTrace trace = LayerTrace::only({"weights"});
    if (const auto ok = layer.forward(builder.executor(), x, trace); !ok) return ok.error();
    builder.add(trace, [](const std::string&) { return "input"; });
    return add_dropout_variants(builder, layer, false);
}

}  // namespace fovea::recipes
