// The panels of the main window. Each draws itself into the current ImGui window and changes the session only
// through its public functions.
#pragma once

#include "document/workbench.hpp"
#include "matrix/matrix_renderer.hpp"

namespace fovea::visualizer {

struct ScreenRect {  // pixels
    float x = 0, y = 0, width = 0, height = 0;
};

struct PanelContext {
    Workbench& bench;
    MatrixRenderer& matrices;
    const Fonts& fonts;
    float scale;               // pixels for one unit of the layout
    bool transparent = false;  // panels have no background, and cells have `ground`
    ImU32 ground = 0;
    float controls_top = 0;  // top of the matrix panel's controls
    ScreenRect centre = {};  // area of the middle panel, once it is drawn
    // Areas of the tour's targets; without width if hidden.
    ScreenRect inspector = {}, pipeline = {}, levels = {}, help = {};

    const Palette& colors() const { return palette(bench.window.theme); }
};

void draw_top_bar(PanelContext& ui);
void draw_tokens_panel(PanelContext& ui);
// The field for the text, and an offer of words where a model reads letters; without a field for a file's own
// tokens.
void draw_text_controls(PanelContext& ui);
// Returns a level's introduction as plain text.
std::string level_lead(int level);
void draw_pipeline_panel(PanelContext& ui);
// The same two panels for a map.
void draw_map_tokens(PanelContext& ui);
void draw_map_pipeline(PanelContext& ui);
void draw_token_lines(PanelContext& ui);
void draw_matrix_panel(PanelContext& ui);
// The first view, which has the window to itself; and what it says, as a line.
void draw_sentence_panel(PanelContext& ui);
std::string describe_sentence(Workbench& bench);
void draw_flow_panel(PanelContext& ui);
void draw_vectors_panel(PanelContext& ui);
void draw_compare_panel(PanelContext& ui);
void draw_mask_panel(PanelContext& ui);
void draw_map_panel(PanelContext& ui);
void draw_inspector_panel(PanelContext& ui);
// The picked score as a sum over pairs of writers; a click on a head shows that head.
void draw_why(PanelContext& ui, const Derivation& d);
// Describes a control of the parameters; null for an unknown label.
const char* parameter_hint(std::string_view label);
void draw_parameters_panel(PanelContext& ui);
void draw_heads_panel(PanelContext& ui);
void draw_layer_grid(PanelContext& ui);
void draw_next_panel(PanelContext& ui);
void draw_train_panel(PanelContext& ui);
std::string describe_training(Workbench& bench);
void draw_gpu_panel(PanelContext& ui);
void draw_memory_panel(PanelContext& ui);
void draw_problems_panel(PanelContext& ui);
void draw_status_bar(PanelContext& ui);

// Five hints for a first look, next to their subjects; they never block anything. tour_text() is the text of
// a step.
void draw_tour(PanelContext& ui);
const char* tour_text(int step);

// The walk through a level, as the page tells it.
// Goes to the next step (1), the one before (-1) or, from no step, the first; the story ends after the last.
// Each is an undo step.
void step_story(Workbench& bench, int by);
void end_story(Workbench& bench);
// A button that begins the walk; false, and nothing drawn, where there is none or one has begun.
bool draw_walk_button(PanelContext& ui);
// The panel of the step, which covers no other. Its height at a width, in pixels, is 0 without a step.
float story_height(const PanelContext& ui, float width);
void draw_story(PanelContext& ui);
// A text of the shared tables with controls called as in the window, and layers and heads counted from 0.
std::string in_window_words(std::string text);
// "story, step 2 of 11: ...; done"; empty without a step.
std::string describe_story(const Workbench& bench);

// Over everything: file browser, import sheet, keys, palette, go to.
void draw_dialogs(PanelContext& ui);
const char* dialog_title(Dialog dialog);  // empty: none
// True if the path is a folder; the dialog then shows it, with no name chosen.
bool enter_folder(WindowState& window, const std::filesystem::path& path);
void draw_file_browser(PanelContext& ui);
void draw_import_sheet(PanelContext& ui);

// Describes the map at a place, in cells: "pixel of queries 64 to 95, keys 0 to 31: mass 0.0312, exact".
// Empty if nothing is drawn yet.
std::string map_pixel_text(Workbench& bench, double row, double key);
// Returns the exact parts, in cells, of a view that still has previews; they are drawn with frames.
std::vector<MapRect> exact_among_previews(MapTiles& tiles);
// How much of what the view needs is there: row sums up to the half, exact tiles from there on; 1: all is
// exact.
double map_share(LongMap& map);
// Picks the weight that a pixel shows: the one that a preview sampled, or the largest of an exact pixel.
void pick_behind_pixel(Workbench& bench, double row, double key);

// Picks a cell of the map; the view goes with a pick that leaves it.
void pick_on_map(Workbench& bench, uint64_t row, uint64_t key);
// The whole window: top bar, columns, bottom strip, status bar.
void draw_main_window(PanelContext& ui);

// A token of the shown matrix as it is drawn, its letters in the order of the screen; with its index where
// there are several of it, as token_name() has it, or without.
std::string drawn_name(const Workbench& bench, uint64_t index);
std::string drawn_label(const Workbench& bench, uint64_t index);

// A text in a font at a place of the current window, and how wide it is.
void draw_text(const ImFont* font, ImVec2 at, ImU32 color, const std::string& text);
float text_width(const ImFont* font, const std::string& text);
void colored_text(ImU32 color, const std::string& text);
// A soft text on one line, or as many as it needs.
void soft_text(const std::string& text);
void soft_paragraph(const std::string& text);
// While the mouse is on the last item.
void tooltip(const std::string& text);
// A panel's heading, and a soft second line where `note` is not empty.
void heading(const PanelContext& ui, const char* title, const char* note = "");
// With an edge that shows an empty one.
bool check_box(const PanelContext& ui, const char* label, bool* value);
// A row of words, one of them chosen; true when another was.
float button_width(const char* label);
// Places the next item next to the last one if there is room for its width, else on a new line.
void same_line_if_room(float width, float gap);
bool tabs(const PanelContext& ui, std::span<const char* const> names, int& chosen);

}  // namespace fovea::visualizer
