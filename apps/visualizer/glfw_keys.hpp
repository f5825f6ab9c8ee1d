// Keys of the window system as the key table has them.
#pragma once

#include <imgui.h>

namespace fovea::visualizer {

// By the letter on the key where it has one, whatever the keyboard's layout; ImGuiKey_None for other keys.
ImGuiKey imgui_key(int key, int scancode);

}  // namespace fovea::visualizer
