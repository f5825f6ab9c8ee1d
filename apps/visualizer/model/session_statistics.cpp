// What stands beside the matrices: statistics of stages and heads, and alarms for numbers that cannot be
// right.
#include "matrix/colouring.hpp"
#include "model/session.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostRunTimes = 120;
// Statistics of a stage are taken on this thread, between two frames.
constexpr size_t kMostStatsValues = 16u << 20;
constexpr size_t kHistogramBins = 64;
constexpr double kRowSumAlarm = 1e-3;

StageStats stats_of(std::span<const float> values) {
    StageStats stats;
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint64_t finite = 0;
    for (const float value : values) {
        if (std::isfinite(value)) {
            sum += double(value);
            low = std::min(low, double(value)), high = std::max(high, double(value));
            ++finite;
        } else if (std::isnan(value)) {
            ++stats.nan;
        } else {
            ++(value < 0 ? stats.hidden : stats.infinite);
        }
    }
    if (finite > 0) stats.low = low, stats.high = high, stats.mean = sum / double(finite);
    return stats;
}

}  // namespace

// What the pipeline rail says of each stage, and alarms for numbers that cannot be right.
void Session::collect_stats() {
    if (stats_done_) return;
    stats_done_ = true;
    if (const double busy = run_->times().busy_s; busy > 0 && !run_->stands_in()) {
        if (run_seconds_.size() == kMostRunTimes) run_seconds_.erase(run_seconds_.begin());
        run_seconds_.push_back(busy);
    }
    for (Stage& stage : stages_) {
        for (uint32_t head = 0; head < stage.heads; ++head)
            stage.ranges.push_back(fitted_range(stage.head_values(head)));
        if (stage.values.size() > kMostStatsValues) continue;
        stage.stats = stats_of(stage.values);
        if (stage.stats->nan > 0)
            report(stage.name, format_count(stage.stats->nan) + " values are not numbers", true);
        if (stage.stats->infinite > 0)
            report(stage.name, format_count(stage.stats->infinite) + " values are infinite", true);
        if (stage.name != "weights" || settings_.dropout || !projected_.extras.sinks.empty()) continue;
        for (uint64_t row = 0; row < stage.heads * stage.rows; ++row) {
            double sum = 0;
            for (const float w : stage.values.subspan(row * stage.columns, stage.columns)) sum += double(w);
            if (sum == 0 || std::abs(sum - 1) <= kRowSumAlarm) continue;
            report(stage.name,
                   "row " + std::to_string(row % stage.rows) + " of head " +
                       std::to_string(row / stage.rows + 1) + " sums to " + format_number(sum, 7),
                   true);
            break;
        }
    }
}

const HeadSummary& Session::head_summary() {
    const Shown now = shown();
    const Stage& s = *now.stage;
    const Colouring colouring = colouring_of(view, s.ranges.at(now.head));
    const std::string key = std::to_string(reinterpret_cast<uintptr_t>(s.buffer)) + s.name + "/" +
                            std::to_string(now.head) + "/" + format_number(colouring.low, 9) + "/" +
                            format_number(colouring.high, 9) + "/" + spread_name(colouring.spread);
    if (key == summary_of_) return summary_;
    summary_of_ = key;
    summary_ = {std::vector<float>(s.rows), std::vector<float>(s.rows), std::vector<float>(s.columns),
                std::vector<uint32_t>(kHistogramBins)};
    const std::span<const float> values = s.head_values(now.head);
    for (uint64_t row = 0; row < s.rows; ++row) {
        double sum = 0, entropy = 0;
        for (uint64_t column = 0; column < s.columns; ++column) {
            const float value = values[row * s.columns + column];
            if (!std::isfinite(value)) continue;
            sum += double(value);
            if (value > 0) entropy -= double(value) * std::log(double(value));
            summary_.column_sums[column] += value;
            ++summary_.histogram[size_t(colouring.place(double(value)) * (kHistogramBins - 1) + 0.5)];
        }
        summary_.row_sums[row] = float(sum);
        summary_.row_entropies[row] = float(entropy);
    }
    return summary_;
}

const std::vector<HeadStats>& Session::head_stats() {
    const Stage* weights = complete() ? find_stage("weights") : nullptr;
    if (weights && head_stats_.empty() && weights->values.size() <= kMostStatsValues)
        for (uint32_t head = 0; head < weights->heads; ++head)
            head_stats_.push_back(fovea::head_stats(weights->head_values(head), weights->columns));
    return head_stats_;
}

}  // namespace fovea::visualizer
