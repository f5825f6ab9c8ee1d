#include <fovea/inspect/head_stats.hpp>

#include <algorithm>
#include <cmath>

namespace fovea {

void HeadStatsCollector::add_row(int64_t position, std::span<const float> weights) {
    double entropy = 0.0, distance = 0.0, largest = 0.0;
    uint64_t seen = 0;
    for (size_t j = 0; j < weights.size(); ++j) {
        const double weight = weights[j];
        if (!(weight > 0.0)) continue;
        ++seen;
        entropy -= weight * std::log(weight);
        distance += weight * std::fabs(static_cast<double>(position - static_cast<int64_t>(j)));
        largest = std::max(largest, weight);
    }
    if (seen == 0) return;
    ++sums_.rows;
    sums_.entropy += entropy;
    if (seen > 1) sums_.relative_entropy += entropy / std::log(static_cast<double>(seen));
    sums_.mean_distance += distance;
    sums_.first_token_mass += static_cast<double>(weights[0]);
    sums_.largest_weight += largest;
    if (position >= 1 && position <= static_cast<int64_t>(weights.size())) {
        ++rows_with_previous_;
        sums_.previous_token += static_cast<double>(weights[static_cast<size_t>(position - 1)]);
    }
}

HeadStats HeadStatsCollector::result() const {
    HeadStats means = sums_;
    if (means.rows == 0) return means;
    const auto rows = static_cast<double>(means.rows);
    for (double* mean : {&means.entropy, &means.relative_entropy, &means.mean_distance,
                         &means.first_token_mass, &means.largest_weight}) {
        *mean /= rows;
    }
    if (rows_with_previous_ != 0) means.previous_token /= static_cast<double>(rows_with_previous_);
    return means;
}

HeadStats head_stats(std::span<const float> weights, uint64_t keys, int64_t offset) {
    HeadStatsCollector collector;
    for (uint64_t row = 0; keys != 0 && row < weights.size() / keys; ++row) {
        collector.add_row(static_cast<int64_t>(row) + offset, weights.subspan(row * keys, keys));
    }
    return collector.result();
}

}  // namespace fovea
