// Draws two pictures into a folder and prints what they show: `./dev run` without a display.
//   fovea-first-picture FOLDER
// A separate program, so that the first picture does not wait for the rest of the command line.
#include <fovea/files.hpp>
#include <fovea/inspect.hpp>
#include <fovea/inspect/learned_lesson.hpp>
#include <fovea/model/device_runner.hpp>
#include <fovea/runtime.hpp>

#include <cstdio>
#include <memory>
#include <string>

using namespace fovea;

namespace {

Result<void> save(const Result<RgbaImage>& image, const std::string& path) {
    if (!image) return image.error();
    const Result<Tensor> pixels = make_tensor("picture", FOVEA_U8, {image->height, image->width, 4},
                                              std::as_bytes(std::span(image->rgba)));
    if (!pixels) return pixels.error();
    const Result<uint64_t> written = save_png(path, *pixels);
    if (!written) return written.error();
    return {};
}

// The book's first example with trainable weights. Returns what computed it: a Vulkan device where there is
// one, a software driver too, because the picture shows the shaders at work.
Result<std::string> draw_lesson(const std::string& path) {
    const Result<Lesson> lesson = find_lesson("t3-06");
    if (!lesson) return lesson.error();
    EngineOptions options;
    options.backend = BackendChoice::vulkan;
    const Result<std::unique_ptr<DeviceRunner>> device = DeviceRunner::open(options);
    const Result<LessonRun> run = run_lesson(*lesson, device ? device->get() : nullptr);
    if (!run) return run.error();
    if (Result<void> ok = save(lesson_picture(*lesson, *run, {}), path); !ok) return ok.error();
    return device ? run->backend : "the CPU, in plain float32 (no Vulkan driver was found)";
}

Result<void> draw_heads(const std::string& path) {
    Result<LearnedModel> model = learned_model("induction");
    if (!model) return model.error();
    const Result<LearnedLesson> lesson = learned_lesson(std::move(*model));
    if (!lesson) return lesson.error();
    return save(learned_picture(*lesson, {}), path);
}

int refuse(const Error& error) {
    std::fprintf(stderr, "fovea: error: %s\n", error.text.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string folder = argc > 1 ? argv[1] : ".";
    const std::string lesson = folder + "/lesson.png", heads = folder + "/heads.png";
    const Result<std::string> device = draw_lesson(lesson);
    if (!device) return refuse(device.error());
    if (Result<void> ok = draw_heads(heads); !ok) return refuse(ok.error());
    std::printf(
        "\n"
        "What a head of a small model that Fovea trained looks at: what came after the same letter last\n"
        "time. So it continues a repeated word. Arcs show one letter's weights, matrices those of all.\n"
        "  %s\n"
        "\n"
        "How much each of six words, \"Your journey starts with one step\", attends to each other:\n"
        "scores, softmax, attention weights and context vectors of a tutorial's first example.\n"
        "  %s\n"
        "  computed by %s\n"
        "\n"
        "Next:\n"
        "  ./dev web                       the web page: type a sentence, take any weight apart\n"
        "  ./dev visualizer                the same in a window (needs a display)\n"
        "  ./dev fovea model FILE --text \"The cat sat\"\n"
        "                                  the heads of your own model: a GGUF file or a Hugging Face "
        "folder\n",
        heads.c_str(), lesson.c_str(), device->c_str());
    return 0;
}
