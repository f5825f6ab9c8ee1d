#include "document/workbench.hpp"

#include "theme/theme.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr size_t kHistogramBins = 64;

HeadSummary summary_of(const Stage& stage, uint32_t head, const Coloring& coloring) {
    HeadSummary summary{std::vector<float>(stage.rows), std::vector<float>(stage.rows),
                        std::vector<float>(stage.columns), std::vector<uint32_t>(kHistogramBins)};
    const std::span<const float> values = stage.head_values(head);
    for (uint64_t row = 0; row < stage.rows; ++row) {
        double sum = 0, entropy = 0;
        for (uint64_t column = 0; column < stage.columns; ++column) {
            const float value = values[row * stage.columns + column];
            summary.has_hidden = summary.has_hidden || stage.hidden(head, row, column);
            summary.has_dropped = summary.has_dropped || stage.dropped(head, row, column);
            if (!std::isfinite(value)) continue;
            summary.clamped.add(coloring, value);
            sum += double(value);
            if (value > 0) entropy -= double(value) * std::log(double(value));
            summary.column_sums[column] += value;
            ++summary.histogram[size_t(coloring.place(double(value)) * (kHistogramBins - 1) + 0.5)];
        }
        summary.row_sums[row] = float(sum);
        summary.row_entropies[row] = float(entropy);
    }
    return summary;
}

}  // namespace

// ---- a frame ----

Result<bool> Workbench::update(VkCommandBuffer cmd, double flops) {
    computation.free_retired();
    if (document.file_has_come()) file_was_read(document.take_read_file(), true);
    if (is_behind()) {
        seen_revision_ = document.revision();
        computation.begun();
        computation.refuse("");
        computation.measure_wanted_roof();
        if (map.update(document.settings(), computation.on_cpu())) window.centre = CentreTab::map;
        // A rejected change keeps the last result on the screen and shows the reason.
        if (Result<void> r = begin(); !r) {
            computation.refuse(r.error().text);
            if (r.error().code == FOVEA_OUT_OF_DEVICE_MEMORY)
                window.tell("Out of device memory: " + computation.problem(), false, true);
            problems.report(r.error().field, r.error().text, true);
        }
        if (computation.ready())
            if (Result<void> r = computation.compute_at_once(flops); !r) return r.error();
    }
    if (map.take_coming(document.settings(), computation.on_cpu())) window.centre = CentreTab::map;
    map.advance();
    if (!computation.ready()) {
        if (computation.projecting()) return false;
        if (past.go_on()) return true;
        return Error{FOVEA_INVALID_ARGUMENT, "settings", computation.problem()};
    }
    const Result<bool> more = computation.advance(cmd, flops);
    if (!more) return more.error();
    if (computation.run().finished() && past.go_on()) return true;
    grant_wish();
    return *more || is_behind();
}

Result<void> Workbench::begin() {
    const Settings wanted = past.restoring() ? past.wanted_settings() : document.settings();
    Settings by = wanted;
    if (!reads_tensors(by) || map.shows_file_of(by)) by.file.reset();
    std::optional<Result<Projected>> made = computation.projection(by);
    if (made && *made && by.file && !fits_matrices(**made)) {
        map.open_file_head(**made, wanted, view.head, computation.on_cpu());
        window.centre = CentreTab::map;
        by.file.reset();
        made = computation.projection(by);
    }
    if (!made) return {};
    if (!*made) return made->error();
    // Cells were selected in another matrix.
    if (computation.ready() && !past.restoring() && !same_subject(computation.result()->settings, wanted))
        view.selection.reset();
    std::string shown = "weights";
    if (computation.ready() && view.stage < computation.stages().size()) shown = stage().name;
    if (Result<void> r = computation.begin(std::move(**made), wanted, by); !r) return r;
    if (!view.wanted_stage.empty()) shown = std::exchange(view.wanted_stage, "");
    motion.end_fade();
    summarized_ = {};
    view.stage = computation.result()->stage_index(shown);
    if (view.stage == computation.stages().size())
        view.stage = computation.result()->stage_index(stage_name(StageId::weights));
    // A stage that this result has not, such as what dropout leaves without dropout, is shown with the next
    // that has it.
    if (stage().name != shown && stage_from_name(shown)) view.wanted_stage = shown;
    keep_pick_in_range();
    return {};
}

void Workbench::keep_pick_in_range() {
    view.head = std::min<uint32_t>(view.head, uint32_t(stage().heads - 1));
    view.picked_row = std::clamp(view.picked_row, 0, int(stage().rows) - 1);
    view.picked_column = std::clamp(view.picked_column, 0, int(stage().columns) - 1);
    if (view.compared_head >= int(stage().heads)) view.compared_head = -1;
    for (std::optional<CellRect>* cells : {&view.selection, &view.marked})
        if (*cells && !(*cells)->within(stage().rows, stage().columns)) cells->reset();
}

// ---- what is shown ----

Shown Workbench::shown() const {
    if (const LockedMatrix* const one = past.shown_locked())
        return {&one->result->stages[one->stage], one->head, one->result->run.get(), &one->result->tokens()};
    // A mask is drawn over the weights, whichever stage is chosen.
    if (window.centre == CentreTab::mask)
        if (const Stage* weights = computation.find_stage(StageId::weights))
            return {weights, std::min(view.head, uint32_t(weights->heads - 1)), &computation.run(),
                    &computation.tokens()};
    return {&stage(), view.head, &computation.run(), &computation.tokens()};
}

void Workbench::show_stage(size_t index) {
    const size_t before = view.stage;
    view.wanted_stage.clear();
    view.stage = std::min(index, computation.stages().size() - 1);
    motion.end_fade();
    if (view.stage != before) {
        view.selection.reset(), view.marked.reset();
        if (computation.complete()) motion.begin_fade(before);
    }
    view.zoom = view.pan_x = view.pan_y = 0;
    view.colors.range_low = view.colors.range_high = NAN;
    keep_pick_in_range();
}

const std::optional<Derivation>& Workbench::derivation() {
    const Shown now = shown();
    return computation.derivation(*now.run, *now.stage,
                                  {0, now.head, uint64_t(view.picked_row), uint64_t(view.picked_column)});
}

const AttentionResult& Workbench::shown_result() const {
    const LockedMatrix* const locked = past.shown_locked();
    return locked ? *locked->result : *computation.result();
}

std::optional<CellSum> Workbench::picked_sum() const {
    const Shown now = shown();
    if (view.picked_row < 0 || view.picked_column < 0) return {};
    if (now.stage->of_heads)
        return mean_sum(shown_result(), uint64_t(view.picked_row), uint64_t(view.picked_column));
    if (now.stage->over_keys || !now.stage->id) return {};
    return cell_sum(shown_result().numbers(), *now.stage->id, now.head, uint64_t(view.picked_row),
                    uint64_t(view.picked_column));
}

std::vector<CellInput> Workbench::picked_inputs() const {
    const Shown now = shown();
    if (view.picked_row < 0 || view.picked_column < 0) return {};
    return cell_inputs(shown_result(), *now.stage, now.head, uint64_t(view.picked_row),
                       uint64_t(view.picked_column));
}

void Workbench::show_input(const CellInput& input) {
    if (&shown_result() != computation.result().get()) return;
    const CellInput to = input;  // the stages stay where they are, the pick does not
    constexpr size_t kMaxPlaces = 64;
    if (view.came_from.size() == kMaxPlaces) view.came_from.erase(view.came_from.begin());
    view.came_from.push_back({stage().name, view.head, view.picked_row, view.picked_column, view.pinned});
    show_stage(size_t(to.stage - computation.stages().data()));
    if (to.stage->heads > 1) view.head = to.head;
    view.picked_row = std::clamp(view.came_from.back().row, to.cells.row_begin, to.cells.row_last);
    view.picked_column =
        std::clamp(view.came_from.back().column, to.cells.column_begin, to.cells.column_last);
    view.pinned = true;
    view.marked = to.cells;
    window.centre = CentreTab::matrix;
}

void Workbench::go_back() {
    if (view.came_from.empty()) return;
    const ViewState::Place place = std::move(view.came_from.back());
    view.came_from.pop_back();
    window.locked_tab = -1;
    show_stage(computation.result()->stage_index(place.stage));
    view.head = place.head;
    view.picked_row = place.row, view.picked_column = place.column, view.pinned = place.pinned;
    view.marked.reset();
    keep_pick_in_range();
}

std::span<const float> Workbench::Weights::row(uint64_t query) const {
    return stage->head_values(head).subspan(std::min(query, stage->rows - 1) * stage->columns,
                                            stage->columns);
}

Workbench::Weights Workbench::shown_weights() const {
    const Shown now = shown();
    const StageText* const text = now.stage->id ? &stage_text(*now.stage->id) : nullptr;
    const bool weights = now.stage->of_heads || (text && text->pairs && text->sums);
    const Stage* const stage = weights ? now.stage : shown_result().find_stage(StageId::weights);
    return {stage, std::min(now.head, uint32_t(stage->heads - 1))};
}

void Workbench::show_level(int level) {
    document.change(level_settings(level, document.settings()));
    if (const Session own = level_session(level); own.stage != StageId::weights)
        view.wanted_stage = stage_name(own.stage);
}

bool Workbench::has_why() const {
    if (!computation.complete() || !computation.result()->projected.is_model()) return false;
    const Stage* const stage = shown().stage;
    return shown().run == &computation.run() && stage->over_keys && !stage->of_heads &&
           view.picked_row >= 0 && view.picked_column >= 0;
}

void Workbench::show_writer(const Writer& head, uint64_t token) {
    show_head(head.layer, head.head);
    pick_largest(token);
}

void Workbench::pick_largest(uint64_t query) {
    when_settled("", [this, query] {
        const Weights weights = shown_weights();
        if (!stage().over_keys || stage().rows != weights.stage->rows) return;
        view.picked_row = int(std::min(query, weights.stage->rows - 1));
        const std::span<const float> row = weights.row(uint64_t(view.picked_row));
        view.picked_column = int(std::max_element(row.begin(), row.end()) - row.begin());
    });
}

const HeadSummary& Workbench::head_summary() {
    const Shown now = shown();
    const Coloring coloring = coloring_of(view.colors, now.stage->ranges.at(now.head));
    const Summarized wanted{now.stage, now.head, coloring};
    if (std::exchange(summarized_, wanted) != wanted) summary_ = summary_of(*now.stage, now.head, coloring);
    return summary_;
}

void Workbench::show_task(const std::string& task) {
    document.change(task_settings(task, document.settings()));
    view.compared_head = -1;
    view.zoom = 0;
    show_first_sight(level_session(document.settings().level, task));
    const size_t weights =
        computation.ready() ? computation.result()->stage_index(stage_name(StageId::weights)) : 0;
    if (computation.ready()) view.stage = weights;
    if (window.centre == CentreTab::map) window.centre = CentreTab::matrix;
}

void Workbench::show_first_sight(const Session& session) {
    view.picked_row = int(session.row), view.picked_column = int(session.column);
    show_head_number(session.head);
}

void Workbench::show_head_number(uint32_t number) {
    Settings next = document.settings();
    view.head = number;
    if (!shows_model(next)) return;
    const uint32_t heads = heads_of_layer(next);
    if (number / heads >= shown_layers(next).size()) return;
    next.mapping.layer = number / heads;
    view.head = number % heads;
    document.change(next);
}

void Workbench::show_head(uint32_t layer, uint32_t head) {
    past.drop_kept();
    view.compared_head = -1;
    view.head = head;
    Settings next = document.settings();
    next.mapping.layer = layer;
    document.change(next);
}

void Workbench::compare_with_head(uint32_t layer, uint32_t head) {
    if (!past.kept() && layer == document.settings().mapping.layer) {
        view.compared_head = int(head);
        return;
    }
    // Another layer's head is another result: A is kept, and the other layer becomes the present one.
    const auto show_other = [this, layer, head] {
        view.head = head;
        Settings next = document.settings();
        next.mapping.layer = layer;
        document.change(next);
    };
    if (past.kept()) return show_other();
    when_settled("comparing", [this, show_other] {
        past.keep_present(view.head);
        show_other();
    });
}

CellRect shown_cells(const Workbench& bench) {
    const Stage& stage = *bench.shown().stage;
    const std::optional<CellRect>& selected = bench.view.selection;
    return selected && selected->within(stage.rows, stage.columns)
               ? *selected
               : CellRect{0, int(stage.rows) - 1, 0, int(stage.columns) - 1};
}

std::string token_label(const Workbench& bench, uint64_t index) {
    const std::vector<std::string>& tokens = *bench.shown().tokens;
    return index < tokens.size() ? tokens[index] : std::to_string(index);
}

std::string file_title(const Workbench& bench) {
    if (const std::shared_ptr<const OpenedModel>& model = bench.document.settings().model)
        return model->name + (bench.computation.problem().empty()
                                  ? ""
                                  : " (rejected: the values are those of the settings before)");
    const std::shared_ptr<const ImportedFile>& file = bench.document.settings().file;
    if (!file) return "";
    const std::string name =
        file->path.empty() ? "tensors of the session" : printable_name(file_name(file->path), 40);
    const Computation& computation = bench.computation;
    if (!computation.problem().empty())
        return name + " (rejected: the values are those of the settings before)";
    const bool shown = computation.ready() && computation.result()->settings.file == file;
    return shown ? name : name + " (being read)";
}

std::string token_name(const std::vector<std::string>& tokens, uint64_t index) {
    if (index >= tokens.size()) return std::to_string(index);
    const bool again = std::count(tokens.begin(), tokens.end(), tokens[index]) > 1;
    return tokens[index] + (again ? " (" + std::to_string(index) + ")" : "");
}

std::string token_name(const Workbench& bench, uint64_t index) {
    return token_name(*bench.shown().tokens, index);
}

std::string picked_row_name(const Workbench& bench) {
    return row_name(bench, uint64_t(std::max(bench.view.picked_row, 0)));
}

std::string picked_column_name(const Workbench& bench) {
    return column_name(bench, uint64_t(std::max(bench.view.picked_column, 0)));
}

std::string row_name(const Workbench& bench, uint64_t row) {
    return bench.shown().stage->row_tokens ? token_name(bench, row) : std::to_string(row);
}

std::string column_name(const Workbench& bench, uint64_t column) {
    return bench.shown().stage->over_keys ? token_name(bench, column) : std::to_string(column);
}

// ---- training ----

void Workbench::show_trained() {
    Result<LearnedModel> model = training.playground().model();
    if (!model) return problems.report(model.error().field, model.error().text, true);
    Settings next = task_settings(model->task, document.settings());
    next.learned = std::make_shared<const LearnedModel>(std::move(*model));
    document.change(next);
    show_first_sight(level_session(next.level, next.task));
    window.centre = CentreTab::matrix;
}

// ---- files ----

void Workbench::file_was_read(Document::Opened opened, bool with_sheet) {
    if (opened == Document::Opened::no) window.show(BottomTab::problems);
    if (opened != Document::Opened::yes) return;
    if (document.settings().model) {
        // All of its heads first.
        window.centre = CentreTab::layers;
        view.head = 0;
        return;
    }
    window.centre = CentreTab::matrix;
    if (with_sheet) window.open_dialog(Dialog::import_sheet);
}

bool Workbench::open_file(const std::string& path) {
    const Document::Opened opened =
        is_model_path(path) ? document.open_model(path) : document.open_file(path);
    file_was_read(opened, false);
    return opened == Document::Opened::yes;
}

void Workbench::show_refused_as_map() {
    const Settings& s = document.settings();
    const Result<Projected> projected = project(s);
    if (!projected) return problems.report("map", projected.error().text, true);
    LongHead head = long_head(*projected, std::min(view.head, uint32_t(projected->q.shape[0] - 1)),
                              reads_tensors(s) ? s.mapping.divisor : 0);
    head.name = "head " + std::to_string(view.head);
    map.want(std::move(head));
    document.undo();
}

std::string Workbench::preparing() const {
    return document.reads_file() ? "reading " + document.coming_file() : computation.preparing();
}

void Workbench::when_settled(std::string what, std::function<void()> act) {
    if (is_settled()) return act();
    wish_ = Wish{std::move(what), document.revision(), std::move(act)};
}

void Workbench::grant_wish() {
    if (!wish_) return;
    const bool void_now = wish_->revision != document.revision();
    if (!void_now && !is_settled()) return;
    const Wish wish = std::move(*wish_);
    wish_.reset();
    if (void_now && wish.what.empty()) return;
    if (void_now)
        problems.report(wish.what, "the result was not there yet when its settings were changed", false);
    else
        wish.act();
}

WorkbenchCarry Workbench::carry() {
    WorkbenchCarry c;
    c.past = past.all();
    const std::string stage = past.own_stage();
    const int tab = past.own_tab();
    past.end_restoring();
    c.history = document.history();
    c.view = view, c.window = window;
    c.view.wanted_stage = stage;
    c.window.locked_tab = tab;
    c.window.notice.reset();
    c.problems = problems;
    c.map = map.carry();
    return c;
}

void Workbench::take(WorkbenchCarry carried) {
    document.go_on_from(std::move(carried.history));
    problems = std::move(carried.problems);
    map.take(std::move(carried.map), document.settings(), computation.on_cpu());
    view = std::move(carried.view);
    window = std::move(carried.window);
    past.restore(std::move(carried.past));
}

std::string rare_text(const Workbench& bench) {
    std::string rare;
    const auto add = [&](std::string_view text) {
        for (size_t i = 0; i < text.size();) {
            const auto lead = static_cast<unsigned char>(text[i]);
            const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
            // From U+0400 on.
            if (lead >= 0xd0 && rare.find(text.substr(i, length)) == std::string::npos)
                rare += text.substr(i, length);
            i += length;
        }
    };
    const auto add_both = [&](const std::string& text) { add(text), add(in_drawing_order(text)); };
    add_both(bench.document.settings().text);
    if (bench.computation.ready())
        for (const std::string& token : bench.computation.tokens()) add_both(token);
    return rare;
}

}  // namespace fovea::visualizer
