#include "model/token_model.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostTokens = 1024;
constexpr uint64_t kWordWidth = 3;

struct KnownWord {
    std::string_view word;
    float vector[kWordWidth];
};
constexpr KnownWord kKnownWords[] = {{"Your", {0.43f, 0.15f, 0.89f}},   {"journey", {0.55f, 0.87f, 0.66f}},
                                     {"starts", {0.57f, 0.85f, 0.64f}}, {"with", {0.22f, 0.58f, 0.33f}},
                                     {"one", {0.77f, 0.25f, 0.10f}},    {"step", {0.05f, 0.80f, 0.55f}}};

uint32_t fnv1a(std::string_view text) {
    uint32_t hash = 2166136261u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

F32Tensor as_heads(const F32Tensor& rows, uint64_t heads) {
    return split_heads(reshaped(rows, {1, rows.rows(), rows.columns()}), heads);
}

Linear drawn_linear(TorchGenerator& random, uint64_t d_in, uint64_t d_out, bool bias) {
    Linear layer;
    layer.weight = F32Tensor(Shape{d_out, d_in});
    random.linear_weight(layer.weight.values, d_in);
    if (bias) {
        layer.bias = F32Tensor(Shape{d_out});
        random.linear_bias(layer.bias.values, d_in);
    }
    return layer;
}

Linear drawn_parameter(TorchGenerator& random, uint64_t d_in, uint64_t d_out) {
    Linear layer;
    layer.layout = WeightLayout::in_out;
    layer.weight = F32Tensor(Shape{d_in, d_out});
    random.rand(layer.weight.values);
    return layer;
}

void add_stage(Projected& p, std::string name, std::string formula, F32Tensor tensor) {
    p.stages.push_back({std::move(name), std::move(formula), std::move(tensor)});
}

F32Tensor heads_only(const F32Tensor& t) { return reshaped(t, {t.shape[1], t.shape[2], t.shape[3]}); }

struct QkvLayers {
    Linear q, k, v;
};

Result<void> project_qkv(Projected& p, const QkvLayers& layers, uint64_t heads) {
    StrictExecutor strict;
    const Result<F32Tensor> q = strict.linear(p.inputs, layers.q), k = strict.linear(p.inputs, layers.k),
                            v = strict.linear(p.inputs, layers.v);
    for (const Result<F32Tensor>* r : {&q, &k, &v})
        if (!*r) return r->error();
    add_stage(p, "W_query", "drawn from the seed", layers.q.weight);
    add_stage(p, "W_key", "drawn from the seed", layers.k.weight);
    add_stage(p, "W_value", "drawn from the seed", layers.v.weight);
    const uint64_t kv_heads = heads * k->columns() / q->columns();
    p.q = as_heads(*q, heads), p.k = as_heads(*k, kv_heads), p.v = as_heads(*v, kv_heads);
    return {};
}

// Level 5: each head draws its three layers before the next one does.
Result<void> project_stacked(Projected& p, TorchGenerator& random, uint64_t heads, uint64_t width) {
    QkvLayers all;
    std::vector<F32Tensor> q, k, v;
    StrictExecutor strict;
    for (uint64_t h = 0; h < heads; ++h) {
        const QkvLayers layers = {drawn_linear(random, p.inputs.columns(), width, false),
                                  drawn_linear(random, p.inputs.columns(), width, false),
                                  drawn_linear(random, p.inputs.columns(), width, false)};
        const Result<F32Tensor> hq = strict.linear(p.inputs, layers.q),
                                hk = strict.linear(p.inputs, layers.k),
                                hv = strict.linear(p.inputs, layers.v);
        for (const Result<F32Tensor>* r : {&hq, &hk, &hv})
            if (!*r) return r->error();
        q.push_back(*hq), k.push_back(*hk), v.push_back(*hv);
        add_stage(p, "W_query " + std::to_string(h + 1), "drawn from the seed", layers.q.weight);
        add_stage(p, "W_key " + std::to_string(h + 1), "drawn from the seed", layers.k.weight);
        add_stage(p, "W_value " + std::to_string(h + 1), "drawn from the seed", layers.v.weight);
    }
    p.q = as_heads(concat_columns(q), heads), p.k = as_heads(concat_columns(k), heads),
    p.v = as_heads(concat_columns(v), heads);
    return {};
}

// Level 7: one joint projection with bias at GPT-2 small's shape, weights of standard deviation 0.02.
Result<void> project_gpt(Projected& p, TorchGenerator& random, uint64_t kv_heads) {
    constexpr uint64_t kHeads = 12, kWidth = 768;
    if (kv_heads == 0) kv_heads = kHeads;
    if (kHeads % kv_heads != 0)
        return Error{FOVEA_INVALID_ARGUMENT, "KV heads",
                     std::to_string(kv_heads) + " do not divide " + std::to_string(kHeads) + " query heads"};
    p.inputs = drawn_inputs(p.tokens, kWidth);
    p.stages[0].tensor = p.inputs;
    const auto normal_layer = [&](uint64_t d_out) {
        Linear layer;
        layer.weight = F32Tensor(Shape{d_out, kWidth});
        random.randn(layer.weight.values);
        for (float& w : layer.weight.values) w *= 0.02f;
        return layer;
    };
    const uint64_t kv_width = kWidth / kHeads * kv_heads;
    const QkvLayers layers = {normal_layer(kWidth), normal_layer(kv_width), normal_layer(kv_width)};
    p.output_layer = normal_layer(kWidth);
    p.has_output_layer = true;
    return project_qkv(p, layers, kHeads);
}

}  // namespace

static std::vector<std::string> split_words(const std::string& text, size_t limit) {
    std::vector<std::string> words;
    bool in_word = false;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter = std::isalnum(byte) || byte >= 0x80 || c == '\'' || c == '-' || c == '_';
        if (std::isspace(byte)) {
            in_word = false;
            continue;
        }
        if (!letter || !in_word) {
            if (words.size() == limit) return words;
            words.emplace_back();
        }
        words.back() += c;
        in_word = letter;
    }
    return words;
}

static size_t character_bytes(std::string_view rest) {
    const auto lead = static_cast<unsigned char>(rest[0]);
    const size_t wanted = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    size_t count = 1;
    while (count < std::min(wanted, rest.size()) && (static_cast<unsigned char>(rest[count]) & 0xc0) == 0x80)
        ++count;
    return count;
}

std::vector<std::string> split_text(const std::string& text, Tokenizer how, size_t limit) {
    if (how == Tokenizer::words) return split_words(text, limit);
    constexpr const char* kSpace = "\xe2\x90\xa3";  // an open box
    std::vector<std::string> tokens;
    for (size_t at = 0; at < text.size() && tokens.size() < limit;) {
        const size_t count =
            how == Tokenizer::characters ? character_bytes(std::string_view(text).substr(at)) : 1;
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x20 || byte == ' ' || byte == 0x7f || (how == Tokenizer::bytes && byte >= 0x80)) {
            constexpr char kHex[] = "0123456789abcdef";
            tokens.push_back(byte == ' ' ? kSpace : std::string{kHex[byte >> 4], kHex[byte & 15]});
        } else {
            tokens.push_back(text.substr(at, count));
        }
        at += count;
    }
    return tokens;
}

F32Tensor embed_words(const std::vector<std::string>& tokens) {
    F32Tensor inputs(Shape{tokens.size(), kWordWidth});
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auto known = std::find_if(std::begin(kKnownWords), std::end(kKnownWords),
                                        [&](const KnownWord& w) { return w.word == tokens[i]; });
        if (known != std::end(kKnownWords)) {
            std::copy(known->vector, known->vector + kWordWidth, inputs.row(i).begin());
        } else {
            TorchGenerator of_word(fnv1a(tokens[i]));
            of_word.rand(inputs.row(i));
            for (float& x : inputs.row(i)) x = std::round(x * 100) / 100;
        }
    }
    return inputs;
}

std::vector<std::string> text_tokens(const Settings& s) {
    std::vector<std::string> typed = split_text(s.text, s.tokenizer, kMostTokens);
    if (s.level != 7 || s.length <= 0 || typed.empty()) return typed;
    std::vector<std::string> tokens(std::min(size_t(s.length), kMostTokens));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = typed[i % typed.size()];
    return tokens;
}

F32Tensor drawn_inputs(const std::vector<std::string>& tokens, uint64_t width) {
    F32Tensor inputs(Shape{tokens.size(), width});
    for (size_t i = 0; i < tokens.size(); ++i) {
        TorchGenerator of_word(fnv1a(tokens[i]));
        of_word.randn(inputs.row(i));
    }
    return inputs;
}

Result<Projected> project(const Settings& s) {
    Projected p;
    p.tokens = text_tokens(s);
    if (p.tokens.empty()) return Error{FOVEA_INVALID_ARGUMENT, "text", "there is no token in the text"};
    if (split_text(s.text, s.tokenizer, kMostTokens + 1).size() > kMostTokens)
        p.warnings.push_back("the text has more than " + std::to_string(kMostTokens) +
                             " tokens: the first ones are shown");
    p.inputs = embed_words(p.tokens);
    add_stage(p, "inputs",
              s.level == 7 ? "one vector of 768 numbers for each token" : "one vector for each token",
              p.inputs);
    TorchGenerator random(s.weight_seed);
    const uint64_t d_in = p.inputs.columns();
    Result<void> done;
    switch (s.level) {
        case 1:
            p.q = p.k = p.v = as_heads(p.inputs, 1);
            break;
        case 2: {
            const QkvLayers layers = {drawn_parameter(random, d_in, 2), drawn_parameter(random, d_in, 2),
                                      drawn_parameter(random, d_in, 2)};
            done = project_qkv(p, layers, 1);
            break;
        }
        case 5:
            done = project_stacked(p, random, 2, 2);
            break;
        case 6: {
            const QkvLayers layers = {drawn_linear(random, d_in, 2, false),
                                      drawn_linear(random, d_in, 2, false),
                                      drawn_linear(random, d_in, 2, false)};
            p.output_layer = drawn_linear(random, 2, 2, true);
            p.has_output_layer = true;
            done = project_qkv(p, layers, 2);
            break;
        }
        case 7:
            done = project_gpt(p, random, uint64_t(s.kv_heads));
            break;
        default: {
            const QkvLayers layers = {drawn_linear(random, d_in, 2, false),
                                      drawn_linear(random, d_in, 2, false),
                                      drawn_linear(random, d_in, 2, false)};
            done = project_qkv(p, layers, 1);
        }
    }
    if (!done) return done.error();
    if (s.rope && s.level > 1) {
        if (p.q.shape[3] % 2 != 0)
            return Error{FOVEA_INVALID_ARGUMENT, "RoPE", "heads of width 1 cannot be rotated"};
        StrictExecutor strict;
        for (F32Tensor* t : {&p.q, &p.k}) {
            Result<F32Tensor> rotated = strict.rope(*t, Rope{});
            if (!rotated) return rotated.error();
            *t = std::move(*rotated);
        }
    }
    if (s.scaled) p.divisor = std::sqrt(float(p.q.shape[3]));
    if (s.level > 1) {
        // A linear layer keeps its weights as [outputs, inputs].
        const std::string by = s.level == 2 ? "" : " transposed";
        const auto rotated = [&](const std::string& formula) {
            return s.rope ? "rotated(" + formula + ")" : formula;
        };
        add_stage(p, "queries", rotated("inputs W_query" + by), heads_only(p.q));
        add_stage(p, "keys", rotated("inputs W_key" + by), heads_only(p.k));
        add_stage(p, "values", "inputs W_value" + by, heads_only(p.v));
    }
    return p;
}

}  // namespace fovea::visualizer
