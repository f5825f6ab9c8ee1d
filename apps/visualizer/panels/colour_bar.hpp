// What a view's colours mean: a bar of them with five values beside it.
#pragma once

#include "matrix/colouring.hpp"
#include "panels/panels.hpp"

namespace fovea::visualizer {

// The highest value on top; its values with this many digits stand to the right, outside of the bar. An end
// that values are beyond has a point of another colour, and its value the sign for at least or at most.
void draw_colour_bar(const PanelContext& ui, const Colouring& colouring, const ScreenRect& bar, int digits,
                     const Clamped& clamped);

}  // namespace fovea::visualizer
