// Without a window: frames, what each filter made of the last one, and whether the weights that a click would
// show are the ones that were used.
#pragma once

#include "denoiser.hpp"

#include <cstdint>
#include <string>

namespace denoise {

struct Options {
    std::string png;
    bool headless = false;
    uint32_t frames = 24, width = 320, height = 192, slices = 64, reference_samples = 1024;
    DenoiserSettings settings;
    bool clicks = false;  // in the window, on pixel click_x, click_y, and says what was averaged for it
    uint32_t click_x = 0, click_y = 0;
    double budget_ms = 8, seconds_per_frame = 1 / 30.0;
};

void run_headless(const Options& options);
void run_window(const Options& options);

}  // namespace denoise
