#include <fovea/inspect/learned_lesson.hpp>

#include <algorithm>
#include <cmath>

#include <fovea/inspect/head_role.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/trace.hpp>

#include "inspect/picture/sentence.hpp"

namespace fovea {
namespace {

const std::string kUnnamed = "no clear role";

HeatmapPanel panel_of(const LearnedLesson& lesson, const LearnedHead& head) {
    HeatmapPanel panel;
    panel.values = head.weights;
    panel.title =
        head.label + " (layer " + std::to_string(head.layer) + ", head " + std::to_string(head.head) + ")";
    panel.row_labels = panel.column_labels = lesson.tokens;
    const size_t length = lesson.tokens.size();
    for (size_t i = 0; i < length; ++i)
        for (size_t j = 0; j < length; ++j) panel.hidden.push_back(j > i ? 1 : 0);
    panel.range = ColorRange{0, 1};
    return panel;
}

}  // namespace

Result<LearnedLesson> learned_lesson(LearnedModel learned, std::span<const uint32_t> tokens) {
    LearnedLesson lesson;
    lesson.learned = std::move(learned);
    const std::span<const uint32_t> shown = tokens.empty() ? std::span(lesson.learned.sample) : tokens;
    if (shown.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                     "tokens is empty, and the model has no sample to use instead; give tokens"};
    Result<ModelInput> input = learned_input(lesson.learned, shown);
    if (!input) return input.error();
    lesson.ids.assign(shown.begin(), shown.end());
    for (const Token& token : input->tokens) lesson.tokens.push_back(token.text);
    Result<Trace> trace = Trace::open(lesson.learned.model, std::move(*input));
    if (!trace) return trace.error();
    for (uint32_t layer = 0; layer < trace->layers(); ++layer)
        for (uint32_t head = 0; head < trace->heads(layer); ++head) {
            Result<F32Tensor> weights = trace->stage(StageId::weights, head, layer);
            if (!weights) return weights.error();
            const size_t n = lesson.heads.size();
            const std::vector<std::string>& labels = lesson.learned.head_labels;
            lesson.heads.push_back(
                {layer, head, n < labels.size() ? labels[n] : kUnnamed, std::move(*weights)});
        }
    const Result<F32Tensor> logits = trace->stage(StageId::logits, 0, trace->layers() - 1);
    if (!logits) return logits.error();
    for (uint64_t row = 0; row < logits->rows(); ++row) {
        const std::span<const float> values = logits->row(row);
        const auto likeliest = std::max_element(values.begin(), values.end());
        double sum = 0;
        for (const float value : values) sum += std::exp(double(value) - double(*likeliest));
        lesson.said.push_back(lesson.learned.model->vocabulary[size_t(likeliest - values.begin())]);
        lesson.probabilities.push_back(float(1 / sum));
    }
    return lesson;
}

size_t clearest_head(const LearnedLesson& lesson) {
    size_t best = lesson.heads.size() - 1;
    double share = -1;
    for (size_t n = 0; n < lesson.heads.size(); ++n) {
        const LearnedHead& head = lesson.heads[n];
        if (head.label == kUnnamed) continue;
        const double own = job_share(head.label, head.weights.values, lesson.ids);
        if (share < 0 || head.layer > lesson.heads[best].layer || own > share) best = n, share = own;
    }
    return best;
}

std::vector<HeatmapPanel> learned_panels(const LearnedLesson& lesson) {
    std::vector<HeatmapPanel> named, all;
    for (const LearnedHead& head : lesson.heads) {
        all.push_back(panel_of(lesson, head));
        if (head.label != kUnnamed) named.push_back(all.back());
    }
    return named.empty() ? all : named;
}

Result<RgbaImage> learned_picture(const LearnedLesson& lesson, HeatmapStyle style) {
    const std::vector<HeatmapPanel> panels = learned_panels(lesson);
    if (panels.size() == 4) style.panels_per_row = 2;
    // The cell that the window and the page show first; of another sequence its last row.
    const std::vector<std::string> known = learned_tasks();
    const bool shipped = std::find(known.begin(), known.end(), lesson.learned.task) != known.end();
    const Session first = level_session(1, shipped ? lesson.learned.task : "");
    const LearnedHead& shown = lesson.heads[clearest_head(lesson)];
    const bool is_sample =
        shipped && first.row < lesson.tokens.size() && lesson.tokens.size() == lesson.learned.sample.size();
    const size_t row = is_sample ? first.row : lesson.tokens.size() - 1;
    const auto role_of = [&](const LearnedHead& of) { return head_role(of.label, lesson.learned.task); };
    const std::string title = lesson.learned.title.empty() ? lesson.learned.task : lesson.learned.title;
    if (style.title.empty()) style.title = role_of(shown).sentence.empty() ? title : role_of(shown).sentence;
    if (style.subtitle.empty())
        style.subtitle = "layer " + std::to_string(shown.layer) + ", head " + std::to_string(shown.head) +
                         " of a small model; below are all heads that learned the task: " + title;
    const std::span<const float> weights = shown.weights.row(row);
    std::vector<std::optional<picture::Highlight>> highlights;
    for (const LearnedHead& one : lesson.heads) {
        if (panels.size() < lesson.heads.size() && one.label == kUnnamed) continue;
        const std::optional<WeightStripe> stripe = longest_stripe(one.weights.values, lesson.tokens.size());
        const std::string text = role_of(one).stripe;
        highlights.push_back(stripe && !text.empty() ? std::optional(picture::Highlight{*stripe, text})
                                                     : std::nullopt);
    }
    return picture::render_sentence({lesson.tokens,
                                     {weights.begin(), weights.end()},
                                     is_sample ? word_starts(first.text, lesson.tokens) : std::vector<bool>{},
                                     row},
                                    panels, highlights, style);
}

}  // namespace fovea
