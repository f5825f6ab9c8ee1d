// Finds a model's chat template in its files, and gives it its variables.
#include <fovea/chat_template.hpp>

#include "files/mapped_file.hpp"
#include "files/refusal.hpp"
#include "tokenizer/jinja.hpp"

namespace fovea {

struct ChatTemplate::Impl {
    jinja::Node tree;
    std::string start, end;
};

namespace {

using files::cat;

constexpr size_t kMaxTemplate = size_t{1} << 20;
constexpr uint64_t kMaxConfig = 100'000'000;

struct Source {
    std::string jinja, start, end;
};

Error missing(const Checkpoint& files) {
    return Error{FOVEA_UNSUPPORTED, "chat template",
                 printable_name(files.path.string(), 400) +
                     " has no chat template: its model was not trained on chats"};
}

Result<Source> of_gguf(const Checkpoint& files) {
    const GgufFile& file = *files.gguf;
    const GgufValue* text = file.find("tokenizer.chat_template");
    if (!text || !text->text()) return missing(files);
    Source source{std::string(*text->text()), {}, {}};
    const GgufValue* list = file.find("tokenizer.ggml.tokens");
    const auto tokens = list ? list->texts() : std::nullopt;
    const auto token = [&](std::string_view key) {
        const GgufValue* value = file.find(key);
        const auto id = value ? value->whole() : std::nullopt;
        return id && tokens && *id < tokens->size() ? std::string((*tokens)[size_t(*id)]) : std::string();
    };
    source.start = token("tokenizer.ggml.bos_token_id"), source.end = token("tokenizer.ggml.eos_token_id");
    return source;
}

// The text of a file in the model's folder; empty where it is missing.
Result<std::string> text_in(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return std::string();
    const auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    const std::span<const std::byte> bytes = (*file)->bytes();
    if (bytes.size() > kMaxConfig)
        return files::unsupported("chat template", cat(files::path_text(path), " has ", bytes.size(),
                                                       " bytes; the limit is ", kMaxConfig));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Source> of_folder(const Checkpoint& files) {
    const std::filesystem::path path = files.folder / "tokenizer_config.json";
    const Result<std::string> text = text_in(path);
    if (!text) return text.error();
    const Result<JsonValue> config = text->empty() ? Result<JsonValue>(JsonValue()) : parse_json(*text);
    if (!config) return files::in_file(path, config.error());
    // A token is a text, or an object with its text.
    const auto token = [&](std::string_view name) {
        const JsonValue value = (*config)[name];
        return std::string(value.kind() == JsonValue::Kind::object ? value["content"].text() : value.text());
    };
    Result<std::string> own = text_in(files.folder / "chat_template.jinja");
    if (!own) return own.error();
    Source source{std::move(*own), token("bos_token"), token("eos_token")};
    if (source.jinja.empty()) source.jinja = (*config)["chat_template"].text();
    for (const JsonValue& one : (*config)["chat_template"].items())
        if (source.jinja.empty() && one["name"].text() == "default") source.jinja = one["template"].text();
    if (source.jinja.empty()) return missing(files);
    return source;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::open(const Checkpoint& files) {
    const Result<Source> source = files.gguf ? of_gguf(files) : of_folder(files);
    if (!source) return source.error();
    Result<ChatTemplate> made = parse(source->jinja, source->start, source->end);
    if (made) return made;
    return files::in_file(files.path, made.error());
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view jinja, std::string_view start,
                                         std::string_view end) {
    if (jinja.size() > kMaxTemplate)
        return files::unsupported("chat template",
                                  cat("the chat template has ", jinja.size(), " bytes; the limit is 1 MiB"));
    Result<jinja::Node> tree = jinja::parse(jinja);
    if (!tree) return tree.error();
    return ChatTemplate(
        std::make_shared<const Impl>(Impl{std::move(*tree), std::string(start), std::string(end)}));
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages, bool answers) const {
    using jinja::Value;
    jinja::List list;
    for (const ChatMessage& message : messages) {
        jinja::Map one;
        one.set("role", Value::of(message.role)), one.set("content", Value::of(message.content));
        list.push_back(Value::of(std::move(one)));
    }
    jinja::Map globals;
    globals.set("messages", Value::of(std::move(list)));
    globals.set("add_generation_prompt", Value::of(answers));
    globals.set("bos_token", Value::of(impl_->start)), globals.set("eos_token", Value::of(impl_->end));
    // transformers passes both, without a value.
    globals.set("tools", Value::none()), globals.set("documents", Value::none());
    return jinja::render(impl_->tree, std::move(globals));
}

}  // namespace fovea
