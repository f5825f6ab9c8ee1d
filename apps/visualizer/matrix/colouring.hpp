// From numbers to a place on a colour map: what the shader, the colour bar, digits and drawings agree on.
#pragma once

#include "model/view_state.hpp"

#include <fovea/inspect/colour_map.hpp>

namespace fovea::visualizer {

struct Colouring {
    ColourMap map = ColourMap::viridis;
    Spread spread = Spread::linear;  // never automatic
    double low = 0, high = 1;        // of linear and logarithmic; symmetric_log: -high to high
    double linear_within = 0;        // symmetric_log: linear from 0 to here, logarithmic beyond

    // 0 to 1, clamped; NaN for NaN.
    double place(double value) const;
    double value_at(double place) const;
};

// By the view's choices and, where they are automatic, by the values' own range.
Colouring colouring_of(const ViewState& view, const ColourRange& fitted);
Rgb colour_for(const Colouring& colouring, const ColourTable& table, double value);
const char* spread_name(Spread spread);

}  // namespace fovea::visualizer
