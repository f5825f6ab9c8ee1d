#include "operations/operation_runner.hpp"

#include "support/cpu_device.hpp"
#include "support/guarded_buffer.hpp"
#include "support/random.hpp"
#include "support/webgpu_executor.hpp"

#include <fovea/runtime.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace fovea::test {
namespace {

constexpr uint64_t kMargin = 256;

Error damaged(uint32_t binding, const char* what) {
    return Error{FOVEA_INVALID_ARGUMENT, "binding " + std::to_string(binding), what};
}

class CpuRunner : public OperationRunner {
  public:
    CpuRunner(std::string name, uint32_t target)
        : name_(std::move(name)), properties_(cpu_device(3, target)) {}
    const std::string& name() const override { return name_; }
    const FoveaDeviceProperties& properties() const override { return properties_; }

    Result<Buffers> run(const Plan& plan, const Buffers& given, const OperationRun& how) override {
        const FoveaPlanInfo info = plan.info();
        std::array<std::optional<GuardedBuffer>, FOVEA_BIND_COUNT> owned;
        FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (given[i].empty() || (how.in_place && i == FOVEA_BIND_Y)) continue;
            owned[i].emplace(given[i].size(), 4 + 4 * (i % 3), kUntouched,
                             info.output_mask >> i & 1 || how.in_place ? Behind::margin : Behind::wall);
            owned[i]->assign(given[i]);
            bound[i] = {owned[i]->data(), given[i].size()};
        }
        if (how.in_place) bound[FOVEA_BIND_Y] = bound[FOVEA_BIND_X];
        GuardedBuffer workspace(size_t(info.workspace_bytes), 0, kUntouched);
        ThreadPool pool(how.workers);
        const FoveaParallel parallel = pool.parallel();
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = bound;
        run.workspace = {workspace.data(), info.workspace_bytes};
        run.parallel = how.workers > 1 ? &parallel : nullptr;
        run.slice_count = 1;
        for (const uint64_t slice : order(info.slice_count, how.shuffle_seed)) {
            run.first_slice = slice;
            if (Result<void> done = plan.run_cpu(run); !done) return done.error();
        }
        Buffers after;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!owned[i]) continue;
            if (owned[i]->changed_margin()) return damaged(i, "a byte outside the buffer was written");
            after[i] = owned[i]->contents();
        }
        if (workspace.changed_margin()) return damaged(FOVEA_BIND_WORKSPACE, "a byte outside it was written");
        if (how.in_place) after[FOVEA_BIND_Y] = after[FOVEA_BIND_X];
        return after;
    }

  private:
    static std::vector<uint64_t> order(uint64_t count, uint64_t seed) {
        std::vector<uint64_t> slices(count);
        for (uint64_t n = 0; n < count; ++n) slices[n] = n;
        Random random(seed);
        for (uint64_t n = count; seed && n > 1; --n) std::swap(slices[n - 1], slices[random.below(n)]);
        return slices;
    }

    std::string name_;
    FoveaDeviceProperties properties_;
};

class VulkanRunner : public OperationRunner {
  public:
    VulkanRunner(std::string name, Engine engine)
        : name_(std::move(name)), engine_(std::move(engine)), properties_(engine_.properties()) {
        if (name_ == "vulkan@discrete") properties_.device_class = FOVEA_CLASS_DISCRETE;
    }
    const std::string& name() const override { return name_; }
    const FoveaDeviceProperties& properties() const override { return properties_; }

    Result<Buffers> run(const Plan& plan, const Buffers& given, const OperationRun& how) override {
        std::array<std::optional<DeviceBuffer>, FOVEA_BIND_COUNT> owned;
        std::array<DeviceBuffer*, FOVEA_BIND_COUNT> bound{};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (given[i].empty() || (how.in_place && i == FOVEA_BIND_Y)) continue;
            Bytes padded = given[i];
            padded.resize(padded.size() + kMargin, kUntouched);
            Result<DeviceBuffer> buffer = engine_.buffer(padded.size());
            if (!buffer) return buffer.error();
            owned[i].emplace(std::move(*buffer));
            if (Result<void> done = owned[i]->upload(padded); !done) return done.error();
            bound[i] = &*owned[i];
        }
        if (how.in_place) bound[FOVEA_BIND_Y] = bound[FOVEA_BIND_X];
        RunOptions options;
        options.slice_shuffle_seed = how.shuffle_seed;
        const Result<RunReport> report = engine_.run(plan, bound, options);
        const std::vector<std::string> messages = engine_.take_messages();
        if (!messages.empty()) return Error{FOVEA_VULKAN_ERROR, "validation", messages.front()};
        if (!report) return report.error();
        return download(given, owned, how.in_place);
    }

  private:
    static Result<Buffers> download(const Buffers& given,
                                    std::array<std::optional<DeviceBuffer>, FOVEA_BIND_COUNT>& owned,
                                    bool in_place) {
        Buffers after;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!owned[i]) continue;
            Bytes padded(given[i].size() + kMargin);
            if (Result<void> done = owned[i]->download(padded); !done) return done.error();
            const auto margin = padded.begin() + ptrdiff_t(given[i].size());
            if (!std::all_of(margin, padded.end(), [](std::byte b) { return b == kUntouched; }))
                return damaged(i, "a byte behind the buffer was written");
            padded.resize(given[i].size());
            after[i] = std::move(padded);
        }
        if (in_place) after[FOVEA_BIND_Y] = after[FOVEA_BIND_X];
        return after;
    }

    std::string name_;
    Engine engine_;
    FoveaDeviceProperties properties_;
};

class WebGpuRunner : public OperationRunner {
  public:
    WebGpuRunner(std::string name, std::unique_ptr<WebGpu> gpu)
        : name_(std::move(name)), gpu_(std::move(gpu)) {}
    const std::string& name() const override { return name_; }
    const FoveaDeviceProperties& properties() const override { return gpu_->properties(); }

    Result<Buffers> run(const Plan& plan, const Buffers& given, const OperationRun& how) override {
        if (how.in_place) return Error{FOVEA_UNSUPPORTED, "y", "WebGPU binds no buffer twice"};
        Outcome outcome = gpu_->run(plan, given, {.shuffle_seed = how.shuffle_seed});
        if (!outcome.ran()) return Error{FOVEA_VULKAN_ERROR, "run", outcome.text};
        Buffers after = given;
        const FoveaPlanInfo info = plan.info();
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.output_mask >> i & 1)) continue;
            // A plan's buffer is a few bytes longer than its tensor; those bytes may have any value.
            std::copy(outcome.outputs[i].begin(), outcome.outputs[i].end(), after[i].begin());
        }
        return after;
    }

  private:
    std::string name_;
    std::unique_ptr<WebGpu> gpu_;
};

// A plan that every backend can make, to check whether this CPU runs a target.
bool runs_here(uint32_t target, std::string& why) {
    const FoveaDeviceProperties properties = cpu_device(1, target);
    FoveaLinearDesc d{};
    d.struct_size = sizeof d;
    d.n_in = d.n_out = d.rows = 1;
    FoveaPlan handle = nullptr;
    Diag diag;
    if (foveaPlanLinear(&properties, &d, nullptr, &handle, &diag) != FOVEA_OK) {
        why = diag.text;
        return false;
    }
    const Plan plan(handle);
    Buffers buffers;
    for (const uint32_t i : {FOVEA_BIND_X, FOVEA_BIND_Y, FOVEA_BIND_WEIGHT}) buffers[i].resize(4);
    const Result<Buffers> after = CpuRunner("", target).run(plan, buffers, {});
    if (!after) why = after.error().text;
    return bool(after);
}

}  // namespace

std::vector<std::unique_ptr<OperationRunner>>& runners() {
    static std::vector<std::unique_ptr<OperationRunner>> all;
    return all;
}

std::unique_ptr<OperationRunner> make_operation_runner(const std::string& name, std::string& error) {
    if (name == "vulkan" || name == "vulkan@discrete") {
        EngineOptions options;
        options.backend = BackendChoice::vulkan;
        options.validation = true;
        Result<Engine> engine = Engine::open(options);
        if (engine) return std::make_unique<VulkanRunner>(name, std::move(*engine));
        error = engine.error().text;
        return nullptr;
    }
    if (name == "webgpu" || name == "dawn") {
        std::unique_ptr<WebGpu> gpu = open_webgpu(name == "dawn", "", error);
        return gpu ? std::make_unique<WebGpuRunner>(name, std::move(gpu)) : nullptr;
    }
    for (uint32_t id = 1; id < 32; ++id)
        if (name == std::string("cpu@") + foveaCpuTargetName(id))
            return std::make_unique<CpuRunner>(name, id);
    error = "no runner is called " + name;
    return nullptr;
}

std::vector<std::string> cpu_runner_names() {
    std::vector<std::string> names;
    for (uint32_t id = 1; id < 32; ++id) {
        const std::string target = foveaCpuTargetName(id);
        if (target == "unknown") break;
        std::string why;
        if (runs_here(id, why))
            names.push_back("cpu@" + target);
        else
            printf("skipped cpu@%s: %s\n", target.c_str(), why.c_str());
    }
    return names;
}

}  // namespace fovea::test
