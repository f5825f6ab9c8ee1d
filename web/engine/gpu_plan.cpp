#include "gpu_plan.hpp"

#include "plan/vulkan/dispatch.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace fovea::web {
namespace {

constexpr uint32_t kMostDispatches = 8;  // of a slice

// The flags by which a kernel asks what a dispatch needs, see has_flag in shaders/visibility.glsl.
uint32_t flags_of(const FoveaDispatch& d) {
    const auto word = [&](size_t offset) { return d.push[offset / 4]; };
    switch (Shader(d.shader)) {
        case Shader::scores_direct:
        case Shader::scores_shared:
            return word(offsetof(shader::ScoresPush, slice.flags)) & ((1u << shader::kResultRowShift) - 1);
        case Shader::softmax:
            return word(offsetof(shader::SoftmaxPush, slice.flags)) & ((1u << shader::kResultRowShift) - 1);
        case Shader::weighted_sum_direct:
        case Shader::weighted_sum_direct_f16_words:
        case Shader::weighted_sum_shared:
        case Shader::weighted_sum_shared_f16_words:
            return word(offsetof(shader::WeightedSumPush, slice.flags)) &
                   ((1u << shader::kResultRowShift) - 1);
        case Shader::flash:
        case Shader::flash_f16_words:
            return word(offsetof(shader::FlashPush, slice.flags));
        case Shader::flash_combine:
        case Shader::flash_combine_f16_words:
            return word(offsetof(shader::CombinePush, slice.flags));
        case Shader::map_tile:
            return word(offsetof(shader::MapPush, slice.flags));
        default:
            return 0;
    }
}

// Slots that the planner fills with the buffer of another one, because Vulkan wants every slot bound.
bool stands_in(const FoveaDispatch& d, const FoveaDispatchBinding& b) {
    if (!b.written) return false;
    const Shader kernel = Shader(d.shader);
    const bool flash = kernel == Shader::flash || kernel == Shader::flash_f16_words ||
                       kernel == Shader::flash_combine || kernel == Shader::flash_combine_f16_words;
    if (!flash) return false;
    switch (b.slot) {
        case FOVEA_SLOT_O:
            return b.source != FOVEA_BIND_O;
        case FOVEA_SLOT_LSE:
            return b.source != FOVEA_BIND_LSE;
        case FOVEA_SLOT_PARTIAL:
            return b.source != FOVEA_BIND_WORKSPACE;
    }
    return false;
}

bool is_unused(const FoveaDispatch& d, const FoveaDispatchBinding& b) {
    return (b.source == FOVEA_BIND_WORKSPACE && b.offset < kWorkspaceHeadBytes) || stands_in(d, b);
}

Result<void> append(const FoveaDispatch& d, const GpuLimits& limits, std::vector<uint32_t>& words) {
    const auto used = std::count_if(d.bindings, d.bindings + d.binding_count,
                                    [&](const FoveaDispatchBinding& b) { return !is_unused(d, b); });
    if (used > ptrdiff_t(limits.storage_buffers))
        return Error{FOVEA_LIMIT_EXCEEDED, "maxStorageBuffersPerShaderStage",
                     std::string("shader ") + foveaShaderName(d.shader) + " needs " + std::to_string(used) +
                         " storage buffers for this call; maxStorageBuffersPerShaderStage is " +
                         std::to_string(limits.storage_buffers)};
    words.push_back(d.shader);
    words.push_back(flags_of(d));
    words.insert(words.end(), d.groups, d.groups + 3);
    words.push_back(d.spec_count);
    words.insert(words.end(), d.spec, d.spec + d.spec_count);
    words.push_back(d.push_words);
    words.insert(words.end(), d.push, d.push + d.push_words);
    words.push_back(d.binding_count);
    for (uint32_t i = 0; i < d.binding_count; ++i) {
        const FoveaDispatchBinding& b = d.bindings[i];
        if ((b.offset + b.size) >> 32)
            return Error{FOVEA_LIMIT_EXCEEDED, "bindings", "a buffer of this call has more than 4 GiB"};
        const uint32_t bits = (b.written ? kGpuWritten : 0) | (is_unused(d, b) ? kGpuUnused : 0);
        words.insert(words.end(), {b.slot, b.source, bits, uint32_t(b.offset), uint32_t(b.size)});
    }
    return {};
}

}  // namespace

FoveaDeviceFacts gpu_facts(const GpuLimits& limits) {
    FoveaDeviceFacts facts{};
    facts.struct_size = sizeof facts;
    facts.backend = FOVEA_BACKEND_VULKAN;
    facts.device_class = FOVEA_CLASS_INTEGRATED;
    facts.features = FOVEA_FEATURE_DEVICE_ATOMICS;
    facts.max_workgroup_invocations = limits.workgroup_threads;
    facts.max_shared_bytes = limits.workgroup_bytes;
    facts.max_push_bytes = shader::kFloorPushBytes;
    for (uint32_t& count : facts.max_workgroup_count) count = limits.workgroups;
    facts.storage_offset_alignment = 256;
    facts.max_storage_range = std::min<uint64_t>(limits.storage_range, UINT32_MAX);
    facts.mask_map = FOVEA_MASK_MAP_NEVER;
    return facts;
}

Result<void> append_gpu_slice(const Plan& plan, uint64_t slice, const GpuLimits& limits,
                              std::vector<uint32_t>& words) {
    FoveaDispatch dispatches[kMostDispatches];
    uint32_t count = kMostDispatches;
    Diag diag;
    if (foveaGetDispatches(plan.get(), slice, dispatches, &count, &diag) != FOVEA_OK) return diag.error();
    for (uint32_t i = 0; i < count; ++i)
        if (Result<void> done = append(dispatches[i], limits, words); !done) return done;
    return {};
}

}  // namespace fovea::web
