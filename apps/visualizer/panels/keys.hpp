// The key table: it binds the keys, documents them and fills the palette.
#pragma once

#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <span>
#include <string>
#include <vector>

namespace fovea::visualizer {

enum Modifiers { plain = 0, control = 1, shift = 2, alt = 4 };

struct KeyCommand {
    ImGuiKey key;
    int modifiers;
    const char* keys;  // as the help shows them
    const char* Texts::Keys::*what;
    void (*run)(Workbench& bench);
    int group = -1;  // index in panel_groups(); -1: none

    // Describes the command, with the names of the panels that it affects.
    std::string text() const;
};
std::span<const KeyCommand> key_commands();

// A key with the modifiers that were down when it was pressed. ImGui knows only those of its frame's end: of
// quick typing in slow frames they are already up.
struct KeyPress {
    ImGuiKey key;
    int modifiers;
};
// Runs the command that the table has for it; false if it has none.
bool run_key(Workbench& bench, const KeyPress& press);
// Runs these in their order and takes them out. Before the very first result they stay where they are and
// wait for it; only the program's end needs none.
void run_keys(Workbench& bench, std::vector<KeyPress>& presses);

// Picks and pins the cell of "3, 5" or "journey, step"; false if there is no such cell.
bool go_to(Workbench& bench, std::string_view text);

}  // namespace fovea::visualizer
