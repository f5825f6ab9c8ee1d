// Texts as they are drawn: Dear ImGui puts letters side by side from the left, so that words of scripts that
// run from right to left are reordered, and Arabic letters joined, before.
#pragma once

#include <string>
#include <string_view>

namespace fovea::visualizer {

// False where the program was built without FriBidi: then letters stay in the order in which they are read.
bool reorders_text();
// The text's letters from left to right by the Unicode Bidirectional Algorithm, Arabic ones in their joined
// forms, marks of direction left out. A text without such letters is returned as it is.
std::string in_drawing_order(std::string_view text);

}  // namespace fovea::visualizer
