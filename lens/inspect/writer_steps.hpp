// Carries what each writer wrote through a block's steps, at rows of the stream that a result reads. The
// result's gradient goes back the same way. Norms are frozen, so both are exact.
#pragma once

#include <fovea/inspect/writers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "model/block_run.hpp"
#include "model/block_steps.hpp"

namespace fovea::writing {

// A writer's share of a row: columns from `first` on, the others are 0.
struct Part {
    uint32_t writer = 0;
    uint64_t first = 0;
    std::vector<double> values;
};

// A row of a trace as the sum of its parts.
struct Row {
    uint64_t columns = 0;
    std::vector<Part> parts;

    auto find(uint32_t writer) {
        return std::find_if(parts.begin(), parts.end(),
                            [&](const Part& part) { return part.writer == writer; });
    }
    bool has(uint32_t writer) { return find(writer) != parts.end(); }
    std::vector<double> sum() const {
        std::vector<double> whole(columns);
        for (const Part& one : parts)
            for (size_t c = 0; c < one.values.size(); ++c) whole[one.first + c] += one.values[c];
        return whole;
    }
    // Returns a writer's columns, all of them.
    std::vector<double>& all_of(uint32_t writer) {
        const auto at = find(writer);
        Part& part = at != parts.end() ? *at : parts.emplace_back(Part{writer, 0, {}});
        if (part.first != 0) part.values.insert(part.values.begin(), size_t(part.first), 0.0);
        part.values.resize(columns), part.first = 0;
        return part.values;
    }
};

// Products that are summed side by side, which the compiler turns into vectors: columns of a dot product, or
// outputs of a layer.
inline constexpr size_t kTogether = 16;

template <class Weight>
double dot(const double* x, const Weight* weights, size_t count) {
    std::array<double, kTogether> sums{};
    const size_t whole = count / kTogether * kTogether;
    for (size_t c = 0; c < whole; c += kTogether)
        for (size_t i = 0; i < kTogether; ++i) sums[i] += x[c + i] * double(weights[c + i]);
    double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    for (size_t c = whole; c < count; ++c) sum += x[c] * double(weights[c]);
    return sum;
}

// Returns the gradient of a layer's input, [d_in], from that of its outputs from `first` on.
Result<std::vector<double>> back_through(const Linear& layer, uint64_t first,
                                         std::span<const double> outputs);

// A norm with its scale frozen: y = (x - mean of x) * gains, the mean only where it is centred.
struct FrozenNorm {
    bool centred = false;
    std::vector<double> gains;

    void apply(std::span<double> x) const;
    // Turns the gradient of y into that of x.
    void apply_back(std::span<double> gradient) const;
};
// Freezes the norm at the scale that the row gives.
FrozenNorm frozen(const Norm& n, std::span<const double> row);

// One row of the stream: rooms by role, as in a trace, of parts.
struct Side {
    // A step that the parts went through, for the gradient's way back.
    struct Step {
        enum class Kind : uint8_t { norm, project, rotate, copy, add, heads, neurons };
        Kind kind;
        BlockRoles::Role from, to;
        FrozenNorm norm = {};
        const Linear* layer = nullptr;  // for `project`; its outputs from `first` on
        uint64_t first = 0;
        RopeTables angles = {};
        bool interleaved = false;
        uint32_t block = 0;  // for `heads` and `neurons`: index in layers_
    };

    uint64_t row = 0;
    std::array<Row, BlockRoles::role_count> rooms = {};
    std::vector<double> feed_forward = {};  // the part's result, before its norm
    std::vector<Step> steps = {};
};

// Returns a layer's output projection, or its last feed-forward layer. Called on the way back, layer by
// layer.
using LayerWeights = std::function<Result<Linear>(uint32_t layer, bool feed_forward)>;

class WriterSteps final : public BlockExecutor {
  public:
    // Inputs of a layer's heads and neurons that are kept for the way back.
    enum class Keep { nothing, sources, sources_and_neurons };

    // Queries are made at the first of the rows, keys at the last one. `changes` must outlive this; null:
    // none.
    WriterSteps(std::initializer_list<uint64_t> rows, Keep keep, const RunChanges* changes = nullptr);

    std::vector<Writer> writers;

    // `tokens`: the rows of the table at the sides.
    Result<void> start(const Embedding& e, const std::vector<std::span<const float>>& tokens,
                       std::span<const uint32_t> ids);
    // A model without an embedding: the rows are one writer.
    void start(const F32Tensor& rows);
    // Lets layer n of a trace, the model's layer `layer`, write.
    Result<void> pass(Trace& trace, uint32_t n, uint32_t layer);
    // The same of what it wrote, where nothing is kept for the way back.
    Result<void> pass(const Block& block, const F32Tensor& contexts, const F32Tensor& ff_output,
                      uint32_t layer);
    // Makes the picked head's q and k.
    Result<void> read(const Trace& trace, uint32_t n, const LayerCell& cell);
    // Takes the parts through the final norm, the prediction head and one row of the unembedding: returns the
    // first side's logit of `token` by writer.
    Result<std::vector<double>> predict(const Model& ends, uint32_t token);
    const Row& query() const { return sides_.front().rooms[queries]; }
    const Row& key() const { return sides_.back().rooms[keys]; }

    // Where a side's gradient begins: the role and the gradient of the result by its columns.
    struct Gradient {
        size_t side;
        Role role;
        std::vector<double> values;
    };
    // The gradients of a score by q and by k, and of what predict() returned.
    Gradient by_query(std::vector<double> of) const { return {0, queries, std::move(of)}; }
    Gradient by_key(std::vector<double> of) const { return {sides_.size() - 1, keys, std::move(of)}; }
    Gradient by_prediction() const { return {0, part, prediction_}; }
    // Splits what the writers gave to the result by what heads and neurons read. The models of read() and
    // predict() must still be there.
    Result<std::vector<WriterShares>> shares(Gradient from, const LayerWeights& weights) const;

  private:
    // A layer that wrote: what its parts read, for the sides in turn.
    struct Layer {
        uint32_t layer = 0, heads = 0, kv_heads = 0, first_writer = 0;
        std::vector<F32Tensor> values;            // by KV head: [tokens, width]
        std::vector<std::vector<float>> weights;  // by side and head: of each token
        std::vector<std::vector<float>> hidden;   // by side: what its neurons give
    };

    uint32_t add_writer(Writer::Kind kind, uint32_t layer = 0, uint32_t head = 0) {
        writers.push_back({kind, layer, head});
        return uint32_t(writers.size() - 1);
    }
    // The writer that biases go to. It is added on first use.
    uint32_t bias_writer() {
        if (!bias_) bias_ = add_writer(bias_kind_.kind, bias_kind_.layer, bias_kind_.head);
        return *bias_;
    }
    uint32_t last_layer() const { return uint32_t(layers_.size()) - 1; }
    void biases_are_of(Writer writer) { bias_kind_ = writer, bias_.reset(); }
    // False for q at the row that is read as a key, and for what a pass or a reading does not use.
    bool has(size_t side, Role role) const {
        if (role == queries || role == keys) return reading_ && (role == queries) == (side == 0);
        return role != values && role != hidden && role != gate && (role != normed || reading_);
    }
    Result<void> keep_read(Trace& trace, uint32_t n, Layer& layer) const;
    Result<void> multiply(const Linear& layer, Role from, Role to, uint64_t first, uint64_t count);
    FrozenNorm freeze(const Norm& n, Row& row);
    Result<void> add_heads(const Layer& of, const Linear& output, size_t side,
                           std::span<const double> gradient, std::vector<WriterShares>& to) const;

    Result<void> copy(Role from, Role to) override;
    Result<void> linear(std::span<const Product> products, Role from) override;
    Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart&) override { return {}; }
    Result<void> activate(Activation, Role, const Role*) override { return {}; }
    Result<void> add(Role from, const Norm* next, Role to) override;

    std::vector<Side> sides_;
    Keep keep_ = Keep::nothing;
    const RunChanges* changes_ = nullptr;
    std::vector<Layer> layers_;
    std::vector<double> prediction_;  // the unembedding's row
    uint32_t feed_forward_writer_ = 0;
    Writer bias_kind_;
    std::optional<uint32_t> bias_;
    bool reading_ = false;
    uint32_t head_ = 0;  // the picked head while its q and k are made
};

}  // namespace fovea::writing
