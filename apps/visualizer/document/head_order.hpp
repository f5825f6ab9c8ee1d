// The order and the selection of heads: by a figure, ascending or descending.
#pragma once

#include <fovea/inspect/head_stats.hpp>
#include <fovea/model/token_scores.hpp>

#include <string>
#include <vector>

namespace fovea::visualizer {

inline constexpr const char* kHeadOrders[] = {"number",         "entropy",   "distance",  "first token",
                                              "previous token", "induction", "same token"};

struct HeadOrder {
    int figure = 0;       // index into kHeadOrders; 0: by number, and all of them
    bool rising = false;  // the smallest first
    // A share of the largest figure: heads below it are left out or, rising, those above it. Without a filter
    // it is 0 or, rising, 1.
    float edge = 0;

    void turn() { rising = !rising, edge = rising ? 1.0f : 0.0f; }
};

// The figure of kHeadOrders, from 1 on; 0 where the text has no such cell.
double head_figure(const HeadStats& stats, const TokenScores& scores, int figure);
// With as many digits for every head, so that neighbours can be compared, and its unit: "1.20 nats", "0.93".
std::string figure_text(double value, int figure);

double largest_figure(const std::vector<double>& figures);
// Which of the heads are shown, in their order. Equal figures keep the order of their numbers.
std::vector<size_t> ordered_heads(const std::vector<double>& figures, const HeadOrder& order);

}  // namespace fovea::visualizer
