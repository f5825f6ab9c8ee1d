#include "gpu_plan.hpp"

#include "plan/plan.hpp"
#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace fovea::web {
namespace {

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
        case Shader::weighted_sum_shared:
            return word(offsetof(shader::WeightedSumPush, slice.flags)) &
                   ((1u << shader::kResultRowShift) - 1);
        case Shader::flash:
            return word(offsetof(shader::FlashPush, slice.flags));
        case Shader::flash_combine:
            return word(offsetof(shader::CombinePush, slice.flags));
        case Shader::map_tile:
            return word(offsetof(shader::MapPush, slice.flags));
        case Shader::backward_query:
        case Shader::backward_key:
        case Shader::backward_bias:
        case Shader::backward_row:
            return word(offsetof(shader::BackwardPush, slice.flags));
        default:
            return 0;
    }
}

// A page's kernels serve slices of one entry and of several, and blocks of any pixels
// (web/tools/kernels.mjs).
FoveaDispatch for_page(FoveaDispatch d) {
    if (Shader(d.shader) == Shader::flash) d.spec[FOVEA_SPEC_CALL] |= shader::kEntriesCall;
    if (Shader(d.shader) == Shader::map_tile) d.spec[FOVEA_SPEC_PIXELS] = shader::kMapPixels;
    return d;
}

Result<void> append(const FoveaDispatch& d, std::vector<uint32_t>& words) {
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
        words.insert(words.end(), {b.slot, b.source, b.written, uint32_t(b.offset), uint32_t(b.size)});
    }
    return {};
}

}  // namespace

FoveaDeviceProperties gpu_properties(const GpuLimits& limits) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_VULKAN;
    properties.device_class = FOVEA_CLASS_INTEGRATED;
    properties.features = FOVEA_FEATURE_DEVICE_ATOMICS;
    properties.max_workgroup_invocations = limits.workgroup_threads;
    properties.max_shared_bytes = limits.workgroup_bytes;
    properties.max_push_bytes = shader::kFloorPushBytes;
    for (uint32_t& count : properties.max_workgroup_count) count = limits.workgroups;
    properties.storage_offset_alignment = 256;
    properties.max_storage_range = std::min<uint64_t>(limits.storage_range, UINT32_MAX);
    properties.max_storage_buffers = limits.storage_buffers;
    properties.mask_map = FOVEA_MASK_MAP_NEVER;
    return properties;
}

Result<void> append_gpu_slice(const Plan& plan, uint64_t slice, std::vector<uint32_t>& words) {
    uint32_t count = plan.info().dispatches_per_slice;
    std::vector<FoveaDispatch> dispatches(count);
    Diag diag;
    if (foveaGetDispatches(plan.get(), slice, dispatches.data(), &count, &diag) != FOVEA_OK)
        return diag.error();
    for (uint32_t i = 0; i < count; ++i)
        if (Result<void> done = append(for_page(dispatches[i]), words); !done) return done;
    return {};
}

}  // namespace fovea::web
