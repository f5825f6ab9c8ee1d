// A transformer as data: embedding, blocks, unembedding, each part optional. The seven levels of the
// tutorials, an attention layer of a checkpoint, a whole checkpoint and a model that was trained here are the
// same type; <fovea/model/trace.hpp> runs it. Everything is float32 on the host; values are plain members,
// filled from a seed, a file or by hand.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/rules.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/tokens.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

// True if the layer exists; an absent one has an empty matrix.
inline bool is_present(const Linear& layer) { return layer.weight.rank() == 2; }

// The normalization of each row: layer is (x - mean) / sqrt(variance + epsilon) * weight + bias (Ba et al.,
// 2016); rms is x / sqrt(mean of squares + epsilon) * weight (Zhang and Sennrich, 2019). Strict arithmetic
// sums in float64.
enum class NormKind { none, layer, rms };
// A normalisation of rows.
struct Norm {
    NormKind kind = NormKind::none;
    F32Tensor weight{Shape{0}}, bias{Shape{0}};  // [width], or empty: 1 and 0
    double epsilon = 1e-5;
};

// gelu is x * Phi(x) with the error function, gelu_tanh its approximation (GPT-2's), silu is x / (1 +
// exp(-x)).
enum class Activation { gelu, gelu_tanh, silu, relu };
// act(x up) down, or (act(x gate) * (x up)) down where there is a gate (Shazeer, 2020). Absent without `up`.
struct FeedForward {
    Linear up, gate, down;
    Activation activation = Activation::gelu_tanh;
};

// Projections, heads and what happens between them.
struct AttentionPart {
    Linear query, key, value;  // all absent: queries, keys and values are the input itself, in one head
    Linear output;             // absent: the heads' contexts side by side are the result
    uint32_t heads = 1, kv_heads = 1;
    Norm query_norm, key_norm;  // applied to each head's row before the rotation (Henry et al., 2020);
                                // optional
    std::optional<Rope> rope;   // the rotation of queries and keys
    AttentionRules rules;
};

// How the parts of a block with residual sums follow each other. With a for attention, f for the
// feed-forward part and n for their norms:
//   pre       y = x + a(n(x)),   z = y + f(n(y))
//   post      y = n(x + a(x)),   z = n(y + f(y))      the first transformers (Vaswani et al., 2017), BERT
//   parallel  z = x + a(n(x)) + f(n'(x))              GPT-NeoX
enum class BlockOrder { pre, post, parallel };

// One layer of a transformer. What is absent is left out.
struct Block {
    Norm attention_norm;
    AttentionPart attention;     // may be absent
    Norm attention_output_norm;  // applied to the attention output before it is added (Gemma 2)
    Norm feed_forward_norm;
    FeedForward feed_forward;       // may be absent
    Norm feed_forward_output_norm;  // applied to the feed-forward output before it is added
    bool residual = false;          // attention and feed-forward are each added to what they read
    BlockOrder order = BlockOrder::pre;
};

// Turns token IDs into vectors.
struct Embedding {
    F32Tensor table{Shape{0, 0}};      // [vocabulary, width]; empty: the input is given as vectors
    F32Tensor positions{Shape{0, 0}};  // [longest input, width], added; empty: none
    double scale = 1;                  // multiplies the table's rows before positions are added (Gemma)
    // Tokens of this ID have `pad_position`, [1, width], and count for no position (RoBERTa).
    std::optional<uint32_t> pad_token;
    F32Tensor pad_position{Shape{0, 0}};
    Norm norm;  // applied to the sums (BERT); optional
};

// Tokens before they are embedded: rows of the table, and the rest of the embedding.
struct EmbeddingRows {
    Embedding embedding;          // without its table
    F32Tensor rows{Shape{0, 0}};  // [tokens, width]
};

// The part between the last block and the unembedding in encoders that predict masked tokens: a layer, its
// activation and a norm. Absent without `dense`.
struct PredictionHead {
    Linear dense;
    Activation activation = Activation::gelu;
    Norm norm;
};

// A transformer as data. Nothing in it runs; a Trace does.
struct Model {
    std::string name;  // for people
    Embedding embedding;
    std::vector<Block> blocks;            // in the order in which they run
    Norm final_norm;                      // applied after the last block
    PredictionHead prediction;            // applied after the final norm; optional
    Linear unembedding;                   // absent: the result is the last block's
    double logit_softcap = 0;             // c: logits become c tanh(logit / c); 0: they stay
    std::vector<std::string> vocabulary;  // a text for each row of the table; may be empty
};

// The optional inputs of a file's call, in addition to queries, keys and values. Heads and rows are the
// call's, or 1 for a broadcast.
struct CallExtras {
    uint64_t mask_heads = 0, mask_rows = 0, bias_heads = 0, bias_rows = 0;
    std::vector<uint8_t> mask;        // [mask_heads, mask_rows, keys], 1 is visible; empty: none
    std::vector<float> bias;          // [bias_heads, bias_rows, keys], added to the scores; empty: none
    std::vector<float> sinks, alibi;  // one for each query head, or none; alibi in the place of alibi_slope()
};

// The input of a model: vectors for the first block, or queries, keys and values that replace its
// projections.
struct ModelInput {
    std::vector<Token> tokens;
    F32Tensor x{Shape{0, 0}};  // [tokens, width]
    F32Tensor memory = x;      // [tokens, width] that the first block's keys and values are of; empty: x
    F32Tensor q{Shape{0}}, k = q, v = q;  // [heads, tokens, width], or all empty; v may be empty while q and
                                          // k are not
    CallExtras extras;                    // inputs of the first block's call
};

// Returns rows of the embedding's table for token IDs, plus positions from `first` on. Rejects an ID beyond
// the table and a position beyond the learned ones.
Result<F32Tensor> embed(const Model& model, std::span<const uint32_t> ids, uint64_t first = 0);

// Vectors for words that no model has embedded. Words are lower-cased in ASCII first. The tutorials' six
// words have the tutorials' vectors where the width is 3; any other word has torch.rand's values for the
// FNV-1a hash of its letters, rounded to two decimals. Drawn vectors are torch.randn's for that hash, with
// one more for the position where asked.
F32Tensor word_vectors(std::span<const Token> tokens, uint64_t width);
F32Tensor drawn_vectors(std::span<const Token> tokens, uint64_t width, bool positions);

// A session as a model and what it is run on. Weights drawn for `previous` are used again where they are the
// same: those of level 7 are millions. Notes say what of the session could not be done. Refused: a text
// without a token, tensors that do not fit each other or that are stored in files (a program loads those
// first, see load_session_tensors).
//
// A session with a task is that of a model that learned it: `learned` where it is of that task, else the
// library's own (see learned_model() of <fovea/model/learned.hpp>).
struct LearnedModel;
struct SessionModel {
    std::shared_ptr<const Model> model;
    ModelInput input;
    std::vector<SessionNote> notes;
    Session session;                              // the session that this model was made from
    std::shared_ptr<const LearnedModel> learned;  // the trained model of a session with a task; null: none
};
// Takes at most `most` tokens of a level's text; 0 takes as many as the level shows.
Result<SessionModel> session_model(const Session& session, const SessionModel* previous = nullptr,
                                   std::shared_ptr<const LearnedModel> learned = nullptr, size_t most = 0);

// Bahdanau's additive attention (Bahdanau et al., 2014) as the input of a block without projections whose
// rules have the scale "none": score = v . tanh(W q + U k), and the values are the memory itself. The engine
// adds a bias to its scores: with products of zeros the additive scores are all that is left. `x` and
// `memory` are [tokens, width], `v` is [hidden].
Result<ModelInput> additive_input(const Linear& query, const Linear& key, const F32Tensor& v,
                                  const F32Tensor& x, const F32Tensor& memory);

// Which files a session may name. A session of unknown origin could name any file that its reader may read.
enum class SessionFiles { inside, anywhere };  // the session's folder, links followed
// Reads the session's tensors that are in files: [heads, tokens, width], or with a batch of 1 before. Other
// layouts are what a program's own import is for. Notes say which file has another SHA-256 than the session.
// Rejects files outside of `folder`, unless they may be anywhere, and tensors without elements.
Result<std::vector<SessionNote>> load_session_tensors(Session& session, const std::filesystem::path& folder,
                                                      SessionFiles which = SessionFiles::inside);

// GPT's one projection as three: its columns are q's, then k's, then v's. d_out is a multiple of 3.
AttentionPart joint_projection(const Linear& joint);
// A block with the attention of a checkpoint's layer: no norm, no feed-forward. Scores are divided by the
// square root of the head's width and later keys hidden; `rules` may say otherwise.
Block gpt2_block(Gpt2Attention weights);
Block llama_block(LlamaAttention weights, uint64_t first_position = 0);

}  // namespace fovea
