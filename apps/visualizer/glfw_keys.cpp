#include "glfw_keys.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace fovea::visualizer {

ImGuiKey imgui_key(int key, int scancode) {
    const struct {
        int glfw;
        ImGuiKey imgui;
    } named[] = {{GLFW_KEY_LEFT, ImGuiKey_LeftArrow},
                 {GLFW_KEY_RIGHT, ImGuiKey_RightArrow},
                 {GLFW_KEY_UP, ImGuiKey_UpArrow},
                 {GLFW_KEY_DOWN, ImGuiKey_DownArrow},
                 {GLFW_KEY_HOME, ImGuiKey_Home},
                 {GLFW_KEY_END, ImGuiKey_End},
                 {GLFW_KEY_PAGE_UP, ImGuiKey_PageUp},
                 {GLFW_KEY_PAGE_DOWN, ImGuiKey_PageDown},
                 {GLFW_KEY_SPACE, ImGuiKey_Space},
                 {GLFW_KEY_ENTER, ImGuiKey_Enter},
                 {GLFW_KEY_ESCAPE, ImGuiKey_Escape},
                 {GLFW_KEY_DELETE, ImGuiKey_Delete},
                 {GLFW_KEY_BACKSPACE, ImGuiKey_Backspace},
                 {GLFW_KEY_TAB, ImGuiKey_Tab},
                 {GLFW_KEY_EQUAL, ImGuiKey_Equal},
                 {GLFW_KEY_KP_ADD, ImGuiKey_Equal},
                 {GLFW_KEY_MINUS, ImGuiKey_Minus},
                 {GLFW_KEY_KP_SUBTRACT, ImGuiKey_Minus},
                 {GLFW_KEY_F1, ImGuiKey_F1},
                 {GLFW_KEY_F2, ImGuiKey_F2},
                 {GLFW_KEY_F3, ImGuiKey_F3},
                 {GLFW_KEY_PERIOD, ImGuiKey_Period},
                 {GLFW_KEY_COMMA, ImGuiKey_Comma},
                 {GLFW_KEY_F6, ImGuiKey_F6},
                 {GLFW_KEY_F7, ImGuiKey_F7},
                 {GLFW_KEY_F8, ImGuiKey_F8},
                 {GLFW_KEY_F9, ImGuiKey_F9},
                 {GLFW_KEY_F11, ImGuiKey_F11},
                 {GLFW_KEY_LEFT_BRACKET, ImGuiKey_LeftBracket},
                 {GLFW_KEY_RIGHT_BRACKET, ImGuiKey_RightBracket},
                 {GLFW_KEY_SLASH, ImGuiKey_Slash}};
    for (const auto& pair : named)
        if (pair.glfw == key) return pair.imgui;
    const char* name = glfwGetKeyName(key, scancode);
    const char letter = name && !name[1] ? name[0] : '\0';
    // Where the layout has another letter on a key, that letter counts.
    if (!name && key >= GLFW_KEY_A && key <= GLFW_KEY_Z) return ImGuiKey(ImGuiKey_A + (key - GLFW_KEY_A));
    if (letter >= 'a' && letter <= 'z') return ImGuiKey(ImGuiKey_A + (letter - 'a'));
    if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9) return ImGuiKey(ImGuiKey_0 + (key - GLFW_KEY_0));
    return ImGuiKey_None;
}

}  // namespace fovea::visualizer
