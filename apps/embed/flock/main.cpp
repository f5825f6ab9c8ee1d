// A flock in which attention decides where each bird flies and how it looks: a small renderer with its own
// device, memory allocator, frames in flight and timeline semaphore, and Fovea's slices in each frame's
// command buffer.
//   fovea_embed_flock                        a window
//   fovea_embed_flock --png FILE             no window: 2 x FRAMES frames, then the last one as a picture
//     [--frames N] [--birds N] [--size N] [--budget MILLISECONDS]
// Without a window the first half of the frames runs without attention; the times of both halves are printed.
#include "attention.hpp"
#include "bird.frag.h"
#include "bird.vert.h"
#include "features.comp.h"
#include "frames.hpp"
#include "steer.comp.h"

#ifdef FOVEA_EMBED_WINDOW
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#endif

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace flock;

const char* const embed::kProgram = "fovea_embed_flock";

namespace {

struct Options {
    std::string png;
    uint32_t frames = 120, birds = 1024, size = 640;
    double budget_ms = 8;
};

Options read_options(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        require(i + 1 < argc,
                ("usage: fovea_embed_flock [--png FILE] [--frames N] [--birds N] [--size PIXELS] "
                 "[--budget MILLISECONDS], not " +
                 name)
                    .c_str());
        const double number = std::atof(argv[i + 1]);
        if (name == "--png")
            o.png = argv[i + 1];
        else if (name == "--frames" && number >= 1 && number <= 1e6)
            o.frames = uint32_t(number);
        else if (name == "--birds" && number >= 2 && number <= 65536)
            o.birds = uint32_t(number);
        else if (name == "--size" && number >= 16 && number <= 4096)
            o.size = uint32_t(number);
        else if (name == "--budget" && number > 0)
            o.budget_ms = number;
        else
            require(false, ("cannot use " + name + " " + argv[i + 1]).c_str());
    }
    return o;
}

// The layout of shaders/flock.glsl.
struct PassPush {
    uint32_t bird_count;
    float near_reach, far_reach, seconds, attention_weight;
};
constexpr PassLayout kPasses{.buffers = 6, .push_bytes = sizeof(PassPush), .sets = 2};

class Renderer {
  public:
    Renderer(const Gpu& gpu, Canvas& canvas, const Options& options);
    ~Renderer();
    // False where nothing could be drawn because the window changed.
    bool draw(bool with_attention);
    void finish();  // waits for all frames
    // Draws until a round of attention is complete, and forgets how long it took: some drivers compile a
    // pipeline when it first runs.
    void warm_up();
    void report() const;
    VkCommandPool commands() { return frames_.next().pool; }

  private:
    void place_birds();
    void collect(Frame& frame);
    void record(Frame& frame, bool with_attention);
    void cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, VkDescriptorSet set, float attention_weight);

    const Gpu& gpu_;
    Canvas& canvas_;
    const Options& options_;
    Attention attention_;
    Buffer birds_;
    VkDescriptorSet sets_[2];  // by which side of attention's results is shown
    VkPipeline features_, steer_, draw_;
    Frames frames_;
    uint32_t rounds_ = 0;
    std::vector<FrameTime> times_;
};

Renderer::Renderer(const Gpu& gpu, Canvas& canvas, const Options& options)
    : gpu_(gpu),
      canvas_(canvas),
      options_(options),
      attention_(gpu, options.birds),
      frames_(gpu, attention_.plan().slice_count()) {
    features_ = gpu.compute(kFeatures);
    steer_ = gpu.compute(kSteer);
    draw_ = gpu.triangles(kBirdVertex, kBirdFragment, canvas.format());
    birds_ = gpu.buffer(uint64_t{16} * options.birds, true);
    place_birds();
    for (uint32_t side = 0; side < 2; ++side)
        sets_[side] = gpu.descriptor_set(
            std::array<const Buffer*, 6>{&birds_, &attention_.q(), &attention_.k(), &attention_.v(),
                                         &attention_.means(side), &attention_.log_sums(side)});
}

Renderer::~Renderer() {
    for (const VkPipeline p : {features_, steer_, draw_}) vkDestroyPipeline(gpu_.device, p, nullptr);
    gpu_.destroy(birds_);
}

// Call while the device is idle. Places the birds in a disc, each with its own direction; every run is the
// same.
void Renderer::place_birds() {
    float* out = static_cast<float*>(birds_.mapped);
    uint32_t state = 1;
    const auto next = [&] {
        return float((state = state * 1664525u + 1013904223u) >> 8) / float(1 << 23) - 1;
    };
    for (uint32_t i = 0; i < options_.birds;) {
        const float x = next(), y = next(), dx = next(), dy = next();
        if (x * x + y * y > 1) continue;
        const float bird[4] = {0.8f * x, 0.8f * y, 0.4f * dx, 0.4f * dy};
        std::memcpy(out + 4 * i++, bird, sizeof bird);
    }
}

void Renderer::collect(Frame& frame) {
    FrameTime time;
    if (!frames_.collect(frame, time)) return;
    for (const double ms : time.slice_ms) attention_.plan().measured(ms / 1000);
    times_.push_back(std::move(time));
}

void Renderer::cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, VkDescriptorSet set,
                        float attention_weight) {
    const PassPush push{options_.birds, 0.07f, 0.3f, 1 / 60.0f, attention_weight};
    const bool draws = pipeline == draw_;
    gpu_.cmd_bind(cmd, draws ? VK_PIPELINE_BIND_POINT_GRAPHICS : VK_PIPELINE_BIND_POINT_COMPUTE, pipeline,
                  set, &push);
    if (draws)
        vkCmdDraw(cmd, 3, options_.birds, 0, 0);
    else
        vkCmdDispatch(cmd, (options_.birds + 63) / 64, 1, 1);
}

void Renderer::record(Frame& frame, bool with_attention) {
    constexpr VkPipelineStageFlags2 kCompute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    constexpr VkPipelineStageFlags2 kVertex = VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT;
    const VkCommandBuffer cmd = frame.cmd;
    cmd_shader_barrier(cmd, kCompute | kVertex, kCompute);  // after the frame before

    if (with_attention) {
        if (attention_.plan().between_rounds()) {  // birds as they are now become queries, keys and values
            cmd_pass(cmd, features_, sets_[attention_.finished_side()], 0);
            cmd_shader_barrier(cmd, kCompute, kCompute);
        }
        frame.slices = attention_.record(cmd, options_.budget_ms / 1000, frame.times, 2, frame.index);
        rounds_ += attention_.plan().between_rounds();
        cmd_shader_barrier(cmd, kCompute, kCompute);  // the next pass reads Fovea's output
    }

    const VkDescriptorSet shown = sets_[attention_.finished_side()];
    const float weight = with_attention && rounds_ > 0 ? 1 : 0;
    cmd_pass(cmd, steer_, shown, weight);
    cmd_shader_barrier(cmd, kCompute, kVertex);
    canvas_.cmd_begin_rendering(cmd);
    cmd_pass(cmd, draw_, shown, weight);
    canvas_.cmd_end_rendering(cmd);
}

bool Renderer::draw(bool with_attention) {
    Frame& frame = frames_.next();
    collect(frame);
    if (!canvas_.begin(frame.index)) return false;
    frames_.begin(frame);
    record(frame, with_attention);
    frames_.submit(frame, &canvas_);
    canvas_.present();
    return true;
}

void Renderer::finish() {
    check(vkDeviceWaitIdle(gpu_.device), "the device did not finish");
    for (uint32_t i = 0; i < kFramesInFlight; ++i) collect(frames_.at(i));
}

void Renderer::warm_up() {
    for (uint32_t i = 0; i < 2 * attention_.plan().slice_count() && rounds_ == 0; ++i) draw(true);
    finish();
    place_birds();
    attention_.plan().forget_times();
    times_.clear();
    rounds_ = 0;
}

void Renderer::report() const {
    std::vector<double> off, on, rest, attention;
    uint32_t above = 0;
    for (const FrameTime& t : times_) {
        (t.slice_ms.empty() ? off : on).push_back(t.all_ms);
        if (t.slice_ms.empty()) continue;
        rest.push_back(t.all_ms - t.attention_ms());
        attention.push_back(t.attention_ms());
        above += t.attention_ms() > options_.budget_ms;
    }
    std::printf("%s, %u birds, %u slices a round, kernel: %s\n", gpu_.properties.deviceName, options_.birds,
                attention_.plan().slice_count(), attention_.plan().info.reason);
    std::printf("frames without attention: %zu, median %.2f ms\n", off.size(), median(off));
    std::printf(
        "frames with attention:    %zu, median %.2f ms = %.2f ms in slices + %.2f ms for the rest; %u "
        "rounds\n",
        on.size(), median(on), median(attention), median(rest), rounds_);
    std::printf("attention in one frame: at most %.2f ms of a budget of %.2f ms, above it in %u frames\n",
                attention.empty() ? 0 : *std::max_element(attention.begin(), attention.end()),
                options_.budget_ms, above);
}

void run_headless(const Options& o) {
    const Gpu gpu({}, false, kPasses);
    Canvas canvas(gpu, {o.size, o.size});
    Renderer renderer(gpu, canvas, o);
    renderer.warm_up();
    for (uint32_t i = 0; i < 2 * o.frames; ++i) renderer.draw(i >= o.frames);
    renderer.finish();
    canvas.save(o.png, renderer.commands());
    renderer.report();
}

#ifdef FOVEA_EMBED_WINDOW
void run_window(const Options& o) {
    require(glfwInit(), "no display (--png FILE draws without one)");
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    GLFWwindow* window =
        glfwCreateWindow(int(o.size), int(o.size), "Fovea: a flock by attention", nullptr, nullptr);
    require(window, "no window");
    uint32_t count = 0;
    const char** extensions = glfwGetRequiredInstanceExtensions(&count);
    require(extensions, "no Vulkan for windows");
    {
        const Gpu gpu({extensions, count}, true, kPasses);
        VkSurfaceKHR surface = VK_NULL_HANDLE;
        check(glfwCreateWindowSurface(gpu.instance, window, nullptr, &surface), "no surface");
        Canvas canvas(gpu, surface, {o.size, o.size});
        Renderer renderer(gpu, canvas, o);
        for (uint32_t drawn = 0; !glfwWindowShouldClose(window) && drawn < o.frames;) {
            glfwPollEvents();
            drawn += renderer.draw(true) && o.frames != Options{}.frames;  // --frames N ends by itself
        }
        vkDeviceWaitIdle(gpu.device);
        renderer.finish();
        renderer.report();
    }
    glfwDestroyWindow(window);
    glfwTerminate();
}
#endif

}  // namespace

int main(int argc, char** argv) {
    const Options options = read_options(argc, argv);
    if (!options.png.empty()) {
        run_headless(options);
        return 0;
    }
#ifdef FOVEA_EMBED_WINDOW
    run_window(options);
#else
    require(false, "built without GLFW: --png FILE draws without a window");
#endif
}
