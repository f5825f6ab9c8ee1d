// Reads the words of a frame and their places: Dear ImGui draws text as one textured rectangle per letter,
// and each letter has its own place in the atlas, so words can be read from the drawing, with their rotation,
// color and clipping.
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

namespace fovea::visualizer {

struct DrawnWords {
    std::string text;
    float left = 0, top = 0, right = 0, bottom = 0;  // bounds of the letters' ink, in pixels
    float rise = 0;  // slope of a rising line, per pixel to the right: 0 level
    ImU32 color = 0;
    bool cut = false;  // a letter of it is not whole within what may be drawn on
    float font_size = 0;
    std::string window;  // the ImGui window that contains it
};

// In the order in which they are drawn. Letters out of sight are left out.
std::vector<DrawnWords> drawn_words(const ImDrawData& data);
// The first that is this text; null: none.
const DrawnWords* find_words(const std::vector<DrawnWords>& all, const std::string& text);
// The first that begins with it.
const DrawnWords* find_beginning(const std::vector<DrawnWords>& all, const std::string& begin);
std::string all_words(const std::vector<DrawnWords>& all);  // one a line, for messages

}  // namespace fovea::visualizer
