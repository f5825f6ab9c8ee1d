// A head as a small picture with its figures: what the heads panel and the grid of all layers have in common.
#pragma once

#include "document/head_grid.hpp"
#include "document/head_order.hpp"
#include "panels/panels.hpp"

#include <fovea/model/token_scores.hpp>

namespace fovea::visualizer {

// A head's figures in a line: "previous token 0.93, induction 0.02, ..."; empty without a text.
std::string scores_text(const TokenScores& scores);

// The combo of orders, its first `count`, and which end comes first.
void order_controls(PanelContext& ui, int count);

struct Thumbnail {
    const GpuBuffer* values;
    const GpuBuffer* hiding;  // null: masked cells are -inf in the values
    uint32_t first_element, rows, columns;
    ColorRange range;
    const GpuBuffer* dropping = nullptr;  // null: no dropout
};
Thumbnail thumbnail_of(const Stage& stage, uint32_t head);  // once it is measured
void draw_thumbnail(PanelContext& ui, const Thumbnail& of, ImVec2 at, ImVec2 size);
// A head of the grid of all layers, at the cursor, with its marks, tooltip and clicks.
void draw_grid_head(PanelContext& ui, const GridLayer& layer, const GridHead& head, float side);
// Returns the known label of the head; for models without labels, the one that its scores on this text give.
std::string job_of(const Settings& settings, const GridHead& head);
// Frames cells of a thumbnail of the stage at `at`, at least as large as can be seen. Returns the frame's
// place.
ScreenRect frame_cells(const PanelContext& ui, const Stage& stage, const CellRect& cells, ImVec2 at,
                       ImVec2 size);
// `of_model`: a right click switches it off.
void head_tooltip(const std::string& name, const HeadStats& stats, const TokenScores& scores,
                  bool of_model = false);

}  // namespace fovea::visualizer
