// Every panel with its tab, its name on the screen and its word on the command line: what draws the tabs,
// binds the menu, answers --show and names what is hidden.
#pragma once

#include "panels/panels.hpp"

#include <span>
#include <string>
#include <string_view>

namespace fovea::visualizer {

struct CentrePanel {
    CentreTab tab;
    const char *word, *title;
    void (*draw)(PanelContext& ui);
    bool of_a_matrix;  // the shown stage's name and formula are above it
};
std::span<const CentrePanel> centre_panels();  // in the order of CentreTab

struct BottomPanel {
    BottomTab tab;
    const char *word, *title;
    void (*draw)(PanelContext& ui);
};
std::span<const BottomPanel> bottom_panels();  // in the order of BottomTab

// Panels that are shown and hidden together.
struct PanelGroup {
    std::string title;  // "Text and pipeline"
    const char* keys;
    bool Layout::*shown;
};
std::span<const PanelGroup> panel_groups();
// "text and pipeline", within a sentence.
std::string in_a_sentence(const std::string& title);

// Opens a panel by its word, or a temporary window over the panels, for --show. False: no such word.
bool show_by_word(WindowState& window, std::string_view word);
// "matrix, compare, ...": all words.
std::string show_words();

}  // namespace fovea::visualizer
