// The knobs of the attention call.
#include "panels/panels.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

struct Knobs {
    PanelContext& ui;
    Settings next;

    void toggle(const char* label, bool& value) {
        if (ImGui::Checkbox(label, &value)) ui.session.change(next);
    }
    void slider(const char* label, float& value, float low, float high, const char* format) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (ImGui::SliderFloat(label, &value, low, high, format, ImGuiSliderFlags_AlwaysClamp))
            ui.session.change(next, ImGui::GetID(label));
    }
    void slider(const char* label, int& value, int low, int high) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (ImGui::SliderInt(label, &value, low, high, value < 0 ? "unbounded" : "%d",
                             ImGuiSliderFlags_AlwaysClamp))
            ui.session.change(next, ImGui::GetID(label));
    }
    void seed(const char* label, uint64_t& value) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        int number = int(std::min<uint64_t>(value, INT32_MAX));
        if (ImGui::InputInt(label, &number)) {
            value = uint64_t(std::max(number, 0));
            ui.session.change(next, ImGui::GetID(label));
        }
    }
};

}  // namespace

void draw_parameters_panel(PanelContext& ui) {
    heading(ui, "Parameters");
    Knobs knobs{ui, ui.session.settings()};
    Settings& s = knobs.next;
    const int last = std::max(int(ui.session.tokens().size()) - 1, 1);
    knobs.toggle(
        "scale by 1/\xe2\x88\x9a"
        "d",
        s.scaled);
    knobs.slider("temperature", s.temperature, 0.05f, 10, "%.2f");
    knobs.slider("softcap", s.softcap, 0, 10, s.softcap == 0 ? "off" : "%.2f");
    ImGui::Dummy({0, 3 * ui.scale});
    knobs.toggle("causal mask", s.causal);
    knobs.toggle("window", s.windowed);
    if (s.windowed) {
        knobs.slider("keys before", s.window_left, -1, last);
        knobs.slider("keys after", s.window_right, -1, last);
    }
    knobs.toggle("ALiBi", s.alibi);
    ImGui::Dummy({0, 3 * ui.scale});
    knobs.toggle("dropout", s.dropout);
    if (s.dropout) {
        knobs.slider("probability", s.dropout_p, 0, 0.9f, "%.2f");
        knobs.seed("dropout seed", s.dropout_seed);
    }
    if (s.level > 1) knobs.seed("weight seed", s.weight_seed);
    if (ImGui::Button("Reset to the level's own")) {
        Settings reset = level_settings(s.level);
        reset.text = s.text;
        ui.session.change(reset);
    }
}

}  // namespace fovea::visualizer
