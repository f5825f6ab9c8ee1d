#include "runtime/backend.hpp"
#include "runtime/processors.hpp"

#include <fovea/thread_pool.hpp>

#include <chrono>
#include <cstring>
#include <new>

namespace fovea::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line

struct Release {
    void operator()(std::byte* p) const { ::operator delete(p, kAlignment); }
};
using Bytes = std::unique_ptr<std::byte, Release>;

// Null where there is less memory: systems promise more than they have, and end the process that uses it.
Bytes allocate_bytes(uint64_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2 || size_bytes > memory_of_process()) return nullptr;
    return Bytes(static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(size_bytes ? size_bytes : 1), kAlignment, std::nothrow)));
}

class CpuMemory final : public Memory {
  public:
    CpuMemory(Bytes bytes, uint64_t size_bytes) : bytes_(std::move(bytes)), size_bytes_(size_bytes) {}
    uint64_t size_bytes() const override { return size_bytes_; }
    Result<void> upload(std::span<const std::byte> bytes, uint64_t offset) override {
        if (!bytes.empty()) memcpy(bytes_.get() + offset, bytes.data(), bytes.size());
        return {};
    }
    Result<void> download(std::span<std::byte> bytes, uint64_t offset) override {
        if (!bytes.empty()) memcpy(bytes.data(), bytes_.get() + offset, bytes.size());
        return {};
    }
    std::byte* data() { return bytes_.get(); }

  private:
    Bytes bytes_;
    uint64_t size_bytes_;
};

class CpuBackend final : public Backend {
  public:
    CpuBackend(DeviceInfo info, uint32_t threads)
        : info_(std::move(info)), pool_(threads, ThreadPool::kBetweenCalls) {}
    const DeviceInfo& info() const override { return info_; }

    Result<std::unique_ptr<Memory>> allocate(uint64_t size_bytes) override {
        Bytes bytes = allocate_bytes(size_bytes);
        if (!bytes) return out_of_memory(size_bytes);
        if (size_bytes) memset(bytes.get(), 0, static_cast<size_t>(size_bytes));
        return std::unique_ptr<Memory>(new CpuMemory(std::move(bytes), size_bytes));
    }

    Result<RunReport> run(const Plan& plan, std::span<Memory* const> buffers,
                          const RunOptions& options) override {
        HostBindings bindings{};
        for (size_t i = 0; i < buffers.size() && i < FOVEA_BIND_COUNT; ++i) {
            if (auto* memory = static_cast<CpuMemory*>(buffers[i]))
                bindings[i] = {memory->data(), memory->size_bytes()};
        }
        return run_on_host(plan, bindings, options);
    }

    Result<RunReport> run_on_host(const Plan& plan, const HostBindings& bindings,
                                  const RunOptions& options) override {
        const auto start = std::chrono::steady_clock::now();
        const FoveaPlanInfo info = plan.info();
        const FoveaParallel parallel = pool_.parallel();
        if (Result<void> r = run_slices(plan, info, bindings, parallel, options); !r) return r.error();
        RunReport report = report_of(info, info_);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        report.device_seconds = report.seconds;
        return report;
    }

  private:
    static Error out_of_memory(uint64_t size_bytes) {
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "size_bytes",
                     "no host memory for " + std::to_string(size_bytes) + " bytes"};
    }

    Result<void> run_slices(const Plan& plan, const FoveaPlanInfo& info, const HostBindings& bindings,
                            const FoveaParallel& parallel, const RunOptions& options) {
        if (!options.progress && options.slice_shuffle_seed == 0)
            return fovea::run_on_host(plan, bindings, workspace_, &parallel);
        uint64_t done = 0;
        for (const uint64_t slice : slice_order(info.slice_count, options.slice_shuffle_seed)) {
            if (Result<void> r = fovea::run_on_host(plan, bindings, workspace_, &parallel, slice, 1); !r)
                return r;
            ++done;
            if (options.progress && !options.progress(double(done) / double(info.slice_count)))
                return Error{FOVEA_CANCELLED, "progress",
                             "cancelled after " + std::to_string(done) + " of " +
                                 std::to_string(info.slice_count) + " slices"};
        }
        return {};
    }

    DeviceInfo info_;
    ThreadPool pool_;
    Workspace workspace_;
};

}  // namespace

DeviceInfo cpu_device_info(uint32_t threads) {
    DeviceInfo info;
    info.name = "CPU";
    Result<FoveaDeviceProperties> properties = cpu_properties(threads ? threads : available_processors());
    if (!properties) {
        info.refusal = properties.error().text;
        return info;
    }
    info.properties = *properties;
    info.name = std::string("CPU (") + foveaCpuTargetName(properties->cpu_target) + ")";
    info.usable = true;
    return info;
}

Result<std::unique_ptr<Backend>> open_cpu_backend(uint32_t threads) {
    DeviceInfo info = cpu_device_info(threads);
    if (!info.usable) return Error{FOVEA_UNSUPPORTED, "cpu", info.refusal};
    const uint32_t workers = info.properties.cpu_threads ? info.properties.cpu_threads : 1;
    return std::unique_ptr<Backend>(new CpuBackend(std::move(info), workers));
}

}  // namespace fovea::runtime
