#include "keys.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

void show_stage(Session& s, int step) {
    const int last = int(s.stages().size()) - 1;
    s.view.stage = size_t(std::clamp(int(s.view.stage) + step, 0, last));
    s.view.zoom = 0;
    s.view.head = std::min<uint32_t>(s.view.head, uint32_t(s.stage().heads - 1));
    s.view.picked_row = std::min(s.view.picked_row, int(s.stage().rows) - 1);
    s.view.picked_column = std::min(s.view.picked_column, int(s.stage().columns) - 1);
}

void show_head(Session& s, int step) {
    const int count = int(s.stage().heads);
    s.view.head = uint32_t((int(s.view.head) + step + count) % count);
}

void move_pick(Session& s, int rows, int columns) {
    s.view.picked_row = std::clamp(s.view.picked_row + rows, 0, int(s.stage().rows) - 1);
    s.view.picked_column = std::clamp(s.view.picked_column + columns, 0, int(s.stage().columns) - 1);
}

template <class Edit>
void edit(Session& s, Edit change) {
    Settings next = s.settings();
    change(next);
    s.change(next);
}

constexpr KeyCommand kCommands[] = {
    {ImGuiKey_PageDown, false, false, "PgDn", "next stage", [](Session& s) { show_stage(s, 1); }},
    {ImGuiKey_PageUp, false, false, "PgUp", "stage before", [](Session& s) { show_stage(s, -1); }},
    {ImGuiKey_RightBracket, false, false, "]", "next head", [](Session& s) { show_head(s, 1); }},
    {ImGuiKey_LeftBracket, false, false, "[", "head before", [](Session& s) { show_head(s, -1); }},
    {ImGuiKey_LeftArrow, false, false, "Left", "pick the key before",
     [](Session& s) { move_pick(s, 0, -1); }},
    {ImGuiKey_RightArrow, false, false, "Right", "pick the next key", [](Session& s) { move_pick(s, 0, 1); }},
    {ImGuiKey_UpArrow, false, false, "Up", "pick the query before", [](Session& s) { move_pick(s, -1, 0); }},
    {ImGuiKey_DownArrow, false, false, "Down", "pick the next query", [](Session& s) { move_pick(s, 1, 0); }},
    {ImGuiKey_LeftArrow, false, true, "Shift+Left", "16 keys back", [](Session& s) { move_pick(s, 0, -16); }},
    {ImGuiKey_RightArrow, false, true, "Shift+Right", "16 keys on", [](Session& s) { move_pick(s, 0, 16); }},
    {ImGuiKey_UpArrow, false, true, "Shift+Up", "16 queries back", [](Session& s) { move_pick(s, -16, 0); }},
    {ImGuiKey_DownArrow, false, true, "Shift+Down", "16 queries on", [](Session& s) { move_pick(s, 16, 0); }},
    {ImGuiKey_Space, false, false, "Space", "causal mask on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.causal = !t.causal; }); }},
    {ImGuiKey_D, false, false, "D", "dropout on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.dropout = !t.dropout; }); }},
    {ImGuiKey_S, false, false, "S", "scale on or off",
     [](Session& s) { edit(s, [](Settings& t) { t.scaled = !t.scaled; }); }},
    {ImGuiKey_L, false, false, "L", "colours by the logarithm",
     [](Session& s) { s.view.logarithmic = !s.view.logarithmic; }},
    {ImGuiKey_F, false, false, "F", "fit", [](Session& s) { s.view.zoom = 0; }},
    {ImGuiKey_Z, true, false, "Ctrl+Z", "undo", [](Session& s) { s.undo(); }},
    {ImGuiKey_Z, true, true, "Ctrl+Shift+Z", "redo", [](Session& s) { s.redo(); }},
    {ImGuiKey_Q, true, false, "Ctrl+Q", "quit", [](Session& s) { s.wants_to_quit = true; }},
};

}  // namespace

std::span<const KeyCommand> key_commands() { return kCommands; }

bool run_key(Session& session, const KeyPress& press) {
    if (!session.ready()) return false;
    for (const KeyCommand& command : kCommands) {
        if (press.key != command.key || press.control != command.control || press.shift != command.shift)
            continue;
        command.run(session);
        return true;
    }
    return false;
}

}  // namespace fovea::visualizer
