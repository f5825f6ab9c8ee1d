#include "plan/vulkan/limits.hpp"

#include "plan/plan.hpp"
#include "plan/vulkan/checked.hpp"
#include "plan/vulkan/device_traits.hpp"
#include "plan/vulkan/dispatch.hpp"
#include "plan/vulkan/gather.hpp"
#include "plan/vulkan/kernels.hpp"
#include "problem/abi_struct.hpp"
#include "problem/bindings.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fovea {
namespace {

bool is_flash_tile(const FoveaFlashTile& t) {
    if (t.rows == 0 && t.threads == 0 && t.column_quads == 0) return true;
    const bool threads = t.threads == 8 || t.threads == 16 || t.threads == shader::kFlashMaxThreads;
    return t.rows >= 1 && t.rows <= shader::kFlashMaxRows && threads && t.column_quads >= 1 &&
           t.column_quads <= shader::kFlashMaxColumnQuads;
}

FoveaResult check_flash_tiles(const FoveaDeviceProperties& properties, FoveaDiag* diag) {
    for (int i = 0; i < FOVEA_TILE_CLASS_COUNT; ++i) {
        const FoveaFlashTile& t = properties.flash_tiles[i];
        if (is_flash_tile(t)) continue;
        char field[32];
        snprintf(field, sizeof field, "properties.flash_tiles[%d]", i);
        return fail(diag, FOVEA_INVALID_ARGUMENT, field,
                    "%s is %u rows, %u threads, %u column quads; rows must be 1 to 8, threads 8, 16 or 32, "
                    "column quads 1 or "
                    "2, or all three 0",
                    field, t.rows, t.threads, t.column_quads);
    }
    return FOVEA_OK;
}

FoveaResult check_mask_map(const FoveaDeviceProperties& properties, FoveaDiag* diag) {
    const int asked = enum_number(properties.mask_map);
    if (asked >= FOVEA_MASK_MAP_AUTO && asked <= FOVEA_MASK_MAP_ALWAYS) return FOVEA_OK;
    return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.mask_map",
                "properties.mask_map is %d; it must be a FoveaMaskMap", asked);
}

FoveaResult check_subgroups(const FoveaDeviceProperties& f, FoveaDiag* diag) {
    const std::pair<const char*, uint32_t> sizes[] = {{"properties.subgroup_size", f.subgroup_size},
                                                      {"properties.min_subgroup_size", f.min_subgroup_size},
                                                      {"properties.max_subgroup_size", f.max_subgroup_size}};
    for (const auto& [field, size] : sizes)
        if (size > kMaxSubgroup || (size & (size - 1)) != 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, field,
                        "%s is %u; it must be 0 (unknown) or a power of two up to %u", field, size,
                        kMaxSubgroup);
    return FOVEA_OK;
}

// Every dispatch of a made plan.
FoveaResult check_storage_buffers(const FoveaPlan_T& plan, FoveaDiag* diag) {
    const uint32_t most = storage_buffer_limit(plan.properties);
    if (plan.info.slice_count == 0) return FOVEA_OK;
    FoveaDispatch dispatches[kMaxDispatchesPerSlice];
    // The first slice, of gradients the first of each kind, has every shader of a plan, and the last those of
    // a shorter one.
    uint64_t slices[2 + kBackwardParts] = {0, plan.info.slice_count - 1};
    if (plan.operation == Operation::backward) first_slices_of_backward(plan, slices + 2);
    for (const uint64_t slice : slices) {
        if (slice >= plan.info.slice_count) continue;
        uint32_t count = kMaxDispatchesPerSlice;
        if (FoveaResult r = vulkan_slice(plan, slice, 0, dispatches, count, diag)) return r;
        for (uint32_t i = 0; i < count; ++i)
            if (dispatches[i].binding_count > most)
                return fail(diag, FOVEA_LIMIT_EXCEEDED, "properties.max_storage_buffers",
                            "properties.max_storage_buffers is %u (maxPerStageDescriptorStorageBuffers and "
                            "its like); "
                            "shader %s binds %u",
                            most, foveaShaderName(dispatches[i].shader), dispatches[i].binding_count);
    }
    return FOVEA_OK;
}

}  // namespace

FoveaResult check_vulkan_properties(const FoveaDeviceProperties& f, FoveaDiag* diag) {
    struct Limit {
        const char* field;
        uint64_t value, least;
    };
    const Limit limits[] = {
        {"properties.max_workgroup_invocations", f.max_workgroup_invocations, shader::kFloorInvocations},
        {"properties.max_shared_bytes", f.max_shared_bytes, shader::kFloorSharedBytes},
        {"properties.max_push_bytes", f.max_push_bytes, shader::kFloorPushBytes},
        {"properties.max_workgroup_count[0]", f.max_workgroup_count[0], 1},
        {"properties.max_workgroup_count[1]", f.max_workgroup_count[1], 1},
        {"properties.max_workgroup_count[2]", f.max_workgroup_count[2], 1},
        {"properties.max_storage_range", f.max_storage_range, kMinStorageRange},
    };
    for (const Limit& limit : limits)
        if (limit.value < limit.least)
            return fail(diag, FOVEA_UNSUPPORTED, limit.field, "%s is %llu; the kernels need %llu",
                        limit.field, static_cast<unsigned long long>(limit.value),
                        static_cast<unsigned long long>(limit.least));
    const uint32_t alignment = f.storage_offset_alignment;
    if (alignment == 0 || alignment > kWorkspaceAlignment || (alignment & (alignment - 1)) != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.storage_offset_alignment",
                    "properties.storage_offset_alignment is %u; it must be a power of two up to 256",
                    alignment);
    if (f.max_storage_range > UINT32_MAX)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.max_storage_range",
                    "properties.max_storage_range is %llu; Vulkan's limit of this name has 32 bits",
                    static_cast<unsigned long long>(f.max_storage_range));
    if (FoveaResult r = check_features(f, diag)) return r;
    if (FoveaResult r = check_subgroups(f, diag)) return r;
    if (FoveaResult r = check_flash_tiles(f, diag)) return r;
    return check_mask_map(f, diag);
}

FoveaResult plan_within_buffers(FoveaPlan_T& plan, FoveaResult (*make)(FoveaPlan_T& plan, FoveaDiag* diag),
                                FoveaDiag* diag) {
    const FoveaPlan_T before = plan;
    // The inputs that a software driver gathers to share pipelines may be too large for one range of the
    // workspace. Then they are bound, as on any other device.
    if ((plan.vulkan.gathered = always_gathered(plan.properties))) {
        if (make(plan, nullptr) == FOVEA_OK && check_storage_buffers(plan, nullptr) == FOVEA_OK)
            return check_driver(plan, diag);
        plan = before;
    }
    for (uint32_t gathered = 0;;) {
        plan.vulkan.gathered = gathered;
        if (FoveaResult r = make(plan, diag)) return r;
        if (FoveaResult r = check_driver(plan, diag)) return r;
        if (check_storage_buffers(plan, nullptr) == FOVEA_OK) return FOVEA_OK;
        const uint32_t next = next_to_gather(plan);
        if (!next) return check_storage_buffers(plan, diag);
        gathered |= next;
        plan = before;
    }
}

uint64_t window_alignment(const FoveaDeviceProperties& properties) {
    return std::max<uint64_t>(properties.storage_offset_alignment, 16);
}

FoveaResult VulkanLimits::window(uint32_t binding, uint64_t bytes) const {
    if (bytes <= properties_.max_storage_range) return FOVEA_OK;
    return fail(
        diag_, FOVEA_LIMIT_EXCEEDED, binding_name(binding),
        "the smallest slice needs %llu bytes of %s in one descriptor; properties.max_storage_range is %llu",
        static_cast<unsigned long long>(bytes), binding_name(binding),
        static_cast<unsigned long long>(properties_.max_storage_range));
}

FoveaResult VulkanLimits::groups(uint64_t x, uint64_t y, uint64_t z) const {
    const uint64_t counts[3] = {x, y, z};
    for (int i = 0; i < 3; ++i)
        if (counts[i] > properties_.max_workgroup_count[i])
            return fail(diag_, FOVEA_LIMIT_EXCEEDED, "properties.max_workgroup_count",
                        "the smallest slice needs %llu workgroups in dimension %d; the device's limit is %u",
                        static_cast<unsigned long long>(counts[i]), i, properties_.max_workgroup_count[i]);
    return FOVEA_OK;
}

FoveaResult VulkanLimits::workspace(uint64_t bytes, uint64_t limit) const {
    if (bytes <= limit) return FOVEA_OK;
    return fail(
        diag_, FOVEA_LIMIT_EXCEEDED, "workspace_limit",
        "workspace_limit is %llu; it must be at least %llu bytes, for the smallest slice (one query row)",
        static_cast<unsigned long long>(limit), static_cast<unsigned long long>(bytes));
}

FoveaResult VulkanLimits::cost(double flops, double limit) const {
    if (flops <= limit) return FOVEA_OK;
    return fail(diag_, FOVEA_LIMIT_EXCEEDED, "max_slice_cost",
                "max_slice_cost is %g FLOP; it must be at least %g, the cost of the smallest slice", limit,
                flops);
}

}  // namespace fovea
