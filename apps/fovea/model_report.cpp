#include "model_report.hpp"

#include "attention_options.hpp"

#include <fovea/inspect/kept_run.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <thread>

namespace fovea::app {
namespace {

constexpr uint64_t kMaxTokens = 1'000'000;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

// "bf16 18, f32 3": types by how many weights have them, in the order of their names.
std::map<std::string, uint64_t> types_of(const Checkpoint& files) {
    std::map<std::string, uint64_t> counts;
    for (const StoredWeight& weight : files.weights)
        ++counts[weight.type == FOVEA_DTYPE_OTHER ? weight.type_text : std::string(dtype_name(weight.type))];
    return counts;
}

uint64_t numbers_of(const Checkpoint& files) {
    uint64_t sum = 0;
    for (const StoredWeight& weight : files.weights) sum += weight.rows() * weight.columns();
    return sum;
}

const char* activation_text(Activation activation) {
    constexpr const char* kNames[] = {"gelu", "gelu (tanh)", "silu", "relu"};
    return kNames[size_t(activation)];
}

std::string rope_text(const RopeConfig& config, uint64_t head_width) {
    std::string text = "rotary, theta " + number(config.rope.theta);
    if (config.rope.width != head_width)
        text += ", " + std::to_string(config.rope.width) + " of " + std::to_string(head_width) + " columns";
    if (!config.rope.divisors.empty()) text += ", stretched";
    return text;
}

// "0, 2, 4" up to a limit.
std::string windowed_layers(const ModelConfig& f) {
    const auto count = size_t(std::count(f.windowed.begin(), f.windowed.end(), true));
    if (count == f.layers) return "every layer";
    std::string text = std::to_string(count) + " of " + std::to_string(f.layers) + " layers (";
    size_t shown = 0;
    for (uint64_t n = 0; n < f.layers && shown < 8; ++n)
        if (f.windowed[n]) text += (shown++ ? ", " : "") + std::to_string(n);
    return text + (shown < count ? ", ...)" : ")");
}

// Up to three names, and how many more there are.
std::string some(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size() && i < 3; ++i) text += (i ? ", " : "") + printable_name(names[i], 80);
    return names.size() > 3 ? text + " and " + std::to_string(names.size() - 3) + " more" : text;
}

std::string json_list(const std::vector<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names) text += (text.size() > 1 ? ", " : "") + json_string(name);
    return text + "]";
}

}  // namespace

std::string model_text(const CheckpointModel& model) {
    const ModelConfig& f = model.config();
    const auto n = [](uint64_t value) { return std::to_string(value); };
    std::string text;
    const auto line = [&](const char* name, const std::string& value) {
        char label[16];
        std::snprintf(label, sizeof label, "%-12s", name);
        text += label + value + "\n";
    };
    line("family", f.family + " (" + f.architecture + ")" +
                       (f.causal ? "" : ", an encoder: every token sees every other"));
    line("layers", n(f.layers) + ", width " + n(f.width) + ", feed-forward " + n(f.hidden) + " (" +
                       activation_text(f.activation) + ")");
    line("heads", n(f.heads) + " of width " + n(f.head_width) +
                      (f.kv_heads == f.heads ? "" : ", " + n(f.kv_heads) + " for keys and values") +
                      (f.softcap > 0 ? ", scores capped at " + number(f.softcap) : ""));
    if (f.patches != 0)
        line("pictures",
             n(f.patches) + " patches of " + n(f.patch_width) + " numbers, after a row of their own");
    else
        line("vocabulary", n(f.vocabulary) + " tokens" + (f.context ? ", context of " + n(f.context) : "") +
                               (f.logit_softcap > 0 ? ", logits capped at " + number(f.logit_softcap) : ""));
    line("positions", f.rope
                          ? rope_text(*f.rope, f.head_width) +
                                (f.local_rope ? "; in windows " + rope_text(*f.local_rope, f.head_width) : "")
                          : "learned");
    if (std::count(f.windowed.begin(), f.windowed.end(), true) > 0)
        line("window", n(f.causal ? f.window + 1 : 2 * f.window + 1) + " keys in " + windowed_layers(f));
    std::string types;
    for (const auto& [type, count] : types_of(model.files())) types += ", " + type + " " + n(count);
    line("weights", n(model.files().weights.size()) + " tensors, " + n(numbers_of(model.files())) +
                        " numbers, " + bytes_text(model.files().stored_bytes()) + types);
    line("memory", "weights stay in their files; of a layer a run makes at most " +
                       bytes_text(model.run_block_bytes()) + " of float32");
    if (!model.missing().empty()) line("missing", some(model.missing()));
    if (!model.has_unembedding()) line("", "without an unembedding there are no logits");
    if (!model.unread().empty()) line("not read", some(model.unread()));
    return text;
}

std::string model_json(const CheckpointModel& model) {
    const ModelConfig& f = model.config();
    JsonObject json, types;
    for (const auto& [type, count] : types_of(model.files())) types.number(type, double(count));
    json.text("family", f.family).text("architecture", f.architecture).boolean("causal", f.causal);
    for (const auto& [key, value] : {std::pair{"layers", f.layers},
                                     {"width", f.width},
                                     {"heads", f.heads},
                                     {"kv_heads", f.kv_heads},
                                     {"head_dim", f.head_width},
                                     {"feed_forward", f.hidden},
                                     {"vocabulary", f.vocabulary},
                                     {"patches", f.patches},
                                     {"patch_width", f.patch_width},
                                     {"context", f.context}})
        json.number(key, double(value));
    std::string windowed = "[";
    for (uint64_t n = 0; n < f.layers; ++n)
        if (f.windowed[n]) windowed += (windowed.size() > 1 ? ", " : "") + std::to_string(n);
    const bool any = windowed.size() > 1;
    json.raw("window", any ? std::to_string(f.causal ? f.window + 1 : 2 * f.window + 1) : "null");
    json.raw("windowed_layers", windowed + "]");
    json.raw("rope_theta", f.rope ? json_number(f.rope->rope.theta) : "null");
    json.number("tensors", double(model.files().weights.size()))
        .number("numbers", double(numbers_of(model.files())));
    json.number("stored_bytes", double(model.files().stored_bytes())).raw("types", types.done());
    json.number("layer_bytes_f32", double(model.block_bytes()))
        .boolean("has_logits", model.has_unembedding());
    json.raw("missing", json_list(model.missing())).raw("not_read", json_list(model.unread()));
    return json.done();
}

namespace {

Result<std::vector<uint32_t>> token_numbers(std::string_view list, std::string_view option) {
    std::vector<uint32_t> ids;
    for (const std::string_view word : split(list, ',')) {
        const Result<int64_t> id = parse_integer(word, option);
        if (!id) return id.error();
        if (*id < 0 || *id > int64_t(UINT32_MAX))
            return Error{FOVEA_INVALID_ARGUMENT, std::string(option),
                         std::string(option) + " has " + std::string(word) +
                             "; a token ID is an integer from 0 to 4294967295"};
        ids.push_back(uint32_t(*id));
    }
    if (ids.size() > kMaxTokens)
        return Error{FOVEA_INVALID_ARGUMENT, std::string(option),
                     std::string(option) + " has " + std::to_string(ids.size()) +
                         " token IDs; the limit is " + std::to_string(kMaxTokens)};
    return ids;
}

}  // namespace

Result<void> check_model_words(const Arguments& arguments) {
    const std::vector<std::string_view>& words = arguments.positional();
    if (words.size() == 1) return {};
    if (words.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "PATH",
                     "the model is missing; give a folder with config.json and safetensors, or a .gguf file"};
    return Error{
        FOVEA_INVALID_ARGUMENT, printable_name(words[1], 40),
        "'" + printable_name(words[1], 40) + "' is a second model; give one, and a text with --text \"...\""};
}

std::vector<std::filesystem::path> files_of(const Checkpoint& files) {
    std::vector<std::filesystem::path> all = {files.path};
    std::error_code code;
    // Readers take what they need of a folder; of a GGUF file's, the other parts may be needed.
    const std::filesystem::path folder = files.gguf ? files.path.parent_path() : files.folder;
    for (std::filesystem::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
        if (!files.gguf || at->path().extension() == files.path.extension()) all.push_back(at->path());
    return all;
}

Result<ModelTokens> input_tokens(const Arguments& arguments, const CheckpointModel& model,
                                 const TokenOptions& options) {
    if (arguments.has(options.tokens) && arguments.has(options.text))
        return Error{FOVEA_INVALID_ARGUMENT, std::string(options.text),
                     std::string(options.text) + " cannot be combined with " + std::string(options.tokens) +
                         "; give one of them"};
    ModelTokens out;
    if (arguments.has(options.tokens)) {
        Result<std::vector<uint32_t>> ids = token_numbers(arguments.text(options.tokens), options.tokens);
        if (!ids) return ids.error();
        out.ids = std::move(*ids);
        return out;
    }
    // Without a tokenizer a reader can still give the token IDs of the text.
    const auto refused = [&](const Error& why) {
        return Error{why.code, std::string(options.text),
                     why.text + "; give token IDs with " + std::string(options.tokens)};
    };
    Result<TextTokenizer> tokenizer = TextTokenizer::open(model.files());
    if (!tokenizer) return refused(tokenizer.error());
    const std::string_view text = options.given ? *options.given : arguments.text(options.text);
    Result<std::vector<uint32_t>> ids = tokenizer->encode(text, options.special);
    if (!ids) return refused(ids.error());
    if (ids->empty())
        return Error{FOVEA_INVALID_ARGUMENT, std::string(options.text),
                     std::string(options.text) + " has no token; give at least one word"};
    out.ids = std::move(*ids);
    out.tokenizer = std::move(*tokenizer);
    return out;
}

bool names_device(const Arguments& arguments) {
    return arguments.has("--backend") || arguments.has("--device");
}

Result<std::unique_ptr<Runner>> open_runner(const Arguments& arguments) {
    if (names_device(arguments)) {
        const Result<EngineOptions> options = engine_options(arguments);
        if (!options) return options.error();
        Result<std::unique_ptr<DeviceRunner>> device = DeviceRunner::open(*options);
        if (!device) return device.error();
        return std::unique_ptr<Runner>(std::move(*device));
    }
    const Result<uint64_t> threads =
        arguments.unsigned_integer("--threads", std::max(1u, std::thread::hardware_concurrency()));
    if (!threads) return threads.error();
    if (*threads < 1 || *threads > 1024)
        return Error{FOVEA_INVALID_ARGUMENT, "--threads",
                     "--threads is " + std::to_string(*threads) + "; it must be from 1 to 1024"};
    return make_cpu_runner(std::make_unique<ThreadPool>(uint32_t(*threads), ThreadPool::kBetweenCalls));
}

Result<void> tell_memory(uint64_t bytes) {
    if (Result<void> r = check_memory(bytes, "give fewer tokens, omit --out, or add --no-scores"); !r)
        return r;
    if (bytes > uint64_t{1} << 30)
        std::fprintf(stderr, "fovea: note: this takes about %s of memory\n", bytes_text(bytes).c_str());
    return {};
}

std::string scores_text(const std::vector<ScoredHead>& heads, size_t most) {
    std::string text;
    for (const TokenScoreName& column : token_score_names()) {
        std::vector<const ScoredHead*> order;
        for (const ScoredHead& head : heads)
            if (!std::isnan(head.scores.*column.value)) order.push_back(&head);
        char label[32];
        std::snprintf(label, sizeof label, "%-15s", column.label);
        text += label;
        if (order.empty()) {
            text += "  the text has no token for it\n";
            continue;
        }
        const size_t count = std::min(most, order.size());
        std::partial_sort(order.begin(), order.begin() + int64_t(count), order.end(),
                          [&](const ScoredHead* a, const ScoredHead* b) {
                              const float x = a->scores.*column.value, y = b->scores.*column.value;
                              return x != y ? x > y : a < b;
                          });
        for (size_t i = 0; i < count; ++i) {
            char one[64];
            std::snprintf(one, sizeof one, "  %llu.%llu %.3f", (unsigned long long)order[i]->layer,
                          (unsigned long long)order[i]->head, double(order[i]->scores.*column.value));
            text += one;
        }
        text += "\n";
    }
    return text;
}

std::string scores_json(const std::vector<ScoredHead>& heads) {
    std::string text = "[";
    for (const ScoredHead& head : heads) {
        JsonObject one;
        one.number("layer", double(head.layer)).number("head", double(head.head));
        for (const TokenScoreName& column : token_score_names())
            one.number(column.key, double(head.scores.*column.value));
        text += (text.size() > 1 ? ", " : "") + one.done();
    }
    return text + "]";
}

}  // namespace fovea::app
