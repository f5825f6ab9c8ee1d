// Colors for values: the colormaps, the range that they span, and the color of values outside every map (NaN,
// masked). Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fovea {

struct Rgb {  // sRGB, 8 bits a channel
    uint8_t r = 0, g = 0, b = 0;
    friend bool operator==(const Rgb&, const Rgb&) = default;
};

// viridis, magma and cividis grow evenly in lightness and are safe for color-blind readers (cividis most of
// all); blue_orange is for signed values, neutral in the middle.
enum class Colormap { viridis, magma, cividis, grey, blue_orange };
inline constexpr std::array<Colormap, 5> kColormaps = {Colormap::viridis, Colormap::magma, Colormap::cividis,
                                                       Colormap::grey, Colormap::blue_orange};
std::string_view colormap_name(Colormap map);
std::optional<Colormap> colormap_from_name(std::string_view name);

using ColorTable = std::array<Rgb, 256>;  // from the lowest value to the highest
// Smooth through a few control points; the same in every app.
ColorTable color_table(Colormap map);
// The same through other points (at least 2), evenly spaced from low to high: for an app's own maps.
ColorTable color_table(std::span<const Rgb> control_points);

inline constexpr Rgb kNanColor = {255, 0, 255};       // in every map
inline constexpr Rgb kInfinityColor = {0, 255, 255};  // in every map

// sRGB relative luminance of WCAG, 0 black to 1 white, and the contrast of two colors, 1 to 21.
double luminance(Rgb color);
double contrast(Rgb a, Rgb b);
// Near black or white, whichever is read better on `background`.
Rgb text_color_on(Rgb background);
// Lightness L* of CIE 1976, 0 to 100: what the eye takes for even steps.
double lightness(Rgb color);

// How a range of values is spread over a map.
enum class ColorScale {
    linear,
    logarithmic,  // low must be above 0; values at or below it get the lowest color
    symmetric     // signed values: linear around 0, which is the map's middle, to +-max(|low|, |high|)
};
struct ColorRange {
    double low = 0.0, high = 1.0;
    ColorScale scale = ColorScale::linear;
    double least = 0.0;  // the smallest number above 0, where logarithms begin; 0: not known

    // Place on the map, 0 to 1, clamped. NaN for NaN. A range without width puts everything in the middle.
    double place(double value) const;
    // Returns the value at a position of the color bar, for its ticks.
    double value_at(double place) const;
};
// The finite values' own range: symmetric where there are negative ones, else from 0, which is where weights
// begin.
ColorRange fitted_range(std::span<const float> values);

// A value's color by table and range; kNanColor and kInfinityColor for NaN and infinities.
Rgb color_of(double value, const ColorTable& table, const ColorRange& range);

}  // namespace fovea
