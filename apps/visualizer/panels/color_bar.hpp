// The legend of a view: a bar of its colors with five values.
#pragma once

#include "matrix/coloring.hpp"
#include "panels/panels.hpp"

namespace fovea::visualizer {

// The highest value is at the top; values with this many digits are to the right of the bar. An end that
// values exceed has a dot of another color, and its value the sign for at least or at most.
void draw_color_bar(const PanelContext& ui, const Coloring& coloring, const ScreenRect& bar, int digits,
                    const Clamped& clamped);

}  // namespace fovea::visualizer
