// What lies over the panels for a moment: keys, palette, go to.
#include "keys.hpp"

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
    UiState& state = ui.session.ui;
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
            if (at < all.size()) ImGui::TextDisabled("%s", all[at].keys);
            ImGui::TableNextColumn();
            if (at < all.size()) ImGui::Text("%s     ", all[at].what);
        }
    }
    ImGui::EndTable();
    ImGui::Dummy({0, 6 * ui.scale});
    ImGui::TextDisabled(
        "Mouse: wheel zooms, drag pans, hovering picks, a click pins. Tab walks over the panels.\n"
        "Screen readers: Dear ImGui gives them nothing; --follow FILE and --describe say in words\n"
        "what is shown, and the web page is accessible.");
}

void draw_palette(PanelContext& ui) {
    const bool enter = search_field(ui, "what to do");
    ImGui::BeginChild("commands", {0, 320 * ui.scale});
    const KeyCommand* chosen = nullptr;
    bool first = true;
    for (const KeyCommand& command : key_commands()) {
        if (!contains(command.what, ui.session.ui.search)) continue;
        if (enter && first) chosen = &command;
        if (ImGui::Selectable(command.what, first)) chosen = &command;
        first = false;
        const float width = ImGui::CalcTextSize(command.keys).x;
        ImGui::SameLine(ImGui::GetWindowWidth() - width - 16 * ui.scale);
        ImGui::TextDisabled("%s", command.keys);
    }
    ImGui::EndChild();
    if (!chosen) return;
    ui.session.ui.dialog = Dialog::none;
    ui.session.ui.search.clear();
    chosen->run(ui.session);
}

}  // namespace

// "3 5", "3,5" or a token's text: the query, and after a comma the key.
bool go_to(Session& session, std::string_view text) {
    const bool map = session.ui.centre == CentreTab::map && session.map;
    const size_t comma = text.find_first_of(", ");
    const auto place = [&](std::string_view part, uint64_t count) -> int {
        while (!part.empty() && (part.front() == ' ' || part.front() == ',')) part.remove_prefix(1);
        int number = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error == std::errc{} && end == part.data() + part.size())
            return number >= 0 && uint64_t(number) < count ? number : -1;
        for (size_t i = 0; !map && !part.empty() && i < session.tokens().size() && i < count; ++i)
            if (contains(session.tokens()[i], part)) return int(i);
        return -1;
    };
    const int row = place(text.substr(0, comma), map ? session.map->rows() : session.stage().rows);
    const int column =
        comma == std::string_view::npos
            ? map ? int(session.ui.map.picked_key) : session.view.picked_column
            : place(text.substr(comma + 1), map ? session.map->tokens() : session.stage().columns);
    if (row < 0 || column < 0) return false;
    if (map) {
        session.ui.map.picked_row = uint64_t(row), session.ui.map.picked_key = uint64_t(column);
        session.ui.map.row = double(row), session.ui.map.key = double(column);
        return true;
    }
    session.view.picked_row = row, session.view.picked_column = column;
    session.view.pinned = true;
    session.view.follow = ViewState::Follow::in_sight;
    return true;
}

namespace {

void draw_go_to(PanelContext& ui) {
    Session& session = ui.session;
    const bool map = session.ui.centre == CentreTab::map && session.map;
    const bool enter = search_field(ui, map ? "query, key: numbers" : "row, column: numbers or tokens");
    ImGui::TextDisabled("%s", map ? "\xe2\x80\x9c"
                                    "8192, 17\xe2\x80\x9d"
                                  : "\xe2\x80\x9c"
                                    "3, 1\xe2\x80\x9d or \xe2\x80\x9cjourney, step\xe2\x80\x9d");
    if (!enter) return;
    if (!go_to(session, session.ui.search)) {
        session.ui.dialog_opened = true;
        return;
    }
    session.ui.dialog = Dialog::none;
    session.ui.search.clear();
}

}  // namespace

void draw_dialogs(PanelContext& ui) {
    UiState& state = ui.session.ui;
    constexpr const char* kTitles[] = {"",     "Open a file", "Export", "How the file is read",
                                       "Keys", "Do",          "Go to"};
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const char* title = kTitles[size_t(state.dialog)];
    // The others are about a result that is still being prepared.
    if (!ui.session.ready() && state.dialog != Dialog::open && state.dialog != Dialog::help)
        state.dialog = Dialog::none;
    if (state.dialog == Dialog::none) return;
    if (!ImGui::IsPopupOpen(title)) ImGui::OpenPopup(title);
    ImGui::SetNextWindowPos({screen.x / 2, screen.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
    ImGui::SetNextWindowSizeConstraints({420 * ui.scale, 0}, {screen.x * 0.94f, screen.y * 0.94f});
    bool open = true;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {18 * ui.scale, 16 * ui.scale});
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, std::max(ui.scale, 1.0f));
    ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * ui.scale);
    if (ImGui::BeginPopupModal(
            title, &open,
            ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings)) {
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
