// A text whose layers run on a Vulkan device without leaving it: the values between layers, the KV caches and
// the weights are in device memory, and a call records the plans of as many layers as it can before it waits.
#pragma once

#include <fovea/model/device_runner.hpp>

#include <functional>

#include "model/text/layer_steps.hpp"

namespace fovea {

class DeviceText final : public LayerSteps {
  public:
    DeviceText(DeviceRunner& runner, uint64_t layers, uint64_t capacity)
        : LayerSteps(capacity), runner_(runner), engine_(runner.engine_), layers_(layers) {}

    Result<void> enter(const F32Tensor& x, uint64_t held) override;
    Result<F32Tensor> row(uint64_t index) override;

  private:
    // A matrix or a norm of a layer that the device holds in float32.
    struct Held {
        std::optional<DeviceBuffer> weight, bias;
    };
    struct Layer {
        std::optional<DeviceBuffer> keys, values;  // [kv_heads, capacity, width]
        std::map<ptrdiff_t, Held> held;            // by the place of the member in its block
    };
    struct Angles {
        Rope rope;
        uint64_t width;
        DeviceBuffer cos, sin;
    };
    using Buffers = std::array<DeviceBuffer*, FOVEA_BIND_COUNT>;
    using Key = std::vector<uint64_t>;

    Held& held_of(const void* member) {
        return at_->held[static_cast<const char*>(member) - reinterpret_cast<const char*>(block_)];
    }
    Result<DeviceBuffer> allocate(uint64_t bytes);
    Result<void> grow(std::unique_ptr<DeviceBuffer>& kept, uint64_t bytes);
    Result<DeviceBuffer> made(std::span<const float> numbers);
    Result<void> need(Role role, uint64_t numbers);
    Result<void> record(const Key& key, const std::function<Result<Plan>()>& make, const Buffers& buffers);
    Result<void> flush();

    void begin(uint64_t n) override { at_ = &layers_[n]; }
    Result<void> linear(std::span<const Product> products, Role x) override;
    Result<void> norm_rows(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                           std::optional<Role> sum) override;
    Result<void> pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart& a) override;
    void swap(Role a, Role b) override { std::swap(room_[a], room_[b]); }
    Result<void> product(const Linear& l, Role x, Role y);
    Result<DeviceBuffer*> weight_of(const Linear& l, FoveaDtype& type, bool& in_out);

    DeviceRunner& runner_;
    Engine& engine_;
    std::vector<Layer> layers_;
    Layer* at_ = nullptr;  // the layer whose steps are recorded
    // Buffers by pointer: their addresses must not change, because recorded work uses them.
    std::array<std::unique_ptr<DeviceBuffer>, role_count> room_;
    std::unique_ptr<DeviceBuffer> positions_;
    std::vector<Angles> angles_;
    std::map<Key, std::shared_ptr<const Plan>> plans_;
    std::vector<Engine::BoundPlan> pending_;
};

}  // namespace fovea
