// The picked cell: every number between q, k and what the cell adds to the context.
#include "panels/head_thumbnail.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "theme/theme.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace fovea::visualizer {
namespace {

constexpr size_t kMaxTerms = 24;

// Aligns the next text with the baseline of body text.
void on_body_line(const PanelContext& ui, const ImFont* font) {
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + std::round(ui.fonts.body->Ascent - font->Ascent));
}

void step(const PanelContext& ui, const char* name, const std::string& how, const std::string& value,
          bool strong = false) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(name);
    ImGui::TableNextColumn();
    ImGui::PushFont(ui.fonts.small);
    on_body_line(ui, ui.fonts.small);
    soft_text(how);
    ImGui::PopFont();
    ImGui::TableNextColumn();
    ImGui::PushFont(ui.fonts.mono);
    if (strong) ImGui::PushStyleColor(ImGuiCol_Text, ui.colors().accent);
    const float width = ImGui::CalcTextSize(value.c_str()).x;
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(ImGui::GetContentRegionAvail().x - width, 0.0f));
    on_body_line(ui, ui.fonts.mono);
    ImGui::TextUnformatted(value.c_str());
    if (strong) ImGui::PopStyleColor();
    ImGui::PopFont();
}

std::string number(float value) { return format_value(value); }

// "-2.457e-03"
std::string format_power(double value, int digits) {
    if (value == 0 || !std::isfinite(value)) return format_fixed(value, 0);
    char text[32];
    const auto end =
        std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits).ptr;
    return {text, end};
}

// A column of values in one format, so that points and digits are under each other: as many decimals as the
// smallest needs, or powers of ten for all. Of what is wider than the room, fewer digits.
std::vector<std::string> column_texts(const std::vector<float>& values, float room) {
    constexpr int kDecimals = 4, kMaxDecimals = 7;
    double least = INFINITY, most = 0;
    for (const float value : values) {
        if (value == 0 || !std::isfinite(value)) continue;
        least = std::min(least, std::abs(double(value))), most = std::max(most, std::abs(double(value)));
    }
    // Shows at least two digits of the smallest value, or one if there is no room.
    const int first = least < 1 ? int(std::ceil(-std::log10(least))) : 1;
    const int wanted = std::max(kDecimals, first + 1);
    std::vector<std::string> texts(values.size());
    const auto fits = [&](auto text_of) {
        bool all = true;
        for (size_t i = 0; i < values.size(); ++i) {
            texts[i] = text_of(values[i]);
            all = all && ImGui::CalcTextSize(texts[i].c_str()).x <= room;
        }
        return all;
    };
    if (wanted <= kMaxDecimals && most < 1e5)
        for (int decimals = wanted; decimals >= std::max(first, 1); --decimals)
            if (fits([&](float value) { return format_fixed(double(value), decimals); })) return texts;
    for (int digits = 3; digits > 0; --digits)
        if (fits([&](float value) { return format_power(double(value), digits); })) return texts;
    return texts;
}

// The next text of so many units ends where its column does.
void right_align(float width) {
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(ImGui::GetContentRegionAvail().x - width, 0.0f));
}

// A table's heads, each above the end of its values; of those before `first` above the begin of its words.
void draw_heads(std::span<const char* const> titles, size_t first = 0) {
    for (const char* title : titles) ImGui::TableSetupColumn(title);
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (size_t i = 0; i < titles.size(); ++i) {
        ImGui::TableNextColumn();
        if (i >= first) right_align(ImGui::CalcTextSize(titles[i]).x);
        ImGui::PushID(int(i));
        ImGui::TableHeader(titles[i]);
        ImGui::PopID();
    }
}

// A table's values, row by row, each column in one format and at its right end. `names` are a first column.
void draw_numbers(const PanelContext& ui, const std::vector<float>& values, size_t columns,
                  const std::vector<std::string>& names = {}) {
    std::vector<std::vector<std::string>> texts(columns);
    for (size_t row = 0; row * columns < values.size(); ++row) {
        ImGui::TableNextRow();
        if (!names.empty()) {
            ImGui::TableNextColumn();
            ImGui::TextUnformatted(names[row].c_str());
        }
        ImGui::PushFont(ui.fonts.mono);
        for (size_t c = 0; c < columns; ++c) {
            ImGui::TableNextColumn();
            if (row == 0) {
                std::vector<float> column;
                for (size_t i = c; i < values.size(); i += columns) column.push_back(values[i]);
                texts[c] = column_texts(column, ImGui::GetContentRegionAvail().x);
            }
            right_align(ImGui::CalcTextSize(texts[c][row].c_str()).x);
            ImGui::TextUnformatted(texts[c][row].c_str());
        }
        ImGui::PopFont();
    }
}

void draw_terms(const PanelContext& ui, const Derivation& d) {
    if (!ImGui::BeginTable("terms", 4, ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_BordersInnerH))
        return;
    draw_heads(std::array{"q", "k", "q \xc2\xb7 k", "sum"});
    // A long head shows its largest products; the sum is the whole one all the same.
    std::vector<size_t> order(d.terms.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (order.size() > kMaxTerms) {
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            return std::abs(d.terms[a].product) > std::abs(d.terms[b].product);
        });
        order.resize(kMaxTerms);
        std::sort(order.begin(), order.end());
    }
    if (ui.bench.window.sort_by_size)
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            return std::abs(d.terms[a].product) > std::abs(d.terms[b].product);
        });
    std::vector<float> numbers;
    for (const size_t i : order)
        for (const float value : {d.terms[i].q, d.terms[i].k, d.terms[i].product, d.terms[i].running_sum})
            numbers.push_back(value);
    draw_numbers(ui, numbers, 4);
    ImGui::EndTable();
    if (order.size() < d.terms.size())
        soft_text(fill(texts().inspector.largest_products,
                       {std::to_string(order.size()), std::to_string(d.terms.size())}));
}

void draw_sum_terms(const PanelContext& ui, const CellSum& sum, const char* id) {
    const bool products = !sum.b.empty();
    if (!ImGui::BeginTable(id, products ? 4 : 2,
                           ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_BordersInnerH))
        return;
    const std::array titles{"", sum.a.c_str(), sum.b.c_str(), "product"};
    draw_heads(std::span(titles).first(products ? 4 : 2), 1);
    const std::vector<size_t> order = shown_terms(sum, kMaxTerms, ui.bench.window.sort_by_size);
    std::vector<float> numbers;
    std::vector<std::string> names;
    for (const size_t i : order) {
        const CellSum::Term& term = sum.terms[i];
        names.push_back(in_drawing_order(term.name));
        numbers.push_back(term.a);
        if (products) numbers.insert(numbers.end(), {term.b, term.product});
    }
    draw_numbers(ui, numbers, products ? 3 : 1, names);
    ImGui::EndTable();
    if (order.size() < sum.terms.size())
        soft_text(fill(texts().inspector.largest_terms,
                       {std::to_string(order.size()), std::to_string(sum.terms.size())}));
}

size_t cell_index(const PanelContext& ui) {
    const ViewState& view = ui.bench.view;
    return size_t(view.picked_row) * ui.bench.shown().stage->columns + size_t(view.picked_column);
}

// The number that is drawn, and the matrices that it comes from with the cells lit that go into it; a click
// goes there.
void draw_number_and_inputs(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const Palette& colors = palette(bench.window.theme);
    const float s = ui.scale, gap = 10 * s, side = 72 * s;
    const Stage& stage = *bench.shown().stage;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const bool hidden = stage.hidden(bench.shown().head, uint64_t(bench.view.picked_row),
                                     uint64_t(bench.view.picked_column)) &&
                        !stage.hiding;
    const std::string drawn =
        hidden ? "\xe2\x88\x92\xe2\x88\x9e" : number(stage.head_values(bench.shown().head)[cell_index(ui)]);
    ImGui::PushFont(ui.fonts.large);
    colored_text(colors.accent, drawn);
    ImGui::PopFont();
    const float below = ImGui::GetCursorScreenPos().y;
    // Draws its description next to it.
    const float number_width = ImGui::GetItemRectSize().x;
    std::string what = fill(
        bench.shown().run->on_cpu() ? texts().inspector.by_cpu : texts().inspector.by_device, {stage.name});
    // Whole or without the place, which the status bar says, too: never cut.
    const float room = ImGui::GetContentRegionAvail().x - number_width - gap;
    const float length = text_width(ui.fonts.small, what);
    if (length > room) what = stage.name;
    draw_text(ui.fonts.small,
              {at.x + number_width + gap, at.y + ui.fonts.large->FontSize - 1.4f * ui.fonts.small->FontSize},
              colors.text_soft, what);
    ImGui::SetCursorScreenPos({at.x, below});
    const std::vector<CellInput> inputs = bench.picked_inputs();
    if (inputs.empty()) return;
    float x = at.x;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const CellInput& input = inputs[i];
        const Stage& from = *input.stage;
        if (input.head >= from.ranges.size()) continue;  // not measured yet
        ImGui::PushID(int(i));
        ImGui::SetCursorScreenPos({x, below});
        const bool clicked = ImGui::InvisibleButton("input", {side, side});
        const bool hovered = ImGui::IsItemHovered();
        draw_thumbnail(ui, thumbnail_of(from, input.head), {x, below}, {side, side});
        (void)frame_cells(ui, from, input.cells, {x, below}, {side, side});
        if (hovered) draw.AddRect({x, below}, {x + side, below + side}, colors.text_soft, 0, 0, 2 * s);
        const std::string text = input_text(input);
        if (hovered) ImGui::SetTooltip("%s", fill(texts().inspector.input_hint, {text}).c_str());
        ImFont* const small = ui.fonts.small;
        draw_text(small, {x, below + side + 3 * s}, colors.text_soft, text);
        ImGui::PopID();
        const float width = text_width(small, text);
        if (clicked) bench.show_input(input);
        x += std::max(side, width) + gap + 4 * s;
        if (clicked) break;
    }
    ImGui::SetCursorScreenPos({at.x, below});
    ImGui::Dummy({side, side + ui.fonts.small->FontSize + 8 * s});
}

void draw_steps(const PanelContext& ui, const Derivation& d, bool of_dropped) {
    if (!ImGui::BeginTable("steps", 3, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH))
        return;
    ImGui::TableSetupColumn("name");
    ImGui::TableSetupColumn("how", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("value");
    step(ui, "q \xc2\xb7 k", texts().inspector.sum_of_products, number(d.dot));
    step(ui, "score", "\xc3\x97 " + format_number(d.scale, 5), number(d.score));
    if (d.softcap > 0)
        step(ui, "capped", format_number(d.softcap, 3) + " tanh(score / " + format_number(d.softcap, 3) + ")",
             number(d.capped));
    if (d.has_alibi) step(ui, "ALiBi", "slope " + format_number(d.alibi_slope, 4), number(d.alibi));
    if (d.has_bias) step(ui, "bias", texts().inspector.added, number(d.bias));
    step(ui, texts().inspector.after_mask, d.hidden_by.empty() ? texts().inspector.visible : d.hidden_by,
         number(d.masked));
    step(ui, texts().inspector.row_max,
         fill(d.visible_keys == 1 ? texts().inspector.visible_key : texts().inspector.visible_keys,
              {format_count(d.visible_keys)}),
         number(d.row_max));
    step(ui, "exp", "exp(masked \xe2\x88\x92 max)", number(d.exponential));
    if (d.has_sink)
        step(ui, "sink", fill(texts().inspector.sink, {format_number(double(d.sink), 4)}),
             number(d.sink_term));
    step(ui, "sum", d.has_sink ? texts().inspector.with_sink : texts().inspector.of_exp,
         number(d.denominator));
    step(ui, "weight", "exp / sum", number(d.weight), !of_dropped);
    if (d.has_dropout)
        step(ui, texts().inspector.after_dropout,
             !d.hidden_by.empty() ? texts().inspector.masked
             : d.kept             ? fill(texts().inspector.kept, {format_number(d.keep_scale, 4)})
                                  : texts().inspector.dropped,
             number(d.dropped_weight), of_dropped);
    ImGui::EndTable();
}

void draw_contribution(const PanelContext& ui, const Derivation& d) {
    soft_text(texts().inspector.contribution);
    if (!ImGui::BeginTable("values", 3, ImGuiTableFlags_SizingStretchSame | ImGuiTableFlags_BordersInnerH))
        return;
    draw_heads(std::array{"v", "weight \xc2\xb7 v", "context"});
    std::vector<float> numbers;
    for (size_t i = 0; i < std::min(d.values.size(), kMaxTerms); ++i)
        for (const float value : {d.values[i].value, d.values[i].contribution, d.values[i].context})
            numbers.push_back(value);
    draw_numbers(ui, numbers, 3);
    ImGui::EndTable();
    if (d.values.size() > kMaxTerms)
        soft_text(fill(texts().inspector.first_values,
                       {std::to_string(kMaxTerms), std::to_string(d.values.size())}));
}

// At the right end of the heading, where it is in sight however long the derivation is.
void draw_copy(PanelContext& ui, const Derivation& d) {
    const ImVec2 below = ImGui::GetCursorPos();
    const float width = ImGui::CalcTextSize(texts().inspector.copy).x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorPos(
        {ImGui::GetContentRegionMax().x - width, ImGui::GetCursorStartPos().y - 4 * ui.scale});
    if (ImGui::Button(texts().inspector.copy)) ImGui::OpenPopup("copy");
    tooltip(texts().inspector.copy_hint);
    if (ImGui::BeginPopup("copy")) {
        if (ImGui::MenuItem(texts().inspector.as_csv)) ImGui::SetClipboardText(derivation_csv(d).c_str());
        if (ImGui::MenuItem(texts().inspector.as_python))
            ImGui::SetClipboardText(derivation_python(d).c_str());
        if (ImGui::MenuItem(texts().inspector.as_latex)) ImGui::SetClipboardText(derivation_latex(d).c_str());
        ImGui::EndPopup();
    }
    ImGui::SetCursorPos(below);
}

// Left of Copy: where a click on an input came from.
void draw_back(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (bench.view.came_from.empty()) return;
    const ImVec2 below = ImGui::GetCursorPos();
    ImGui::SetCursorPos({ImGui::GetContentRegionMax().x - button_width(texts().inspector.copy) -
                             button_width(texts().inspector.back) - 4 * ui.scale,
                         ImGui::GetCursorStartPos().y - 4 * ui.scale});
    if (ImGui::Button(texts().inspector.back)) bench.go_back();
    if (ImGui::IsItemHovered() && !bench.view.came_from.empty())
        ImGui::SetTooltip("%s",
                          fill(texts().inspector.back_hint, {bench.view.came_from.back().stage}).c_str());
    ImGui::SetCursorPos(below);
}

// The map's picked cell, computed from q and k in float32, whatever its tile says.
void draw_map_cell(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const MapPlace& place = bench.map.place;
    heading(ui, "Cell",
            bench.map
                ? (format_count(place.picked_row) + " \xe2\x86\x92 " + format_count(place.picked_key)).c_str()
                : "");
    const Derivation* d = bench.map.derivation();
    if (!d) {
        soft_text(bench.map ? texts().inspector.computing : texts().inspector.click_map);
        return;
    }
    draw_copy(ui, *d);
    ImGui::BeginChild("derivation");
    draw_steps(ui, *d, d->has_dropout);
    soft_paragraph(texts().inspector.exact);
    check_box(ui, texts().inspector.sort, &bench.window.sort_by_size);
    draw_terms(ui, *d);
    ImGui::EndChild();
}

// Draws a cell of a stage other than queries x keys: its value, and the products that sum to it.
void draw_other_cell(PanelContext& ui, const Stage& stage) {
    Workbench& bench = ui.bench;
    const std::optional<CellSum> sum = bench.picked_sum();
    if (!sum) {
        if (bench.computation.measured()) draw_number_and_inputs(ui);
        soft_paragraph(stage.over_keys ? texts().inspector.computing
                       : stage.id      ? stage_text(*stage.id).about.c_str()
                                       : texts().inspector.given);
        return;
    }
    ImGui::BeginChild("sum");
    draw_number_and_inputs(ui);
    if (ImGui::BeginTable("steps", 3, ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerH)) {
        ImGui::TableSetupColumn("name");
        ImGui::TableSetupColumn("how", ImGuiTableColumnFlags_WidthStretch);
        ImGui::TableSetupColumn("value");
        if (!sum->added_name.empty())
            step(ui, sum->added_name.c_str(), texts().inspector.added, number(sum->added));
        step(ui, "sum", sum->b.empty() ? texts().inspector.of_row : texts().inspector.of_products,
             number(sum->sum));
        ImGui::EndTable();
    }
    ImGui::PushTextWrapPos();
    soft_text(sum->how);
    if (!sum->ending.empty()) soft_text(sum->ending);
    ImGui::PopTextWrapPos();
    check_box(ui, texts().inspector.sort, &bench.window.sort_by_size);
    draw_sum_terms(ui, *sum, "terms");
    for (const CellSum& factor : sum->factors) {
        ImGui::Dummy({0, 4 * ui.scale});
        ImGui::PushTextWrapPos();
        soft_text(factor.how);
        ImGui::TextDisabled("%s: %s", factor.ending.c_str(), number(factor.result).c_str());
        ImGui::PopTextWrapPos();
        draw_sum_terms(ui, factor, factor.b.c_str());
    }
    ImGui::EndChild();
}

}  // namespace

void draw_inspector_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (bench.window.centre == CentreTab::map) {
        draw_map_cell(ui);
        return;
    }
    const ViewState& view = bench.view;
    const Stage& stage = *bench.shown().stage;
    const std::string row = in_drawing_order(picked_row_name(bench)),
                      column = in_drawing_order(picked_column_name(bench));
    // The cell's name is next to the heading as far as Copy leaves room, and in the status bar.
    const char* const title = view.pinned ? texts().inspector.pinned : "Cell";
    const std::string cell = row + " \xe2\x86\x92 " + column;
    const float back = view.came_from.empty() ? 0 : button_width(texts().inspector.back) + 4 * ui.scale;
    const float room =
        ImGui::GetContentRegionAvail().x - button_width(texts().inspector.copy) - back - 24 * ui.scale;
    const bool fits = ImGui::CalcTextSize(title).x + ImGui::CalcTextSize(cell.c_str()).x < room;
    heading(ui, title, fits ? cell.c_str() : "");
    draw_back(ui);
    const std::optional<Derivation>& d = bench.derivation();
    if (!d) return draw_other_cell(ui, stage);
    draw_copy(ui, *d);
    ImGui::BeginChild("derivation");
    draw_number_and_inputs(ui);
    const bool has_why = bench.has_why();
    if (has_why) {
        const bool open = bench.window.why;
        if (ImGui::Button(open ? texts().inspector.steps : texts().inspector.why)) bench.window.why = !open;
        tooltip(open ? texts().inspector.steps_hint : texts().inspector.why_hint);
    }
    if (has_why && bench.window.why) {
        draw_why(ui, *d);
    } else {
        draw_steps(ui, *d, stage.id == StageId::dropped);
        ImGui::Dummy({0, 4 * ui.scale});
        check_box(ui, texts().inspector.sort, &bench.window.sort_by_size);
        draw_terms(ui, *d);
        draw_contribution(ui, *d);
    }
    ImGui::EndChild();
}

}  // namespace fovea::visualizer
