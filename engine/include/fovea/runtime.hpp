// The convenience layer (library `fovea_runtime`) for programs without a Vulkan device: it finds devices,
// opens one, owns buffers and threads, submits and waits. A program with its own device uses
// <fovea/fovea_vulkan.h>.
//
// Nothing here throws or prints. A machine without a Vulkan loader or driver is a normal machine: the CPU is
// always there. Thread safety: an Engine and what it made may be used by one thread at a time; different
// engines are independent.
#pragma once

#include <fovea/fovea.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// One line of `fovea devices`.
struct DeviceInfo {
    uint32_t number = 0;  // the value of --device: 0 is the CPU, Vulkan devices follow in the loader's order
    std::string name;     // "CPU (AVX2)", "llvmpipe (LLVM 15.0.6, 256 bits)", ...
    std::string driver;   // Vulkan: driver name and version, API version; else empty
    FoveaDeviceProperties properties{};  // the properties that the planner uses
    bool usable = false;
    std::string refusal;  // why not usable
    // Features that are missing and what they would buy; kernels that are off as their check found them
    // wrong.
    std::vector<std::string> notes;
};

// Every backend and device of this machine, usable or not; the CPU first. Never fails. `check_folder` as in
// EngineOptions: what was found there is told.
std::vector<DeviceInfo> list_devices(uint32_t cpu_threads = 0, const std::string& check_folder = {});

enum class BackendChoice {  // which kind of device
    automatic,  // Vulkan on a hardware device, else the CPU; a software Vulkan driver only by name
    cpu,
    vulkan,    // any Vulkan device, software drivers too: discrete, integrated, software
    reference  // the CPU in float64
};

// Measured times of one Vulkan device, used as its properties. `./dev bench tune` writes them to a file,
// which EngineOptions::tuning_file names. An application with its own device copies the two members into its
// properties.
struct Tuning {
    std::string device, driver;  // as in DeviceInfo
    FoveaFlashTile flash_tiles[FOVEA_TILE_CLASS_COUNT] = {};
    FoveaMaskMap mask_map = FOVEA_MASK_MAP_AUTO;
};
// Seconds of a masked call without and with the map of its mask: where the map has nothing to skip (every
// second key at random), and where it skips most (one of four blocks is visible).
struct MaskMapTimes {
    double random_without, random_with, blocks_without, blocks_with;
};
// FOVEA_MASK_MAP_NEVER where the map saves less than 5% of what it could skip, or costs more where it has
// nothing to skip than it saves there; else FOVEA_MASK_MAP_AUTO, as only the host knows which masks will
// come.
FoveaMaskMap mask_map_worth(const MaskMapTimes& times);
std::string tuning_text(const Tuning& tuning);
// Errors name the field of the text and its line.
Result<Tuning> read_tuning(std::string_view text);
// Sets the properties of `device` from the tuning. Rejects a tuning of another device or driver; the error
// names both.
Result<void> apply_tuning(const Tuning& tuning, DeviceInfo& device);

// Which drivers an engine checks (foveaCheckDevice). Each kernel is checked once, at the first run of a plan
// that uses it. Software drivers take seconds to compile the check's pipelines.
enum class DriverChecks { hardware, all, none };

struct EngineOptions {  // where to run
    BackendChoice backend = BackendChoice::automatic;
    int device = -1;           // a DeviceInfo::number, -1: choose. Must fit `backend`
    std::string device_name;   // instead of the number: a part of one DeviceInfo::name, in any case
    uint32_t cpu_threads = 0;  // 0: one for each CPU core that this process may use
    std::string tuning_file;   // see Tuning; empty: none
    DriverChecks driver_checks = DriverChecks::hardware;
    // Folder of files that keep what the check found about each driver for later engines. Empty, or one that
    // cannot be read or written: each engine checks again.
    std::string check_folder;
    // Khronos validation with synchronization validation; messages: Engine::take_messages.
    bool validation = false;
    // False: descriptor sets come from a pool where the device could push them, as GPU-assisted validation
    // needs.
    bool push_descriptors = true;
};

// Host memory for each binding of a call, indexed by FoveaBinding; null where the plan needs none. Types,
// shapes and strides are the description's; sizes in bytes at least FoveaPlanInfo::binding_bytes, and nothing
// after FoveaPlanInfo::tensor_bytes is written or changes a result. Inputs are only read.
using HostBindings = FoveaHostBuffer[FOVEA_BIND_COUNT];

struct RunOptions {  // The options of one call.
    // Called on the calling thread, between submissions, with the done share [0, 1]; false cancels
    // (FOVEA_CANCELLED; outputs are then undefined).
    std::function<bool(double)> progress;
    uint64_t slice_shuffle_seed = 0;  // not 0: slices in a random order (the result must not depend on it)
    // Limit of any one wait; FOVEA_TIMEOUT names slice and kernel. 0: a minute, and ten for a software
    // driver, which compiles within the first submission that uses a pipeline.
    double timeout_seconds = 0;
};

// The backend and kernel that ran, and the reason for the choice.
struct RunReport {
    FoveaBackend backend = FOVEA_BACKEND_CPU;
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
    std::string device, reason;
    uint64_t slices = 0, workspace_bytes = 0, device_bytes = 0;
    uint64_t submissions = 0;  // Vulkan: to the queue, transfers apart
    double seconds = 0;        // wall time of the call, transfers included
    // Vulkan: sum of the slices by timestamps, 0 where there are none. CPU: time in kernels.
    double device_seconds = 0;
};

class DeviceBuffer;

class Engine {  // one device with its memory and threads
  public:
    static Result<Engine> open(const EngineOptions& options = {});
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;
    ~Engine();

    const DeviceInfo& device() const;
    const std::string& reason() const;  // why this device
    // The planner's input: the device's properties with what was measured so far. Plans are those of
    // <fovea/fovea.hpp>: plan_linear(engine.properties(), desc). A run whose kernel fails its first check
    // plans its call again without it.
    const FoveaDeviceProperties& properties() const;
    bool is_vulkan() const;

    // Runs a plan on host memory: moves the inputs, runs every slice, moves the outputs back. Errors:
    // FOVEA_OUT_OF_DEVICE_MEMORY with the sizes, FOVEA_CANCELLED, FOVEA_TIMEOUT, and FOVEA_DEVICE_LOST, which
    // every later call says again.
    Result<RunReport> run_on_host(const Plan& plan, const HostBindings& bindings,
                                  const RunOptions& options = {});
    // The same for a plan that is made in the call; its error is the planner's, and nothing was written then.
    Result<RunReport> run_on_host(const Result<Plan>& plan, const HostBindings& bindings,
                                  const RunOptions& options = {});
    Result<RunReport> attention(const FoveaAttentionDesc& desc, const HostBindings& bindings,
                                const RunOptions& options = {}) {
        return run_on_host(plan_attention(properties(), desc), bindings, options);
    }

    // The same in steps, for data that stays where it is.
    // Device memory (plain memory on the CPU), zero-filled. Fails with the sizes if the budget does not allow
    // it.
    Result<DeviceBuffer> buffer(uint64_t size_bytes);
    // buffers[i] is FoveaBinding i, null where the plan needs none; each of this engine, and at least as
    // large as FoveaPlanInfo::binding_bytes[i]. The workspace is the engine's. Errors as above.
    Result<RunReport> run(const Plan& plan, std::span<DeviceBuffer* const> buffers,
                          const RunOptions& options = {});

    // Runs one after the other, each of which sees what those before it wrote, in as few submissions as the
    // time that one may take allows. On an error some of them may have run.
    struct BoundPlan {
        std::shared_ptr<const Plan> plan;
        std::array<DeviceBuffer*, FOVEA_BIND_COUNT> buffers{};
    };
    Result<RunReport> run(std::span<const BoundPlan> plans, const RunOptions& options = {});

    // Checks every kernel of the device now, and returns a line for each that computes wrong values. There is
    // none on a healthy driver, and on the CPU. `problems` receives how many small calls were run.
    Result<std::vector<std::string>> check_driver(uint32_t* problems = nullptr);

    // Validation messages so far (empty without EngineOptions::validation); the call clears them.
    std::vector<std::string> take_messages();

    struct State;

  private:
    explicit Engine(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Memory of one engine; must go before it.
class DeviceBuffer {
  public:
    DeviceBuffer(DeviceBuffer&&) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&&) noexcept;
    ~DeviceBuffer();
    uint64_t size_bytes() const;
    // Both copy and wait. offset + bytes must be within the buffer.
    Result<void> upload(std::span<const std::byte> bytes, uint64_t offset = 0);
    Result<void> download(std::span<std::byte> bytes, uint64_t offset = 0) const;

    struct State;

  private:
    friend class Engine;
    explicit DeviceBuffer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fovea
