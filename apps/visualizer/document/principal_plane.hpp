// Principal components (Pearson, 1901) of a few wide vectors: the two directions in which they lie farthest
// apart, or, through the origin, the two that hold most of their lengths.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace fovea::visualizer {

struct PrincipalPlane {
    std::vector<double> origin;  // of the plane's coordinates; zeros through the origin
    std::array<std::vector<double>, 2>
        axes;          // of length 1 and at right angles, or zeros where nothing is left
    double share = 1;  // of the squares of what the vectors are, within the plane

    std::array<double, 2> place(std::span<const float> vector) const;
    // The vector whose place is `to`, changed within the plane alone.
    std::vector<float> moved(std::span<const float> vector, std::array<double, 2> to) const;
};

// `rows` of `width` numbers each. `centred`: about their mean. Two numbers through the origin keep their own
// axes.
PrincipalPlane principal_plane(std::span<const float> rows, size_t width, bool centred);

}  // namespace fovea::visualizer
