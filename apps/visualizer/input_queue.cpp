#include "input_queue.hpp"

#include <algorithm>

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

}  // namespace

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
