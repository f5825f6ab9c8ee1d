// Runs a trace's calls on an engine of the runtime: the CPU's fast kernels or a Vulkan device.
#pragma once

#include <fovea/model/runner.hpp>
#include <fovea/runtime.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>

namespace fovea {

// Every call moves its tensors to the device and back. Stored weights stay on a Vulkan device, in their
// stored types, until their files are closed or the device has no more room. A text on a Vulkan device moves
// only the rows that enter and leave it.
class DeviceRunner final : public Runner {
  public:
    // Opens an engine and owns it.
    static Result<std::unique_ptr<DeviceRunner>> open(const EngineOptions& options,
                                                      FoveaKernel kernel = FOVEA_KERNEL_AUTO);
    // Borrows the engine, which must outlive it.
    explicit DeviceRunner(Engine& engine, FoveaKernel kernel = FOVEA_KERNEL_AUTO) : engine_(engine) {
        kernel_ = kernel;
    }

    std::string name() const override { return engine_.device().name; }  // "CPU (AVX2)", "llvmpipe (...)"
    const FoveaDeviceProperties& properties() const override { return engine_.properties(); }
    Result<void> run(const Plan& plan, const FoveaHostBuffer* bindings) override;
    // The same with options. A Vulkan device keeps the inputs of `stay` (a bit for each binding) by their
    // address, as long as `owner` lives and no call needs their room.
    Result<RunReport> run(const Plan& plan, const FoveaHostBuffer* bindings, uint64_t stay,
                          const std::weak_ptr<const void>& owner, const RunOptions& options = {});
    Result<void> stored_linears(std::span<const StoredProduct> products, const F32Tensor& x) override;
    std::unique_ptr<ResidentText> text(uint64_t layers, uint64_t capacity) override;

    const RunReport& last_attention() const { return last_attention_; }
    // Returns the bytes of weights and other inputs that stay on the device.
    uint64_t held_bytes() const;

    // The transfers between host and device so far.
    struct Traffic {
        uint64_t submissions = 0;         // submissions with dispatches
        uint64_t uploads = 0, reads = 0;  // transfers of tensors; weights that stay are uploaded once
    };
    const Traffic& traffic() const { return traffic_; }

  private:
    friend class DeviceText;
    DeviceRunner(Engine&& engine, FoveaKernel kernel) : own_(std::move(engine)), engine_(*own_) {
        kernel_ = kernel;
    }
    struct Held {
        std::weak_ptr<const void> owner;
        DeviceBuffer buffer;
    };
    // Inputs stay only as long as no call needs their room.
    template <class Run>
    auto with_room(const Run& run) {
        auto result = run();
        if (result || result.error().code != FOVEA_OUT_OF_DEVICE_MEMORY || held_.empty()) return result;
        held_.clear();
        return run();
    }
    void forget_closed();
    bool holds(const StoredWeight& weight, uint64_t bytes) const;
    Result<DeviceBuffer*> held(std::span<const std::byte> from, const std::weak_ptr<const void>& owner,
                               uint64_t bytes);
    Result<DeviceBuffer*> room(uint32_t binding, uint64_t bytes);

    std::optional<Engine> own_;
    Engine& engine_;
    RunReport last_attention_;
    std::map<std::pair<const std::byte*, uint64_t>, Held> held_;  // by their bytes
    std::array<std::optional<DeviceBuffer>, FOVEA_BIND_COUNT> room_;
    Traffic traffic_;
};

}  // namespace fovea
