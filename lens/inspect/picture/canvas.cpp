#include "inspect/picture/canvas.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::picture {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Distance from a point to the edge of a rounded box, negative inside; all in pixels.
double distance_to(const Box& box, double radius, Point p) {
    const double half_width = box.width / 2.0, half_height = box.height / 2.0;
    const double r = std::min({radius, half_width, half_height});
    const double dx = std::fabs(p.x - box.x - half_width) - half_width + r;
    const double dy = std::fabs(p.y - box.y - half_height) - half_height + r;
    return std::min(std::max(dx, dy), 0.0) + std::hypot(std::max(dx, 0.0), std::max(dy, 0.0)) - r;
}

double coverage_of(double distance) { return std::clamp(0.5 - distance, 0.0, 1.0); }

double sample(const TextMask& mask, double x, double y) {
    const double left = std::floor(x), top = std::floor(y);
    const auto at = [&](double column, double row) {
        const bool inside = column >= 0 && row >= 0 && column < mask.width && row < mask.height;
        return inside ? mask.coverage[static_cast<size_t>(row * mask.width + column)] / 255.0 : 0.0;
    };
    const double fx = x - left, fy = y - top;
    return (at(left, top) * (1.0 - fx) + at(left + 1, top) * fx) * (1.0 - fy) +
           (at(left, top + 1) * (1.0 - fx) + at(left + 1, top + 1) * fx) * fy;
}

}  // namespace

Canvas::Canvas(double width, double height, double pixel_ratio, Rgb background) : ratio_(pixel_ratio) {
    image_.width = static_cast<uint32_t>(std::ceil(width * pixel_ratio));
    image_.height = static_cast<uint32_t>(std::ceil(height * pixel_ratio));
    image_.rgba.resize(size_t{4} * image_.width * image_.height);
    for (size_t i = 0; i < image_.rgba.size(); i += 4) {
        image_.rgba[i] = background.r;
        image_.rgba[i + 1] = background.g;
        image_.rgba[i + 2] = background.b;
        image_.rgba[i + 3] = 255;
    }
}

void Canvas::blend_pixel(int64_t x, int64_t y, Rgb color, double alpha) {
    if (x < 0 || y < 0 || x >= image_.width || y >= image_.height || alpha <= 0.0) return;
    uint8_t* pixel =
        image_.rgba.data() + 4 * (static_cast<size_t>(y) * image_.width + static_cast<size_t>(x));
    const uint8_t channels[3] = {color.r, color.g, color.b};
    for (int c = 0; c < 3; ++c) {
        pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] + (channels[c] - pixel[c]) * alpha));
    }
}

// coverage(point in pixels) over the box in units, one pixel around it included.
template <class Coverage>
void Canvas::blend(const Box& box, Rgb color, const Coverage& coverage) {
    const auto first_x = static_cast<int64_t>(std::floor(box.x * ratio_)) - 1;
    const auto first_y = static_cast<int64_t>(std::floor(box.y * ratio_)) - 1;
    const auto last_x = static_cast<int64_t>(std::ceil((box.x + box.width) * ratio_)) + 1;
    const auto last_y = static_cast<int64_t>(std::ceil((box.y + box.height) * ratio_)) + 1;
    for (int64_t y = first_y; y <= last_y; ++y) {
        for (int64_t x = first_x; x <= last_x; ++x) {
            blend_pixel(x, y, color, coverage({static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5}));
        }
    }
}

void Canvas::fill(const Box& box, double corner_radius, Rgb color) {
    const Box pixels{box.x * ratio_, box.y * ratio_, box.width * ratio_, box.height * ratio_};
    blend(box, color, [&](Point p) { return coverage_of(distance_to(pixels, corner_radius * ratio_, p)); });
}

void Canvas::hatch(const Box& box, double corner_radius, double spacing, Rgb color) {
    const Box pixels{box.x * ratio_, box.y * ratio_, box.width * ratio_, box.height * ratio_};
    const double step = spacing * ratio_, half = 0.5 * ratio_;
    blend(box, color, [&](Point p) {
        const double across = (p.x + p.y) / std::sqrt(2.0);
        const double from_line = std::fabs(across - std::round(across / step) * step);
        return coverage_of(from_line - half) * coverage_of(distance_to(pixels, corner_radius * ratio_, p));
    });
}

void Canvas::capsule(Point a, Point b, double radius, double line, Rgb color) {
    const double reach = radius + line;
    const Box around{std::min(a.x, b.x) - reach, std::min(a.y, b.y) - reach, std::fabs(a.x - b.x) + 2 * reach,
                     std::fabs(a.y - b.y) + 2 * reach};
    const double x = (b.x - a.x) * ratio_, y = (b.y - a.y) * ratio_, square = x * x + y * y;
    blend(around, color, [&](Point p) {
        const double px = p.x - a.x * ratio_, py = p.y - a.y * ratio_;
        const double share = square > 0 ? std::clamp((px * x + py * y) / square, 0.0, 1.0) : 0.0;
        const double distance = std::hypot(px - share * x, py - share * y) - radius * ratio_;
        return coverage_of(line > 0 ? std::fabs(distance) - line * ratio_ / 2 : distance);
    });
}

void Canvas::curve(Point a, Point handle_a, Point handle_b, Point b, double thickness, Rgb color) {
    constexpr int kSegments = 64;
    Point before = a;
    for (int n = 1; n <= kSegments; ++n) {
        const double t = double(n) / kSegments, u = 1 - t;
        const auto at = [&](double p, double q, double r, double s) {
            return u * u * u * p + 3 * u * u * t * q + 3 * u * t * t * r + t * t * t * s;
        };
        const Point next{at(a.x, handle_a.x, handle_b.x, b.x), at(a.y, handle_a.y, handle_b.y, b.y)};
        capsule(before, next, thickness / 2, 0, color);
        before = next;
    }
}

void Canvas::text(const Font& font, std::string_view text, double size, Point at, Anchor side, Rgb color,
                  double degrees) {
    if (text.empty()) return;
    const TextMask mask = font.draw(text, size * ratio_);
    const double advance = font.width(text, size * ratio_);
    const double before = side == Anchor::left ? 0.0 : side == Anchor::centre ? advance / 2.0 : advance;
    const Point anchor{at.x * ratio_, at.y * ratio_};
    if (degrees == 0.0) {
        // On whole pixels: sharp stems.
        const auto left = std::llround(anchor.x - before), top = std::llround(anchor.y) - mask.ascent;
        for (int row = 0; row < mask.height; ++row) {
            for (int column = 0; column < mask.width; ++column) {
                const auto alpha = mask.coverage[static_cast<size_t>(row * mask.width + column)];
                blend_pixel(left + column, top + row, color, alpha / 255.0);
            }
        }
        return;
    }
    const double angle = degrees * kPi / 180.0, cos = std::cos(angle), sin = std::sin(angle);
    const double reach = std::hypot(mask.width, mask.height) + 2.0;
    const Box around{(anchor.x - reach) / ratio_, (anchor.y - reach) / ratio_, 2 * reach / ratio_,
                     2 * reach / ratio_};
    blend(around, color, [&](Point p) {
        const double dx = p.x - anchor.x, dy = p.y - anchor.y;
        return sample(mask, dx * cos + dy * sin + before - 0.5, dy * cos - dx * sin + mask.ascent - 0.5);
    });
}

}  // namespace fovea::picture
