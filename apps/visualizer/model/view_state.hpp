// How the results are looked at. None of it changes a number.
#pragma once

#include <fovea/inspect/colour_map.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

enum class Spread { automatic, linear, logarithmic, symmetric_log };
inline constexpr int kSpreadCount = 4;
enum class CompareHow { side, triangle, difference };

// Cells that are to be exported alone; ends included.
struct CellRect {
    int row_begin = 0, row_last = 0, column_begin = 0, column_last = 0;
    bool within(uint64_t rows, uint64_t columns) const {
        return row_begin >= 0 && row_begin <= row_last && column_begin >= 0 && column_begin <= column_last &&
               uint64_t(row_last) < rows && uint64_t(column_last) < columns;
    }
    uint64_t rows() const { return uint64_t(row_last - row_begin + 1); }
    uint64_t columns() const { return uint64_t(column_last - column_begin + 1); }
};

// What may differ from how it is kept in sessions is said there.
struct ViewState {
    size_t stage = 0;
    uint32_t head = 0;
    int picked_row = 1, picked_column = 1;
    bool pinned = false;  // hovering does not move the pick
    ColourMap map = ColourMap::viridis;
    bool automatic_map = true;  // diverging for stages with negative numbers
    Spread spread = Spread::automatic;
    float range_low = NAN, range_high = NAN;  // NaN: that of the values
    float zoom = 0;                           // pixels for a cell; 0: fit
    float pan_x = 0, pan_y = 0;
    int compared_head = -1;  // B; -1: none
    CompareHow how = CompareHow::side;
    bool same_range = true;  // A and B side by side
    std::optional<CellRect> selection;
    // The view goes to a pick that keys moved: none, so that it is in sight, into the middle. For one frame.
    enum class Follow { none, in_sight, middle } follow = Follow::none;
    bool show_other = false;  // while Shift is held: B in the place of A
};

enum class CentreTab { matrix, compare, mask, map, layers };
enum class BottomTab { heads, gpu, memory, problems };
enum class Dialog { none, open, save, import_sheet, help, palette, go_to };

// Where the long map is looked at, in cells.
struct MapPlace {
    double row = 0, key = 0;   // in the middle of the view
    double cells_a_pixel = 0;  // 0: fit
    uint64_t picked_row = 0, picked_key = 0;
    bool largest = false;  // the largest weight of a pixel instead of its mass
};

// Where the panels meet; dragged by their edges and kept between runs.
struct Layout {
    float left = 300, right = 372, bottom = 184;  // units of the layout
    float tokens = 0.36f, inspector = 0.60f;      // shares of their column
    // Text and pipeline, cell and parameters, heads and what stands beside them.
    bool left_shown = true, right_shown = true, bottom_shown = true;
    bool mirrored = false;  // text and pipeline on the right
    friend bool operator==(const Layout&, const Layout&) = default;
};

// What of the window a picture is of. The view: the middle panel as it is. The matrix: its cells whole, or
// the selected ones, with labels.
enum class PicturePart { window, view, matrix };
inline constexpr int kPicturePartCount = 3;
inline constexpr const char* kPictureParts[kPicturePartCount] = {"window", "view", "matrix"};
struct PictureLook {
    PicturePart part = PicturePart::window;
    float scale = 1;           // pixels for one unit of the layout
    bool legend = true;        // title and colour bar of a matrix
    bool transparent = false;  // nothing behind the cells and letters; not of a window
};

inline constexpr int kTourSteps = 5;

struct FolderEntry {
    std::string name;
    bool folder = false;
    uint64_t size_bytes = 0;
};

// Which panels are open, and what is typed into them.
struct UiState {
    CentreTab centre = CentreTab::matrix;
    int locked_tab = -1;  // of the matrix tabs; -1: the one that follows the selection
    BottomTab bottom = BottomTab::heads;
    Dialog dialog = Dialog::none;
    bool dialog_opened = false;  // since the last frame: it wants the keyboard
    MapPlace map;
    Layout layout;
    std::string folder, file_name;  // of the file dialogs
    // What is in `listed_folder`, as it was when the dialog came to it.
    std::string listed_folder, unlisted;
    std::vector<FolderEntry> listing;
    std::string search;         // of palette and go to
    float scale_factor = 1;     // over the display's own
    bool sort_by_size = false;  // the inspector's products
    bool full_screen = false;
    bool brush_shows = false;
    int brush_row = 0, brush_column = 0;  // where the stroke began
    uint32_t strokes = 0;
    bool token_lines = false, lines_of_all = true;
    int lines_top = 8;
    int brush = 0;  // of the mask editor: 0 cell, 1 rectangle, 2 row, 3 column
    int head_order =
        0;  // of the heads grid: 0 number, 1 entropy, 2 distance, 3 first token, 4 previous token
    bool all_layers = true;      // in the heads panel, where there are several
    float head_least = 0;        // the share of the largest figure below which a head is left out
    PictureLook picture;         // of exports
    int tour_step = 0;           // of kTourSteps; 0: no tour is shown
    std::string stage_in_sight;  // to which the pipeline has scrolled
    bool motion = false;         // stages change over a moment; only in a window
    void show(BottomTab tab) {
        bottom = tab;
        layout.bottom_shown = true;
    }
    void open_dialog(Dialog which) {
        dialog = which;
        dialog_opened = true;
    }
};

}  // namespace fovea::visualizer
