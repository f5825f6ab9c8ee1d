// From numbers to a place on a colour map: what the shader, the colour bar, digits and drawings agree on.
#pragma once

#include <fovea/inspect/colour_map.hpp>

#include <cmath>
#include <span>

namespace fovea::visualizer {

enum class Spread { automatic, linear, logarithmic, symmetric_log };
inline constexpr int kSpreadCount = 4;

// The reader's choice of colors for a view.
struct ColourChoice {
    ColourMap map = ColourMap::viridis;
    bool automatic_map = true;  // diverging for stages with negative numbers
    Spread spread = Spread::automatic;
    float range_low = NAN, range_high = NAN;  // NaN: that of the values
};

struct Colouring {
    ColourMap map = ColourMap::viridis;
    Spread spread = Spread::linear;  // never automatic
    double low = 0, high = 1;        // for linear and logarithmic; symmetric_log uses -high to high
    double linear_within = 0;        // symmetric_log: linear from 0 to here, logarithmic beyond

    // 0 to 1, clamped; NaN for NaN.
    double place(double value) const;
    double value_at(double place) const;
};

// By the reader's choices and, where they are automatic, by the values' own range.
Colouring colouring_of(const ColourChoice& choice, const ColourRange& fitted);
Rgb colour_for(const Colouring& colouring, const ColourTable& table, double value);
const char* spread_name(Spread spread);

// True for an end if values exceed it and have its color.
struct Clamped {
    bool above = false, below = false;
    void add(const Colouring& colouring, float value) {
        above = above || (double(value) > colouring.high && std::isfinite(value));
        below = below || (double(value) < colouring.low && std::isfinite(value));
    }
};
Clamped clamped_by(const Colouring& colouring, std::span<const float> values);

}  // namespace fovea::visualizer
