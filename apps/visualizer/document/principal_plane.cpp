#include "document/principal_plane.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {
namespace {

using Vector = std::vector<double>;
constexpr int kSteps = 200;

double dot(const Vector& a, const Vector& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// By power iteration on the products of rows with each other (Gower, 1966), which are fewer than those of
// columns; from the longest row on, so that the same vectors have the same plane.
Vector direction(const std::vector<Vector>& rows, size_t width) {
    const auto longest = std::max_element(
        rows.begin(), rows.end(), [](const Vector& a, const Vector& b) { return dot(a, a) < dot(b, b); });
    Vector along = *longest;
    for (int step = 0; step < kSteps; ++step) {
        const double length = std::sqrt(dot(along, along));
        if (!(length > 0)) return Vector(width, 0);
        Vector next(width, 0);
        for (const Vector& row : rows) {
            const double part = dot(row, along) / length;
            for (size_t c = 0; c < width; ++c) next[c] += part * row[c];
        }
        along = std::move(next);
    }
    const double length = std::sqrt(dot(along, along));
    for (double& value : along) value = length > 0 ? value / length : 0;
    return along;
}

}  // namespace

std::array<double, 2> PrincipalPlane::place(std::span<const float> vector) const {
    std::array<double, 2> at{};
    for (size_t axis = 0; axis < 2; ++axis)
        for (size_t c = 0; c < vector.size(); ++c)
            at[axis] += (double(vector[c]) - origin[c]) * axes[axis][c];
    return at;
}

std::vector<float> PrincipalPlane::moved(std::span<const float> vector, std::array<double, 2> to) const {
    const std::array<double, 2> at = place(vector);
    std::vector<float> out(vector.begin(), vector.end());
    for (size_t c = 0; c < out.size(); ++c)
        out[c] = float(double(out[c]) + (to[0] - at[0]) * axes[0][c] + (to[1] - at[1]) * axes[1][c]);
    return out;
}

PrincipalPlane principal_plane(std::span<const float> values, size_t width, bool centred) {
    PrincipalPlane plane;
    const size_t count = values.size() / width;
    plane.origin.assign(width, 0);
    plane.axes = {Vector(width, 0), Vector(width, 0)};
    if (width == 2 && !centred) {
        plane.axes[0][0] = plane.axes[1][1] = 1;
        return plane;
    }
    std::vector<Vector> rows;
    for (size_t n = 0; n < count; ++n)
        rows.emplace_back(values.begin() + ptrdiff_t(n * width), values.begin() + ptrdiff_t((n + 1) * width));
    if (centred && count > 0) {
        for (const Vector& row : rows)
            for (size_t c = 0; c < width; ++c) plane.origin[c] += row[c] / double(count);
        for (Vector& row : rows)
            for (size_t c = 0; c < width; ++c) row[c] -= plane.origin[c];
    }
    const auto squares = [&] {
        double sum = 0;
        for (const Vector& row : rows) sum += dot(row, row);
        return sum;
    };
    const double all = squares();
    for (Vector& axis : plane.axes) {
        if (!(squares() > 1e-12 * all)) break;  // nothing is left to differ in
        axis = direction(rows, width);
        for (Vector& row : rows) {
            const double part = dot(row, axis);
            for (size_t c = 0; c < width; ++c) row[c] -= part * axis[c];
        }
    }
    plane.share = all > 0 ? 1 - squares() / all : 1;
    return plane;
}

}  // namespace fovea::visualizer
