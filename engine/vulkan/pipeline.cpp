// Building one pipeline, and all that a plan needs.
#include "plan/vulkan/dispatch_code.hpp"
#include "plan/vulkan/shaders.hpp"
#include "problem/abi_struct.hpp"
#include "vulkan/context.hpp"

#include <new>

namespace fovea::vulkan {
namespace {

FoveaResult create_set_layout(FoveaContext_T& context, Pipeline& out, FoveaDiag* diag) {
    VkDescriptorSetLayoutBinding bindings[32];
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < 32; ++slot) {
        if (!(out.key.slot_mask >> slot & 1)) continue;
        bindings[count++] = {slot, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                             nullptr};
    }
    VkDescriptorSetLayoutCreateInfo create{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    if (context.enabled.push_descriptors)
        create.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    create.bindingCount = count;
    create.pBindings = bindings;
    const VkResult result =
        context.vk.vkCreateDescriptorSetLayout(context.device, &create, context.callbacks(), &out.set_layout);
    return result == VK_SUCCESS ? FOVEA_OK
                                : call_failed(context, result, "vkCreateDescriptorSetLayout", diag);
}

FoveaResult create_layout(FoveaContext_T& context, Pipeline& out, FoveaDiag* diag) {
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, out.key.push_words * 4};
    VkPipelineLayoutCreateInfo create{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    create.setLayoutCount = 1;
    create.pSetLayouts = &out.set_layout;
    create.pushConstantRangeCount = range.size ? 1 : 0;
    create.pPushConstantRanges = &range;
    const VkResult result =
        context.vk.vkCreatePipelineLayout(context.device, &create, context.callbacks(), &out.layout);
    return result == VK_SUCCESS ? FOVEA_OK : call_failed(context, result, "vkCreatePipelineLayout", diag);
}

// The words of the shader for this pipeline, in the host's memory while the module is made of them.
class PipelineCode {
  public:
    PipelineCode(const FoveaHostAllocator& allocator, const PipelineKey& key) : allocator_(allocator) {
        const ShaderWords& module = kShaderWords[key.shader];
        if (!module.words) return;
        room_bytes_ = dispatch_code_room(module.words, module.count) * sizeof *words_;
        words_ = static_cast<uint32_t*>(allocator.allocate(allocator.user, room_bytes_, alignof(uint32_t)));
        if (!words_) return;
        const CodeChoice choice{key.slot_mask, key.spec, key.spec_count};
        count_ = write_dispatch_code(choice, module.words, module.count, words_);
    }
    ~PipelineCode() {
        if (words_) allocator_.release(allocator_.user, words_, room_bytes_);
    }
    PipelineCode(const PipelineCode&) = delete;
    PipelineCode& operator=(const PipelineCode&) = delete;

    const uint32_t* words() const { return words_; }  // null if memory ran out
    size_t size_bytes() const { return count_ * sizeof *words_; }

  private:
    const FoveaHostAllocator& allocator_;
    uint32_t* words_ = nullptr;
    size_t room_bytes_ = 0, count_ = 0;
};

FoveaResult create_module(FoveaContext_T& context, const PipelineKey& key, VkShaderModule& out,
                          FoveaDiag* diag) {
    if (FoveaResult r = require_shader(Shader(key.shader), diag)) return r;
    const PipelineCode code(context.allocator, key);
    if (!code.words())
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "host_allocator", "no host memory for a shader's code");
    VkShaderModuleCreateInfo create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    create.pCode = code.words();
    create.codeSize = code.size_bytes();
    const VkResult result =
        context.vk.vkCreateShaderModule(context.device, &create, context.callbacks(), &out);
    return result == VK_SUCCESS ? FOVEA_OK : call_failed(context, result, "vkCreateShaderModule", diag);
}

FoveaResult create_compute_pipeline(FoveaContext_T& context, VkShaderModule module, Pipeline& out,
                                    FoveaDiag* diag) {
    VkSpecializationMapEntry entries[FOVEA_MAX_SPEC_CONSTANTS];
    for (uint32_t i = 0; i < out.key.spec_count; ++i) entries[i] = {i, i * 4, 4};
    const VkSpecializationInfo constants{out.key.spec_count, entries, out.key.spec_count * 4, out.key.spec};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
    subgroup.requiredSubgroupSize = out.key.subgroup_size;

    VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    if (out.key.subgroup_size) {
        // A device with one size has nothing to require, and may not allow to.
        if (context.properties.min_subgroup_size != context.properties.max_subgroup_size)
            create.stage.pNext = &subgroup;
        create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = "main";
    create.stage.pSpecializationInfo = &constants;
    create.layout = out.layout;
    const VkResult result = context.vk.vkCreateComputePipelines(context.device, context.cache, 1, &create,
                                                                context.callbacks(), &out.handle);
    return result == VK_SUCCESS ? FOVEA_OK : call_failed(context, result, "vkCreateComputePipelines", diag);
}

void name_pipeline(const FoveaContext_T& context, const Pipeline& pipeline) {
    if (!context.vk.vkSetDebugUtilsObjectNameEXT) return;
    VkDebugUtilsObjectNameInfoEXT name{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    name.objectType = VK_OBJECT_TYPE_PIPELINE;
    name.objectHandle = (uint64_t)pipeline.handle;
    name.pObjectName = foveaShaderName(pipeline.key.shader);
    // A name is a courtesy: without it everything works the same.
    static_cast<void>(context.vk.vkSetDebugUtilsObjectNameEXT(context.device, &name));
}

FoveaResult build_pipeline(FoveaContext_T& context, Pipeline& out, FoveaDiag* diag) {
    if (FoveaResult r = create_set_layout(context, out, diag)) return r;
    if (FoveaResult r = create_layout(context, out, diag)) return r;
    VkShaderModule module = VK_NULL_HANDLE;
    if (FoveaResult r = create_module(context, out.key, module, diag)) return r;
    const FoveaResult r = create_compute_pipeline(context, module, out, diag);
    context.vk.vkDestroyShaderModule(context.device, module, context.callbacks());
    if (r == FOVEA_OK) name_pipeline(context, out);
    return r;
}

}  // namespace

void destroy_pipeline(const FoveaContext_T& context, const Pipeline& pipeline) {
    const DeviceTable& vk = context.vk;
    if (pipeline.handle) vk.vkDestroyPipeline(context.device, pipeline.handle, context.callbacks());
    if (pipeline.layout) vk.vkDestroyPipelineLayout(context.device, pipeline.layout, context.callbacks());
    if (pipeline.set_layout)
        vk.vkDestroyDescriptorSetLayout(context.device, pipeline.set_layout, context.callbacks());
}

FoveaResult get_pipeline(FoveaContext_T& context, const PipelineKey& key, Pipeline& out, FoveaDiag* diag) {
    if (context.pipelines.find(key, out)) return FOVEA_OK;
    Pipeline built{};
    built.key = key;
    if (FoveaResult r = build_pipeline(context, built, diag)) {
        destroy_pipeline(context, built);
        return r;
    }
    out = built;
    bool lost_race = false;
    const bool kept = context.pipelines.insert(context.allocator, out, lost_race);
    if (!kept || lost_race) destroy_pipeline(context, built);
    if (!kept)
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "host_allocator", "no host memory to keep a pipeline");
    return FOVEA_OK;
}

const Pipeline* PlanPipelines::find(const FoveaDispatch& dispatch) const {
    const PipelineKey key = key_of(dispatch);
    for (uint32_t i = 0; i < count; ++i) {
        if (pipelines[i].key == key) return &pipelines[i];
    }
    return nullptr;
}

}  // namespace fovea::vulkan
