// The shader of docs/contributing/first-kernel.md on a device, under the validation layer: the same seeded
// values and the same bound as on the CPU, a slice that begins after the first row, and guards around its
// output.
#include "support/random.hpp"

#include <gtest/gtest.h>
#include <volk.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "shaders/interface.h"
#include "skeleton.comp.h"

namespace fovea::test {
namespace {

constexpr uint32_t kThreads = 64, kRegion = 16384, kPoison = 0xffffffff;  // bytes of each tensor's place
constexpr uint32_t kSlots[] = {FOVEA_SLOT_X, FOVEA_SLOT_W, FOVEA_SLOT_Y};

VkBool32 VKAPI_PTR collect(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                           const VkDebugUtilsMessengerCallbackDataEXT* data, void* messages) {
    static_cast<std::vector<std::string>*>(messages)->emplace_back(data->pMessage);
    return VK_FALSE;
}

// The least that a dispatch needs: one device, one mapped buffer in three regions, one pipeline. It is gone
// with the process, as a program of one dispatch may do it.
class SkeletonOnVulkan : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(volkInitialize(), VK_SUCCESS);
        open();
        make_buffer();
        make_pipeline();
    }
    void TearDown() override {
        for (const std::string& message : messages_) ADD_FAILURE() << message;
    }

    uint32_t* region(uint32_t slot) { return words_ + slot * (kRegion / 4); }

    void dispatch(const uint32_t (&push)[4]) {
        VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        ASSERT_EQ(vkBeginCommandBuffer(commands_, &begin), VK_SUCCESS);
        vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
        vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, push);
        vkCmdDispatch(commands_, (push[0] + kThreads - 1) / kThreads, 1, 1);
        // Makes the results visible to the host.
        VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT, barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
        vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                             1, &barrier, 0, nullptr, 0, nullptr);
        ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
        VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
        submit.commandBufferCount = 1, submit.pCommandBuffers = &commands_;
        ASSERT_EQ(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
        ASSERT_EQ(vkQueueWaitIdle(queue_), VK_SUCCESS);
    }

  private:
    void open() {
        const char *layer = "VK_LAYER_KHRONOS_validation", *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
        application.apiVersion = VK_API_VERSION_1_1;
        VkDebugUtilsMessengerCreateInfoEXT debug{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
        debug.messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
        debug.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
        debug.pfnUserCallback = collect, debug.pUserData = &messages_;
        VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, &debug};
        instance_info.pApplicationInfo = &application;
        instance_info.enabledLayerCount = 1, instance_info.ppEnabledLayerNames = &layer;
        instance_info.enabledExtensionCount = 1, instance_info.ppEnabledExtensionNames = &extension;
        VkInstance instance = nullptr;
        ASSERT_EQ(vkCreateInstance(&instance_info, nullptr, &instance), VK_SUCCESS);
        volkLoadInstance(instance);
        VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
        vkCreateDebugUtilsMessengerEXT(instance, &debug, nullptr, &messenger);
        uint32_t count = 1;
        vkEnumeratePhysicalDevices(instance, &count, &physical_);
        ASSERT_EQ(count, 1u);
        const float priority = 1.0f;
        VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
        queue.queueCount = 1, queue.pQueuePriorities = &priority;
        VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
        info.queueCreateInfoCount = 1, info.pQueueCreateInfos = &queue;
        ASSERT_EQ(vkCreateDevice(physical_, &info, nullptr, &device_), VK_SUCCESS);
        volkLoadDevice(device_);
        vkGetDeviceQueue(device_, 0, 0, &queue_);
        VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
        VkCommandPool pool = VK_NULL_HANDLE;
        ASSERT_EQ(vkCreateCommandPool(device_, &pool_info, nullptr, &pool), VK_SUCCESS);
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool, allocate.commandBufferCount = 1;
        ASSERT_EQ(vkAllocateCommandBuffers(device_, &allocate, &commands_), VK_SUCCESS);
    }

    void make_buffer() {
        VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        info.size = 3 * kRegion, info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        ASSERT_EQ(vkCreateBuffer(device_, &info, nullptr, &buffer_), VK_SUCCESS);
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device_, buffer_, &needs);
        VkPhysicalDeviceMemoryProperties memories;
        vkGetPhysicalDeviceMemoryProperties(physical_, &memories);
        constexpr VkMemoryPropertyFlags kMapped =
            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
        allocate.allocationSize = needs.size;
        while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) ||
               (memories.memoryTypes[allocate.memoryTypeIndex].propertyFlags & kMapped) != kMapped)
            ++allocate.memoryTypeIndex;
        VkDeviceMemory memory = VK_NULL_HANDLE;
        ASSERT_EQ(vkAllocateMemory(device_, &allocate, nullptr, &memory), VK_SUCCESS);
        ASSERT_EQ(vkBindBufferMemory(device_, buffer_, memory, 0), VK_SUCCESS);
        void* mapped = nullptr;
        ASSERT_EQ(vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
        words_ = static_cast<uint32_t*>(mapped);
    }

    void make_pipeline() {
        VkDescriptorSetLayoutBinding bindings[3] = {};
        for (size_t i = 0; i < 3; ++i)
            bindings[i] = {kSlots[i], VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                           nullptr};
        VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        set_info.bindingCount = 3, set_info.pBindings = bindings;
        VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
        vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout);
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
        VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        layout_info.setLayoutCount = 1, layout_info.pSetLayouts = &set_layout;
        layout_info.pushConstantRangeCount = 1, layout_info.pPushConstantRanges = &range;
        vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_);
        VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        module_info.codeSize = sizeof kSkeletonShader, module_info.pCode = kSkeletonShader;
        VkShaderModule module = VK_NULL_HANDLE;
        vkCreateShaderModule(device_, &module_info, nullptr, &module);
        const VkSpecializationMapEntry entry{FOVEA_SPEC_THREADS, 0, sizeof kThreads};
        const VkSpecializationInfo threads{1, &entry, sizeof kThreads, &kThreads};
        VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
        info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT, info.stage.module = module;
        info.stage.pName = "main", info.stage.pSpecializationInfo = &threads;
        info.layout = layout_;
        ASSERT_EQ(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
                  VK_SUCCESS);
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3};
        VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        pool_info.maxSets = 1, pool_info.poolSizeCount = 1, pool_info.pPoolSizes = &size;
        VkDescriptorPool pool = VK_NULL_HANDLE;
        vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool);
        VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
        allocate.descriptorPool = pool, allocate.descriptorSetCount = 1, allocate.pSetLayouts = &set_layout;
        ASSERT_EQ(vkAllocateDescriptorSets(device_, &allocate, &set_), VK_SUCCESS);
        for (const uint32_t slot : kSlots) {
            const VkDescriptorBufferInfo buffer{buffer_, slot * VkDeviceSize{kRegion}, kRegion};
            VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            write.dstSet = set_, write.dstBinding = slot, write.descriptorCount = 1;
            write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, write.pBufferInfo = &buffer;
            vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
        }
    }

    std::vector<std::string> messages_;
    VkPhysicalDevice physical_ = nullptr;
    VkDevice device_ = nullptr;
    VkQueue queue_ = nullptr;
    VkCommandBuffer commands_ = nullptr;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    uint32_t* words_ = nullptr;
};

TEST_F(SkeletonOnVulkan, weighted_rows_agree_with_float64) {
    if (HasFatalFailure()) return;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        Random random(seed);
        const uint32_t rows = uint32_t(1 + seed * 5 % 90), columns = uint32_t(seed * 7 % 41);
        const uint32_t x_base = uint32_t(seed % 3), y_base = uint32_t(seed % 5);
        std::fill_n(region(0), 3 * kRegion / 4, kPoison);
        auto* const x = reinterpret_cast<float*>(region(FOVEA_SLOT_X)) + x_base;
        auto* const weights = reinterpret_cast<float*>(region(FOVEA_SLOT_W));
        for (uint32_t i = 0; i < rows * columns; ++i) x[i] = float(random.uniform(-1, 1));
        for (uint32_t c = 0; c < columns; ++c) weights[c] = float(random.uniform(-1, 1));
        dispatch({rows, columns, x_base, y_base});
        const uint32_t* const y = region(FOVEA_SLOT_Y);
        const std::string what =
            "seed " + std::to_string(seed) + ": " + std::to_string(rows) + " x " + std::to_string(columns);
        for (uint32_t i = 0; i < kRegion / 4; ++i) {
            if (i < y_base || i >= y_base + rows) {
                ASSERT_EQ(y[i], kPoison) << what << ": wrote outside, word " << i;
                continue;
            }
            double sum = 0, magnitude = 0;
            for (uint32_t c = 0; c < columns; ++c) {
                const double product = double(weights[c]) * x[(i - y_base) * columns + c];
                sum += product, magnitude += std::fabs(product);
            }
            float found;
            std::memcpy(&found, &y[i], sizeof found);
            // A sum of n products in any order errs by at most n half ulps of the sum of their magnitudes.
            EXPECT_NEAR(found, sum, double(columns) * FLT_EPSILON / 2 * magnitude)
                << what << ", row " << i - y_base;
        }
    }
}

}  // namespace
}  // namespace fovea::test
