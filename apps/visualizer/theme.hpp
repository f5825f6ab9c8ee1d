// Colours, type and spacing of the program: one accent, two themes.
#pragma once

#include <imgui.h>

namespace fovea::visualizer {

enum class Theme { dark, light };

struct Palette {
    ImU32 ground, panel, raised, line, text, text_soft, accent, accent_text, warning, matrix_ground, hatch;
};
const Palette& palette(Theme theme);

struct Fonts {
    ImFont *body = nullptr, *strong = nullptr, *small = nullptr, *mono = nullptr;
};

// Loads a readable system font at `scale`, with Greek letters and mathematical signs; ImGui's own font where
// none is found.
Fonts load_fonts(float scale);
void apply_style(Theme theme, float scale);

}  // namespace fovea::visualizer
