// Run once on each Vulkan driver by fovea_add_vulkan_test (cmake/FoveaVulkanTests.cmake).
#include <gtest/gtest.h>
#include <volk.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "fill.comp.h"

namespace {

constexpr VkDeviceSize kBufferBytes = 4096;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

VkBool32 VKAPI_PTR collect_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                   const VkDebugUtilsMessengerCallbackDataEXT* data, void* messages) {
    static_cast<std::vector<std::string>*>(messages)->emplace_back(data->pMessage);
    return VK_FALSE;
}

// One device with the validation layer on, a buffer, a pipeline that writes it, and a command buffer being
// recorded.
class Drivers : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(volkInitialize(), VK_SUCCESS);
        create_instance();
        ASSERT_NE(instance_, nullptr) << "no instance with the validation layer";
        uint32_t count = 0;
        vkEnumeratePhysicalDevices(instance_, &count, nullptr);
        ASSERT_EQ(count, 1u) << "a driver's script must leave exactly one device";
        vkEnumeratePhysicalDevices(instance_, &count, &physical_);
        create_device();
        ASSERT_NE(device_, nullptr);
        create_buffer();
        create_pipeline();
        begin_commands();
    }

    void TearDown() override {
        if (device_) {
            vkDestroyCommandPool(device_, pool_, nullptr);
            vkDestroyPipeline(device_, pipeline_, nullptr);
            vkDestroyShaderModule(device_, shader_, nullptr);
            vkDestroyPipelineLayout(device_, layout_, nullptr);
            vkDestroyDescriptorPool(device_, descriptor_pool_, nullptr);
            vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
            vkDestroyBuffer(device_, buffer_, nullptr);
            vkFreeMemory(device_, memory_, nullptr);
            vkDestroyDevice(device_, nullptr);
        }
        if (messenger_) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
        if (instance_) vkDestroyInstance(instance_, nullptr);
    }

    void fill() { vkCmdFillBuffer(commands_, buffer_, 0, VK_WHOLE_SIZE, 5); }

    void dispatch(uint32_t groups = kBufferBytes / (4 * 64)) {
        vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
        vkCmdDispatch(commands_, groups, 1, 1);
    }

    void barrier(VkPipelineStageFlags to_stage, VkAccessFlags to_access) {
        VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier.dstAccessMask = to_access;
        vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, to_stage, 0, 1, &barrier, 0, nullptr,
                             0, nullptr);
    }

    void submit() {
        ASSERT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS);
        VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
        submit.commandBufferCount = 1;
        submit.pCommandBuffers = &commands_;
        ASSERT_EQ(vkQueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
        ASSERT_EQ(vkQueueWaitIdle(queue_), VK_SUCCESS);
    }

    bool hazard_reported() const {
        for (const std::string& message : messages_)
            if (message.find("WRITE-AFTER-WRITE") != std::string::npos ||
                message.find("WRITE_AFTER_WRITE") != std::string::npos)
                return true;
        return false;
    }

    std::string all_messages() const {
        std::string text;
        for (const std::string& message : messages_) text += message + "\n";
        return text;
    }

    VkInstance instance_ = nullptr;
    VkPhysicalDevice physical_ = nullptr;
    std::vector<std::string> messages_;

  private:
    void create_instance() {
        const char* layer = "VK_LAYER_KHRONOS_validation";
        const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
        application.apiVersion = VK_API_VERSION_1_1;
        VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
        info.pApplicationInfo = &application;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = &layer;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &extension;
        if (vkCreateInstance(&info, nullptr, &instance_) != VK_SUCCESS) return;
        volkLoadInstance(instance_);
        VkDebugUtilsMessengerCreateInfoEXT debug{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
        debug.messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
        debug.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
        debug.pfnUserCallback = collect_message;
        debug.pUserData = &messages_;
        vkCreateDebugUtilsMessengerEXT(instance_, &debug, nullptr, &messenger_);
    }

    void create_device() {
        const float priority = 1.0f;
        VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
        queue.queueCount = 1;
        queue.pQueuePriorities = &priority;
        VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
        info.queueCreateInfoCount = 1;
        info.pQueueCreateInfos = &queue;
        if (vkCreateDevice(physical_, &info, nullptr, &device_) != VK_SUCCESS) return;
        volkLoadDevice(device_);
        vkGetDeviceQueue(device_, 0, 0, &queue_);
    }

    void create_buffer() {
        VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        info.size = kBufferBytes;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        ASSERT_EQ(vkCreateBuffer(device_, &info, nullptr, &buffer_), VK_SUCCESS);
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device_, buffer_, &needs);
        VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
        // The memory after the buffer, which AWriteBeyondTheBufferIsReported writes, belongs to this
        // allocation.
        allocate.allocationSize = 2 * needs.size;
        while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1)) ++allocate.memoryTypeIndex;
        ASSERT_EQ(vkAllocateMemory(device_, &allocate, nullptr, &memory_), VK_SUCCESS);
        ASSERT_EQ(vkBindBufferMemory(device_, buffer_, memory_, 0), VK_SUCCESS);
    }

    void create_pipeline() {
        VkDescriptorSetLayoutBinding binding{};
        binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        binding.descriptorCount = 1;
        binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
        VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        set_info.bindingCount = 1;
        set_info.pBindings = &binding;
        vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout_);
        VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        layout_info.setLayoutCount = 1;
        layout_info.pSetLayouts = &set_layout_;
        vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_);
        VkShaderModuleCreateInfo shader_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        shader_info.codeSize = sizeof(kFillShader);
        shader_info.pCode = kFillShader;
        vkCreateShaderModule(device_, &shader_info, nullptr, &shader_);
        VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
        info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        info.stage.module = shader_;
        info.stage.pName = "main";
        info.layout = layout_;
        ASSERT_EQ(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
                  VK_SUCCESS);
        bind_buffer();
    }

    void bind_buffer() {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
        VkDescriptorPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
        pool_info.maxSets = 1;
        pool_info.poolSizeCount = 1;
        pool_info.pPoolSizes = &size;
        vkCreateDescriptorPool(device_, &pool_info, nullptr, &descriptor_pool_);
        VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
        allocate.descriptorPool = descriptor_pool_;
        allocate.descriptorSetCount = 1;
        allocate.pSetLayouts = &set_layout_;
        ASSERT_EQ(vkAllocateDescriptorSets(device_, &allocate, &set_), VK_SUCCESS);
        const VkDescriptorBufferInfo buffer{buffer_, 0, VK_WHOLE_SIZE};
        VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        write.dstSet = set_;
        write.descriptorCount = 1;
        write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = &buffer;
        vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
    }

    void begin_commands() {
        const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        ASSERT_EQ(vkCreateCommandPool(device_, &pool, nullptr, &pool_), VK_SUCCESS);
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_;
        allocate.commandBufferCount = 1;
        ASSERT_EQ(vkAllocateCommandBuffers(device_, &allocate, &commands_), VK_SUCCESS);
        const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        ASSERT_EQ(vkBeginCommandBuffer(commands_, &begin), VK_SUCCESS);
    }

    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    VkDevice device_ = nullptr;
    VkQueue queue_ = nullptr;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkShaderModule shader_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = nullptr;
};

TEST_F(Drivers, TheDriverAskedForRuns) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical_, &properties);
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, extensions.data());
    bool coopmat = false;
    for (const VkExtensionProperties& extension : extensions)
        coopmat |= std::string(extension.extensionName) == VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;

    const std::string driver = environment("FOVEA_TEST_DRIVER");
    const std::string device = properties.deviceName;
    RecordProperty("device", device);
    if (driver == "lavapipe" || driver == "lavapipe26") {
        EXPECT_NE(device.find("llvmpipe"), std::string::npos) << device;
    }
    if (driver == "lavapipe26") {
        EXPECT_TRUE(coopmat) << device;
    }
    if (driver == "swiftshader") {
        EXPECT_NE(device.find("SwiftShader"), std::string::npos) << device;
    }
}

TEST_F(Drivers, TheValidationLayerIsTheNewOne) {
    if (environment("VK_LAYER_PATH").empty())
        GTEST_SKIP() << "no private tools folder: the system's layer is used";
    uint32_t count = 0;
    vkEnumerateInstanceLayerProperties(&count, nullptr);
    std::vector<VkLayerProperties> layers(count);
    vkEnumerateInstanceLayerProperties(&count, layers.data());
    uint32_t version = 0;
    for (const VkLayerProperties& layer : layers)
        if (std::string(layer.layerName) == "VK_LAYER_KHRONOS_validation") version = layer.specVersion;
    EXPECT_GE(version, VK_MAKE_API_VERSION(0, 1, 4, 309));
}

TEST_F(Drivers, ARaceOfTwoFillsIsReported) {
    fill();
    fill();
    submit();
    EXPECT_TRUE(hazard_reported()) << all_messages();
}

// Layers 1.4 report this one only with the shader-access heuristic on.
TEST_F(Drivers, ARaceOfAFillAndADispatchIsReported) {
    fill();
    dispatch();
    submit();
    EXPECT_TRUE(hazard_reported()) << all_messages();
}

// Only the layer's instrumented shaders see it. They report the write and let it happen.
TEST_F(Drivers, AWriteBeyondTheBufferIsReported) {
    if (environment("VK_KHRONOS_VALIDATION_GPUAV_ENABLE").empty())
        GTEST_SKIP() << "this is for the run with instrumented shaders, drivers_gpu_av";
    messages_.clear();  // the layer says which features it adds to the device
    dispatch(kBufferBytes / (4 * 64) + 1);
    submit();
    EXPECT_NE(all_messages().find("out of bounds"), std::string::npos) << all_messages();
}

TEST_F(Drivers, CorrectBarriersGiveNoMessage) {
    fill();
    barrier(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
    fill();
    barrier(VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT);
    dispatch();
    submit();
    EXPECT_TRUE(messages_.empty()) << all_messages();
}

}  // namespace
