// A model that `fovea heads` runs over texts: a published one, or one that was trained here.
#pragma once

#include <fovea/model/learned.hpp>
#include <fovea/model/trace.hpp>
#include <fovea/tokenizer.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::app {

// Const functions are safe from any thread.
class HeadsModel {
  public:
    // A path of a published model, a file that `fovea train --out` wrote, or a task whose model the library
    // has.
    static Result<HeadsModel> open(std::string_view word);

    const std::string& name() const { return name_; }
    const std::string& task() const { return task_; }  // empty: a published model
    const std::string& fingerprint() const { return fingerprint_; }
    uint64_t layers = 0, heads = 0, kv_heads = 0, head_width = 0;  // heads of each layer
    uint64_t longest = 0;                                          // tokens; 0: no limit is known

    // Returns the token IDs of a text; none of an empty one.
    Result<std::vector<uint32_t>> tokens(std::string_view text) const;
    // Returns the text of each token, with the space before it. Joined they are the text as the tokenizer
    // decodes it, with the tokens that the model adds.
    std::vector<std::string> token_texts(std::span<const uint32_t> ids) const;
    // Returns the text that a reader types to get these tokens.
    std::string typed(std::span<const uint32_t> ids) const;
    // Runs all layers and calls `use` after each.
    Result<void> run(
        std::span<const uint32_t> ids, const TraceOptions& options,
        const std::function<Result<void>(uint64_t layer, Trace& trace, uint32_t in_trace)>& use) const;
    // Bytes of a run on so many tokens, apart from the model's file.
    uint64_t run_bytes(uint64_t tokens) const;

  private:
    std::string name_, task_, fingerprint_;
    std::optional<TextModel> published_;
    std::optional<LearnedModel> learned_;
};

}  // namespace fovea::app
