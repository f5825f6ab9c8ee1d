#include "codegen.hpp"

#include "runtime/vulkan_device.hpp"
#include "shaders/interface.h"

#include <cstring>
#include <map>

namespace fovea::app {
namespace {

// Where each driver of Mesa says what. The first that a driver has counts.
struct StatisticName {
    const char* name;
    uint64_t PipelineReport::*to;
};
constexpr StatisticName kStatistics[] = {
    // RADV
    {"VGPRs", &PipelineReport::registers},
    {"Spilled VGPRs", &PipelineReport::spills},
    {"Scratch size", &PipelineReport::scratch_bytes},
    {"LDS size", &PipelineReport::shared_bytes},
    {"Subgroups per SIMD", &PipelineReport::occupancy},
    {"Instructions", &PipelineReport::instructions},
    {"Inverse Throughput", &PipelineReport::cycles},
    // NVK. What it spills goes to other registers first, which costs little.
    {"Number of GPRs", &PipelineReport::registers},
    {"Spills to memory", &PipelineReport::spills},
    {"Max warps/SM", &PipelineReport::occupancy},
    {"Instruction count", &PipelineReport::instructions},
    {"Static cycle count", &PipelineReport::cycles},
    // Turnip. STP stores to memory of the thread's own.
    {"Registers used", &PipelineReport::registers},
    {"STP Count", &PipelineReport::spills},
    {"Max Waves Per Core", &PipelineReport::occupancy},
    {"Instruction Count", &PipelineReport::instructions},
    // ANV. The register file is the same for every kernel, so occupancy does not vary.
    {"Max live registers", &PipelineReport::registers},
    {"Spills", &PipelineReport::spills},
    {"Scratch Memory Size", &PipelineReport::scratch_bytes},
    {"Workgroup Memory Size", &PipelineReport::shared_bytes},
    {"Cycles", &PipelineReport::cycles},
    {"Cycle Count", &PipelineReport::cycles},
};

uint64_t number_of(const VkPipelineExecutableStatisticKHR& s) {
    switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
            return s.value.b32;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
            return uint64_t(s.value.f64);
        default:
            return s.value.u64;
    }
}

// Multiply-adds of a lane in a block of keys: scores, then sums. Only flash without matrices has loops whose
// turns the listing does not show.
std::vector<double> expected_products(const FoveaDispatch& d, std::string_view kernel, uint32_t dim) {
    if (kernel.substr(0, 5) != "flash" || kernel.find("coopmat") != kernel.npos ||
        d.spec[FOVEA_SPEC_PARTS] == 0)
        return {};
    const double threads = d.spec[FOVEA_SPEC_THREADS], rows = d.spec[FOVEA_SPEC_ROWS];
    const double sums = rows / d.spec[FOVEA_SPEC_PARTS] * 4 * d.spec[FOVEA_SPEC_COLUMN_QUADS];
    return {rows * 4 * dim, sums * 4 * threads};
}

// Returns the key that is equal for two dispatches with the same pipeline.
std::string key_of(const FoveaDispatch& d, uint32_t dim) {
    std::string key =
        std::to_string(d.shader) + "/" + std::to_string(d.subgroup_size) + "/" + std::to_string(dim);
    for (uint32_t i = 0; i < d.spec_count; ++i) key += "." + std::to_string(d.spec[i]);
    return key;
}

}  // namespace

struct CodegenDevice::State {
    std::unique_ptr<runtime::Instance> instance;
    std::unique_ptr<runtime::VulkanDevice> device;
    FoveaDeviceProperties properties{};
    std::string name;
    std::map<std::string, PipelineReport> known;

    template <class Function>
    Function call(const char* function) const {
        return reinterpret_cast<Function>(instance->vk().vkGetDeviceProcAddr(device->handle(), function));
    }

    Result<void> open(uint32_t number, bool validate) {
        auto made = runtime::Instance::create(validate);
        if (!made) return made.error();
        instance = std::move(*made);
        const std::vector<VkPhysicalDevice>& all = instance->physical_devices();
        if (number == 0 || number > all.size())
            return Error{FOVEA_INVALID_ARGUMENT, "device", "this machine does not have that Vulkan device"};
        runtime::DeviceWishes wishes;
        wishes.pipeline_statistics = true;
        auto opened = runtime::VulkanDevice::open(*instance, all[number - 1], wishes);
        if (!opened) return opened.error();
        device = std::move(*opened);
        properties = device->properties();
        name = device->vulkan_properties().deviceName;
        if (!device->has_pipeline_statistics())
            return Error{FOVEA_UNSUPPORTED, "device",
                         name + ": its driver has no VK_KHR_pipeline_executable_properties"};
        return {};
    }

    // A layout that binds what the dispatch binds, as a host that dispatches by itself would make it.
    Result<VkPipeline> create(const FoveaDispatch& d, VkDescriptorSetLayout& set, VkPipelineLayout& layout,
                              bool mix) {
        const VkDevice handle = device->handle();
        VkDescriptorSetLayoutBinding bindings[FOVEA_MAX_DISPATCH_BINDINGS];
        for (uint32_t i = 0; i < d.binding_count; ++i)
            bindings[i] = {d.bindings[i].slot, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                           VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
        VkDescriptorSetLayoutCreateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
        sets.flags = properties.features & FOVEA_FEATURE_PUSH_DESCRIPTORS
                         ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR
                         : 0;
        sets.bindingCount = d.binding_count;
        sets.pBindings = bindings;
        VkResult r = call<PFN_vkCreateDescriptorSetLayout>("vkCreateDescriptorSetLayout")(handle, &sets,
                                                                                          nullptr, &set);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateDescriptorSetLayout");
        const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, d.push_words * 4};
        VkPipelineLayoutCreateInfo layouts{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
        layouts.setLayoutCount = 1;
        layouts.pSetLayouts = &set;
        layouts.pushConstantRangeCount = d.push_words ? 1 : 0;
        layouts.pPushConstantRanges = &push;
        r = call<PFN_vkCreatePipelineLayout>("vkCreatePipelineLayout")(handle, &layouts, nullptr, &layout);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreatePipelineLayout");
        return create(d, layout, mix);
    }

    Result<VkPipeline> create(const FoveaDispatch& d, VkPipelineLayout layout, bool mix) {
        const VkDevice handle = device->handle();
        VkShaderModuleCreateInfo code{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
        const Result<std::vector<uint32_t>> words = dispatch_code(d);
        if (!words) return words.error();
        code.pCode = words->data();
        code.codeSize = words->size() * 4;
        VkShaderModule module = VK_NULL_HANDLE;
        VkResult r = call<PFN_vkCreateShaderModule>("vkCreateShaderModule")(handle, &code, nullptr, &module);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateShaderModule");
        VkSpecializationMapEntry entries[FOVEA_MAX_SPEC_CONSTANTS];
        for (uint32_t i = 0; i < d.spec_count; ++i) entries[i] = {i, i * 4, 4};
        const VkSpecializationInfo constants{d.spec_count, entries, d.spec_count * 4, d.spec};
        VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
            VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
        subgroup.requiredSubgroupSize = d.subgroup_size;
        VkComputePipelineCreateInfo create{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
        create.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
        if (mix) create.flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
        create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        if (d.subgroup_size) {
            if (properties.min_subgroup_size != properties.max_subgroup_size) create.stage.pNext = &subgroup;
            create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
        }
        create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
        create.stage.module = module;
        create.stage.pName = "main";
        create.stage.pSpecializationInfo = &constants;
        create.layout = layout;
        VkPipeline pipeline = VK_NULL_HANDLE;
        r = call<PFN_vkCreateComputePipelines>("vkCreateComputePipelines")(handle, VK_NULL_HANDLE, 1, &create,
                                                                           nullptr, &pipeline);
        call<PFN_vkDestroyShaderModule>("vkDestroyShaderModule")(handle, module, nullptr);
        if (r != VK_SUCCESS) return runtime::vk_error(r, "vkCreateComputePipelines");
        return pipeline;
    }

    Result<void> read_statistics(VkPipeline pipeline, PipelineReport& report) const {
        VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
        info.pipeline = pipeline;
        VkPipelineExecutablePropertiesKHR executable{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
        uint32_t count = 1;  // if a shader has several forms, the first
        VkResult r = call<PFN_vkGetPipelineExecutablePropertiesKHR>("vkGetPipelineExecutablePropertiesKHR")(
            device->handle(), &info, &count, &executable);
        if (r < VK_SUCCESS || count == 0) return runtime::vk_error(r, "vkGetPipelineExecutablePropertiesKHR");
        report.subgroup = executable.subgroupSize;
        VkPipelineExecutableInfoKHR of{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
        of.pipeline = pipeline;
        const auto list =
            call<PFN_vkGetPipelineExecutableStatisticsKHR>("vkGetPipelineExecutableStatisticsKHR");
        count = 0;
        r = list(device->handle(), &of, &count, nullptr);
        if (r < VK_SUCCESS) return runtime::vk_error(r, "vkGetPipelineExecutableStatisticsKHR");
        std::vector<VkPipelineExecutableStatisticKHR> all(
            count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
        r = list(device->handle(), &of, &count, all.data());
        if (r < VK_SUCCESS) return runtime::vk_error(r, "vkGetPipelineExecutableStatisticsKHR");
        for (const VkPipelineExecutableStatisticKHR& s : all)
            for (const StatisticName& n : kStatistics)
                if (strcmp(s.name, n.name) == 0) report.*n.to = number_of(s);
        return {};
    }

    // The final listing; empty where the driver has none under this name.
    std::string listing_of(VkPipeline pipeline) const {
        VkPipelineExecutableInfoKHR of{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
        of.pipeline = pipeline;
        const auto list = call<PFN_vkGetPipelineExecutableInternalRepresentationsKHR>(
            "vkGetPipelineExecutableInternalRepresentationsKHR");
        uint32_t count = 0;
        if (list(device->handle(), &of, &count, nullptr) < VK_SUCCESS) return {};
        std::vector<VkPipelineExecutableInternalRepresentationKHR> all(
            count, {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
        if (list(device->handle(), &of, &count, all.data()) < VK_SUCCESS) return {};
        std::vector<std::string> texts(count);
        for (uint32_t i = 0; i < count; ++i) texts[i].resize(all[i].dataSize), all[i].pData = texts[i].data();
        if (list(device->handle(), &of, &count, all.data()) < VK_SUCCESS) return {};
        for (uint32_t i = 0; i < count; ++i)
            if (strcmp(all[i].name, "Assembly") == 0) return texts[i];
        return {};
    }
};

CodegenDevice::CodegenDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
CodegenDevice::CodegenDevice(CodegenDevice&&) noexcept = default;
CodegenDevice::~CodegenDevice() = default;

Result<CodegenDevice> CodegenDevice::open(uint32_t number, bool validate) {
    auto state = std::make_unique<State>();
    if (Result<void> r = state->open(number, validate); !r) return r.error();
    return CodegenDevice(std::move(state));
}

const FoveaDeviceProperties& CodegenDevice::properties() const { return state_->properties; }
const std::string& CodegenDevice::name() const { return state_->name; }

Result<PipelineReport> CodegenDevice::compile(const FoveaDispatch& d, uint32_t dim, bool mix) {
    const std::string key = key_of(d, dim);
    if (const auto found = state_->known.find(key); found != state_->known.end()) return found->second;
    constexpr uint32_t kVendorAmd = 0x1002;
    mix = mix && state_->properties.vendor_id == kVendorAmd;
    PipelineReport report;
    report.kernel = foveaShaderName(d.shader);
    report.threads = d.spec[FOVEA_SPEC_THREADS];
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    const Result<VkPipeline> pipeline = state_->create(d, set, layout, mix);
    Result<void> read{};
    if (pipeline) {
        read = state_->read_statistics(*pipeline, report);
        if (read && mix) {
            const std::string listing = state_->listing_of(*pipeline);
            report.has_mix = !listing.empty();
            report.mix =
                mix_of_amd_listing(listing, report.subgroup, expected_products(d, report.kernel, dim));
        }
        state_->call<PFN_vkDestroyPipeline>("vkDestroyPipeline")(state_->device->handle(), *pipeline,
                                                                 nullptr);
    }
    state_->call<PFN_vkDestroyPipelineLayout>("vkDestroyPipelineLayout")(state_->device->handle(), layout,
                                                                         nullptr);
    state_->call<PFN_vkDestroyDescriptorSetLayout>("vkDestroyDescriptorSetLayout")(state_->device->handle(),
                                                                                   set, nullptr);
    if (!pipeline) return pipeline.error();
    if (!read) return read.error();
    state_->known.emplace(key, report);
    return report;
}

std::vector<std::string> CodegenDevice::take_messages() { return state_->instance->take_messages(); }

}  // namespace fovea::app
