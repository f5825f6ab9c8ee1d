// The program between files and panels: one document, its computed results, the map, and the state of the
// views. Each owner keeps its own state; the functions here involve several of them and follow the order of a
// frame.
#pragma once

#include "document/cell_inputs.hpp"
#include "document/computation.hpp"
#include "document/document.hpp"
#include "document/motion.hpp"
#include "document/past_results.hpp"
#include "document/playground.hpp"
#include "document/problems.hpp"
#include "document/shown_map.hpp"
#include "document/vector_plot.hpp"
#include "document/view_state.hpp"
#include "document/window_state.hpp"

#include <algorithm>
#include <functional>

namespace fovea::visualizer {

// The matrix that the view shows: the selection, or a locked tab.
struct Shown {
    const Stage* stage;
    uint32_t head;
    const AttentionRun* run;
    const std::vector<std::string>* tokens;
};

// All of a workbench that is not on its device: another one goes on from it.
struct WorkbenchCarry {
    Document::History history;
    ViewState view;
    WindowState window;
    Problems problems;
    std::vector<PastResult> past;
    ShownMap::Carry map;
};

class Workbench {
  public:
    // `frames_in_flight`: submissions after which update()'s caller has waited for a recorded one; 0 where
    // each call is waited for, and nothing is left to threads. `wake` is called from other threads when there
    // is something new to draw.
    Workbench(GpuDevice& device, bool on_cpu, int frames_in_flight = 0, std::function<void()> wake = {})
        : background_(frames_in_flight > 0, std::move(wake)),
          document(background_, problems),
          computation(device, on_cpu, frames_in_flight, background_, problems, released),
          map(device, background_, problems, released),
          training(background_, document) {}

  private:
    const Background background_;

  public:
    Problems problems;
    // Buffers that the matrix renderer has to forget before they go.
    std::vector<VkBuffer> released;
    Document document;
    Computation computation;
    ShownMap map;
    VectorPlot vectors;
    ViewState view;
    WindowState window;
    Motion motion{window};
    Training training;
    PastResults past{*this};

    // Computes what the settings ask for, within `flops` of device work for this frame; outside a render
    // pass. True if there is more to do. While needs_idle(), no frame may be in flight: buffers are replaced.
    Result<bool> update(VkCommandBuffer cmd, double flops);
    bool needs_idle() const {
        return is_behind() || computation.has_retired() || map.needs_idle() || document.file_has_come();
    }

    // The shown result is that of the settings, with its statistics.
    bool is_settled() const {
        return computation.measured() && !is_behind() && !computation.projecting() && !past.restoring();
    }

    // ---- what is shown ----
    const Stage& stage() const { return computation.stages()[view.stage]; }
    Shown shown() const;
    // Shows a stage: its pick and head within range, the view fitted. With motion the one before fades into
    // it.
    void show_stage(size_t index);
    // The derivation of the picked cell, recomputed from q, k, v; none where the stage is not over keys.
    const std::optional<Derivation>& derivation();
    // True if the picked cell is a score of the model in the present result, which why() then splits; see
    // Computation::why().
    bool has_why() const;
    const ScoreWriters* why() {
        return computation.why({document.settings().mapping.layer, view.head, uint64_t(view.picked_row),
                                uint64_t(view.picked_column)});
    }
    // Shows the head that wrote to a token's row, with the token as the query and its largest weight.
    void show_writer(const Writer& head, uint64_t token);
    // The picked cell of any other stage as a sum.
    std::optional<CellSum> picked_sum() const;
    // Returns the cells that the picked cell is computed from, in the shown result.
    std::vector<CellInput> picked_inputs() const;
    // Goes to the matrix of an input, where its cells are framed and the picked query and key stay as far as
    // they are among them; not from a locked tab. And back to the cell before.
    void show_input(const CellInput& input);
    void go_back();
    // The weights for lists and lines next to the matrix: the shown stage and its head if that has weights;
    // else the weights stage.
    struct Weights {
        const Stage* stage;
        uint32_t head;
        std::span<const float> row(uint64_t query) const;  // `query` is clamped to the last row
    };
    Weights shown_weights() const;
    // A level, with the stage that it is about.
    void show_level(int level);
    // A query's largest weight is picked, once there is a result; of the last query beyond the text.
    void pick_largest(uint64_t query);
    const HeadSummary& head_summary();
    const HeadGrid* head_grid() { return computation.head_grid(document.settings()); }
    // A model that learned a task, with the head and the cell that it is about.
    void show_task(const std::string& task);
    // The head and the cell that a session is about; of a model with several layers its heads are counted
    // layer by layer.
    void show_first_sight(const Session& session);
    void show_head_number(uint32_t number);
    // Returns the model's predictions after the picked query.
    const PromptNext* next_table() {
        return computation.next_table(document.settings(), uint64_t(std::max(view.picked_row, 0)));
    }
    // Shows a head of a layer, as A; or compares the shown or kept A with it, as B.
    void show_head(uint32_t layer, uint32_t head);
    void compare_with_head(uint32_t layer, uint32_t head);

    // The trained state in every panel: a step of undo.
    void show_trained();

    // ---- files ----
    // Opens a file of tensors. An error becomes a line of the Problems panel. In a window a thread reads a
    // large file: then this returns false without a problem. The file opens some frames later, with the sheet
    // that says how it is read.
    bool open_file(const std::string& path);
    // Shows the shown head of the rejected settings as a map, which keeps no matrices.
    void show_refused_as_map();

    // Runs a request once the result is complete. The Problems panel reports requests whose settings changed
    // before that. The last request counts.
    // Acts on the settings' result: now, or at the end of the update with which it is complete. Without a
    // name a wish that came to nothing is not reported.
    void when_settled(std::string what, std::function<void()> act);
    WorkbenchCarry carry();
    void take(WorkbenchCarry carried);

    // ---- threads ----
    // What a thread prepares for the next result: "reading model.safetensors". Empty: nothing; until then the
    // last result stays.
    std::string preparing() const;
    // Threads work, or have ended and wait for the next frame.
    bool threads_work() const {
        return document.reads_file() || computation.projecting() || map.threads_work();
    }
    bool threads_ended() const {
        return document.file_has_come() || computation.projection_has_come() || computation.next_has_come() ||
               map.threads_ended();
    }
    // Counts the steps that background threads have finished: a change is a reason to draw.
    uint64_t background_steps() const {
        return (map ? map.head()->finished_tiles() : 0) + computation.finished_layers() +
               background_.steps() + training.changes();
    }

  private:
    // The computation or the map has to begin anew.
    bool is_behind() const {
        return (!past.restoring() && seen_revision_ != document.revision()) || computation.wants_begin() ||
               map.wants_update();
    }
    Result<void> begin();
    const AttentionResult& shown_result() const;
    void grant_wish();
    void keep_pick_in_range();
    void file_was_read(Document::Opened opened, bool with_sheet);

    uint64_t seen_revision_ = 0;
    struct Wish {
        std::string what;       // "keeping as A"
        uint64_t revision = 0;  // revision of the document that it belongs to
        std::function<void()> act;
    };
    std::optional<Wish> wish_;
    struct Summarized {
        const Stage* stage = nullptr;
        uint32_t head = 0;
        Coloring coloring;
        friend bool operator==(const Summarized&, const Summarized&) = default;
    };
    Summarized summarized_;  // by summary_
    HeadSummary summary_;
};

// The open file's name, and whether the shown values are not yet or will not be its own; empty: no file is
// open.
std::string file_title(const Workbench& bench);
// Characters of the text and the tokens that are beyond Latin, Greek and mathematics.
std::string rare_text(const Workbench& bench);
// The selected cells of the shown matrix, or all.
CellRect shown_cells(const Workbench& bench);
// Returns "journey", or the index if there is no token, for the shown matrix.
std::string token_label(const Workbench& bench, uint64_t index);
// The same with its index where the shown matrix has the token more than once: "f (10)".
std::string token_name(const Workbench& bench, uint64_t index);
std::string token_name(const std::vector<std::string>& tokens, uint64_t index);
// Names of rows and columns, and of the picked ones: token_name() where they are tokens, else their numbers.
std::string row_name(const Workbench& bench, uint64_t row);
std::string column_name(const Workbench& bench, uint64_t column);
std::string picked_row_name(const Workbench& bench);
std::string picked_column_name(const Workbench& bench);

}  // namespace fovea::visualizer
