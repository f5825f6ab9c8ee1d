// The key table: it binds the keys and documents them.
#pragma once

#include "panels/panels.hpp"

#include <span>

namespace fovea::visualizer {

struct KeyCommand {
    ImGuiKey key;
    bool control, shift;
    const char* keys;  // as the help shows them
    const char* what;
    void (*run)(Session& session);
};
std::span<const KeyCommand> key_commands();

// A key with the modifiers that were down when it was pressed. ImGui knows only those of its frame's end: of
// quick typing in slow frames they are already up.
struct KeyPress {
    ImGuiKey key;
    bool control, shift;
};
// Runs the command that the table has for it; false if it has none.
bool run_key(Session& session, const KeyPress& press);

}  // namespace fovea::visualizer
