#include "gpu/imgui_backend.hpp"

#include <imgui.h>
#include <imgui_impl_vulkan.h>

namespace fovea::visualizer {

Result<std::unique_ptr<ImGuiBackend>> ImGuiBackend::create(GpuDevice& device, VkRenderPass render_pass,
                                                           uint32_t image_count, float scale,
                                                           const std::string& rare) {
    std::unique_ptr<ImGuiBackend> backend(new ImGuiBackend(device));
    if (!device.has_vulkan()) {
        ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
        if (Result<void> r = backend->reload_fonts(scale, rare); !r) return r.error();
        return backend;
    }
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 16};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT;
    pool.maxSets = 16;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    if (VkResult r = vkCreateDescriptorPool(device.device(), &pool, nullptr, &backend->pool_))
        return vulkan_error("vkCreateDescriptorPool", r);

    VkInstance instance = device.instance();
    ImGui_ImplVulkan_LoadFunctions(
        [](const char* name, void* user) -> PFN_vkVoidFunction {
            if (const PFN_vkVoidFunction found = vkGetInstanceProcAddr(*static_cast<VkInstance*>(user), name))
                return found;
            // ImGui's window helpers ask for functions of surfaces, which a device without a window lacks.
            // They are not used here, but none may be missing.
            return [] {};
        },
        &instance);
    ImGui_ImplVulkan_InitInfo info{};
    info.Instance = device.instance();
    info.PhysicalDevice = device.physical();
    info.Device = device.device();
    info.QueueFamily = device.queue_family();
    info.Queue = device.queue();
    info.DescriptorPool = backend->pool_;
    info.MinImageCount = info.ImageCount = image_count;
    info.MSAASamples = VK_SAMPLE_COUNT_1_BIT;
    if (!ImGui_ImplVulkan_Init(&info, render_pass))
        return Error{FOVEA_VULKAN_ERROR, "ImGui_ImplVulkan_Init",
                     "Dear ImGui could not use the Vulkan device"};
    backend->ready_ = true;
    if (Result<void> r = backend->reload_fonts(scale, rare); !r) return r.error();
    return backend;
}

Result<void> ImGuiBackend::reload_fonts(float scale, const std::string& rare) {
    ImGui::GetIO().Fonts->Clear();
    fonts_ = load_fonts(scale, rare);
    if (!device_.has_vulkan()) {
        // The painter reads the atlas itself.
        unsigned char* pixels = nullptr;
        int width = 0, height = 0;
        ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
        return {};
    }
    if (!ImGui_ImplVulkan_CreateFontsTexture())
        return Error{FOVEA_VULKAN_ERROR, "ImGui_ImplVulkan_CreateFontsTexture",
                     "the font texture could not be made"};
    return {};
}

ImGuiBackend::~ImGuiBackend() {
    if (!device_.has_vulkan()) return;
    vkDeviceWaitIdle(device_.device());
    if (ready_) ImGui_ImplVulkan_Shutdown();
    vkDestroyDescriptorPool(device_.device(), pool_, nullptr);
}

void ImGuiBackend::new_frame() {
    if (device_.has_vulkan()) ImGui_ImplVulkan_NewFrame();
    ImGui::NewFrame();
}

void ImGuiBackend::draw(VkCommandBuffer cmd) {
    ImGui::Render();
    if (device_.has_vulkan()) ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), cmd);
}

}  // namespace fovea::visualizer
