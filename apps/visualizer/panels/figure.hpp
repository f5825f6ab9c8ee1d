// The shown matrix alone, for papers and slides: its cells, or the selected ones, with labels, and with title
// and colour bar where wanted.
#pragma once

#include "panels/panels.hpp"

namespace fovea::visualizer {

// Units of the layout; `scale` is that of the picture, so that no cell is smaller than a pixel.
ImVec2 figure_size(const Workbench& bench, bool legend, float scale);
// Fills the whole frame.
void draw_figure(PanelContext& ui, bool legend);

}  // namespace fovea::visualizer
