#include "support/cpu_executor.hpp"

#include "support/cpu_device.hpp"
#include "support/guarded_buffer.hpp"
#include "support/random.hpp"

#include <fovea/thread_pool.hpp>

#include <optional>

namespace fovea::test {
namespace {

// Buffers of one run: inputs that end at a wall, outputs untouched and at the least alignment that is
// allowed.
class RunBuffers {
  public:
    RunBuffers(const FoveaPlanInfo& info, const Tensors& inputs) : info_(info), inputs_(inputs) {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
            buffers_[i].emplace(size_t(info.binding_bytes[i]), 4 + 4 * (i % 3), kUntouched,
                                is_output(i) ? Behind::margin : Behind::wall);
            if (!is_output(i) || !inputs[i].empty()) buffers_[i]->assign(inputs[i]);
            host_[i] = {buffers_[i]->data(), info.binding_bytes[i]};
        }
        if (info.workspace_bytes)
            workspace_.emplace(size_t(info.workspace_bytes), 0, kUntouched, Behind::wall,
                               size_t(info.workspace_alignment));
    }

    FoveaCpuRun run() {
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = host_;
        if (workspace_) run.workspace = {workspace_->data(), info_.workspace_bytes};
        return run;
    }

    // Describes forbidden changes; empty if there are none.
    std::string damage() const {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!buffers_[i]) continue;
            const std::string name = "binding " + std::to_string(i);
            if (const auto at = buffers_[i]->changed_margin())
                return name + ": byte " + std::to_string(at) + " outside the buffer was written";
            if (!is_output(i) && buffers_[i]->contents() != inputs_[i])
                return name + ": an input was written";
        }
        if (workspace_ && workspace_->changed_margin())
            return "workspace: byte " + std::to_string(workspace_->changed_margin()) +
                   " outside it was written";
        return {};
    }

    Tensors outputs() const {
        Tensors result;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (buffers_[i] && is_output(i)) result[i] = buffers_[i]->contents();
        return result;
    }

  private:
    bool is_output(uint32_t i) const { return info_.output_mask >> i & 1; }
    const FoveaPlanInfo& info_;
    const Tensors& inputs_;
    std::optional<GuardedBuffer> buffers_[FOVEA_BIND_COUNT], workspace_;
    FoveaHostBuffer host_[FOVEA_BIND_COUNT] = {};
};

// Slice numbers in a random order, a quarter of them twice.
std::vector<uint64_t> shuffled_slices(uint64_t count, uint64_t seed) {
    Random random(seed);
    std::vector<uint64_t> order;
    for (uint64_t n = 0; n < count; ++n) {
        order.push_back(n);
        if (random.chance(0.25)) order.push_back(n);
    }
    for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
    return order;
}

class CpuExecutor : public Executor {
  public:
    CpuExecutor(std::string name, const CpuChoice& choice) : name_(std::move(name)), choice_(choice) {}
    const std::string& name() const override { return name_; }

    Outcome run(const FoveaAttentionDesc& desc, const Tensors& inputs,
                const ExecuteOptions& options) override {
        return run_planned(plan_attention(properties(options), chosen(desc)), inputs, options);
    }
    Outcome run_backward(const FoveaAttentionDesc& forward, const FoveaAttentionBackwardDesc& given,
                         const Tensors& inputs, const ExecuteOptions& options) override {
        FoveaAttentionBackwardDesc backward = given;
        backward.kernel = choice_.kernel;
        return run_planned(plan_attention_backward(properties(options), forward, backward), inputs, options);
    }
    Outcome run_tile(const FoveaAttentionDesc& desc, const FoveaMapTileDesc& tile, const Tensors& inputs,
                     const ExecuteOptions& options) override {
        return run_planned(plan_map_tile(properties(options), chosen(desc), tile), inputs, options);
    }
    Outcome run_merge(const FoveaMergeDesc& given, const Tensors& inputs,
                      const ExecuteOptions& options) override {
        FoveaMergeDesc merge = given;  // which has the loops' names, not those of kernels of attention
        if (choice_.kernel >= FOVEA_KERNEL_PLAIN) merge.kernel = choice_.kernel;
        return run_planned(plan_merge(properties(options), merge), inputs, options);
    }

  private:
    FoveaAttentionDesc chosen(FoveaAttentionDesc desc) const {
        desc.kernel = choice_.kernel;
        return desc;
    }
    FoveaDeviceProperties properties(const ExecuteOptions& options) const {
        FoveaDeviceProperties properties = cpu_device(options.workers);
        FoveaDeviceProperties here = foveaDeviceProperties();
        if (foveaCpuProperties(1, &here, nullptr) == FOVEA_OK) properties.features = here.features;
        if (choice_.force_target) properties.cpu_target = choice_.target;
        return properties;
    }

    Outcome run_planned(const Result<Plan>& plan, const Tensors& inputs, const ExecuteOptions& options) {
        if (!plan) {
            Outcome outcome;
            outcome.kind = Outcome::Kind::refused;
            outcome.code = plan.error().code;
            outcome.text = plan.error().field + ": " + plan.error().text;
            return outcome;
        }
        return run_plan(*plan, inputs, options);
    }

    static Outcome broken(Outcome outcome, const Error& error) {
        outcome.kind = Outcome::Kind::broken;
        outcome.code = error.code;
        outcome.text = error.field + ": " + error.text;
        return outcome;
    }

    Outcome run_plan(const Plan& plan, const Tensors& inputs, const ExecuteOptions& options) {
        Outcome outcome;
        const FoveaPlanInfo info = plan.info();
        outcome.kernel = info.kernel;
        RunBuffers buffers(info, inputs);
        ThreadPool pool(options.workers);
        const FoveaParallel parallel = pool.parallel();
        FoveaCpuRun run = buffers.run();
        if (options.workers > 1) run.parallel = &parallel;
        std::vector<uint64_t> order{0};
        if (options.shuffle_seed) {
            order = shuffled_slices(info.slice_count, options.shuffle_seed);
            run.slice_count = 1;
        }
        for (const uint64_t slice : order) {
            run.first_slice = slice;
            if (Result<void> done = plan.run_cpu(run); !done) return broken(std::move(outcome), done.error());
        }
        outcome.text = buffers.damage();
        outcome.kind = outcome.text.empty() ? Outcome::Kind::ran : Outcome::Kind::broken;
        outcome.outputs = buffers.outputs();
        return outcome;
    }

    std::string name_;
    CpuChoice choice_;
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(std::string name, const CpuChoice& choice) {
    return std::make_unique<CpuExecutor>(std::move(name), choice);
}

Result<FoveaPlanInfo> plan_info(const FoveaAttentionDesc& given) {
    FoveaAttentionDesc desc = given;
    desc.kernel = FOVEA_KERNEL_REFERENCE;
    Result<Plan> plan = plan_attention(cpu_device(1), desc);
    if (!plan) return plan.error();
    return plan->info();
}

}  // namespace fovea::test
