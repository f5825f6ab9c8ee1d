// All heads of all layers of a model as thumbnails with their figures: a PromptRun on its own thread, so
// that the window keeps its frame rate. The same run gives the predictions after a token.
#pragma once

#include "document/settings.hpp"
#include "gpu/gpu_device.hpp"

#include <fovea/inspect/colormap.hpp>
#include <fovea/inspect/prompt_run.hpp>

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
    HeadStats stats;     // statistics of the weights
    TokenScores scores;  // scores of a model's heads on the text; NaN without a text
    ColorRange range;
};
// "L3H5", layers and heads counted from 0, as files and other tools count them.
std::string head_name(uint32_t layer, uint32_t head);

// One layer as thumbnails, see PromptLayer.
struct GridLayer {
    uint32_t layer = 0, rows = 0, columns = 0;  // size of a thumbnail
    std::vector<GridHead> heads;
    GpuBuffer pixels;  // f32 [heads, rows, columns]
    std::string problem;
};

// The next tokens after a token of a finished run, and the text of one of them.
Result<PromptNext> next_after(const Settings& settings, const PromptRun& run, uint64_t row);
std::string next_text(const Settings& settings, uint32_t token);

class HeadGrid {
  public:
    static constexpr uint32_t kSide = 64;  // cells of a thumbnail, at most

    // `wake` is called from the thread whenever a layer is there.
    HeadGrid(const Settings& settings, std::function<void()> wake, const HeadGrid* before = nullptr);
    ~HeadGrid();
    HeadGrid(const HeadGrid&) = delete;
    HeadGrid& operator=(const HeadGrid&) = delete;

    // True if these settings have the same grid: they differ at most in the shown layer.
    bool serves(const Settings& settings) const;
    const Settings& settings() const { return settings_; }
    // Takes what is finished; buffers are made here, on the caller's thread.
    Result<void> take(const GpuDevice& device);
    // Waits until every layer is finished.
    Result<void> finish(const GpuDevice& device);

    const std::vector<GridLayer>& layers() const { return layers_; }  // finished ones, in order
    size_t layer_count() const { return wanted_.size(); }
    uint64_t finished_layers() const { return run_ ? run_->finished_layers() : 0; }
    // Null where the text cannot be read as tokens.
    const std::shared_ptr<PromptRun>& run() const { return run_; }
    // True once the layer's input and the heads that are patched in it are known.
    bool enters(size_t layer) const { return run_ && run_->entering(layer) && run_->knows_patches(); }
    // Why the model cannot be run; empty: it can.
    std::string problem() const;
    // Ends after the layer that is computed now.
    void cancel() { ending_ = true; }
    bool ended() const { return ended_; }
    bool complete() const { return layers_.size() == wanted_.size(); }
    uint64_t size_bytes() const;

  private:
    Result<void> work();
    Result<void> run_published();
    Result<void> run_learned();
    void add(PromptLayer layer);

    const Settings settings_;
    const std::vector<uint32_t> wanted_;
    std::function<void()> wake_;
    std::vector<GridLayer> layers_;
    std::shared_ptr<PromptRun> run_;
    mutable std::mutex mutex_;
    std::string problem_;  // guarded by mutex_
    std::atomic<bool> ending_{false}, ended_{false};
    std::thread thread_;
};

}  // namespace fovea::visualizer
