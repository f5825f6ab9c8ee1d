// One attention call on the program's device, recorded slice by slice into the frames' command buffers; or on
// the CPU if there is no device. The matrix view draws from its tensors, which are device buffers.
#pragma once

#include "document/projected.hpp"
#include "gpu/gpu_device.hpp"

#include <array>
#include <functional>
#include <memory>

namespace fovea::visualizer {

struct DispatchTime {
    const char* name = "";  // name of its shader
    uint64_t slice = 0;     // slice of the run
    uint32_t groups[3] = {};
    bool waits = false;             // for those before it in its slice, by a barrier
    double begin_s = 0, end_s = 0;  // from the first one's begin; it begins where the one before it has ended
};
struct RunTimes {
    double busy_s = 0;                     // 0: not known
    std::vector<DispatchTime> dispatches;  // dispatches of the first slices, if the device has timestamps
};

// The place of the computation: `first_processor` is the CPU while the device's kernels are compiled, if the
// problem is small enough to be ready at once.
enum class ComputeOn { device, processor, first_processor };

class AttentionRun {
  public:
    // Uploads q, k, v and what the settings need, plans, allocates outputs and workspace. `wake` is called
    // from another thread when moves_on() has become true.
    static Result<std::unique_ptr<AttentionRun>> create(GpuDevice& device, const PreparedAttention& prepared,
                                                        Precision precision, ComputeOn place,
                                                        const std::function<void()>& wake = {});
    ~AttentionRun();
    AttentionRun(const AttentionRun&) = delete;
    AttentionRun& operator=(const AttentionRun&) = delete;

    // Records as many slices as fit `flops` (one at least). True while there was something to record. On the
    // CPU it runs them now. Leaves the results visible to fragment shaders and the host.
    Result<bool> advance(VkCommandBuffer cmd, double flops);
    // True if the CPU replaces the device.
    bool stands_in() const { return bool(device_plan_); }
    // The device's kernels are ready: the same run made anew is computed there.
    bool moves_on() const { return device_plan_ && device_.warmer()->ready(device_plan_); }
    bool finished() const { return next_slice_ >= slice_count(); }
    double total_flops() const;
    double progress() const { return slice_count() ? double(next_slice_) / double(slice_count()) : 1; }

    const FoveaAttentionDesc& desc() const { return desc_; }
    bool on_cpu() const { return on_cpu_; }
    // The kernel that gives every stage, and the one that gives only the context if the precision asks for
    // float16 inputs; else null.
    const FoveaPlanInfo& info() const { return calls_[0].info; }
    const FoveaPlanInfo* products_info() const { return calls_.size() > 1 ? &calls_[1].info : nullptr; }
    const GpuBuffer& buffer(FoveaBinding binding) const { return buffers_[binding]; }
    // Returns the bindings for derive_cell: the inputs in host memory.
    std::vector<FoveaHostBuffer> host_bindings() const;
    // The values of an output, for digits and picking; valid when finished() and the last submission has
    // ended.
    std::span<const float> values(FoveaBinding binding) const;
    // Replaces the values of an output, on the CPU.
    void replace(FoveaBinding binding, std::span<const float> values);
    // The device's times, or this thread's on the CPU. Valid like values().
    const RunTimes& times() const;
    // Operations of the whole matrix, masked cells too; and the bytes of inputs and outputs, each once.
    double useful_flops() const;
    uint64_t bytes_moved() const { return input_bytes() + output_bytes(); }
    uint64_t input_bytes() const;
    uint64_t output_bytes() const;
    uint64_t workspace_bytes() const { return workspace_.size_bytes() + cpu_workspace_.size_bytes(); }
    std::string explain() const { return calls_[0].plan.explain(); }

  private:
    struct Call {
        Plan plan;
        FoveaPlanInfo info{};
    };
    explicit AttentionRun(GpuDevice& device) : device_(device) {}
    Result<void> upload(const PreparedAttention& prepared);
    void stand_in(const std::function<void()>& wake);
    Result<void> make_plans(bool products_of_halves);
    Result<void> add_call(const FoveaDeviceProperties& properties, const FoveaAttentionDesc& desc);
    Result<void> allocate();
    Result<void> create_device_parts();
    Result<void> run_on_cpu();
    Result<void> time_slices(const Call& call, FoveaRecord& record);
    uint64_t slice_count() const;
    uint64_t output_mask() const;

    GpuDevice& device_;
    bool on_cpu_ = false;
    FoveaAttentionDesc desc_ = foveaAttentionDesc();
    std::vector<Call> calls_;  // one after the other
    Plan device_plan_;         // the device's plan, while the CPU replaces it
    std::array<GpuBuffer, FOVEA_BIND_COUNT> buffers_;
    GpuBuffer workspace_;
    Workspace cpu_workspace_;
    VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;  // only where push descriptors are missing
    VkQueryPool queries_ = VK_NULL_HANDLE;
    mutable RunTimes times_;
    std::vector<uint32_t> first_queries_;  // for each timed dispatch: the query before it
    uint32_t next_query_ = 0;
    uint64_t next_slice_ = 0;  // across all calls
};

}  // namespace fovea::visualizer
