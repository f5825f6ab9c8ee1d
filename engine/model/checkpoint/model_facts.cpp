// A model's numbers, from config.json or from a GGUF file's metadata.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/checkpoint/families.hpp"

namespace fovea {
namespace {

constexpr uint64_t kMostLayers = 10'000, kMostWidth = 1u << 24;

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}
Error unknown(std::string field, std::string text) {
    return {FOVEA_UNSUPPORTED, std::move(field), std::move(text)};
}

using Keys = std::initializer_list<std::string_view>;

// One question for both kinds of files: by any of config.json's keys, or by the key of GGUF behind the
// architecture. The first error is kept.
class Settings {
  public:
    explicit Settings(const Checkpoint& files) : gguf_(files.gguf ? &*files.gguf : nullptr) {
        if (gguf_) {
            if (const GgufValue* v = gguf_->find("general.architecture"))
                architecture_ = std::string(v->text().value_or(""));
            return;
        }
        // Models of text and pictures keep the numbers of their text part in an object of their own.
        const JsonValue* text = files.config.find("text_config");
        json_ = text && text->kind() == JsonValue::Kind::object ? text : &files.config;
        architecture_ = std::string((*json_)["model_type"].text());
        if (architecture_.empty()) architecture_ = std::string(files.config["model_type"].text());
    }

    bool is_gguf() const { return gguf_ != nullptr; }
    const JsonValue& json() const { return *json_; }
    const std::string& architecture() const { return architecture_; }
    const std::optional<Error>& error() const { return error_; }
    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }

    const GgufValue* value(std::string_view key) const {
        return gguf_->find(architecture_ + "." + std::string(key));
    }
    // Null and a missing key are the same.
    const JsonValue* member(Keys keys) const {
        for (const std::string_view key : keys)
            if (const JsonValue* v = json_->find(key); v && v->kind() != JsonValue::Kind::null) return v;
        return nullptr;
    }

    std::optional<double> number(Keys keys, std::string_view gguf) {
        std::optional<double> found;
        std::string name;
        if (is_gguf()) {
            if (gguf.empty()) return found;
            name = architecture_ + "." + std::string(gguf);
            const GgufValue* v = value(gguf);
            if (!v) return found;
            found = v->number();
            // A number for each layer is taken where all are equal.
            if (const auto all = v->numbers(); all && !all->empty()) {
                if (std::any_of(all->begin(), all->end(), [&](double x) { return x != all->front(); }))
                    fail(unknown(name, name + " differs from layer to layer, which is not read"));
                found = all->front();
            }
        } else {
            const JsonValue* v = member(keys);
            if (!v) return found;
            name = *keys.begin();
            if (v->kind() == JsonValue::Kind::number) found = v->number();
        }
        if (!found || !std::isfinite(*found)) fail(wrong(name, name + " is not a number"));
        return found;
    }
    // From 1 to `most`; 0 where it is not there.
    uint64_t whole(Keys keys, std::string_view gguf, uint64_t most = kMostWidth) {
        const std::optional<double> given = number(keys, gguf);
        if (!given) return 0;
        if (*given >= 1 && *given <= double(most) && *given == std::floor(*given)) return uint64_t(*given);
        const std::string name(*keys.begin());
        fail(wrong(name, name + " is not a whole number from 1 to " + std::to_string(most)));
        return 0;
    }
    uint64_t needed(Keys keys, std::string_view gguf, uint64_t most = kMostWidth) {
        const uint64_t n = whole(keys, gguf, most);
        const std::string name =
            is_gguf() ? architecture_ + "." + std::string(gguf) : std::string(*keys.begin());
        if (n == 0) fail(wrong(name, name + " is missing; the weights do not tell it"));
        return n;
    }
    bool truth(Keys keys, bool fallback) const {
        if (is_gguf()) return fallback;
        const JsonValue* v = member(keys);
        return v && v->kind() == JsonValue::Kind::boolean ? v->boolean() : fallback;
    }
    // A setting that is computed in one way only.
    void only(std::string_view key, bool expected) {
        if (truth({key}, expected) != expected)
            fail(unknown(std::string(key), std::string(key) + " is " + (expected ? "false" : "true") +
                                               ", which is not computed"));
    }

  private:
    const GgufFile* gguf_;
    const JsonValue* json_ = nullptr;
    std::string architecture_;
    std::optional<Error> error_;
};

std::optional<Activation> activation_of(std::string_view name) {
    if (name == "gelu") return Activation::gelu;
    if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
        return Activation::gelu_tanh;
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "relu") return Activation::relu;
    return std::nullopt;
}

// ---- rotary positions ----

std::vector<double> frequencies(double theta, uint64_t width) {
    std::vector<double> all;
    for (uint64_t n = 0; n < width / 2; ++n) all.push_back(std::pow(theta, -2.0 * double(n) / double(width)));
    return all;
}

// Llama 3.1: long waves are stretched by the factor, short ones stay, those between go over.
std::vector<double> llama3_divisors(const std::vector<double>& frequency, double factor, double low,
                                    double high, double length) {
    std::vector<double> divisors;
    for (const double f : frequency) {
        const double wave = 2 * std::numbers::pi / f;
        const double share = (length / wave - low) / (high - low);
        const double mixed = (1 - share) * f / factor + share * f;
        divisors.push_back(wave > length / low ? factor : wave < length / high ? 1.0 : f / mixed);
    }
    return divisors;
}

// YaRN (Peng et al., 2023): by how often a pair turns within the original length.
std::vector<double> yarn_divisors(double theta, uint64_t width, double factor, double fast, double slow,
                                  double length, bool truncate) {
    const auto turning = [&](double turns) {
        return double(width) * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
    };
    double low = turning(fast), high = turning(slow);
    if (truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, double(width) - 1);
    if (low == high) high += 0.001;
    std::vector<double> divisors;
    for (uint64_t n = 0; n < width / 2; ++n) {
        const double stretched = std::clamp((double(n) - low) / (high - low), 0.0, 1.0);
        divisors.push_back(1 / (stretched / factor + (1 - stretched)));
    }
    return divisors;
}

// An object of config.json that scales rotary positions: rope_scaling, or rope_parameters of newer versions.
class RopeObject {
  public:
    RopeObject(const JsonValue& object, const ModelFacts& facts, Settings& settings)
        : object_(object), facts_(facts), settings_(settings) {}

    void apply(RopeFacts& out) {
        std::string_view type = object_["rope_type"].text();
        if (type.empty()) type = object_["type"].text();
        const uint64_t width = out.rope.width;
        const auto frequency = frequencies(out.rope.theta, width);
        if (type.empty() || type == "default") return;
        if (type == "linear") {
            out.rope.divisors.assign(width / 2, number("factor"));
        } else if (type == "llama3") {
            out.rope.divisors =
                llama3_divisors(frequency, number("factor"), number("low_freq_factor"),
                                number("high_freq_factor"), number("original_max_position_embeddings"));
        } else if (type == "yarn") {
            yarn(out);
        } else if (type == "longrope" || type == "su") {
            longrope(out);
        } else {
            settings_.fail(unknown("rope_scaling", "rotary positions are scaled by '" +
                                                       printable_name(type, 40) +
                                                       "'; linear, llama3, yarn and longrope are computed"));
        }
        for (const double divisor : out.rope.divisors)
            if (!(divisor > 0) || !std::isfinite(divisor))
                settings_.fail(
                    wrong("rope_scaling", "rotary positions are divided by a number that is not positive"));
    }

  private:
    std::optional<double> find(std::string_view key) const {
        const JsonValue& v = object_[key];
        return v.kind() == JsonValue::Kind::number ? std::optional(v.number()) : std::nullopt;
    }
    double number(std::string_view key) {
        if (const auto found = find(key)) return *found;
        settings_.fail(wrong("rope_scaling", "rope_scaling needs the number " + std::string(key)));
        return 1;
    }
    double original_length() {
        if (const auto own = find("original_max_position_embeddings")) return *own;
        if (const JsonValue* v = settings_.member({"original_max_position_embeddings"})) return v->number();
        return double(facts_.context);
    }
    void yarn(RopeFacts& out) {
        const double length = original_length();
        double factor = find("factor").value_or(double(facts_.context) / length);
        const auto scale = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
        const auto m = find("mscale"), all = find("mscale_all_dim");
        out.rope.magnitude = find("attention_factor").value_or(m && all ? scale(*m) / scale(*all) : scale(1));
        const JsonValue& truncate = object_["truncate"];
        out.rope.divisors =
            yarn_divisors(out.rope.theta, out.rope.width, factor, find("beta_fast").value_or(32),
                          find("beta_slow").value_or(1), length,
                          truncate.kind() != JsonValue::Kind::boolean || truncate.boolean());
    }
    void longrope(RopeFacts& out) {
        const double length = original_length();
        const double factor = find("factor").value_or(double(facts_.context) / length);
        out.rope.magnitude =
            find("attention_factor")
                .value_or(factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(length)));
        out.original_length = uint64_t(std::clamp(length, 1.0, 1e15));
        for (const auto& [key, to] :
             {std::pair{"short_factor", &out.rope.divisors}, {"long_factor", &out.long_divisors}}) {
            for (const JsonValue& v : object_[key].items()) to->push_back(v.number());
            if (to->size() != out.rope.width / 2)
                settings_.fail(wrong("rope_scaling", std::string(key) + " has " + std::to_string(to->size()) +
                                                         " numbers; half of the rotated columns are " +
                                                         std::to_string(out.rope.width / 2)));
        }
    }

    const JsonValue& object_;
    const ModelFacts& facts_;
    Settings& settings_;
};

uint64_t rotated_columns(double share, uint64_t head_width) { return uint64_t(double(head_width) * share); }

void read_rope_json(const Family& family, Settings& s, ModelFacts& f) {
    const JsonValue* parameters = s.member({"rope_parameters"});
    const JsonValue* scaling = s.member({"rope_scaling"});
    for (const auto& [key, value] : {std::pair{"rope_parameters", parameters}, {"rope_scaling", scaling}})
        if (value && value->kind() != JsonValue::Kind::object)
            s.fail(wrong(key, std::string(key) + " is not an object"));
    static const JsonValue kNone;
    // Newer versions write one object for each kind of layer where kinds differ.
    const auto part = [&](std::string_view kind) -> const JsonValue& {
        if (!parameters) return kNone;
        const JsonValue* own = parameters->find(kind);
        return own                                                                           ? *own
               : parameters->find("full_attention") || parameters->find("sliding_attention") ? kNone
                                                                                             : *parameters;
    };
    const auto make = [&](const JsonValue& object, Keys theta_keys, double theta_default,
                          const JsonValue* scaled) {
        RopeFacts rope;
        const JsonValue& own = object["rope_theta"];
        if (own.kind() != JsonValue::Kind::null && own.kind() != JsonValue::Kind::number)
            s.fail(wrong("rope_theta", "rope_theta is not a number"));
        rope.rope.theta = own.kind() == JsonValue::Kind::number
                              ? own.number()
                              : s.number(theta_keys, "").value_or(theta_default);
        const JsonValue& share = object["partial_rotary_factor"];
        const double rotated =
            share.kind() == JsonValue::Kind::number
                ? share.number()
                : s.number({"partial_rotary_factor", "rotary_pct"}, "").value_or(family.rotated);
        if (!(rotated > 0 && rotated <= 1)) {
            s.fail(wrong("partial_rotary_factor",
                         "the share of a head's columns that is rotated is not above 0 and up to 1"));
            return rope;
        }
        rope.rope.width = rotated_columns(rotated, f.head_width);
        RopeObject(scaled ? *scaled : object, f, s).apply(rope);
        return rope;
    };
    f.rope = make(part("full_attention"), {"rope_theta", "rotary_emb_base", "global_rope_theta"},
                  *family.theta, scaling);
    if (family.local_theta != 0)
        f.local_rope = make(part("sliding_attention"), {"rope_local_base_freq", "local_rope_theta"},
                            family.local_theta, nullptr);
}

// The numbers of a tensor, as rope_freqs.weight; empty where it is not there.
std::vector<double> numbers_of(const Checkpoint& files, std::string_view name, uint64_t count, Settings& s) {
    const StoredWeight* weight = files.find(name);
    if (!weight) return {};
    std::vector<float> values(count);
    if (weight->shape != std::vector<uint64_t>{count})
        s.fail(wrong("shape", "tensor '" + std::string(name) + "' does not have " + std::to_string(count) +
                                  " numbers"));
    else if (Result<void> r = read_rows(*weight, 0, values); !r)
        s.fail(r.error());
    return {values.begin(), values.end()};
}

void read_rope_gguf(const Family& family, const Checkpoint& files, Settings& s, ModelFacts& f) {
    RopeFacts rope;
    rope.rope.theta = s.number({}, "rope.freq_base").value_or(*family.theta);
    rope.rope.interleaved = family.gguf_pairs_neighbours;
    const uint64_t rotated = s.whole({"rope.dimension_count"}, "rope.dimension_count");
    rope.rope.width = rotated != 0 ? rotated : f.head_width;
    if (rope.rope.width > f.head_width)
        return s.fail(wrong("rope.dimension_count", "rope.dimension_count " + std::to_string(rotated) +
                                                        " is more than the heads' width, " +
                                                        std::to_string(f.head_width)));
    if (family.local_theta != 0) {
        f.local_rope = rope;
        f.local_rope->rope.theta = family.local_theta;
    }
    const uint64_t pairs = rope.rope.width / 2;
    const double factor = s.number({}, "rope.scaling.factor").value_or(1);
    const GgufValue* type = s.value("rope.scaling.type");
    const std::string_view name = type ? type->text().value_or("") : "none";
    const double length = s.number({}, "rope.scaling.original_context_length").value_or(double(f.context));
    if (name == "linear" && factor != 1) rope.rope.divisors.assign(pairs, factor);
    if (name == "yarn") {
        rope.rope.divisors = yarn_divisors(rope.rope.theta, rope.rope.width, factor, 32, 1, length, true);
        rope.rope.magnitude = 0.1 * std::log(std::max(factor, 1.0)) + 1;
    }
    if (const auto given = s.number({}, "rope.scaling.attn_factor")) rope.rope.magnitude = *given;
    if (auto divisors = numbers_of(files, "rope_freqs.weight", pairs, s); !divisors.empty())
        rope.rope.divisors = std::move(divisors);
    rope.long_divisors = numbers_of(files, "rope_factors_long.weight", pairs, s);
    if (auto divisors = numbers_of(files, "rope_factors_short.weight", pairs, s); !divisors.empty()) {
        rope.rope.divisors = std::move(divisors);
        rope.original_length = uint64_t(std::clamp(length, 1.0, 1e15));
    }
    f.rope = std::move(rope);
}

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

void read_windows(const Family& family, Settings& s, ModelFacts& f) {
    f.windowed.assign(f.layers, false);
    if (family.window == WindowRule::none) return;
    const bool listed = !s.is_gguf() && s.json().find("sliding_window") != nullptr;
    uint64_t keys =
        s.whole({f.causal ? "sliding_window" : "local_attention"}, "attention.sliding_window", 1u << 30);
    if (s.is_gguf() && keys == 0) return;         // the format says a window where there is one
    if (keys == 0 && listed && f.causal) return;  // null: none
    if (keys == 0) keys = family.window_keys;
    if (family.window == WindowRule::by_use_sliding && !s.truth({"use_sliding_window"}, false)) return;
    if (keys == 0) return;
    f.window = f.causal ? keys - 1 : keys / 2;
    uint64_t first = 0;
    if (family.window == WindowRule::by_use_sliding)
        first =
            uint64_t(std::clamp(s.number({"max_window_layers"}, "").value_or(28), 0.0, double(kMostLayers)));
    const JsonValue* types = s.is_gguf() ? nullptr : s.member({"layer_types"});
    if (types && types->items().size() != f.layers)
        s.fail(wrong("layer_types", "layer_types names " + std::to_string(types->items().size()) +
                                        " layers; there are " + std::to_string(f.layers)));
    const uint64_t pattern =
        s.is_gguf() ? 0 : s.whole({"sliding_window_pattern", "global_attn_every_n_layers"}, "", kMostLayers);
    for (uint64_t n = 0; n < f.layers && !s.error(); ++n) {
        if (types) {
            const std::string_view type = types->items()[n].text();
            if (type != "sliding_attention" && type != "full_attention")
                s.fail(unknown("layer_types", "layer " + std::to_string(n) + " is of type '" +
                                                  printable_name(type, 40) +
                                                  "'; full_attention and sliding_attention are computed"));
            f.windowed[n] = type == "sliding_attention";
        } else if (pattern != 0 && family.window == WindowRule::five_of_six) {
            f.windowed[n] = (n + 1) % pattern != 0;
        } else if (pattern != 0 && family.window == WindowRule::two_of_three) {
            f.windowed[n] = n % pattern != 0;
        } else {
            f.windowed[n] = windowed_by_rule(family.window, n, first);
        }
    }
}

// ---- the rest ----

void read_sizes(const Family& family, Settings& s, ModelFacts& f) {
    f.layers = s.needed({"num_hidden_layers", "n_layer"}, "block_count", kMostLayers);
    f.width = s.needed({"hidden_size", "n_embd"}, "embedding_length");
    f.heads = s.needed({"num_attention_heads", "n_head"}, "attention.head_count", 1u << 16);
    f.kv_heads = s.whole({"num_key_value_heads"}, "attention.head_count_kv", 1u << 16);
    if (f.kv_heads == 0) f.kv_heads = f.heads;
    if (s.error()) return;
    if (f.heads % f.kv_heads != 0)
        return s.fail(wrong("num_key_value_heads", "num_key_value_heads " + std::to_string(f.kv_heads) +
                                                       " does not divide num_attention_heads, " +
                                                       std::to_string(f.heads)));
    f.head_width = s.whole({"head_dim"}, "attention.key_length", 1u << 16);
    if (const uint64_t value =
            s.whole({"attention.value_length"}, s.is_gguf() ? "attention.value_length" : "");
        value != 0 && f.head_width != 0 && value != f.head_width)
        s.fail(unknown("attention.value_length", "heads' values are " + std::to_string(value) +
                                                     " wide, their keys " + std::to_string(f.head_width) +
                                                     ", which no family here has"));
    if (f.head_width == 0 && !s.is_gguf()) f.head_width = family.head_width;
    if (f.head_width == 0) {
        if (f.width % f.heads != 0)
            return s.fail(wrong("num_attention_heads", "num_attention_heads " + std::to_string(f.heads) +
                                                           " does not divide the width, " +
                                                           std::to_string(f.width)));
        f.head_width = f.width / f.heads;
    }
    if (f.heads * f.head_width > kMostWidth)
        return s.fail(wrong("head_dim", "all heads together are wider than " + std::to_string(kMostWidth)));
    f.hidden = s.whole({"intermediate_size", "n_inner"}, "feed_forward_length");
    if (f.hidden == 0) f.hidden = 4 * f.width;
    f.context = s.whole({"max_position_embeddings", "n_positions"}, "context_length", 1u << 30);
}

void read_numerics(const Family& family, Settings& s, ModelFacts& f) {
    f.epsilon = s.number({family.norm == NormKind::rms ? "rms_norm_eps" : "layer_norm_eps",
                          "layer_norm_epsilon", "layer_norm_eps", "norm_eps"},
                         family.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                                      : "attention.layer_norm_epsilon")
                    .value_or(family.epsilon);
    if (!(f.epsilon >= 0) || f.epsilon > 1) s.fail(wrong("epsilon", "the norms' epsilon is not from 0 to 1"));
    f.activation = family.activation;
    if (!s.is_gguf()) {
        // Gemma's first configurations name another activation than its weights are for.
        const JsonValue* act = family.names && family.scale_by_width
                                   ? s.member({"hidden_activation"})
                                   : s.member({"hidden_act", "activation_function", "hidden_activation"});
        if (act) {
            const auto known = activation_of(act->text());
            if (!known)
                s.fail(unknown("hidden_act",
                               "the activation is '" + printable_name(act->text(), 40) +
                                   "'; gelu, gelu_new, gelu_pytorch_tanh, silu and relu are computed"));
            else
                f.activation = *known;
        }
    }
    const auto softcap = [&](Keys keys, std::string_view gguf) {
        const double cap = s.number(keys, gguf).value_or(0);
        if (cap < 0) s.fail(wrong(std::string(*keys.begin()), "a softcap must not be negative"));
        return cap;
    };
    if (family.scale_by_width) {
        f.softcap = softcap({"attn_logit_softcapping"}, "attn_logit_softcapping");
        f.logit_softcap = softcap({"final_logit_softcapping"}, "final_logit_softcapping");
        f.embedding_scale = std::sqrt(double(f.width));
        if (const auto scalar = s.number({"query_pre_attn_scalar"}, ""); scalar && *scalar > 0)
            f.score_divisor = std::sqrt(*scalar);
        // GGUF has no key for it: of Gemma 2 and 3 the largest divides by the width of a head of the model's
        // width, all others by that of their heads.
        if (s.is_gguf() && ((s.architecture() == "gemma2" && f.layers == 46) ||
                            (s.architecture() == "gemma3" && f.layers == 62)))
            f.score_divisor = std::sqrt(double(f.width) / double(f.heads));
        s.only("use_bidirectional_attention", false);
    }
    if (family.layout == WeightLayout::in_out) {
        s.only("scale_attn_weights", true);
        s.only("add_cross_attention", false);
        f.divide_by_layer = s.truth({"scale_attn_by_inverse_layer_idx"}, false);
    }
    if (!f.causal) s.only("is_decoder", false);
    f.order = family.order;
    if (family.order == BlockOrder::parallel) {
        bool parallel = s.truth({"use_parallel_residual"}, true);
        if (s.is_gguf())
            if (const GgufValue* v = s.value("use_parallel_residual")) parallel = v->truth().value_or(true);
        if (!parallel) f.order = BlockOrder::pre;
    }
    if (!s.is_gguf()) {
        f.tied = s.truth({"tie_word_embeddings"}, false);
        for (const std::string_view key : {"num_local_experts", "num_experts", "n_routed_experts"})
            if (s.member({key}))
                s.fail(
                    unknown(std::string(key), "the feed-forward part has experts, which are not computed"));
        const JsonValue* positions = s.member({"position_embedding_type"});
        if (positions && positions->text() != "absolute" && !family.theta)
            s.fail(unknown(
                "position_embedding_type",
                "positions of type '" + printable_name(positions->text(), 40) + "' are not computed"));
    }
}

}  // namespace

Result<KnownModel> read_facts(const Checkpoint& files) {
    Settings s(files);
    const std::string& architecture = s.architecture();
    const char* const key = s.is_gguf() ? "general.architecture" : "model_type";
    if (architecture.empty())
        return wrong(key,
                     std::string(key) + " is missing: the file does not say what family the model is of");
    const Family* family = s.is_gguf() ? family_of_gguf(architecture) : family_of_type(architecture);
    if (!family)
        return unknown(key, "the model is of the family '" + printable_name(architecture, 60) +
                                "', which is not known; " + known_families() + " are");
    KnownModel known{family, {}};
    ModelFacts& f = known.facts;
    f.family = std::string(family->name);
    f.architecture = printable_name(architecture, 60);
    f.causal = family->causal;
    read_sizes(*family, s, f);
    if (!s.error()) read_numerics(*family, s, f);
    if (!s.error() && family->theta)
        s.is_gguf() ? read_rope_gguf(*family, files, s, f) : read_rope_json(*family, s, f);
    if (!s.error()) read_windows(*family, s, f);
    for (const auto* rope : {&f.rope, &f.local_rope})
        if (!s.error() && *rope && !((*rope)->rope.theta > 0))
            s.fail(wrong("rope_theta", "rope_theta is not above 0"));
    for (const auto* rope : {&f.rope, &f.local_rope})
        if (!s.error() && *rope &&
            ((*rope)->rope.width % 2 != 0 || (*rope)->rope.width > f.head_width || (*rope)->rope.width == 0))
            s.fail(wrong("rope", "rotary positions of " + std::to_string((*rope)->rope.width) +
                                     " columns do not fit heads of " + std::to_string(f.head_width)));
    if (s.error()) return *s.error();
    if (Result<void> r = read_generation(files, f); !r) return r.error();
    return known;
}

}  // namespace fovea
