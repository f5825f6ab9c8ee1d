// Plans for a browser's GPU: the Vulkan planner with the properties of a WebGPU adapter, and its dispatches
// as words for the script that plays them (web/src/gpu.ts).
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <vector>

namespace fovea::web {

// GPUSupportedLimits of the device, as far as plans depend on them.
struct GpuLimits {
    uint32_t storage_buffers = 8;        // maxStorageBuffersPerShaderStage
    uint32_t workgroup_threads = 256;    // maxComputeInvocationsPerWorkgroup
    uint32_t workgroup_bytes = 16384;    // maxComputeWorkgroupStorageSize
    uint32_t workgroups = 65535;         // maxComputeWorkgroupsPerDimension
    uint64_t storage_range = 134217728;  // maxStorageBufferBindingSize
};

// No subgroups (WebGPU cannot require a size), no 16-bit storage, and never tiles for a software driver: a
// browser's own is rejected.
FoveaDeviceProperties gpu_properties(const GpuLimits& limits);

// Appends the dispatches of one slice to `words`, for each:
//   shader; flags that its kernel must know (FOVEA_SPEC_FLAGS); workgroups x, y, z; a count, then constants 0
//   ..; a count, then words of push constants; a count, then of each binding its slot, its source
//   (FoveaBinding), 1 if it is written, offset and size in bytes
// A slot that the kernel declares and no binding shows is one that the dispatch never touches. Rejects
// buffers beyond 4 GiB.
Result<void> append_gpu_slice(const Plan& plan, uint64_t slice, std::vector<uint32_t>& words);

}  // namespace fovea::web
