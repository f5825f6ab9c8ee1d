#include "run.hpp"

#include "document/comparison.hpp"
#include "panels/panels.hpp"

#include <algorithm>

namespace fovea::visualizer {

namespace {

std::string describe_map(Workbench& bench) {
    const MapProgress progress = bench.map.head()->tiles().progress();
    const MapRect& rect = bench.map.head()->tiles().view().rect;
    std::string text = "map of " + bench.map.head()->name() + ": " + format_count(bench.map.head()->rows()) +
                       " queries, " + format_count(bench.map.head()->tokens()) + " keys; queries from " +
                       format_number(rect.first_row, 7) + ", keys from " + format_number(rect.first_key, 7) +
                       ", " + format_number(rect.rows, 7) + " x " + format_number(rect.keys, 7) + " cells, " +
                       (progress.quality == MapQuality::exact     ? "exact"
                        : progress.quality == MapQuality::sampled ? "sampled"
                                                                  : "computing") +
                       "; tiles on " + (bench.map.head()->on_device() ? "the device" : "the CPU") + ": " +
                       bench.map.head()->where() + "\n";
    if (!bench.map.head()->head().left_out.empty()) text += bench.map.head()->head().left_out + "\n";
    if (bench.map.head()->head().heads > 1)
        text += "head " + std::to_string(bench.map.head()->head().head) + " of " +
                std::to_string(bench.map.head()->head().heads) + "\n";
    const std::string pixel =
        map_pixel_text(bench, double(bench.map.place.picked_row), double(bench.map.place.picked_key));
    if (!pixel.empty()) text += "the pick's " + pixel + "\n";
    const Derivation* d = bench.map.derivation();
    return d ? text + derivation_text(*d) + "\n" : text;
}

std::string describe_comparison(const Workbench& bench) {
    const Comparison c = comparison_of(bench);
    if (!c.why_not.empty()) return c.why_not + "\n";
    const HeadDifference d = difference_of(*c.a, c.head_a, *c.b, c.head_b, uint64_t(bench.view.picked_row));
    std::string text =
        "A: " + (bench.past.kept() ? "kept, " + bench.past.kept()->result->title() + ", " : std::string()) +
        "head " + std::to_string(c.head_a) + "; B: head " + std::to_string(c.head_b) +
        "; largest difference " + format_value(d.largest, 4) + " at " + std::to_string(d.row) + ", " +
        std::to_string(d.column) + ", mean " + format_value(d.mean, 4);
    if (c.b->id == StageId::weights)
        text += ", Jensen-Shannon of row " + std::to_string(bench.view.picked_row) + " " +
                format_value(d.jensen_shannon, 4);
    return text + "\n";
}

std::string describe_matrix(Workbench& bench) {
    const Stage& stage = bench.stage();
    const Settings& s = bench.document.settings();
    const HeadPlace head{s.mapping.layer, bench.view.head};
    const std::string label = head_label(s, head);
    const std::string about =
        shows_model(s) || reads_tensors(s)
            ? head_name(head.layer, head.head) + (label.empty() ? "" : " " + label) + change_text(s, head)
            : level_name(s.level) + (is_plain_level(s) ? "" : ", changed");
    std::string text = (reads_tensors(s) ? file_title(bench) : subject_name(s)) + ", " + about + "; " +
                       std::to_string(bench.computation.tokens().size()) + " tokens:";
    // A line is read to its end by a screen reader: of a long text its beginning.
    constexpr size_t kMaxTokens = 32;
    const std::vector<std::string>& tokens = bench.computation.tokens();
    for (size_t i = 0; i < std::min(tokens.size(), kMaxTokens); ++i) text += " " + tokens[i];
    if (tokens.size() > kMaxTokens) text += " and " + std::to_string(tokens.size() - kMaxTokens) + " more";
    if (const HeadGrid* grid = shows_model(s) ? bench.head_grid() : nullptr)
        text += "\nheads of " + std::to_string(grid->finished_layers()) + " of " +
                std::to_string(grid->layer_count()) + " layers";
    text += "\n" + stage.name + " = " + stage.formula + ", " + std::to_string(stage.heads) +
            (stage.heads == 1 ? " head of " : " heads of ") + std::to_string(stage.rows) + " x " +
            std::to_string(stage.columns) + "\n";
    if (!bench.computation.complete()) return text + "computing\n";
    if (bench.computation.run().stands_in())
        text += "computed on the CPU until the device's kernels are compiled\n";
    const std::span<const float> values = stage.head_values(bench.view.head);
    text += print_tensor(F32Tensor({stage.rows, stage.columns}, {values.begin(), values.end()})) + "\n";
    if (bench.window.centre == CentreTab::flow)
        text += "way: " +
                path_text(token_path(*bench.computation.result(), stage, bench.view.head,
                                     uint64_t(bench.view.picked_row), uint64_t(bench.view.picked_column))) +
                "\n";
    std::string lit;
    for (const CellInput& input : bench.picked_inputs()) lit += (lit.empty() ? "" : "; ") + input_text(input);
    if (!lit.empty()) text += "lit: " + lit + "\n";
    if (const std::optional<CellSum> sum = bench.picked_sum())
        return text + cell_sum_text(*sum, stage.name, uint64_t(bench.view.picked_row),
                                    uint64_t(bench.view.picked_column));
    if (!bench.derivation()) return text;
    DerivationStyle style;
    const std::string query = token_name(bench, uint64_t(bench.view.picked_row)),
                      key = token_name(bench, uint64_t(bench.view.picked_column));
    style.query_token = query;
    style.key_token = key;
    return text + derivation_text(*bench.derivation(), style) + "\n";
}

}  // namespace

std::string describe(Workbench& bench) {
    const int step = bench.window.tour_step;
    const bool shown = step > 0 && bench.window.centre != CentreTab::sentence;
    std::string tour = shown ? "tour, step " + std::to_string(step) + " of " + std::to_string(kTourSteps) +
                                   ": " + tour_text(step) + "\n"
                             : "";
    std::string problems = tour + describe_story(bench) +
                           (bench.window.notice ? "notice: " + bench.window.notice->text + "\n" : "");
    if (!bench.window.restorable.empty())
        problems += "offered: Restore last session, " + bench.window.restorable + "\n";
    for (const Problem& problem : bench.problems)
        problems += "problem: " + problem.where + ": " + problem.text + "\n";
    if (!bench.preparing().empty()) problems += bench.preparing() + "\n";
    if (bench.window.dialog != Dialog::none)
        problems += std::string("dialog: ") + dialog_title(bench.window.dialog) + "\n";
    if (bench.window.dialog == Dialog::palette)
        problems += "commands, typed: \xe2\x80\x9c" + bench.window.search + "\xe2\x80\x9d\n";
    if (bench.window.centre == CentreTab::map && bench.map) return problems + describe_map(bench);
    if (bench.window.centre == CentreTab::sentence && bench.computation.complete())
        return problems + describe_matrix(bench) + describe_sentence(bench);
    if (bench.window.centre == CentreTab::train) problems += describe_training(bench);
    const bool compares =
        bench.computation.complete() && (bench.past.kept() || bench.window.centre == CentreTab::compare);
    return problems + describe_matrix(bench) + (compares ? describe_comparison(bench) : "");
}

}  // namespace fovea::visualizer
