// One head of a stage drawn into a rectangle of the current window: cells, digits, labels, and the mouse on
// it. Zoom, pan and pick are the view's, so that canvases side by side move together.
#pragma once

#include "matrix/coloring.hpp"
#include "panels/panels.hpp"

namespace fovea::visualizer {

struct Canvas {
    const Stage* stage = nullptr;
    uint32_t head = 0;
    // The cells are the differences to this head of this stage, of the same shape; null: the values
    // themselves.
    const Stage* minus = nullptr;
    uint32_t minus_head = 0;
    bool hatch_hidden = true;                          // where the stage has a stage that hides
    const std::vector<std::string>* tokens = nullptr;  // labels; null: the session's
    bool upper_only = false;                           // draws only above the diagonal
    ImVec2 at, size;                                   // area of the cells
    float cell_width = 1, cell_height = 1;
    ImVec2 origin;         // place of cell (0, 0)
    bool slanted = false;  // words above the columns
    Coloring coloring;

    float value(uint64_t row, uint64_t column) const;
    bool all_visible() const;
};

struct VisibleCells {
    int row_begin, row_end, column_begin, column_end;
};

inline constexpr float kHatchPeriod = float(MATRIX_HATCH_PERIOD);
inline constexpr float kLabelColumn = 92, kLabelRow = 34;  // units of the layout
// Returns the room above a stage's cells in an area of this size, in layout units: more if words are slanted,
// because the cells are too narrow for them.
float label_row(const PanelContext& ui, const Stage& stage, ImVec2 size);

// `at` and `size` are the area of the cells; labels are outside of it, to the left and above.
Canvas lay_out_canvas(PanelContext& ui, const Stage& stage, uint32_t head, ImVec2 at, ImVec2 size);
VisibleCells visible_cells(const Canvas& canvas);
// Where bars of these values begin: at 0, or below the smallest of many that are nearly equal, which would be
// one block.
float bars_begin(const std::vector<float>& values);
// The cell under the mouse, if it is over one.
bool cell_under_mouse(const Canvas& canvas, int& row, int& column);

// Wheel zooms about the cursor, drag pans, hovering picks unless the pick is pinned, a click pins or unpins,
// dragging with the right button selects cells for an export, its click selects none.
void canvas_mouse(PanelContext& ui, const Canvas& canvas, const char* id);
void canvas_zoom(PanelContext& ui, const Canvas& canvas);
void canvas_cells(PanelContext& ui, const Canvas& canvas);
void canvas_digits(PanelContext& ui, const Canvas& canvas);
// Frames of the cells that an export is cut to and of those that are pointed at.
void canvas_selection(PanelContext& ui, const Canvas& canvas);
void canvas_labels(PanelContext& ui, const Canvas& canvas);
// Lines over the columns' words, from the picked query to its largest weights and, where all queries have
// lines, faint ones of the others. They begin and end `foot` above the cells.
inline constexpr float kArcRow = 64;  // units of the layout
inline constexpr uint64_t kMaxArcTokens = 40;
void canvas_arcs(PanelContext& ui, const Canvas& canvas, float foot);
// One such line from `from` to `to` at the height `foot`: higher the further, at most `tall`. A token that
// looks at itself has a loop, half as wide as `loop`. Returns its top. All in pixels.
float draw_arc(float from, float to, float foot, float tall, float thickness, ImU32 color, float loop);
// Names of the hatchings that the matrix has, from `at` down; how high they are together.
float canvas_marks(const PanelContext& ui, const HeadSummary& of, ImVec2 at);
// The colors' range with a histogram of the shown matrix, from `x` on; its ends are dragged.
void canvas_range_bar(PanelContext& ui, const Canvas& canvas, float x);
// The whole matrix in a corner with the visible part framed, while only a part is visible.
void canvas_minimap(PanelContext& ui, const Canvas& canvas);

// The highest value is at the top; values with this many digits are to the right of the bar. An end that
// values exceed has a dot of another color, and its value the sign for at least or at most.
void draw_color_bar(const PanelContext& ui, const Coloring& coloring, const ScreenRect& bar, int digits,
                    const Clamped& clamped);

}  // namespace fovea::visualizer
