// The state of a trace for each layer, and the computation of its stages: every part is computed on first
// use. trace_calls.cpp runs the attention calls, trace_stages.cpp lists the stages, trace.cpp does the rest.
#pragma once

#include <fovea/model/strict.hpp>
#include <fovea/model/trace.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/block_run.hpp"
#include "model/block_steps.hpp"

namespace fovea {

// The results of a call; unrequested ones are empty. Matrices are [1, heads, rows, keys].
struct AttentionResult {
    F32Tensor o, lse, scores, capped, masked, weights;
};

// The matrix [rows, columns] of one head out of [heads, rows, columns].
F32Tensor matrix_of(const F32Tensor& all, uint64_t head);

// The stages that steps produce.
using StageTensors = std::map<StageId, F32Tensor>;

// Runs a block's steps on whole tensors and keeps their stages, if there is a place for them. Queries, keys
// and values are [heads, rows, width], the rest [rows, width]. Attention is the trace's.
class TraceSteps final : public BlockExecutor {
  public:
    TraceSteps(BlockLoops loops, StageTensors* stages) : loops_(loops), stages_(stages) {}

    using BlockRoles::Role;
    F32Tensor& operator[](Role role) { return rooms_[role]; }
    Result<void> run(const Block& block, std::span<const BlockStep> steps) { return walk(block, steps); }

  private:
    void split(Role role);
    Result<void> copy(Role from, Role to) override;
    Result<void> linear(std::span<const Product> products, Role from) override;
    Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart&) override { return {}; }
    Result<void> activate(Activation activation, Role role, const Role* other) override;
    Result<void> add(Role from, const Norm* next, Role to) override;
    void done(const BlockStep& step) override;

    BlockLoops loops_;
    StageTensors* stages_;
    std::array<F32Tensor, role_count> rooms_;
};

class Trace::Impl {
  public:
    Impl(std::shared_ptr<const Model> model, ModelInput input, const TraceOptions& options);
    Impl(const Impl& of, const AttentionRules& rules, uint32_t n);

    Result<F32Tensor> stage(StageId id, uint32_t head, uint32_t n);
    Error no_stage(std::string_view name, uint32_t n) const;
    std::vector<TraceStage> stages(uint32_t n) const;
    Result<PreparedAttention> prepare(uint32_t n, uint32_t first, uint32_t count, bool as_half,
                                      bool with_keep);

    const Model& model() const { return *model_; }
    const ModelInput& input() const { return input_; }
    bool is_strict() const { return strict_; }
    std::string arithmetic() const { return strict_ ? "plain float32" : reason_; }
    uint64_t rows() const { return given() ? input_.q.shape[1] : input_.x.rows(); }
    uint64_t keys(uint32_t n) const { return n > 0 ? rows() : given() ? input_.k.shape[1] : memory().rows(); }
    const Block& block(uint32_t n) const { return model_->blocks[n]; }
    const AttentionRules& rules(uint32_t n) const { return rules_.at(n); }
    Result<void> project(uint32_t n);
    Result<void> supply(uint32_t n, F32Tensor context);
    // Computes and returns the output of layer n.
    Result<const F32Tensor*> leaving(uint32_t n);

  private:
    struct Layer {
        bool projected = false, rounded = false, attended = false, finished = false;
        StageTensors stages;        // stages of its steps
        F32Tensor q, k, v;          // [heads, tokens, width]
        std::vector<uint8_t> keep;  // [heads, rows, keys]
        bool kept = false;          // `keep` was drawn, empty or not
        F32Tensor context, lse;     // [rows, heads * width], [heads, rows, 1]
        F32Tensor leaves;           // the stream after the layer
        // The matrices of one head.
        std::optional<uint32_t> head;
        F32Tensor scores, scaled, capped, masked, weights_all, masked_weights, row_sums, weights, dropped;
    };

    bool given() const { return !input_.q.values.empty(); }
    const F32Tensor& memory() const { return input_.memory.values.empty() ? input_.x : input_.memory; }
    bool is_given(uint32_t n) const { return given() && n == 0; }
    const CallExtras& extras(uint32_t n) const {
        static const CallExtras kNone;
        return n == 0 ? input_.extras : kNone;
    }
    bool has_values(uint32_t n) const { return !is_given(n) || !input_.v.values.empty(); }
    bool projects(uint32_t n) const { return !is_given(n) && is_present(block(n).attention.query); }
    uint64_t head_width(uint32_t n) const {
        if (is_given(n)) return input_.q.shape[2];
        const AttentionPart& a = block(n).attention;
        return is_present(a.query) ? a.query.d_out() / a.heads : width_before(n);
    }
    uint64_t value_width(uint32_t n) const {
        if (is_given(n)) return has_values(n) ? input_.v.shape[2] : 1;
        const AttentionPart& a = block(n).attention;
        return is_present(a.value) ? a.value.d_out() / a.kv_heads : width_before(n);
    }
    uint64_t output_width(uint32_t n) const {
        const AttentionPart& a = block(n).attention;
        return is_present(a.output) ? a.output.d_out() : value_width(n) * a.heads;
    }
    uint64_t width_before(uint32_t n) const { return n == 0 ? input_.x.columns() : width_behind(n - 1); }
    uint64_t width_behind(uint32_t n) const {
        const Linear& down = block(n).feed_forward.down;
        return is_present(block(n).feed_forward.up) ? down.d_out() : output_width(n);
    }
    bool has_file_mask(uint32_t n) const {
        return !extras(n).mask.empty() && rules(n).pattern == MaskPattern::none;
    }
    bool has_bias(uint32_t n) const { return rules(n).alibi || !extras(n).bias.empty(); }
    bool hides_any(uint32_t n) const { return hides(rules(n)) || has_file_mask(n); }
    bool masks_after(uint32_t n) const { return rules(n).route == MaskRoute::after && hides_any(n); }
    bool drops(uint32_t n) const { return rules(n).dropout_p > 0; }
    bool scales(uint32_t n) const { return score_scale(rules(n), head_width(n)).value != 1.0; }

    Runner& engine() { return runner_or_own(engine_, own_engine_); }

    Result<const F32Tensor*> layer_input(uint32_t n);
    TraceSteps rooms_of(Layer& l) { return TraceSteps(loops(), keeps_stages_ ? &l.stages : nullptr); }
    BlockLoops loops() { return BlockLoops(strict_ ? nullptr : &engine()); }
    Result<void> draw_keep(uint32_t n);
    std::vector<uint8_t> shown_cells(uint32_t n, uint32_t head, bool all_rules) const;
    std::vector<uint8_t> file_cells(uint32_t n, uint32_t head) const;
    std::vector<float> slopes(uint32_t n) const;
    Result<AttentionResult> call(uint32_t n, uint32_t first, uint32_t count, uint32_t outputs, bool unscaled,
                                 bool kept);
    Result<void> head_matrices(uint32_t n, uint32_t head);
    void renormalise(uint32_t n, uint32_t head, Layer& l) const;
    void drop(uint32_t n, uint32_t head, Layer& l) const;
    Result<void> attend(uint32_t n);
    Result<void> attend_by_weights(uint32_t n);
    Result<void> finish(uint32_t n);
    Result<F32Tensor> behind(StageId id);
    Result<F32Tensor> pair_stage(StageId id, uint32_t head, uint32_t n);
    Result<F32Tensor> flow_stage(StageId id, uint32_t head, uint32_t n);
    std::string formula_of(StageId id, uint32_t n) const;

    std::shared_ptr<const Model> model_;
    ModelInput input_;
    std::vector<AttentionRules> rules_;  // by layer
    std::vector<Layer> layers_;
    Runner* engine_;
    std::unique_ptr<Runner> own_engine_;
    bool strict_ = true, keeps_stages_ = true;
    std::string reason_;
};

}  // namespace fovea
