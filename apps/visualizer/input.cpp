#include "input.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#endif

#include <algorithm>
#include <cstdlib>

namespace fovea::visualizer {
namespace {

// Both ImGuiMod_Ctrl and the key left or right that it comes from.
bool is_modifier(ImGuiKey key) {
    return (key & ImGuiMod_Mask_) != 0 || (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
}

// True for text and for the keys that type it. Keys with a meaning in a text field (Backspace, arrows, Enter)
// still get a frame each.
bool is_typing(const ImGuiInputEvent& event) {
    if (event.Type == ImGuiInputEventType_Text || event.Type == ImGuiInputEventType_MousePos) return true;
    const ImGuiKey key = event.Type == ImGuiInputEventType_Key ? event.Key.Key : ImGuiKey_None;
    return (key >= ImGuiKey_0 && key <= ImGuiKey_Z) ||
           (key >= ImGuiKey_Apostrophe && key <= ImGuiKey_GraveAccent) || key == ImGuiKey_Space ||
           key == ImGuiMod_Shift || key == ImGuiKey_LeftShift || key == ImGuiKey_RightShift;
}

// A text field receives every key except those without a meaning there: a sentence may be saved while the
// cursor is in it.
bool passes_a_text_field(ImGuiKey key, int modifiers) {
    static constexpr ImGuiKey kOfTheProgram[] = {ImGuiKey_E, ImGuiKey_F, ImGuiKey_G, ImGuiKey_O,
                                                 ImGuiKey_P, ImGuiKey_Q, ImGuiKey_S};
    return modifiers == GLFW_MOD_CONTROL && std::ranges::find(kOfTheProgram, key) != std::end(kOfTheProgram);
}

}  // namespace

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

bool walks(ImGuiKey key) {
    constexpr ImGuiKey kKeys[] = {ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow,
                                  ImGuiKey_DownArrow, ImGuiKey_PageUp,     ImGuiKey_PageDown,
                                  ImGuiKey_Space,     ImGuiKey_Enter,      ImGuiKey_Escape};
    return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

void watch_events(GLFWwindow* window, WindowEvents* events) {
    glfwSetWindowUserPointer(window, events);
    const auto note = [](GLFWwindow* w) {
        static_cast<WindowEvents*>(glfwGetWindowUserPointer(w))->active = true;
    };
    static constexpr auto kNote = +note;
    glfwSetCursorPosCallback(window, [](GLFWwindow* w, double, double) { kNote(w); });
    glfwSetCursorEnterCallback(window, [](GLFWwindow* w, int) { kNote(w); });
    glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int, int, int) { kNote(w); });
    glfwSetScrollCallback(window, [](GLFWwindow* w, double, double) { kNote(w); });
    glfwSetCharCallback(window, [](GLFWwindow* w, unsigned) { kNote(w); });
    glfwSetWindowFocusCallback(window, [](GLFWwindow* w, int) { kNote(w); });
    glfwSetWindowIconifyCallback(window, [](GLFWwindow* w, int) { kNote(w); });
    glfwSetFramebufferSizeCallback(window, [](GLFWwindow* w, int, int) { kNote(w); });
    glfwSetWindowRefreshCallback(window, kNote);
    glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int scancode, int action, int modifiers) {
        kNote(w);
        const ImGuiKey found = imgui_key(key, scancode);
        if (action == GLFW_RELEASE || found == ImGuiKey_None) return;
        if (ImGui::GetIO().WantTextInput && !passes_a_text_field(found, modifiers)) return;
        const int pressed = (modifiers & (GLFW_MOD_CONTROL | GLFW_MOD_SUPER) ? control : 0) |
                            (modifiers & GLFW_MOD_SHIFT ? shift : 0) | (modifiers & GLFW_MOD_ALT ? alt : 0);
        static_cast<WindowEvents*>(glfwGetWindowUserPointer(w))->keys.push_back({found, pressed});
    });
    glfwSetDropCallback(window, [](GLFWwindow* w, int count, const char** paths) {
        kNote(w);
        auto& dropped = static_cast<WindowEvents*>(glfwGetWindowUserPointer(w))->dropped;
        dropped.insert(dropped.end(), paths, paths + count);
    });
}

#if defined(__unix__) || defined(__APPLE__)
EndSignals::EndSignals() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&all, signal);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // also for threads created later
    thread_ = std::thread([this, all] {
        int signal = 0;
        while (sigwait(&all, &signal) == 0 && !ending_) {
            if (came_) std::_Exit(128 + signal);
            came_ = true;
            if (wake_) glfwPostEmptyEvent();
        }
    });
}

EndSignals::~EndSignals() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
}
#else
EndSignals::EndSignals() = default;
EndSignals::~EndSignals() = default;
#endif

void InputQueue::before_new_frame() {
    ImVector<ImGuiInputEvent>& waiting = ImGui::GetCurrentContext()->InputEventsQueue;
    ImGuiIO& io = ImGui::GetIO();
    const bool typing =
        io.WantTextInput && !io.KeyCtrl && std::all_of(waiting.begin(), waiting.end(), is_typing);
    io.ConfigInputTrickleEventQueue = !typing;
    if (typing) return;
    bool pressed = false;
    const ImGuiInputEvent* change =
        std::find_if(waiting.begin(), waiting.end(), [&](const ImGuiInputEvent& e) {
            if (e.Type != ImGuiInputEventType_Key) return false;
            if (is_modifier(e.Key.Key)) return pressed;
            pressed = pressed || e.Key.Down;
            return false;
        });
    for (const ImGuiInputEvent* e = change; e != waiting.end(); ++e) held_.push_back(*e);
    waiting.resize(int(change - waiting.begin()));
}

void InputQueue::after_new_frame() {
    ImVector<ImGuiInputEvent>& waiting = ImGui::GetCurrentContext()->InputEventsQueue;
    for (const ImGuiInputEvent& event : held_) waiting.push_back(event);
    held_.clear();
}

}  // namespace fovea::visualizer
