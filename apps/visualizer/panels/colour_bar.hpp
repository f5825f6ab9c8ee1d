// What a view's colours mean: a bar of them with five values beside it.
#pragma once

#include "matrix/colouring.hpp"
#include "panels/panels.hpp"

namespace fovea::visualizer {

// The highest value on top; its values with this many digits stand to the right, outside of the bar.
void draw_colour_bar(const PanelContext& ui, const Colouring& colouring, const ScreenRect& bar, int digits);

}  // namespace fovea::visualizer
