// One way to ask config.json and a GGUF file's metadata for a setting.
#pragma once

#include <cmath>

#include "model/checkpoint/families.hpp"

namespace fovea {

constexpr uint64_t kMaxLayers = 10'000, kMaxWidth = 1u << 24;

using SettingKeys = std::initializer_list<std::string_view>;

inline Error wrong_setting(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}
inline Error unknown_setting(std::string field, std::string text) {
    return {FOVEA_UNSUPPORTED, std::move(field), std::move(text)};
}

// Asks by any of config.json's keys, or by the key of GGUF after the architecture. The first error is kept.
class ConfigReader {
  public:
    explicit ConfigReader(const Checkpoint& files) : gguf_(files.gguf ? &*files.gguf : nullptr) {
        if (gguf_) {
            if (const GgufValue* v = gguf_->find("general.architecture"))
                architecture_ = std::string(v->text().value_or(""));
            return;
        }
        // Multimodal models keep the configuration of their text part in its own object.
        const JsonValue text = files.config["text_config"];
        json_ = text.kind() == JsonValue::Kind::object ? text : files.config;
        architecture_ = std::string(json_["model_type"].text());
        if (architecture_.empty()) architecture_ = std::string(files.config["model_type"].text());
    }

    bool is_gguf() const { return gguf_ != nullptr; }
    const GgufFile& gguf() const { return *gguf_; }
    const JsonValue& json() const { return json_; }
    const std::string& architecture() const { return architecture_; }
    const std::optional<Error>& error() const { return error_; }
    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }

    const GgufValue* value(std::string_view key) const {
        return gguf_->find(architecture_ + "." + std::string(key));
    }
    // The first of the keys that is there and not null.
    std::optional<JsonValue> member(SettingKeys keys) const {
        for (const std::string_view key : keys)
            if (auto v = json_.find(key); v && v->kind() != JsonValue::Kind::null) return v;
        return std::nullopt;
    }
    // True if the configuration leaves all of the keys out. Null says that there is none, which is another
    // thing than the default.
    bool left_out(SettingKeys keys) const {
        for (const std::string_view key : keys)
            if (json_.find(key)) return false;
        return !is_gguf();
    }
    // The key that errors name.
    std::string name_of(SettingKeys keys, std::string_view gguf) const {
        return is_gguf() || keys.size() == 0 ? architecture_ + "." + std::string(gguf)
                                             : std::string(*keys.begin());
    }

    std::optional<double> number(SettingKeys keys, std::string_view gguf) {
        std::optional<double> found;
        const std::string name = name_of(keys, gguf);
        if (is_gguf()) {
            if (gguf.empty()) return found;
            const GgufValue* v = value(gguf);
            if (!v) return found;
            found = v->number();
            // A number for each layer is taken where all are equal.
            if (const auto all = v->numbers(); all && !all->empty()) {
                for (const double x : *all)
                    if (x != all->front())
                        fail(unknown_setting(name, name + " differs from layer to layer; it must be the same "
                                                          "for all layers"));
                found = all->front();
            }
        } else {
            const auto v = member(keys);
            if (!v) return found;
            if (v->kind() == JsonValue::Kind::number) found = v->number();
        }
        if (!found || !std::isfinite(*found)) fail(wrong_setting(name, name + " is not a number"));
        return found;
    }
    // From 1 to `most`; 0 where it is not there.
    uint64_t whole(SettingKeys keys, std::string_view gguf, uint64_t most = kMaxWidth) {
        const std::optional<double> given = number(keys, gguf);
        if (!given || error_) return 0;
        if (*given >= 1 && *given <= double(most) && *given == std::floor(*given)) return uint64_t(*given);
        const std::string name = name_of(keys, gguf);
        fail(wrong_setting(name, name + " is not an integer from 1 to " + std::to_string(most)));
        return 0;
    }
    // The configuration class's number where config.json leaves the key out.
    uint64_t needed(SettingKeys keys, std::string_view gguf, uint64_t most, uint64_t otherwise) {
        uint64_t n = whole(keys, gguf, most);
        if (n == 0 && left_out(keys)) n = otherwise;
        const std::string name = name_of(keys, gguf);
        if (n == 0)
            fail(wrong_setting(
                name, name + " is missing, and the weights do not tell it; the configuration must have it"));
        return n;
    }
    bool truth(SettingKeys keys, bool fallback, std::string_view gguf = {}) {
        if (is_gguf()) {
            const GgufValue* v = gguf.empty() ? nullptr : value(gguf);
            if (v && !v->truth())
                fail(wrong_setting(name_of(keys, gguf), name_of(keys, gguf) + " is not true or false"));
            return v ? v->truth().value_or(fallback) : fallback;
        }
        const auto v = member(keys);
        if (!v) return fallback;
        if (v->kind() != JsonValue::Kind::boolean)
            fail(wrong_setting(std::string(*keys.begin()),
                               std::string(*keys.begin()) + " is not true or false"));
        return v->kind() == JsonValue::Kind::boolean ? v->boolean() : fallback;
    }
    // A setting that is computed in one way only.
    void only(std::string_view key, bool expected) {
        if (truth({key}, expected) != expected)
            fail(unknown_setting(std::string(key), std::string(key) + " is " + (expected ? "false" : "true") +
                                                       ", which is not supported"));
    }

  private:
    const GgufFile* gguf_;
    JsonValue json_;
    std::string architecture_;
    std::optional<Error> error_;
};

std::optional<Activation> activation_of(std::string_view name);

// Fills `rope` and `local_rope`.
void read_rope_json(const Family& family, ConfigReader& s, ModelConfig& f);
void read_rope_gguf(const Family& family, const Checkpoint& files, ConfigReader& s, ModelConfig& f);
// Fails where a key says what is not computed: one that is known to, and of GGUF one that is not known.
void check_keys(const Family& family, const Checkpoint& files, ConfigReader& s);

}  // namespace fovea
