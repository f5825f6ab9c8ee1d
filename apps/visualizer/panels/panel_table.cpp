#include "panels/panel_table.hpp"

#include "texts/texts.hpp"

#include <cctype>
#include <vector>

namespace fovea::visualizer {
namespace {

constexpr CentrePanel kCentre[] = {
    {CentreTab::matrix, "matrix", "Matrix", draw_matrix_panel, true},
    {CentreTab::sentence, "sentence", "Sentence", draw_sentence_panel, false},
    {CentreTab::flow, "flow", "Flow", draw_flow_panel, false},
    {CentreTab::vectors, "vectors", "Vectors", draw_vectors_panel, false},
    {CentreTab::compare, "compare", "Compare", draw_compare_panel, true},
    {CentreTab::mask, "mask", "Mask", draw_mask_panel, true},
    {CentreTab::map, "map", "Map", draw_map_panel, false},
    {CentreTab::layers, "layers", "Layers", draw_layer_grid, false},
    {CentreTab::train, "train", "Train", draw_train_panel, false},
};

constexpr BottomPanel kBottom[] = {
    {BottomTab::heads, "heads", "Heads", draw_heads_panel},
    {BottomTab::next, "next", "Next", draw_next_panel},
    {BottomTab::gpu, "gpu", "GPU", draw_gpu_panel},
    {BottomTab::memory, "memory", "Memory", draw_memory_panel},
    {BottomTab::problems, "problems", "Problems", draw_problems_panel},
};

// Panels are found by their tab.
template <class Panel, size_t N>
constexpr bool in_order(const Panel (&panels)[N]) {
    for (size_t n = 0; n < N; ++n)
        if (size_t(panels[n].tab) != n) return false;
    return true;
}
static_assert(in_order(kCentre) && in_order(kBottom));

// Further words for --show: states of the layout, and temporary windows over the panels.
struct Other {
    const char* word;
    void (*open)(WindowState& window);
};
constexpr Other kOthers[] = {
    {"swapped", [](WindowState& w) { w.layout.mirrored = true; }},
    {"middle",
     [](WindowState& w) {
         w.show_panels();
         for (const PanelGroup& group : panel_groups()) w.layout.*group.shown = false;
     }},
    {"keys", [](WindowState& w) { w.open_dialog(Dialog::help); }},
    {"tour", [](WindowState& w) { w.show_panels(), w.tour_step = w.tour_step % kTourSteps + 1; }},
    {"lines", [](WindowState& w) { w.token_lines = true; }},
    {"palette", [](WindowState& w) { w.open_dialog(Dialog::palette); }},
    {"open", [](WindowState& w) { w.open_dialog(Dialog::open); }},
    {"export", [](WindowState& w) { w.open_dialog(Dialog::save); }},
    {"go-to", [](WindowState& w) { w.open_dialog(Dialog::go_to); }},
    {"import", [](WindowState& w) { w.open_dialog(Dialog::import_sheet); }},
};

// "Heads, GPU, memory, problems"
std::string bottom_titles() {
    std::string all;
    for (const BottomPanel& panel : kBottom)
        all += all.empty() ? panel.title : ", " + in_a_sentence(panel.title);
    return all;
}

}  // namespace

std::span<const CentrePanel> centre_panels() { return kCentre; }
std::span<const BottomPanel> bottom_panels() { return kBottom; }

std::span<const PanelGroup> panel_groups() {
    static const std::vector<PanelGroup> kGroups = {{texts().window.left, "F6", &Layout::left_shown},
                                                    {texts().window.right, "F7", &Layout::right_shown},
                                                    {bottom_titles(), "F8", &Layout::bottom_shown}};
    return kGroups;
}

// An abbreviation keeps its capitals.
std::string in_a_sentence(const std::string& title) {
    std::string text = title;
    if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
        text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
}

bool show_by_word(WindowState& window, std::string_view word) {
    for (const CentrePanel& panel : kCentre)
        if (word == panel.word) return window.centre = panel.tab, true;
    for (const BottomPanel& panel : kBottom)
        if (word == panel.word) return window.bottom = panel.tab, true;
    for (const Other& other : kOthers)
        if (word == other.word) return other.open(window), true;
    return false;
}

std::string show_words() {
    std::string all;
    const auto add = [&](const char* word) { all += std::string(all.empty() ? "" : ", ") + word; };
    for (const CentrePanel& panel : kCentre) add(panel.word);
    for (const BottomPanel& panel : kBottom) add(panel.word);
    for (const Other& other : kOthers) add(other.word);
    return all;
}

}  // namespace fovea::visualizer
