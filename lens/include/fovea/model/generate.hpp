// Token after token: a checkpoint with caches of keys and values, so that each new token costs one row of
// every layer and not the whole text again.
#pragma once

#include <fovea/model/checkpoint_model.hpp>

namespace fovea {

// Where a decoder computes, and what it may keep.
struct DecoderOptions {
    Runner* engine = nullptr;  // borrowed, must outlive the decoder; null: this thread's CPU kernels
    // Matrices stay mapped and as they are stored. What else the blocks have (norms, biases, and matrices
    // whose rows the files hold in another order) stays in memory as float32 as long as all of it takes no
    // more than this; else each block is made anew from its file for every call of run().
    uint64_t keep_bytes = uint64_t{8} << 30;
};

// One text. Not thread-safe: one decoder, one thread.
class Decoder {
  public:
    // Allocates KV caches for `capacity` tokens in all. Rejects encoders, models with missing weights or
    // without an unembedding, and a capacity of 0 or beyond the positions that the model has learned. A
    // model with rotary positions runs beyond its context length, where its results mean little.
    static Result<Decoder> open(const CheckpointModel& model, uint64_t capacity,
                                const DecoderOptions& options = {});
    // Returns the largest memory that open() will take: the KV caches, and the blocks if they are kept.
    static uint64_t bytes(const CheckpointModel& model, uint64_t capacity,
                          const DecoderOptions& options = {});

    // Runs the tokens after those that were run before: logits [vocabulary] after the last of them. They are
    // those of the whole text run anew, whatever the capacity: where a text outgrows the angles that short
    // texts turn by (RopeConfig::is_long), this call runs it from its beginning. On an error the decoder
    // holds what it held before.
    Result<std::vector<float>> run(std::span<const uint32_t> ids);
    uint64_t held() const;       // tokens that were run
    uint64_t capacity() const;   // tokens that there is room for
    std::string reason() const;  // which kernel ran attention last, and why

  private:
    class Impl;
    explicit Decoder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<Impl> impl_;
};

// Which tokens may be drawn. In the order of transformers: the temperature, then the filters one after the
// other, each on what the one before has left.
struct SamplerOptions {
    double temperature = 0;  // the softmax is that of logits / temperature; 0: always the largest logit
    uint64_t seed = 0;
    uint64_t top_k = 0;  // keeps the k likeliest tokens, and those as likely as the last of them; 0: all
    double top_p = 1;    // keeps the likeliest tokens until their probabilities reach p together; 1: all
    double min_p = 0;    // keeps tokens with at least p times the probability of the likeliest; 0: all
};

// How the next token is chosen: the one with the largest logit (the first of equals), or drawn.
class Sampler {
  public:
    explicit Sampler(const SamplerOptions& options) : options_(options) {}
    // Draws the same tokens for the same seed and logits.
    Sampler(double temperature, uint64_t seed)
        : Sampler(SamplerOptions{.temperature = temperature, .seed = seed}) {}
    // `position`: place of the new token in its text, from 0. The drawn token depends only on it, the seed
    // and the logits. So a text that is continued later goes on as in one run. Rejects logits that are not
    // finite.
    Result<uint32_t> choose(std::span<const float> logits, uint64_t position) const;

  private:
    SamplerOptions options_;
};

// How a text goes on.
struct GenerationOptions {
    SamplerOptions sampling;
    uint64_t count = 32;      // most tokens to generate, 1 to 1,000,000
    bool ignore_eos = false;  // true: go on where the model ends its text
    DecoderOptions decoder;
};
// Rejects a count or a sampling option out of its range, and filters without a temperature. The error's text
// begins with its field's name.
Result<void> check_generation(const GenerationOptions& options);

// A text that a model goes on with, one token after the other. Not thread-safe: one generation, one thread.
class Generation {
  public:
    // Rejects what check_generation() and Decoder::open() reject, and an empty text.
    static Result<Generation> open(const CheckpointModel& model, std::vector<uint32_t> text,
                                   const GenerationOptions& options);
    // Returns Decoder::bytes() for a text of so many tokens that goes on.
    static uint64_t bytes(const CheckpointModel& model, uint64_t tokens, const GenerationOptions& options) {
        return Decoder::bytes(model, capacity(tokens, options), options.decoder);
    }
    // True if the last token of this text ends it, by the model's files and these options.
    static bool ends(const CheckpointModel& model, std::span<const uint32_t> text,
                     const GenerationOptions& options);

    // Returns the next token. Must not be called once done() is true, nor after an error.
    Result<uint32_t> next();
    bool ended() const { return ended_; }  // true if the last token was an end token
    bool done() const { return ended_ || made_.size() == options_.count; }
    const std::vector<uint32_t>& made() const { return made_; }  // with the end token
    std::string reason() const { return decoder_.reason(); }

  private:
    // The last token is only chosen, and not run.
    static uint64_t capacity(uint64_t tokens, const GenerationOptions& options) {
        return tokens + options.count - 1;
    }
    Generation(const CheckpointModel& model, Decoder decoder, std::vector<uint32_t> text,
               const GenerationOptions& options)
        : model_(model),
          decoder_(std::move(decoder)),
          options_(options),
          text_size_(text.size()),
          next_(std::move(text)) {}

    CheckpointModel model_;
    Decoder decoder_;
    GenerationOptions options_;
    uint64_t text_size_;
    std::vector<uint32_t> next_, made_;  // next_: tokens that the decoder has not run
    bool ended_ = false;
};

}  // namespace fovea
