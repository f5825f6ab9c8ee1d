// All heads of all layers of an imported model, small, with their figures: computed one layer at a time by
// the CPU backend on a thread of its own, so that the window keeps its rate.
#pragma once

#include "document/settings.hpp"
#include "gpu/gpu_device.hpp"

#include <fovea/inspect.hpp>
#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/token_scores.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fovea::visualizer {

struct GridHead {
    uint32_t layer = 0, head = 0;
    HeadStats stats;     // of the weights
    TokenScores scores;  // of a model's heads on the text; NaN where there is no text
    ColourRange range;
};
// "L3H5", layers and heads counted from 0, as files and other tools count them.
std::string head_name(uint32_t layer, uint32_t head);

// One layer as thumbnails: the largest weight of the cells of each pixel; -inf where all of them are masked.
struct GridLayer {
    uint32_t layer = 0, rows = 0, columns = 0;  // of a thumbnail
    std::vector<GridHead> heads;
    GpuBuffer pixels;  // f32 [heads, rows, columns]
    std::string problem;
};

class HeadGrid {
  public:
    static constexpr uint32_t kSide = 64;  // cells of a thumbnail, at most

    // `wake` is called from the thread whenever a layer is there. Of a published model `before` may know the
    // layers up to the first one that the settings change: these are not computed again.
    HeadGrid(const Settings& settings, std::function<void()> wake, const HeadGrid* before = nullptr);
    ~HeadGrid();
    HeadGrid(const HeadGrid&) = delete;
    HeadGrid& operator=(const HeadGrid&) = delete;

    // Whether these settings have the same grid: all but the shown layer is equal.
    bool serves(const Settings& settings) const;
    // Takes what is finished; buffers are made here, on the caller's thread.
    Result<void> take(const GpuDevice& device);
    // Waits until every layer is finished.
    Result<void> finish(const GpuDevice& device);

    const std::vector<GridLayer>& layers() const { return layers_; }  // finished ones, in order
    size_t layer_count() const { return wanted_.size(); }
    uint64_t finished_layers() const { return finished_; }
    // What enters a layer of a model, for n = layer_count() what leaves the last; null: not known yet.
    std::shared_ptr<const F32Tensor> entering(size_t n) const;
    // Contexts that the settings put in the place of a layer's heads, once the other sentences have been run.
    bool knows_patches() const { return knows_patches_; }
    std::vector<HeadPatch> patches(uint64_t layer) const;
    const std::vector<uint32_t>& ids() const { return ids_; }  // of a published model's text
    // Why the model cannot be run; empty: it can.
    std::string problem() const;
    // Ends after the layer that is computed now.
    void cancel() { ending_ = true; }
    bool ended() const { return ended_; }
    bool complete() const { return layers_.size() == wanted_.size(); }
    uint64_t size_bytes() const;

  private:
    struct Made {
        GridLayer layer;
        std::vector<float> pixels;
    };
    using MadeLayer = std::shared_ptr<const Made>;
    void work();
    void run_model();
    Result<void> run_patches(const ModelRunOptions& options);
    Made make(uint32_t layer);
    void keep(Made made);
    void keep_entering(size_t n, F32Tensor x);

    const Settings settings_;
    const std::vector<uint32_t> wanted_;
    std::function<void()> wake_;
    std::vector<GridLayer> layers_;
    mutable std::mutex mutex_;
    // Guarded by mutex_: finished layers, those of them that take() has taken, what enters each layer.
    std::vector<MadeLayer> made_;
    size_t taken_ = 0;
    std::vector<std::shared_ptr<const F32Tensor>> entering_;
    std::string problem_;
    std::vector<uint32_t> ids_;
    std::vector<HeadPatch> patches_;
    std::atomic<bool> ending_{false}, ended_{false}, knows_patches_{false};
    std::atomic<uint64_t> finished_{0};
    std::thread thread_;
};

}  // namespace fovea::visualizer
