#include <fovea/model/learned.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <tuple>

#include "files/embedded.hpp"
#include "model/tables.hpp"

namespace fovea {

std::span<const EmbeddedFile> learned_files();

namespace {

constexpr uint32_t kMaxLayers = 64;

Error bad(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, field, field + " " + std::move(text)};
}

// Takes the next piece before a separator off a text that is not empty.
std::string_view take_piece(std::string_view& text, std::string_view separator) {
    const std::string_view piece = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(piece.size() + separator.size(), text.size()));
    return piece;
}

// Pieces between separators; none of an empty text.
std::vector<std::string> pieces(std::string_view text, std::string_view separator) {
    size_t count = 0;
    for (std::string_view rest = text; !rest.empty(); ++count) take_piece(rest, separator);
    std::vector<std::string> all;
    all.reserve(count);
    while (!text.empty()) all.emplace_back(take_piece(text, separator));
    return all;
}

std::string_view note_or_nothing(const TensorSet& file, std::string_view key) {
    const std::string* text = file.find_metadata(key);
    return text ? std::string_view(*text) : std::string_view();
}

Result<uint32_t> number_note(const TensorSet& file, std::string_view key) {
    const std::string field = "note '" + std::string(key) + "'";
    const std::string* text = file.find_metadata(key);
    if (!text) return bad(field, "is not in the file");
    uint32_t value = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (code != std::errc() || end != text->data() + text->size())
        return bad(field, "is '" + printable_name(*text) + "'; it must be an integer");
    return value;
}

// Tensors by name, checked and made float32 as they are asked for; the first fault stays.
class Weights {
  public:
    explicit Weights(const TensorSet& file) : file_(file) {}

    // Empty where there is none.
    F32Tensor take(const std::string& name, size_t rank) {
        const Tensor* tensor = file_.find(name);
        if (!tensor || fault_) return F32Tensor(Shape(rank, 0));
        const std::string field = "tensor '" + name + "'";
        if (tensor->shape.size() != rank) {
            fault_ = bad(field, "has " + std::to_string(tensor->shape.size()) + " dimensions; it must have " +
                                    std::to_string(rank));
            return F32Tensor(Shape(rank, 0));
        }
        Result<std::vector<float>> values = to_f32(*tensor);
        if (!values) {
            fault_ = values.error();
            return F32Tensor(Shape(rank, 0));
        }
        for (const float value : *values)
            if (!std::isfinite(value)) fault_ = bad(field, "has an element that is not finite");
        return F32Tensor(tensor->shape, std::move(*values));
    }
    Linear linear(const std::string& name) {
        Linear layer;
        layer.weight = take(name + ".weight", 2);
        layer.bias = take(name + ".bias", 1);
        return layer;
    }
    Norm norm(const std::string& name) {
        Norm norm;
        if (!has(name + ".weight")) return norm;
        norm.kind = NormKind::layer;
        norm.weight = take(name + ".weight", 1);
        norm.bias = take(name + ".bias", 1);
        return norm;
    }
    bool has(const std::string& name) const { return file_.find(name) != nullptr; }
    const std::optional<Error>& fault() const { return fault_; }

  private:
    const TensorSet& file_;
    std::optional<Error> fault_;
};

Block read_block(Weights& weights, const std::string& prefix, uint32_t heads,
                 std::optional<double> rope_theta) {
    Block block;
    block.residual = true;
    block.attention_norm = weights.norm(prefix + "norm");
    block.attention.query = weights.linear(prefix + "query");
    block.attention.key = weights.linear(prefix + "key");
    block.attention.value = weights.linear(prefix + "value");
    block.attention.output = weights.linear(prefix + "output");
    block.attention.heads = block.attention.kv_heads = heads;
    block.attention.rules.causal = true;
    if (rope_theta) {
        block.attention.rope.emplace();
        block.attention.rope->theta = *rope_theta;
    }
    return block;
}

// Heads, widths and rows that fit each other: what a trace and the programs count on.
std::optional<Error> check_shapes(const Model& model) {
    const uint64_t tokens = model.embedding.table.rows(), width = model.embedding.table.columns();
    const auto fits = [](const Linear& layer, uint64_t in, uint64_t out) {
        return layer.d_in() == in && layer.d_out() == out &&
               (!layer.has_bias() || layer.bias.values.size() == out);
    };
    const F32Tensor& places = model.embedding.positions;
    if (!places.values.empty() && places.columns() != width)
        return bad("tensor 'positions.weight'", "has rows of " + std::to_string(places.columns()) +
                                                    " elements; it must have rows of " +
                                                    std::to_string(width));
    const auto normal = [&](const Norm& norm) {
        return norm.kind == NormKind::none ||
               (norm.weight.values.size() == width &&
                (norm.bias.values.empty() || norm.bias.values.size() == width));
    };
    if (!normal(model.final_norm))
        return bad("tensor 'final_norm.weight'", "does not have the width of the embedding");
    for (size_t n = 0; n < model.blocks.size(); ++n) {
        const AttentionPart& part = model.blocks[n].attention;
        const uint64_t all = part.query.d_out(), values = part.value.d_out();
        if (part.heads == 0 || all == 0 || all % part.heads != 0 || values % part.heads != 0 ||
            (part.rope && all / part.heads % 2 != 0))
            return bad("note 'heads'", "is " + std::to_string(part.heads) + "; layer " + std::to_string(n) +
                                           " has " + std::to_string(all) +
                                           " rows of queries, which they must divide");
        if (!fits(part.query, width, all) || !fits(part.key, width, all) ||
            !fits(part.value, width, values) || !fits(part.output, values, width) ||
            !normal(model.blocks[n].attention_norm))
            return bad("layer " + std::to_string(n), "has matrices whose shapes do not fit each other");
    }
    if (!fits(model.unembedding, width, tokens))
        return bad("tensor 'unembedding.weight'",
                   "gives " + std::to_string(model.unembedding.d_out()) + " scores for rows of " +
                       std::to_string(model.unembedding.d_in()) + "; the embedding has " +
                       std::to_string(tokens) + " rows of " + std::to_string(width));
    return std::nullopt;
}

}  // namespace

std::vector<std::string> learned_tasks() {
    std::vector<std::string> names;
    for (const EmbeddedFile& file : learned_files()) names.emplace_back(file.name);
    return names;
}

std::string known_learned_tasks() {
    std::string known;
    for (const std::string& name : learned_tasks()) known += (known.empty() ? "" : ", ") + name;
    return known;
}

std::span<const std::byte> learned_weights(std::string_view task) {
    for (const EmbeddedFile& file : learned_files())
        if (file.name == task) return std::as_bytes(std::span(file.bytes, file.size_bytes));
    return {};
}

Result<LearnedModel> learned_model(std::string_view task) {
    const std::span<const std::byte> bytes = learned_weights(task);
    if (bytes.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "task",
                     "task is '" + std::string(task) + "'; it must be one of " + known_learned_tasks()};
    const Result<TensorSet> file = parse_safetensors(bytes);
    if (!file) return file.error();
    return read_learned_model(*file);
}

Result<LearnedModel> read_learned_model(const TensorSet& file) {
    LearnedModel learned;
    learned.task = note_or_nothing(file, "task");
    if (learned.task.empty()) return bad("note 'task'", "is not in the file");
    if (const std::string shown = printable_name(learned.task); shown != learned.task)
        return bad("note 'task'", "is '" + shown + "'; it must be up to 120 printable bytes without quotes");
    for (const JsonValue& text : model_table("learned").items()) {
        if (text["task"].text() != learned.task) continue;
        learned.title = text["title"].text();
        learned.about = text["about"].text();
        for (const JsonValue& paragraph : text["look_at"].items())
            learned.look_at.emplace_back(paragraph.text());
    }
    learned.made_by = note_or_nothing(file, "made_by");
    learned.head_labels = pieces(note_or_nothing(file, "head_labels"), ", ");
    const Result<uint32_t> heads = number_note(file, "heads");
    if (!heads) return heads.error();
    const std::string_view positions = note_or_nothing(file, "positions");
    std::optional<double> rope_theta;
    if (positions == "rotary") {
        const Result<uint32_t> theta = number_note(file, "rope_theta");
        if (!theta) return theta.error();
        if (*theta == 0) return bad("note 'rope_theta'", "is 0; it must be at least 1");
        rope_theta = *theta;
    } else if (positions != "learned" && positions != "none" && !positions.empty()) {
        return bad("note 'positions'",
                   "is '" + printable_name(positions) + "'; it must be none, learned or rotary");
    }

    Weights weights(file);
    auto model = std::make_shared<Model>();
    model->name = learned.task;
    model->vocabulary = pieces(note_or_nothing(file, "vocabulary"), " ");
    model->embedding.table = weights.take("embedding.weight", 2);
    if (positions == "learned") model->embedding.positions = weights.take("positions.weight", 2);
    if (positions == "learned" && model->embedding.positions.values.empty() && !weights.fault())
        return bad("tensor 'positions.weight'", "is not in the file, but note 'positions' is 'learned'");
    for (uint32_t n = 0; n < kMaxLayers && weights.has("layers." + std::to_string(n) + ".query.weight"); ++n)
        model->blocks.push_back(read_block(weights, "layers." + std::to_string(n) + ".", *heads, rope_theta));
    if (weights.has("layers." + std::to_string(kMaxLayers) + ".query.weight"))
        return bad("layers", "has more than " + std::to_string(kMaxLayers) + " entries, the limit");
    model->final_norm = weights.norm("final_norm");
    model->unembedding = weights.linear("unembedding");
    if (weights.fault()) return *weights.fault();
    if (model->blocks.empty()) return bad("tensor 'layers.0.query.weight'", "is not in the file");
    const uint64_t tokens = model->embedding.table.shape[0];
    if (const auto error = check_shapes(*model)) return *error;
    if (tokens < 2 || model->vocabulary.size() != tokens)
        return bad("note 'vocabulary'", "has " + std::to_string(model->vocabulary.size()) +
                                            " words; the embedding has " + std::to_string(tokens) + " rows");
    if (note_or_nothing(file, "tokenizer") == "text") {
        Result<LearnedTokenizer> tokenizer = LearnedTokenizer::open(model->vocabulary);
        if (!tokenizer) return bad("note 'vocabulary'", "cannot be used: " + tokenizer.error().text);
        learned.tokenizer = std::make_shared<const LearnedTokenizer>(std::move(*tokenizer));
    }
    learned.model = std::move(model);
    const Result<std::vector<uint32_t>> sample = learned_tokens(learned, note_or_nothing(file, "sample"));
    if (!sample) return bad("note 'sample'", "cannot be used: " + sample.error().text);
    learned.sample = *sample;
    return learned;
}

Result<std::vector<uint32_t>> learned_tokens(const LearnedModel& learned, std::string_view text) {
    std::vector<uint32_t> tokens;
    if (learned.tokenizer) {
        tokens.push_back(LearnedTokenizer::kStart);
        for (const TextToken& token : learned.tokenizer->encode(text)) tokens.push_back(token.token);
        return tokens;
    }
    const std::vector<std::string>& words = learned.model->vocabulary;
    std::vector<uint32_t> sorted(words.size());  // for duplicate words the first token comes first
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::sort(sorted.begin(), sorted.end(),
              [&](uint32_t a, uint32_t b) { return std::tie(words[a], a) < std::tie(words[b], b); });
    while (!text.empty()) {
        const std::string_view word = take_piece(text, " ");
        if (word.empty()) continue;
        const auto found = std::lower_bound(sorted.begin(), sorted.end(), word,
                                            [&](uint32_t a, std::string_view b) { return words[a] < b; });
        if (found == sorted.end() || words[*found] != word)
            return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                         "'" + printable_name(word) + "' is not a token of the task " + learned.task};
        tokens.push_back(*found);
    }
    return tokens;
}

Result<ModelInput> learned_input(const LearnedModel& learned, std::span<const uint32_t> tokens) {
    Result<F32Tensor> x = embed(*learned.model, tokens);
    if (!x) return x.error();
    ModelInput input;
    input.x = std::move(*x);
    for (const uint32_t token : tokens) {
        Token word;
        word.text = learned.model->vocabulary[token];
        input.tokens.push_back(std::move(word));
    }
    return input;
}

}  // namespace fovea
