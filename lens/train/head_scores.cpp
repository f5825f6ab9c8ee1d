#include "train/step_parts.hpp"

#include <fovea/model/token_scores.hpp>

#include <cmath>

#include "train/arithmetic.hpp"

namespace fovea {

float weight_of(const TaskModel& model, const LayerWeights& layer, uint32_t row, uint32_t head,
                uint32_t query, uint32_t key) {
    const size_t first = size_t(row) * model.context;
    const float* q = layer.q + (first + query) * model.width() + head * model.head_dim;
    const float* k = layer.k + (first + key) * model.width() + head * model.head_dim;
    const float lse = layer.lse[(size_t(row) * model.heads + head) * model.context + query];
    const float score = sum_of(model.head_dim, [&](uint32_t n) { return q[n] * k[n]; });
    const float logit = score / std::sqrt(float(model.head_dim)) - lse;
    return exponential(logit < 0 ? logit : 0);  // a weight is at most 1
}

void add_scores(const TaskModel& model, const Batch& batch, const LayerWeights& layer,
                std::span<std::array<double, kHeadScores>> sums) {
    for (const ScoreCell& cell : batch.cells)
        for (uint32_t head = 0; head < model.heads; ++head)
            sums[head][static_cast<size_t>(cell.score)] +=
                weight_of(model, layer, cell.row, head, cell.query, cell.key);
}

BestHead best_head(const StepReport& report, HeadScore score) {
    const size_t n = static_cast<size_t>(score);
    BestHead best;
    if (!report.heads.empty()) best.value = report.heads[0][n];
    for (uint32_t head = 1; head < report.heads.size(); ++head)
        if (report.heads[head][n] > best.value) best = {head, report.heads[head][n]};
    return best;
}

HeadLabel head_label(const HeadScores& scores) {
    HeadLabel label;
    for (size_t n = 0; n < kHeadScores; ++n)
        if (scores[n] >= kMinJob && scores[n] > label.value)
            label = {true, static_cast<HeadScore>(n), scores[n], {}};
    label.text = label.named ? std::string(head_score_label(label.score)) : "no clear role";
    return label;
}

bool reaches(const StepReport& report, const TaskGoal& goal) {
    if (!(report.accuracy >= goal.accuracy)) return false;
    for (size_t n = 0; n < kHeadScores; ++n)
        if (goal.scores[n] > 0 && !(best_head(report, static_cast<HeadScore>(n)).value >= goal.scores[n]))
            return false;
    return true;
}

}  // namespace fovea
