// How a frame takes the input that has come since the one before. Dear ImGui looks at keys and modifiers once
// a frame, which is enough while frames are quicker than fingers. Slow frames need these rules:
//   - If all waiting input is typed text, one frame takes all of it. Dear ImGui would take one key press or
//     release in each frame, so that quick typing lags.
//   - A modifier that changes after a key was pressed waits for the next frame. If one frame took both, the
//     release of Ctrl would turn Ctrl+A into a bare A, and the chord would do nothing.
#pragma once

#include <imgui_internal.h>

namespace fovea::visualizer {

// Works on the current context. Call before() and after() around ImGui::NewFrame(), on its thread.
class InputQueue {
  public:
    void before_new_frame();
    void after_new_frame();

  private:
    ImVector<ImGuiInputEvent> held_;  // for the frames after this one
};

}  // namespace fovea::visualizer
