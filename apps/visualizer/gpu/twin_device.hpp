// A second device on the program's physical device, for drivers that compile a kernel when it is first
// dispatched. The first device finds the compiled kernel in the driver's shader cache, and no frame waits,
// because this device's queue has no frames.
#pragma once

#include "gpu/kernel_warmer.hpp"

#include <volk.h>

#include <memory>

namespace fovea::visualizer {

class GpuDevice;

class TwinDevice {
  public:
    // Returns null if the driver does not open it.
    static std::unique_ptr<TwinDevice> open(const GpuDevice& device);
    ~TwinDevice();
    TwinDevice(const TwinDevice&) = delete;
    TwinDevice& operator=(const TwinDevice&) = delete;

    // Dispatches the kernel over no workgroups and waits for it: it is compiled and touches nothing. A
    // failure does no harm.
    void dispatch_nothing(const Kernel& kernel);

  private:
    TwinDevice() = default;
    struct Pipeline {
        VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
        VkPipelineLayout layout = VK_NULL_HANDLE;
        VkPipeline handle = VK_NULL_HANDLE;
    };
    bool create_objects(const GpuDevice& device);
    bool create_layouts(const Kernel& kernel, Pipeline& out);
    bool create_pipeline(const Kernel& kernel, Pipeline& out);
    void submit(const Kernel& kernel, const Pipeline& pipeline);

    VolkDeviceTable vk_{};
    bool chooses_subgroup_size_ = false;  // a device with one may not allow to require it
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    VkCommandPool commands_ = VK_NULL_HANDLE;
    VkBuffer buffer_ = VK_NULL_HANDLE;  // bound to every binding
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

}  // namespace fovea::visualizer
