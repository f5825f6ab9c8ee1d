// The knobs of the attention call.
#include "panels/panels.hpp"

#include <algorithm>

namespace fovea::visualizer {
namespace {

struct Knobs {
    PanelContext& ui;
    Settings next;

    void toggle(const char* label, bool& value) {
        if (check_box(ui, label, &value)) ui.bench.document.change(next);
    }
    void slider(const char* label, float& value, float low, float high, const char* format) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (ImGui::SliderFloat(label, &value, low, high, format, ImGuiSliderFlags_AlwaysClamp))
            ui.bench.document.change(next, ImGui::GetID(label));
    }
    void slider(const char* label, int& value, int low, int high, const char* format = nullptr) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (ImGui::SliderInt(label, &value, low, high,
                             format      ? format
                             : value < 0 ? "unbounded"
                                         : "%d",
                             ImGuiSliderFlags_AlwaysClamp))
            ui.bench.document.change(next, ImGui::GetID(label));
    }
    void seed(const char* label, uint64_t& value) {
        ImGui::SetNextItemWidth(150 * ui.scale);
        int number = int(std::min<uint64_t>(value, INT32_MAX));
        if (ImGui::InputInt(label, &number)) {
            value = uint64_t(std::max(number, 0));
            ui.bench.document.change(next, ImGui::GetID(label));
        }
    }
};

void draw_pattern(Knobs& knobs, Settings& s) {
    ImGui::SetNextItemWidth(150 * knobs.ui.scale);
    if (!ImGui::BeginCombo("pattern", std::string(mask_pattern_name(s.pattern)).c_str())) return;
    for (int i = 0; i < kMaskPatternCount; ++i) {
        if (!ImGui::Selectable(std::string(mask_pattern_name(MaskPattern(i))).c_str(),
                               s.pattern == MaskPattern(i)))
            continue;
        s.pattern = MaskPattern(i);
        knobs.ui.bench.document.change(s);
    }
    ImGui::EndCombo();
}

// A synthetic context sees no later key, whatever is chosen here.
void draw_causal(Knobs& knobs, const LongMap* map) {
    if (!map || !map->head().always_causal) return knobs.toggle("causal mask", knobs.next.causal);
    bool on = true;
    ImGui::BeginDisabled();
    check_box(knobs.ui, "causal mask, always", &on);
    ImGui::EndDisabled();
}

// 12 query heads share 12, 6, 4, 3, 2 or 1 key heads.
void draw_kv_heads(Knobs& knobs, Settings& s) {
    ImGui::SetNextItemWidth(150 * knobs.ui.scale);
    const int current = s.kv_heads == 0 ? 12 : s.kv_heads;
    if (!ImGui::BeginCombo("KV heads", std::to_string(current).c_str())) return;
    for (const int count : {12, 6, 4, 3, 2, 1}) {
        const char* note = count == 12 ? "12  one for each" : count == 1 ? "1  for all" : nullptr;
        if (!ImGui::Selectable(note ? note : std::to_string(count).c_str(), count == current)) continue;
        s.kv_heads = count == 12 ? 0 : count;
        knobs.ui.bench.document.change(s);
    }
    ImGui::EndCombo();
}

// At the right end of the heading, in sight however many knobs there are.
void draw_reset(PanelContext& ui) {
    const ImVec2 below = ImGui::GetCursorPos();
    const float width = ImGui::CalcTextSize("Reset").x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorPos(
        {ImGui::GetContentRegionMax().x - width, ImGui::GetCursorStartPos().y - 4 * ui.scale});
    const Settings& s = ui.bench.document.settings();
    if (ImGui::Button("Reset")) {
        Settings reset = level_settings(s.level, s);
        reset.file = s.file;
        reset.mapping = s.mapping;
        ui.bench.document.change(reset);
    }
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("The level's own parameters");
    ImGui::SetCursorPos(below);
}

}  // namespace

void draw_parameters_panel(PanelContext& ui) {
    heading(ui, "Parameters");
    draw_reset(ui);
    ImGui::BeginChild("knobs");
    Knobs knobs{ui, ui.bench.document.settings()};
    Settings& s = knobs.next;
    const LongMap* map = ui.bench.window.centre == CentreTab::map ? ui.bench.map.head() : nullptr;
    const int last =
        map ? int(map->head().call.len_kv) - 1 : std::max(int(ui.bench.computation.tokens().size()) - 1, 1);
    knobs.toggle(
        "scale by 1/\xe2\x88\x9a"
        "d",
        s.scaled);
    knobs.slider("temperature", s.temperature, 0.05f, 10, "%.2f");
    knobs.slider("softcap", s.softcap, 0, 10, s.softcap == 0 ? "off" : "%.2f");
    ImGui::Dummy({0, 3 * ui.scale});
    draw_causal(knobs, map);
    ImGui::SameLine(std::max(130 * ui.scale, ImGui::GetItemRectSize().x + 16 * ui.scale));
    knobs.toggle("window", s.windowed);
    if (s.windowed) {
        knobs.slider("keys before", s.window_left, -1, last);
        knobs.slider("keys after", s.window_right, -1, last);
    }
    knobs.toggle("ALiBi", s.alibi);
    if (s.level >= 2) {
        ImGui::SameLine(130 * ui.scale);
        ImGui::BeginDisabled(map);  // its q and k are as they are
        knobs.toggle("RoPE", s.rope);
        ImGui::EndDisabled();
    }
    draw_pattern(knobs, s);
    ImGui::Dummy({0, 3 * ui.scale});
    knobs.toggle("dropout", s.dropout);
    if (s.dropout) {
        knobs.slider("probability", s.dropout_p, 0, 0.9f, "%.2f");
        knobs.seed("dropout seed", s.dropout_seed);
    }
    if (s.level > 1 && !map) knobs.seed("weight seed", s.weight_seed);
    if (s.level == 7 && !map) {
        draw_kv_heads(knobs, s);
        knobs.slider("tokens", s.length, 0, 1024, s.length == 0 ? "as typed" : "%d");
    }
    ImGui::EndChild();
}

}  // namespace fovea::visualizer
