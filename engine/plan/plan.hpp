// Defines FoveaPlan: a checked call, the device properties that it was planned for, and the decisions of each
// backend. It is pure data except for the last member, which foveaCompilePlan fills once.
#pragma once

#include "cpu/cpu_plan.hpp"
#include "plan/vulkan/plan.hpp"
#include "problem/bindings.hpp"
#include "problem/call.hpp"

#include <fovea/fovea.h>

namespace fovea {

// Pipelines of a plan on one context; the rest of it is engine/vulkan's. Allocated by the plan's allocator.
struct CompiledPlan {
    uint64_t size_bytes;  // bytes of the whole buffer
};

// The dispatches of a slice of a Vulkan plan are visited in parts of at most so many, which fit the stack.
constexpr uint32_t kMaxDispatchesPerSlice = 16;
// And has at most so many: gradients of what several entries or key/value heads share take some for each of
// them.
constexpr uint32_t kMaxDispatchesOfSlice = 512;

}  // namespace fovea

struct FoveaPlan_T : fovea::Call {
    FoveaHostAllocator allocator;  // all members set
    FoveaDeviceProperties properties;
    fovea::NarrowBindings narrow;
    FoveaPlanInfo info;  // struct_size, backend, binding_* are set before the backend's planner runs
    fovea::CpuPlan cpu;
    fovea::VulkanPlan vulkan;
    fovea::CompiledPlan* compiled;  // null until foveaCompilePlan
};

namespace fovea {

// Each backend's planner: chooses the kernel, fills its part of the plan and of info (kernel, reason,
// workspace, slices, costs), or fails with the reason. Pure.
FoveaResult plan_cpu(FoveaPlan_T& plan, FoveaDiag* diag);
FoveaResult plan_vulkan(FoveaPlan_T& plan, FoveaDiag* diag);

// Writes dispatches of one slice, starting with number `first`, which is 0 or the end of the previous part.
// `count` is the capacity of `out`, at least min(kMaxDispatchesPerSlice, info.dispatches_per_slice), and
// becomes the number written: 0 after the last.
FoveaResult vulkan_slice(const FoveaPlan_T& plan, uint64_t slice, uint64_t first, FoveaDispatch* out,
                         uint32_t& count, FoveaDiag* diag);

// The plan of the same call for a device whose check has found more (FoveaDeviceProperties::failed_shaders).
// As foveaPlanAttention.
FoveaResult plan_again(const FoveaPlan_T& plan, const uint64_t (&failed_shaders)[FOVEA_CHECK_CLASS_COUNT],
                       FoveaPlan* out, FoveaDiag* diag);

// Writes the text of foveaExplainPlan after the common lines. Appends to a fixed buffer that may run out.
class TextSink;
void explain_cpu(const FoveaPlan_T& plan, TextSink& text);
void explain_vulkan(const FoveaPlan_T& plan, TextSink& text);

}  // namespace fovea
