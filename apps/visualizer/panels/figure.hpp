// Draws only the shown matrix, for papers and slides: its cells, or the selected ones, with labels, and
// optionally with title and color bar.
#pragma once

#include "panels/panels.hpp"

namespace fovea::visualizer {

// Units of the layout; `scale` is that of the picture, so that no cell is smaller than a pixel.
ImVec2 figure_size(const Workbench& bench, bool legend, float scale);
// Fills the whole frame.
void draw_figure(PanelContext& ui, bool legend);

}  // namespace fovea::visualizer
