#include "window.hpp"

#include "gpu/imgui_backend.hpp"
#include "gpu/swapchain.hpp"
#include "keys.hpp"
#include "panels/panels.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>

#include <cmath>

namespace fovea::visualizer {
namespace {

// Work for one frame while a large problem computes: about 4 ms at these FLOP/s, so that the window keeps its
// rate.
constexpr double kFrameSeconds = 4e-3, kSoftwareRate = 2e9, kHardwareRate = 2e11;
// Frames drawn after the last event, so that ImGui's hovering and layout settle; then the program sleeps.
constexpr int kSettleFrames = 4;

struct GlfwGuard {
    GLFWwindow* window = nullptr;
    bool ready = false, imgui = false;
    ~GlfwGuard() {
        if (imgui) ImGui_ImplGlfw_Shutdown();
        if (ImGui::GetCurrentContext()) ImGui::DestroyContext();
        if (window) glfwDestroyWindow(window);
        if (ready) glfwTerminate();
    }
};

Error glfw_error(const char* what) {
    const char* text = nullptr;
    glfwGetError(&text);
    return Error{FOVEA_UNSUPPORTED, "window", std::string(what) + (text ? std::string(": ") + text : "")};
}

Result<void> open_window(GlfwGuard& glfw, const Options& o, float& scale) {
    if (!glfwInit()) return glfw_error("there is no display; --screenshot FILE.png draws without one");
    glfw.ready = true;
    if (!glfwVulkanSupported()) return glfw_error("GLFW finds no Vulkan for windows");
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    float display_scale = 1;
    if (GLFWmonitor* monitor = glfwGetPrimaryMonitor())
        glfwGetMonitorContentScale(monitor, &display_scale, nullptr);
    scale = o.scale * std::fmax(display_scale, 1.0f);
    glfw.window = glfwCreateWindow(int(float(o.width) * scale), int(float(o.height) * scale), "Fovea",
                                   nullptr, nullptr);
    if (!glfw.window) return glfw_error("the window could not be opened");
    return {};
}

Result<void> draw_frame(Swapchain& swapchain, ImGuiBackend& backend, PanelContext& ui, double frame_flops,
                        GpuDevice& device, bool& computing) {
    const Result<VkCommandBuffer> cmd = swapchain.begin_frame();
    if (!cmd) return cmd.error();
    if (!*cmd) {
        const Result<bool> rebuilt = swapchain.rebuild();
        if (!rebuilt) return rebuilt.error();
        return {};
    }
    if (ui.session.needs_idle()) vkDeviceWaitIdle(device.device());
    const Result<bool> more = ui.session.update(*cmd, frame_flops);
    if (!more) return more.error();
    computing = *more;
    for (const VkBuffer buffer : ui.session.released) ui.matrices.forget(buffer);
    ui.session.released.clear();
    ui.matrices.begin_frame(*cmd, swapchain.extent());
    ImGui_ImplGlfw_NewFrame();
    backend.new_frame();
    handle_keys(ui);
    draw_main_window(ui);
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(palette(ui.session.theme).ground);
    swapchain.begin_pass(*cmd, {ground.x, ground.y, ground.z});
    backend.draw(*cmd);
    const Result<bool> shown = swapchain.end_frame(*cmd);
    if (!shown) return shown.error();
    if (!*shown)
        if (const Result<bool> rebuilt = swapchain.rebuild(); !rebuilt) return rebuilt.error();
    return {};
}

}  // namespace

Result<void> run_window(const Options& o) {
    GlfwGuard glfw;
    float scale = 1;
    if (Result<void> r = open_window(glfw, o, scale); !r) return r;
    uint32_t count = 0;
    const char** extensions = glfwGetRequiredInstanceExtensions(&count);
    GpuWishes wishes;
    wishes.instance_extensions.assign(extensions, extensions + count);
    wishes.present = true;
    wishes.vulkan_device = o.vulkan_device;
    wishes.validation = o.validation;
    const Result<std::unique_ptr<GpuDevice>> device = GpuDevice::open(wishes);
    if (!device) return device.error();
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    if (VkResult r = glfwCreateWindowSurface((*device)->instance(), glfw.window, nullptr, &surface))
        return vulkan_error("glfwCreateWindowSurface", r);
    const Result<std::unique_ptr<Swapchain>> swapchain = Swapchain::create(**device, surface);
    if (!swapchain) return swapchain.error();

    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
    apply_style(o.theme, scale);
    ImGui_ImplGlfw_InitForVulkan(glfw.window, true);
    glfw.imgui = true;
    const Result<std::unique_ptr<ImGuiBackend>> backend =
        ImGuiBackend::create(**device, (*swapchain)->render_pass(), (*swapchain)->image_count(), scale);
    if (!backend) return backend.error();
    const Result<std::unique_ptr<MatrixRenderer>> matrices =
        MatrixRenderer::create(**device, (*swapchain)->render_pass());
    if (!matrices) return matrices.error();
    ImGui::GetIO().FontDefault = (*backend)->fonts().body;

    Session session(**device, o.on_cpu);
    session.theme = o.theme;
    Settings settings = level_settings(o.level);
    if (o.text) settings.text = *o.text;
    session.change(settings);
    PanelContext ui{session, **matrices, (*backend)->fonts(), scale};
    const double rate = (*device)->facts().device_class == FOVEA_CLASS_CPU ? kSoftwareRate : kHardwareRate;
    bool computing = true;
    for (int settle = kSettleFrames; !glfwWindowShouldClose(glfw.window);) {
        // Nothing to compute and nothing moving: sleep until the next event.
        if (computing || settle > 0 || session.needs_idle()) {
            glfwPollEvents();
            --settle;
        } else {
            glfwWaitEvents();
            settle = kSettleFrames;
        }
        if (Result<void> r =
                draw_frame(**swapchain, **backend, ui, kFrameSeconds * rate, **device, computing);
            !r)
            return r;
    }
    vkDeviceWaitIdle((*device)->device());
    const std::vector<std::string> messages = (*device)->take_messages();
    if (!messages.empty())
        return Error{FOVEA_VULKAN_ERROR, "validation",
                     std::to_string(messages.size()) + " messages, the first: " + messages[0]};
    return {};
}

}  // namespace fovea::visualizer
