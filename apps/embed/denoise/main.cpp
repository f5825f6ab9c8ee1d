// A path tracer whose noise is averaged away by attention, in a window or without one.
//   fovea_embed_denoise                                a window: noisy, denoised, reference; click a pixel
//   for its weights fovea_embed_denoise --headless [--png FILE]        frames without a window; prints PSNR
//   and time of each filter
//     [--frames N] [--width N] [--height N] [--samples N] [--reference N] [--slices N] [--speed TIMES]
//     [--budget MILLISECONDS] and the sliders of the window: --screen-sigma, ..., see kKnobs in denoiser.hpp
#include "gpu.hpp"
#include "headless.hpp"

#include <cstdio>
#include <cstdlib>

const char* const embed::kProgram = "fovea_embed_denoise";

using namespace denoise;

namespace {

const Knob* knob_named(const std::string& option) {
    for (const Knob& knob : kKnobs)
        if (option == knob.option) return &knob;
    return nullptr;
}

Options read_options(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--headless") {
            o.headless = true;
            continue;
        }
        embed::require(i + 1 < argc,
                       ("what is " + name +
                        "? The options: --headless --png FILE --frames N --width N "
                        "--height N --samples N --reference N --slices N --speed TIMES --budget MILLISECONDS")
                           .c_str());
        const char* text = argv[++i];
        const double number = std::atof(text);
        const auto whole = [&](uint32_t& to, double least, double most) {
            embed::require(number >= least && number <= most && number == uint32_t(number),
                           (name + " " + text + " is not within " + std::to_string(uint32_t(least)) + " to " +
                            std::to_string(uint32_t(most)))
                               .c_str());
            to = uint32_t(number);
        };
        if (name == "--png")
            o.png = text;
        else if (name == "--frames")
            whole(o.frames, 1, 1e6);
        else if (name == "--width")
            whole(o.width, 24, 4096);
        else if (name == "--height")
            whole(o.height, 24, 4096);
        else if (name == "--samples")
            whole(o.settings.samples, 1, 64);
        else if (name == "--reference")
            whole(o.reference_samples, 1, 65536);
        else if (name == "--slices")
            whole(o.slices, 1, 256);
        else if (name == "--click") {
            o.clicks = std::sscanf(text, "%u,%u", &o.click_x, &o.click_y) == 2;
            embed::require(o.clicks, ("--click X,Y: cannot use " + std::string(text)).c_str());
        } else if (name == "--speed" && number >= 0 && number <= 10)
            o.seconds_per_frame *= number;
        else if (name == "--budget" && number > 0)
            o.budget_ms = number;
        else if (const Knob* knob = knob_named(name); knob && number >= knob->least && number <= knob->most)
            o.settings.*knob->value = float(number);
        else
            embed::require(false, ("cannot use " + name + " " + text).c_str());
    }
    embed::require(!o.clicks || (o.click_x < o.width && o.click_y < o.height),
                   "--click is outside the picture");
    embed::require(o.width % 8 == 0 && o.height % 8 == 0, "width and height are multiples of 8");
    return o;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = read_options(argc, argv);
    if (options.headless) {
        run_headless(options);
        return 0;
    }
#ifdef FOVEA_EMBED_WINDOW
    run_window(options);
#else
    embed::require(false, "built without GLFW and Dear ImGui: --headless runs without a window");
#endif
}
