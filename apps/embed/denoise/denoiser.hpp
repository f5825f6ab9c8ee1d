// A path tracer's noisy frames, denoised by attention: a cross-bilateral filter over this frame's pixels and
// the last frame's result as one call of attention, see shaders/features.comp. No weights are trained.
#pragma once

#include "frames.hpp"
#include "guest.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace denoise {

using namespace embed;

// Pictures of light in the buffer of planes; the first two as in shaders/denoise.glsl. The last three are of
// radiance.
enum Plane : uint32_t {
    kNoisy,
    kDenoised,
    kSpatial,
    kReference,
    kBilateral,
    kAtrous,
    kAtrousScratch,
    kShownNoisy,
    kShownDenoised,
    kShownReference,
    kPlaneCount
};

constexpr uint32_t kTile = 8, kTilePixels = kTile * kTile;  // a tile of pixels is a page of keys
constexpr uint32_t kNeighbours = 9;                         // a query sees its tile and the eight around it
constexpr uint32_t kDim = 16, kLightDim = 4;                // features; light and a 1

struct DenoiserSettings {
    float screen_sigma = 2, normal_sigma = 0.4f, position_sigma = 0.15f, albedo_sigma = 0.4f;
    float history_sigma = 1;
    float history_weight = 2;
    float firefly_limit = 2;
    float light_sigma = 1.5f;    // only of the a-trous filter
    float camera_angle = 0.35f;  // radians
    uint32_t samples = 1;        // paths for each pixel
};

// A setting that a reader can change: a slider of the window, an option of the command line.
struct Knob {
    const char* option;
    const char* label;
    float DenoiserSettings::*value;
    float least, most;
};
constexpr Knob kKnobs[] = {
    {"--screen-sigma", "screen sigma, pixels", &DenoiserSettings::screen_sigma, 1, 8},
    {"--normal-sigma", "normal sigma", &DenoiserSettings::normal_sigma, 0.05f, 2},
    {"--position-sigma", "position sigma, units of the scene", &DenoiserSettings::position_sigma, 0.1f, 4},
    {"--albedo-sigma", "albedo sigma", &DenoiserSettings::albedo_sigma, 0.05f, 2},
    {"--history-sigma", "history: screen sigma, pixels", &DenoiserSettings::history_sigma, 0.5f, 8},
    {"--history-weight", "history: counts as so many samples", &DenoiserSettings::history_weight, 0, 64},
    {"--firefly-limit", "fireflies weigh no more than this light", &DenoiserSettings::firefly_limit, 0.5f,
     50},
    {"--camera", "camera, radians around the scene", &DenoiserSettings::camera_angle, -0.8f, 0.8f},
};

// One pixel that took part in a denoised one.
struct Contribution {
    uint32_t x, y;
    bool history;  // true if the last frame's result is used
    float weight;
    float light[3];
};

class Denoiser {
  public:
    // The picture's sides are multiples of 8. `slices`: about how many a round of attention is cut into.
    Denoiser(const Gpu& gpu, uint32_t width, uint32_t height, uint32_t slices);
    ~Denoiser();
    Denoiser(const Denoiser&) = delete;

    DenoiserSettings settings;  // settings of the next picture

    // Between rounds: makes the last frame the history, traces the picture of `seconds` and makes its queries
    // and keys.
    void cmd_trace(VkCommandBuffer cmd, double seconds);
    // The next slices of the round under way, see SlicedPlan::record. A complete round leaves plane
    // kDenoised.
    uint32_t cmd_attend(Frame& frame, double budget_seconds);
    // Attends only within this frame, in one go, into plane kSpatial.
    uint32_t cmd_attend_spatially(Frame& frame);
    // The filters to compare with, into planes kBilateral and kAtrous.
    void cmd_bilateral(VkCommandBuffer cmd);
    void cmd_atrous(VkCommandBuffer cmd);
    // More paths for the reference of the picture last traced; the first of them begins a new one.
    void cmd_reference(VkCommandBuffer cmd, uint32_t samples);

    // Keeps one of the first planes for the eye, until the next call.
    void cmd_keep(VkCommandBuffer cmd, Plane from, Plane shown);
    // Draws a kept plane into the viewport that is set, by a pipeline of shaders/show.*.
    void cmd_show(VkCommandBuffer cmd, Plane shown, VkPipeline show) const;

    bool between_rounds() const { return plan_->between_rounds(); }
    const SlicedPlan& plan() const { return *plan_; }  // plan of the current round, or of the last one
    void measured(const FrameTime& time);

    void forget_times() { spatial_.forget_times(), temporal_.forget_times(); }
    uint32_t pictures() const { return pictures_; }
    uint32_t reference_samples() const { return reference_samples_; }
    uint32_t max_slices() const;
    uint32_t width() const { return width_; }
    uint32_t height() const { return height_; }

    // ---- reading back: these wait for the device ----
    std::vector<float> radiance(Plane plane, Frames& frames) const;  // RGB in rows
    std::vector<float> albedo(Frames& frames) const;
    // Returns the pixels that the last round averaged for a pixel, with their weights. A map tile of that row
    // computes the weights, since nothing else keeps them.
    std::vector<Contribution> contributions(uint32_t x, uint32_t y, Frames& frames) const;

  private:
    void cmd_bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline, uint32_t from,
                  uint32_t to, uint32_t step) const;
    void cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, uint32_t from = 0, uint32_t to = 0,
                  uint32_t step = 1) const;
    void bind_all(Bindings& to, const SlicedPlan& plan, Plane result) const;
    std::vector<float> read(const Buffer& buffer, uint64_t offset, uint64_t size, Frames& frames) const;
    uint32_t index_of(uint32_t x, uint32_t y) const;
    fovea::Attention call(uint32_t pages) const;

    const Gpu& gpu_;
    uint32_t width_, height_, tiles_;
    double slices_;
    Guest guest_;
    SlicedPlan spatial_, temporal_;
    SlicedPlan* plan_ = &spatial_;
    Buffer surfaces_, q_, k_, v_, planes_, log_sums_, spatial_pages_, temporal_pages_;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkPipeline trace_, features_, remember_, bilateral_, atrous_, keep_;
    DenoiserSettings used_;  // by the picture under way
    double seconds_ = 0;
    uint32_t pictures_ = 0, random_ = 0, reference_samples_ = 0;
};

extern const PassLayout kPasses;

// Records into a separate frame, submits it, waits, and returns the time that it took.
FrameTime run_now(Frames& frames, const std::function<void(Frame&)>& record);

}  // namespace denoise
