// The window: noisy, denoised and reference side by side; sliders; the time of each frame; and the pixels
// averaged for a selected pixel.
#include "denoiser.hpp"
#include "headless.hpp"
#include "show.frag.h"
#include "show.vert.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_vulkan.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <deque>
#include <string>

namespace denoise {
namespace {

constexpr float kControlsHeight = 250, kGap = 6;
constexpr size_t kTimesShown = 160;
constexpr uint32_t kReferencePerFrame = 2;
constexpr const char* kTitles[] = {"noisy", "denoised by attention", "reference"};

PFN_vkVoidFunction load_function(const char* name, void* user) {
    return vkGetInstanceProcAddr(static_cast<VkInstance>(user), name);
}

// Dear ImGui's back ends, which take the renderer's device as Fovea does.
class Gui {
  public:
    Gui(const Gpu& gpu, const Canvas& canvas, GLFWwindow* window) : gpu_(gpu) {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1};
        const VkDescriptorPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                                .flags = VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT,
                                                .maxSets = 1,
                                                .poolSizeCount = 1,
                                                .pPoolSizes = &size};
        check(vkCreateDescriptorPool(gpu.device, &create, nullptr, &pool_), "no descriptor pool");
        ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr;
        ImGui_ImplGlfw_InitForVulkan(window, true);
        ImGui_ImplVulkan_LoadFunctions(load_function, gpu.instance);
        ImGui_ImplVulkan_InitInfo init{};
        init.Instance = gpu.instance;
        init.PhysicalDevice = gpu.physical;
        init.Device = gpu.device;
        init.QueueFamily = gpu.queue_family;
        init.Queue = gpu.queue;
        init.DescriptorPool = pool_;
        init.MinImageCount = init.ImageCount = kFramesInFlight;
        init.UseDynamicRendering = true;
        init.ColorAttachmentFormat = canvas.format();
        require(ImGui_ImplVulkan_Init(&init, VK_NULL_HANDLE), "no Dear ImGui");
    }
    ~Gui() {
        ImGui_ImplVulkan_Shutdown();
        ImGui_ImplGlfw_Shutdown();
        ImGui::DestroyContext();
        vkDestroyDescriptorPool(gpu_.device, pool_, nullptr);
    }
    Gui(const Gui&) = delete;

  private:
    const Gpu& gpu_;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

struct Panel {  // in pixels of the window
    float x, y, width, height;
};

class Window {
  public:
    Window(const Gpu& gpu, Canvas& canvas, GLFWwindow* window, const Options& o)
        : gpu_(gpu),
          canvas_(canvas),
          options_(o),
          denoiser_(gpu, o.width, o.height, o.slices),
          frames_(gpu, denoiser_.max_slices()),
          gui_(gpu, canvas, window),
          budget_ms_(float(o.budget_ms)) {
        denoiser_.settings = o.settings;
        show_ = gpu.triangles(kShowVertex, kShowFragment, canvas.format());
    }
    ~Window() { vkDestroyPipeline(gpu_.device, show_, nullptr); }

    bool draw();
    void look_at(uint32_t x, uint32_t y);
    std::string what_was_seen() const;  // describes the selected pixel

  private:
    Panel panel(uint32_t which) const;
    void controls();
    void overlays();
    void record(Frame& frame);

    const Gpu& gpu_;
    Canvas& canvas_;
    const Options& options_;
    Denoiser denoiser_;
    Frames frames_;
    Gui gui_;
    VkPipeline show_;
    float budget_ms_, speed_ = 1;
    bool paused_ = false, look_ = false;
    double seconds_ = 0;
    uint32_t look_x_ = 0, look_y_ = 0, slices_ = 0, frames_in_round_ = 0, frames_of_last_round_ = 0;
    std::vector<Contribution> contributions_;
    std::deque<float> frame_ms_, attention_ms_;
};

Panel Window::panel(uint32_t which) const {
    const float w = float(canvas_.extent().width), h = float(canvas_.extent().height) - kControlsHeight;
    const float aspect = float(denoiser_.width()) / float(denoiser_.height());
    const float width = std::max(8.0f, std::min((w - 2 * kGap) / 3, h * aspect));
    return {float(which) * (width + kGap), 0, width, width / aspect};
}

// Finishes the last round first, so that the weights belong to the shown picture, which does not change
// meanwhile.
void Window::look_at(uint32_t x, uint32_t y) {
    if (denoiser_.pictures() == 0) return;
    paused_ = true;
    if (!denoiser_.between_rounds())
        run_now(frames_, [&](Frame& frame) {
            denoiser_.cmd_attend(frame, kNoBudget);
            denoiser_.cmd_keep(frame.cmd, kNoisy, kShownNoisy);
            denoiser_.cmd_keep(frame.cmd, kDenoised, kShownDenoised);
        });
    look_ = true, look_x_ = x, look_y_ = y;
    contributions_ = denoiser_.contributions(x, y, frames_);
    std::sort(contributions_.begin(), contributions_.end(),
              [](const Contribution& a, const Contribution& b) { return a.weight > b.weight; });
}

std::string Window::what_was_seen() const {
    double old = 0, all = 0;
    for (const Contribution& c : contributions_) all += c.weight, old += c.history ? c.weight : 0;
    char text[128];
    std::snprintf(text, sizeof text,
                  "pixel %u, %u averaged %zu pixels, %.0f%% of the weight from the last frame", look_x_,
                  look_y_, contributions_.size(), 100 * old / all);
    return text;
}

void Window::controls() {
    const float top = panel(0).height + kGap;
    ImGui::SetNextWindowPos({0, top});
    ImGui::SetNextWindowSize({float(canvas_.extent().width), float(canvas_.extent().height) - top});
    ImGui::Begin("controls", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
    ImGui::Columns(3);
    ImGui::PushItemWidth(130);  // leaves room for the labels next to the sliders
    if (ImGui::Checkbox("pause (the reference converges)", &paused_) && !paused_) look_ = false;
    ImGui::SliderFloat("budget, ms a frame", &budget_ms_, 0.5f, 200, "%.1f", ImGuiSliderFlags_Logarithmic);
    ImGui::SliderFloat("speed", &speed_, 0, 4);
    const uint32_t one = 1, most = 4;
    ImGui::SliderScalar("samples a pixel", ImGuiDataType_U32, &denoiser_.settings.samples, &one, &most);
    ImGui::Text("%u of %u slices in this frame; the last round took %u frames", slices_,
                denoiser_.plan().slice_count(), frames_of_last_round_);
    ImGui::Text("reference: %u samples", denoiser_.reference_samples());
    ImGui::NextColumn();
    for (const Knob& knob : kKnobs) {
        ImGui::SetNextItemWidth(130);
        ImGui::SliderFloat(knob.label, &(denoiser_.settings.*knob.value), knob.least, knob.most);
    }
    ImGui::NextColumn();
    const auto plot = [](const char* name, const std::deque<float>& ms) {
        const std::vector<float> values(ms.begin(), ms.end());
        char now[32];
        std::snprintf(now, sizeof now, "%.2f ms", values.empty() ? 0.0 : double(values.back()));
        ImGui::PlotLines(name, values.data(), int(values.size()), 0, now, 0, FLT_MAX, {280, 40});
    };
    plot("frame", frame_ms_);
    plot("slices", attention_ms_);
    if (look_) {
        ImGui::TextWrapped("%s", what_was_seen().c_str());
        for (size_t i = 0; i < std::min<size_t>(4, contributions_.size()); ++i) {
            const Contribution& c = contributions_[i];
            ImGui::Text("  %.4f of %u, %u%s", double(c.weight), c.x, c.y, c.history ? ", last frame" : "");
        }
    } else {
        ImGui::TextUnformatted("click a pixel: which pixels were averaged for it?");
    }
    ImGui::PopItemWidth();
    ImGui::End();
}

// Titles, and the weights of the pixel that was clicked: this frame's over the noisy picture, which is what
// they weigh, the last frame's over the denoised one.
void Window::overlays() {
    ImDrawList* list = ImGui::GetForegroundDrawList();
    for (uint32_t i = 0; i < 3; ++i)
        list->AddText({panel(i).x + 4, panel(i).y + 2}, IM_COL32(255, 255, 255, 230), kTitles[i]);
    if (!look_) return;
    const auto cell = [&](uint32_t which, uint32_t x, uint32_t y, ImU32 color, bool filled) {
        const Panel p = panel(which);
        const float side = p.width / float(denoiser_.width());
        const ImVec2 from{p.x + float(x) * side, p.y + float(y) * side}, to{from.x + side, from.y + side};
        if (filled)
            list->AddRectFilled(from, to, color);
        else
            list->AddRect({from.x - 1, from.y - 1}, {to.x + 1, to.y + 1}, color);
    };
    for (const Contribution& c : contributions_) {
        const float share = std::sqrt(c.weight / contributions_.front().weight);
        if (share < 0.02f) continue;
        const int alpha = int(255 * share);
        cell(c.history ? 1 : 0, c.x, c.y,
             c.history ? IM_COL32(60, 220, 255, alpha) : IM_COL32(255, 160, 40, alpha), true);
    }
    for (uint32_t i = 0; i < 3; ++i) cell(i, look_x_, look_y_, IM_COL32(255, 255, 255, 255), false);
}

void Window::record(Frame& frame) {
    constexpr VkPipelineStageFlags2 kCompute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    constexpr VkPipelineStageFlags2 kFragment = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT;
    const VkCommandBuffer cmd = frame.cmd;
    cmd_shader_barrier(cmd, kCompute | kFragment, kCompute);  // waits for the frame before
    slices_ = 0;
    if (!paused_ || !denoiser_.between_rounds()) {
        if (denoiser_.between_rounds()) {
            denoiser_.cmd_trace(cmd, seconds_ += speed_ * options_.seconds_per_frame);
            frames_in_round_ = 0;
        }
        slices_ = denoiser_.cmd_attend(frame, budget_ms_ / 1000);
        ++frames_in_round_;
        if (denoiser_.between_rounds()) {  // only whole pictures are shown
            denoiser_.cmd_keep(cmd, kNoisy, kShownNoisy);
            denoiser_.cmd_keep(cmd, kDenoised, kShownDenoised);
            frames_of_last_round_ = frames_in_round_;
        }
    }
    denoiser_.cmd_reference(cmd, kReferencePerFrame);
    denoiser_.cmd_keep(cmd, kReference, kShownReference);
    cmd_shader_barrier(cmd, kCompute, kFragment);
    canvas_.cmd_begin_rendering(cmd);
    for (uint32_t i = 0; i < 3; ++i) {
        const Panel p = panel(i);
        const VkViewport viewport{p.x, p.y, p.width, p.height, 0, 1};
        const VkRect2D scissor{{int32_t(p.x), int32_t(p.y)}, {uint32_t(p.width), uint32_t(p.height)}};
        vkCmdSetViewport(cmd, 0, 1, &viewport);
        vkCmdSetScissor(cmd, 0, 1, &scissor);
        denoiser_.cmd_show(cmd, Plane(kShownNoisy + i), show_);
    }
    ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), cmd);
    canvas_.cmd_end_rendering(cmd);
}

bool Window::draw() {
    Frame& frame = frames_.next();
    FrameTime time;
    if (frames_.collect(frame, time)) {
        denoiser_.measured(time);
        frame_ms_.push_back(float(time.all_ms));
        attention_ms_.push_back(float(time.attention_ms()));
        if (frame_ms_.size() > kTimesShown) frame_ms_.pop_front(), attention_ms_.pop_front();
    }
    ImGui_ImplVulkan_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    controls();
    overlays();
    ImGui::Render();
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
        const ImVec2 at = ImGui::GetMousePos();
        for (uint32_t i = 0; i < 3; ++i) {
            const Panel p = panel(i);
            if (at.x >= p.x && at.x < p.x + p.width && at.y >= p.y && at.y < p.y + p.height)
                look_at(uint32_t((at.x - p.x) / p.width * float(denoiser_.width())),
                        uint32_t((at.y - p.y) / p.height * float(denoiser_.height())));
        }
    }
    Frame& drawn = frames_.next();  // inspecting a pixel has used its own frames
    frames_.collect(drawn, time);
    if (!canvas_.begin(drawn.index)) return false;
    frames_.begin(drawn);
    record(drawn);
    frames_.submit(drawn, &canvas_);
    canvas_.present();
    return true;
}

}  // namespace

void run_window(const Options& o) {
    require(glfwInit(), "no display (--headless runs without one)");
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    GLFWwindow* window = glfwCreateWindow(1290, 520, "Fovea: a denoiser by attention", nullptr, nullptr);
    require(window, "no window");
    uint32_t count = 0;
    const char** extensions = glfwGetRequiredInstanceExtensions(&count);
    require(extensions, "no Vulkan for windows");
    {
        const Gpu gpu({extensions, count}, true, kPasses);
        VkSurfaceKHR surface = VK_NULL_HANDLE;
        check(glfwCreateWindowSurface(gpu.instance, window, nullptr, &surface), "no surface");
        Canvas canvas(gpu, surface, {1290, 520});
        Window view(gpu, canvas, window, o);
        for (uint32_t drawn = 0; !glfwWindowShouldClose(window) && drawn < o.frames;) {
            glfwPollEvents();
            if (o.clicks && drawn == o.frames / 2) view.look_at(o.click_x, o.click_y);
            drawn += view.draw() && o.frames != Options{}.frames;  // --frames N ends by itself
        }
        vkDeviceWaitIdle(gpu.device);
        if (o.clicks) std::printf("%s\n", view.what_was_seen().c_str());
    }
    glfwDestroyWindow(window);
    glfwTerminate();
}

}  // namespace denoise
