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

// Runs the commands of the keys pressed in this frame, unless a text field has them.
void handle_keys(PanelContext& ui);

}  // namespace fovea::visualizer
