// Rotary positions as config.json and GGUF files describe them.
#include <algorithm>
#include <numbers>

#include "model/checkpoint/config_reader.hpp"

namespace fovea {
namespace {

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

double yarn_scale(double factor, double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; }

bool is_positive(double x) { return x > 0 && std::isfinite(x); }

// Checks that the values that angles and rows are computed from are positive and finite.
void check_rope(const RopeConfig& config, ConfigReader& s) {
    const Rope& rope = config.rope;
    const char* const field = s.is_gguf() ? "rope.scaling" : "rope_scaling";
    if (!is_positive(rope.theta)) s.fail(wrong_setting("rope_theta", "rope_theta must be above 0"));
    if (!is_positive(rope.magnitude))
        s.fail(wrong_setting(
            field, std::string(field) +
                       " has an attention factor that is not above 0; rotated rows are multiplied by it"));
    for (const auto* divisors : {&rope.divisors, &config.long_divisors})
        if (!std::all_of(divisors->begin(), divisors->end(), is_positive))
            s.fail(wrong_setting(
                field, std::string(field) +
                           " has a factor that is not above 0; rotary positions are divided by it"));
}

// Keys of rope_scaling and of rope_parameters that some type has, and those that change nothing.
constexpr std::string_view kRopeKeys[] = {"rope_type",
                                          "type",
                                          "rope_theta",
                                          "factor",
                                          "original_max_position_embeddings",
                                          "attention_factor",
                                          "beta_fast",
                                          "beta_slow",
                                          "mscale",
                                          "mscale_all_dim",
                                          "truncate",
                                          "short_factor",
                                          "long_factor",
                                          "low_freq_factor",
                                          "high_freq_factor",
                                          "partial_rotary_factor",
                                          "finetuned"};

// An object of config.json that scales rotary positions: rope_scaling, or rope_parameters of newer versions.
class RopeObject {
  public:
    RopeObject(const JsonValue& object, const ModelConfig& config, ConfigReader& settings)
        : object_(object), config_(config), settings_(settings) {}

    void apply(RopeConfig& out) {
        std::string_view type = object_["rope_type"].text();
        if (type.empty()) type = object_["type"].text();
        const uint64_t width = out.rope.width;
        for (const auto& [key, value] : object_.members())
            if (value.kind() != JsonValue::Kind::null &&
                std::find(std::begin(kRopeKeys), std::end(kRopeKeys), key) == std::end(kRopeKeys))
                settings_.fail(unknown_setting(
                    "rope_scaling",
                    "the rotary positions' setting '" + printable_name(key, 40) + "' is not supported"));
        if (type.empty() || type == "default") return;
        if (type == "linear") {
            out.rope.divisors.assign(width / 2, number("factor"));
        } else if (type == "llama3") {
            out.rope.divisors = llama3_divisors(frequencies(out.rope.theta, width), number("factor"),
                                                number("low_freq_factor"), number("high_freq_factor"),
                                                number("original_max_position_embeddings"));
        } else if (type == "yarn") {
            yarn(out);
        } else if (type == "longrope" || type == "su") {
            longrope(out);
        } else {
            settings_.fail(unknown_setting("rope_scaling",
                                           "rotary positions are scaled by '" + printable_name(type, 40) +
                                               "'; linear, llama3, yarn and longrope are supported"));
        }
    }

  private:
    std::optional<double> find(std::string_view key) const {
        const JsonValue v = object_[key];
        if (v.kind() == JsonValue::Kind::null) return std::nullopt;
        if (v.kind() != JsonValue::Kind::number || !std::isfinite(v.number()))
            settings_.fail(
                wrong_setting("rope_scaling", std::string(key) + " of rope_scaling is not a number"));
        return v.number();
    }
    double number(std::string_view key) {
        if (const auto found = find(key)) return *found;
        settings_.fail(wrong_setting("rope_scaling", "rope_scaling needs a number for " + std::string(key)));
        return 1;
    }
    double original_length() {
        if (const auto own = find("original_max_position_embeddings")) return *own;
        return settings_.number({"original_max_position_embeddings"}, "").value_or(double(config_.context));
    }
    void yarn(RopeConfig& out) {
        const double length = original_length();
        const double factor = find("factor").value_or(double(config_.context) / length);
        const double m = find("mscale").value_or(0), all = find("mscale_all_dim").value_or(0);
        out.rope.magnitude =
            find("attention_factor")
                .value_or(m != 0 && all != 0 ? yarn_scale(factor, m) / yarn_scale(factor, all)
                                             : yarn_scale(factor, 1));
        const JsonValue truncate = object_["truncate"];
        out.rope.divisors =
            yarn_divisors(out.rope.theta, out.rope.width, factor, find("beta_fast").value_or(32),
                          find("beta_slow").value_or(1), length,
                          truncate.kind() != JsonValue::Kind::boolean || truncate.boolean());
    }
    void longrope(RopeConfig& out) {
        const double length = original_length();
        const double factor = find("factor").value_or(double(config_.context) / length);
        out.rope.magnitude =
            find("attention_factor")
                .value_or(factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(length)));
        out.original_length = uint64_t(std::clamp(length, 1.0, 1e15));
        for (const auto& [key, to] :
             {std::pair{"short_factor", &out.rope.divisors}, {"long_factor", &out.long_divisors}}) {
            for (const JsonValue& v : object_[key].items()) to->push_back(v.number());
            if (to->size() != out.rope.width / 2)
                settings_.fail(wrong_setting("rope_scaling",
                                             std::string(key) + " has " + std::to_string(to->size()) +
                                                 " elements; it must have half of the rotated columns, " +
                                                 std::to_string(out.rope.width / 2)));
        }
    }

    const JsonValue& object_;
    const ModelConfig& config_;
    ConfigReader& settings_;
};

// Returns the elements of a tensor, such as rope_freqs.weight; empty if it does not exist.
std::vector<double> numbers_of(const Checkpoint& files, std::string_view name, uint64_t count,
                               ConfigReader& s) {
    const StoredWeight* weight = files.find(name);
    if (!weight) return {};
    std::vector<float> values(count);
    if (weight->shape != std::vector<uint64_t>{count})
        s.fail(wrong_setting("shape", "tensor '" + std::string(name) + "' has shape " +
                                          format_shape(weight->shape) + "; it must have " +
                                          std::to_string(count) + " elements"));
    else if (Result<void> r = read_rows(*weight, 0, values); !r)
        s.fail(r.error());
    else if (!std::all_of(values.begin(), values.end(), is_positive))
        s.fail(wrong_setting("tensor", "tensor '" + std::string(name) +
                                           "' has an element that is not above 0; rotary positions are "
                                           "divided by its elements"));
    return {values.begin(), values.end()};
}

// Divisors after one another: those of a tensor divide the angle that the scaling divides, too.
void divide_by(std::vector<double>& divisors, const std::vector<double>& more) {
    if (divisors.empty()) divisors.assign(more.size(), 1.0);
    for (size_t i = 0; i < more.size() && i < divisors.size(); ++i) divisors[i] *= more[i];
}

}  // namespace

void read_rope_json(const Family& family, ConfigReader& s, ModelConfig& f) {
    const auto parameters = s.member({"rope_parameters"}), scaling = s.member({"rope_scaling"});
    for (const auto& [key, value] :
         {std::pair<const char*, const std::optional<JsonValue>&>{"rope_parameters", parameters},
          {"rope_scaling", scaling}})
        if (value && value->kind() != JsonValue::Kind::object)
            s.fail(wrong_setting(key, std::string(key) + " is not an object"));
    // Newer versions write one object for each kind of layer where kinds differ.
    const auto part = [&](std::string_view kind) -> JsonValue {
        if (!parameters) return {};
        if (const auto own = parameters->find(kind)) return *own;
        return parameters->find("full_attention") || parameters->find("sliding_attention") ? JsonValue()
                                                                                           : *parameters;
    };
    const auto make = [&](const JsonValue& object, SettingKeys theta_keys, double theta_default,
                          const std::optional<JsonValue>& scaled) {
        RopeConfig rope;
        const auto own = [&](std::string_view key) -> std::optional<double> {
            const JsonValue v = object[key];
            if (v.kind() != JsonValue::Kind::null && v.kind() != JsonValue::Kind::number)
                s.fail(wrong_setting(std::string(key), std::string(key) + " is not a number"));
            return v.kind() == JsonValue::Kind::number ? std::optional(v.number()) : std::nullopt;
        };
        const auto theta = own("rope_theta");
        rope.rope.interleaved = family.pairs == RotaryPairs::neighbours;
        rope.rope.theta = theta ? *theta : s.number(theta_keys, "").value_or(theta_default);
        const auto share = own("partial_rotary_factor");
        const double rotated =
            share ? *share : s.number({"partial_rotary_factor", "rotary_pct"}, "").value_or(family.rotated);
        if (!(rotated > 0 && rotated <= 1)) {
            s.fail(wrong_setting("partial_rotary_factor",
                                 "partial_rotary_factor, the share of a head's columns that is rotated, must "
                                 "be above 0 and at most 1"));
            return rope;
        }
        rope.rope.width = uint64_t(double(f.head_width) * rotated);
        RopeObject(scaled ? *scaled : object, f, s).apply(rope);
        check_rope(rope, s);
        return rope;
    };
    f.rope = make(part("full_attention"), {"rope_theta", "rotary_emb_base", "global_rope_theta"},
                  *family.theta, scaling);
    if (family.local_theta != 0)
        f.local_rope = make(part("sliding_attention"), {"rope_local_base_freq", "local_rope_theta"},
                            family.local_theta, family.scales_local ? scaling : std::nullopt);
}

// As llama.cpp reads them (llama_model_base::load_hparams, llama_context's constructor): a factor without a
// type is linear, and a magnitude multiplies that of YaRN.
void read_rope_gguf(const Family& family, const Checkpoint& files, ConfigReader& s, ModelConfig& f) {
    RopeConfig rope;
    const auto first = [&](std::string_view key, std::string_view older) {
        const auto found = s.number({}, key);
        return found ? found : s.number({}, older);
    };
    rope.rope.theta = first("rope.freq_base", "rope.global.freq_base").value_or(*family.theta);
    rope.rope.interleaved = family.pairs != RotaryPairs::halves;
    const uint64_t rotated = s.whole({}, "rope.dimension_count");
    rope.rope.width = rotated != 0 ? rotated : f.head_width;
    if (rope.rope.width > f.head_width)
        return s.fail(wrong_setting("rope.dimension_count",
                                    "rope.dimension_count " + std::to_string(rotated) +
                                        " is more than the heads' width, " + std::to_string(f.head_width)));
    const uint64_t pairs = rope.rope.width / 2;
    const RopeConfig unscaled = rope;
    const auto fail = [&](std::string_view key, std::string text) {
        s.fail(unknown_setting(s.name_of({}, key), s.name_of({}, key) + " is " + std::move(text)));
    };
    const auto given = first("rope.scaling.factor", "rope.scale_linear");
    const double factor = given.value_or(1);
    if (given && !is_positive(factor))
        s.fail(wrong_setting(
            s.name_of({}, "rope.scaling.factor"),
            s.name_of({}, "rope.scaling.factor") + " is " + std::to_string(factor) + "; it must be above 0"));
    const GgufValue* type = s.value("rope.scaling.type");
    const std::string_view name = type ? type->text().value_or("(not a text)") : "linear";
    const double length = s.number({}, "rope.scaling.original_context_length").value_or(double(f.context));
    const bool is_yarn = name == "yarn";
    if (name == "linear" && factor != 1) rope.rope.divisors.assign(pairs, factor);
    if (name == "longrope" && factor != 1)
        fail("rope.scaling.factor", std::to_string(factor) + "; longrope needs its factors as tensors");
    if (name != "none" && name != "linear" && name != "longrope" && !is_yarn)
        fail("rope.scaling.type",
             "'" + printable_name(name, 40) + "'; none, linear, yarn and longrope are supported");
    if (is_yarn) {
        rope.rope.divisors =
            yarn_divisors(rope.rope.theta, rope.rope.width, factor,
                          s.number({}, "rope.scaling.yarn_beta_fast").value_or(32),
                          s.number({}, "rope.scaling.yarn_beta_slow").value_or(1), length, true);
        const double all = s.number({}, "rope.scaling.yarn_log_multiplier").value_or(0);
        rope.rope.magnitude = yarn_scale(factor, 1) / (all != 0 ? yarn_scale(factor, all) : 1);
    }
    rope.rope.magnitude *= s.number({}, "rope.scaling.attn_factor").value_or(1);
    // Below 0 both are unset.
    if (const double mix = s.number({}, "rope.scaling.yarn_ext_factor").value_or(-1);
        mix >= 0 && mix != (is_yarn ? 1 : 0))
        fail("rope.scaling.yarn_ext_factor", std::to_string(mix) + ", which is not supported");
    if (const double more = s.number({}, "rope.scaling.yarn_attn_factor").value_or(1); more >= 0 && more != 1)
        fail("rope.scaling.yarn_attn_factor", std::to_string(more) + "; only 1 is supported");
    if (family.local_theta != 0 || s.value("rope.freq_base_swa")) {
        f.local_rope = family.local_theta != 0 && !family.scales_local ? unscaled : rope;
        f.local_rope->rope.theta =
            first("rope.freq_base_swa", "rope.local.freq_base")
                .value_or(family.local_theta != 0 ? family.local_theta : rope.rope.theta);
        check_rope(*f.local_rope, s);
    }
    const std::vector<double> scaled = rope.rope.divisors;
    if (const auto more = numbers_of(files, "rope_freqs.weight", pairs, s); !more.empty()) {
        divide_by(rope.rope.divisors, more);
    } else {
        rope.long_divisors = numbers_of(files, "rope_factors_long.weight", pairs, s);
        if (const auto near = numbers_of(files, "rope_factors_short.weight", pairs, s); !near.empty()) {
            divide_by(rope.rope.divisors, near);
            if (!scaled.empty()) divide_by(rope.long_divisors, scaled);
            rope.original_length = uint64_t(std::clamp(length, 1.0, 1e15));
        }
    }
    check_rope(rope, s);
    f.rope = std::move(rope);
}

}  // namespace fovea
