#include "keys.hpp"

#include "data/imported_file.hpp"
#include "panels/panels.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr float kKeyZoom = 1.5f;

void step_stage(Session& s, int step) {
    s.show_stage(size_t(std::clamp(int(s.view.stage) + step, 0, int(s.stages().size()) - 1)));
}

void step_head(Session& s, int step) {
    if (s.ui.centre == CentreTab::map && s.map) {
        const auto count = int(s.map->head().heads);
        s.show_map_head(uint32_t((int(s.map->head().head) + step + count) % count));
        return;
    }
    const int count = int(s.stage().heads);
    s.view.head = uint32_t((int(s.view.head) + step + count) % count);
}

void move_pick(Session& s, int rows, int columns) {
    if (s.ui.centre == CentreTab::map && s.map) {
        // By what can be told apart: a pixel may be many cells.
        const int64_t pixel = int64_t{1} << s.map->tiles().progress().level;
        const auto moved = [pixel](uint64_t at, int step, uint64_t count) {
            return uint64_t(std::clamp(int64_t(at) + step * pixel, int64_t(0), int64_t(count) - 1));
        };
        MapPlace& place = s.ui.map;
        place.picked_row = moved(place.picked_row, rows, s.map->rows());
        place.picked_key = moved(place.picked_key, columns, s.map->tokens());
        // The view goes with a pick that leaves it.
        const MapRect& seen = s.map->tiles().view().rect;
        const double row = double(place.picked_row), key = double(place.picked_key);
        if (row < seen.first_row || row >= seen.first_row + seen.rows) place.row = row;
        if (key < seen.first_key || key >= seen.first_key + seen.keys) place.key = key;
        return;
    }
    s.view.picked_row = std::clamp(s.view.picked_row + rows, 0, int(s.stage().rows) - 1);
    s.view.picked_column = std::clamp(s.view.picked_column + columns, 0, int(s.stage().columns) - 1);
    s.view.follow = ViewState::Follow::in_sight;
}

template <class Edit>
void edit(Session& s, Edit change) {
    Settings next = s.settings();
    change(next);
    s.change(next);
}

template <int level>
void show_level(Session& s) {
    s.change(level_settings(level, s.settings()));
}

void step_layer(Session& s, int step) {
    const std::vector<uint32_t> layers = layers_of(s.settings());
    const auto at = std::find(layers.begin(), layers.end(), s.settings().mapping.layer);
    const auto place = (at - layers.begin()) + step;
    if (at == layers.end() || place < 0 || place >= ptrdiff_t(layers.size())) return;
    edit(s, [&](Settings& t) { t.mapping.layer = layers[size_t(place)]; });
}

void zoom(Session& s, float factor) {
    if (s.ui.centre == CentreTab::map && s.map) {
        MapPlace& place = s.ui.map;
        // Towards the pick; from the whole, too.
        if (place.cells_a_pixel <= 0) place.cells_a_pixel = double(s.map->tokens()) / 512;
        place.row = double(place.picked_row), place.key = double(place.picked_key);
        place.cells_a_pixel /= double(factor);
        return;
    }
    const float next = (s.view.zoom > 0 ? s.view.zoom : 1) * factor;
    s.view.zoom = next > 1 ? next : 0;
    s.view.follow = ViewState::Follow::middle;
}

void next_colours(Session& s) {
    if (s.view.automatic_map) {
        s.view.automatic_map = false;
        s.view.map = kColourMaps.front();
        return;
    }
    const auto at = std::find(kColourMaps.begin(), kColourMaps.end(), s.view.map);
    if (at + 1 == kColourMaps.end())
        s.view.automatic_map = true;
    else
        s.view.map = *(at + 1);
}

void swap_heads(Session& s) {
    if (s.kept()) return s.swap_kept();
    if (s.view.compared_head < 0) return;
    const uint32_t a = s.view.head;
    s.view.head = uint32_t(s.view.compared_head);
    s.view.compared_head = int(a);
}

// The range between the 1st and the 99th hundredth of the shown values: what outliers hide.
void narrow_range(Session& s) {
    if (!s.complete()) return;
    std::vector<float> values;
    for (const float v : s.stage().head_values(s.view.head))
        if (std::isfinite(v)) values.push_back(v);
    if (values.size() < 2) return;
    std::sort(values.begin(), values.end());
    s.view.range_low = values[values.size() / 100];
    s.view.range_high = values[values.size() - 1 - values.size() / 100];
}

constexpr KeyCommand kCommands[] = {
    {ImGuiKey_PageDown, plain, "PgDn", "next stage", [](Session& s) { step_stage(s, 1); }},
    {ImGuiKey_PageUp, plain, "PgUp", "stage before", [](Session& s) { step_stage(s, -1); }},
    {ImGuiKey_RightBracket, plain, "]", "next head", [](Session& s) { step_head(s, 1); }},
    {ImGuiKey_LeftBracket, plain, "[", "head before", [](Session& s) { step_head(s, -1); }},
    {ImGuiKey_RightBracket, shift, "}", "next layer of the model", [](Session& s) { step_layer(s, 1); }},
    {ImGuiKey_LeftBracket, shift, "{", "layer before", [](Session& s) { step_layer(s, -1); }},
    {ImGuiKey_1, alt, "Alt+1", "level 1: attention without weights", show_level<1>},
    {ImGuiKey_2, alt, "Alt+2", "level 2: trainable weights", show_level<2>},
    {ImGuiKey_3, alt, "Alt+3", "level 3: causal mask", show_level<3>},
    {ImGuiKey_4, alt, "Alt+4", "level 4: dropout", show_level<4>},
    {ImGuiKey_5, alt, "Alt+5", "level 5: stacked heads", show_level<5>},
    {ImGuiKey_6, alt, "Alt+6", "level 6: split heads", show_level<6>},
    {ImGuiKey_7, alt, "Alt+7", "level 7: GPT block", show_level<7>},
    {ImGuiKey_LeftArrow, plain, "Left", "pick the key before", [](Session& s) { move_pick(s, 0, -1); }},
    {ImGuiKey_RightArrow, plain, "Right", "pick the next key", [](Session& s) { move_pick(s, 0, 1); }},
    {ImGuiKey_UpArrow, plain, "Up", "pick the query before", [](Session& s) { move_pick(s, -1, 0); }},
    {ImGuiKey_DownArrow, plain, "Down", "pick the next query", [](Session& s) { move_pick(s, 1, 0); }},
    {ImGuiKey_LeftArrow, shift, "Shift+Left", "16 keys back", [](Session& s) { move_pick(s, 0, -16); }},
    {ImGuiKey_RightArrow, shift, "Shift+Right", "16 keys on", [](Session& s) { move_pick(s, 0, 16); }},
    {ImGuiKey_UpArrow, shift, "Shift+Up", "16 queries back", [](Session& s) { move_pick(s, -16, 0); }},
    {ImGuiKey_DownArrow, shift, "Shift+Down", "16 queries on", [](Session& s) { move_pick(s, 16, 0); }},
    {ImGuiKey_Enter, plain, "Enter", "pin the picked cell; on a map, the largest weight of its pixel",
     [](Session& s) {
         if (s.ui.centre == CentreTab::map && s.map)
             pick_behind_pixel(s, double(s.ui.map.picked_row), double(s.ui.map.picked_key));
         else
             s.view.pinned = true;
     }},
    {ImGuiKey_Escape, plain, "Esc", "let the pick follow the mouse, select nothing",
     [](Session& s) {
         s.view.pinned = false;
         s.view.selection.reset();
     }},
    {ImGuiKey_Delete, plain, "Delete", "hide the picked key or show it again; the rest is renormalised",
     [](Session& s) {
         const bool map = s.ui.centre == CentreTab::map && s.map;
         if (map || s.stage().over_keys)
             edit(s, [&](Settings& t) {
                 toggle_key(t, uint32_t(map ? s.ui.map.picked_key : uint64_t(s.view.picked_column)));
             });
     }},
    {ImGuiKey_J, plain, "J", "tokens as lines or as a list",
     [](Session& s) { s.ui.token_lines = !s.ui.token_lines; }},
    {ImGuiKey_Space, plain, "Space", "causal mask on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.causal = !t.causal; }); }},
    {ImGuiKey_D, plain, "D", "dropout on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.dropout = !t.dropout; }); }},
    {ImGuiKey_S, plain, "S", "scale on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.scaled = !t.scaled; }); }},
    {ImGuiKey_E, plain, "E", "next precision: float32, float16 storage, float16 products",
     [](Session& s) {
         edit(s, [](Settings& t) { t.precision = Precision((int(t.precision) + 1) % kPrecisionCount); });
     }},
    {ImGuiKey_W, plain, "W", "tokens are words, characters or bytes",
     [](Session& s) {
         edit(s, [](Settings& t) { t.tokenizer = Tokenizer((int(t.tokenizer) + 1) % kTokenizerCount); });
     }},
    {ImGuiKey_L, plain, "L", "colours by the logarithm",
     [](Session& s) {
         s.view.spread = s.view.spread == Spread::logarithmic ? Spread::automatic : Spread::logarithmic;
     }},
    {ImGuiKey_C, plain, "C", "next colours", next_colours},
    {ImGuiKey_N, plain, "N", "range without the outermost hundredths", narrow_range},
    {ImGuiKey_R, plain, "R", "range of the values",
     [](Session& s) { s.view.range_low = s.view.range_high = NAN; }},
    {ImGuiKey_F, plain, "F", "fit", [](Session& s) { s.view.zoom = 0, s.ui.map.cells_a_pixel = 0; }},
    {ImGuiKey_I, plain, "I", "zoom in", [](Session& s) { zoom(s, kKeyZoom); }},
    {ImGuiKey_O, plain, "O", "zoom out", [](Session& s) { zoom(s, 1 / kKeyZoom); }},
    {ImGuiKey_A, plain, "A", "keep this result as A",
     [](Session& s) {
         s.keep_result();
         s.ui.centre = CentreTab::compare;
     }},
    {ImGuiKey_A, shift, "Shift+A", "let the kept result go", [](Session& s) { s.drop_kept(); }},
    {ImGuiKey_X, plain, "X", "swap A and B", swap_heads},
    {ImGuiKey_M, plain, "M", "matrix of the selection",
     [](Session& s) {
         s.ui.centre = CentreTab::matrix;
         s.ui.locked_tab = -1;
     }},
    {ImGuiKey_L, control, "Ctrl+L", "lock the shown matrix in a tab of its own",
     [](Session& s) { s.lock_matrix(); }},
    {ImGuiKey_W, control, "Ctrl+W", "close the locked tab",
     [](Session& s) {
         if (s.ui.locked_tab >= 0) s.unlock_matrix(size_t(s.ui.locked_tab));
     }},
    {ImGuiKey_Q, plain, "Q", "next of the matrix tabs",
     [](Session& s) {
         const bool was_matrix = std::exchange(s.ui.centre, CentreTab::matrix) == CentreTab::matrix;
         if (was_matrix && ++s.ui.locked_tab >= int(s.locked().size())) s.ui.locked_tab = -1;
     }},
    {ImGuiKey_V, plain, "V", "compare A and B", [](Session& s) { s.ui.centre = CentreTab::compare; }},
    {ImGuiKey_B, plain, "B", "mask editor", [](Session& s) { s.ui.centre = CentreTab::mask; }},
    {ImGuiKey_K, plain, "K", "map of a long head", [](Session& s) { s.ui.centre = CentreTab::map; }},
    {ImGuiKey_H, shift, "Shift+H", "all layers and heads of the model",
     [](Session& s) { s.ui.centre = CentreTab::layers; }},
    {ImGuiKey_H, plain, "H", "heads", [](Session& s) { s.ui.show(BottomTab::heads); }},
    {ImGuiKey_G, plain, "G", "GPU times", [](Session& s) { s.ui.show(BottomTab::gpu); }},
    {ImGuiKey_U, plain, "U", "measure the device's roof",
     [](Session& s) {
         s.want_roof();
         s.ui.show(BottomTab::gpu);
     }},
    {ImGuiKey_Y, plain, "Y", "memory", [](Session& s) { s.ui.show(BottomTab::memory); }},
    {ImGuiKey_P, plain, "P", "problems", [](Session& s) { s.ui.show(BottomTab::problems); }},
    {ImGuiKey_T, plain, "T", "dark or light",
     [](Session& s) { s.theme = s.theme == Theme::dark ? Theme::light : Theme::dark; }},
    {ImGuiKey_G, control, "Ctrl+G", "go to a cell", [](Session& s) { s.ui.open_dialog(Dialog::go_to); }},
    {ImGuiKey_F, control, "Ctrl+F", "find a token", [](Session& s) { s.ui.open_dialog(Dialog::go_to); }},
    {ImGuiKey_O, control, "Ctrl+O", "open a file", [](Session& s) { s.ui.open_dialog(Dialog::open); }},
    {ImGuiKey_E, control, "Ctrl+E", "export",
     [](Session& s) {
         s.ui.file_name = s.stage().name + ".png";
         s.ui.open_dialog(Dialog::save);
     }},
    {ImGuiKey_S, control, "Ctrl+S", "save the session",
     [](Session& s) {
         s.ui.file_name = "session.fovea";
         s.ui.open_dialog(Dialog::save);
     }},
    {ImGuiKey_P, control, "Ctrl+P", "palette", [](Session& s) { s.ui.open_dialog(Dialog::palette); }},
    {ImGuiKey_Z, control, "Ctrl+Z", "undo", [](Session& s) { s.undo(); }},
    {ImGuiKey_Z, control | shift, "Ctrl+Shift+Z", "redo", [](Session& s) { s.redo(); }},
    {ImGuiKey_Equal, control, "Ctrl+=", "larger",
     [](Session& s) { s.ui.scale_factor = std::min(s.ui.scale_factor + 0.25f, 3.0f); }},
    {ImGuiKey_Minus, control, "Ctrl+-", "smaller",
     [](Session& s) { s.ui.scale_factor = std::max(s.ui.scale_factor - 0.25f, 0.75f); }},
    {ImGuiKey_0, control, "Ctrl+0", "the display's own size", [](Session& s) { s.ui.scale_factor = 1; }},
    {ImGuiKey_F11, plain, "F11", "full screen", [](Session& s) { s.ui.full_screen = !s.ui.full_screen; }},
    {ImGuiKey_F6, plain, "F6", "text and pipeline: show or hide",
     [](Session& s) { s.ui.layout.left_shown = !s.ui.layout.left_shown; }},
    {ImGuiKey_F7, plain, "F7", "cell and parameters: show or hide",
     [](Session& s) { s.ui.layout.right_shown = !s.ui.layout.right_shown; }},
    {ImGuiKey_F8, plain, "F8", "heads, GPU, memory, problems: show or hide",
     [](Session& s) { s.ui.layout.bottom_shown = !s.ui.layout.bottom_shown; }},
    {ImGuiKey_F9, plain, "F9", "swap the sides",
     [](Session& s) { s.ui.layout.mirrored = !s.ui.layout.mirrored; }},
    {ImGuiKey_0, control | shift, "Ctrl+Shift+0", "panels as at first",
     [](Session& s) { s.ui.layout = Layout{}; }},
    {ImGuiKey_M, control, "Ctrl+M", "motion between stages on or off",
     [](Session& s) { s.ui.motion = !s.ui.motion; }},
    {ImGuiKey_F2, plain, "F2", "tour: begin, next step",
     [](Session& s) { s.ui.tour_step = (s.ui.tour_step + 1) % (kTourSteps + 1); }},
    {ImGuiKey_F2, shift, "Shift+F2", "end the tour", [](Session& s) { s.ui.tour_step = 0; }},
    {ImGuiKey_F1, plain, "F1", "keys", [](Session& s) { s.ui.open_dialog(Dialog::help); }},
    {ImGuiKey_Slash, shift, "?", "keys", [](Session& s) { s.ui.open_dialog(Dialog::help); }},
    {ImGuiKey_Q, control, "Ctrl+Q", "quit", [](Session& s) { s.wants_to_quit = true; }},
};

}  // namespace

std::span<const KeyCommand> key_commands() { return kCommands; }

bool run_key(Session& session, const KeyPress& press) {
    if (!session.ready()) return false;
    // Under a dialog only the program's end.
    const bool all = session.ui.dialog == Dialog::none;
    for (const KeyCommand& command : kCommands) {
        if (press.key != command.key || press.modifiers != command.modifiers) continue;
        if (!all && !(command.key == ImGuiKey_Q && command.modifiers == control)) continue;
        command.run(session);
        return true;
    }
    return false;
}

}  // namespace fovea::visualizer
