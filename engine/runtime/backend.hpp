// The backend of an Engine: the CPU or one Vulkan device.
#pragma once

#include <fovea/runtime.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fovea::runtime {

// Bits of shaders by class of calls, as FoveaDeviceProperties::failed_shaders.
using CheckedShaders = std::array<uint64_t, FOVEA_CHECK_CLASS_COUNT>;

// Memory of a backend. Copies wait until they are done.
class Memory {
  public:
    virtual ~Memory() = default;
    virtual uint64_t size_bytes() const = 0;
    virtual Result<void> upload(std::span<const std::byte> bytes, uint64_t offset) = 0;
    virtual Result<void> download(std::span<std::byte> bytes, uint64_t offset) = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual const DeviceInfo& info() const = 0;
    virtual Result<std::unique_ptr<Memory>> allocate(uint64_t size_bytes) = 0;
    // buffers[i] is FoveaBinding i or null; they are this backend's.
    virtual Result<RunReport> run(const Plan& plan, std::span<Memory* const> buffers,
                                  const RunOptions& options) = 0;
    // The same of several, in their order, each of which sees what those before it wrote.
    struct Bound {
        const Plan* plan;
        std::array<Memory*, FOVEA_BIND_COUNT> buffers;
    };
    virtual Result<RunReport> run_all(std::span<const Bound> runs, const RunOptions& options);
    virtual Result<RunReport> run_on_host(const Plan& plan, const HostBindings& bindings,
                                          const RunOptions& options) = 0;
    // FLOPs of one slice that take about the target time by what was measured so far; 0: nothing known yet.
    virtual double measured_slice_cost() const { return 0; }
    // FoveaDeviceProperties::failed_shaders so far, and a line for each kernel.
    virtual CheckedShaders failed_shaders() const { return {}; }
    virtual std::vector<std::string> check_texts() const { return {}; }
    // Checks every kernel; returns the number of problems.
    virtual Result<uint32_t> check_driver() { return uint32_t{0}; }
    virtual std::vector<std::string> take_messages() { return {}; }
};

Result<std::unique_ptr<Backend>> open_cpu_backend(uint32_t threads);
DeviceInfo cpu_device_info(uint32_t threads);

// How much a list tells of each Vulkan device: enough to choose one, or what an opened one reports.
enum class Detail { to_choose, all };

// Vulkan devices in the loader's order, numbered from 1. `note` says why there are none, if so.
std::vector<DeviceInfo> list_vulkan_devices(Detail detail, const std::string& check_folder,
                                            std::string& note);
// `number` as in DeviceInfo.
Result<std::unique_ptr<Backend>> open_vulkan_backend(uint32_t number, const EngineOptions& options);

// EngineOptions::tuning_file on a device that was just opened.
Result<void> tune_from_file(const std::string& file, DeviceInfo& device);

// The slices of a run in the order wanted.
std::vector<uint64_t> slice_order(uint64_t count, uint64_t shuffle_seed);

// Report fields that are the same for all backends.
RunReport report_of(const FoveaPlanInfo& info, const DeviceInfo& device);

// ---- which device a program gets that asked for none by number ----

struct DeviceChoice {
    uint32_t number = 0;  // DeviceInfo::number
    std::string reason;
};

// Chooses one of `devices`, as returned by list_devices. `vulkan_note` is the reason if there is no Vulkan
// device.
Result<DeviceChoice> choose_device(std::span<const DeviceInfo> devices, const std::string& vulkan_note,
                                   const EngineOptions& options);

}  // namespace fovea::runtime
