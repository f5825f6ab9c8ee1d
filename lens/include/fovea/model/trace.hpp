// A model's computation as named stages, each with its formula, shape and values, for any layer and head,
// computed when it is asked for.
//
// Two arithmetics: strict is plain float32 on this thread in the tutorials' order, whose digits are theirs on
// every machine and in WebAssembly (<fovea/model/strict.hpp>), norms and activations in float64; engine is
// fovea's own kernels, as generation runs them. The sizes determine which of them runs, so that every program
// shows the same numbers; see TraceOptions.
#pragma once

#include <fovea/model/runner.hpp>
#include <fovea/model/transformer.hpp>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The loops that compute.
enum class Arithmetic {
    by_size,  // strict up to kStrictProducts multiplications, else the engine
    strict,
    engine
};
inline constexpr uint64_t kStrictProducts =
    1u << 21;  // in linear layers, scores and contexts of all blocks together

// How a trace computes.
struct TraceOptions {
    Arithmetic arithmetic = Arithmetic::by_size;  // the same in every program unless it is for a test
    Runner* engine = nullptr;  // borrowed, must outlive the trace; null: this thread's CPU kernels
    // False: norms, hidden values and results of layers are dropped, and their stages are rejected. That
    // saves their copies where a run has no use for them.
    bool keeps_stages = true;
};

// A stage that a layer has.
struct TraceStage {
    StageId id;
    std::string formula;
    uint64_t heads = 1;  // above 1: a matrix for each
    uint64_t rows = 0, columns = 0;
};

// One attention call as the engine takes it: the description, and its inputs as bytes. Outputs, kernel and
// precision of the description are left for the caller to choose. On the route that hides after the softmax
// the call has no masks.
struct PreparedAttention {
    FoveaAttentionDesc call = foveaAttentionDesc();
    std::array<std::vector<std::byte>, FOVEA_BIND_COUNT> inputs;  // by FoveaBinding; empty: no such input
    // Buffers for foveaRunCpu and derive_cell; outputs are the caller's to fill in. Valid as long as this.
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bindings() const;
};

// Borrows nothing but the options' engine. Not thread-safe: one trace, one thread.
class Trace {
  public:
    // Rejects sizes that do not fit each other; the error names the layer and the field.
    static Result<Trace> open(std::shared_ptr<const Model> model, ModelInput input,
                              const TraceOptions& options = {});
    // Returns a trace of the same model and input by other rules of a layer. It uses the queries, keys
    // and values again which this one has computed up to that layer.
    Trace with_rules(const AttentionRules& rules, uint32_t layer = 0) const;

    const Model& model() const;
    const ModelInput& input() const;
    uint32_t layers() const;
    uint64_t rows() const;  // queries
    uint64_t keys() const;
    uint32_t heads(uint32_t layer = 0) const;
    const AttentionRules& rules(uint32_t layer = 0) const;  // in place of the model's
    bool is_strict() const;
    // "plain float32", or what the engine chose and why. Empty before anything ran.
    std::string arithmetic() const;

    // Returns the stages of the layer in the order of the computation, without computing anything. Inputs
    // belong to the first layer; stages after the last block belong to the last layer.
    std::vector<TraceStage> stages(uint32_t layer = 0) const;
    // The stage that a reader asked for, or the nearest one that the layer has.
    StageId nearest_stage(StageId id, uint32_t layer = 0) const;
    // The stage of a name that a user gave; the error is that of stage().
    Result<StageId> stage_named(std::string_view name, uint32_t layer = 0) const;
    // [rows, columns] of one head; of a stage that has one matrix for all heads, that matrix, whatever the
    // head. The error names the stages that there are, or the limit of head and layer.
    Result<F32Tensor> stage(StageId id, uint32_t head = 0, uint32_t layer = 0);
    // All heads: [heads, rows, columns], without the first where there is one matrix.
    Result<F32Tensor> whole_stage(StageId id, uint32_t layer = 0);

    // Returns the output of a layer to the next: "block", or the last stage that the layer has.
    Result<F32Tensor> leaving(uint32_t layer = 0);

    // For programs that run the call themselves, on a device for example.
    Result<PreparedAttention> prepare(uint32_t layer = 0);
    // The part of one head, as a call of one head and without dropout: what its map is computed from.
    Result<PreparedAttention> prepare_head(uint32_t head, uint32_t layer = 0);
    // Uses a program's own result for o, [queries, heads, width], instead of the engine's. Later stages are
    // computed from it.
    Result<void> supply_context(uint32_t layer, F32Tensor context);

  private:
    class Impl;
    explicit Trace(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<Impl> impl_;
};

// A matrix as every program prints it: one row a line, values as %.9g with a space between; "inf", "-inf" and
// "nan".
std::string matrix_text(const F32Tensor& matrix);

// Prints one stage of a session file, as `fovea session FILE --stage weights --head 0` and other programs do,
// with the notes for the reader. An empty `stage` means the session's own, or the nearest available one.
struct SessionStageText {
    std::string text;
    std::vector<SessionNote> notes;
};
// `learned`: the model of the session's task, for programs that do not carry those of the library; null: the
// library's.
Result<SessionStageText> session_stage_text(ReadSession read, std::string_view stage, uint32_t head,
                                            const TraceOptions& options = {},
                                            std::shared_ptr<const LearnedModel> learned = nullptr);

}  // namespace fovea
