// Queries, keys and values: the session's model on its text, or a file's tensors. And the trace that computes
// everything else from them.
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
    StageId id;
    std::string formula;
    F32Tensor values;  // [rows, columns], or [heads, rows, columns]
};

struct Projected {
    std::shared_ptr<const SessionModel> source;  // null: a file's tensors
    std::vector<std::string> tokens;
    std::vector<HostStage> stages;        // inputs, weights and what they gave
    F32Tensor q{Shape{0}}, k = q, v = q;  // [heads, tokens, width]; k and v may have fewer heads
    CallExtras extras;
    std::vector<std::string> warnings;
    std::shared_ptr<Trace> trace;  // the source's; for a model under the settings' rules
    uint32_t layer = 0;            // layer of the trace whose call this is
    // The run of a published model, whose changes of heads count after the call.
    std::shared_ptr<const PromptRun> run;

    bool is_model() const { return run || (source && !source->session.task.empty()); }
    // The layer's block; there is one where there is a source.
    const Block& block() const { return source->model->blocks[layer]; }
};

// The settings' tensors, or the session's model on its text; weights that `previous` has are used again.
Result<Projected> project(const Settings& settings, const Projected* previous = nullptr);
// Returns the layer of settings with a published model, on its input in a run. The reader's rules, in
// addition to the model's, apply in this layer; masked keys apply in all layers.
Result<Projected> project_layer(const Settings& settings, std::shared_ptr<const PromptRun> run);
// The texts of the session's tokens.
std::vector<std::string> text_tokens(const Settings& settings);

// The trace by these rules: what is projected is not computed again.
Result<std::shared_ptr<Trace>> trace_of(const Projected& projected, const Settings& settings);
// The call as the input of a trace, and the trace of such an input.
ModelInput call_of(const Projected& projected);
Result<Trace> trace_of_call(ModelInput call, const AttentionRules& rules = {});

// True if the weights of all heads are few enough to be kept as matrices.
bool fits_matrices(const Projected& projected);
// The slope of ALiBi: the file's, or by the rule of its paper.
float slope_of(const CallExtras& extras, uint32_t head, uint64_t heads);

}  // namespace fovea::visualizer
