// What the panels show: settings, what they computed to, the picked cell, the view. One reader, one session.
#pragma once

#include "gpu/roof.hpp"
#include "matrix/map_buffers.hpp"
#include "model/attention_run.hpp"
#include "model/head_grid.hpp"
#include "model/long_map.hpp"
#include "model/settings.hpp"
#include "model/token_model.hpp"
#include "model/view_state.hpp"
#include "theme.hpp"

#include <fovea/inspect.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

struct StageStats {
    double low = 0, mean = 0, high = 0;          // of the finite values
    uint64_t nan = 0, infinite = 0, hidden = 0;  // hidden: -inf, a masked score
};

// A row of the pipeline rail, and a matrix to look at.
struct Stage {
    std::string name, formula;
    uint64_t heads = 1, rows = 0, columns = 0;
    const GpuBuffer* buffer = nullptr;  // [heads, rows, columns]
    std::span<const float> values;      // the same numbers, for digits
    bool over_keys = false;             // columns are keys and rows queries: a cell has a derivation
    bool row_tokens = false;            // rows are tokens
    std::optional<StageStats> stats;    // once complete, of stages that are not too large
    std::vector<ColourRange> ranges;    // once complete, of each head
    // Weights: cells whose masked score is -inf are hatched, so the masked scores; else null.
    const GpuBuffer* hiding = nullptr;
    std::span<const float> hiding_values;

    std::span<const float> head_values(uint32_t head) const {
        return values.subspan(head * rows * columns, rows * columns);
    }
    bool hidden(uint32_t head, uint64_t row, uint64_t column) const;
};

// Of the shown head: what stands beside the matrix.
struct HeadSummary {
    std::vector<float> row_sums, row_entropies, column_sums;  // hidden and non-finite cells left out
    std::vector<uint32_t> histogram;                          // of finite values over the shown range
};

// A result that stays while the session goes on to others. It shares the buffers, so that keeping copies
// nothing.
struct KeptResult {
    Settings settings;
    std::vector<std::string> tokens;
    std::vector<Stage> stages;
    uint32_t head = 0;  // shown as A
    std::shared_ptr<const AttentionRun> run;
    std::vector<std::shared_ptr<const GpuBuffer>> host_buffers;

    const Stage* find_stage(std::string_view name) const;
    // "level 3, 'Your journey ...'"
    std::string title() const;
    uint64_t size_bytes() const;
};

// A matrix that stays in a tab of its own, with the result that it is of.
struct LockedMatrix {
    std::string name;  // "L3H5", "level 3 H1 scores"
    std::unique_ptr<KeptResult> result;
    size_t stage = 0;
    uint32_t head = 0;
};

// What the matrix view shows: the selection, or a locked tab.
struct Shown {
    const Stage* stage;
    uint32_t head;
    const AttentionRun* run;
    const std::vector<std::string>* tokens;
};

// A line of the Problems panel.
struct Problem {
    std::string where, text;
    bool error = false;  // else a warning
};

// Who computes the map's tiles. Automatic: the device, if it is hardware and computes the rest, too; a
// software driver has only the processor's time, and the CPU backend uses that better.
enum class TilesOn { automatic, device, processor };

// A line over the panels that stays until it is closed: what happened to the program itself.
struct Notice {
    std::string text;
    bool offers_processor = false, offers_map = false;
    bool good = false;  // something was done as it was asked for
};

// Which head of which file a map shows, and how the file was read.
struct MapSource {
    std::shared_ptr<const ImportedFile> file;
    ImportMapping mapping;
    uint32_t head = 0;
};

// A result beside the present one, by what it takes to compute it again: A of the comparison, or a locked
// tab's.
struct PastResult {
    Settings settings;
    uint32_t head = 0;
    bool locked = false;
    std::string stage;  // of a locked tab
};

// All of a session that is not on its device: another one goes on from it.
struct SessionCarry {
    Settings settings;
    std::vector<Settings> undo, redo;
    ViewState view;
    UiState ui;
    std::vector<Problem> problems;
    Theme theme = Theme::dark;
    std::string restorable, stage;
    TilesOn tiles_on = TilesOn::automatic;
    std::vector<PastResult> past;
    std::optional<LongHead> map;
    std::optional<MapSource> map_source;
};

// The formulas of scores and masked scores for these settings.
std::string scale_text(const Settings& settings, uint64_t dim);
// The same where the divisor, 0: the usual root, is not the settings'.
std::string scale_text(const Settings& settings, uint64_t dim, float divisor);
std::string mask_text(const Settings& settings, const CallExtras& extras = {});

// Whether a stage's name is meant: session files have them in small letters, and scaled scores by that name.
bool is_stage(const std::string& stage, const std::string& meant);

class Session;
// Characters of the session's text and tokens that are beyond Latin, Greek and mathematics.
std::string rare_text(const Session& session);

class Session {
  public:
    // `frames_in_flight`: submissions after which update()'s caller has waited for a recorded one; 0 where
    // each call is waited for.
    Session(GpuDevice& device, bool on_cpu, int frames_in_flight = 0)
        : device_(device), on_cpu_(on_cpu || !device.has_vulkan()), frames_in_flight_(frames_in_flight) {}
    ~Session();

    // While results before are computed again, those that the session will have behind them.
    const Settings& settings() const { return restoring_ ? restoring_->settings : settings_; }
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
    bool needs_idle() const {
        return dirty_ || moves_on() || !retired_.empty() || !retired_grids_.empty() || map_has_come() ||
               (map_buffers && map_buffers->full()) || file_has_come() || projection_has_come();
    }

    bool ready() const { return run_ != nullptr; }
    // The numbers of all stages are there to be read.
    bool complete() const { return run_ && run_->finished() && updates_since_end_ >= frames_in_flight_; }
    const std::vector<std::string>& tokens() const { return projected_.tokens; }
    const CallExtras& extras() const { return projected_.extras; }
    const std::vector<Stage>& stages() const { return stages_; }
    const Stage& stage() const { return stages_[view.stage]; }
    const Stage* find_stage(std::string_view name) const;
    // Shows a stage: its pick and head within range, the view fitted. With motion the one before fades into
    // it.
    void show_stage(size_t index);
    // How far: from 0, the stage before, to 1.
    float fade() const;
    const Stage& faded_stage() const { return stages_[fade_from_]; }
    bool animating() const { return fade() < 1; }
    const AttentionRun& run() const { return *run_; }
    GpuDevice& device() const { return device_; }
    bool on_cpu() const { return on_cpu_; }
    // The same session on the processor or the device, from the next frame on.
    void compute_on_cpu(bool on_cpu);
    const std::string& device_name() const { return device_.name(); }
    // Why the last change was refused; empty: it was not.
    const std::string& problem() const { return problem_; }

    // Keeps the present result, once complete, as A of the comparison: it is no part of what undo takes back,
    // and stays while undo, redo and changes go on. One at a time.
    void keep_result();
    void drop_kept();
    void drop_grid();
    // A of the comparison and the locked tabs, in their order, also those that are still to be computed
    // again.
    std::vector<PastResult> past() const;
    // Computes these again, one behind the other, keeps and locks them, and then what the settings ask for.
    void restore(std::vector<PastResult> past);
    // Until then view and stage are of no result that the reader chose; these are.
    bool restoring() const { return restoring_.has_value(); }
    const ViewState& own_view() const { return restoring_ ? restoring_->view : view; }
    std::string own_stage() const;
    // The kept settings become the present ones, a step of undo, and the present result the kept one.
    void swap_kept();
    const KeptResult* kept() const { return kept_.get(); }
    void show_kept_head(uint32_t head) {
        if (kept_) kept_->head = head;
    }

    // Keeps the shown matrix in a tab of its own, which becomes the shown one; at most kMostLocked of them.
    // As with A, it is no part of what undo takes back.
    static constexpr size_t kMostLocked = 6;
    void lock_matrix();
    void unlock_matrix(size_t tab);
    const std::vector<LockedMatrix>& locked() const { return locked_; }
    Shown shown() const;

    SessionCarry carry();
    void take(SessionCarry carried);

    // The derivation of the picked cell, recomputed from q, k, v; none where the stage is not over keys.
    const std::optional<Derivation>& derivation();
    // Of the weights of each head; empty until complete.
    const std::vector<HeadStats>& head_stats();

    // All heads of all layers; null where the file has one layer or none. Begun by the first call for these
    // settings, and finished some frames later.
    const HeadGrid* head_grid();
    uint64_t grid_bytes() const { return grid_ ? grid_->size_bytes() : 0; }
    // Waits for it, if it was begun.
    Result<void> finish_wanted_grid();
    // Shows a head of a layer, as A; or compares the shown or kept A with it, as B.
    void show_head(uint32_t layer, uint32_t head);
    void compare_with_head(uint32_t layer, uint32_t head);

    // Of the shown matrix.
    const HeadSummary& head_summary();
    // Device time of the last results, the newest last.
    const std::vector<double>& run_seconds() const { return run_seconds_; }

    // Opens a file of tensors; a refusal becomes a line of the Problems panel. In a window a large file is
    // read by a thread: then this is false without a problem, and the file opens some frames later, with the
    // sheet that says how it is read.
    bool open_file(const std::string& path);
    void tell(std::string text, bool offers_processor = false, bool offers_map = false) {
        notice = Notice{std::move(text), offers_processor, offers_map, false};
    }
    void tell_done(std::string text) { notice = Notice{std::move(text), false, false, true}; }
    // Shows the shown head of the refused settings as a map, which keeps no matrices.
    void show_refused_as_map();
    void report(std::string where, std::string text, bool error);

    // A long head to zoom into, beside the level's matrices; it is there from the next frame on.
    void open_long_preset(std::string_view name) {
        wanted_map_ = name;
        dirty_ = true;
    }
    // Measures what the device can do at most, with the next frame.
    void want_roof() { wants_roof_ = dirty_ = true; }
    void compute_tiles_on(TilesOn where);
    TilesOn tiles_on() const { return tiles_on_; }
    // The queries and keys of a synthetic map are being drawn, on a thread of their own.
    bool map_is_coming() const { return coming_map_.valid(); }
    // The map's picked cell, derived, and its row; null while a thread computes them, which it does where
    // they would hold up a frame.
    const MapPick* map_pick();
    const Derivation* map_derivation() {
        const MapPick* pick = map_pick();
        return pick && pick->derivation ? &*pick->derivation : nullptr;
    }
    // Moves the map's pick to the largest weight of a block, at once or some frames later.
    void pick_largest(const MapBlock& block);
    // Another head of the file whose map is shown.
    void show_map_head(uint32_t head);
    // Threads work for this session, or have ended and wait for the next frame.
    bool threads_work() const {
        return coming_file_.valid() || projecting_ || coming_pick_.valid() || coming_map_.valid();
    }
    bool threads_ended() const {
        return file_has_come() || projection_has_come() || has_come(coming_pick_) || map_has_come();
    }
    // What a thread prepares for the next result: "reading model.safetensors". Empty: nothing; until then the
    // last result stays.
    std::string preparing() const;
    // Steps that threads behind the window have finished: another number is a reason to draw.
    uint64_t background_steps() const {
        return (map ? map->finished_tiles() : 0) + (grid_ ? grid_->finished_layers() : 0) + *thread_steps_;
    }
    // Called from other threads when the map has something new.
    std::function<void()> wake;
    // The time that fading goes by.
    std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
    std::unique_ptr<LongMap> map;
    std::unique_ptr<MapBuffers> map_buffers;

    ViewState view;
    UiState ui;
    std::vector<Problem> problems;
    std::optional<Notice> notice;
    std::optional<Roof> roof;  // once measured
    Theme theme = Theme::dark;
    bool wants_to_quit = false;
    std::string wanted_stage;    // shown once it is there, by its name in any case
    std::string restorable;      // a session that a run before could not end; empty: there is none
    std::string wanted_picture;  // a PNG file to draw after this frame
    // Buffers that the matrix renderer has to forget before they go.
    std::vector<VkBuffer> released;

  private:
    template <class T>
    static bool has_come(const std::future<T>& future) {
        return future.valid() && future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    bool file_has_come() const { return has_come(coming_file_); }
    bool projection_has_come() const { return projecting_ && has_come(projecting_->future); }
    void take_file(Result<std::shared_ptr<const ImportedFile>> file);
    void forget_pick();
    std::function<void()> wake_after() const;
    bool map_is_of_file() const;
    // Queries, keys and values by these settings; nothing while a thread works on them.
    std::optional<Result<Projected>> projection(const Settings& by);
    // The shown result is not yet that of the settings.
    bool behind() const { return dirty_ || projecting_ || restoring_; }
    struct Projecting {
        Settings settings;
        std::future<Result<Projected>> future;
    };
    struct Restoring {
        std::vector<PastResult> past;  // the first is being computed
        // What comes after them.
        Settings settings;
        ViewState view;
        std::string stage;
        int locked_tab = -1;
    };
    Settings& own_settings() { return restoring_ ? restoring_->settings : settings_; }
    void settings_changed() { dirty_ = dirty_ || !restoring_; }
    void end_restoring();
    bool go_on_restoring();
    void keep_present();
    void lock_present(size_t stage, uint32_t head);
    Result<void> rebuild();
    ComputeOn place() const;
    // The processor stood in for the device, and need no longer.
    bool moves_on() const { return run_ && run_->moves_on(); }
    void open_map(LongHead head);
    void open_file_map(const Projected& projected);
    void open_wanted_map();
    bool map_has_come() const { return has_come(coming_map_); }
    GpuDevice* tiles_device() const;
    Result<void> compute_at_once(double flops);
    void collect_stages();
    void keep_pick_in_range();
    void collect_stats();
    Result<GpuBuffer*> add_host_stage(const HostStage& stage);
    Result<void> add_output_stages();
    void fill_output_stages();

    GpuDevice& device_;
    bool on_cpu_;
    int frames_in_flight_, updates_since_end_ = 0;
    Settings settings_;
    std::vector<Settings> undo_, redo_;
    uint64_t last_gesture_ = 0;
    bool dirty_ = true, wants_roof_ = false;
    Projected projected_;
    std::optional<Settings> projected_by_;
    std::shared_ptr<AttentionRun> run_;
    std::vector<std::shared_ptr<const GpuBuffer>> host_buffers_;
    GpuBuffer *joined_ = nullptr, *output_ = nullptr;  // of host_buffers_, where the level has them
    std::unique_ptr<KeptResult> kept_;
    std::vector<std::unique_ptr<KeptResult>>
        retired_;  // to go with the next frame, when nothing is in flight
    std::unique_ptr<HeadGrid> grid_;
    std::vector<std::unique_ptr<HeadGrid>> retired_grids_;
    std::vector<Stage> stages_;
    std::string problem_;
    std::optional<Derivation> derivation_;
    std::optional<Cell> derived_cell_;
    const AttentionRun* derived_from_ = nullptr;
    std::vector<HeadStats> head_stats_;
    bool stats_done_ = false;
    std::optional<Restoring> restoring_;
    size_t fade_from_ = 0;
    std::optional<std::chrono::steady_clock::time_point> fade_begin_;
    std::string wanted_map_;
    std::future<Result<LongHead>> coming_map_;
    std::vector<LockedMatrix> locked_;
    std::optional<MapSource> map_source_;
    uint32_t wanted_map_head_ = 0;
    std::future<Result<std::shared_ptr<const ImportedFile>>> coming_file_;
    std::string coming_path_;
    std::optional<Projecting> projecting_;
    // Ended steps of the threads that read files and derive picks, which may outlive this.
    std::shared_ptr<std::atomic<uint64_t>> thread_steps_ = std::make_shared<std::atomic<uint64_t>>(0);
    std::optional<MapPick> map_pick_;
    std::future<MapPick> coming_pick_;  // ends before the map that it reads
    std::optional<MapBlock> wanted_largest_;
    std::optional<LongHead> wanted_head_;
    TilesOn tiles_on_ = TilesOn::automatic;
    std::vector<double> run_seconds_;
    HeadSummary summary_;
    std::string summary_of_;  // what summary_ was made of
};

}  // namespace fovea::visualizer
