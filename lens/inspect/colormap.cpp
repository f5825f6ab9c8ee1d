#include <fovea/inspect/colormap.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

constexpr Rgb rgb(uint32_t code) {
    return {static_cast<uint8_t>(code >> 16), static_cast<uint8_t>(code >> 8 & 0xFFu),
            static_cast<uint8_t>(code & 0xFFu)};
}

// Evenly spaced control points, from low to high.
constexpr std::array<Rgb, 10> kViridis = {rgb(0x440154), rgb(0x482878), rgb(0x3e4989), rgb(0x31688e),
                                          rgb(0x26828e), rgb(0x1f9e89), rgb(0x35b779), rgb(0x6ece58),
                                          rgb(0xb5de2b), rgb(0xfde725)};
constexpr std::array<Rgb, 10> kMagma = {rgb(0x000004), rgb(0x180f3d), rgb(0x440f76), rgb(0x721f81),
                                        rgb(0x9e2f7f), rgb(0xcd4071), rgb(0xf1605d), rgb(0xfd9668),
                                        rgb(0xfeca8d), rgb(0xfcfdbf)};
constexpr std::array<Rgb, 10> kCividis = {rgb(0x00224e), rgb(0x123570), rgb(0x3b496c), rgb(0x575d6d),
                                          rgb(0x707173), rgb(0x8a8678), rgb(0xa59c74), rgb(0xc3b369),
                                          rgb(0xe1cc55), rgb(0xfee838)};
constexpr std::array<Rgb, 2> kGrey = {rgb(0x0a0a0a), rgb(0xfafafa)};
constexpr std::array<Rgb, 9> kBlueOrange = {rgb(0x0b2a5b), rgb(0x1b5c9e), rgb(0x4f94cd),
                                            rgb(0xa9cde6), rgb(0xf4f2ee), rgb(0xf5c591),
                                            rgb(0xe08a35), rgb(0xae5510), rgb(0x4f2004)};

std::span<const Rgb> control_points(Colormap map) {
    switch (map) {
        case Colormap::viridis:
            return kViridis;
        case Colormap::magma:
            return kMagma;
        case Colormap::cividis:
            return kCividis;
        case Colormap::grey:
            return kGrey;
        case Colormap::blue_orange:
            return kBlueOrange;
    }
    return kGrey;
}

// Catmull-Rom through p1 and p2; the neighbours give the slopes.
double spline(double p0, double p1, double p2, double p3, double t) {
    const double a = 2.0 * p1, b = p2 - p0, c = 2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3,
                 d = -p0 + 3.0 * (p1 - p2) + p3;
    return 0.5 * (a + t * (b + t * (c + t * d)));
}

uint8_t channel(std::span<const Rgb> points, uint8_t Rgb::*which, double place) {
    const double at = place * static_cast<double>(points.size() - 1);
    const auto last = static_cast<ptrdiff_t>(points.size()) - 1;
    const auto segment = std::min(static_cast<ptrdiff_t>(at), last - 1);
    const auto point = [&](ptrdiff_t index) {
        return static_cast<double>(points[static_cast<size_t>(std::clamp<ptrdiff_t>(index, 0, last))].*which);
    };
    const double value = spline(point(segment - 1), point(segment), point(segment + 1), point(segment + 2),
                                at - static_cast<double>(segment));
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

double linear_light(uint8_t channel_value) {
    const double c = channel_value / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

}  // namespace

std::string_view colormap_name(Colormap map) {
    switch (map) {
        case Colormap::viridis:
            return "viridis";
        case Colormap::magma:
            return "magma";
        case Colormap::cividis:
            return "cividis";
        case Colormap::grey:
            return "grey";
        case Colormap::blue_orange:
            return "blue-orange";
    }
    return "";
}

std::optional<Colormap> colormap_from_name(std::string_view name) {
    for (const Colormap map : kColormaps) {
        if (colormap_name(map) == name) return map;
    }
    return std::nullopt;
}

ColorTable color_table(Colormap map) { return color_table(control_points(map)); }

ColorTable color_table(std::span<const Rgb> points) {
    ColorTable table;
    for (size_t i = 0; i < table.size(); ++i) {
        const double place = static_cast<double>(i) / static_cast<double>(table.size() - 1);
        table[i] = {channel(points, &Rgb::r, place), channel(points, &Rgb::g, place),
                    channel(points, &Rgb::b, place)};
    }
    return table;
}

double luminance(Rgb color) {
    return 0.2126 * linear_light(color.r) + 0.7152 * linear_light(color.g) + 0.0722 * linear_light(color.b);
}

double contrast(Rgb a, Rgb b) {
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
    return std::max(x, y) / std::min(x, y);
}

Rgb text_color_on(Rgb background) {
    // Plain black: next to white it is the only ink with a contrast of 4.5:1 on every color, including
    // viridis' teal.
    constexpr Rgb kDark = rgb(0x000000), kLight = rgb(0xffffff);
    return contrast(background, kLight) >= contrast(background, kDark) ? kLight : kDark;
}

double lightness(Rgb color) {
    const double y = luminance(color);
    return y <= 216.0 / 24389.0 ? y * 24389.0 / 27.0 : 116.0 * std::cbrt(y) - 16.0;
}

double ColorRange::place(double value) const {
    if (std::isnan(value)) return value;
    if (scale == ColorScale::symmetric) {
        const double reach = std::max(std::fabs(low), std::fabs(high));
        return reach > 0.0 ? std::clamp(0.5 + 0.5 * value / reach, 0.0, 1.0) : 0.5;
    }
    if (!(high > low)) return 0.5;
    if (scale == ColorScale::logarithmic) {
        return value > low ? std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0) : 0.0;
    }
    return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

double ColorRange::value_at(double place) const {
    if (scale == ColorScale::symmetric)
        return (2.0 * place - 1.0) * std::max(std::fabs(low), std::fabs(high));
    if (scale == ColorScale::logarithmic && low > 0.0) return low * std::pow(high / low, place);
    return low + place * (high - low);
}

ColorRange fitted_range(std::span<const float> values) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const float value : values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, static_cast<double>(value));
        high = std::max(high, static_cast<double>(value));
    }
    if (low > high) return {};
    if (low < 0.0) return {low, high, ColorScale::symmetric};
    return {0.0, high, ColorScale::linear};
}

Rgb color_of(double value, const ColorTable& table, const ColorRange& range) {
    if (std::isnan(value)) return kNanColor;
    if (std::isinf(value)) return kInfinityColor;
    const double index = range.place(value) * static_cast<double>(table.size() - 1);
    return table[static_cast<size_t>(std::lround(index))];
}

}  // namespace fovea
