// Principal components (Pearson, 1901) of a few wide vectors: the two directions of the largest variance or,
// through the origin, of the largest squared lengths.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace fovea::visualizer {

struct PrincipalPlane {
    std::vector<double> origin;  // origin of the plane's coordinates; zeros if it is the origin itself
    std::array<std::vector<double>, 2> axes;  // orthonormal, or zeros if no variance is left
    double share = 1;                         // fraction of the squared lengths that is within the plane

    std::array<double, 2> place(std::span<const float> vector) const;
    // Returns the vector moved to the place `to`, changed only within the plane.
    std::vector<float> moved(std::span<const float> vector, std::array<double, 2> to) const;
};

// `rows` of `width` numbers each. `centred`: about their mean. Two numbers through the origin keep their own
// axes.
PrincipalPlane principal_plane(std::span<const float> rows, size_t width, bool centred);

}  // namespace fovea::visualizer
