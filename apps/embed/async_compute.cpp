// Attention on a separate queue, in parallel to the main one: the main queue makes q, k and v and hands them
// to the compute family; Fovea attends there while the main queue makes the next ones; the result comes back.
// Three frames, two sets of buffers. Ownership changes hands by pairs of barriers, order is kept by one
// timeline semaphore for each queue.
//   fovea_embed_async
// Where a device has only one queue family, as software drivers have, both roles share it and there is
// nothing to hand over: Vulkan wants no transfer within a family.
#include <fovea/fovea_vulkan.h>
#include <volk.h>
#include <fovea/fovea.hpp>

#include "inputs.comp.h"

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1
#include <vk_mem_alloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr uint32_t kHeads = 4, kRows = 256, kDim = 32, kTensor = kHeads * kRows * kDim, kFrames = 3,
                   kSets = 2;
constexpr uint64_t kTensorBytes = kTensor * sizeof(float);

void require(bool ok, const char* what) {
    if (ok) return;
    std::fprintf(stderr, "fovea_embed_async: %s\n", what);
    std::exit(1);
}
void check(VkResult result, const char* what) { require(result >= VK_SUCCESS, what); }

struct Queue {
    uint32_t family = 0;
    VkQueue handle = VK_NULL_HANDLE;
    VkCommandPool commands = VK_NULL_HANDLE;
    VkSemaphore done = VK_NULL_HANDLE;  // timeline: frame f is done at f + 1
};
struct Buffers {  // The buffers of one set.
    VkBuffer inputs, outputs, workspace;
    VmaAllocation memory[3];
    const float* mapped;  // the outputs
    VkDescriptorSet producer;
    VkDescriptorPool descriptor_pool;  // where push descriptors are missing
};
struct Host {
    VkInstance instance;
    VkPhysicalDevice gpu;
    VkDevice device;
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan12Features features12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    FoveaEnabledFeatures enabled = foveaEnabledFeatures();  // these, and what Fovea can use
    Queue main, compute;
    VmaAllocator allocator;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline producer;
    VkDescriptorPool pool;
};

// The compute family is one that cannot draw, if there is one; else another queue of the main family, else
// the same.
void choose_queues(Host& h, std::vector<VkDeviceQueueCreateInfo>& queues) {
    static constexpr float kPriorities[2] = {1, 1};
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(h.gpu, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(h.gpu, &count, families.data());
    const auto find = [&](VkQueueFlags with, VkQueueFlags without, uint32_t otherwise) {
        for (uint32_t i = 0; i < count; ++i)
            if ((families[i].queueFlags & with) == with && !(families[i].queueFlags & without)) return i;
        return otherwise;
    };
    h.main.family = find(VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT, 0, 0);
    h.compute.family = find(VK_QUEUE_COMPUTE_BIT, VK_QUEUE_GRAPHICS_BIT, h.main.family);
    const bool one_family = h.main.family == h.compute.family;
    const uint32_t of_main = one_family ? std::min(2u, families[h.main.family].queueCount) : 1;
    queues.push_back(
        {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, h.main.family, of_main, kPriorities});
    if (!one_family)
        queues.push_back(
            {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, h.compute.family, 1, kPriorities});
    std::printf("queues: main family %u, compute family %u%s\n", h.main.family, h.compute.family,
                !one_family    ? ""
                : of_main == 2 ? ", another queue of it"
                               : ", the same queue");
}

void open_queue(const Host& h, Queue& q, uint32_t index) {
    vkGetDeviceQueue(h.device, q.family, index, &q.handle);
    const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .queueFamilyIndex = q.family};
    check(vkCreateCommandPool(h.device, &pool, nullptr, &q.commands), "no command pool");
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
    check(vkCreateSemaphore(h.device, &semaphore, nullptr, &q.done), "no timeline semaphore");
}

void open_device(Host& h) {
    require(volkInitialize() == VK_SUCCESS, "no Vulkan loader");
    const VkApplicationInfo app{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                      .pApplicationInfo = &app};
    check(vkCreateInstance(&create, nullptr, &h.instance), "no Vulkan driver");
    volkLoadInstance(h.instance);
    uint32_t count = 1;
    require(vkEnumeratePhysicalDevices(h.instance, &count, &h.gpu) >= 0 && count, "no Vulkan device");
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(h.gpu, &properties);
    require(properties.apiVersion >= VK_API_VERSION_1_2, "the device is older than Vulkan 1.2");
    h.features12.timelineSemaphore = VK_TRUE;
    h.features.pNext = &h.features12;
    h.enabled.features = &h.features;
    FoveaRecommendedFeatures recommended = foveaRecommendedFeatures();
    fovea::Diag diag;
    require(foveaQueryRecommendedFeatures(vkGetInstanceProcAddr, h.instance, VK_API_VERSION_1_2, h.gpu,
                                          nullptr, &recommended, &diag) == FOVEA_OK,
            diag.text);
    require(foveaEnableRecommendedFeatures(&recommended, &h.enabled, &diag) == FOVEA_OK, diag.text);
    std::vector<VkDeviceQueueCreateInfo> queues;
    choose_queues(h, queues);
    const VkDeviceCreateInfo device{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                    .pNext = foveaEnabledFeatures2(&h.enabled),
                                    .queueCreateInfoCount = uint32_t(queues.size()),
                                    .pQueueCreateInfos = queues.data(),
                                    .enabledExtensionCount = h.enabled.extension_count,
                                    .ppEnabledExtensionNames = h.enabled.extensions};
    check(vkCreateDevice(h.gpu, &device, nullptr, &h.device), "the device could not be opened");
    volkLoadDevice(h.device);
    open_queue(h, h.main, 0);
    open_queue(h, h.compute, queues.size() == 1 && queues[0].queueCount == 2 ? 1 : 0);
    const VmaVulkanFunctions functions{.vkGetInstanceProcAddr = vkGetInstanceProcAddr,
                                       .vkGetDeviceProcAddr = vkGetDeviceProcAddr};
    const VmaAllocatorCreateInfo allocator{.physicalDevice = h.gpu,
                                           .device = h.device,
                                           .pVulkanFunctions = &functions,
                                           .instance = h.instance,
                                           .vulkanApiVersion = VK_API_VERSION_1_2};
    check(vmaCreateAllocator(&allocator, &h.allocator), "no allocator");
}

void make_producer(Host& h) {
    const VkDescriptorSetLayoutBinding slot{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                            VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    const VkDescriptorSetLayoutCreateInfo slots{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &slot};
    check(vkCreateDescriptorSetLayout(h.device, &slots, nullptr, &h.set_layout), "no set layout");
    const VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                            .setLayoutCount = 1,
                                            .pSetLayouts = &h.set_layout};
    check(vkCreatePipelineLayout(h.device, &layout, nullptr, &h.layout), "no pipeline layout");
    const VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                        .codeSize = sizeof kInputsShader,
                                        .pCode = kInputsShader};
    VkComputePipelineCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                       .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                 .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                 .pName = "main"},
                                       .layout = h.layout};
    check(vkCreateShaderModule(h.device, &code, nullptr, &create.stage.module), "no shader");
    check(vkCreateComputePipelines(h.device, VK_NULL_HANDLE, 1, &create, nullptr, &h.producer),
          "no pipeline");
    vkDestroyShaderModule(h.device, create.stage.module, nullptr);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSets};
    const VkDescriptorPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                          .maxSets = kSets,
                                          .poolSizeCount = 1,
                                          .pPoolSizes = &size};
    check(vkCreateDescriptorPool(h.device, &pool, nullptr, &h.pool), "no descriptor pool");
}

Buffers make_buffers(const Host& h, const FoveaPlanInfo& info) {
    Buffers b{};
    const auto make = [&](uint64_t bytes, VkBuffer& buffer, VmaAllocation& memory,
                          VmaAllocationInfo* mapped) {
        const VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                        .size = bytes,
                                        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
        VmaAllocationCreateInfo where{.usage = VMA_MEMORY_USAGE_AUTO};
        if (mapped)
            where.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
        check(vmaCreateBuffer(h.allocator, &create, &where, &buffer, &memory, mapped), "no memory");
    };
    VmaAllocationInfo mapped;
    make(3 * kTensorBytes, b.inputs, b.memory[0], nullptr);
    make(kTensorBytes, b.outputs, b.memory[1], &mapped);
    make(std::max<uint64_t>(info.workspace_bytes, 16), b.workspace, b.memory[2], nullptr);
    b.mapped = static_cast<const float*>(mapped.pMappedData);
    const VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr,
                                               h.pool, 1, &h.set_layout};
    check(vkAllocateDescriptorSets(h.device, &allocate, &b.producer), "no descriptor set");
    const VkDescriptorBufferInfo range{b.inputs, 0, 3 * kTensorBytes};
    const VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                     .dstSet = b.producer,
                                     .descriptorCount = 1,
                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .pBufferInfo = &range};
    vkUpdateDescriptorSets(h.device, 1, &write, 0, nullptr);
    const uint32_t sets = uint32_t(info.slice_count) * info.dispatches_per_slice;
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * FOVEA_MAX_DISPATCH_BINDINGS};
    const VkDescriptorPoolCreateInfo descriptor_pool{
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, sets, 1, &size};
    check(vkCreateDescriptorPool(h.device, &descriptor_pool, nullptr, &b.descriptor_pool),
          "no descriptor pool");
    return b;
}

// One half of a hand-over; the same call is recorded on both queues, first on the one that gives.
// Within a family it is an ordinary barrier.
void cmd_hand_over(VkCommandBuffer cmd, VkBuffer buffer, const Queue& from, const Queue& to,
                   const Queue& here, VkPipelineStageFlags to_stage, VkAccessFlags to_access) {
    const bool transfer = from.family != to.family;
    const bool gives = !transfer || &here == &from, takes = !transfer || &here == &to;
    const VkBufferMemoryBarrier barrier{
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
        .srcAccessMask = gives ? VkAccessFlags{VK_ACCESS_SHADER_WRITE_BIT} : 0,
        .dstAccessMask = takes ? to_access : 0,
        .srcQueueFamilyIndex = transfer ? from.family : VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = transfer ? to.family : VK_QUEUE_FAMILY_IGNORED,
        .buffer = buffer,
        .size = VK_WHOLE_SIZE};
    vkCmdPipelineBarrier(cmd,
                         gives ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         takes ? to_stage : VkPipelineStageFlags{VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT}, 0, 0,
                         nullptr, 1, &barrier, 0, nullptr);
}

VkCommandBuffer begin(const Host& h, const Queue& q) {
    const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = q.commands,
                                               .commandBufferCount = 1};
    VkCommandBuffer cmd;
    check(vkAllocateCommandBuffers(h.device, &allocate, &cmd), "no command buffer");
    const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(cmd, &info);
    return cmd;
}

// Waits for `value` of the other queue (0: for nothing) and signals this queue's `signal`.
void submit(const Queue& q, VkCommandBuffer cmd, const Queue& other, uint64_t value, uint64_t signal) {
    check(vkEndCommandBuffer(cmd), "recording failed");
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               .waitSemaphoreValueCount = 1,
                                               .pWaitSemaphoreValues = &value,
                                               .signalSemaphoreValueCount = 1,
                                               .pSignalSemaphoreValues = &signal};
    const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = 1,
                            .pWaitSemaphores = &other.done,
                            .pWaitDstStageMask = &all,
                            .commandBufferCount = 1,
                            .pCommandBuffers = &cmd,
                            .signalSemaphoreCount = 1,
                            .pSignalSemaphores = &q.done};
    check(vkQueueSubmit(q.handle, 1, &info, VK_NULL_HANDLE), "the submission failed");
}

// The main queue makes the inputs of frame f, and gives them away. This set's last attention must be over;
// its inputs need no way back, because they are written whole.
void produce(const Host& h, const Buffers& b, uint64_t f) {
    const VkCommandBuffer cmd = begin(h, h.main);
    vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, h.producer);
    vkCmdBindDescriptorSets(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, h.layout, 0, 1, &b.producer, 0, nullptr);
    vkCmdDispatch(cmd, 3 * kTensor / 64, 1, 1);
    cmd_hand_over(cmd, b.inputs, h.main, h.compute, h.main, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                  VK_ACCESS_SHADER_READ_BIT);
    submit(h.main, cmd, h.compute, f >= kSets ? f - kSets + 1 : 0, f + 1);
}

// The compute queue takes the inputs of frame f and attends. A host barrier makes the result visible to the
// CPU; a renderer would hand `outputs` back to the main queue in the same way as `inputs`.
void attend(const Host& h, const Buffers& b, FoveaPlan plan, uint64_t f) {
    const VkCommandBuffer cmd = begin(h, h.compute);
    if (h.main.family != h.compute.family)
        cmd_hand_over(cmd, b.inputs, h.main, h.compute, h.compute, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                      VK_ACCESS_SHADER_READ_BIT);
    FoveaPlanInfo info{.struct_size = sizeof info};
    foveaGetPlanInfo(plan, &info, nullptr);
    FoveaBuffer bindings[FOVEA_BIND_O + 1];
    for (uint32_t i = 0; i < FOVEA_BIND_O; ++i) bindings[i] = {b.inputs, i * kTensorBytes, kTensorBytes};
    bindings[FOVEA_BIND_O] = {b.outputs, 0, kTensorBytes};
    FoveaRecord record{
        .struct_size = sizeof record, .binding_count = FOVEA_BIND_O + 1, .cmd = cmd, .bindings = bindings};
    record.workspace = {b.workspace, 0, std::max<uint64_t>(info.workspace_bytes, 16)};
    vkResetDescriptorPool(h.device, b.descriptor_pool, 0);
    record.descriptor_pool.pool = b.descriptor_pool;
    fovea::Diag diag;
    require(foveaCmdRun(plan, &record, &diag) == FOVEA_OK, diag.text);
    const VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                  VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &to_host, 0, nullptr, 0, nullptr);
    submit(h.compute, cmd, h.main, f + 1, f + 1);
}

void wait(const Host& h, const Queue& q, uint64_t value) {
    const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &q.done,
                                   .pValues = &value};
    require(vkWaitSemaphores(h.device, &info, 60'000'000'000) == VK_SUCCESS, "a queue did not finish");
}

// The last rows of each head, in plain loops over the values that inputs.comp makes.
float largest_difference(const float* o) {
    std::vector<float> x(3 * kTensor);
    for (uint32_t i = 0; i < x.size(); ++i) x[i] = float((i * 2654435761u) >> 8) / 8388608.0f - 1.0f;
    float largest = 0;
    for (uint32_t head = 0; head < kHeads; ++head) {
        const uint32_t first = head * kRows, row = first + kRows - 1;
        std::vector<double> sum(kDim + 1);
        for (uint32_t j = first; j <= row; ++j) {
            double dot = 0;
            for (uint32_t c = 0; c < kDim; ++c) dot += double(x[row * kDim + c]) * x[kTensor + j * kDim + c];
            const double weight = std::exp(dot / std::sqrt(double(kDim)));
            for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * x[2 * kTensor + j * kDim + c];
            sum[kDim] += weight;
        }
        for (uint32_t c = 0; c < kDim; ++c)
            largest = std::fmax(largest, std::fabs(o[row * kDim + c] - float(sum[c] / sum[kDim])));
    }
    return largest;
}

void close(Host& h, const Buffers (&sets)[kSets]) {
    for (const Buffers& b : sets) {
        vkDestroyDescriptorPool(h.device, b.descriptor_pool, nullptr);
        const VkBuffer buffers[] = {b.inputs, b.outputs, b.workspace};
        for (int i = 0; i < 3; ++i) vmaDestroyBuffer(h.allocator, buffers[i], b.memory[i]);
    }
    vkDestroyDescriptorPool(h.device, h.pool, nullptr);
    vkDestroyPipeline(h.device, h.producer, nullptr);
    vkDestroyPipelineLayout(h.device, h.layout, nullptr);
    vkDestroyDescriptorSetLayout(h.device, h.set_layout, nullptr);
    for (const Queue& q : {h.main, h.compute}) {
        vkDestroyCommandPool(h.device, q.commands, nullptr);
        vkDestroySemaphore(h.device, q.done, nullptr);
    }
    vmaDestroyAllocator(h.allocator);
    vkDestroyDevice(h.device, nullptr);
    vkDestroyInstance(h.instance, nullptr);
}

}  // namespace

int main() {
    Host h{};
    open_device(h);
    make_producer(h);

    const FoveaVulkanDevice adopted{.struct_size = sizeof adopted,
                                    .api_version = VK_API_VERSION_1_2,
                                    .instance = h.instance,
                                    .physical_device = h.gpu,
                                    .device = h.device,
                                    .get_instance_proc_addr = vkGetInstanceProcAddr,
                                    .enabled_features = foveaEnabledFeatures2(&h.enabled),
                                    .enabled_extensions = h.enabled.extensions,
                                    .enabled_extension_count = h.enabled.extension_count};
    FoveaContext context = nullptr;
    fovea::Diag diag;
    require(foveaCreateContext(&adopted, &context, &diag) == FOVEA_OK, diag.text);
    FoveaDeviceProperties properties = foveaDeviceProperties();
    foveaContextProperties(context, &properties, &diag);
    fovea::Attention call;
    call.batch(1).heads(kHeads).lengths(kRows, kRows).dims(kDim).causal();
    fovea::Result<fovea::Plan> plan = fovea::plan_attention(properties, call);
    require(plan.has_value(), "no plan");
    require(foveaCompilePlan(context, plan->get(), &diag) == FOVEA_OK, diag.text);

    const Buffers sets[kSets] = {make_buffers(h, plan->info()), make_buffers(h, plan->info())};
    float difference = 0;
    for (uint64_t f = 0; f < kFrames; ++f) {
        const Buffers& b = sets[f % kSets];
        produce(h, b, f);
        if (f >= kSets) {  // the set is used again: read its result before it is written anew
            wait(h, h.compute, f - kSets + 1);
            difference = std::fmax(difference, largest_difference(b.mapped));
        }
        attend(h, b, plan->get(), f);
    }
    wait(h, h.compute, kFrames);
    for (const Buffers& b : sets) difference = std::fmax(difference, largest_difference(b.mapped));
    std::printf("attention of %u frames beside the main queue: largest difference %.2g\n", kFrames,
                difference);
    require(difference < 2e-6f, "the result is wrong");

    vkDeviceWaitIdle(h.device);
    *plan = {};  // plans before their context, the context before its device
    foveaDestroyContext(context);
    close(h, sets);
}
