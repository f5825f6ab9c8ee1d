// Opening and saving without a toolkit's dialog: folders, files of the known kinds, a name to type.
#include "data/exporting.hpp"
#include "data/session_file.hpp"
#include "document/opened_model.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <imgui_stdlib.h>
#include <fovea/files.hpp>

#include <algorithm>
#include <filesystem>

namespace fovea::visualizer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 5000;
constexpr const char* kReadable[] = {".safetensors", ".npz", ".npy", ".csv", ".png", ".fovea", ".gguf"};

bool readable(const fs::path& path) {
    const std::string extension = path.extension().string();
    return std::find(std::begin(kReadable), std::end(kReadable), extension) != std::end(kReadable);
}

// `error` is set where the folder cannot be read.
std::vector<FolderEntry> list(const fs::path& folder, std::error_code& error) {
    std::vector<FolderEntry> entries;
    for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end && entries.size() < kMaxEntries; at.increment(error)) {
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (name.starts_with(".")) continue;
        if (at->is_directory(ignored))
            entries.push_back({name, true, is_model_path(at->path()), 0});
        else if (readable(at->path()))
            entries.push_back({name, false, false, at->file_size(ignored)});
    }
    std::sort(entries.begin(), entries.end(), [](const FolderEntry& a, const FolderEntry& b) {
        return a.folder != b.folder ? a.folder : a.name < b.name;
    });
    return entries;
}

void finish(PanelContext& ui, const fs::path& path) {
    Workbench& bench = ui.bench;
    const bool opens = bench.window.dialog == Dialog::open;
    // The folder of a model is opened as what it is; another one is entered.
    if (!(opens && is_model_path(path)) && enter_folder(bench.window, path)) return;
    if (bench.window.dialog == Dialog::save) {
        bench.window.dialog = Dialog::none;
        save_shown(bench, path.string());
        return;
    }
    bench.window.dialog = Dialog::none;
    if (open_any(bench, path.string()) && bench.document.settings().file)
        bench.window.open_dialog(Dialog::import_sheet);
}

void draw_entries(PanelContext& ui, const fs::path& folder) {
    WindowState& state = ui.bench.window;
    if (state.listed_folder != state.folder || state.dialog_opened) {
        std::error_code error;
        state.listing = list(folder, error);
        state.listed_folder = state.folder;
        state.unlisted = error ? error.message() : "";
    }
    ImGui::BeginChild("entries", {620 * ui.scale, 320 * ui.scale}, true);
    if (ImGui::Selectable(texts().files.up)) state.folder = folder.parent_path().string();
    if (!state.unlisted.empty())
        soft_text(fill(texts().files.unreadable, {state.unlisted}));
    else if (state.listing.empty())
        soft_text(texts().files.nothing);
    for (const FolderEntry& entry : state.listing) {
        const std::string label = entry.folder ? entry.name + "/" : entry.name;
        if (ImGui::Selectable(printable_name(label).c_str(), label == state.file_name,
                              ImGuiSelectableFlags_AllowDoubleClick)) {
            // One click names, two enter or open: the second click of a pair never falls on another folder's
            // entry.
            state.file_name = label;
            if (ImGui::IsMouseDoubleClicked(0) && (entry.folder || state.dialog == Dialog::open))
                finish(ui, folder / entry.name);
        }
        if (entry.folder && !entry.is_model) continue;
        const std::string size = entry.is_model ? texts().files.a_model : format_bytes(entry.size_bytes);
        ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::CalcTextSize(size.c_str()).x - 22 * ui.scale);
        soft_text(size);
    }
    ImGui::EndChild();
}

// Chooses the contents of a .png.
void draw_picture_look(PanelContext& ui) {
    PictureLook& look = ui.bench.window.picture;
    const float s = ui.scale;
    ImGui::SetNextItemWidth(120 * s);
    int part = int(look.part);
    if (ImGui::Combo("##part", &part, kPictureParts, kPicturePartCount)) look.part = PicturePart(part);
    ImGui::SameLine(0, 10 * s);
    ImGui::SetNextItemWidth(120 * s);
    ImGui::SliderFloat("##scale", &look.scale, 1, 8, "scale %.1f", ImGuiSliderFlags_AlwaysClamp);
    ImGui::SameLine(0, 10 * s);
    ImGui::BeginDisabled(look.part != PicturePart::matrix);
    check_box(ui, "legend", &look.legend);
    ImGui::EndDisabled();
    ImGui::SameLine(0, 10 * s);
    ImGui::BeginDisabled(look.part == PicturePart::window);
    check_box(ui, "transparent", &look.transparent);
    ImGui::EndDisabled();
    if (look.part == PicturePart::window) look.transparent = false;
}

// Shows the selection that an export of this name is limited to, and a button for all cells.
void draw_selected(PanelContext& ui, const std::string& name) {
    Workbench& bench = ui.bench;
    const bool figure = name.ends_with(".png") && bench.window.picture.part == PicturePart::matrix;
    const bool cuts = figure || name.ends_with(".csv") || name.ends_with(".npy") || name.ends_with(".svg");
    const std::optional<CellRect>& cells = bench.view.selection;
    if (!cells || !cuts || !cells->within(bench.shown().stage->rows, bench.shown().stage->columns)) return;
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, palette(bench.window.theme).warning);
    ImGui::TextUnformatted(
        fill(texts().files.only_selected, {format_count(cells->rows()), format_count(cells->columns())})
            .c_str());
    ImGui::PopStyleColor();
    ImGui::SameLine(0, 10 * ui.scale);
    if (ImGui::Button(texts().files.export_all)) bench.view.selection.reset();
    tooltip(texts().files.export_all_hint);
}

}  // namespace

bool enter_folder(WindowState& window, const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return false;
    window.folder = (path / "").lexically_normal().parent_path().string();
    window.file_name.clear();
    return true;
}

void draw_file_browser(PanelContext& ui) {
    WindowState& state = ui.bench.window;
    const bool saving = state.dialog == Dialog::save;
    std::error_code error;
    if (state.folder.empty()) state.folder = fs::current_path(error).string();
    ImGui::SetNextItemWidth(620 * ui.scale);
    ImGui::InputText("##folder", &state.folder);
    draw_entries(ui, fs::path(state.folder));
    if (state.dialog == Dialog::none) return;
    if (saving && state.dialog_opened && state.file_name.empty())
        state.file_name = ui.bench.stage().name + ".png";
    if (state.dialog_opened) ImGui::SetKeyboardFocusHere();
    state.dialog_opened = false;
    ImGui::SetNextItemWidth(440 * ui.scale);
    const bool enter = ImGui::InputTextWithHint("##name", texts().files.name, &state.file_name,
                                                ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SameLine();
    ImGui::BeginDisabled(state.file_name.empty());
    const bool replaces = saving && !state.file_name.empty() &&
                          fs::is_regular_file(fs::path(state.folder) / state.file_name, error);
    const bool pressed = ImGui::Button(replaces ? texts().files.replace
                                       : saving ? texts().files.save
                                                : texts().files.open);
    ImGui::EndDisabled();
    ImGui::SameLine();
    if (ImGui::Button(texts().files.cancel)) state.dialog = Dialog::none;
    if (!saving && is_model_path(state.folder)) {
        ImGui::SameLine();
        if (ImGui::Button(texts().files.open_model)) {
            state.dialog = Dialog::none;
            open_any(ui.bench, state.folder);
            return;
        }
    }
    if (saving && state.file_name.ends_with(".png")) draw_picture_look(ui);
    soft_text(saving ? texts().files.save_formats : texts().files.open_formats);
    const fs::path path = fs::path(state.folder) / state.file_name;
    if (replaces) {
        colored_text(ui.colors().warning, texts().files.replaces);
    }
    if (saving) draw_selected(ui, state.file_name);
    if ((pressed || enter) && !state.file_name.empty()) finish(ui, path);
}

}  // namespace fovea::visualizer
