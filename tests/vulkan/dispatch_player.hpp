// The layer below the recorder, as a host with its own renderer would use it: foveaGetDispatches played by
// hand. Some of its steps can be left out or spoiled, to see whether the validation layer notices.
#pragma once

#include "vulkan/gpu.hpp"

namespace fovea::test {

struct PlayerBugs {
    bool no_barriers = false;
    uint64_t extra_offset = 0;  // added to every descriptor's offset
    uint64_t extra_range = 0;   // added to every descriptor's range
};

class DispatchPlayer {
  public:
    DispatchPlayer(const Gpu& gpu, Work& work, const PlayerBugs& bugs = {})
        : gpu_(gpu), work_(work), bugs_(bugs) {}
    ~DispatchPlayer() {
        const VkDevice device = gpu_.device->handle();
        for (const Made& m : made_) {
            call<PFN_vkDestroyPipeline>("vkDestroyPipeline")(device, m.pipeline, nullptr);
            call<PFN_vkDestroyPipelineLayout>("vkDestroyPipelineLayout")(device, m.layout, nullptr);
            call<PFN_vkDestroyDescriptorSetLayout>("vkDestroyDescriptorSetLayout")(device, m.set_layout,
                                                                                   nullptr);
        }
        gpu_.device->vk().vkDestroyDescriptorPool(device, pool_, nullptr);
    }
    DispatchPlayer(const DispatchPlayer&) = delete;
    DispatchPlayer& operator=(const DispatchPlayer&) = delete;

    void play(VkCommandBuffer cmd) {
        create_pool();
        for (uint64_t slice = 0; slice < work_.info.slice_count; ++slice) {
            std::vector<FoveaDispatch> list(work_.info.dispatches_per_slice);
            auto count = static_cast<uint32_t>(list.size());
            Diag diag;
            ASSERT_EQ(foveaGetDispatches(work_.plan.get(), slice, list.data(), &count, &diag), FOVEA_OK)
                << diag.text;
            if (slice > 0 && work_.info.slices_share_workspace) barrier(cmd);
            for (uint32_t i = 0; i < count; ++i) {
                if (i > 0 && list[i].barrier_before) barrier(cmd);
                dispatch(cmd, list[i]);
            }
        }
    }

  private:
    struct Made {
        uint32_t shader;
        std::vector<uint32_t> constants;
        VkDescriptorSetLayout set_layout;
        VkPipelineLayout layout;
        VkPipeline pipeline;
    };
    template <class Function>
    Function call(const char* name) const {
        return gpu_.call<Function>(name);
    }

    void create_pool() {
        const auto sets = static_cast<uint32_t>(work_.info.slice_count * work_.info.dispatches_per_slice);
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        sets * FOVEA_MAX_DISPATCH_BINDINGS};
        const VkDescriptorPoolCreateInfo create{
            VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, sets, 1, &size};
        ASSERT_EQ(gpu_.device->vk().vkCreateDescriptorPool(gpu_.device->handle(), &create, nullptr, &pool_),
                  VK_SUCCESS);
    }

    void barrier(VkCommandBuffer cmd) const {
        if (bugs_.no_barriers) return;
        const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                     VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
        gpu_.device->vk().vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                               VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &memory, 0,
                                               nullptr, 0, nullptr);
    }

    // Found by shader and constants: in one plan the slots follow from the shader.
    Made make(const FoveaDispatch& d) {
        const std::vector<uint32_t> values(d.spec, d.spec + d.spec_count);
        for (const Made& m : made_) {
            if (m.shader == d.shader && m.constants == values) return m;
        }
        const VkDevice device = gpu_.device->handle();
        Made m{d.shader, values, VK_NULL_HANDLE, VK_NULL_HANDLE, VK_NULL_HANDLE};
        std::vector<VkDescriptorSetLayoutBinding> slots;
        for (uint32_t i = 0; i < d.binding_count; ++i)
            slots.push_back({d.bindings[i].slot, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                             VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
        const VkDescriptorSetLayoutCreateInfo set{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                  nullptr, 0, d.binding_count, slots.data()};
        EXPECT_EQ(call<PFN_vkCreateDescriptorSetLayout>("vkCreateDescriptorSetLayout")(device, &set, nullptr,
                                                                                       &m.set_layout),
                  VK_SUCCESS);
        const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_words * 4};
        const VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                                nullptr,
                                                0,
                                                1,
                                                &m.set_layout,
                                                d.push_words ? 1u : 0u,
                                                &push};
        EXPECT_EQ(
            call<PFN_vkCreatePipelineLayout>("vkCreatePipelineLayout")(device, &layout, nullptr, &m.layout),
            VK_SUCCESS);
        const Result<std::vector<uint32_t>> code = dispatch_code(d);
        if (!code) ADD_FAILURE() << code.error().text;
        const VkShaderModuleCreateInfo shader{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0,
                                              code->size() * 4, code->data()};
        VkShaderModule module = VK_NULL_HANDLE;
        EXPECT_EQ(call<PFN_vkCreateShaderModule>("vkCreateShaderModule")(device, &shader, nullptr, &module),
                  VK_SUCCESS);
        std::vector<VkSpecializationMapEntry> entries;
        for (uint32_t i = 0; i < d.spec_count; ++i) entries.push_back({i, i * 4, 4});
        const VkSpecializationInfo constants{d.spec_count, entries.data(), d.spec_count * 4, d.spec};
        VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, nullptr,
            d.subgroup_size};
        const FoveaDeviceProperties properties = gpu_.device->properties();
        const bool required = d.subgroup_size && properties.min_subgroup_size != properties.max_subgroup_size;
        VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        create.stage = {
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            required ? &subgroup : nullptr,
            d.subgroup_size
                ? VkPipelineShaderStageCreateFlags{VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT}
                : 0,
            VK_SHADER_STAGE_COMPUTE_BIT,
            module,
            "main",
            &constants};
        create.layout = m.layout;
        EXPECT_EQ(call<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(
                      device, VK_NULL_HANDLE, 1, &create, nullptr, &m.pipeline),
                  VK_SUCCESS);
        call<PFN_vkDestroyShaderModule>("vkDestroyShaderModule")(device, module, nullptr);
        made_.push_back(m);
        return m;
    }

    VkDescriptorSet bind(const FoveaDispatch& d, const Made& m) {
        VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, pool_,
                                             1, &m.set_layout};
        VkDescriptorSet set = VK_NULL_HANDLE;
        const VkDevice device = gpu_.device->handle();
        EXPECT_EQ(call<PFN_vkAllocateDescriptorSets>("vkAllocateDescriptorSets")(device, &allocate, &set),
                  VK_SUCCESS);
        for (uint32_t i = 0; i < d.binding_count; ++i) {
            const FoveaDispatchBinding& b = d.bindings[i];
            const FoveaBuffer& from =
                b.source == FOVEA_BIND_WORKSPACE ? work_.record.workspace : work_.bindings[b.source];
            const VkDescriptorBufferInfo info{from.buffer, from.offset + b.offset + bugs_.extra_offset,
                                              b.size + bugs_.extra_range};
            VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            write.dstSet = set;
            write.dstBinding = b.slot;
            write.descriptorCount = 1;
            write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            write.pBufferInfo = &info;
            call<PFN_vkUpdateDescriptorSets>("vkUpdateDescriptorSets")(device, 1, &write, 0, nullptr);
        }
        return set;
    }

    void dispatch(VkCommandBuffer cmd, const FoveaDispatch& d) {
        const Made m = make(d);
        const VkDescriptorSet set = bind(d, m);
        call<PFN_vkCmdBindPipeline>("vkCmdBindPipeline")(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, m.pipeline);
        call<PFN_vkCmdBindDescriptorSets>("vkCmdBindDescriptorSets")(cmd, VK_PIPELINE_BIND_POINT_COMPUTE,
                                                                     m.layout, 0, 1, &set, 0, nullptr);
        if (d.push_words)
            call<PFN_vkCmdPushConstants>("vkCmdPushConstants")(cmd, m.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                                               d.push_words * 4, d.push);
        call<PFN_vkCmdDispatch>("vkCmdDispatch")(cmd, d.groups[0], d.groups[1], d.groups[2]);
    }

    const Gpu& gpu_;
    Work& work_;
    PlayerBugs bugs_;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    std::vector<Made> made_;
};

}  // namespace fovea::test
