#include <fovea/inspect/lesson_picture.hpp>

#include <algorithm>
#include <limits>

namespace fovea {
namespace {

constexpr uint64_t kMaxHeads = 6;

// The last two dimensions of the first batch entry, head by head: [1 or heads][rows, columns]. A vector is
// one row.
std::vector<F32Tensor> shown_matrices(const F32Tensor& tensor) {
    if (tensor.rank() == 0) return {};
    const uint64_t columns = tensor.columns(),
                   rows = tensor.rank() >= 2 ? tensor.shape[tensor.rank() - 2] : 1;
    const uint64_t heads = tensor.rank() == 4 ? std::min(tensor.shape[1], kMaxHeads) : 1;
    std::vector<F32Tensor> matrices;
    for (uint64_t h = 0; h < heads; ++h) {
        const auto values = std::span(tensor.values).subspan(h * rows * columns, rows * columns);
        matrices.emplace_back(Shape{rows, columns}, std::vector<float>(values.begin(), values.end()));
    }
    return matrices;
}

// Which cells are -inf in a stage of the same shape: the mask of the weights that follow from it.
std::vector<uint8_t> hidden_cells(const LessonRun& run, const std::string& prefix, const Shape& shape,
                                  size_t head) {
    for (const char* name : {"masked_scores", "scaled_masked_scores"}) {
        const LessonStage* masked = run.find(prefix + name);
        if (masked == nullptr || masked->tensor.shape != shape) continue;
        const F32Tensor matrix = shown_matrices(masked->tensor)[head];
        std::vector<uint8_t> hidden;
        for (const float value : matrix.values) {
            hidden.push_back(value == -std::numeric_limits<float>::infinity() ? 1 : 0);
        }
        return hidden;
    }
    return {};
}

std::string words_of(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

std::vector<std::string> token_labels(const Lesson& lesson, uint64_t count) {
    return lesson.tokens.size() == count ? lesson.tokens : std::vector<std::string>();
}

struct Wanted {
    const char* stage;
    bool masked;  // hatch what the masked scores hide
};

class Panels {
  public:
    Panels(const Lesson& lesson, const LessonRun& run) : lesson_(lesson), run_(run) {}

    // Adds the first of the stages that the run has. Panels over tokens on both axes; a vector is the query
    // token's row.
    void add_first(std::initializer_list<Wanted> choices, const std::string& prefix = {}) {
        for (const Wanted& wanted : choices) {
            const LessonStage* stage = run_.find(prefix + wanted.stage);
            if (stage == nullptr || stage->tensor.rank() == 0) continue;
            const std::vector<F32Tensor> matrices = shown_matrices(stage->tensor);
            for (size_t h = 0; h < matrices.size(); ++h) {
                HeatmapPanel panel = over_tokens(matrices[h]);
                panel.title = words_of(prefix + wanted.stage);
                if (matrices.size() > 1) panel.title.append(", head ").append(std::to_string(h));
                const Shape& shape = stage->tensor.shape;
                if (wanted.masked && matrices[h].shape[0] > 1)
                    panel.hidden = hidden_cells(run_, prefix, shape, h);
                panels.push_back(std::move(panel));
            }
            return;
        }
    }

    void add_last_stages(size_t count) {
        std::vector<const LessonStage*> chosen;
        for (auto stage = run_.stages.rbegin(); stage != run_.stages.rend() && chosen.size() < count;
             ++stage) {
            if (stage->tensor.rank() >= 2) chosen.push_back(&*stage);
        }
        std::reverse(chosen.begin(), chosen.end());
        for (const LessonStage* stage : chosen) {
            HeatmapPanel panel;
            panel.values = shown_matrices(stage->tensor).front();
            panel.title = words_of(stage->name);
            panel.row_labels = token_labels(lesson_, panel.values.shape[0]);
            panel.row_caption = panel.row_labels.empty() ? "row" : "token";
            panel.column_caption = "column";
            panels.push_back(std::move(panel));
        }
    }

    std::vector<HeatmapPanel> panels;

  private:
    HeatmapPanel over_tokens(F32Tensor matrix) const {
        HeatmapPanel panel;
        panel.row_labels = token_labels(lesson_, matrix.shape[0]);
        panel.column_labels = token_labels(lesson_, matrix.shape[1]);
        const uint64_t query = lesson_.config.query;
        if (matrix.shape[0] == 1 && query < lesson_.tokens.size()) panel.row_labels = {lesson_.tokens[query]};
        panel.values = std::move(matrix);
        return panel;
    }

    const Lesson& lesson_;
    const LessonRun& run_;
};

}  // namespace

std::vector<HeatmapPanel> lesson_panels(const Lesson& lesson, const LessonRun& run) {
    Panels panels(lesson, run);
    if (run.find("head0.weights") != nullptr) {
        for (uint64_t h = 0; h < std::min(lesson.config.heads, kMaxHeads); ++h) {
            panels.add_first({{"weights", true}}, "head" + std::to_string(h) + ".");
        }
        return std::move(panels.panels);
    }
    const LessonStage* weights = run.find("weights");
    const bool many_heads = weights != nullptr && weights->tensor.rank() == 4;
    if (!many_heads) {
        panels.add_first({{"scores", false}, {"scores_2", false}, {"scaled_scores", false}});
        panels.add_first({{"masked_scores", false}, {"scaled_scores_2", false}});
    }
    panels.add_first({{"weights_by_sum", false}});
    panels.add_first({{"weights_naive", false}});
    panels.add_first({{"causal_weights", true}, {"weights", true}, {"weights_2", false}, {"input", false}});
    // Shows, from the two kinds of dropout mask, the one that the tutorial's machine drew.
    panels.add_first({{lesson.config.printed_variant == "mkl" ? "dropped_mkl" : "dropped_native", true}});
    if (panels.panels.empty()) panels.add_last_stages(3);
    return std::move(panels.panels);
}

Result<RgbaImage> lesson_picture(const Lesson& lesson, const LessonRun& run, HeatmapStyle style) {
    const std::vector<HeatmapPanel> panels = lesson_panels(lesson, run);
    if (panels.empty()) {
        return Error{FOVEA_UNSUPPORTED, "lesson", "lesson " + lesson.name + " has no matrix to draw"};
    }
    if (style.title.empty()) style.title = lesson.title;
    if (style.subtitle.empty()) style.subtitle = lesson.tutorial + ", level " + std::to_string(lesson.level);
    if (panels.size() == 4) style.panels_per_row = 2;
    return render_heatmaps(panels, style);
}

}  // namespace fovea
