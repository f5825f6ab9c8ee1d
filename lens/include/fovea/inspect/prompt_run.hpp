// A model on a text, as a reader looks at it: what enters each layer, every head as a small picture with its
// figures, and what the model says next. A run takes over from the run before it the layers that both compute
// alike.
#pragma once

#include <fovea/inspect/head_stats.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/model/token_scores.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace fovea {

// A head that gives what it gives in another text of as many tokens.
struct PromptPatch {
    uint64_t layer = 0;
    uint32_t head = 0;
    std::vector<uint32_t> ids;
    friend bool operator==(const PromptPatch&, const PromptPatch&) = default;
};

// A prompt and the changes with which the model runs it.
struct Prompt {
    std::vector<uint32_t> ids;
    RunChanges changes;  // without patches: the run fills them in from the next member
    std::vector<PromptPatch> patches;
    uint32_t side = 64;        // pixels of a picture, at most
    bool other_rules = false;  // true if the reader replaced the model's own attention rules
    bool changed() const {
        return other_rules || !changes.head_scales.empty() || !changes.hidden_tokens.empty() ||
               !patches.empty();
    }
};

// One layer's heads. A pixel of a picture is the largest weight of its cells, -inf where all are masked.
struct PromptLayer {
    struct Head {
        TokenScores scores;  // NaN where queries and keys are not those of one text
        HeadStats stats;
    };
    uint32_t layer = 0, rows = 0, columns = 0;  // pixels of a picture
    std::vector<Head> heads;
    std::vector<float> pictures;  // [heads, rows, columns]
    std::string problem;          // the reason for missing heads
};
// Layer n of a trace.
Result<PromptLayer> prompt_layer(Trace& trace, uint32_t n, std::span<const uint32_t> ids, uint32_t side);

// The model's predictions after one token.
struct PromptNext {
    uint64_t row = 0;                           // the token
    std::vector<std::vector<NextToken>> after;  // n layers, n = 0 to all of them; the likeliest first
    // Without the reader's changes: the likeliest, and each token of the last list. Empty where nothing is
    // changed, or where no run without changes is known.
    std::vector<NextToken> before, unchanged;
};

// How a run computes.
struct PromptOptions {
    TraceOptions trace;
    std::function<bool(double)> progress;                // as ModelRunOptions has it
    std::function<Result<void>(uint64_t)> check_memory;  // told the bytes; an error ends the run
    std::function<void()> wake;                          // called when a layer or what enters one is there
    bool keep_writes = false;                            // for score_writers(): layer_writes_bytes() a layer
};

// One thread runs it; any thread may read what is there.
class PromptRun {
  public:
    using Rows = std::shared_ptr<const F32Tensor>;  // [tokens, width]

    // `before`: a run of the same model.
    explicit PromptRun(Prompt prompt, const PromptRun* before = nullptr);
    // Takes over what the unchanged model gave on the same text. The constructor does it with `before`.
    void compare_with(const PromptRun& before);

    // Runs the layers that are not there yet.
    Result<void> run(const CheckpointModel& model, const PromptOptions& options);
    // For models that run otherwise: what enters the next layer, or leaves the last; a layer; and that all
    // are there.
    void enter(F32Tensor x);
    void add(PromptLayer layer, std::shared_ptr<const LayerWrites> writes = nullptr);
    void end();

    const Prompt& prompt() const { return prompt_; }
    size_t finished_layers() const;
    std::shared_ptr<const PromptLayer> layer(size_t n) const;   // null: not there yet
    Rows entering(size_t n) const;                              // null: not there yet
    std::shared_ptr<const LayerWrites> writes(size_t n) const;  // null: not there yet, or not kept
    // True once the texts that heads are taken from have been run; changes() is then complete.
    bool knows_patches() const { return knows_patches_; }
    const RunChanges& changes() const { return prompt_.changes; }
    // The output of the last layer of the unchanged run; null if it is not known.
    Rows unchanged() const;

    // After token `row` of a run that has ended. `logits` turns rows of the residual stream into logits.
    Result<PromptNext> next(uint64_t row, size_t most,
                            const std::function<Result<F32Tensor>(F32Tensor)>& logits) const;

  private:
    Result<void> run_patches(const CheckpointModel& model, const ModelRunOptions& options);

    Prompt prompt_;
    std::atomic<bool> knows_patches_{false};
    mutable std::mutex mutex_;  // guards the rest
    std::vector<std::shared_ptr<const PromptLayer>> layers_;
    std::vector<std::shared_ptr<const LayerWrites>> writes_;  // by layer
    std::vector<Rows> entering_;
    Rows unchanged_;
};

}  // namespace fovea
