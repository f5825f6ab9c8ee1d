// A flock in which attention decides where each bird flies and how it looks: a small renderer with its own
// device, memory allocator, frames in flight and timeline semaphore, and Fovea's slices in each frame's
// command buffer.
//   fovea_embed_flock                        a window
//   fovea_embed_flock --png FILE             no window: 2 x FRAMES frames, then the last one as a picture
//     [--frames N] [--birds N] [--size N] [--budget MILLISECONDS]
// Without a window the first half of the frames runs without attention; the times of both halves are printed.
#include "attention.hpp"
#include "canvas.hpp"
#include "flock_shaders.hpp"

#ifdef FOVEA_EMBED_WINDOW
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace flock;

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

// What one frame in flight owns, and what is asked of its timestamps when it has finished.
struct Frame {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer cmd = VK_NULL_HANDLE;
    VkQueryPool times = VK_NULL_HANDLE;  // begin, end, then two for each slice
    uint64_t number = 0;                 // its value of the timeline semaphore
    uint32_t slices = 0;
    bool with_attention = false;
};

struct FrameTime {
    double all_ms, attention_ms;
    bool with_attention;
};

double median(std::vector<double> v) {
    if (v.empty()) return 0;
    std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
    return v[v.size() / 2];
}

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
    VkCommandPool commands() const { return frames_[0].pool; }

  private:
    void place_birds();
    void collect(Frame& frame);
    void record(Frame& frame);
    void cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, VkDescriptorSet set, float attention_weight);
    void submit(Frame& frame, uint32_t index);

    const Gpu& gpu_;
    Canvas& canvas_;
    const Options& options_;
    Attention attention_;
    Buffer birds_;
    VkDescriptorSet sets_[2];  // by which side of attention's results is shown
    VkPipeline features_, steer_, draw_;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    Frame frames_[kFramesInFlight];
    uint64_t next_number_ = 1;
    uint32_t rounds_ = 0;
    std::vector<FrameTime> times_;
};

Renderer::Renderer(const Gpu& gpu, Canvas& canvas, const Options& options)
    : gpu_(gpu), canvas_(canvas), options_(options), attention_(gpu, options.birds) {
    features_ = gpu.compute(kFeatures);
    steer_ = gpu.compute(kSteer);
    draw_ = gpu.birds(kBirdVertex, kBirdFragment, canvas.format());
    birds_ = gpu.buffer(uint64_t{16} * options.birds, true);
    place_birds();
    for (uint32_t side = 0; side < 2; ++side)
        sets_[side] = gpu.descriptor_set({&birds_, &attention_.q(), &attention_.k(), &attention_.v(),
                                          &attention_.means(side), &attention_.log_sums(side)});
    VkSemaphoreTypeCreateInfo timeline{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &timeline};
    check(vkCreateSemaphore(gpu.device, &semaphore, nullptr, &timeline_), "no timeline semaphore");
    for (Frame& frame : frames_) {
        const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                           .queueFamilyIndex = gpu.queue_family};
        check(vkCreateCommandPool(gpu.device, &pool, nullptr, &frame.pool), "no command pool");
        const VkCommandBufferAllocateInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                 .commandPool = frame.pool,
                                                 .commandBufferCount = 1};
        check(vkAllocateCommandBuffers(gpu.device, &buffer, &frame.cmd), "no command buffer");
        const VkQueryPoolCreateInfo times{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                          .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                          .queryCount = 2 + 2 * attention_.slice_count()};
        check(vkCreateQueryPool(gpu.device, &times, nullptr, &frame.times), "no timestamps");
    }
}

Renderer::~Renderer() {
    for (const Frame& frame : frames_) {
        vkDestroyQueryPool(gpu_.device, frame.times, nullptr);
        vkDestroyCommandPool(gpu_.device, frame.pool, nullptr);
    }
    vkDestroySemaphore(gpu_.device, timeline_, nullptr);
    for (const VkPipeline p : {features_, steer_, draw_}) vkDestroyPipeline(gpu_.device, p, nullptr);
    gpu_.destroy(birds_);
}

// While the device is idle: in a disc, each with a direction of its own; the same on every run.
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

// Waits for the frame that used these objects before, and reads its times.
void Renderer::collect(Frame& frame) {
    if (frame.number == 0) return;
    const VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &timeline_,
                                   .pValues = &frame.number};
    require(vkWaitSemaphores(gpu_.device, &wait, 60'000'000'000) == VK_SUCCESS, "a frame did not finish");
    std::vector<uint64_t> ticks(2 + 2 * frame.slices);
    check(vkGetQueryPoolResults(gpu_.device, frame.times, 0, uint32_t(ticks.size()), ticks.size() * 8,
                                ticks.data(), 8, VK_QUERY_RESULT_64_BIT),
          "no times");
    const double ms = gpu_.properties.limits.timestampPeriod * 1e-6;
    FrameTime time{double(ticks[1] - ticks[0]) * ms, 0, frame.with_attention};
    for (uint32_t i = 2; i < ticks.size(); i += 2) {
        const double slice_ms = double(ticks[i + 1] - ticks[i]) * ms;
        attention_.measured(slice_ms / 1000);
        time.attention_ms += slice_ms;
    }
    times_.push_back(time);
    frame.number = 0;
}

void Renderer::cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, VkDescriptorSet set,
                        float attention_weight) {
    const PassPush push{options_.birds, 0.07f, 0.3f, 1 / 60.0f, attention_weight};
    const bool draws = pipeline == draw_;
    const VkPipelineBindPoint point =
        draws ? VK_PIPELINE_BIND_POINT_GRAPHICS : VK_PIPELINE_BIND_POINT_COMPUTE;
    vkCmdBindPipeline(cmd, point, pipeline);
    vkCmdBindDescriptorSets(cmd, point, gpu_.layout, 0, 1, &set, 0, nullptr);
    vkCmdPushConstants(cmd, gpu_.layout, VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT, 0,
                       sizeof push, &push);
    if (draws)
        vkCmdDraw(cmd, 3, options_.birds, 0, 0);
    else
        vkCmdDispatch(cmd, (options_.birds + 63) / 64, 1, 1);
}

// [frame]
void Renderer::record(Frame& frame) {
    constexpr VkPipelineStageFlags2 kCompute = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    constexpr VkPipelineStageFlags2 kVertex = VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT;
    const VkCommandBuffer cmd = frame.cmd;
    vkCmdResetQueryPool(cmd, frame.times, 0, 2 + 2 * attention_.slice_count());
    vkCmdWriteTimestamp2(cmd, VK_PIPELINE_STAGE_2_NONE, frame.times, 0);
    cmd_shader_barrier(cmd, kCompute | kVertex, kCompute);  // behind the frame before

    frame.slices = 0;
    if (frame.with_attention) {
        if (attention_.between_rounds()) {  // birds as they are now become queries, keys and values
            cmd_pass(cmd, features_, sets_[attention_.finished_side()], 0);
            cmd_shader_barrier(cmd, kCompute, kCompute);
        }
        frame.slices =
            attention_.record(cmd, options_.budget_ms / 1000, frame.times, 2, uint32_t(&frame - frames_));
        rounds_ += attention_.between_rounds();
        cmd_shader_barrier(cmd, kCompute, kCompute);  // what Fovea wrote is read by the next pass
    }

    const VkDescriptorSet shown = sets_[attention_.finished_side()];
    const float weight = frame.with_attention && rounds_ > 0 ? 1 : 0;
    cmd_pass(cmd, steer_, shown, weight);
    cmd_shader_barrier(cmd, kCompute, kVertex);
    canvas_.cmd_begin_rendering(cmd);
    cmd_pass(cmd, draw_, shown, weight);
    canvas_.cmd_end_rendering(cmd);
    vkCmdWriteTimestamp2(cmd, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, frame.times, 1);
}
// [end frame]

void Renderer::submit(Frame& frame, uint32_t index) {
    VkSemaphoreSubmitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                               .semaphore = canvas_.acquired(index),
                               .stageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT};
    const VkSemaphoreSubmitInfo signals[] = {{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                              .semaphore = timeline_,
                                              .value = next_number_,
                                              .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT},
                                             {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                              .semaphore = canvas_.drawn(),
                                              .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT}};
    const VkCommandBufferSubmitInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                           .commandBuffer = frame.cmd};
    const VkSubmitInfo2 info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                             .waitSemaphoreInfoCount = wait.semaphore ? 1u : 0u,
                             .pWaitSemaphoreInfos = &wait,
                             .commandBufferInfoCount = 1,
                             .pCommandBufferInfos = &buffer,
                             .signalSemaphoreInfoCount = wait.semaphore ? 2u : 1u,
                             .pSignalSemaphoreInfos = signals};
    check(vkQueueSubmit2(gpu_.queue, 1, &info, VK_NULL_HANDLE), "the submission failed");
    frame.number = next_number_++;
}

bool Renderer::draw(bool with_attention) {
    const uint32_t index = next_number_ % kFramesInFlight;
    Frame& frame = frames_[index];
    collect(frame);
    if (!canvas_.begin(index)) return false;
    vkResetCommandPool(gpu_.device, frame.pool, 0);
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    vkBeginCommandBuffer(frame.cmd, &begin);
    frame.with_attention = with_attention;
    record(frame);
    check(vkEndCommandBuffer(frame.cmd), "the frame was not recorded");
    submit(frame, index);
    canvas_.present();
    return true;
}

void Renderer::finish() {
    for (uint32_t i = 0; i < kFramesInFlight; ++i) collect(frames_[(next_number_ + i) % kFramesInFlight]);
}

void Renderer::warm_up() {
    for (uint32_t i = 0; i < 2 * attention_.slice_count() && rounds_ == 0; ++i) draw(true);
    finish();
    place_birds();
    attention_.forget_times();
    times_.clear();
    rounds_ = 0;
}

void Renderer::report() const {
    std::vector<double> off, on, rest, attention;
    uint32_t above = 0;
    for (const FrameTime& t : times_) {
        (t.with_attention ? on : off).push_back(t.all_ms);
        if (!t.with_attention) continue;
        rest.push_back(t.all_ms - t.attention_ms);
        attention.push_back(t.attention_ms);
        above += t.attention_ms > options_.budget_ms;
    }
    std::printf("%s, %u birds, %u slices a round, kernel: %s\n", gpu_.properties.deviceName, options_.birds,
                attention_.slice_count(), attention_.reason());
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
    const Gpu gpu({}, false);
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
        const Gpu gpu({extensions, count}, true);
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
