// Antialiased shapes and text on an image, in units of the layout.
#pragma once

#include <fovea/inspect/heatmap.hpp>

#include "inspect/picture/font.hpp"

#include <string_view>

namespace fovea::picture {

struct Point {
    double x = 0.0, y = 0.0;
};
struct Box {
    double x = 0.0, y = 0.0, width = 0.0, height = 0.0;
};
enum class Anchor { left, centre, right };

class Canvas {
  public:
    // Units times pixel_ratio, rounded up to whole pixels.
    Canvas(double width, double height, double pixel_ratio, Rgb background);

    void fill(const Box& box, double corner_radius, Rgb color);
    // Diagonal lines over a rounded box.
    void hatch(const Box& box, double corner_radius, double spacing, Rgb color);
    // The points up to `radius` from the straight line between a and b; with a line, its outline of that
    // width.
    void capsule(Point a, Point b, double radius, double line, Rgb color);
    // A cubic Bezier curve from a to b.
    void curve(Point a, Point handle_a, Point handle_b, Point b, double thickness, Rgb color);
    // `at` is the anchor on the baseline. Positive degrees turn clockwise around it.
    void text(const Font& font, std::string_view text, double size, Point at, Anchor side, Rgb color,
              double degrees = 0.0);

    RgbaImage take() { return std::move(image_); }

  private:
    template <class Coverage>
    void blend(const Box& box, Rgb color, const Coverage& coverage);
    void blend_pixel(int64_t x, int64_t y, Rgb color, double alpha);

    RgbaImage image_;
    double ratio_;
};

}  // namespace fovea::picture
