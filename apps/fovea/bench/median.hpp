#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace fovea::app {

// The value in the middle; of an even number the mean of the two there, so that times and their rates tell
// the same. 0 of none.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

}  // namespace fovea::app
