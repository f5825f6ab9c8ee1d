#include "panels/keys.hpp"

#include "panels/panel_table.hpp"
#include "panels/panels.hpp"

#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea::visualizer {
namespace {

using Keys = Texts::Keys;

constexpr float kKeyZoom = 1.5f;
constexpr int kFar = 1 << 20;  // beyond any row

void step_stage(Workbench& s, int step) {
    s.show_stage(size_t(std::clamp(int(s.view.stage) + step, 0, int(s.computation.stages().size()) - 1)));
}

void step_head(Workbench& s, int step) {
    if (s.window.centre == CentreTab::map && s.map) {
        const auto count = int(s.map.head()->head().heads);
        s.map.show_head(uint32_t((int(s.map.head()->head().head) + step + count) % count));
        return;
    }
    const int count = int(s.stage().heads);
    s.view.head = uint32_t((int(s.view.head) + step + count) % count);
}

void move_pick(Workbench& s, int rows, int columns) {
    if (s.window.centre == CentreTab::map && s.map) {
        // By what can be told apart: a pixel may be many cells.
        const int64_t pixel = int64_t{1} << s.map.head()->tiles().progress().level;
        const auto moved = [pixel](uint64_t at, int step, uint64_t count) {
            return uint64_t(std::clamp(int64_t(at) + step * pixel, int64_t(0), int64_t(count) - 1));
        };
        const MapPlace& place = s.map.place;
        pick_on_map(s, moved(place.picked_row, rows, s.map.head()->rows()),
                    moved(place.picked_key, columns, s.map.head()->tokens()));
        return;
    }
    s.view.picked_row = std::clamp(s.view.picked_row + rows, 0, int(s.stage().rows) - 1);
    s.view.picked_column = std::clamp(s.view.picked_column + columns, 0, int(s.stage().columns) - 1);
    s.view.follow = ViewState::Follow::in_sight;
}

// Picks the largest value of the picked row or, with `next`, the next smaller one; after the last, the
// largest again.
void pick_peak(Workbench& s, bool next) {
    const auto behind = [next](const auto& order, uint64_t picked) {
        const auto at = std::find(order.begin(), order.end(), picked);
        return next && at != order.end() && at + 1 != order.end() ? *(at + 1) : order.front();
    };
    if (s.window.centre == CentreTab::map && s.map) {
        std::vector<uint64_t> order;
        const MapPick* pick = s.map.pick();
        if (!pick) return;  // a thread is still at its row
        for (const auto& [key, weight] : pick->largest)
            if (weight > 0) order.push_back(key);
        if (!order.empty()) pick_on_map(s, pick->row, behind(order, s.map.place.picked_key));
        return;
    }
    s.when_settled(texts().keys.picking_peak, [&s, behind] {
        const Stage& stage = s.stage();
        const auto row = uint64_t(s.view.picked_row);
        const std::span<const float> values =
            stage.head_values(s.view.head).subspan(row * stage.columns, stage.columns);
        std::vector<uint64_t> order;
        for (uint64_t i = 0; i < stage.columns; ++i)
            if (std::isfinite(values[i]) && !stage.hidden(s.view.head, row, i)) order.push_back(i);
        if (order.empty()) return;
        // Stages over keys rank by value, vectors by absolute value.
        const auto size = [&](uint64_t i) { return stage.over_keys ? values[i] : std::abs(values[i]); };
        std::stable_sort(order.begin(), order.end(),
                         [&](uint64_t a, uint64_t b) { return size(a) > size(b); });
        s.view.picked_column = int(behind(order, uint64_t(s.view.picked_column)));
        s.view.pinned = true;
        s.view.follow = ViewState::Follow::in_sight;
    });
}

// So near to the pick that its cell has digits.
void zoom_to_digits(Workbench& s) {
    s.view.follow = ViewState::Follow::digits;
    if (s.window.centre != CentreTab::map || !s.map) return;
    MapPlace& place = s.map.place;
    place.row = double(place.picked_row) + 0.5, place.key = double(place.picked_key) + 0.5;
    place.cells_a_pixel = 1e-6;  // the largest cells that a map has
}

template <class Edit>
void edit(Workbench& s, Edit change) {
    Settings next = s.document.settings();
    change(next);
    s.document.change(next);
}

template <int level>
void show_level(Workbench& s) {
    s.show_level(level);
}

// From a level the first of them; from the last one on the first again.
void show_next_task(Workbench& s) {
    const std::vector<std::string> tasks = learned_tasks();
    const auto at = std::find(tasks.begin(), tasks.end(), s.document.settings().task);
    s.show_task(at == tasks.end() || at + 1 == tasks.end() ? tasks.front() : *(at + 1));
}

void step_layer(Workbench& s, int step) {
    const std::vector<uint32_t> layers = shown_layers(s.document.settings());
    const auto at = std::find(layers.begin(), layers.end(), s.document.settings().mapping.layer);
    const auto place = (at - layers.begin()) + step;
    if (at == layers.end() || place < 0 || place >= ptrdiff_t(layers.size())) return;
    edit(s, [&](Settings& t) { t.mapping.layer = layers[size_t(place)]; });
}

void zoom(Workbench& s, float factor) {
    if (s.window.centre == CentreTab::map && s.map) {
        MapPlace& place = s.map.place;
        // Towards the pick; from the whole, too.
        if (place.cells_a_pixel <= 0) place.cells_a_pixel = double(s.map.head()->tokens()) / 512;
        place.row = double(place.picked_row), place.key = double(place.picked_key);
        place.cells_a_pixel /= double(factor);
        return;
    }
    const float next = (s.view.zoom > 0 ? s.view.zoom : 1) * factor;
    s.view.zoom = next > 1 ? next : 0;
    s.view.follow = ViewState::Follow::middle;
}

void next_colors(Workbench& s) {
    if (s.view.colors.automatic_map) {
        s.view.colors.automatic_map = false;
        s.view.colors.map = kColormaps.front();
        return;
    }
    const auto at = std::find(kColormaps.begin(), kColormaps.end(), s.view.colors.map);
    if (at + 1 == kColormaps.end())
        s.view.colors.automatic_map = true;
    else
        s.view.colors.map = *(at + 1);
}

void swap_heads(Workbench& s) {
    if (s.past.kept()) return s.past.swap();
    if (s.view.compared_head < 0) return;
    const uint32_t a = s.view.head;
    s.view.head = uint32_t(s.view.compared_head);
    s.view.compared_head = int(a);
}

// The range between the 1st and the 99th hundredth of the shown values: what outliers hide.
void narrow_range(Workbench& s) {
    s.when_settled(texts().keys.narrowing_range, [&s] {
        std::vector<float> values;
        for (const float v : s.stage().head_values(s.view.head))
            if (std::isfinite(v)) values.push_back(v);
        if (values.size() < 2) return;
        std::sort(values.begin(), values.end());
        s.view.colors.range_low = values[values.size() / 100];
        s.view.colors.range_high = values[values.size() - 1 - values.size() / 100];
    });
}

template <size_t group>
void show_or_hide(Workbench& s) {
    bool& shown = s.window.layout.*panel_groups()[group].shown;
    shown = s.window.centre == CentreTab::sentence || !shown;
    s.window.show_panels();
}

// The panels that are shown, in the order in which the keyboard goes over them.
void step_focus(Workbench& s, int step) {
    const std::vector<std::string>& shown = s.window.focusable;
    if (shown.empty()) return;
    const auto at = std::find(shown.begin(), shown.end(), s.window.focused);
    const int count = int(shown.size());
    const int now = at == shown.end() ? (step > 0 ? -1 : 0) : int(at - shown.begin());
    s.window.focused = shown[size_t((now + step + count) % count)];
    s.window.wants_focus = true;
}

void scale_type(Workbench& s, float by) {
    s.window.scale_factor = std::clamp(s.window.scale_factor + by, 0.75f, 3.0f);
}

// Commands for levels, models, training and walks.
constexpr KeyCommand kModelCommands[] = {
    {ImGuiKey_H, plain, "H", &Keys::heads, [](Workbench& s) { s.window.show(BottomTab::heads); }},
    {ImGuiKey_0, alt, "Alt+0", &Keys::next_task, show_next_task},
    {ImGuiKey_Delete, shift, "Shift+Delete", &Keys::toggle_head,
     [](Workbench& s) {
         const Settings& now = s.document.settings();
         if (shows_model(now))
             edit(s, [&](Settings& t) { toggle_head(t, {now.mapping.layer, s.view.head}); });
     }},
    {ImGuiKey_Home, plain, "Home", &Keys::pick_first_key, [](Workbench& s) { move_pick(s, 0, -kFar); }},
    {ImGuiKey_End, plain, "End", &Keys::pick_last_key, [](Workbench& s) { move_pick(s, 0, kFar); }},
    {ImGuiKey_M, shift, "Shift+M", &Keys::pick_peak, [](Workbench& s) { pick_peak(s, false); }},
    {ImGuiKey_P, shift, "Shift+P", &Keys::pick_next_peak, [](Workbench& s) { pick_peak(s, true); }},
    {ImGuiKey_I, shift, "Shift+I", &Keys::zoom_to_digits, zoom_to_digits},
    {ImGuiKey_N, shift, "Shift+N", &Keys::train_small_model,
     [](Workbench& s) { s.window.centre = CentreTab::train; }},
    {ImGuiKey_Space, control, "Ctrl+Space", &Keys::train_or_pause,
     [](Workbench& s) {
         s.window.centre = CentreTab::train;
         s.training.playground().run(!s.training.view().running);
     }},
    {ImGuiKey_Period, plain, ".", &Keys::train_step,
     [](Workbench& s) {
         if (s.window.centre == CentreTab::train) s.training.playground().step_once();
     }},
    {ImGuiKey_Comma, plain, ",", &Keys::previous_train_step,
     [](Workbench& s) {
         if (s.window.centre == CentreTab::train && s.training.view().step > 0)
             s.training.playground().seek(s.training.view().step - 1);
     }},
    {ImGuiKey_Z, plain, "Z", &Keys::next_token, [](Workbench& s) { s.window.show(BottomTab::next); }},
    {ImGuiKey_F3, plain, "F3", &Keys::walk, [](Workbench& s) { step_story(s, 1); }},
    {ImGuiKey_F3, shift, "Shift+F3", &Keys::walk_back, [](Workbench& s) { step_story(s, -1); }},
    {ImGuiKey_F3, control, "Ctrl+F3", &Keys::end_walk, end_story},
    {ImGuiKey_RightBracket, shift, "}", &Keys::next_layer, [](Workbench& s) { step_layer(s, 1); }},
    {ImGuiKey_LeftBracket, shift, "{", &Keys::previous_layer, [](Workbench& s) { step_layer(s, -1); }},
    {ImGuiKey_1, alt, "Alt+1", &Keys::level_1, show_level<1>},
    {ImGuiKey_2, alt, "Alt+2", &Keys::level_2, show_level<2>},
    {ImGuiKey_3, alt, "Alt+3", &Keys::level_3, show_level<3>},
    {ImGuiKey_4, alt, "Alt+4", &Keys::level_4, show_level<4>},
    {ImGuiKey_5, alt, "Alt+5", &Keys::level_5, show_level<5>},
    {ImGuiKey_6, alt, "Alt+6", &Keys::level_6, show_level<6>},
    {ImGuiKey_7, alt, "Alt+7", &Keys::level_7, show_level<7>},
    {ImGuiKey_F, shift, "Shift+F", &Keys::token_path,
     [](Workbench& s) {
         s.window.centre = CentreTab::flow;
         s.motion.play_path();
     }},
    {ImGuiKey_V, shift, "Shift+V", &Keys::vectors,
     [](Workbench& s) { s.window.centre = CentreTab::vectors; }},
    {ImGuiKey_Backspace, plain, "Backspace", &Keys::go_back, [](Workbench& s) { s.go_back(); }},
    {ImGuiKey_H, shift, "Shift+H", &Keys::layers, [](Workbench& s) { s.window.centre = CentreTab::layers; }},
};

void pin_pick(Workbench& s) {
    if (s.window.centre == CentreTab::map && s.map)
        pick_behind_pixel(s, double(s.map.place.picked_row), double(s.map.place.picked_key));
    else
        s.view.pinned = true;
}

void toggle_picked_key(Workbench& s) {
    const bool map = s.window.centre == CentreTab::map && s.map;
    if (map || s.stage().over_keys)
        edit(s, [&](Settings& t) {
            toggle_key(t, uint32_t(map ? s.map.place.picked_key : uint64_t(s.view.picked_column)));
        });
}

constexpr KeyCommand kCommands[] = {
    {ImGuiKey_PageDown, plain, "PgDn", &Keys::next_stage, [](Workbench& s) { step_stage(s, 1); }},
    {ImGuiKey_PageUp, plain, "PgUp", &Keys::previous_stage, [](Workbench& s) { step_stage(s, -1); }},
    {ImGuiKey_RightBracket, plain, "]", &Keys::next_head, [](Workbench& s) { step_head(s, 1); }},
    {ImGuiKey_LeftBracket, plain, "[", &Keys::previous_head, [](Workbench& s) { step_head(s, -1); }},
    {ImGuiKey_LeftArrow, plain, "Left", &Keys::pick_previous_key, [](Workbench& s) { move_pick(s, 0, -1); }},
    {ImGuiKey_RightArrow, plain, "Right", &Keys::pick_next_key, [](Workbench& s) { move_pick(s, 0, 1); }},
    {ImGuiKey_UpArrow, plain, "Up", &Keys::pick_previous_query, [](Workbench& s) { move_pick(s, -1, 0); }},
    {ImGuiKey_DownArrow, plain, "Down", &Keys::pick_next_query, [](Workbench& s) { move_pick(s, 1, 0); }},
    {ImGuiKey_LeftArrow, shift, "Shift+Left", &Keys::back_16_keys,
     [](Workbench& s) { move_pick(s, 0, -16); }},
    {ImGuiKey_RightArrow, shift, "Shift+Right", &Keys::forward_16_keys,
     [](Workbench& s) { move_pick(s, 0, 16); }},
    {ImGuiKey_UpArrow, shift, "Shift+Up", &Keys::back_16_queries, [](Workbench& s) { move_pick(s, -16, 0); }},
    {ImGuiKey_DownArrow, shift, "Shift+Down", &Keys::forward_16_queries,
     [](Workbench& s) { move_pick(s, 16, 0); }},
    {ImGuiKey_Enter, plain, "Enter", &Keys::pin, pin_pick},
    {ImGuiKey_Escape, plain, "Esc", &Keys::unpin,
     [](Workbench& s) {
         s.view.pinned = false;
         s.view.selection.reset(), s.view.marked.reset();
     }},
    {ImGuiKey_Delete, plain, "Delete", &Keys::mask_key, toggle_picked_key},
    {ImGuiKey_J, plain, "J", &Keys::token_lines,
     [](Workbench& s) { s.window.token_lines = !s.window.token_lines; }},
    {ImGuiKey_Space, plain, "Space", &Keys::toggle_causal,
     [](Workbench& s) { edit(s, [](Settings& t) { t.causal = !t.causal; }); }},
    {ImGuiKey_D, plain, "D", &Keys::toggle_dropout, [](Workbench& s) { edit(s, switch_dropout); }},
    {ImGuiKey_S, plain, "S", &Keys::toggle_scale,
     [](Workbench& s) { edit(s, [](Settings& t) { t.scale = is_scaled(t) ? "none" : "auto"; }); }},
    {ImGuiKey_E, plain, "E", &Keys::next_precision,
     [](Workbench& s) {
         edit(s, [](Settings& t) { t.precision = Precision((int(t.precision) + 1) % kPrecisionCount); });
     }},
    {ImGuiKey_W, plain, "W", &Keys::next_tokenizer,
     [](Workbench& s) {
         edit(s, [](Settings& t) { t.tokenizer = Tokenizer((int(t.tokenizer) + 1) % kTokenizerCount); });
     }},
    {ImGuiKey_L, plain, "L", &Keys::log_colors,
     [](Workbench& s) {
         s.view.colors.spread =
             s.view.colors.spread == Spread::logarithmic ? Spread::automatic : Spread::logarithmic;
     }},
    {ImGuiKey_C, plain, "C", &Keys::next_colormap, next_colors},
    {ImGuiKey_N, plain, "N", &Keys::narrow_range, narrow_range},
    {ImGuiKey_R, plain, "R", &Keys::own_range,
     [](Workbench& s) { s.view.colors.range_low = s.view.colors.range_high = NAN; }},
    {ImGuiKey_F, plain, "F", &Keys::fit_matrix,
     [](Workbench& s) { s.view.zoom = 0, s.map.place.cells_a_pixel = 0; }},
    {ImGuiKey_I, plain, "I", &Keys::zoom_in, [](Workbench& s) { zoom(s, kKeyZoom); }},
    {ImGuiKey_O, plain, "O", &Keys::zoom_out, [](Workbench& s) { zoom(s, 1 / kKeyZoom); }},
    {ImGuiKey_A, plain, "A", &Keys::save_a,
     [](Workbench& s) {
         s.past.keep();
         s.window.centre = CentreTab::compare;
     }},
    {ImGuiKey_A, shift, "Shift+A", &Keys::clear_a, [](Workbench& s) { s.past.drop_kept(); }},
    {ImGuiKey_X, plain, "X", &Keys::swap_a_b, swap_heads},
    {ImGuiKey_M, plain, "M", &Keys::matrix,
     [](Workbench& s) {
         s.window.centre = CentreTab::matrix;
         s.window.locked_tab = -1;
     }},
    {ImGuiKey_L, control, "Ctrl+L", &Keys::lock_matrix, [](Workbench& s) { s.past.lock(); }},
    {ImGuiKey_W, control, "Ctrl+W", &Keys::close_locked_tab,
     [](Workbench& s) {
         if (s.window.locked_tab >= 0) s.past.unlock(size_t(s.window.locked_tab));
     }},
    {ImGuiKey_Q, plain, "Q", &Keys::next_matrix_tab,
     [](Workbench& s) {
         const bool was_matrix = std::exchange(s.window.centre, CentreTab::matrix) == CentreTab::matrix;
         if (was_matrix && ++s.window.locked_tab >= int(s.past.locked().size())) s.window.locked_tab = -1;
     }},
    {ImGuiKey_V, plain, "V", &Keys::compare, [](Workbench& s) { s.window.centre = CentreTab::compare; }},
    {ImGuiKey_B, plain, "B", &Keys::mask_editor, [](Workbench& s) { s.window.centre = CentreTab::mask; }},
    {ImGuiKey_K, plain, "K", &Keys::map, [](Workbench& s) { s.window.centre = CentreTab::map; }},
    {ImGuiKey_G, plain, "G", &Keys::gpu_times, [](Workbench& s) { s.window.show(BottomTab::gpu); }},
    {ImGuiKey_U, plain, "U", &Keys::measure_roofline,
     [](Workbench& s) {
         s.computation.want_roof();
         s.window.show(BottomTab::gpu);
     }},
    {ImGuiKey_Y, plain, "Y", &Keys::memory, [](Workbench& s) { s.window.show(BottomTab::memory); }},
    {ImGuiKey_P, plain, "P", &Keys::problems, [](Workbench& s) { s.window.show(BottomTab::problems); }},
    {ImGuiKey_T, plain, "T", &Keys::theme,
     [](Workbench& s) { s.window.theme = s.window.theme == Theme::dark ? Theme::light : Theme::dark; }},
    {ImGuiKey_G, control, "Ctrl+G", &Keys::go_to_cell,
     [](Workbench& s) { s.window.open_dialog(Dialog::go_to); }},
    {ImGuiKey_F, control, "Ctrl+F", &Keys::find_token,
     [](Workbench& s) { s.window.open_dialog(Dialog::go_to); }},
    {ImGuiKey_O, control, "Ctrl+O", &Keys::open_file,
     [](Workbench& s) { s.window.open_dialog(Dialog::open); }},
    {ImGuiKey_E, control, "Ctrl+E", &Keys::export_file,
     [](Workbench& s) {
         s.window.file_name = s.stage().name + ".png";
         s.window.open_dialog(Dialog::save);
     }},
    {ImGuiKey_S, control, "Ctrl+S", &Keys::save_session,
     [](Workbench& s) {
         s.window.file_name = "session.fovea";
         s.window.open_dialog(Dialog::save);
     }},
    {ImGuiKey_P, control, "Ctrl+P", &Keys::palette,
     [](Workbench& s) { s.window.open_dialog(Dialog::palette); }},
    {ImGuiKey_Z, control, "Ctrl+Z", &Keys::undo, [](Workbench& s) { s.document.undo(); }},
    {ImGuiKey_Z, control | shift, "Ctrl+Shift+Z", &Keys::redo, [](Workbench& s) { s.document.redo(); }},
    {ImGuiKey_Equal, control, "Ctrl+=", &Keys::larger_type, [](Workbench& s) { scale_type(s, 0.25f); }},
    {ImGuiKey_Equal, control | shift, "Ctrl++", &Keys::larger_type,
     [](Workbench& s) { scale_type(s, 0.25f); }},
    {ImGuiKey_Minus, control, "Ctrl+-", &Keys::smaller_type, [](Workbench& s) { scale_type(s, -0.25f); }},
    {ImGuiKey_0, control, "Ctrl+0", &Keys::normal_type, [](Workbench& s) { s.window.scale_factor = 1; }},
    {ImGuiKey_F11, plain, "F11", &Keys::full_screen,
     [](Workbench& s) { s.window.full_screen = !s.window.full_screen; }},
    {ImGuiKey_F6, plain, "F6", &Keys::show_or_hide, show_or_hide<0>, 0},
    {ImGuiKey_F7, plain, "F7", &Keys::show_or_hide, show_or_hide<1>, 1},
    {ImGuiKey_F8, plain, "F8", &Keys::show_or_hide, show_or_hide<2>, 2},
    {ImGuiKey_Tab, control, "Ctrl+Tab", &Keys::focus_next_panel, [](Workbench& s) { step_focus(s, 1); }},
    {ImGuiKey_Tab, control | shift, "Ctrl+Shift+Tab", &Keys::focus_previous_panel,
     [](Workbench& s) { step_focus(s, -1); }},
    {ImGuiKey_F9, plain, "F9", &Keys::swap_sides,
     [](Workbench& s) { s.window.layout.mirrored = !s.window.layout.mirrored; }},
    {ImGuiKey_0, control | shift, "Ctrl+Shift+0", &Keys::reset_layout,
     [](Workbench& s) { s.window.layout = Layout{}; }},
    {ImGuiKey_M, control, "Ctrl+M", &Keys::toggle_motion,
     [](Workbench& s) { s.window.motion = !s.window.motion; }},
    {ImGuiKey_F2, plain, "F2", &Keys::tour,
     [](Workbench& s) {
         s.window.show_panels();
         s.window.tour_step = (s.window.tour_step + 1) % (kTourSteps + 1);
     }},
    {ImGuiKey_F2, shift, "Shift+F2", &Keys::end_tour, [](Workbench& s) { s.window.tour_step = 0; }},
    {ImGuiKey_F1, plain, "F1", &Keys::keys, [](Workbench& s) { s.window.open_dialog(Dialog::help); }},
    {ImGuiKey_Slash, shift, "?", &Keys::keys, [](Workbench& s) { s.window.open_dialog(Dialog::help); }},
    {ImGuiKey_Q, control, "Ctrl+Q", &Keys::quit, [](Workbench& s) { s.window.wants_to_quit = true; }},
};

}  // namespace

std::string KeyCommand::text() const {
    const char* const text = texts().keys.*what;
    return group < 0 ? text : in_a_sentence(panel_groups()[size_t(group)].title) + ": " + text;
}

std::span<const KeyCommand> key_commands() {
    static const std::vector<KeyCommand> kAll = [] {
        std::vector<KeyCommand> all(std::begin(kCommands), std::end(kCommands));
        all.insert(all.end(), std::begin(kModelCommands), std::end(kModelCommands));
        return all;
    }();
    return kAll;
}

static bool ends_the_program(const KeyPress& press) {
    return press.key == ImGuiKey_Q && press.modifiers == control;
}

bool run_key(Workbench& bench, const KeyPress& press) {
    // Before the first result and under a dialog only the program's end.
    const bool all = bench.computation.ready() && bench.window.dialog == Dialog::none;
    for (const KeyCommand& command : key_commands()) {
        if (press.key != command.key || press.modifiers != command.modifiers) continue;
        if (!all && !ends_the_program(press)) continue;
        command.run(bench);
        return true;
    }
    return false;
}

void run_keys(Workbench& bench, std::vector<KeyPress>& presses) {
    const bool ready = bench.computation.ready();
    std::vector<KeyPress> later;
    for (const KeyPress& press : presses) {
        if (ready || ends_the_program(press))
            run_key(bench, press);
        else
            later.push_back(press);
    }
    presses = std::move(later);
}

}  // namespace fovea::visualizer
