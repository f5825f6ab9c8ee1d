// From values to a place on a colormap: what the shader, the color bar, digits and drawings agree on.
#pragma once

#include <fovea/inspect/colormap.hpp>

#include <cmath>
#include <span>

namespace fovea::visualizer {

enum class Spread { automatic, linear, logarithmic, symmetric_log };
inline constexpr int kSpreadCount = 4;

// The reader's choice of colors for a view.
struct ColorChoice {
    Colormap map = Colormap::viridis;
    bool automatic_map = true;  // diverging for stages with negative values
    Spread spread = Spread::automatic;
    float range_low = NAN, range_high = NAN;  // NaN: that of the values
};

struct Coloring {
    Colormap map = Colormap::viridis;
    Spread spread = Spread::linear;  // never automatic
    double low = 0, high = 1;        // for linear and logarithmic; symmetric_log uses -high to high
    double linear_within = 0;        // symmetric_log: linear from 0 to here, logarithmic beyond

    // 0 to 1, clamped; NaN for NaN.
    double place(double value) const;
    double value_at(double place) const;
    friend bool operator==(const Coloring&, const Coloring&) = default;
};

// By the reader's choices and, where they are automatic, by the values' own range.
Coloring coloring_of(const ColorChoice& choice, const ColorRange& fitted);
Rgb color_for(const Coloring& coloring, const ColorTable& table, double value);
const char* spread_name(Spread spread);

// True for an end if values exceed it and have its color.
struct Clamped {
    bool above = false, below = false;
    void add(const Coloring& coloring, float value) {
        above = above || (double(value) > coloring.high && std::isfinite(value));
        below = below || (double(value) < coloring.low && std::isfinite(value));
    }
};
Clamped clamped_by(const Coloring& coloring, std::span<const float> values);

}  // namespace fovea::visualizer
