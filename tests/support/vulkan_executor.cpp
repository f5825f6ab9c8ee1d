#include "support/vulkan_executor.hpp"

#include "support/guarded_buffer.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

namespace fovea::test {
namespace {

constexpr uint64_t kMargin = 512;

// One binding with a guarded margin after it. (Gaps between strides inside the outputs are checked with the
// results.)
struct Binding {
    std::optional<DeviceBuffer> buffer;
    std::vector<std::byte> uploaded;
};

class VulkanExecutor : public Executor {
  public:
    VulkanExecutor(std::string name, FoveaKernel kernel, Engine engine,
                   const FoveaDeviceProperties& properties)
        : name_(std::move(name)), kernel_(kernel), engine_(std::move(engine)), properties_(properties) {}
    const std::string& name() const override { return name_; }

    Outcome run(const FoveaAttentionDesc& desc, const Tensors& inputs,
                const ExecuteOptions& options) override {
        return run_planned(plan_attention(properties_, chosen(desc)), inputs, options);
    }
    Outcome run_backward(const FoveaAttentionDesc& forward, const FoveaAttentionBackwardDesc& given,
                         const Tensors& inputs, const ExecuteOptions& options) override {
        FoveaAttentionBackwardDesc backward = given;
        backward.kernel = kernel_;
        return run_planned(plan_attention_backward(properties_, forward, backward), inputs, options);
    }
    Outcome run_tile(const FoveaAttentionDesc& desc, const FoveaMapTileDesc& tile, const Tensors& inputs,
                     const ExecuteOptions& options) override {
        return run_planned(plan_map_tile(properties_, chosen(desc), tile), inputs, options);
    }
    Outcome run_merge(const FoveaMergeDesc& merge, const Tensors& inputs,
                      const ExecuteOptions& options) override {
        return run_planned(plan_merge(properties_, merge), inputs, options);
    }

  private:
    FoveaAttentionDesc chosen(FoveaAttentionDesc desc) const {
        desc.kernel = kernel_;
        return desc;
    }

    Outcome run_planned(const Result<Plan>& plan, const Tensors& inputs, const ExecuteOptions& options) {
        Outcome outcome;
        if (!plan) {
            outcome.kind = Outcome::Kind::refused;
            outcome.code = plan.error().code;
            outcome.text = plan.error().field + ": " + plan.error().text;
            return outcome;
        }
        const FoveaPlanInfo info = plan->info();
        outcome.kernel = info.kernel;
        const Result<void> done = options.host_memory ? run_on_host(*plan, info, inputs, options, outcome)
                                                      : run_on_device(*plan, info, inputs, options, outcome);
        for (const std::string& message : engine_.take_messages()) outcome.text += "validation: " + message;
        if (!done)
            outcome.text += done.error().field + ": " + done.error().text, outcome.code = done.error().code;
        outcome.kind = outcome.text.empty() ? Outcome::Kind::ran : Outcome::Kind::broken;
        return outcome;
    }

    static bool is_output(const FoveaPlanInfo& info, uint32_t i) { return info.output_mask >> i & 1; }

    Result<void> run_on_device(const Plan& plan, const FoveaPlanInfo& info, const Tensors& inputs,
                               const ExecuteOptions& options, Outcome& outcome) {
        std::array<Binding, FOVEA_BIND_COUNT> bindings;
        Result<void> done = upload(info, inputs, bindings);
        if (done) done = run_plan(plan, bindings, options);
        if (done) done = download(info, bindings, outcome);
        return done;
    }

    // Host memory of just the tensors' bytes, wherever they begin, with guards around it.
    Result<void> run_on_host(const Plan& plan, const FoveaPlanInfo& info, const Tensors& inputs,
                             const ExecuteOptions& options, Outcome& outcome) {
        std::array<std::optional<GuardedBuffer>, FOVEA_BIND_COUNT> buffers;
        HostBindings bindings{};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1) || info.tensor_bytes[i] == 0) continue;
            buffers[i].emplace(size_t(info.tensor_bytes[i]), 1 + i % 4, kUntouched);
            if (!is_output(info, i)) buffers[i]->assign(inputs[i]);
            bindings[i] = {buffers[i]->data(), info.tensor_bytes[i]};
        }
        RunOptions run;
        run.slice_shuffle_seed = options.shuffle_seed;
        Result<RunReport> report = engine_.run_on_host(plan, bindings, run);
        if (!report) return report.error();
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!buffers[i]) continue;
            if (const auto at = buffers[i]->changed_margin())
                outcome.text += "binding " + std::to_string(i) + ": byte " + std::to_string(at) +
                                " outside the host's buffer was written; ";
            if (is_output(info, i))
                outcome.outputs[i] = buffers[i]->contents();
            else if (buffers[i]->contents() != inputs[i])
                outcome.text += "binding " + std::to_string(i) + ": an input on the host was written; ";
        }
        return {};
    }

    Result<void> upload(const FoveaPlanInfo& info, const Tensors& inputs,
                        std::array<Binding, FOVEA_BIND_COUNT>& bindings) {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
            Binding& b = bindings[i];
            b.uploaded.assign(size_t(info.binding_bytes[i] + kMargin), kUntouched);
            if (!is_output(info, i) || !inputs[i].empty())
                std::copy(inputs[i].begin(), inputs[i].end(), b.uploaded.begin());
            Result<DeviceBuffer> buffer = engine_.buffer(b.uploaded.size());
            if (!buffer) return buffer.error();
            b.buffer.emplace(std::move(*buffer));
            if (Result<void> done = b.buffer->upload(b.uploaded); !done) return done;
        }
        return {};
    }

    Result<void> run_plan(const Plan& plan, std::array<Binding, FOVEA_BIND_COUNT>& bindings,
                          const ExecuteOptions& options) {
        std::array<DeviceBuffer*, FOVEA_BIND_COUNT> buffers{};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (bindings[i].buffer) buffers[i] = &*bindings[i].buffer;
        RunOptions run;
        run.slice_shuffle_seed = options.shuffle_seed;
        Result<RunReport> report = engine_.run(plan, buffers, run);
        if (!report) return report.error();
        return {};
    }

    static Result<void> download(const FoveaPlanInfo& info, std::array<Binding, FOVEA_BIND_COUNT>& bindings,
                                 Outcome& outcome) {
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            Binding& b = bindings[i];
            if (!b.buffer) continue;
            std::vector<std::byte> now(b.uploaded.size());
            if (Result<void> done = b.buffer->download(now); !done) return done;
            const auto begin = now.begin() + (is_output(info, i) ? ptrdiff_t(info.binding_bytes[i]) : 0);
            const auto same = std::mismatch(begin, now.end(), b.uploaded.begin() + (begin - now.begin()));
            if (same.first != now.end())
                outcome.text += "binding " + std::to_string(i) + ": byte " +
                                std::to_string(same.first - now.begin()) + " was written and must not be; ";
            if (!is_output(info, i)) continue;
            now.resize(size_t(info.tensor_bytes[i]));
            outcome.outputs[i] = std::move(now);
        }
        return {};
    }

    std::string name_;
    FoveaKernel kernel_;
    Engine engine_;
    FoveaDeviceProperties properties_;
};

}  // namespace

std::unique_ptr<Executor> make_vulkan_executor(std::string name, FoveaKernel kernel, std::string_view as,
                                               std::string& error) {
    EngineOptions options = unchecked_vulkan(true);
    const bool instruments_shaders = getenv("VK_KHRONOS_VALIDATION_GPUAV_ENABLE") != nullptr;
    options.push_descriptors = !instruments_shaders;
    Result<Engine> engine = Engine::open(options);
    if (!engine) {
        error = engine.error().text;
        return nullptr;
    }
    // With instrumented shaders the layer says at the start which features it turns on for itself.
    if (instruments_shaders) engine->take_messages();
    FoveaDeviceProperties properties = engine->properties();
    while (!as.empty()) {
        const std::string_view kind = as.substr(0, as.find(','));
        as.remove_prefix(std::min(as.size(), kind.size() + 1));
        if (kind == "discrete") {
            properties.device_class = FOVEA_CLASS_DISCRETE;
        } else if (kind == "nosubgroup") {
            properties.features &= ~uint32_t{FOVEA_FEATURE_SUBGROUP_ARITHMETIC};
        } else if (kind == "six-buffers") {  // so that most inputs are gathered
            properties.max_storage_buffers = 6;
        } else {
            error = "no kind of device is called " + std::string(kind);
            return nullptr;
        }
    }
    return std::make_unique<VulkanExecutor>(std::move(name), kernel, std::move(*engine), properties);
}

}  // namespace fovea::test
