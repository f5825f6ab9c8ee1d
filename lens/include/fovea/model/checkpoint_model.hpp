// Reads models from their files: the family of a checkpoint, and its blocks as data for a Trace. Weights stay
// mapped and in their stored types. Weights that no kernel can read are converted to float32 piece by piece,
// so running a model layer by layer takes at most its largest block in float32, in addition to the file's own
// pages.
#pragma once

#include <fovea/files/checkpoint.hpp>
#include <fovea/model/trace.hpp>
#include <fovea/model/transformer.hpp>

#include <functional>

namespace fovea {

// Rotary positions as a file describes them. Which divisors hold may depend on the number of tokens.
struct RopeConfig {
    Rope rope;
    std::vector<double> long_divisors;  // in place of the rope's from `original_length` + 1 tokens on
    uint64_t original_length = 0;       // 0: the rope's divisors hold for any length
    // True if a text of so many tokens turns by the long divisors.
    bool is_long(uint64_t tokens) const {
        return original_length != 0 && tokens > original_length && !long_divisors.empty();
    }
};

// The configuration of a model, read from its files.
struct ModelConfig {
    std::string family;        // "Llama"
    std::string architecture;  // as the files call it: "mistral"
    uint64_t layers = 0, width = 0, heads = 0, kv_heads = 0;
    uint64_t head_width = 0, hidden = 0;   // columns of a head; of the feed-forward part's middle
    uint64_t vocabulary = 0, context = 0;  // tokens; the longest input, 0 where the files do not say
    bool causal = true;
    double epsilon = 1e-5;                          // epsilon of every norm
    Activation activation = Activation::gelu;       // the activation of the feed-forward part
    Activation head_activation = Activation::gelu;  // the activation of the prediction head (BERT), if there
                                                    // is one
    double score_divisor = 0;                       // 0: the square root of the head's width
    bool divide_by_layer = false;                   // scores of layer n are also divided by n + 1
    double softcap = 0, logit_softcap = 0;          // 0: none
    double embedding_scale = 1;
    uint64_t window = 0;                         // keys on each side, the own one apart; with `windowed`
    std::vector<bool> windowed;                  // by layer
    std::optional<RopeConfig> rope, local_rope;  // the second: of windowed layers, where it differs
    BlockOrder order = BlockOrder::pre;
    bool tied = false;  // the unembedding is the embedding's table
    // Tokens of this ID have it as their position, and the others count from the next one on (RoBERTa).
    std::optional<uint32_t> pad_token;
    // For models that read pictures: the elements of a patch, and how many patches a picture has. 0: the
    // model reads tokens. `vocabulary` is then 0, and logits are those of classes.
    uint64_t patch_width = 0, patches = 0;
    // Token IDs that end a generated text, rising: eos_token_id of config.json and of generation_config.json;
    // of GGUF the keys for it and the tokens that llama.cpp ends at. IDs beyond the vocabulary may be there.
    std::vector<uint32_t> end_tokens;
    // Settings of generation_config.json, or of GGUF's general.sampling, that would choose other tokens and
    // that no program here applies: "repetition_penalty 1.1".
    std::vector<std::string> generation_settings;
};

// A checkpoint whose family is known. Copying it copies no weight. Safe from any thread: nothing is changed
// by reading.
class CheckpointModel {
  public:
    // Opens a checkpoint. Rejects what load_checkpoint() rejects, and an unknown family: the error lists the
    // known ones. Also rejects sizes that are missing, out of range or inconsistent, weights of another shape
    // than these sizes, and unknown settings that would change the results.
    static Result<CheckpointModel> open(const std::filesystem::path& path);
    // The same of files that a program holds.
    static Result<CheckpointModel> open(std::span<const NamedFile> files);

    const ModelConfig& config() const { return *config_; }
    const Checkpoint& files() const { return *files_; }
    // Names of weights that the family needs and the files lack; those of the files that nothing reads.
    const std::vector<std::string>& missing() const { return missing_; }
    const std::vector<std::string>& unread() const { return unread_; }
    // True if the model can turn rows of the last block into logits.
    bool has_unembedding() const { return has_unembedding_; }
    // Bytes of the largest block as float32.
    uint64_t block_bytes() const { return block_bytes_; }
    // Returns the bytes that a run holds for one block. Mapped matrices that stay in their stored types cost
    // nothing.
    uint64_t run_block_bytes() const { return run_block_bytes_; }
    // Return the bytes that stored blocks still need in float32: the largest block's, and all blocks'.
    uint64_t stored_block_bytes() const { return stored_block_bytes_; }
    uint64_t all_stored_block_bytes() const { return all_stored_block_bytes_; }

    // Returns the vectors of token IDs plus those of positions from `first` on: the input of the first block.
    Result<F32Tensor> embed(std::span<const uint32_t> ids, uint64_t first = 0) const;
    // The same of a model that reads pictures (Dosovitskiy et al., 2021): the row of the whole picture, then
    // one for each patch. `patches` is [config().patches, config().patch_width], row by row of the picture,
    // each patch its channels, of each the rows of pixels, normalised as the model was trained. The result
    // goes to run_model() as `entering`.
    Result<F32Tensor> embed_patches(const F32Tensor& patches) const;
    // Returns what embed() adds up. A model that reads pictures needs the result of embed_patches() as
    // `entering`; the rows are then what it has apart from its positions.
    Result<EmbeddingRows> embedding_rows(std::span<const uint32_t> ids, const F32Tensor& entering) const;
    // Returns layer n for an input of `tokens` tokens in all. With `stored`, matrices keep their stored types
    // (Linear::stored), except those whose rows the files store in another order.
    Result<Block> block(uint64_t layer, uint64_t tokens, bool stored = false) const;
    // Returns where the files store what a part of a layer uses for one output:
    // "model.layers.0.self_attn.q_proj.weight, row 5", or a column of a Conv1D layer. Parts: "query", "key",
    // "value", "output", "up", "gate", "down", "attention_norm", "attention_output_norm",
    // "feed_forward_norm", "feed_forward_output_norm". Other names give an empty text.
    std::string origin(uint64_t layer, std::string_view part, uint64_t output) const;
    // Returns the parts after the last block, with the unembedding as its file stores it: a model without
    // blocks and embedding. Rejects files that hold no unembedding.
    Result<Model> ends() const;
    // Turns rows after the last block into logits [rows, vocabulary], reading the table piece by piece. A
    // null engine means this thread's CPU kernels.
    Result<F32Tensor> logits(F32Tensor rows, Runner* engine = nullptr) const;
    // The whole model in float32, for a Trace.
    Result<Model> whole(uint64_t tokens) const;

  private:
    CheckpointModel() = default;
    static Result<CheckpointModel> of(Result<Checkpoint> files);
    class Loader;

    std::shared_ptr<const Checkpoint> files_;
    std::shared_ptr<const ModelConfig> config_;
    const struct Family* family_ = nullptr;
    std::string root_;  // before the names of the body's weights
    std::vector<std::string> missing_, unread_;
    bool has_unembedding_ = false;
    uint64_t block_bytes_ = 0, run_block_bytes_ = 0, stored_block_bytes_ = 0, all_stored_block_bytes_ = 0;
};

// A replacement for one head's context, taken from another run, see ModelRunOptions::on_layer.
struct HeadPatch {
    uint64_t layer = 0;
    uint32_t head = 0;
    F32Tensor context{Shape{0, 0}};  // [tokens, head's width]: what the trace's "context" has in its columns
};

// A replacement for the residual stream between two layers.
struct HiddenPatch {
    uint64_t layer = 0;           // the rows enter this layer; the number of layers: they leave the last
    F32Tensor rows{Shape{0, 0}};  // [tokens, width]
};

// How a run departs from the model. Nothing is changed that is not named.
struct RunChanges {
    // Factors by layer and head for the head's context before the output projection. 0 switches the head off;
    // 1 keeps its bits. Missing layers and heads have 1.
    std::vector<std::vector<float>> head_scales;
    std::vector<uint32_t> hidden_tokens;  // masked for every query in every layer; ascending
    std::vector<HeadPatch> patches;       // put in after the scales
    std::vector<HiddenPatch> hidden;      // put in before ModelRunOptions::on_hidden

    float scale_of(uint64_t layer, uint64_t head) const;
    void scale_head(uint64_t layer, uint64_t head, float scale);
    // True if a head of the layer is not as it is.
    bool changes_head(uint64_t layer, uint64_t head) const;
    bool changes_heads(uint64_t layer, uint64_t heads) const;
    // Scales and patches of a layer's contexts, [tokens, heads * width].
    void apply(uint64_t layer, uint64_t heads, F32Tensor& context) const;
};

// The values that run_model() keeps, and the arithmetic that it uses.
struct ModelRunOptions {
    TraceOptions trace;                    // applied to each layer
    bool with_logits = true;               // false: none are computed
    bool with_hidden = false;              // keep the residual stream between the blocks
    bool with_weights = false;             // keep every head's weights
    bool with_lens = false;                // compute logits after every layer, for one token
    std::optional<uint64_t> lens_token;    // which; none: the last
    std::function<bool(double)> progress;  // told the share that is done; false cancels the run
    RunChanges changes;
    // Called when a layer is done and its result is there, with the layer as the only block of a trace: any
    // of its stages can be asked for, and is dropped with it afterwards. An error ends the run.
    std::function<Result<void>(uint64_t layer, Trace& trace)> on_layer;
    // Called with what enters each layer, [tokens, width], and with what leaves the last: `layer` is then the
    // number of layers. The run goes on with what it leaves there. An error ends the run.
    std::function<Result<void>(uint64_t layer, F32Tensor& hidden)> on_hidden;
    // The run begins at `first_layer` with `entering`, [tokens, width], in place of the embedding: the
    // layers before are as they were in the run whose hidden state that is.
    uint64_t first_layer = 0;
    F32Tensor entering{Shape{0, 0}};
};
// The results of a run.
struct ModelRun {
    F32Tensor logits{
        Shape{0}};  // [tokens, vocabulary]; empty where the files hold no unembedding, or unasked
    std::vector<F32Tensor>
        hidden;  // layers + 1 of [tokens, width]: what enters block n, what leaves the last
    std::vector<F32Tensor> weights;  // layers of [heads, tokens, tokens]
    // The logit lens: [layers + 1, vocabulary], the final norm and the unembedding of what enters block n;
    // the last row is the model's own logits.
    F32Tensor lens{Shape{0}};
};
// One layer on what enters it, [tokens, width], as run_model() computes it under these changes: a trace whose
// only block is that layer. Changes must be of heads and tokens that there are.
Result<Trace> trace_layer(const CheckpointModel& model, uint64_t layer, F32Tensor entering,
                          const RunChanges& changes = {}, const TraceOptions& options = {});
// Runs the whole model on token IDs, with one layer in memory at a time. With `entering` only their count is
// used. Rejects an empty text, IDs beyond the vocabulary, more tokens than the model has learned positions,
// changes of layers, heads and tokens that do not exist, and an `entering` of another shape. With
// `first_layer` the results begin there.
Result<ModelRun> run_model(const CheckpointModel& model, std::span<const uint32_t> ids,
                           const ModelRunOptions& options = {});
// Runs the model on token IDs and returns the contexts of these heads, as patches for another run with as
// many tokens. Contexts that `heads` contains are ignored. Layers after the last of the heads are not run; of
// the options only the trace's and the progress are used. Rejects what run_model() rejects, and heads that do
// not exist.
Result<std::vector<HeadPatch>> head_contexts(const CheckpointModel& model, std::span<const uint32_t> ids,
                                             std::vector<HeadPatch> heads,
                                             const ModelRunOptions& options = {});
// Bytes that it will take at most: a block, what it keeps, and the widest rows.
uint64_t run_model_bytes(const CheckpointModel& model, uint64_t tokens, const ModelRunOptions& options);

// "GPT-2, Llama, ...": the families that open() knows.
std::string known_families();

}  // namespace fovea
