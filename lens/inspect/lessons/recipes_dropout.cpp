#include <fovea/model/strict.hpp>

#include "inspect/lessons/recipes.hpp"

namespace fovea::recipes {
namespace {

// PyTorch's two ways to draw a mask.
struct Variant {
    const char* suffix;
    void (TorchGenerator::*draw)(std::span<uint8_t>, double);
};
constexpr Variant kVariants[] = {{"_native", &TorchGenerator::keep_mask_native},
                                 {"_mkl", &TorchGenerator::keep_mask_mkl}};

struct Dropped {
    F32Tensor keep, dropped;
};
Dropped dropped_by(const LessonBuilder& builder, const Variant& variant, const F32Tensor& from) {
    const double p = builder.dropout_draw()->drop_probability;
    TorchGenerator generator = builder.dropout_generator();
    std::vector<uint8_t> mask(from.values.size());
    (generator.*variant.draw)(mask, p);
    Dropped out{F32Tensor(from.shape, {mask.begin(), mask.end()}), from};
    for (size_t i = 0; i < mask.size(); ++i) out.dropped.values[i] *= dropout_factor(mask[i], p);
    return out;
}

}  // namespace

void add_dropout_variants(LessonBuilder& builder, const LayerStages& layer, bool with_context) {
    const F32Tensor &weights = layer.at("weights"), &values = layer.at("values");
    for (const Variant& variant : kVariants) {
        const Dropped made = dropped_by(builder, variant, weights);
        const std::string suffix = variant.suffix;
        LayerStages stages;
        stages.push_back({"keep", "keep = 1 where an element is kept", made.keep});
        stages.push_back({"dropped", "dropped = weights * keep / (1 - p)", made.dropped});
        if (with_context)
            stages.push_back({"context", "context = dropped values", strict::product(made.dropped, values)});
        builder.add(std::move(stages), [&](const std::string& name) { return name + suffix; });
    }
}

Result<void> dropout_ones(LessonBuilder& builder) {
    const Draw& draw = *builder.dropout_draw();
    F32Tensor ones(draw.shape);
    for (float& value : ones.values) value = 1.0f;
    builder.add("input", "input = ones" + format_shape(draw.shape), ones);
    for (const Variant& variant : kVariants) {
        auto [keep, dropped] = dropped_by(builder, variant, ones);
        const std::string suffix = variant.suffix;
        builder.add("keep" + suffix, "keep" + suffix + " = 1 where an element is kept", std::move(keep));
        builder.add("dropped" + suffix, "dropped" + suffix + " = input * keep" + suffix + " / (1 - p)",
                    std::move(dropped));
    }
    return {};
}

Result<void> dropout_weights(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(true));
    if (!layer) return layer.error();
    builder.add(*layer, {"masked_scores", "weights"});
    add_dropout_variants(builder, *layer, false);
    return {};
}

Result<void> dropout_causal_weights(LessonBuilder& builder) {
    const Result<LayerStages> layer = builder.layer(builder.input(), builder.self_attention(true));
    if (!layer) return layer.error();
    builder.add(*layer, [](const std::string& name) { return name == "weights" ? "input" : ""; });
    add_dropout_variants(builder, *layer, false);
    return {};
}

}  // namespace fovea::recipes
