// Reads from a model's files how to generate: the end tokens, and how tokens are chosen.
#include <algorithm>
#include <map>
#include <set>

#include "model/checkpoint/families.hpp"
#include "model/checkpoint/named_tokens.hpp"

namespace fovea {
namespace {

using Names = std::span<const std::string_view>;

bool is_one_of(std::string_view name, Names names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// ---- config.json and generation_config.json ----

// A token ID, a list of them, or null. IDs that no vocabulary has, as -1, end nothing.
Result<void> take_ids(const JsonValue& value, const char* file, std::set<uint32_t>& out) {
    const auto take = [&](const JsonValue& one) {
        const double id = one.number();
        if (id >= 0 && id < 4294967296.0 && id == double(uint32_t(id))) out.insert(uint32_t(id));
        return one.kind() == JsonValue::Kind::number;
    };
    bool read = value.kind() == JsonValue::Kind::null || value.kind() == JsonValue::Kind::array;
    for (const JsonValue& one : value.items()) read = take(one) && read;
    if (read || take(value)) return {};
    return Error{FOVEA_INVALID_ARGUMENT, "eos_token_id",
                 std::string("eos_token_id of ") + file + " must be a token ID or a list of token IDs"};
}

// Keys of generation_config.json that choose no token.
constexpr std::string_view kNeutral[] = {"_from_model_config",
                                         "bos_token_id",
                                         "cache_config",
                                         "cache_implementation",
                                         "chat_format",
                                         "compile_config",
                                         "decoder_start_token_id",
                                         "disable_compile",
                                         "eos_token_id",
                                         "max_length",
                                         "max_new_tokens",
                                         "max_window_size",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_logits",
                                         "output_scores",
                                         "pad_token_id",
                                         "return_dict_in_generate",
                                         "transformers_version",
                                         "trust_remote_code",
                                         "use_cache",
                                         "low_memory",
                                         "num_return_sequences",
                                         "token_healing"};
// Settings that apply only with do_sample.
constexpr std::string_view kSampling[] = {"temperature", "top_k",          "top_p",      "min_p",
                                          "typical_p",   "epsilon_cutoff", "eta_cutoff", "top_h"};

std::string setting_text(const std::string& key, const JsonValue& value) {
    const bool nested = value.kind() == JsonValue::Kind::array || value.kind() == JsonValue::Kind::object;
    return printable_name(key, 60) + " " + (nested ? "[...]" : printable_name(value.scalar_text(), 40));
}

std::vector<std::string> settings_of(const JsonValue& config) {
    std::vector<std::string> all;
    for (const auto& [key, value] : config.members()) {
        const JsonValue::Kind kind = value.kind();
        const bool is_empty = kind == JsonValue::Kind::null ||
                              (kind == JsonValue::Kind::array && value.items().empty()) ||
                              (kind == JsonValue::Kind::object && value.members().empty()) ||
                              (kind == JsonValue::Kind::boolean && !value.boolean());
        if (is_empty || is_one_of(key, kNeutral)) continue;
        if (is_one_of(key, kSampling) && !config["do_sample"].boolean()) continue;
        // 0 and 1 are what these settings are without a key: no penalty, one beam, no least length.
        if (kind == JsonValue::Kind::number && (value.number() == 1 || value.number() == 0)) continue;
        all.push_back(setting_text(key, value));
    }
    return all;
}

// ---- GGUF ----

std::set<uint32_t> gguf_ends(const GgufFile& file) {
    const GgufValue* list = file.find("tokenizer.ggml.tokens");
    const auto texts = list ? list->texts() : std::nullopt;
    std::set<uint32_t> ends;
    // llama.cpp takes the kind's own ID where the key is missing or names no token.
    const auto take = [&](std::string_view key, std::optional<uint32_t> otherwise = {}) {
        const GgufValue* value = file.find("tokenizer.ggml." + std::string(key));
        const auto id = value ? value->whole() : std::nullopt;
        const auto is_there = [&](uint64_t one) {
            return one < UINT32_MAX && (!texts || one < texts->size());
        };
        const bool names_one = id && is_there(*id);
        if (names_one || (otherwise && is_there(*otherwise)))
            ends.insert(names_one ? uint32_t(*id) : *otherwise);
        return names_one;
    };
    const GgufValue* kind = file.find("tokenizer.ggml.model");
    const std::string_view model = kind ? kind->text().value_or("") : "";
    take("eos_token_id", model == "llama"  ? std::optional(2u)
                         : model == "t5"   ? std::optional(1u)
                         : model == "gpt2" ? std::optional(11u)
                                           : std::nullopt);
    take("eot_token_id");
    take("eom_token_id");
    std::vector<std::string_view> names;  // texts that end generation
    for (const NamedTokens& named : kNamedTokens)
        if (named.ends && !take(named.key)) names.insert(names.end(), named.texts.begin(), named.texts.end());
    if (!texts) return ends;
    std::map<std::string_view, uint32_t> found;
    for (size_t i = 0; i < texts->size(); ++i) {
        const std::string_view text = (*texts)[i];
        if (!is_one_of(text, names)) continue;
        ends.insert(uint32_t(i));
        found[text] = uint32_t(i);
    }
    const auto has = [&](std::string_view text) { return found.contains(text); };
    if (end_is_within_answers(has)) ends.erase(found["<|end|>"]);
    if (end_tag_is_text(has)) ends.erase(found["</s>"]);
    return ends;
}

}  // namespace

Result<void> read_generation(const Checkpoint& files, const Family& family, ModelConfig& config) {
    std::set<uint32_t> ends;
    if (files.gguf) {
        ends = gguf_ends(*files.gguf);
        for (const GgufValue& value : files.gguf->metadata)
            if (value.key.starts_with("general.sampling."))
                config.generation_settings.push_back(printable_name(value.key, 60));
    } else {
        bool given = false;
        for (const JsonValue& json : {files.config, files.config["text_config"]}) {
            const auto ids = json.find("eos_token_id");
            given = given || ids;
            if (Result<void> r = take_ids(ids.value_or(JsonValue()), "config.json", ends); !r) return r;
        }
        if (Result<void> r =
                take_ids(files.generation_config["eos_token_id"], "generation_config.json", ends);
            !r)
            return r;
        if (!given && ends.empty())
            for (const std::optional<uint32_t>& end : family.defaults.end_tokens)
                if (end) ends.insert(*end);
        config.generation_settings = settings_of(files.generation_config);
    }
    config.end_tokens.assign(ends.begin(), ends.end());
    return {};
}

}  // namespace fovea
