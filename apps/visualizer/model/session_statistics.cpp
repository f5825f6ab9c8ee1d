// What stands beside the matrices: statistics of stages and heads, and alarms for numbers that cannot be
// right.
#include "matrix/colouring.hpp"
#include "model/session.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostRunTimes = 120;
// Statistics of heads are taken on this thread, between two frames.
constexpr size_t kMostStatsValues = 16u << 20;
constexpr size_t kHistogramBins = 64;
constexpr double kRowSumAlarm = 1e-3;

struct Summed {  // of one head's values
    float low = INFINITY, high = -INFINITY;
    double sum = 0;
    uint64_t finite = 0, nan = 0, infinite = 0, hidden = 0;
};

// In lanes, for millions of values stand between two frames.
Summed summed(std::span<const float> values) {
    constexpr size_t kLanes = 8;
    float low[kLanes], high[kLanes];
    double sum[kLanes] = {};
    uint32_t finite[kLanes] = {};
    std::fill_n(low, kLanes, INFINITY);
    std::fill_n(high, kLanes, -INFINITY);
    const auto take = [&](float value, size_t lane) {
        const bool counts = std::abs(value) <= FLT_MAX;
        const float below = counts ? value : INFINITY, above = counts ? value : -INFINITY;
        low[lane] = below < low[lane] ? below : low[lane];
        high[lane] = above > high[lane] ? above : high[lane];
        sum[lane] += counts ? double(value) : 0;
        finite[lane] += counts;
    };
    const size_t whole = values.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
    for (size_t i = whole; i < values.size(); ++i) take(values[i], 0);
    Summed out;
    for (size_t lane = 0; lane < kLanes; ++lane) {
        out.low = std::min(out.low, low[lane]), out.high = std::max(out.high, high[lane]);
        out.sum += sum[lane];
        out.finite += finite[lane];
    }
    if (out.finite == values.size()) return out;
    for (const float value : values) {
        out.nan += value != value;
        out.hidden += value == -INFINITY;
        out.infinite += value == INFINITY;
    }
    return out;
}

ColourRange range_of(const Summed& s) {
    const float ends[] = {s.low, s.high};
    return fitted_range(std::span(ends, s.finite > 0 ? 2 : 0));
}

StageStats stats_of(const std::vector<Summed>& heads) {
    StageStats stats;
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint64_t finite = 0;
    for (const Summed& s : heads) {
        sum += s.sum, finite += s.finite;
        stats.nan += s.nan, stats.infinite += s.infinite, stats.hidden += s.hidden;
        low = std::min(low, double(s.low)), high = std::max(high, double(s.high));
    }
    if (finite > 0) stats.low = low, stats.high = high, stats.mean = sum / double(finite);
    return stats;
}

}  // namespace

// What the pipeline rail says of each stage, and alarms for numbers that cannot be right.
void Session::collect_stats() {
    if (stats_done_) return;
    stats_done_ = true;
    fill_output_stages();
    if (const double busy = run_->times().busy_s; busy > 0 && !run_->stands_in()) {
        if (run_seconds_.size() == kMostRunTimes) run_seconds_.erase(run_seconds_.begin());
        run_seconds_.push_back(busy);
    }
    for (Stage& stage : stages_) {
        std::vector<Summed> heads;
        for (uint32_t head = 0; head < stage.heads; ++head) {
            heads.push_back(summed(stage.head_values(head)));
            stage.ranges.push_back(range_of(heads.back()));
        }
        stage.stats = stats_of(heads);
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
