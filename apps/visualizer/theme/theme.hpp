// Colors, type and spacing of the program: one accent, two themes.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>

namespace fovea::visualizer {

enum class Theme { dark, light };

struct Palette {
    ImU32 ground, panel, raised, line, text, text_soft, accent, accent_text, warning, matrix_ground, hatch;
    // Bars, ticks and edges that must be seen: 3:1 on a panel. And what slides under a number: 4.5:1 to text.
    ImU32 mark, grab;
};
const Palette& palette(Theme theme);

struct Fonts {
    ImFont *body = nullptr, *strong = nullptr, *small = nullptr, *mono = nullptr;
    ImFont* large = nullptr;    // for one prominent number
    ImFont* display = nullptr;  // for a sentence that is the picture
};

// Loads a readable system font at `scale`, with Greek letters and mathematical signs; ImGui's own font where
// none is found.
// `rare` is text whose characters a second font has to give: Chinese, Japanese, Korean, Cyrillic and others,
// where the system has one. Dear ImGui shapes no text: Hindi stays letters side by side; Arabic and Hebrew
// are drawn by in_drawing_order().
Fonts load_fonts(float scale, const std::string& rare);
void apply_style(Theme theme, float scale);

// Texts as they are drawn. Dear ImGui puts letters side by side from the left: words of scripts that run from
// right to left are reordered before, and Arabic letters joined.
// False where the program was built without FriBidi: then letters stay in the order in which they are read.
bool reorders_text();
// The text's letters from left to right by the Unicode Bidirectional Algorithm, Arabic ones in their joined
// forms, marks of direction left out. A text without such letters is returned as it is.
std::string in_drawing_order(std::string_view text);

}  // namespace fovea::visualizer
