#include "data/autosave.hpp"
#include "data/session_file.hpp"
#include "data/text_file.hpp"
#include "data/window_settings.hpp"
#include "gpu/frame_clock.hpp"
#include "gpu/imgui_backend.hpp"
#include "gpu/swapchain.hpp"
#include "input.hpp"
#include "panels/panel_table.hpp"
#include "picture.hpp"
#include "run.hpp"
#include "texts/texts.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <imgui_impl_glfw.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace fovea::visualizer {
namespace {

// Work for one frame while a large problem computes: about 4 ms at these FLOP/s, so that the window keeps its
// rate.
constexpr double kFrameSeconds = 4e-3, kSoftwareRate = 2e9, kHardwareRate = 2e11;
// Frames drawn after the last event, so that ImGui's hovering and layout settle; then the program sleeps.
constexpr int kSettleFrames = 4;
// A thread's event comes a moment before its result, and may be all that comes.
constexpr double kThreadsSeconds = 0.05;
constexpr size_t kFramesInFlight = 2;  // number of frames in flight of Swapchain

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

// Said where a window cannot be had for want of Vulkan.
constexpr const char* kInstall =
    ". Install the driver of your GPU, or a software one (Debian: mesa-vulkan-drivers, libvulkan1); without "
    "one "
    "--screenshot FILE.png and --describe work on the CPU";

Error glfw_error(const std::string& what) {
    const char* text = nullptr;
    glfwGetError(&text);
    return Error{FOVEA_UNSUPPORTED, "window", what + (text ? std::string(": ") + text : "")};
}

Result<void> open_window(GlfwGuard& glfw, const Options& o, const WindowSettings& kept, float& scale) {
    if (!glfwInit())
        return glfw_error("this machine has no display; --screenshot FILE.png draws without one");
    glfw.ready = true;
    if (!glfwVulkanSupported())
        return glfw_error(std::string("a window needs Vulkan, and this machine has none") + kInstall);
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    float display_scale = 1;
    if (GLFWmonitor* monitor = glfwGetPrimaryMonitor())
        glfwGetMonitorContentScale(monitor, &display_scale, nullptr);
    scale = o.scale * std::fmax(display_scale, 1.0f);
    const uint32_t width = o.has_size ? o.width : kept.width, height = o.has_size ? o.height : kept.height;
    glfw.window = glfwCreateWindow(int(std::lround(float(width) * scale)),
                                   int(std::lround(float(height) * scale)), "Fovea", nullptr, nullptr);
    if (!glfw.window) return glfw_error("the window could not be opened");
    return {};
}

// Keeps a description of the window in a file, for people who cannot see it.
class Follower {
  public:
    explicit Follower(std::string path) : path_(std::move(path)) {}
    void update(const std::string& text) {
        if (text == last_) return;
        last_ = text;
        (void)write_text_file(path_, text);
    }

  private:
    std::string path_, last_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Window {
  public:
    explicit Window(const Options& options) : options_(options), follower_(options.follow) {}
    Result<void> open();
    Result<void> run();

  private:
    Result<void> open_device();
    void open_imgui();
    Result<void> open_drawing();
    Result<void> recover(const Error& lost);
    Result<void> draw_frame();
    Result<void> follow_ui();
    void keep_settings();
    void draw_wanted_picture();
    void wait_for_events();
    bool others_moved();
    std::string description();

    const Options& options_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    float scale_ = 1, display_scale_ = 1;
    Theme theme_ = Theme::dark;
    Autosave autosave_;
    WindowSettings kept_;  // settings of the run before, then of this one
    const bool system_motion_ = !wants_reduced_motion();
    EndSignals signals_;  // before every other thread
    // Destroyed in reverse: what draws before what it draws with, the window last.
    GlfwGuard glfw_;
    std::unique_ptr<GpuDevice> device_;
    std::unique_ptr<Swapchain> swapchain_;
    std::unique_ptr<ImGuiBackend> backend_;
    std::unique_ptr<MatrixRenderer> matrices_;
    std::unique_ptr<FrameClock> frame_clock_;
    std::unique_ptr<Workbench> bench_;
    Follower follower_;
    bool computing_ = true;
    WindowEvents events_;
    InputQueue input_;
    int settle_ = kSettleFrames;
    std::string rare_text_;
    uint64_t seen_steps_ = 0;
    bool tour_ = false;  // it is on its first way, until it is ended
    double first_frame_s_ = 0, first_frame_processor_s_ = 0;
    int losses_ = 0;
};

Result<void> Window::open() {
    const Result<WindowSettings> kept = autosave_.read_window();
    if (kept) kept_ = *kept;
    if (Result<void> r = open_window(glfw_, options_, kept_, scale_); !r) return r;
    display_scale_ = scale_;
    scale_ = display_scale_ * kept_.scale_factor;
    theme_ = options_.theme.value_or(kept_.theme);
    if (Result<void> r = open_device(); !r) return r;
    open_imgui();
    if (Result<void> r = open_drawing(); !r) return r;
    bench_ = std::make_unique<Workbench>(*device_, options_.on_cpu, int(kFramesInFlight),
                                         [] { glfwPostEmptyEvent(); });
    bench_->window.theme = theme_;
    bench_->window.layout = kept_.layout;
    bench_->window.scale_factor = kept_.scale_factor;
    bench_->window.motion = kept_.motion.value_or(system_motion_);
    if (!kept)
        bench_->window.tell("The window's settings of the run before could not be used (" +
                            kept.error().text +
                            "). Panels, size and theme are as at first, and are kept from now on.");
    tour_ = !autosave_.tour_was_ended();
    if (tour_) bench_->window.tour_step = 1;
    if (Result<void> r = keep_a(*device_, *bench_, options_); !r) return r;
    // A file that cannot be read is a line of the Problems panel, not the end.
    (void)apply_options(*bench_, options_);
    if (options_.files.empty() && !options_.text) autosave_.offer(*bench_);
    return {};
}

Result<void> Window::open_device() {
    uint32_t count = 0;
    const char** extensions = glfwGetRequiredInstanceExtensions(&count);
    GpuWishes wishes;
    wishes.instance_extensions.assign(extensions, extensions + count);
    wishes.present = true;
    wishes.vulkan_device = options_.vulkan_device;
    wishes.validation = options_.validation;
    wishes.memory_limit_bytes = options_.memory_limit_bytes;
    Result<std::unique_ptr<GpuDevice>> device = GpuDevice::open(wishes);
    if (!device) {
        Error error = device.error();
        error.text += kInstall;
        return error;
    }
    device_ = std::move(*device);
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    if (VkResult r = glfwCreateWindowSurface(device_->instance(), glfw_.window, nullptr, &surface))
        return vulkan_error("glfwCreateWindowSurface", r);
    Result<std::unique_ptr<Swapchain>> swapchain = Swapchain::create(*device_, surface);
    if (!swapchain) return swapchain.error();
    swapchain_ = std::move(*swapchain);
    return {};
}

void Window::open_imgui() {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
    // The key table walks over the panels.
    ImGui::GetCurrentContext()->ConfigNavWindowingKeyNext = ImGuiKey_None;
    ImGui::GetCurrentContext()->ConfigNavWindowingKeyPrev = ImGuiKey_None;
    apply_style(theme_, scale_);
    watch_events(glfw_.window, &events_);
    ImGui_ImplGlfw_InitForVulkan(glfw_.window, true);  // passes each event on to the watchers
    glfw_.imgui = true;
}

Result<void> Window::open_drawing() {
    Result<std::unique_ptr<ImGuiBackend>> backend = ImGuiBackend::create(
        *device_, swapchain_->render_pass(), swapchain_->image_count(), scale_, rare_text_);
    if (!backend) return backend.error();
    backend_ = std::move(*backend);
    Result<std::unique_ptr<MatrixRenderer>> matrices =
        MatrixRenderer::create(*device_, swapchain_->render_pass());
    if (!matrices) return matrices.error();
    matrices_ = std::move(*matrices);
    ImGui::GetIO().FontDefault = backend_->fonts().body;
    Result<std::unique_ptr<FrameClock>> clock = FrameClock::create(*device_, kFramesInFlight);
    if (!clock) return clock.error();
    frame_clock_ = std::move(*clock);
    return {};
}

// The device is lost with all its contents. The session goes on: on the reopened device, and after a second
// loss on the CPU, with the device only for drawing.
Result<void> Window::recover(const Error& lost) {
    autosave_.write_now(*bench_);
    if (++losses_ > 2) {
        Error error = lost;
        error.text += ", for the third time; the session is kept and the next start offers it";
        return error;
    }
    // Frames before may still run where the loss is another call's.
    vkDeviceWaitIdle(device_->device());
    WorkbenchCarry carried = bench_->carry();
    const bool on_cpu = bench_->computation.on_cpu() || losses_ > 1;
    bench_.reset();
    frame_clock_.reset();
    matrices_.reset();
    backend_.reset();
    swapchain_.reset();
    for (const std::string& message : device_->take_messages())
        carried.problems.report("validation", message, true);
    device_.reset();
    const auto refused = [&](const Error& error) {
        return Error{
            error.code, error.field,
            lost.text + ", and then " + error.text + "; the session is kept and the next start offers it",
            error.vk_result};
    };
    if (Result<void> r = open_device(); !r) return refused(r.error());
    if (Result<void> r = open_drawing(); !r) return refused(r.error());
    bench_ =
        std::make_unique<Workbench>(*device_, on_cpu, int(kFramesInFlight), [] { glfwPostEmptyEvent(); });
    bench_->take(std::move(carried));
    bench_->window.tell("The device was lost (" + lost.field +
                            ") and is open again; nothing of the session is gone." +
                            (on_cpu ? " Computing continues on the CPU." : ""),
                        !on_cpu);
    bench_->problems.report("device", lost.text, true);
    settle_ = kSettleFrames;
    computing_ = true;
    return {};
}

// Size of type, theme and full screen, where they have changed.
Result<void> Window::follow_ui() {
    const float scale = display_scale_ * bench_->window.scale_factor;
    if (scale != scale_ || bench_->window.theme != theme_) {
        theme_ = bench_->window.theme;
        apply_style(theme_, scale);
    }
    if (scale != scale_) {
        vkDeviceWaitIdle(device_->device());
        scale_ = scale;
        if (Result<void> r = backend_->reload_fonts(scale, rare_text_); !r) return r;
        ImGui::GetIO().FontDefault = backend_->fonts().body;
    }
    if (const std::string rare = rare_text(*bench_); rare != rare_text_) {
        rare_text_ = rare;
        vkDeviceWaitIdle(device_->device());
        if (Result<void> r = backend_->reload_fonts(scale_, rare); !r) return r;
        ImGui::GetIO().FontDefault = backend_->fonts().body;
    }
    const bool full = glfwGetWindowMonitor(glfw_.window) != nullptr;
    if (full == bench_->window.full_screen) return {};
    GLFWmonitor* monitor = glfwGetPrimaryMonitor();
    const GLFWvidmode* mode = monitor ? glfwGetVideoMode(monitor) : nullptr;
    if (!full && mode) {
        glfwSetWindowMonitor(glfw_.window, monitor, 0, 0, mode->width, mode->height, mode->refreshRate);
    } else if (full) {
        glfwSetWindowMonitor(glfw_.window, nullptr, 60, 60, int(float(options_.width) * display_scale_),
                             int(float(options_.height) * display_scale_), 0);
    }
    return {};
}

// Saves the window's settings if they have changed and nothing is being dragged.
void Window::keep_settings() {
    if (ImGui::IsAnyItemActive()) return;
    kept_.layout = bench_->window.layout;
    kept_.theme = bench_->window.theme;
    kept_.scale_factor = bench_->window.scale_factor;
    if (bench_->window.motion != kept_.motion.value_or(system_motion_)) kept_.motion = bench_->window.motion;
    int width = 0, height = 0;
    glfwGetWindowSize(glfw_.window, &width, &height);
    const bool full = glfwGetWindowMonitor(glfw_.window) || glfwGetWindowAttrib(glfw_.window, GLFW_MAXIMIZED);
    if (!full && width >= 320 && height >= 240) {
        kept_.width = uint32_t(std::lround(float(width) / display_scale_));
        kept_.height = uint32_t(std::lround(float(height) / display_scale_));
    }
    autosave_.write_window(kept_);
}

// Between two frames, with nothing in flight.
void Window::draw_wanted_picture() {
    if (bench_->window.wanted_picture.empty() || !bench_->computation.complete()) return;
    vkDeviceWaitIdle(device_->device());
    const std::string path = std::exchange(bench_->window.wanted_picture, "");
    const VkExtent2D extent = swapchain_->extent();
    const PictureLook& look = bench_->window.picture;
    const PictureSize size{uint32_t(float(extent.width) / scale_), uint32_t(float(extent.height) / scale_),
                           look.scale, false, look};
    const auto animated = std::exchange(bench_->window.motion, false);
    const int step = std::exchange(bench_->window.tour_step, 0);
    const Result<void> saved = save_picture(*bench_, size, path);
    bench_->window.motion = animated, bench_->window.tour_step = step;
    if (saved) {
        bench_->window.tell_done(fill(texts().files.saved, {path}));
    } else {
        bench_->problems.report(saved.error().field, saved.error().text, true);
        bench_->window.show(BottomTab::problems);
    }
    settle_ = kSettleFrames;
}

Result<void> Window::draw_frame() {
    const auto begin = std::chrono::steady_clock::now();
    const Result<VkCommandBuffer> cmd = swapchain_->begin_frame();
    if (!cmd) return cmd.error();
    if (!*cmd) {
        settle_ = kSettleFrames;
        const Result<bool> rebuilt = swapchain_->rebuild();
        if (!rebuilt) return rebuilt.error();
        return {};
    }
    if (ImGui::GetIO().NavVisible)
        std::erase_if(events_.keys, [](const KeyPress& press) { return walks(press.key); });
    if (!events_.keys.empty()) settle_ = kSettleFrames;
    run_keys(*bench_, events_.keys);
    for (const std::string& path : events_.dropped)
        if (open_any(*bench_, path) && bench_->document.settings().file)
            bench_->window.open_dialog(Dialog::import_sheet);
    events_.dropped.clear();
    if (tour_ && bench_->window.tour_step == 0) {
        tour_ = false;
        autosave_.keep_tour_ended();
    }
    bench_->view.show_other = ImGui::GetIO().KeyShift && !ImGui::GetIO().WantTextInput;
    if (Result<void> r = follow_ui(); !r) return r;
    // With this one comes the device's time of the frame whose place it takes.
    std::vector<FrameTime>& frames = bench_->window.frames;
    bench_->window.begin_frame();
    if (const double device_s = frame_clock_->begin(*cmd); frames.size() > kFramesInFlight)
        frames[frames.size() - 1 - kFramesInFlight].device_s = float(device_s);
    if (bench_->needs_idle()) vkDeviceWaitIdle(device_->device());
    const double rate = device_->properties().device_class == FOVEA_CLASS_CPU ? kSoftwareRate : kHardwareRate;
    const Result<bool> more = bench_->update(*cmd, kFrameSeconds * rate);
    if (!more) return more.error();
    computing_ = *more;
    for (const VkBuffer buffer : bench_->released) matrices_->forget(buffer);
    bench_->released.clear();
    matrices_->begin_frame(*cmd, swapchain_->extent());
    PanelContext ui{*bench_, *matrices_, backend_->fonts(), scale_};
    ImGui_ImplGlfw_NewFrame();
    input_.before_new_frame();
    backend_->new_frame();
    input_.after_new_frame();
    draw_main_window(ui);
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(palette(bench_->window.theme).ground);
    swapchain_->begin_pass(*cmd, {ground.x, ground.y, ground.z});
    backend_->draw(*cmd);
    frame_clock_->end_in_pass(*cmd);
    const Result<bool> shown = swapchain_->end_frame(*cmd);
    if (!shown) return shown.error();
    if (!*shown)
        if (const Result<bool> rebuilt = swapchain_->rebuild(); !rebuilt) return rebuilt.error();
    frames.back().wall_s = float(seconds_since(begin));
    if (first_frame_s_ == 0 && bench_->computation.complete()) {
        vkDeviceWaitIdle(device_->device());
        first_frame_s_ = seconds_since(begin_);
        first_frame_processor_s_ = double(std::clock()) / CLOCKS_PER_SEC;
    }
    return {};
}

std::string Window::description() {
    std::vector<double> times;
    for (const FrameTime& frame : bench_->window.frames) times.push_back(double(frame.wall_s));
    std::sort(times.begin(), times.end());
    const auto at = [&](double place) {
        return times.empty() ? 0 : 1e3 * times[size_t(place * double(times.size() - 1))];
    };
    char head[240];
    std::snprintf(head, sizeof head,
                  "window %u x %u, first complete frame after %.3f s and %.3f s of CPU time, last %zu "
                  "frames: median %.1f ms, 95%% below "
                  "%.1f ms, 99%% below %.1f ms\n",
                  swapchain_->extent().width, swapchain_->extent().height, first_frame_s_,
                  first_frame_processor_s_, times.size(), at(0.5), at(0.95), at(0.99));
    const Layout& layout = bench_->window.layout;
    std::string hidden;
    for (const PanelGroup& group : panel_groups())
        if (!(layout.*group.shown)) hidden += ", hidden: " + in_a_sentence(group.title);
    return head + std::string(bench_->window.theme == Theme::dark ? "dark" : "light") + " theme, sides " +
           (layout.mirrored ? "swapped" : "as at first") + hidden + "\n" + describe(*bench_);
}

bool Window::others_moved() {
    const uint64_t steps = bench_->background_steps();
    return std::exchange(seen_steps_, steps) != steps;
}

// Nothing to compute and nothing moving: sleep until the next event. A minimised window draws nothing.
void Window::wait_for_events() {
    int width = 0, height = 0;
    glfwGetFramebufferSize(glfw_.window, &width, &height);
    const bool hidden = width == 0 || height == 0 || glfwGetWindowAttrib(glfw_.window, GLFW_ICONIFIED);
    if (!hidden && (computing_ || settle_ > 0 || bench_->needs_idle())) {
        glfwPollEvents();
        // ImGui takes a key's press and release in one frame each: of quick typing some is left for later
        // frames.
        if (events_.active || bench_->motion.animating() ||
            ImGui::GetCurrentContext()->InputEventsQueue.Size > 0)
            settle_ = kSettleFrames;
        else
            --settle_;
        return;
    }
    // Told by an event that a frame before may have taken.
    if (!hidden && others_moved()) {
        settle_ = kSettleFrames;
        return;
    }
    // A text field's cursor blinks.
    const bool blinks = !hidden && ImGui::GetIO().WantTextInput;
    if (blinks)
        glfwWaitEventsTimeout(0.4);
    else if (bench_->threads_work())
        glfwWaitEventsTimeout(kThreadsSeconds);
    else if (autosave_.pending())
        glfwWaitEventsTimeout(Autosave::kIntervalSeconds);
    else
        glfwWaitEvents();
    if (autosave_.pending()) autosave_.update(*bench_);
    if (blinks || events_.active || others_moved() || bench_->threads_ended() || bench_->motion.animating())
        settle_ = kSettleFrames;
}

Result<void> Window::run() {
    signals_.wake(true);
    while (!glfwWindowShouldClose(glfw_.window) && !bench_->window.wants_to_quit && !signals_.came()) {
        events_.active = false;
        wait_for_events();
        int width = 0, height = 0;
        glfwGetFramebufferSize(glfw_.window, &width, &height);
        if (width == 0 || height == 0 || glfwGetWindowAttrib(glfw_.window, GLFW_ICONIFIED)) continue;
        if (!computing_ && settle_ <= 0 && !bench_->needs_idle()) continue;
        if (Result<void> r = draw_frame(); !r) {
            if (r.error().vk_result != VK_ERROR_DEVICE_LOST) return r;
            if (Result<void> again = recover(r.error()); !again) return again;
            continue;
        }
        draw_wanted_picture();
        autosave_.update(*bench_);
        if (settle_ <= 1) keep_settings();
        if (!options_.follow.empty() && bench_->computation.ready() && settle_ <= 1)
            follower_.update(description());
    }
    signals_.wake(false);
    keep_settings();
    autosave_.end();
    // Background threads may need a moment to finish: the window is hidden meanwhile.
    glfwHideWindow(glfw_.window);
    vkDeviceWaitIdle(device_->device());
    const std::vector<std::string> messages = device_->take_messages();
    if (!messages.empty())
        return Error{FOVEA_VULKAN_ERROR, "validation",
                     "the Vulkan validation layer reported " + std::to_string(messages.size()) +
                         (messages.size() == 1 ? " message: " : " messages; the first is: ") + messages[0]};
    return {};
}

}  // namespace

Result<void> run_window(const Options& options) {
    Window window(options);
    if (Result<void> r = window.open(); !r) return r;
    return window.run();
}

}  // namespace fovea::visualizer
