#include "headless.hpp"

#include "picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace denoise {
namespace {

constexpr double kLargestError = 1e-5;  // error of light, relative to 1 or to the light if that is larger

// Largest difference between a pixel and its weights applied by hand, over a grid of pixels.
double check_weights(const Denoiser& denoiser, Frames& frames) {
    const std::vector<float> radiance = denoiser.radiance(kDenoised, frames);
    const std::vector<float> albedo = denoiser.albedo(frames);
    double largest = 0;
    const uint32_t w = denoiser.width(), h = denoiser.height();
    for (uint32_t y = 0; y < h; y += std::max(1u, (h - 1) / 2))
        for (uint32_t x = 0; x < w; x += std::max(1u, (w - 1) / 3)) {
            double sum[3] = {};
            for (const Contribution& c : denoiser.contributions(x, y, frames))
                for (int i = 0; i < 3; ++i) sum[i] += double(c.weight) * c.light[i];
            for (int i = 0; i < 3; ++i) {
                const size_t at = 3 * (size_t{y} * w + x) + size_t(i);
                largest = std::max(largest, std::abs(sum[i] * albedo[at] - radiance[at]) /
                                                std::max(1.0, double(radiance[at])));
            }
        }
    return largest;
}

// One round after another in slices, until `frames_wanted` frames have been drawn.
void measure_budget(Denoiser& denoiser, Frames& frames, double budget_ms, uint32_t frames_wanted,
                    double& seconds, double seconds_per_frame) {
    std::vector<double> slices, ms;
    uint32_t rounds = 0;
    for (uint32_t i = 0; i < frames_wanted; ++i) {
        const FrameTime time = run_now(frames, [&](Frame& frame) {
            if (denoiser.between_rounds()) denoiser.cmd_trace(frame.cmd, seconds += seconds_per_frame);
            denoiser.cmd_attend(frame, budget_ms / 1000);
        });
        denoiser.measured(time);
        slices.push_back(double(time.slice_ms.size()));
        ms.push_back(time.attention_ms());
        rounds += denoiser.between_rounds();
    }
    std::printf(
        "budget %8.2f ms: %3.0f of %u slices in a frame (median), %u rounds in %u frames, at most %.2f ms, "
        "above it in %ld frames\n",
        budget_ms, median(slices), denoiser.plan().slice_count(), rounds, frames_wanted,
        *std::max_element(ms.begin(), ms.end()),
        long(std::count_if(ms.begin(), ms.end(), [&](double t) { return t > budget_ms; })));
    if (!denoiser.between_rounds())
        run_now(frames, [&](Frame& frame) { denoiser.cmd_attend(frame, kNoBudget); });
}

}  // namespace

void run_headless(const Options& o) {
    const Gpu gpu({}, false, kPasses);
    Denoiser denoiser(gpu, o.width, o.height, o.slices);
    denoiser.settings = o.settings;
    Frames frames(gpu, denoiser.max_slices());
    std::printf("%s, %u x %u pixels, %u samples each, %u slices a round, kernel: %s\n",
                gpu.properties.deviceName, o.width, o.height, o.settings.samples, denoiser.max_slices(),
                denoiser.plan().info.reason);

    double seconds = 0, trace_ms = 0, temporal_ms = 0;
    for (uint32_t i = 0; i < o.frames; ++i) {
        seconds += o.seconds_per_frame;
        trace_ms = run_now(frames, [&](Frame& frame) { denoiser.cmd_trace(frame.cmd, seconds); }).all_ms;
        const FrameTime time = run_now(frames, [&](Frame& frame) { denoiser.cmd_attend(frame, kNoBudget); });
        denoiser.measured(time);
        temporal_ms = time.attention_ms();
        // Some drivers compile a pipeline when it first runs: what that took says nothing of later frames.
        if (i < 2) denoiser.forget_times();
    }
    double spatial_ms = 0, bilateral_ms = 0, atrous_ms = 0;
    for (int i = 0; i < 2; ++i) {  // for the same reason the second time counts
        spatial_ms =
            run_now(frames, [&](Frame& frame) { denoiser.cmd_attend_spatially(frame); }).attention_ms();
        bilateral_ms = run_now(frames, [&](Frame& frame) { denoiser.cmd_bilateral(frame.cmd); }).all_ms;
        atrous_ms = run_now(frames, [&](Frame& frame) { denoiser.cmd_atrous(frame.cmd); }).all_ms;
    }
    const uint32_t step = std::min(32u, o.reference_samples);
    while (denoiser.reference_samples() < o.reference_samples)
        run_now(frames, [&](Frame& frame) { denoiser.cmd_reference(frame.cmd, step); });

    const std::vector<float> reference = shown(denoiser.radiance(kReference, frames));
    const std::vector<float> noisy = shown(denoiser.radiance(kNoisy, frames));
    const std::vector<float> denoised = shown(denoiser.radiance(kDenoised, frames));
    std::printf("frame %u against %u samples\n  %-44s %9s %10s\n", o.frames, denoiser.reference_samples(), "",
                "PSNR", "time");
    const auto row = [&](const char* name, const std::vector<float>& picture, double ms) {
        std::printf("  %-44s %6.2f dB %7.2f ms\n", name, psnr(picture, reference), ms);
    };
    row("noisy, with the tracing", noisy, trace_ms);
    row("cross-bilateral, 23 x 23, ordinary shader", shown(denoiser.radiance(kBilateral, frames)),
        bilateral_ms);
    row("a-trous wavelet, five steps, ordinary shader", shown(denoiser.radiance(kAtrous, frames)), atrous_ms);
    row("attention, this frame", shown(denoiser.radiance(kSpatial, frames)), spatial_ms);
    row("attention, this frame and the last", denoised, temporal_ms);
    // Where LSE is the spatial call's by now, the last round is run again: it is what a click would look at.
    run_now(frames, [&](Frame& frame) { denoiser.cmd_attend(frame, kNoBudget); });
    const double error = check_weights(denoiser, frames);
    std::printf("weights of a pixel, applied by hand: largest difference %.2g\n", error);
    if (!o.png.empty()) save_beside_each_other(o.png, o.width, o.height, {noisy, denoised, reference});
    for (const double share : {0.125, 0.5, 2.0})
        measure_budget(denoiser, frames, share * temporal_ms, o.frames, seconds, o.seconds_per_frame);
    require(error <= kLargestError, "the weights are not those that were used");
    require(psnr(denoised, reference) > psnr(noisy, reference),
            "the denoised picture is no better than the noisy one");
}

}  // namespace denoise
