// What the panels show: settings, what they computed to, the picked cell, the view. One reader, one session.
#pragma once

#include "model/attention_run.hpp"
#include "model/settings.hpp"
#include "model/token_model.hpp"
#include "theme.hpp"

#include <fovea/inspect.hpp>
#include <fovea/inspect/colour_map.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

// A row of the pipeline rail, and a matrix to look at.
struct Stage {
    std::string name, formula;
    uint64_t heads = 1, rows = 0, columns = 0;
    const GpuBuffer* buffer = nullptr;  // [heads, rows, columns]
    std::span<const float> values;      // the same numbers, for digits
    bool over_keys = false;             // columns are keys and rows queries: a cell has a derivation
    bool row_tokens = false;            // rows are tokens
};

struct ViewState {
    size_t stage = 0;
    uint32_t head = 0;
    int picked_row = 1, picked_column = 1;
    ColourMap map = ColourMap::viridis;
    bool automatic_map = true;  // diverging for stages with negative numbers
    bool logarithmic = false;
    float zoom = 0;  // pixels for a cell; 0: fit
    float pan_x = 0, pan_y = 0;
};

class Session {
  public:
    // `frames_in_flight`: submissions after which update()'s caller has waited for a recorded one; 0 where
    // each call is waited for.
    Session(GpuDevice& device, bool on_cpu, int frames_in_flight = 0)
        : device_(device), on_cpu_(on_cpu), frames_in_flight_(frames_in_flight) {}
    ~Session();

    const Settings& settings() const { return settings_; }
    // Takes effect with the next frame; the state before goes to the undo stack. Edits within one gesture (a
    // slider's drag) are one step: pass the same `gesture`, not 0.
    void change(const Settings& settings, uint64_t gesture = 0);
    bool can_undo() const { return !undo_.empty(); }
    bool can_redo() const { return !redo_.empty(); }
    void undo();
    void redo();

    // Computes what the settings ask for, within `flops` of device work for this frame; outside a render
    // pass. True if there is more to do. While needs_idle(), no frame may be in flight: buffers are replaced.
    Result<bool> update(VkCommandBuffer cmd, double flops);
    bool needs_idle() const { return dirty_; }

    bool ready() const { return run_ != nullptr; }
    // The numbers of all stages are there to be read.
    bool complete() const { return run_ && run_->finished() && updates_since_end_ >= frames_in_flight_; }
    const std::vector<std::string>& tokens() const { return projected_.tokens; }
    const std::vector<Stage>& stages() const { return stages_; }
    const Stage& stage() const { return stages_[view.stage]; }
    const AttentionRun& run() const { return *run_; }
    bool on_cpu() const { return on_cpu_; }
    const std::string& device_name() const { return device_.name(); }
    const std::string& problem() const {
        return problem_;
    }  // why the last change was refused; empty: it was not

    // The derivation of the picked cell, recomputed from q, k, v; none where the stage is not over keys.
    const std::optional<Derivation>& derivation();

    ViewState view;
    Theme theme = Theme::dark;
    bool wants_to_quit = false;
    // Buffers that the matrix renderer has to forget before they go.
    std::vector<VkBuffer> released;

  private:
    Result<void> rebuild();
    Result<void> compute_at_once(double flops);
    void collect_stages();
    Result<void> add_host_stage(const HostStage& stage);

    GpuDevice& device_;
    bool on_cpu_;
    int frames_in_flight_, updates_since_end_ = 0;
    Settings settings_;
    std::vector<Settings> undo_, redo_;
    uint64_t last_gesture_ = 0;
    bool dirty_ = true;
    Projected projected_;
    std::unique_ptr<AttentionRun> run_;
    std::vector<std::unique_ptr<GpuBuffer>> host_buffers_;
    std::vector<Stage> stages_;
    std::string problem_;
    std::optional<Derivation> derivation_;
    std::optional<Cell> derived_cell_;
};

}  // namespace fovea::visualizer
