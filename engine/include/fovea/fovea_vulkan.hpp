// SPDX-License-Identifier: Apache-2.0
//
// C++20 face of <fovea/fovea_vulkan.h>: header only, no exceptions, a move-only context.
//
//   fovea::Result<fovea::Context> context = fovea::Context::create(vulkan);
//   fovea::Result<fovea::Plan> plan = context->plan(fovea::Attention().batch(1).heads(8).lengths(64,
//   64).dims(64));
//   ... foveaCmdRun(plan->get(), &record, &diag) in each frame
#pragma once

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

#include <utility>
#include <vector>

namespace fovea {

// Returns the features to enable when the device is created, see foveaQueryRecommendedFeatures.
inline Result<FoveaRecommendedFeatures> recommended_features(PFN_vkGetInstanceProcAddr get,
                                                             VkInstance instance, uint32_t api_version,
                                                             VkPhysicalDevice physical_device) {
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    Diag diag;
    if (foveaQueryRecommendedFeatures(get, instance, api_version, physical_device, nullptr, &recommended,
                                      &diag) != FOVEA_OK)
        return diag.error();
    return recommended;
}

// Owns a FoveaContext: the pipelines made for one VkDevice. It outlives the plans compiled for it, and goes
// before the device. Immutable: its functions may run on any number of threads.
class Context {
  public:
    Context() = default;
    explicit Context(FoveaContext handle) : handle_(handle) {}
    Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Context& operator=(Context&& other) noexcept {
        if (this != &other) {
            foveaDestroyContext(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~Context() { foveaDestroyContext(handle_); }

    static Result<Context> create(const FoveaVulkanDevice& vulkan) {
        FoveaContext handle = nullptr;
        Diag diag;
        if (foveaCreateContext(&vulkan, &handle, &diag) != FOVEA_OK) return diag.error();
        return Context(handle);
    }

    FoveaContext get() const { return handle_; }
    explicit operator bool() const { return handle_ != nullptr; }

    // The device as its host enabled it.
    Result<FoveaDeviceProperties> properties() const {
        FoveaDeviceProperties out = foveaDeviceProperties();
        Diag diag;
        if (foveaContextProperties(handle_, &out, &diag) != FOVEA_OK) return diag.error();
        return out;
    }
    // Builds the pipelines of a plan made from these properties. May take long: ahead of the first frame.
    Result<void> compile(const Plan& plan) const {
        Diag diag;
        if (foveaCompilePlan(handle_, plan.get(), &diag) != FOVEA_OK) return diag.error();
        return {};
    }
    // A plan of attention for this device, compiled.
    Result<Plan> plan(const FoveaAttentionDesc& desc) const {
        const Result<FoveaDeviceProperties> here = properties();
        if (!here) return here.error();
        Result<Plan> made = plan_attention(*here, desc);
        if (!made) return made;
        if (Result<void> compiled = compile(*made); !compiled) return compiled.error();
        return made;
    }
    // Bytes for FoveaVulkanDevice::pipeline_cache_data of a later run.
    Result<std::vector<unsigned char>> pipeline_cache_data() const {
        Diag diag;
        // Another thread may compile between the two calls: ask again while the cache grows.
        for (;;) {
            size_t size = 0;
            if (foveaGetPipelineCacheData(handle_, nullptr, &size, &diag) != FOVEA_OK) return diag.error();
            std::vector<unsigned char> bytes(size);
            const FoveaResult code = foveaGetPipelineCacheData(handle_, bytes.data(), &size, &diag);
            if (code == FOVEA_LIMIT_EXCEEDED) continue;
            if (code != FOVEA_OK) return diag.error();
            bytes.resize(size);
            return bytes;
        }
    }

  private:
    FoveaContext handle_ = nullptr;
};

}  // namespace fovea
