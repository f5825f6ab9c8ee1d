// Records a plan's dispatches into an application's command buffer. All errors are detected before the first
// vkCmd*; after it nothing fails.
#include "problem/abi_struct.hpp"
#include "problem/bindings.hpp"
#include "vulkan/context.hpp"

#include <cstdio>

namespace fovea {
FOVEA_FIELDS(FoveaRecord, struct_size, binding_count, cmd, bindings, workspace, first_slice, slice_count,
             timestamps, first_query, dispatch_timestamps, descriptor_pool);
}  // namespace fovea

namespace fovea::vulkan {
namespace {

static_assert(kMaxDispatchesOfSlice <= FOVEA_MAX_DESCRIPTOR_SETS, "every slice can be recorded by itself");

struct SlicePart {
    uint32_t count = 0;
    FoveaDispatch items[kMaxDispatchesPerSlice];
};

// One call, after its checks.
struct Recording {
    const FoveaPlan_T& plan;
    const PlanPipelines& pipelines;
    FoveaContext_T& context;
    VkCommandBuffer cmd;
    FoveaBuffer buffers[FOVEA_BIND_COUNT];  // the workspace among them
    uint64_t first_slice, end_slice;
    VkQueryPool timestamps;
    uint32_t first_query;
    bool each_dispatch;     // has a timestamp, not only each slice
    VkDescriptorPool pool;  // null with push descriptors
    uint32_t set_count;
    VkDescriptorSet sets[FOVEA_MAX_DESCRIPTOR_SETS];
};

// Loads as many dispatches of a slice as fit, starting with number `first`; false after the last. It cannot
// fail, because compiling the plan visited every slice.
bool load_part(const Recording& r, uint64_t slice, uint32_t first, SlicePart& out) {
    out.count = kMaxDispatchesPerSlice;
    static_cast<void>(vulkan_slice(r.plan, slice, first, out.items, out.count, nullptr));
    return out.count > 0;
}

// ---- checks ----

FoveaResult check_buffers(const FoveaRecord& given, Recording& r, FoveaDiag* diag) {
    if (given.binding_count && !given.bindings)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "bindings", "bindings is null but binding_count is %u",
                    given.binding_count);
    if (FoveaResult code = check_binding_count(given.binding_count, diag)) return code;
    for (uint32_t i = 0; i < given.binding_count && i < FOVEA_BIND_COUNT; ++i)
        r.buffers[i] = given.bindings[i];
    for (uint32_t i = 0; i < given.binding_count; ++i)
        if (!is_named_binding(i) && given.bindings[i].buffer) return unknown_binding(i, diag);
    r.buffers[FOVEA_BIND_WORKSPACE] = given.workspace;
    BindingRange ranges[FOVEA_BIND_COUNT];
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        const FoveaBuffer& b = r.buffers[i];
        if (b.buffer && b.size == VK_WHOLE_SIZE) {
            char field[48];
            snprintf(field, sizeof field, i == FOVEA_BIND_WORKSPACE ? "%s.size" : "bindings[%s].size",
                     binding_name(i));
            return fail(diag, FOVEA_INVALID_ARGUMENT, field,
                        "%s is VK_WHOLE_SIZE; the size must be given in bytes", field);
        }
        ranges[i] = {b.buffer != VK_NULL_HANDLE, (uint64_t)b.buffer, b.offset, b.size};
    }
    const BindingRules rules{
        r.context.properties.storage_offset_alignment, works_in_place(r.plan), {}, false};
    return check_bindings(r.plan.info, rules, ranges, diag);
}

FoveaResult check_timestamps(const FoveaRecord& given, Recording& r, FoveaDiag* diag) {
    r.timestamps = given.timestamps;
    r.first_query = given.first_query;
    r.each_dispatch = given.dispatch_timestamps == 1;
    if (given.dispatch_timestamps > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "dispatch_timestamps",
                    "dispatch_timestamps is %u; it must be 0 or 1", given.dispatch_timestamps);
    if (!given.timestamps) return FOVEA_OK;
    if (!(r.context.properties.features & FOVEA_FEATURE_TIMESTAMPS))
        return fail(diag, FOVEA_UNSUPPORTED, "timestamps", "no compute queue of this device has timestamps");
    const uint64_t slices = r.end_slice - r.first_slice;
    const uint64_t each = r.each_dispatch ? uint64_t{r.plan.info.dispatches_per_slice} + 1 : 2;
    if (slices > (UINT32_MAX - uint64_t{given.first_query}) / each)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "first_query",
                    "%llu timestamps for each of %llu slices from query %u on do not fit 32 bits",
                    static_cast<unsigned long long>(each), static_cast<unsigned long long>(slices),
                    given.first_query);
    return FOVEA_OK;
}

// ---- descriptors ----

struct Writes {
    VkDescriptorBufferInfo buffers[FOVEA_MAX_DISPATCH_BINDINGS];
    VkWriteDescriptorSet items[FOVEA_MAX_DISPATCH_BINDINGS];
};

void fill_writes(const Recording& r, const FoveaDispatch& d, VkDescriptorSet set, Writes& out) {
    for (uint32_t i = 0; i < d.binding_count; ++i) {
        const FoveaDispatchBinding& b = d.bindings[i];
        const FoveaBuffer& buffer = r.buffers[b.source];
        out.buffers[i] = {buffer.buffer, buffer.offset + b.offset, b.size};
        out.items[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        out.items[i].dstSet = set;
        out.items[i].dstBinding = b.slot;
        out.items[i].descriptorCount = 1;
        out.items[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        out.items[i].pBufferInfo = &out.buffers[i];
    }
}

FoveaResult allocate_set(Recording& r, const Pipeline& pipeline, FoveaDiag* diag) {
    if (r.set_count == FOVEA_MAX_DESCRIPTOR_SETS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "slice_count",
                    "without push descriptors one call records at most %u dispatches; record fewer slices",
                    unsigned{FOVEA_MAX_DESCRIPTOR_SETS});
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = r.pool;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &pipeline.set_layout;
    const VkResult result =
        r.context.vk.vkAllocateDescriptorSets(r.context.device, &allocate, &r.sets[r.set_count]);
    if (result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "descriptor_pool.pool",
                    "the descriptor pool has no room for set %u of this call", r.set_count);
    if (result != VK_SUCCESS) return call_failed(r.context, result, "vkAllocateDescriptorSets", diag);
    ++r.set_count;
    return FOVEA_OK;
}

// The sets of all dispatches, in their order; they are filled when the dispatch is recorded. Taken from the
// application's pool only after all other checks.
FoveaResult allocate_sets(Recording& r, FoveaDiag* diag) {
    const PlanPipelines& p = r.pipelines;
    SlicePart part;
    for (uint64_t s = r.first_slice; s < r.end_slice; ++s) {
        for (uint32_t i = 0; p.slices_alike && i < p.dispatches_per_slice; ++i)
            if (FoveaResult code = allocate_set(r, p.pipelines[p.of_dispatch[i]], diag)) return code;
        for (uint32_t first = 0; !p.slices_alike && load_part(r, s, first, part); first += part.count)
            for (uint32_t i = 0; i < part.count; ++i)
                if (FoveaResult code = allocate_set(r, *p.find(part.items[i]), diag)) return code;
    }
    return FOVEA_OK;
}

// ---- commands ----

void cmd_barrier(const DeviceTable& vk, VkCommandBuffer cmd) {
    const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                  VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
    vk.vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void cmd_dispatch(const Recording& r, const FoveaDispatch& d, VkDescriptorSet set) {
    const DeviceTable& vk = r.context.vk;
    const Pipeline& pipeline = *r.pipelines.find(d);
    vk.vkCmdBindPipeline(r.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    Writes writes;
    fill_writes(r, d, set, writes);
    if (set) {
        vk.vkUpdateDescriptorSets(r.context.device, d.binding_count, writes.items, 0, nullptr);
        vk.vkCmdBindDescriptorSets(r.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0,
                                   nullptr);
    } else {
        vk.vkCmdPushDescriptorSet(r.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, d.binding_count,
                                  writes.items);
    }
    if (d.push_words)
        vk.vkCmdPushConstants(r.cmd, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_words * 4,
                              d.push);
    vk.vkCmdDispatch(r.cmd, d.groups[0], d.groups[1], d.groups[2]);
}

void begin_label(const Recording& r) {
    if (!r.context.vk.vkCmdBeginDebugUtilsLabelEXT) return;
    char text[64];
    snprintf(text, sizeof text, "fovea slices %llu..%llu", static_cast<unsigned long long>(r.first_slice),
             static_cast<unsigned long long>(r.end_slice));
    VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT};
    label.pLabelName = text;
    r.context.vk.vkCmdBeginDebugUtilsLabelEXT(r.cmd, &label);
}

void end_label(const Recording& r) {
    if (r.context.vk.vkCmdBeginDebugUtilsLabelEXT) r.context.vk.vkCmdEndDebugUtilsLabelEXT(r.cmd);
}

void cmd_timestamp(const Recording& r, VkPipelineStageFlagBits stage, uint32_t& query) {
    if (r.timestamps) r.context.vk.vkCmdWriteTimestamp(r.cmd, stage, r.timestamps, query++);
}

void cmd_slices(const Recording& r) {
    SlicePart part;
    uint32_t set = 0, query = r.first_query;
    begin_label(r);
    for (uint64_t s = r.first_slice; s < r.end_slice; ++s) {
        if (s > r.first_slice && r.plan.info.slices_share_workspace) cmd_barrier(r.context.vk, r.cmd);
        cmd_timestamp(r, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, query);
        for (uint32_t first = 0; load_part(r, s, first, part); first += part.count)
            for (uint32_t i = 0; i < part.count; ++i) {
                if (first + i > 0 && part.items[i].barrier_before) cmd_barrier(r.context.vk, r.cmd);
                cmd_dispatch(r, part.items[i], r.pool ? r.sets[set++] : VK_NULL_HANDLE);
                if (r.each_dispatch) cmd_timestamp(r, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, query);
            }
        if (!r.each_dispatch) cmd_timestamp(r, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, query);
    }
    end_label(r);
}

FoveaResult check_plan(FoveaPlan plan, FoveaDiag* diag) {
    if (!plan) return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "plan is null");
    if (plan->properties.backend != FOVEA_BACKEND_VULKAN)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "the plan is for the CPU; run it with foveaRunCpu");
    if (!plan->compiled)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "plan",
                    "the plan is not compiled; call foveaCompilePlan first");
    return check_alive(*pipelines_of(*plan)->context, diag);
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaCmdRun(FoveaPlan plan, const FoveaRecord* record, FoveaDiag* diag) {
    FoveaRecord given;
    FoveaResult code;
    if ((code = check_plan(plan, diag))) return code;
    if ((code = read_struct(record, given, "record", diag))) return code;
    if (!given.cmd) return fail(diag, FOVEA_INVALID_ARGUMENT, "cmd", "cmd is null");
    const PlanPipelines& pipelines = *pipelines_of(*plan);
    Recording r{*plan, pipelines, *pipelines.context, given.cmd};
    r.first_slice = given.first_slice;
    if ((code =
             check_slices(given.first_slice, given.slice_count, plan->info.slice_count, r.end_slice, diag)))
        return code;
    if (r.first_slice == r.end_slice) return FOVEA_OK;
    if ((code = check_buffers(given, r, diag))) return code;
    if ((code = check_timestamps(given, r, diag))) return code;
    if (!r.context.enabled.push_descriptors) {
        r.pool = given.descriptor_pool.pool;
        if (!r.pool)
            return fail(
                diag, FOVEA_INVALID_ARGUMENT, "descriptor_pool.pool",
                "descriptor_pool.pool is null; give a pool, or enable VK_KHR_push_descriptor on the device");
    }
    if (r.pool)
        if ((code = allocate_sets(r, diag))) return code;
    cmd_slices(r);
    return FOVEA_OK;
}

void foveaCmdSliceBarrier(FoveaPlan plan, VkCommandBuffer cmd) {
    if (!cmd || check_plan(plan, nullptr) != FOVEA_OK) return;
    cmd_barrier(pipelines_of(*plan)->context->vk, cmd);
}
