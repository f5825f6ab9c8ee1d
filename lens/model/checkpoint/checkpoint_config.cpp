// A model's configuration, from config.json or from a GGUF file's metadata.
#include <algorithm>
#include <cmath>

#include "model/checkpoint/config_reader.hpp"

namespace fovea {

std::optional<Activation> activation_of(std::string_view name) {
    if (name == "gelu" || name == "gelu_python") return Activation::gelu;
    if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast" || name == "gelu_accurate")
        return Activation::gelu_tanh;
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "relu") return Activation::relu;
    return std::nullopt;
}

namespace {

constexpr auto wrong = wrong_setting;
constexpr auto unknown = unknown_setting;

// ---- windows ----

bool windowed_by_rule(WindowRule rule, uint64_t layer, uint64_t first_windowed) {
    switch (rule) {
        case WindowRule::none:
            return false;
        case WindowRule::all:
            return true;
        case WindowRule::even:
            return layer % 2 == 0;
        case WindowRule::five_of_six:
            return layer % 6 != 5;
        case WindowRule::two_of_three:
            return layer % 3 != 0;
        case WindowRule::by_use_sliding:
            return layer >= first_windowed;
    }
    return false;
}

// Window layers by a period, or by a list of all layers.
void read_gguf_pattern(ConfigReader& s, ModelConfig& f) {
    const GgufValue* pattern = s.value("attention.sliding_window_pattern");
    if (!pattern) return;
    const std::string name = s.name_of({}, "attention.sliding_window_pattern");
    const auto list = pattern->numbers();
    const auto period = pattern->whole();
    if (list && list->size() == f.layers)
        for (uint64_t n = 0; n < f.layers; ++n) f.windowed[n] = (*list)[n] != 0;
    else if (period && *period <= kMaxLayers)
        for (uint64_t n = 0; n < f.layers; ++n) f.windowed[n] = *period == 0 || n % *period < *period - 1;
    else
        s.fail(wrong(name, name + " must be a number of layers, or a list with an entry for each of the " +
                               std::to_string(f.layers) + " layers"));
}

void read_gguf_windows(const Family& family, ConfigReader& s, ModelConfig& f) {
    constexpr std::string_view kKey = "attention.sliding_window";
    const GgufValue* given = s.value(kKey);
    // Files without a window have no key or 0; Gemma 2's may leave out the usual one.
    uint64_t keys = given && given->whole() == 0u ? 0 : s.whole({}, kKey, UINT32_MAX);
    if (!given && family.window == WindowRule::even) keys = family.window_keys;
    if (keys == 0 || s.error()) return;
    if (!f.causal)
        return s.fail(unknown(s.name_of({}, kKey),
                              "a sliding window without a causal mask is not supported in GGUF files"));
    if (family.window == WindowRule::by_use_sliding && keys < f.context)
        return s.fail(unknown(s.name_of({}, kKey),
                              s.name_of({}, kKey) + " is " + std::to_string(keys) +
                                  ", which is not supported without the list of layers that have it"));
    f.window = std::min<uint64_t>(keys, 1u << 30) - 1;
    // A Llama file with windows is a Mistral.
    const WindowRule rule = family.window == WindowRule::none ? WindowRule::all : family.window;
    for (uint64_t n = 0; n < f.layers; ++n)
        f.windowed[n] = rule != WindowRule::by_use_sliding && windowed_by_rule(rule, n, 0);
    read_gguf_pattern(s, f);
}

void read_windows(const Family& family, ConfigReader& s, ModelConfig& f) {
    f.windowed.assign(f.layers, false);
    if (s.is_gguf()) return read_gguf_windows(family, s, f);
    if (family.window == WindowRule::none) return;
    const bool listed = s.json().find("sliding_window").has_value();
    uint64_t keys = s.whole({f.causal ? "sliding_window" : "local_attention"}, "", 1u << 30);
    if (keys == 0 && listed && f.causal) return;  // null: none
    if (keys == 0) keys = family.window_keys;
    if (family.window == WindowRule::by_use_sliding && !s.truth({"use_sliding_window"}, false)) return;
    if (keys == 0) return;
    f.window = f.causal ? keys - 1 : keys / 2;
    uint64_t first = 0;
    if (family.window == WindowRule::by_use_sliding)
        first =
            uint64_t(std::clamp(s.number({"max_window_layers"}, "").value_or(28), 0.0, double(kMaxLayers)));
    const auto types = s.member({"layer_types"});
    const uint64_t pattern =
        s.whole({"sliding_window_pattern", "global_attn_every_n_layers"}, "", kMaxLayers);
    for (uint64_t n = 0; n < f.layers && !types && !s.error(); ++n) {
        if (pattern != 0 && family.window == WindowRule::five_of_six) {
            f.windowed[n] = (n + 1) % pattern != 0;
        } else if (pattern != 0 && family.window == WindowRule::two_of_three) {
            f.windowed[n] = n % pattern != 0;
        } else {
            f.windowed[n] = windowed_by_rule(family.window, n, first);
        }
    }
    if (!types) return;
    const auto list = types->items();
    if (list.size() != f.layers)
        return s.fail(wrong("layer_types", "layer_types names " + std::to_string(list.size()) +
                                               " layers; there are " + std::to_string(f.layers)));
    uint64_t n = 0;
    for (const JsonValue& one : list) {
        const std::string_view type = one.text();
        if (type != "sliding_attention" && type != "full_attention")
            s.fail(unknown("layer_types", "layer " + std::to_string(n) + " has the type '" +
                                              printable_name(type, 40) +
                                              "'; full_attention and sliding_attention are supported"));
        f.windowed[n++] = type == "sliding_attention";
    }
}

// ---- the rest ----

void read_sizes(const Family& family, ConfigReader& s, ModelConfig& f) {
    const FamilyDefaults& d = family.defaults;
    f.layers = s.needed({"num_hidden_layers", "n_layer"}, "block_count", kMaxLayers, d.layers);
    f.width = s.needed({"hidden_size", "n_embd"}, "embedding_length", kMaxWidth, d.width);
    f.heads = s.needed({"num_attention_heads", "n_head"}, "attention.head_count", 1u << 16, d.heads);
    f.kv_heads = s.whole({"num_key_value_heads"}, "attention.head_count_kv", 1u << 16);
    if (f.kv_heads == 0 && family.grouped && s.left_out({"num_key_value_heads"})) f.kv_heads = d.kv_heads;
    if (f.kv_heads == 0) f.kv_heads = f.heads;
    if (!s.error() && !family.grouped && f.kv_heads != f.heads) {
        const std::string name = s.name_of({"num_key_value_heads"}, "attention.head_count_kv");
        s.fail(unknown(name, name + " is " + std::to_string(f.kv_heads) + "; a " + f.family +
                                 " model must have as many as heads, " + std::to_string(f.heads)));
    }
    if (s.error()) return;
    if (f.heads % f.kv_heads != 0)
        return s.fail(wrong("num_key_value_heads", "num_key_value_heads " + std::to_string(f.kv_heads) +
                                                       " does not divide num_attention_heads, " +
                                                       std::to_string(f.heads)));
    f.head_width = s.whole({"head_dim"}, "attention.key_length", 1u << 16);
    if (const uint64_t value = s.is_gguf() ? s.whole({}, "attention.value_length") : 0;
        value != 0 && f.head_width != 0 && value != f.head_width)
        s.fail(unknown("attention.value_length", "the values of a head are " + std::to_string(value) +
                                                     " wide and its keys " + std::to_string(f.head_width) +
                                                     "; they must be equal"));
    if (f.head_width == 0 && s.left_out({"head_dim"})) f.head_width = family.head_width;
    if (f.head_width == 0) {
        if (f.width % f.heads != 0)
            return s.fail(wrong("num_attention_heads", "num_attention_heads " + std::to_string(f.heads) +
                                                           " does not divide the width, " +
                                                           std::to_string(f.width)));
        f.head_width = f.width / f.heads;
    }
    if (f.heads * f.head_width > kMaxWidth)
        return s.fail(wrong("head_dim", "num_attention_heads times head_dim is above the limit, " +
                                            std::to_string(kMaxWidth)));
    f.hidden = s.whole({"intermediate_size", "n_inner"}, "feed_forward_length");
    if (f.hidden == 0 && s.left_out({"intermediate_size", "n_inner"})) f.hidden = d.hidden;
    if (f.hidden == 0) f.hidden = 4 * f.width;
    f.context = s.whole({"max_position_embeddings", "n_positions"}, "context_length", 1u << 30);
    if (f.context == 0 && s.left_out({"max_position_embeddings", "n_positions"})) f.context = d.context;
}

void read_numerics(const Family& family, ConfigReader& s, ModelConfig& f) {
    f.epsilon = s.number({family.norm == NormKind::rms ? "rms_norm_eps" : "layer_norm_eps",
                          "layer_norm_epsilon", "layer_norm_eps", "norm_eps"},
                         family.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                      : "attention.layer_norm_epsilon")
                    .value_or(family.epsilon);
    if (!(f.epsilon >= 0) || f.epsilon > 1)
        s.fail(wrong("epsilon", "the epsilon of the norms must be from 0 to 1"));
    f.activation = family.activation;
    const auto activation = [&](std::string_view key, std::string_view text) {
        if (const auto known = activation_of(text)) return *known;
        s.fail(unknown(std::string(key),
                       "the activation is '" + printable_name(text, 40) +
                           "'; gelu, gelu_new, gelu_pytorch_tanh, silu and relu are supported"));
        return f.activation;
    };
    if (s.is_gguf()) {
        if (const GgufValue* v = s.value("hidden_activation"))
            f.activation = activation("hidden_activation", v->text().value_or(""));
        f.head_activation = f.activation;
    } else {
        // Gemma's first configurations name another activation than its weights are for.
        const auto act = family.scale_by_width
                             ? s.member({"hidden_activation"})
                             : s.member({"hidden_act", "activation_function", "hidden_activation"});
        if (act) f.activation = activation("hidden_act", act->text());
        f.head_activation =
            family.is_roberta || !family.head_activation.empty() ? Activation::gelu : f.activation;
        if (const auto head = s.member({family.head_activation}); head && !family.head_activation.empty())
            f.head_activation = activation(family.head_activation, head->text());
    }
    const auto softcap = [&](std::string_view key, double otherwise) {
        const auto given = s.number({key}, key);
        if (given && *given < 0)
            s.fail(wrong(s.name_of({key}, key), s.name_of({key}, key) + " must not be negative"));
        return given ? *given : s.is_gguf() || s.left_out({key}) ? otherwise : 0;
    };
    if (family.scale_by_width) {
        f.softcap = softcap("attn_logit_softcapping", family.defaults.softcap);
        f.logit_softcap = softcap("final_logit_softcapping", family.defaults.logit_softcap);
        f.embedding_scale = std::sqrt(double(f.width));
        if (!s.is_gguf() && family.defaults.query_scalar != 0) {
            const double scalar =
                s.number({"query_pre_attn_scalar"}, "").value_or(family.defaults.query_scalar);
            if (!(scalar > 0))
                s.fail(wrong("query_pre_attn_scalar", "query_pre_attn_scalar must be above 0"));
            f.score_divisor = std::sqrt(scalar);
        }
        // GGUF has no key for it: of Gemma 2 and 3 the largest divides by the width of a head of the model's
        // width, all others by that of their heads.
        if (s.is_gguf() && ((s.architecture() == "gemma2" && f.layers == 46) ||
                            (s.architecture() == "gemma3" && f.layers == 62)))
            f.score_divisor = std::sqrt(double(f.width) / double(f.heads));
    }
    if (family.layout == WeightLayout::in_out) {
        s.only("scale_attn_weights", true);
        f.divide_by_layer = s.truth({"scale_attn_by_inverse_layer_idx"}, false);
    }
    if (s.is_gguf()) {
        f.causal = s.truth({}, family.causal, "attention.causal");
        if (f.causal && !family.causal)
            s.fail(unknown(s.name_of({}, "attention.causal"),
                           s.name_of({}, "attention.causal") + " is true, which is not supported"));
    } else if (!f.causal) {
        s.only("is_decoder", false);
    }
    f.order = family.order;
    if (family.order == BlockOrder::parallel &&
        !s.truth({"use_parallel_residual"}, true, "use_parallel_residual"))
        f.order = BlockOrder::pre;
    if (family.is_roberta) {
        const auto pad = s.number({"pad_token_id"}, "");
        if (pad && !(*pad >= 0 && *pad <= double(kMaxWidth) && *pad == std::floor(*pad)))
            s.fail(wrong("pad_token_id", "pad_token_id must be a token ID: an integer of at least 0"));
        else
            f.pad_token = uint32_t(pad.value_or(1));
    }
    if (s.is_gguf()) return;
    f.tied = s.truth({"tie_word_embeddings"}, false);
    const auto positions = s.member({"position_embedding_type"});
    if (positions && positions->text() != "absolute" && !family.theta)
        s.fail(
            unknown("position_embedding_type",
                    "positions of type '" + printable_name(positions->text(), 40) + "' are not supported"));
}

}  // namespace

Result<KnownModel> read_config(const Checkpoint& files) {
    ConfigReader s(files);
    const std::string& architecture = s.architecture();
    const char* const key = s.is_gguf() ? "general.architecture" : "model_type";
    if (architecture.empty())
        return wrong(key, std::string(key) + " is missing; it must name the family of the model");
    const Family* family = s.is_gguf() ? family_of_gguf(architecture) : family_of_type(architecture);
    if (!family)
        return unknown(key, "the model's family is '" + printable_name(architecture, 60) +
                                "', which is not supported; the supported families are " + known_families());
    KnownModel known{family, {}};
    ModelConfig& f = known.config;
    f.family = std::string(family->name);
    f.architecture = printable_name(architecture, 60);
    f.causal = family->causal;
    check_keys(*family, files, s);
    if (!s.error()) read_sizes(*family, s, f);
    if (!s.error()) read_numerics(*family, s, f);
    if (!s.error() && family->theta)
        s.is_gguf() ? read_rope_gguf(*family, files, s, f) : read_rope_json(*family, s, f);
    if (!s.error()) read_windows(*family, s, f);
    for (const auto* rope : {&f.rope, &f.local_rope})
        if (!s.error() && *rope &&
            ((*rope)->rope.width % 2 != 0 || (*rope)->rope.width > f.head_width || (*rope)->rope.width == 0))
            s.fail(wrong("rope", "rotary positions of " + std::to_string((*rope)->rope.width) +
                                     " columns do not fit heads of " + std::to_string(f.head_width)));
    if (s.error()) return *s.error();
    if (Result<void> r = read_generation(files, *family, f); !r) return r.error();
    return known;
}

}  // namespace fovea
