#include "denoiser.hpp"

#include "atrous.comp.h"
#include "bilateral.comp.h"
#include "features.comp.h"
#include "keep.comp.h"
#include "remember.comp.h"
#include "trace.comp.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace denoise {
namespace {

struct PassPush {  // as in shaders/denoise.glsl
    uint32_t width, height, tiles_x, frame;
    float time, camera_angle;
    uint32_t samples, from_plane, to_plane, step_width;
    float screen_sigma, normal_sigma, position_sigma, albedo_sigma;
    float history_sigma, history_weight, firefly_limit, light_sigma;
};
constexpr uint64_t kSurfaceBytes = 64;

void cmd_compute_barrier(VkCommandBuffer cmd) {
    cmd_shader_barrier(cmd, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT);
}

// Lists for each tile the pages around it, of this frame and, with history, of the last one, whose pages
// follow this frame's. There is no page beyond the picture's edge, and keys of missing pages are masked.
void fill_pages(const Buffer& to, uint32_t tiles_x, uint32_t tiles_y, bool with_history) {
    int32_t* page = static_cast<int32_t*>(to.mapped);
    for (int y = 0; y < int(tiles_y); ++y)
        for (int x = 0; x < int(tiles_x); ++x)
            for (int age = 0; age <= int(with_history); ++age)
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx) {
                        const bool exists =
                            x + dx >= 0 && x + dx < int(tiles_x) && y + dy >= 0 && y + dy < int(tiles_y);
                        const int tile = (age * int(tiles_y) + y + dy) * int(tiles_x) + x + dx;
                        *page++ = exists ? tile : -1;
                    }
}

}  // namespace

const PassLayout kPasses{.buffers = 5, .push_bytes = sizeof(PassPush), .sets = 1};

FrameTime run_now(Frames& frames, const std::function<void(Frame&)>& record) {
    FrameTime time;
    Frame& frame = frames.next();
    frames.collect(frame, time);
    frames.begin(frame);
    cmd_shader_barrier(frame.cmd,
                       VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT,
                       VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT);
    record(frame);
    frames.submit(frame, nullptr);
    frames.collect(frame, time);
    return time;
}

fovea::Attention Denoiser::call(uint32_t pages) const {
    // q is [tiles, 1, 64, kDim]; k and v are pools of pages, [2 tiles, 1, 64, kDim] and [2 tiles, 1, 64,
    // kLightDim]: this frame's tiles, then the last one's. o is [tiles, 1, 64, kLightDim], lse [tiles, 1,
    // 64]. All float32.
    fovea::Attention call;
    call.batch(tiles_).heads(1, 1).lengths(kTilePixels, pages * kTilePixels).dims(kDim, kLightDim).scale(1);
    call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE);
    call.desc.page_size = kTilePixels;
    call.desc.page_count = 2 * tiles_;
    call.desc.block_table_pages = pages;
    call.desc.max_slice_cost = 2.0 * (kDim + kLightDim) * width_ * height_ * pages * kTilePixels / slices_;
    return call;
}

Denoiser::Denoiser(const Gpu& gpu, uint32_t width, uint32_t height, uint32_t slices)
    : gpu_(gpu),
      width_(width),
      height_(height),
      tiles_(width / kTile * (height / kTile)),
      slices_(slices),
      guest_(gpu),
      spatial_(guest_, fovea::plan_attention(guest_.properties, call(kNeighbours))),
      temporal_(guest_, fovea::plan_attention(guest_.properties, call(2 * kNeighbours))) {
    const uint64_t pixels = uint64_t{width} * height, texel = kLightDim * sizeof(float);
    const auto& bytes = temporal_.info.binding_bytes;
    surfaces_ = gpu.buffer(pixels * kSurfaceBytes);
    q_ = gpu.buffer(bytes[FOVEA_BIND_Q]);
    k_ = gpu.buffer(bytes[FOVEA_BIND_K]);
    v_ = gpu.buffer(bytes[FOVEA_BIND_V]);
    log_sums_ = gpu.buffer(bytes[FOVEA_BIND_LSE]);
    planes_ = gpu.buffer(kPlaneCount * pixels * texel);
    spatial_pages_ = gpu.buffer(spatial_.info.binding_bytes[FOVEA_BIND_BLOCK_TABLE], true);
    temporal_pages_ = gpu.buffer(bytes[FOVEA_BIND_BLOCK_TABLE], true);
    fill_pages(spatial_pages_, width / kTile, height / kTile, false);
    fill_pages(temporal_pages_, width / kTile, height / kTile, true);
    set_ = gpu.descriptor_set(std::array<const Buffer*, 5>{&surfaces_, &q_, &k_, &v_, &planes_});
    trace_ = gpu.compute(kTrace);
    features_ = gpu.compute(kFeatures);
    remember_ = gpu.compute(kRemember);
    bilateral_ = gpu.compute(kBilateralFilter);
    atrous_ = gpu.compute(kAtrousFilter);
    keep_ = gpu.compute(kKeep);
}

Denoiser::~Denoiser() {
    for (const VkPipeline p : {trace_, features_, remember_, bilateral_, atrous_, keep_})
        vkDestroyPipeline(gpu_.device, p, nullptr);
    for (const Buffer* b :
         {&surfaces_, &q_, &k_, &v_, &planes_, &log_sums_, &spatial_pages_, &temporal_pages_})
        gpu_.destroy(*b);
}

uint32_t Denoiser::max_slices() const { return std::max(spatial_.slice_count(), temporal_.slice_count()); }

void Denoiser::measured(const FrameTime& time) {
    for (const double ms : time.slice_ms) plan_->measured(ms / 1000);
}

void Denoiser::cmd_bind(VkCommandBuffer cmd, VkPipelineBindPoint point, VkPipeline pipeline, uint32_t from,
                        uint32_t to, uint32_t step) const {
    const DenoiserSettings& s = used_;
    const PassPush push{width_,
                        height_,
                        width_ / kTile,
                        random_,
                        float(seconds_),
                        s.camera_angle,
                        s.samples,
                        from,
                        to,
                        step,
                        s.screen_sigma,
                        s.normal_sigma,
                        s.position_sigma,
                        s.albedo_sigma,
                        s.history_sigma,
                        s.history_weight,
                        s.firefly_limit,
                        s.light_sigma};
    gpu_.cmd_bind(cmd, point, pipeline, set_, &push);
}

void Denoiser::cmd_pass(VkCommandBuffer cmd, VkPipeline pipeline, uint32_t from, uint32_t to,
                        uint32_t step) const {
    cmd_bind(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline, from, to, step);
    vkCmdDispatch(cmd, tiles_, 1, 1);
}

void Denoiser::cmd_trace(VkCommandBuffer cmd, double seconds) {
    seconds_ = seconds;
    used_ = settings;
    const bool with_history = pictures_ > 0 && used_.history_weight > 0;
    plan_ = with_history ? &temporal_ : &spatial_;
    if (with_history) {
        cmd_pass(cmd, remember_);  // reads the surfaces that the next pass overwrites
        cmd_compute_barrier(cmd);
    }
    ++random_;
    cmd_pass(cmd, trace_, kNoisy, kNoisy);
    cmd_compute_barrier(cmd);
    cmd_pass(cmd, features_);
    cmd_compute_barrier(cmd);
    ++pictures_;
    reference_samples_ = 0;
}

void Denoiser::bind_all(Bindings& to, const SlicedPlan& plan, Plane result) const {
    const uint64_t plane_bytes = uint64_t{width_} * height_ * kLightDim * sizeof(float);
    bind(to, FOVEA_BIND_Q, q_);
    bind(to, FOVEA_BIND_K, k_);
    bind(to, FOVEA_BIND_V, v_);
    bind(to, FOVEA_BIND_BLOCK_TABLE, &plan == &spatial_ ? spatial_pages_ : temporal_pages_);
    bind(to, FOVEA_BIND_LSE, log_sums_);
    to[FOVEA_BIND_O] = {planes_.handle, result * plane_bytes, plane_bytes};
}

uint32_t Denoiser::cmd_attend(Frame& frame, double budget_seconds) {
    Bindings bindings = {};
    bind_all(bindings, *plan_, kDenoised);
    frame.slices = plan_->record(frame.cmd, bindings, budget_seconds, frame.times, 2, frame.index);
    cmd_compute_barrier(frame.cmd);  // the next pass reads Fovea's output
    return frame.slices;
}

uint32_t Denoiser::cmd_attend_spatially(Frame& frame) {
    Bindings bindings = {};
    bind_all(bindings, spatial_, kSpatial);
    frame.slices = spatial_.record(frame.cmd, bindings, kNoBudget, frame.times, 2, frame.index);
    cmd_compute_barrier(frame.cmd);
    return frame.slices;
}

void Denoiser::cmd_bilateral(VkCommandBuffer cmd) {
    cmd_pass(cmd, bilateral_, kNoisy, kBilateral);
    cmd_compute_barrier(cmd);
}

void Denoiser::cmd_atrous(VkCommandBuffer cmd) {
    Plane from = kNoisy, to = kAtrous;
    for (uint32_t step = 1; step <= 16; step *= 2) {  // five steps, so that the last one writes kAtrous
        cmd_pass(cmd, atrous_, from, to, step);
        cmd_compute_barrier(cmd);
        from = to;
        to = from == kAtrous ? kAtrousScratch : kAtrous;
    }
}

void Denoiser::cmd_reference(VkCommandBuffer cmd, uint32_t samples) {
    const uint32_t of_a_picture = used_.samples;
    used_.samples = samples;
    ++random_;
    cmd_pass(cmd, trace_, reference_samples_ > 0 ? kReference : kNoisy, kReference);  // adds, or begins
    cmd_compute_barrier(cmd);
    used_.samples = of_a_picture;
    reference_samples_ += samples;
}

void Denoiser::cmd_keep(VkCommandBuffer cmd, Plane from, Plane shown) {
    cmd_pass(cmd, keep_, from, shown);
    cmd_compute_barrier(cmd);
}

void Denoiser::cmd_show(VkCommandBuffer cmd, Plane shown, VkPipeline show) const {
    cmd_bind(cmd, VK_PIPELINE_BIND_POINT_GRAPHICS, show, shown, 0, 1);
    vkCmdDraw(cmd, 3, 1, 0, 0);
}

std::vector<float> Denoiser::read(const Buffer& buffer, uint64_t offset, uint64_t size,
                                  Frames& frames) const {
    const Buffer copy = gpu_.buffer(size, true);
    run_now(frames, [&](Frame& frame) {
        const VkBufferCopy region{offset, 0, size};
        const VkMemoryBarrier2 barriers[2] = {{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                               .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                               .srcAccessMask = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                               .dstStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                                               .dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT},
                                              {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                               .srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                                               .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                               .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
                                               .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT}};
        VkDependencyInfo info{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1};
        info.pMemoryBarriers = &barriers[0];
        vkCmdPipelineBarrier2(frame.cmd, &info);
        vkCmdCopyBuffer(frame.cmd, buffer.handle, copy.handle, 1, &region);
        info.pMemoryBarriers = &barriers[1];
        vkCmdPipelineBarrier2(frame.cmd, &info);
    });
    std::vector<float> values(size / sizeof(float));
    std::memcpy(values.data(), copy.mapped, size);
    gpu_.destroy(copy);
    return values;
}

uint32_t Denoiser::index_of(uint32_t x, uint32_t y) const {
    return (y / kTile * (width_ / kTile) + x / kTile) * kTilePixels + y % kTile * kTile + x % kTile;
}

std::vector<float> Denoiser::albedo(Frames& frames) const {
    const std::vector<float> surfaces = read(surfaces_, 0, surfaces_.size, frames);
    std::vector<float> out;
    for (uint32_t y = 0; y < height_; ++y)
        for (uint32_t x = 0; x < width_; ++x)
            for (uint32_t c = 0; c < 3; ++c)
                out.push_back(surfaces[index_of(x, y) * (kSurfaceBytes / sizeof(float)) + 12 + c]);
    return out;
}

std::vector<float> Denoiser::radiance(Plane plane, Frames& frames) const {
    const uint64_t plane_bytes = uint64_t{width_} * height_ * 16;
    const std::vector<float> sums = read(planes_, plane * plane_bytes, plane_bytes, frames);
    std::vector<float> out = albedo(frames);
    for (uint32_t y = 0; y < height_; ++y)
        for (uint32_t x = 0; x < width_; ++x) {
            const float* sum = &sums[size_t{4} * index_of(x, y)];
            for (uint32_t c = 0; c < 3; ++c)
                out[size_t{3} * (size_t{y} * width_ + x) + c] *= sum[c] / std::max(1.0f, sum[3]);
        }
    return out;
}

std::vector<Contribution> Denoiser::contributions(uint32_t x, uint32_t y, Frames& frames) const {
    const uint32_t pages = plan_ == &spatial_ ? kNeighbours : 2 * kNeighbours, row = index_of(x, y);
    FoveaMapTileDesc tile = foveaMapTileDesc();
    tile.batch = row / kTilePixels;
    tile.first_row = row % kTilePixels;
    tile.row_count = 1;
    tile.outputs = FOVEA_TILE_MAX;  // one key to a pixel of the map: the largest weight is the weight
    SlicedPlan map(guest_, fovea::plan_map_tile(guest_.properties, call(pages).desc, tile));
    const Buffer weights = gpu_.buffer(map.info.binding_bytes[FOVEA_BIND_TILE_MAX]);
    Bindings bindings = {};
    bind_all(bindings, *plan_, kDenoised);
    bind(bindings, FOVEA_BIND_TILE_MAX, weights);
    run_now(frames, [&](Frame& frame) {
        map.record(frame.cmd, bindings, kNoBudget, VK_NULL_HANDLE, 0, frame.index);
    });
    const std::vector<float> weight = read(weights, 0, pages * kTilePixels * sizeof(float), frames);
    gpu_.destroy(weights);

    const std::vector<float> light = read(v_, 0, v_.size, frames);
    const int32_t* page =
        static_cast<const int32_t*>((pages == kNeighbours ? spatial_pages_ : temporal_pages_).mapped) +
        uint64_t{tile.batch} * pages;
    std::vector<Contribution> all;
    for (uint32_t j = 0; j < weight.size(); ++j) {
        const int32_t at = page[j / kTilePixels];
        if (at < 0 || weight[j] == 0) continue;
        const uint32_t t = uint32_t(at) % tiles_, within = j % kTilePixels;
        const float* rgb = &light[(uint64_t(at) * kTilePixels + within) * kLightDim];
        all.push_back({t % (width_ / kTile) * kTile + within % kTile,
                       t / (width_ / kTile) * kTile + within / kTile,
                       uint32_t(at) >= tiles_,
                       weight[j],
                       {rgb[0], rgb[1], rgb[2]}});
    }
    return all;
}

}  // namespace denoise
