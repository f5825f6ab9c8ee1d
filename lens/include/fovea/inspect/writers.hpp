// Why a head attends: a score split by the writers of the residual stream, after "A Mathematical Framework
// for Transformer Circuits" (Elhage et al., 2021). "Tracing Attention Computation Through Feature
// Interactions" (Kamath et al., 2025) splits it by trained features instead.
//
// What enters a layer is a sum of what the embedding, each earlier head and each earlier feed-forward part
// wrote. With its scale frozen at its value a norm is linear, as projections and rotations are. So q and k
// are sums over writers, and the score is bilinear:
//
//   scale * q . k = sum over writers a and b of scale * q_a . k_b
//
// a wrote into the query's row of the stream, b into the key's row. A LayerNorm's subtraction of the mean is
// linear and applied to each writer. Norms after a part (Gemma 2, GLM-4), of the sum (BERT) and of each
// head's q and k (Qwen 3) are frozen likewise. Everything is float64, from the float32 values of a trace.
//
// All functions are safe from any thread, with one trace on one thread.
#pragma once

#include <fovea/model/checkpoint_model.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

// One cell of a head's matrix, counted from 0: does query attend to key?
struct LayerCell {
    uint32_t layer = 0, head = 0;
    uint64_t query = 0, key = 0;
    friend bool operator==(const LayerCell&, const LayerCell&) = default;
};

// A part of the model that adds to a row of the residual stream.
struct Writer {
    enum class Kind : uint8_t {
        token,           // the token's row of the table, scaled; a patch; or the row that the model was given
        position,        // the position's row; BERT's has its segment, too
        embedding_bias,  // the bias of the embedding's norm
        head,            // a head's context times its rows of the output projection
        feed_forward,    // a feed-forward part, without its last bias
        bias,        // a layer's biases: of the output projection, the feed-forward part, norms after them
        reader_bias  // the attending head's: of its layer's norm, its q or k, and the norm of these
    };
    Kind kind = Kind::token;
    uint32_t layer = 0, head = 0;  // the place of what wrote, where it has one
    friend bool operator==(const Writer&, const Writer&) = default;
};

// A head's or feed-forward part's contribution to a result, split by what it read: a token's position, or a
// neuron. The values add up to what the writer gave. A head that is patched with its context in another text
// has none.
struct WriterShares {
    uint32_t writer = 0;  // index of the writer
    std::vector<double> values;
};

// A score as the sum of what each pair of writers gives to it.
struct ScoreWriters {
    LayerCell cell;
    std::vector<Writer> writers;  // in the order in which they write
    std::vector<double> matrix;   // [writers at the query, writers at the key], in units of the score
    double sum = 0;               // the sum of the matrix: the scaled product of q and k
    // Terms that are added to the sum and are not bilinear: "softcap", "ALiBi slope", "bias", "mask" (-inf),
    // "rounding to float16".
    struct Remainder {
        std::string name;
        double value = 0;
    };
    std::vector<Remainder> remainders;
    double score = 0;   // the trace's logit, before the softmax: the sum and the remainders, to rounding
    double weight = 0;  // the trace's weight
    // Where asked for: what the earlier heads gave to the score through the query's row and through the
    // key's. Each adds up to its writer's row, or column, of the matrix.
    std::vector<WriterShares> query_shares, key_shares;

    double at(size_t at_query, size_t at_key) const { return matrix[at_query * writers.size() + at_key]; }
    // Sums of a row and of a column: a writer at the query with all at the key, and the reverse.
    double of_query_writer(size_t writer) const;
    double of_key_writer(size_t writer) const;
};

// Splits a score of a model in memory. `ids` are the tokens whose embedding the trace's input is; empty: the
// input's rows are one writer. Takes memory for each earlier head: 2 rows of the stream as float64. Rejects a
// cell outside the model, and inputs that are not one text's (q, k and v, or a memory). With `shares` heads
// are split by what they read, which takes the time of a row of weights for each earlier head.
Result<ScoreWriters> score_writers(Trace& trace, std::span<const uint32_t> ids, const LayerCell& cell,
                                   bool shares = false);
// Splits a score of a checkpoint: runs its layers up to the cell's, as run_model() does, and rejects what
// that rejects. Of the options trace, progress and changes are used, and `entering` for a model that reads
// pictures. A head that is changed writes what it was changed to.
Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids,
                                   const LayerCell& cell, const ModelRunOptions& options = {},
                                   bool shares = false);

// The results of a layer's parts for each token, and the steps from there into the stream.
struct LayerWrites {
    Block block;                    // heads, norms, biases and output projection; no other weights
    F32Tensor context{Shape{0}};    // [tokens, heads * width], before the output projection
    F32Tensor ff_output{Shape{0}};  // [tokens, width]; empty without a feed-forward part
};
// Keeps what block n of a trace wrote.
Result<LayerWrites> layer_writes(Trace& trace, uint32_t n);
// Bytes of it for each layer, at most.
uint64_t layer_writes_bytes(const CheckpointModel& model, uint64_t tokens);
// Returns what a layer wrote; null: it is not known. The layers are then run.
using WritesOf = std::function<std::shared_ptr<const LayerWrites>(uint64_t layer)>;

// The same where a trace's only block is the cell's layer on this text, by whatever rules. That layer is not
// run, nor are earlier ones whose writes are known; rejects a trace of another number of tokens.
Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids, Trace& layer,
                                   const LayerCell& cell, const ModelRunOptions& options = {},
                                   const WritesOf& writes = {});

// A logit as the sum of what each writer gave to it (direct logit attribution, Elhage et al., 2021): the
// final norm is frozen, too. In a prediction head (BERT) the activation is frozen as the scale act(x) / x.
struct LogitWriters {
    uint64_t position = 0;
    uint32_t token = 0;           // ID of the token, or the class, that the logit is of
    std::vector<Writer> writers;  // reader_bias: of the final norm, the prediction head and the unembedding
    std::vector<double> values;   // by writer, in units of the logit
    double sum = 0;
    double softcap = 0;                // added to the sum where the model caps logits
    float logit = 0;                   // the model's
    double probability = 0;            // by the softmax of the position's logits
    std::vector<WriterShares> shares;  // heads and feed-forward parts
};
// Splits a position's logit of a token; none: of the likeliest one. Runs the checkpoint as run_model() does.
// Rejects what that rejects, a position or token that does not exist, and a model without an unembedding. Of
// the options trace, progress, changes and `entering` are used.
Result<LogitWriters> logit_writers(const CheckpointModel& model, std::span<const uint32_t> ids,
                                   uint64_t position, std::optional<uint32_t> token = {},
                                   const ModelRunOptions& options = {});

// An entry of the matrix, by the indices of its writers.
struct WriterEntry {
    uint32_t query_writer = 0, key_writer = 0;
    double value = 0;
};
// The entries of the largest magnitude, largest first, at most `most` of them.
std::vector<WriterEntry> largest_entries(const ScoreWriters& of, size_t most);

// A writer's part by what it read: index of the shares, then of the value.
struct ShareEntry {
    uint32_t shares = 0;
    uint64_t source = 0;
    double value = 0;
};
// The values of the largest magnitude, largest first, at most `most` of them.
std::vector<ShareEntry> largest_shares(std::span<const WriterShares> of, size_t most);

// "head 1.0 at 'the' (5)". `token` is the text of the position's token, or empty.
std::string writer_name(const ScoreWriters& of, uint32_t writer, bool at_query, const std::string& token);

// Returns the text of the token at a position of the input; an empty text is left out.
using TokenAt = std::function<std::string(uint64_t position)>;
// The largest entries as lines, as one line of JSON, and as CSV with a line of headings.
std::string writers_text(const ScoreWriters& of, size_t most, const TokenAt& token);
std::string writers_json(const ScoreWriters& of, size_t most, const TokenAt& token);
std::string writers_csv(const ScoreWriters& of, size_t most, const TokenAt& token);
// The same of a logit: its writers, heads' contributions by token, and neurons, `most` of each. `name`: the
// text of the logit's token, or empty.
std::string logit_text(const LogitWriters& of, size_t most, const TokenAt& token, const std::string& name);
std::string logit_json(const LogitWriters& of, size_t most, const TokenAt& token);

}  // namespace fovea
