/* Attention over many frames: a plan in slices, of which each frame records as many as its budget allows by
 * the times measured so far. Two frames in flight. The result is compared with the same call on the CPU. 8
 * query heads on 2 key heads, 200 queries and keys of 64 columns, causal. */
#include "host.h"

#include <math.h>
#include <string.h>

enum { kHeads = 8, kHeadsKv = 2, kRows = 200, kDim = 64, kFrames = 2 };
static const double kBudgetSeconds = 0.016;

typedef struct Frame {
    VkCommandBuffer cmd;
    VkFence done;
    VkQueryPool times;
    VkDescriptorPool pool; /* null with push descriptors */
    uint64_t slices;       /* recorded in its last frame */
} Frame;

static FoveaAttentionDesc call_of_this_program(void) {
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 1;
    call.heads_q = kHeads;
    call.heads_kv = kHeadsKv;
    call.len_q = call.len_kv = kRows;
    call.dim_qk = call.dim_v = kDim;
    call.flags = FOVEA_FLAG_CAUSAL;
    call.max_slice_cost = 2e6; /* FLOP of a slice: small, as frames record one before any is measured */
    return call;
}

static float* reference(const HostMemory* tensors, const uint64_t* bytes) {
    FoveaDiag diag = foveaDiag();
    FoveaDeviceProperties properties = foveaDeviceProperties();
    FoveaAttentionDesc call = call_of_this_program();
    FoveaPlan plan;
    FoveaPlanInfo info = foveaPlanInfo();
    require(foveaCpuProperties(1, &properties, &diag) == FOVEA_OK, diag.text);
    require(foveaPlanAttention(&properties, &call, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    foveaGetPlanInfo(plan, &info, &diag);
    float* o = malloc(bytes[FOVEA_BIND_O]);
    char* memory = malloc(info.workspace_bytes + info.workspace_alignment);
    require(o && memory, "no memory");
    FoveaHostBuffer bindings[FOVEA_BIND_O + 1];
    for (uint32_t i = 0; i < FOVEA_BIND_O; ++i) bindings[i] = (FoveaHostBuffer){tensors[i].mapped, bytes[i]};
    bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, bytes[FOVEA_BIND_O]};
    FoveaCpuRun run = foveaCpuRun();
    run.bindings = bindings;
    run.binding_count = FOVEA_BIND_O + 1;
    run.workspace.data = memory + (info.workspace_alignment - (uintptr_t)memory % info.workspace_alignment);
    run.workspace.size_bytes = info.workspace_bytes;
    require(foveaRunCpu(plan, &run, &diag) == FOVEA_OK, diag.text);
    foveaDestroyPlan(plan);
    free(memory);
    return o;
}

/* Seconds of the slowest slice that this frame recorded; 0 where the device has no timestamps. */
static double slowest_slice(const Host* h, const Frame* f, double seconds_per_tick) {
    double slowest = 0;
    for (uint32_t s = 0; f->times && s < f->slices; ++s) {
        uint64_t ticks[2];
        if (vkGetQueryPoolResults(h->device, f->times, 2 * s, 2, sizeof ticks, ticks, 8, VK_QUERY_RESULT_64_BIT)) break;
        slowest = fmax(slowest, (double)(ticks[1] - ticks[0]) * seconds_per_tick);
    }
    return slowest;
}

int main(void) {
    static Host h;
    open_host(&h);
    FoveaContext context = adopt_host(&h);
    FoveaDiag diag = foveaDiag();
    FoveaDeviceProperties properties = foveaDeviceProperties();
    foveaContextProperties(context, &properties, &diag);
    const FoveaAttentionDesc call = call_of_this_program();
    FoveaPlan plan;
    require(foveaPlanAttention(&properties, &call, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    require(foveaCompilePlan(context, plan, &diag) == FOVEA_OK, diag.text);
    FoveaPlanInfo info = foveaPlanInfo();
    foveaGetPlanInfo(plan, &info, &diag);

    HostMemory tensors[FOVEA_BIND_O + 1], workspace = allocate(&h, info.workspace_bytes);
    FoveaBuffer bindings[FOVEA_BIND_O + 1];
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i) {
        tensors[i] = allocate(&h, info.binding_bytes[i]);
        bindings[i] = (FoveaBuffer){tensors[i].buffer, 0, info.binding_bytes[i]};
        for (uint64_t n = 0; i < FOVEA_BIND_O && n < info.binding_bytes[i] / 4; ++n)
            tensors[i].mapped[n] = (float)((uint32_t)(n * 4 + i) * 2654435761u >> 8) / 8388608.0f - 1.0f;
    }
    float* expected = reference(tensors, info.binding_bytes);

    VkPhysicalDeviceProperties vulkan_properties;
    vkGetPhysicalDeviceProperties(h.gpu, &vulkan_properties);
    Frame frames[kFrames];
    for (int i = 0; i < kFrames; ++i) {
        frames[i] = (Frame){.cmd = new_commands(&h)};
        const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
                                         .flags = VK_FENCE_CREATE_SIGNALED_BIT};
        vkCreateFence(h.device, &fence, NULL, &frames[i].done);
        const VkQueryPoolCreateInfo times = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                             .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                             .queryCount = 2 * (uint32_t)info.slice_count};
        if (properties.features & FOVEA_FEATURE_TIMESTAMPS) vkCreateQueryPool(h.device, &times, NULL, &frames[i].times);
        if (!(properties.features & FOVEA_FEATURE_PUSH_DESCRIPTORS))
            frames[i].pool = new_pool(&h, (uint32_t)info.slice_count * info.dispatches_per_slice);
    }

    uint64_t next = 0;
    double slowest = 0;
    int count = 0;
    while (next < info.slice_count) {
        Frame* f = &frames[count++ % kFrames];
        vkWaitForFences(h.device, 1, &f->done, VK_TRUE, UINT64_MAX); /* the frame before the last has finished */
        vkResetFences(h.device, 1, &f->done);
        /* [fit] By the frame before the last, which has finished; of earlier ones, the very first may include a
         * driver's late compilation. */
        const double measured = slowest_slice(&h, f, vulkan_properties.limits.timestampPeriod * 1e-9);
        if (measured > 0) slowest = measured;
        if (f->pool) vkResetDescriptorPool(h.device, f->pool, 0);
        f->slices = slowest > 0 ? (uint64_t)(0.6 * kBudgetSeconds / slowest) : 1;
        const uint64_t most = FOVEA_MAX_DESCRIPTOR_SETS / info.dispatches_per_slice; /* the limit of one call */
        if (f->pool && f->slices > most) f->slices = most;
        if (f->slices < 1) f->slices = 1;
        if (f->slices > info.slice_count - next) f->slices = info.slice_count - next;
        // [end fit]

        begin(f->cmd);
        /* Your passes of this frame, which write q, k and v; then one barrier, which covers the frame before as well:
         * its slices used the same workspace. */
        if (f->times) vkCmdResetQueryPool(f->cmd, f->times, 0, 2 * (uint32_t)info.slice_count);
        cmd_barrier(f->cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
        FoveaRecord record = foveaRecord();
        record.cmd = f->cmd;
        record.bindings = bindings;
        record.binding_count = FOVEA_BIND_O + 1;
        record.workspace = (FoveaBuffer){workspace.buffer, 0, info.workspace_bytes};
        record.first_slice = next;
        record.slice_count = f->slices;
        record.timestamps = f->times;
        record.descriptor_pool.pool = f->pool;
        require(foveaCmdRun(plan, &record, &diag) == FOVEA_OK, diag.text);
        next += f->slices;
        cmd_barrier(f->cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT); /* or to your pass that reads o */
        end_and_submit(&h, f->cmd, f->done);
    }
    vkDeviceWaitIdle(h.device);

    double largest = 0;
    for (uint64_t n = 0; n < info.binding_bytes[FOVEA_BIND_O] / 4; ++n)
        largest = fmax(largest, fabs((double)tensors[FOVEA_BIND_O].mapped[n] - expected[n]));
    printf("%d frames for %d slices, %s: largest difference from the processor %.2g\n", count, (int)info.slice_count,
           foveaKernelName(info.kernel), largest);

    for (int i = 0; i < kFrames; ++i) {
        vkDestroyFence(h.device, frames[i].done, NULL);
        vkDestroyQueryPool(h.device, frames[i].times, NULL);
        vkDestroyDescriptorPool(h.device, frames[i].pool, NULL);
    }
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i) release(&h, &tensors[i]);
    release(&h, &workspace);
    free(expected);
    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    close_host(&h);
    require(largest < 2e-6, "the result is wrong");
    return 0;
}
