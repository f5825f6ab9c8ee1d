#include "matrix/coloring.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

// Logarithms span so many decades below the largest number where the smallest is not known.
constexpr double kDecades = 4;

double signed_log(double value, double linear_within) {
    return std::copysign(std::log1p(std::abs(value) / linear_within), value);
}

}  // namespace

double Coloring::place(double value) const {
    if (std::isnan(value)) return value;
    double share = 0.5;
    if (spread == Spread::symmetric_log) {
        const double reach = signed_log(high, linear_within);
        share = reach > 0 ? 0.5 + 0.5 * signed_log(value, linear_within) / reach : 0.5;
    } else if (spread == Spread::logarithmic) {
        if (high > low) share = std::log(std::max(value, low) / low) / std::log(high / low);
    } else if (high > low) {
        share = (value - low) / (high - low);
    }
    return std::clamp(share, 0.0, 1.0);
}

double Coloring::value_at(double share) const {
    if (spread == Spread::symmetric_log) {
        const double log = (2 * share - 1) * signed_log(high, linear_within);
        return std::copysign(std::expm1(std::abs(log)) * linear_within, log);
    }
    if (spread == Spread::logarithmic) return low * std::pow(high / low, share);
    return low + share * (high - low);
}

Coloring coloring_of(const ColorChoice& choice, const ColorRange& fitted) {
    const double reach = std::max(std::abs(fitted.low), std::abs(fitted.high));
    const bool has_sign = fitted.scale == ColorScale::symmetric;
    Coloring c;
    c.low = has_sign ? -reach : fitted.low;
    c.high = has_sign ? reach : fitted.high;
    if (std::isfinite(choice.range_low)) c.low = double(choice.range_low);
    if (std::isfinite(choice.range_high)) c.high = double(choice.range_high);
    if (c.high < c.low) std::swap(c.high, c.low);
    c.spread = choice.spread == Spread::automatic ? Spread::linear : choice.spread;
    if (c.spread == Spread::logarithmic && (has_sign || c.high <= 0)) c.spread = Spread::symmetric_log;
    if (c.spread == Spread::logarithmic)
        c.low = std::clamp(c.low, c.high * std::pow(10, -2 * kDecades), c.high);
    if (c.spread == Spread::logarithmic && !std::isfinite(choice.range_low))
        c.low = fitted.least > 0 ? std::clamp(fitted.least, c.high * std::pow(10, -2 * kDecades), c.high)
                                 : c.high * std::pow(10, -kDecades);
    if (c.spread == Spread::symmetric_log) {
        c.high = std::max(std::abs(c.low), std::abs(c.high));
        c.low = -c.high;
        c.linear_within = std::max(c.high * std::pow(10, -kDecades + 1), 1e-30);
    }
    const bool diverging = has_sign || c.spread == Spread::symmetric_log;
    c.map = choice.automatic_map ? (diverging ? Colormap::blue_orange : Colormap::viridis) : choice.map;
    return c;
}

Rgb color_for(const Coloring& c, const ColorTable& table, double value) {
    if (std::isnan(value)) return kNanColor;
    if (std::isinf(value) && value > 0) return kInfinityColor;
    return table[size_t(std::lround(c.place(value) * 255))];
}

Clamped clamped_by(const Coloring& coloring, std::span<const float> values) {
    Clamped clamped;
    for (const float value : values) clamped.add(coloring, value);
    return clamped;
}

const char* spread_name(Spread spread) {
    constexpr const char* kNames[kSpreadCount] = {"automatic", "linear", "logarithmic", "symmetric log"};
    return kNames[size_t(spread)];
}

}  // namespace fovea::visualizer
