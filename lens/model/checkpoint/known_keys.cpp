// Keys of config.json and of GGUF files that can change what a model computes: those that nothing here
// computes are errors, and so is a key after a GGUF file's architecture that is in no list.
#include <algorithm>

#include "model/checkpoint/config_reader.hpp"

namespace fovea {
namespace {

bool is_listed(std::string_view name, std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// ---- GGUF: keys without the architecture ----

// Keys that are read (checkpoint_config.cpp, rope_config.cpp).
constexpr std::string_view kGgufRead[] = {"attention.causal",
                                          "attention.head_count",
                                          "attention.head_count_kv",
                                          "attention.key_length",
                                          "attention.layer_norm_epsilon",
                                          "attention.layer_norm_rms_epsilon",
                                          "attention.sliding_window",
                                          "attention.sliding_window_pattern",
                                          "attention.value_length",
                                          "attn_logit_softcapping",
                                          "block_count",
                                          "context_length",
                                          "embedding_length",
                                          "feed_forward_length",
                                          "final_logit_softcapping",
                                          "hidden_activation",
                                          "rope.dimension_count",
                                          "rope.freq_base",
                                          "rope.freq_base_swa",
                                          "rope.global.freq_base",
                                          "rope.local.freq_base",
                                          "rope.scale_linear",
                                          "rope.scaling.attn_factor",
                                          "rope.scaling.factor",
                                          "rope.scaling.original_context_length",
                                          "rope.scaling.type",
                                          "rope.scaling.yarn_attn_factor",
                                          "rope.scaling.yarn_beta_fast",
                                          "rope.scaling.yarn_beta_slow",
                                          "rope.scaling.yarn_ext_factor",
                                          "rope.scaling.yarn_log_multiplier",
                                          "use_parallel_residual"};
// Keys that change nothing that is computed here: sizes that the tensors tell, notes, and what embeddings go
// through after the model. Those that end in a point are the beginnings of keys of another part.
constexpr std::string_view kGgufNeutral[] = {"classifier.output_labels",
                                             "dense_2_feat_in",
                                             "dense_2_feat_out",
                                             "dense_3_feat_in",
                                             "dense_3_feat_out",
                                             "embedding_length_out",
                                             "mm.",
                                             "pooling_type",
                                             "rope.scaling.finetuned",
                                             "tensor_data_layout",
                                             "token_type_count",
                                             "vision.",
                                             "vocab_size"};
// Keys of parts that some models of an architecture have, and the number that says that there is none.
struct OffKey {
    std::string_view name;
    double off;
};
constexpr OffKey kGgufOff[] = {{"attention.clamp_kqv", 0},
                               {"attention.max_alibi_bias", 0},
                               {"attention.output_scale", 1},
                               {"attention.scale", 0},
                               {"attention.shared_kv_layers", 0},
                               {"attention.temperature_length", 0},
                               {"attention.temperature_scale", 0},
                               {"attention.value_scale", 1},
                               {"embedding_length_per_layer_input", 0},
                               {"embedding_scale", 1},
                               {"leading_dense_block_count", 0},
                               {"logit_scale", 1},
                               {"nextn_predict_layers", 0},
                               {"residual_scale", 1},
                               {"rope.scaling.alpha", 0}};

std::string text_of(const GgufValue& value) {
    if (const auto text = value.text()) return "'" + printable_name(*text, 40) + "'";
    if (const auto truth = value.truth()) return *truth ? "true" : "false";
    const auto number = value.number();
    return number ? json_number(*number) : "a list";
}

void check_gguf(ConfigReader& s) {
    if (const GgufValue* type = s.gguf().find("general.type");
        type && type->text().value_or("model") != "model" && !type->text()->empty())
        s.fail(unknown_setting("general.type", "the file holds a " + printable_name(*type->text(), 40) +
                                                   ", not a model (general.type)"));
    const std::string prefix = s.architecture() + ".";
    for (const GgufValue& value : s.gguf().metadata) {
        const std::string name = printable_name(value.key, 80);
        if (value.key.starts_with("adapter."))
            s.fail(unknown_setting(name, "the file holds an adapter for another model (" + name + ")"));
        if (!value.key.starts_with(prefix)) continue;
        const std::string_view key = value.key.substr(prefix.size());
        const auto neutral = std::find_if(
            std::begin(kGgufNeutral), std::end(kGgufNeutral),
            [&](std::string_view one) { return one.ends_with('.') ? key.starts_with(one) : key == one; });
        if (is_listed(key, kGgufRead) || neutral != std::end(kGgufNeutral)) continue;
        if (key.starts_with("expert")) {
            if (value.number().value_or(1) != 0)
                s.fail(unknown_setting(name, "mixture-of-experts models are not supported (" + name + " is " +
                                                 text_of(value) + ")"));
            continue;
        }
        const auto* const off = std::find_if(std::begin(kGgufOff), std::end(kGgufOff),
                                             [&](const OffKey& one) { return one.name == key; });
        if (off != std::end(kGgufOff) && value.number() == off->off) continue;
        s.fail(unknown_setting(name, name + " is " + text_of(value) +
                                         ", which is not supported and may change what the model computes"));
    }
}

// ---- config.json ----

// Keys that a configuration class of transformers has for parts that are not computed here. `off` is the
// number without the part; false, null and empty lists are without it for all.
constexpr OffKey kJsonOff[] = {{"add_cross_attention", 0},
                               {"alibi", 0},
                               {"attention_chunk_size", 0},
                               {"attention_multiplier", 1},
                               {"attn_temperature_tuning", 0},
                               {"clip_qkv", 0},
                               {"embedding_multiplier", 1},
                               {"is_encoder_decoder", 0},
                               {"logit_scale", 1},
                               {"logits_scaling", 1},
                               {"mlp_multipliers", 0},
                               {"no_rope_layer_interval", 0},
                               {"num_nextn_predict_layers", 0},
                               {"qk_layernorm", 0},
                               {"residual_multiplier", 1},
                               {"rope_interleave", 0},
                               {"rope_interleaved", 0},
                               {"use_alibi", 0},
                               {"use_bidirectional_attention", 0},
                               {"use_qk_norm", 0}};
constexpr std::string_view kExperts[] = {"num_local_experts", "num_experts", "n_routed_experts",
                                         "moe_num_experts", "num_moe_experts"};
// Keys of Gemma, and of families with windows.
constexpr std::string_view kGemmaOnly[] = {"attn_logit_softcapping", "final_logit_softcapping",
                                           "query_pre_attn_scalar"};

bool is_off(const JsonValue& value, double off) {
    switch (value.kind()) {
        case JsonValue::Kind::null:
            return true;
        case JsonValue::Kind::boolean:
            return !value.boolean();
        case JsonValue::Kind::number:
            return value.number() == off;
        case JsonValue::Kind::text:
            return value.text().empty();
        case JsonValue::Kind::array:
            return value.items().empty();
        case JsonValue::Kind::object:
            return value.members().empty();
    }
    return false;
}

std::string text_of(const JsonValue& value) {
    const std::string_view text = value.scalar_text();
    return text.empty() ? "set" : printable_name(text, 40);
}

void check_json(const Family& family, const Checkpoint& files, ConfigReader& s) {
    const auto refuse = [&](std::string_view key, const JsonValue& value) {
        s.fail(unknown_setting(std::string(key), std::string(key) + " is " + text_of(value) +
                                                     ", which is not supported for a " +
                                                     std::string(family.name) + " model"));
    };
    for (const JsonValue& config : {files.config, s.json()})
        for (const char* key : {"quantization_config", "compression_config"}) {
            const JsonValue quantised = config[key];
            if (quantised.kind() == JsonValue::Kind::null) continue;
            const std::string method = printable_name(quantised["quant_method"].text(), 40);
            s.fail(unknown_setting(key, "the weights are quantised" +
                                            (method.empty() ? "" : " by " + method) + " (" + key +
                                            "), which is not supported; give the model without it, or a "
                                            "GGUF file"));
        }
    for (const std::string_view key : kExperts)
        if (const JsonValue value = s.json()[key]; !is_off(value, 0))
            s.fail(unknown_setting(std::string(key), "mixture-of-experts models are not supported"));
    for (const OffKey& key : kJsonOff)
        if (const JsonValue value = s.json()[key.name]; !is_off(value, key.off)) refuse(key.name, value);
    if (!family.scale_by_width)
        for (const std::string_view key : kGemmaOnly)
            if (const JsonValue value = s.json()[key]; !is_off(value, 0)) refuse(key, value);
    // Layers without rotary positions, as 0.
    for (const JsonValue& layer : s.json()["no_rope_layers"].items())
        if (layer.number() != 1) refuse("no_rope_layers", layer);
    if (family.window != WindowRule::none) return;
    for (const JsonValue& type : s.json()["layer_types"].items())
        if (type.text() != "full_attention") refuse("layer_types", type);
    // A window as long as the longest text changes nothing.
    const JsonValue window = s.json()["sliding_window"], used = s.json()["use_sliding_window"];
    const JsonValue longest = s.json()["max_position_embeddings"];
    const bool unused = used.kind() == JsonValue::Kind::boolean && !used.boolean();
    if (!is_off(window, 0) && !unused &&
        !(longest.kind() == JsonValue::Kind::number && window.number() >= longest.number()))
        refuse("sliding_window", window);
}

}  // namespace

void check_keys(const Family& family, const Checkpoint& files, ConfigReader& s) {
    s.is_gguf() ? check_gguf(s) : check_json(family, files, s);
}

}  // namespace fovea
