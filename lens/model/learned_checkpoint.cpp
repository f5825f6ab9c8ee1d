// A model that learned a task as the files of a published model, so that everything that opens one opens it.
#include <fovea/model/learned.hpp>

#include <fovea/files/json.hpp>

#include <algorithm>

namespace fovea {
namespace {

struct HeldFile final : StoredFile {
    std::string text;                  // used where `bytes` is empty
    std::span<const std::byte> bytes;  // static
    uint64_t size_bytes() const noexcept override { return held().size(); }
    std::span<const std::byte> held() const noexcept override {
        return bytes.empty() ? std::as_bytes(std::span(text)) : bytes;
    }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        std::ranges::copy(held().subspan(size_t(first), out.size()), out.begin());
        return {};
    }
};

NamedFile text_file(std::string name, std::string text) {
    auto file = std::make_shared<HeldFile>();
    file->text = std::move(text);
    return {std::move(name), std::move(file)};
}

std::string config_json(const Model& model) {
    const AttentionPart& part = model.blocks[0].attention;
    JsonObject json;
    json.text("model_type", part.rope ? "fovea_rotary" : "fovea")
        .number("num_hidden_layers", double(model.blocks.size()))
        .number("hidden_size", double(model.embedding.table.columns()))
        .number("num_attention_heads", part.heads)
        .number("head_dim", double(part.query.d_out() / part.heads))
        .number("layer_norm_eps", model.final_norm.epsilon);
    if (part.rope) json.number("rope_theta", part.rope->theta);
    if (const uint64_t places = model.embedding.positions.rows())
        json.number("max_position_embeddings", double(places));
    return json.done();
}

// Words with spaces between; a sequence begins with "<start>" if the vocabulary has it.
std::string tokenizer_json(const std::vector<std::string>& words) {
    const std::string start = "<start>";
    JsonObject vocabulary;
    for (size_t id = 0; id < words.size(); ++id) vocabulary.number(words[id].c_str(), double(id));
    JsonObject json;
    const auto at = std::find(words.begin(), words.end(), start);
    if (at != words.end()) {
        const std::string id = std::to_string(at - words.begin()), name = json_string(start);
        json.raw("added_tokens", "[{\"id\":" + id + ",\"content\":" + name +
                                     ",\"special\":true,\"normalized\":false,\"single_word\":false,"
                                     "\"lstrip\":false,\"rstrip\":false}]")
            .raw("post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":" +
                                       name + "}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{" +
                                       name + ":{\"ids\":[" + id + "]}}}");
    }
    return json.raw("pre_tokenizer", "{\"type\":\"WhitespaceSplit\"}")
        .raw("model", JsonObject()
                          .text("type", "WordLevel")
                          .text("unk_token", "")
                          .raw("vocab", vocabulary.done())
                          .done())
        .done();
}

}  // namespace

std::vector<NamedFile> learned_checkpoint(const std::filesystem::path& path) {
    const std::string task = path.string();
    auto weights = std::make_shared<HeldFile>();
    weights->bytes = learned_weights(task);
    std::error_code code;
    if (weights->bytes.empty() || std::filesystem::exists(path, code)) return {};
    const Result<LearnedModel> learned = learned_model(task);
    if (!learned) return {};
    std::vector<NamedFile> files = {text_file("config.json", config_json(*learned->model)),
                                    {"model.safetensors", std::move(weights)}};
    if (!learned->tokenizer)
        files.push_back(text_file("tokenizer.json", tokenizer_json(learned->model->vocabulary)));
    return files;
}

}  // namespace fovea
