// The input of a window: events, signals and keys, and how a frame takes them.
#pragma once

#include "panels/keys.hpp"

#include <imgui_internal.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

struct GLFWwindow;

namespace fovea::visualizer {

// Events since the last frame.
struct WindowEvents {
    bool active = false;
    std::vector<KeyPress> keys;
    std::vector<std::string> dropped;  // paths of files
};

// Records events that change the display. Other messages of the window system are not a reason to draw: a
// driver's own presenting sends some after each frame.
void watch_events(GLFWwindow* window, WindowEvents* events);

// The key table's key for a key of GLFW, by the letter on it whatever the keyboard's layout; ImGuiKey_None
// for other keys.
ImGuiKey imgui_key(int key, int scancode);
// True for keys that ImGui's own walk over the panels, begun with Tab, has while it lasts.
bool walks(ImGuiKey key);

// Ctrl+C, the end of a desktop session and `kill` end the program as its own key does: no crash, nothing is
// offered again. A second one ends it at once.
class EndSignals {
  public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;
    bool came() const { return came_; }
    // From here on there is a window that may sleep.
    void wake(bool on) { wake_ = on; }

  private:
    std::atomic<bool> came_{false}, ending_{false}, wake_{false};
    std::thread thread_;
};

// Dear ImGui looks at keys and modifiers once
// a frame, which is enough while frames are quicker than fingers. Slow frames need these rules:
//   - If all waiting input is typed text, one frame takes all of it. Dear ImGui would take one key press or
//     release in each frame, so that quick typing lags.
//   - A modifier that changes after a key was pressed waits for the next frame. If one frame took both, the
//     release of Ctrl would turn Ctrl+A into a bare A, and the chord would do nothing.
// Works on the current context. Call both around ImGui::NewFrame(), on its thread.
class InputQueue {
  public:
    void before_new_frame();
    void after_new_frame();

  private:
    ImVector<ImGuiInputEvent> held_;  // for the frames after this one
};

}  // namespace fovea::visualizer
