#include "document/head_order.hpp"

#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::visualizer {

double head_figure(const HeadStats& stats, const TokenScores& scores, int figure) {
    const auto known = [](float score) { return std::isnan(score) ? 0.0 : double(score); };
    switch (figure) {
        case 1:
            return stats.entropy;
        case 2:
            return stats.mean_distance;
        case 3:
            return stats.first_token_mass;
        case 4:
            return stats.previous_token;
        case 5:
            return known(scores.induction);
        default:
            return known(scores.same);
    }
}

std::string figure_text(double value, int figure) {
    const char* const unit = figure == 1 ? " nats" : figure == 2 ? " tokens" : "";
    return format_fixed(value, 2) + unit;
}

double largest_figure(const std::vector<double>& figures) {
    return figures.empty() ? 0 : std::max(0.0, *std::max_element(figures.begin(), figures.end()));
}

std::vector<size_t> ordered_heads(const std::vector<double>& figures, const HeadOrder& order) {
    std::vector<size_t> heads(figures.size());
    std::iota(heads.begin(), heads.end(), size_t{0});
    if (order.figure == 0) return heads;
    const double edge = double(order.edge) * largest_figure(figures);
    std::erase_if(heads, [&](size_t head) {
        return order.rising ? order.edge < 1.0f && figures[head] > edge : figures[head] < edge;
    });
    std::stable_sort(heads.begin(), heads.end(), [&](size_t a, size_t b) {
        return order.rising ? figures[a] < figures[b] : figures[a] > figures[b];
    });
    return heads;
}

}  // namespace fovea::visualizer
