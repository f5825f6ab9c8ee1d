// The result of one description: its tokens and its stages with their values. The selection, A of the
// comparison and locked tabs share results, so that keeping one copies nothing.
#pragma once

#include "document/attention_run.hpp"
#include "document/projected.hpp"
#include "gpu/gpu_device.hpp"
#include "matrix/coloring.hpp"

#include <fovea/inspect.hpp>
#include <fovea/inspect/cell_sum.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::visualizer {

struct StageStats {
    double low = 0, mean = 0, high = 0;          // over the finite values
    uint64_t nan = 0, infinite = 0, hidden = 0;  // hidden: -inf, a masked score
};

// A row of the pipeline rail, and a matrix to look at.
struct Stage {
    std::string name, formula;
    std::optional<StageId> id;  // none: the mean of the heads, or a file's table
    uint64_t heads = 1, rows = 0, columns = 0;
    const GpuBuffer* buffer = nullptr;  // [heads, rows, columns]
    std::span<const float> values;      // the same values, for digits
    bool over_keys = false;             // columns are keys and rows queries: a cell has a derivation
    bool row_tokens = false;            // rows are tokens
    bool is_sum = false;                // a row of it adds up to 1
    GpuBuffer* traced = nullptr;        // the same buffer where the trace fills it, not the call
    std::optional<StageStats> stats;    // once complete
    std::vector<ColorRange> ranges;     // once complete, of each head
    // Weights: cells whose masked score is -inf are hatched, so the masked scores; else null.
    const GpuBuffer* hiding = nullptr;
    std::span<const float> hiding_values;
    // Weights after dropout: cells that the dropout mask has 0 for are hatched the other way; else null.
    const GpuBuffer* dropping = nullptr;
    std::span<const float> dropping_values;
    bool of_heads = false;  // a mean over the heads, whose cells have no derivation

    std::span<const float> head_values(uint32_t head) const {
        return values.subspan(head * rows * columns, rows * columns);
    }
    bool hidden(uint32_t head, uint64_t row, uint64_t column) const;
    bool dropped(uint32_t head, uint64_t row, uint64_t column) const;
};

struct AttentionResult {
    Settings settings;      // the settings of this result
    Settings projected_by;  // the same without a file that only a map shows
    Projected projected;
    std::shared_ptr<Trace> trace;
    std::vector<std::string> warnings;  // about the precision of the call
    std::unique_ptr<AttentionRun> run;
    std::vector<std::unique_ptr<GpuBuffer>> host_buffers;
    std::vector<Stage> stages;

    const std::vector<std::string>& tokens() const { return projected.tokens; }
    const Stage* find_stage(StageId id) const;
    const Stage* find_stage(std::string_view name) const;
    // Returns the layer that cell sums are computed from; it borrows the result.
    LayerNumbers numbers() const;
    // The index of the stage, or of the nearest that there is.
    size_t stage_index(const std::string& name) const;
    // "level 3, 'Your journey ...', float32 on the device"
    std::string title() const;
    uint64_t size_bytes() const;
};

// Describes what the settings mask.
std::string mask_text(const Settings& settings, const CallExtras& extras = {});

// Uploads the projected tensors and makes ready to compute. `wake` as AttentionRun::create has it.
Result<std::shared_ptr<AttentionResult>> make_result(GpuDevice& device, Projected projected,
                                                     const Settings& settings, ComputeOn place,
                                                     const std::function<void()>& wake);
// The stages that the call did not write, once it has ended: the model's trace computes them from the call's
// outputs. On the CPU all values are the trace's, the same in every program.
Result<void> fill_traced_stages(AttentionResult& result);
// Statistics and color ranges of every stage, once its values are there.
void measure_stages(AttentionResult& result);
// A cell of the mean over heads, term by term.
CellSum mean_sum(const AttentionResult& result, uint64_t row, uint64_t column);
// Describes the first row of weights whose sum should be 1 but is not; empty: there is none.
std::string odd_row_of_weights(const AttentionResult& result);

// The figures shown next to the matrix of a head.
struct HeadSummary {
    std::vector<float> row_sums, row_entropies, column_sums;  // hidden and non-finite cells left out
    std::vector<uint32_t> histogram;                          // counts of finite values over the shown range
    bool has_hidden = false, has_dropped = false;
    Clamped clamped;
};

}  // namespace fovea::visualizer
