// A checkpoint on token numbers, layer by layer: each is a model of one block for a Trace.
#include <fovea/model/checkpoint_model.hpp>

namespace fovea {
namespace {

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

}  // namespace

uint64_t run_model_bytes(const CheckpointModel& model, uint64_t tokens, const ModelRunOptions& options) {
    const ModelFacts& f = model.facts();
    const uint64_t row = f.width + 3 * f.hidden + 4 * f.heads * f.head_width;
    uint64_t floats = tokens * (row + f.vocabulary);
    // A trace computes the scores of one head at a time, in five matrices.
    if (options.with_weights) floats += tokens * tokens * (f.layers * f.heads + 5);
    if (options.with_hidden) floats += tokens * f.width * (f.layers + 1);
    return model.block_bytes() + 4 * floats;
}

Result<ModelRun> run_model(const CheckpointModel& model, std::span<const uint32_t> ids,
                           const ModelRunOptions& options) {
    const ModelFacts& f = model.facts();
    if (ids.empty()) return wrong("tokens", "there is no token");
    for (const std::string& name : model.missing())
        if (!name.starts_with("lm_head") && !name.starts_with("embed_out"))
            return wrong("tensor",
                         "no tensor '" + name + "' in " + printable_name(model.files().path.string(), 400));
    Result<F32Tensor> x = model.embed(ids);
    if (!x) return x.error();
    ModelRun run;
    for (uint64_t n = 0; n < f.layers; ++n) {
        if (options.progress && !options.progress(double(n) / double(f.layers + 1)))
            return Error{FOVEA_CANCELLED, "run", "the run was cancelled"};
        if (options.with_hidden) run.hidden.push_back(*x);
        Result<Block> block = model.block(n, ids.size());
        if (!block) return block.error();
        auto one = std::make_shared<Model>();
        one->blocks.push_back(std::move(*block));
        ModelInput input;
        input.x = std::move(*x);
        Result<Trace> trace = Trace::open(std::move(one), std::move(input), options.trace);
        if (!trace) {
            Error error = trace.error();
            error.text = "layer " + std::to_string(n) + ": " + error.text;
            return error;
        }
        if (options.with_weights) {
            Result<F32Tensor> weights = trace->whole_stage("weights");
            if (!weights) return weights.error();
            run.weights.push_back(reshaped(std::move(*weights), {f.heads, ids.size(), ids.size()}));
        }
        x = trace->stage("block");
        if (!x) return x.error();
    }
    if (options.with_hidden) run.hidden.push_back(*x);
    if (model.has_unembedding()) {
        Result<F32Tensor> logits = model.logits(std::move(*x), options.trace.engine);
        if (!logits) return logits.error();
        run.logits = std::move(*logits);
    }
    return run;
}

}  // namespace fovea
