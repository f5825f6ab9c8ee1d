// Queries, keys and values: the session's model on its text, or a file's tensors. And what is done with them,
// as a trace of one call.
#pragma once

#include "document/settings.hpp"

#include <fovea/inspect/prompt_run.hpp>
#include <fovea/model/trace.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::visualizer {

// A stage before the call, with values in host memory.
struct HostStage {
    std::string name, formula;
    F32Tensor tensor;  // [rows, columns], or [heads, rows, columns]
};

struct Projected {
    std::shared_ptr<const SessionModel> source;  // null: a file's tensors
    std::vector<std::string> tokens;
    std::vector<HostStage> stages;        // inputs, weights and what they gave
    F32Tensor q{Shape{0}}, k = q, v = q;  // [1, heads, tokens, width]; k and v may have fewer heads
    CallExtras extras;
    std::vector<std::string> warnings;
    // For a model: all of it under the settings' rules, and the layer whose call this is. Null: trace_of()
    // makes the call's own.
    std::shared_ptr<Trace> trace;
    uint32_t layer = 0;

    // The run of a published model, whose changes of heads count after the call.
    std::shared_ptr<const PromptRun> run;

    // The layer's block; there is one where there is a source.
    const Block& block() const { return source->model->blocks[layer]; }
};

// The session's model on its text; weights that `previous` has are used again.
Result<Projected> project(const Settings& settings, const Projected* previous = nullptr);
// Returns the layer of settings with a published model, on its input in a run. The reader's rules, in
// addition to the model's, apply in this layer; masked keys apply in all layers.
Result<Projected> project_layer(const Settings& settings, std::shared_ptr<const PromptRun> run);
// The texts of the session's tokens.
std::vector<std::string> text_tokens(const Settings& settings);

// The call on these tensors by these rules, and what there is to see of it: the model's stages for a text,
// the call's own for a file.
struct CallTrace {
    std::shared_ptr<Trace> trace;
    std::vector<TraceStage> stages;
    std::vector<std::string> warnings;
    AttentionRules rules;  // rules of the call
};
Result<CallTrace> trace_of(const Projected& projected, const Settings& settings);

// Traces only the call, on the projected tensors with these rules.
Result<Trace> trace_of_call(const Projected& projected, const AttentionRules& rules,
                            const TraceOptions& options = {});

// True if the weights of all heads are few enough to be kept as matrices.
bool fits_matrices(const Projected& projected);
// The slope of ALiBi: the file's, or by the rule of its paper.
float slope_of(const CallExtras& extras, uint32_t head, uint64_t heads);

// Drops the batch extent of a tensor of one batch entry.
F32Tensor without_batch(const F32Tensor& tensor);

}  // namespace fovea::visualizer
