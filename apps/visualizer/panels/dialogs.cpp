// Temporary windows over the panels: keys, palette, go to.
#include "data/session_file.hpp"
#include "panels/keys.hpp"
#include "texts/texts.hpp"

#include <imgui_stdlib.h>

#include <algorithm>
#include <charconv>

namespace fovea::visualizer {
namespace {

bool contains(std::string_view text, std::string_view part) {
    const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

bool search_field(PanelContext& ui, const char* hint) {
    WindowState& state = ui.bench.window;
    if (state.dialog_opened) ImGui::SetKeyboardFocusHere();
    state.dialog_opened = false;
    ImGui::SetNextItemWidth(-1);
    return ImGui::InputTextWithHint("##search", hint, &state.search, ImGuiInputTextFlags_EnterReturnsTrue);
}

void draw_help(PanelContext& ui) {
    if (!ImGui::BeginTable("keys", 4, ImGuiTableFlags_SizingFixedFit)) return;
    const std::span<const KeyCommand> all = key_commands();
    const size_t half = (all.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
        for (const size_t at : {i, i + half}) {
            ImGui::TableNextColumn();
            if (at < all.size()) soft_text(all[at].keys);
            ImGui::TableNextColumn();
            if (at < all.size()) ImGui::Text("%s     ", all[at].text().c_str());
        }
    }
    ImGui::EndTable();
    ImGui::Dummy({0, 6 * ui.scale});
    soft_text(texts().dialogs.mouse);
}

// The panels' names for some session keys.
constexpr std::pair<std::string_view, std::string_view> kPlainNames[] = {
    {"temperature", "temp"}, {"softcap", "cap"}, {"dropout", "p"},
    {"tokens", "len"},       {"compare", "cmp"}, {"random", "rng"}};
// Session keys that are not parameters of the shown result.
constexpr std::string_view kNoParameters[] = {"table",
                                              "view",
                                              "zoom",
                                              "train",
                                              "step",
                                              "spread",
                                              "pinned",
                                              "import",
                                              "fused",
                                              "order",
                                              "layer",
                                              "rotate",
                                              "divisor",
                                              "import_heads",
                                              "tokens_first",
                                              "published",
                                              "published_sha256",
                                              "changed_heads"};

// "0.05 to 10", "none, causal, ...": what a key takes.
std::string takes(const SessionKey& key) {
    if (key.type == "boolean") return "1 or 0";
    if (!key.choices.empty()) {
        std::string all;
        for (const std::string& choice : key.choices) all += (all.empty() ? "" : ", ") + choice;
        return all;
    }
    return key.high > key.low ? format_number(key.low, 10) + " to " + format_number(key.high, 10) : key.type;
}

// Lists parameters by name and value, "temperature 5"; a name without a value shows its range. True if it
// handled Enter.
bool draw_parameters_by_name(PanelContext& ui, bool enter, bool& first) {
    WindowState& state = ui.bench.window;
    const size_t space = std::min(state.search.find(' '), state.search.size());
    const std::string word = state.search.substr(0, space);
    const std::string value = state.search.substr(std::min(space + 1, state.search.size()));
    if (word.empty()) return false;
    for (const SessionKey& key : session_keys()) {
        if (std::find(std::begin(kNoParameters), std::end(kNoParameters), key.key) != std::end(kNoParameters))
            continue;
        std::string name = key.key;
        for (const auto& [plain, of] : kPlainNames)
            if (of == key.key) name = plain;
        const bool named = word == name || word == key.key;
        if (!named && (!value.empty() || !name.starts_with(word))) continue;
        const bool sets = named && !value.empty();
        const std::string text = sets ? name + ": " + value : name + ": " + takes(key);
        const bool chosen = ImGui::Selectable((text + "##" + key.key).c_str(), first) || (enter && first);
        first = false;
        if (!chosen) continue;
        if (!sets) {
            state.search = name + " ";
            state.dialog_opened = true;  // the field goes on being typed into
            return true;
        }
        state.dialog = Dialog::none;
        state.search.clear();
        if (const Result<void> r = set_session_key(ui.bench, key.key, value); !r)
            ui.bench.problems.report(r.error().field, r.error().text, true);
        return true;
    }
    return false;
}

void draw_palette(PanelContext& ui) {
    const bool enter = search_field(ui, texts().dialogs.command_hint);
    ImGui::BeginChild("commands", {0, 320 * ui.scale});
    const KeyCommand* chosen = nullptr;
    bool first = true;
    if (draw_parameters_by_name(ui, enter, first)) return ImGui::EndChild();
    for (const KeyCommand& command : key_commands()) {
        const std::string what = command.text();
        if (!contains(what, ui.bench.window.search)) continue;
        if (enter && first) chosen = &command;
        if (ImGui::Selectable(what.c_str(), first)) chosen = &command;
        first = false;
        const float width = ImGui::CalcTextSize(command.keys).x;
        ImGui::SameLine(ImGui::GetWindowWidth() - width - 16 * ui.scale);
        soft_text(command.keys);
    }
    ImGui::EndChild();
    if (!chosen) return;
    ui.bench.window.dialog = Dialog::none;
    ui.bench.window.search.clear();
    chosen->run(ui.bench);
}

}  // namespace

// "3 5", "3,5" or a token's text: the query, and after a comma the key.
bool go_to(Workbench& bench, std::string_view text) {
    const bool map = bench.window.centre == CentreTab::map && bench.map;
    const size_t comma = text.find_first_of(", ");
    const auto place = [&](std::string_view part, uint64_t count) -> int {
        while (!part.empty() && (part.front() == ' ' || part.front() == ',')) part.remove_prefix(1);
        int number = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error == std::errc{} && end == part.data() + part.size())
            return number >= 0 && uint64_t(number) < count ? number : -1;
        for (size_t i = 0; !map && !part.empty() && i < bench.computation.tokens().size() && i < count; ++i)
            if (contains(bench.computation.tokens()[i], part)) return int(i);
        return -1;
    };
    const int row = place(text.substr(0, comma), map ? bench.map.head()->rows() : bench.stage().rows);
    const int column =
        comma == std::string_view::npos
            ? map ? int(bench.map.place.picked_key) : bench.view.picked_column
            : place(text.substr(comma + 1), map ? bench.map.head()->tokens() : bench.stage().columns);
    if (row < 0 || column < 0) return false;
    if (map) {
        bench.map.place.picked_row = uint64_t(row), bench.map.place.picked_key = uint64_t(column);
        bench.map.place.row = double(row), bench.map.place.key = double(column);
        return true;
    }
    bench.view.picked_row = row, bench.view.picked_column = column;
    bench.view.pinned = true;
    bench.view.follow = ViewState::Follow::in_sight;
    return true;
}

namespace {

void draw_go_to(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const bool map = bench.window.centre == CentreTab::map && bench.map;
    const bool enter = search_field(ui, map ? texts().dialogs.map_cell_hint : texts().dialogs.cell_hint);
    soft_text(map ? texts().dialogs.map_cell_example : texts().dialogs.cell_example);
    if (!enter) return;
    if (!go_to(bench, bench.window.search)) {
        bench.window.dialog_opened = true;
        return;
    }
    bench.window.dialog = Dialog::none;
    bench.window.search.clear();
}

}  // namespace

const char* dialog_title(Dialog dialog) {
    const Texts::Dialogs& of = texts().dialogs;
    const char* const titles[] = {"", of.open, of.save, of.import_sheet, of.keys, of.commands, of.go_to};
    return titles[size_t(dialog)];
}

void draw_dialogs(PanelContext& ui) {
    WindowState& state = ui.bench.window;
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const char* title = dialog_title(state.dialog);
    // The others are about a result that is still being prepared.
    if (!ui.bench.computation.ready() && state.dialog != Dialog::open && state.dialog != Dialog::help)
        state.dialog = Dialog::none;
    if (state.dialog == Dialog::none) return;
    if (!ImGui::IsPopupOpen(title)) ImGui::OpenPopup(title);
    ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
    // Wide enough for the longest command next to its keys.
    const float least = state.dialog == Dialog::palette ? 640 : 420;
    ImGui::SetNextWindowSizeConstraints({std::min(least * ui.scale, screen.x * 0.94f), 0},
                                        {screen.x * 0.94f, screen.y * 0.94f});
    bool open = true;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {18 * ui.scale, 16 * ui.scale});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, std::max(ui.scale, 1.0f));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * ui.scale);
    // Aligns the title with the contents below it.
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {18 * ui.scale, 9 * ui.scale});
    const bool shown = ImGui::BeginPopupModal(
        title, &open,
        ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    ImGui::PopStyleVar();
    if (shown) {
        const Dialog before = state.dialog;
        if (before == Dialog::help) draw_help(ui);
        if (before == Dialog::palette) draw_palette(ui);
        if (before == Dialog::go_to) draw_go_to(ui);
        if (before == Dialog::open || before == Dialog::save) draw_file_browser(ui);
        if (before == Dialog::import_sheet) draw_import_sheet(ui);
        if (!open || ImGui::IsKeyPressed(ImGuiKey_Escape)) state.dialog = Dialog::none;
        if (state.dialog != before) ImGui::CloseCurrentPopup();
        ImGui::EndPopup();
    }
    ImGui::PopStyleVar(3);
}

}  // namespace fovea::visualizer
