// Computes the present result and tracks its progress; keeps other results, the heads of all layers, and the
// measured rates of the device. One owner, one thread; other threads do work in the background.
#pragma once

#include "document/attention_result.hpp"
#include "document/background.hpp"
#include "document/head_grid.hpp"
#include "document/problems.hpp"
#include "document/why.hpp"
#include "gpu/roof.hpp"

#include <algorithm>
#include <future>

namespace fovea::visualizer {

class Computation {
  public:
    // `frames_in_flight`: submissions after which the caller of advance() has waited for a recorded one; 0
    // where each call is waited for. Buffers that drawing has to forget before they go are put into
    // `released`.
    Computation(GpuDevice& device, bool on_cpu, int frames_in_flight, const Background& background,
                Problems& problems, std::vector<VkBuffer>& released);

    // ---- the present result ----
    bool ready() const { return result_ != nullptr; }
    // The values of all stages are there to be read.
    bool complete() const { return result_ && run().finished() && updates_since_end_ >= frames_in_flight_; }
    // Complete, with its statistics.
    bool measured() const { return complete() && measured_; }
    const std::shared_ptr<AttentionResult>& result() const { return result_; }
    const std::vector<std::string>& tokens() const { return result_->tokens(); }
    const std::vector<Stage>& stages() const { return result_->stages; }
    const Stage* find_stage(StageId id) const { return result_->find_stage(id); }
    const Stage* find_stage(std::string_view name) const { return result_->find_stage(name); }
    const AttentionRun& run() const { return *result_->run; }
    // Statistics of each head's weights; empty until complete.
    const std::vector<HeadStats>& head_stats();
    // The derivation of a cell of a result, recomputed from q, k, v; none where the stage is not over keys.
    const std::optional<Derivation>& derivation(const AttentionRun& of, const Stage& stage, const Cell& cell);
    // Device time of the last results, the newest last.
    const std::vector<double>& run_seconds() const { return run_seconds_; }

    // Queries, keys and values by these settings; nothing while a thread works on them.
    std::optional<Result<Projected>> projection(const Settings& by);
    // Begins the result of these settings, projected `by` these; after an error the one before stays. The
    // device must be idle.
    Result<void> begin(Projected projected, const Settings& settings, const Settings& by);
    // A small result is ready in the frame of the change, so that values do not flicker while a slider is
    // dragged.
    Result<void> compute_at_once(double flops);
    // Records work of `flops` for this frame. True if there is more to do.
    Result<bool> advance(VkCommandBuffer cmd, double flops);
    // Returns what a thread prepares for the next result: "projecting the tokens"; empty: nothing.
    std::string preparing() const;
    bool projecting() const { return projecting_.has_value() || waits_for_.has_value(); }
    bool projection_has_come() const {
        return (projecting_ && has_come(projecting_->future)) || (waits_for_ && layer_has_come(*waits_for_));
    }
    // For a published model: the layers that are to come are not run. The next change of the text runs it
    // anew.
    void cancel_run() {
        if (grid_) grid_->cancel();
    }
    bool next_has_come() const { return has_come(coming_next_) || has_come(coming_why_); }
    bool runs_model() const { return waits_for_.has_value(); }
    // True if the CPU replaced the device and no longer needs to.
    bool moves_on() const { return result_ && run().moves_on(); }

    // The error of the last change; empty if there was none.
    const std::string& problem() const { return problem_; }
    void refuse(std::string problem) { problem_ = std::move(problem); }

    // ---- where ----
    GpuDevice& device() const { return device_; }
    const std::string& device_name() const { return device_.name(); }
    bool on_cpu() const { return on_cpu_; }
    // Computes the same on the CPU or the device, from the next frame on.
    void compute_on_cpu(bool on_cpu);
    // Measures what the device can do at most, with the next frame.
    void want_roof() { wants_roof_ = wants_begin_ = true; }
    void want_begin() { wants_begin_ = true; }
    void measure_wanted_roof();
    std::optional<Roof> roof;  // once measured
    // Something other than the settings asks for the result to be begun anew.
    bool wants_begin() const { return wants_begin_ || moves_on() || projection_has_come(); }
    void begun() { wants_begin_ = false; }

    // ---- all heads of all layers ----
    // Null where the file has one layer or none. Begun by the first call for these settings, and finished
    // some frames later.
    const HeadGrid* head_grid(const Settings& settings);
    // Returns a model's predictions after a token; null while a thread computes them, and after a failure,
    // which next_problem() explains.
    const PromptNext* next_table(const Settings& settings, uint64_t row);
    const std::string& next_problem() const { return next_problem_; }
    // Splits the score of a cell of the present result by its writers. Null while a thread computes that,
    // and after a failure, which why_problem() explains. The result must be complete and a model's.
    const ScoreWriters* why(const LayerCell& cell);
    const std::string& why_problem() const { return why_problem_; }
    uint64_t grid_bytes() const { return grid_ ? grid_->size_bytes() : 0; }
    uint64_t finished_layers() const { return grid_ ? grid_->finished_layers() : 0; }
    // Waits for it, if it was begun.
    Result<void> finish_wanted_grid();

    // Drops a result that was kept: it is freed at the begin of the next frame, when nothing is in flight.
    void retire(std::shared_ptr<const AttentionResult> result);
    bool has_retired() const {
        return !retired_.empty() || std::any_of(retired_grids_.begin(), retired_grids_.end(),
                                                [](const auto& grid) { return grid->ended(); });
    }
    void free_retired();

  private:
    struct Projecting {
        Settings settings;
        std::future<Result<Projected>> future;
    };
    std::optional<Result<Projected>> layer_projection(const Settings& by);
    void begin_grid(const Settings& settings);
    bool layer_has_come(uint32_t layer) const;
    ComputeOn place() const;
    void measure();
    void release(const AttentionResult& result);
    void drop_grid();

    GpuDevice& device_;
    bool on_cpu_;
    const int frames_in_flight_;
    const Background& background_;
    Problems& problems_;
    std::vector<VkBuffer>& released_;

    std::shared_ptr<AttentionResult> result_;
    int updates_since_end_ = 0;
    bool measured_ = false, wants_roof_ = false, wants_begin_ = true;
    std::string problem_;
    std::optional<Projecting> projecting_;
    std::optional<uint32_t> waits_for_;  // the layer of a published model that a thread comes to
    std::vector<HeadStats> head_stats_;
    std::optional<Derivation> derivation_;
    std::optional<Cell> derived_cell_;
    const AttentionRun* derived_from_ = nullptr;
    std::vector<double> run_seconds_;

    std::unique_ptr<HeadGrid> grid_;
    struct NextWanted {
        const HeadGrid* of = nullptr;
        uint64_t row = 0;
        friend bool operator==(const NextWanted&, const NextWanted&) = default;
    };
    std::future<Result<PromptNext>> coming_next_;
    NextWanted next_wanted_, next_of_;
    std::optional<PromptNext> next_;
    std::string next_problem_;
    struct WhyWanted {
        uint64_t result = 0;  // the number of the result that the cell is of
        LayerCell cell;
        friend bool operator==(const WhyWanted&, const WhyWanted&) = default;
    };
    uint64_t results_ = 0;  // results that were begun
    std::future<Result<ScoreWriters>> coming_why_;
    WhyWanted why_wanted_, why_of_;
    std::optional<ScoreWriters> why_;
    std::string why_problem_;
    std::vector<std::shared_ptr<const AttentionResult>> retired_;
    std::vector<std::unique_ptr<HeadGrid>> retired_grids_;
};

}  // namespace fovea::visualizer
