#include "describe.hpp"

#include "model/kept_result.hpp"
#include "panels/panels.hpp"

namespace fovea::visualizer {

namespace {

std::string describe_map(Session& session) {
    const MapProgress progress = session.map->tiles().progress();
    const MapRect& rect = session.map->tiles().view().rect;
    std::string text = "map of " + session.map->name() + ": " + format_count(session.map->rows()) +
                       " queries, " + format_count(session.map->tokens()) + " keys; queries from " +
                       format_number(rect.first_row, 7) + ", keys from " + format_number(rect.first_key, 7) +
                       ", " + format_number(rect.rows, 7) + " x " + format_number(rect.keys, 7) + " cells, " +
                       (progress.quality == MapQuality::exact     ? "exact"
                        : progress.quality == MapQuality::sampled ? "sampled"
                                                                  : "computing") +
                       "; tiles on " + (session.map->on_device() ? "the device" : "the processor") + ": " +
                       session.map->where() + "\n";
    if (!session.map->head().left_out.empty()) text += session.map->head().left_out + "\n";
    if (session.map->head().heads > 1)
        text += "head " + std::to_string(session.map->head().head + 1) + " of " +
                std::to_string(session.map->head().heads) + "\n";
    const std::string pixel =
        map_pixel_text(session, double(session.ui.map.picked_row), double(session.ui.map.picked_key));
    if (!pixel.empty()) text += "the pick's " + pixel + "\n";
    const Derivation* d = session.map_derivation();
    return d ? text + derivation_text(*d) + "\n" : text;
}

std::string describe_comparison(const Session& session) {
    const Comparison c = comparison_of(session);
    if (!c.why_not.empty()) return c.why_not + "\n";
    const HeadDifference d = difference_of(*c.a, c.head_a, *c.b, c.head_b, uint64_t(session.view.picked_row));
    std::string text = "A: " + (session.kept() ? "kept, " + session.kept()->title() + ", " : std::string()) +
                       "head " + std::to_string(c.head_a + 1) + "; B: head " + std::to_string(c.head_b + 1) +
                       "; largest difference " + format_value(d.largest, 4) + " at " + std::to_string(d.row) +
                       ", " + std::to_string(d.column) + ", mean " + format_value(d.mean, 4);
    if (c.b->name == "weights")
        text += ", Jensen-Shannon of row " + std::to_string(session.view.picked_row) + " " +
                format_value(d.jensen_shannon, 4);
    return text + "\n";
}

std::string describe_matrix(Session& session) {
    const Stage& stage = session.stage();
    std::string text = "level " + std::to_string(session.settings().level) + ", " +
                       std::string(level_name(session.settings().level)) + "; " +
                       std::to_string(session.tokens().size()) + " tokens:";
    for (const std::string& token : session.tokens()) text += " " + token;
    text += "\n" + stage.name + " = " + stage.formula + ", " + std::to_string(stage.heads) +
            (stage.heads == 1 ? " head of " : " heads of ") + std::to_string(stage.rows) + " x " +
            std::to_string(stage.columns) + "\n";
    if (!session.complete()) return text + "computing\n";
    if (session.run().stands_in())
        text += "computed by the processor until the device's kernels are compiled\n";
    const std::span<const float> values = stage.head_values(session.view.head);
    text += print_tensor(F32Tensor({stage.rows, stage.columns}, {values.begin(), values.end()})) + "\n";
    if (!session.derivation()) return text;
    DerivationStyle style;
    const std::string query = token_label(session, uint64_t(session.view.picked_row)),
                      key = token_label(session, uint64_t(session.view.picked_column));
    style.query_token = query;
    style.key_token = key;
    return text + derivation_text(*session.derivation(), style) + "\n";
}

}  // namespace

std::string describe(Session& session) {
    const int step = session.ui.tour_step;
    std::string tour = step > 0 ? "tour, step " + std::to_string(step) + " of " + std::to_string(kTourSteps) +
                                      ": " + tour_text(step) + "\n"
                                : "";
    std::string problems = tour + (session.notice ? "notice: " + session.notice->text + "\n" : "");
    for (const Problem& problem : session.problems)
        problems += "problem: " + problem.where + ": " + problem.text + "\n";
    if (!session.preparing().empty()) problems += session.preparing() + "\n";
    if (session.ui.centre == CentreTab::map && session.map) return problems + describe_map(session);
    const bool compares = session.complete() && (session.kept() || session.ui.centre == CentreTab::compare);
    return problems + describe_matrix(session) + (compares ? describe_comparison(session) : "");
}

}  // namespace fovea::visualizer
