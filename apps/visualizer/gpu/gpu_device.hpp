// The program's own Vulkan instance and device, as any renderer has them, and Fovea's context on it. The
// visualizer is a guest of the public API: nothing here is known to the engine but what FoveaVulkanDevice
// carries.
#pragma once

#include "gpu/kernel_warmer.hpp"

#include <fovea/fovea_vulkan.h>
#include <vk_mem_alloc.h>
#include <volk.h>
#include <fovea/fovea.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace fovea::visualizer {

struct GpuWishes {
    std::vector<const char*> instance_extensions;  // extensions of the window system; empty without a window
    bool present = false;                          // a swapchain is wanted
    int vulkan_device = -1;                        // the n-th Vulkan device; -1: the best one
    bool validation = false;                       // messages go to GpuDevice::take_messages
    uint64_t memory_limit_bytes = 0;               // limit of each heap; 0: the driver's own
};

// The best device has the highest rank: hardware before software, and of software drivers SwiftShader last,
// which takes four times as long for a frame as llvmpipe.
int device_rank(const VkPhysicalDeviceProperties& properties);

// The memory of all heaps together, as the driver tells it.
struct DeviceMemory {
    uint64_t used_bytes = 0, budget_bytes = 0;
};

// Messages of the validation layer, from any thread.
struct LayerMessages {
    std::mutex mutex;
    std::vector<std::string> texts;  // guarded by mutex
};

class GpuDevice {
  public:
    // Fails with the reason: no loader, no driver, no graphics queue, less than Fovea's minimum requirements.
    static Result<std::unique_ptr<GpuDevice>> open(const GpuWishes& wishes);
    // No device at all: buffers are plain memory, command buffers null, and the CPU paints pictures. `why` is
    // shown to the reader.
    static std::unique_ptr<GpuDevice> without_vulkan(std::string why);
    ~GpuDevice();
    bool has_vulkan() const { return device_ != VK_NULL_HANDLE; }
    const std::string& why_not() const { return why_not_; }
    GpuDevice(const GpuDevice&) = delete;
    GpuDevice& operator=(const GpuDevice&) = delete;

    VkInstance instance() const { return instance_; }
    VkPhysicalDevice physical() const { return physical_; }
    VkDevice device() const { return device_; }
    VkQueue queue() const { return queue_; }
    uint32_t queue_family() const { return family_; }
    VmaAllocator allocator() const { return allocator_; }
    FoveaContext context() const { return context_; }
    const FoveaDeviceProperties& properties() const { return properties_; }
    const std::string& name() const { return name_; }
    // The driver compiles a kernel not with its pipeline but when it is dispatched for the first time.
    bool compiles_at_dispatch() const { return compiles_at_dispatch_; }
    // Null without Vulkan.
    KernelWarmer* warmer() const { return warmer_.get(); }
    // Another device like this one; the caller destroys it.
    VkResult create_like(VkDevice& out) const;
    DeviceMemory memory() const;
    float timestamp_period_ns() const { return vulkan_properties_.limits.timestampPeriod; }
    bool has_timestamps() const { return timestamp_bits_ > 0; }
    // The longest wait for the device. A software driver compiles within a submission, for minutes on a busy
    // machine, and does not hang.
    uint64_t wait_nanoseconds() const {
        return properties_.device_class == FOVEA_CLASS_CPU ? 600'000'000'000 : 30'000'000'000;
    }

    // Records with `record(cmd)`, submits and waits. For set-up and read-back, never in a frame.
    template <class Record>
    Result<void> run_once(Record record) {
        if (!has_vulkan()) {
            record(VkCommandBuffer(VK_NULL_HANDLE));
            return {};
        }
        Result<VkCommandBuffer> cmd = begin_once();
        if (!cmd) return cmd.error();
        record(*cmd);
        return end_once(*cmd);
    }

    std::vector<std::string> take_messages();

  private:
    GpuDevice() = default;
    Result<void> create_instance(const GpuWishes& wishes);
    Result<void> choose_physical(const GpuWishes& wishes);
    void ask_driver();
    Result<void> create_device(const GpuWishes& wishes);
    Result<void> create_context();
    Result<VkCommandBuffer> begin_once();
    Result<void> end_once(VkCommandBuffer cmd);

    VkInstance instance_ = VK_NULL_HANDLE;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    std::unique_ptr<LayerMessages> messages_ = std::make_unique<LayerMessages>();
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties vulkan_properties_{};
    uint32_t family_ = 0, timestamp_bits_ = 0;
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    VmaAllocator allocator_ = VK_NULL_HANDLE;
    FoveaContext context_ = nullptr;
    FoveaDeviceProperties properties_{};
    // By pointer, because it contains feature structs whose addresses must not change.
    std::unique_ptr<FoveaEnabledFeatures> enabled_ =
        std::make_unique<FoveaEnabledFeatures>(foveaEnabledFeatures());
    std::string name_, why_not_;
    bool compiles_at_dispatch_ = false;
    std::vector<VkDeviceSize> heap_limits_;
    std::unique_ptr<KernelWarmer> warmer_;
};

// "vkCreateDevice failed (VkResult -3)".
Error vulkan_error(const char* call, VkResult result);

// Storage that the engine writes and the matrix shader reads.
class GpuBuffer {
  public:
    GpuBuffer() = default;
    GpuBuffer(GpuBuffer&& other) noexcept;
    GpuBuffer& operator=(GpuBuffer&& other) noexcept;
    ~GpuBuffer();
    // Makes a host-visible buffer, so that inputs are written and values are picked in place; device-local if
    // the memory is both. `what` names it in an error about memory.
    static Result<GpuBuffer> create(const GpuDevice& device, uint64_t size_bytes,
                                    const char* what = "buffer");

    VkBuffer handle() const { return buffer_; }
    uint64_t size_bytes() const { return size_bytes_; }
    std::byte* data() const { return data_; }
    // Makes the device's writes visible to data(), and the host's to the device.
    void invalidate() const;
    void flush() const;

  private:
    VmaAllocator allocator_ = VK_NULL_HANDLE;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VmaAllocation allocation_ = VK_NULL_HANDLE;
    uint64_t size_bytes_ = 0;
    std::byte* data_ = nullptr;
    std::unique_ptr<std::byte[]> host_;  // without Vulkan
};

}  // namespace fovea::visualizer
