// The state of the window: open panels, their places, and typed text. None of it describes a result.
#pragma once

#include "document/head_order.hpp"
#include "theme/theme.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea::visualizer {

enum class CentreTab { matrix, sentence, flow, vectors, compare, mask, map, layers, train };
enum class BottomTab { heads, next, gpu, memory, problems };
enum class Dialog { none, open, save, import_sheet, help, palette, go_to };

// Where the panels meet; dragged by their edges and kept between runs.
struct Layout {
    float left = 300, right = 372, bottom = 184;  // units of the layout
    float tokens = 0.36f, inspector = 0.60f;      // shares of their column
    // The left side has text and pipeline, the right side cell and parameters, the bottom heads and related
    // panels.
    bool left_shown = true, right_shown = true, bottom_shown = true;
    bool mirrored = false;  // text and pipeline on the right
    friend bool operator==(const Layout&, const Layout&) = default;
};

// The part of the window in a picture. View: the middle panel as it is. Matrix: all its cells, or the
// selected ones, with labels.
enum class PicturePart { window, view, matrix };
inline constexpr int kPicturePartCount = 3;
inline constexpr const char* kPictureParts[kPicturePartCount] = {"window", "view", "matrix"};
struct PictureLook {
    PicturePart part = PicturePart::window;
    float scale = 1;           // pixels for one unit of the layout
    bool legend = true;        // title and color bar of a matrix
    bool transparent = false;  // no background for cells and letters; not for a window
};

inline constexpr int kTourSteps = 5;

struct FolderEntry {
    std::string name;
    bool folder = false;
    bool is_model = false;  // a folder that is opened as one
    uint64_t size_bytes = 0;
};

// A line over the panels that stays until it is closed: what happened to the program itself.
struct Notice {
    std::string text;
    bool offers_processor = false, offers_map = false;
    bool good = false;  // something was done as it was asked for
};

// A frame of the window.
struct FrameTime {
    float wall_s = 0;    // from its begin to its being handed to the screen
    float device_s = 0;  // device time of the whole frame; 0: not known
};
inline constexpr size_t kMaxFrameTimes = 300;

// Which panels are open, and what is typed into them.
struct WindowState {
    CentreTab centre = CentreTab::matrix;
    int locked_tab = -1;  // tab of a locked matrix; -1: the one that follows the selection
    BottomTab bottom = BottomTab::heads;
    Dialog dialog = Dialog::none;
    bool dialog_opened = false;  // since the last frame: it wants the keyboard
    Layout layout;
    std::string folder, file_name;  // for the file dialogs
    // The contents of `listed_folder` when the dialog opened it.
    std::string listed_folder, unlisted;
    std::vector<FolderEntry> listing;
    int training_speed = 1;     // for the training panel
    std::string search;         // for palette and go to
    std::string patch_text;     // the sentence that a head is to be patched from
    float scale_factor = 1;     // over the display's own
    bool sort_by_size = false;  // the inspector's products
    bool why = false;           // the inspector splits the score by its writers
    bool full_screen = false;
    bool brush_shows = false;
    int brush_row = 0, brush_column = 0;  // where the stroke began
    uint32_t strokes = 0;
    bool token_lines = false, lines_of_all = true;
    int lines_top = 8;
    int brush = 0;               // for the mask editor: 0 cell, 1 rectangle, 2 row, 3 column
    HeadOrder head_order;        // for the heads panel and the grid of all layers
    bool all_layers = true;      // in the heads panel, where there are several
    PictureLook picture;         // for exports
    int tour_step = 0;           // index into kTourSteps; 0: no tour is shown
    std::string stage_in_sight;  // to which the pipeline has scrolled
    // Panels of the last frame that the keyboard can walk in, and the one that has it.
    std::vector<std::string> focusable;
    std::string focused;
    bool wants_focus = false;  // it gets the keyboard with the next frame
    bool motion = false;       // stages change over a moment; only in a window
    Theme theme = Theme::dark;
    std::optional<Notice> notice;
    bool wants_to_quit = false;
    std::vector<FrameTime> frames;  // the last ones, the newest last
    std::string restorable;         // a session that a run before could not end; empty: there is none
    std::string wanted_picture;     // a PNG file to draw after this frame

    // The newest of them; beyond kMaxFrameTimes the oldest goes.
    FrameTime& begin_frame() {
        if (frames.size() == kMaxFrameTimes) frames.erase(frames.begin());
        return frames.emplace_back();
    }
    void tell(std::string text, bool offers_processor = false, bool offers_map = false) {
        notice = Notice{std::move(text), offers_processor, offers_map, false};
    }
    void tell_done(std::string text) { notice = Notice{std::move(text), false, false, true}; }
    // Shows the panels around the middle, which the first view leaves out.
    void show_panels() {
        if (centre == CentreTab::sentence) centre = CentreTab::matrix;
    }
    void show(BottomTab tab) {
        show_panels();
        bottom = tab;
        layout.bottom_shown = true;
    }
    void open_dialog(Dialog which) {
        dialog = which;
        dialog_opened = true;
    }
};

}  // namespace fovea::visualizer
