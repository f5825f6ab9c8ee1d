/* The engine of rhi.c on plain Vulkan, and the program: one call of attention dispatched by the engine itself, the same
 * plan recorded by Fovea, and both results compared bit by bit. */
#include "host.h"
#include "rhi_main.h"

#include <string.h>

enum { kHeads = 4, kRows = 96, kDim = 32, kMost = 32, kTensorBytes = kHeads * kRows * kDim * 4 };

struct RhiBuffer {
    HostMemory memory;
};
struct RhiShader {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
};
struct Rhi {
    Host host;
    VkCommandBuffer cmd;
    VkDescriptorPool pool;
    RhiBuffer buffers[kMost];
    RhiShader shaders[kMost];
    uint32_t buffer_count, shader_count;
};

RhiBuffer* rhi_buffer(Rhi* rhi, uint64_t bytes) {
    require(rhi->buffer_count < kMost, "too many buffers");
    RhiBuffer* buffer = &rhi->buffers[rhi->buffer_count++];
    buffer->memory = allocate(&rhi->host, bytes);
    return buffer;
}

RhiShader* rhi_shader(Rhi* rhi, const RhiShaderDesc* desc) {
    require(rhi->shader_count < kMost, "too many shaders");
    RhiShader* shader = &rhi->shaders[rhi->shader_count++];
    const VkDevice device = rhi->host.device;
    VkDescriptorSetLayoutBinding slots[32];
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < 32; ++slot)
        if (desc->slot_mask >> slot & 1)
            slots[count++] = (VkDescriptorSetLayoutBinding){slot, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                            VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = count, .pBindings = slots};
    require(vkCreateDescriptorSetLayout(device, &set, NULL, &shader->set_layout) == VK_SUCCESS, "no set layout");
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, desc->push_bytes};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &shader->set_layout,
                                               .pushConstantRangeCount = push.size ? 1 : 0,
                                               .pPushConstantRanges = &push};
    require(vkCreatePipelineLayout(device, &layout, NULL, &shader->layout) == VK_SUCCESS, "no layout");
    VkSpecializationMapEntry entries[FOVEA_MAX_SPEC_CONSTANTS];
    for (uint32_t i = 0; i < desc->constant_count; ++i) entries[i] = (VkSpecializationMapEntry){i, i * 4, 4};
    const VkSpecializationInfo constants = {desc->constant_count, entries, desc->constant_count * 4, desc->constants};
    const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = desc->word_count * 4,
                                           .pCode = desc->spirv};
    VkComputePipelineCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                          .layout = shader->layout};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.pName = "main";
    create.stage.pSpecializationInfo = &constants;
    require(desc->subgroup_size == 0, "this device was created without subgroupSizeControl");
    require(vkCreateShaderModule(device, &code, NULL, &create.stage.module) == VK_SUCCESS, "no shader");
    require(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, NULL, &shader->pipeline) == VK_SUCCESS,
            "no pipeline");
    vkDestroyShaderModule(device, create.stage.module, NULL);
    return shader;
}

void rhi_constants(Rhi* rhi, const RhiShader* shader, const void* data, uint32_t bytes) {
    if (bytes) vkCmdPushConstants(rhi->cmd, shader->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, data);
}

void rhi_dispatch(Rhi* rhi, const RhiShader* shader, const RhiBinding* bindings, uint32_t count,
                  const uint32_t groups[3]) {
    const VkDescriptorSetAllocateInfo allocate_set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                                      .descriptorPool = rhi->pool,
                                                      .descriptorSetCount = 1,
                                                      .pSetLayouts = &shader->set_layout};
    VkDescriptorSet set;
    require(vkAllocateDescriptorSets(rhi->host.device, &allocate_set, &set) == VK_SUCCESS, "no descriptor set");
    VkDescriptorBufferInfo ranges[FOVEA_MAX_DISPATCH_BINDINGS];
    VkWriteDescriptorSet writes[FOVEA_MAX_DISPATCH_BINDINGS];
    for (uint32_t i = 0; i < count; ++i) {
        ranges[i] = (VkDescriptorBufferInfo){bindings[i].buffer->memory.buffer, bindings[i].offset, bindings[i].size};
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = set,
                                           .dstBinding = bindings[i].slot,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &ranges[i]};
    }
    vkUpdateDescriptorSets(rhi->host.device, count, writes, 0, NULL);
    vkCmdBindPipeline(rhi->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, shader->pipeline);
    vkCmdBindDescriptorSets(rhi->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, shader->layout, 0, 1, &set, 0, NULL);
    vkCmdDispatch(rhi->cmd, groups[0], groups[1], groups[2]);
}

void rhi_barrier(Rhi* rhi) {
    cmd_barrier(rhi->cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

static void close_rhi(Rhi* rhi) {
    const VkDevice device = rhi->host.device;
    for (uint32_t i = 0; i < rhi->shader_count; ++i) {
        vkDestroyPipeline(device, rhi->shaders[i].pipeline, NULL);
        vkDestroyPipelineLayout(device, rhi->shaders[i].layout, NULL);
        vkDestroyDescriptorSetLayout(device, rhi->shaders[i].set_layout, NULL);
    }
    for (uint32_t i = 0; i < rhi->buffer_count; ++i) release(&rhi->host, &rhi->buffers[i].memory);
    vkDestroyDescriptorPool(device, rhi->pool, NULL);
    close_host(&rhi->host);
}

static void submit_and_wait(const Host* h, VkCommandBuffer cmd) {
    cmd_barrier(cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    end_and_submit(h, cmd, VK_NULL_HANDLE);
    require(vkDeviceWaitIdle(h->device) == VK_SUCCESS, "not finished");
}

int main(void) {
    static Rhi rhi;
    open_host(&rhi.host);
    FoveaDiag diag = foveaDiag();
    const FoveaDeviceProperties properties = properties_of_any_device();
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 1;
    call.heads_q = call.heads_kv = kHeads;
    call.len_q = call.len_kv = kRows;
    call.dim_qk = call.dim_v = kDim;
    call.flags = FOVEA_FLAG_CAUSAL;
    call.max_slice_cost = 2e6;
    FoveaPlan plan;
    require(foveaPlanAttention(&properties, &call, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    FoveaPlanInfo info = foveaPlanInfo();
    foveaGetPlanInfo(plan, &info, &diag);

    RhiBuffer* buffers[FOVEA_BIND_COUNT] = {0};
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i) buffers[i] = rhi_buffer(&rhi, kTensorBytes);
    buffers[FOVEA_BIND_WORKSPACE] = rhi_buffer(&rhi, info.workspace_bytes);
    for (uint32_t i = 0; i < FOVEA_BIND_O; ++i)
        for (uint32_t n = 0; n < kTensorBytes / 4; ++n)
            buffers[i]->memory.mapped[n] = (float)((n * 4 + i) * 2654435761u >> 8) / 8388608.0f - 1.0f;
    rhi.pool = new_pool(&rhi.host, 2 * (uint32_t)info.slice_count * info.dispatches_per_slice);
    rhi.cmd = new_commands(&rhi.host);
    begin(rhi.cmd);
    require(play_plan(&rhi, plan, buffers, &diag) == FOVEA_OK, diag.text);
    submit_and_wait(&rhi.host, rhi.cmd);
    static float own[kTensorBytes / 4];
    memcpy(own, buffers[FOVEA_BIND_O]->memory.mapped, sizeof own);

    /* The same plan by the recorder. */
    memset(buffers[FOVEA_BIND_O]->memory.mapped, 0, sizeof own);
    FoveaContext context = adopt_host(&rhi.host);
    require(foveaCompilePlan(context, plan, &diag) == FOVEA_OK, diag.text);
    FoveaBuffer bindings[FOVEA_BIND_O + 1];
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i)
        bindings[i] = (FoveaBuffer){buffers[i]->memory.buffer, 0, kTensorBytes};
    FoveaRecord record = foveaRecord();
    record.cmd = rhi.cmd;
    record.bindings = bindings;
    record.binding_count = FOVEA_BIND_O + 1;
    record.workspace = (FoveaBuffer){buffers[FOVEA_BIND_WORKSPACE]->memory.buffer, 0, info.workspace_bytes};
    record.descriptor_pool.pool = rhi.pool;
    begin(rhi.cmd);
    require(foveaCmdRun(plan, &record, &diag) == FOVEA_OK, diag.text);
    submit_and_wait(&rhi.host, rhi.cmd);
    const int same = memcmp(own, buffers[FOVEA_BIND_O]->memory.mapped, sizeof own) == 0;
    printf("%s in %d slices, shaders of the engine's own: %u; %s bits as recorded by Fovea\n",
           foveaKernelName(info.kernel), (int)info.slice_count, rhi.shader_count, same ? "the same" : "other");

    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    close_rhi(&rhi);
    require(same && own[kTensorBytes / 4 - 1] != 0.0f, "the result is wrong");
    return 0;
}
