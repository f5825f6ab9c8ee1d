// Text to token numbers and back, as a model's tokenizer.json says.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Byte-pair encoding (Sennrich et al., 2016) over bytes (GPT-2, Llama 3, Qwen, NeoX) or over characters with
// bytes to fall back on (Llama 2, Mistral, Gemma), with added and special tokens. Copies share the tables;
// safe from any thread.
class TextTokenizer {
  public:
    // Whether this build has PCRE2, which splits text by the patterns of tokenizer.json. Without it open()
    // refuses.
    static bool available();
    // `folder` is a model's, or the path of a tokenizer.json. Refused by name: kinds of models, patterns and
    // steps that are not computed.
    static Result<TextTokenizer> open(const std::filesystem::path& folder);

    // `text` must be UTF-8. With `special` the tokens that the model's inputs begin or end with are added.
    Result<std::vector<uint32_t>> encode(std::string_view text, bool special = true) const;
    // The bytes that the tokens stand for; special ones stand for nothing. Numbers beyond the table stand for
    // nothing, too.
    std::string decode(std::span<const uint32_t> ids) const;
    // The token as its table has it, for people; empty beyond the table.
    std::string_view piece(uint32_t id) const;

  private:
    class Impl;
    explicit TextTokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<const Impl> impl_;
};

}  // namespace fovea
