// The whole window as a picture, drawn without one: for headless runs and for exports from the window.
#pragma once

#include "document/workbench.hpp"

#include <imgui.h>
#include <fovea/files.hpp>

#include <functional>

namespace fovea::visualizer {

// Where the mouse is in a frame, in units of the layout, and whether its left button is down.
struct PictureMouse {
    float x = 0, y = 0;
    bool down = false;
};

struct PictureSize {
    uint32_t width = 1600, height = 960;   // units of the layout, of the window
    float scale = 1;                       // pixels for one unit
    bool exact = false;                    // waits for every tile of a map
    PictureLook look = {};                 // except its scale
    std::vector<PictureMouse> mouse = {};  // in the frames before the kept one; empty: no mouse
    // Sees what the kept frame is drawn of, while its fonts and windows are there.
    std::function<void(const ImDrawData&)> seen = {};
};

// u8 [height, width, 4], not premultiplied. The session must be complete, and no frame in flight. ImGui's
// context is another one and set back afterwards.
Result<Tensor> draw_picture(Workbench& bench, const PictureSize& size);
Result<void> save_picture(Workbench& bench, const PictureSize& size, const std::string& path);

}  // namespace fovea::visualizer
