// A model's chat template: messages to the text that an instruct model was trained on.
#pragma once

#include <fovea/files/checkpoint.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

/// One message of a chat; both texts are UTF-8.
struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"; others as far as the template takes them
    std::string content;
};

// The template that a model's files contain, in Jinja. It gives the same text as transformers'
// apply_chat_template without tools and documents. Copies share the parsed template; safe from any thread.
class ChatTemplate {
  public:
    // chat_template.jinja or `chat_template` of tokenizer_config.json in the model's folder;
    // tokenizer.chat_template of a GGUF file. Of several named ones, `default`. Rejects a model without a
    // template, and templates with parts of Jinja that are not supported: the error names the line and part.
    static Result<ChatTemplate> open(const Checkpoint& files);
    // `start` and `end`: the texts of the start and end token, which templates call bos_token and eos_token.
    static Result<ChatTemplate> parse(std::string_view jinja, std::string_view start, std::string_view end);

    // The whole text, special tokens included: split it with special = false. With `answers`, it ends where
    // the model's answer begins. Rejects messages that the template rejects, with the template's reason.
    Result<std::string> render(std::span<const ChatMessage> messages, bool answers = true) const;

  private:
    struct Impl;
    explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

}  // namespace fovea
