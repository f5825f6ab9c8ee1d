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
    // A number of the session, drawn as a float.
    void slider(const char* label, double& value, float low, float high, const char* format) {
        auto shown = float(value);
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (!ImGui::SliderFloat(label, &shown, low, high, format, ImGuiSliderFlags_AlwaysClamp)) return;
        value = double(shown);
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

// A number of heads from 1 to 12, or the divisors of `of` where key/value heads share query heads.
void choose_heads(Knobs& knobs, const char* label, uint32_t& heads, uint32_t of) {
    ImGui::SetNextItemWidth(150 * knobs.ui.scale);
    if (!ImGui::BeginCombo(label, std::to_string(heads).c_str())) return;
    for (uint32_t count = of; count >= 1; --count) {
        if (of % count != 0 || !ImGui::Selectable(std::to_string(count).c_str(), count == heads)) continue;
        heads = count;
        if (&heads == &knobs.next.heads) knobs.next.kv_heads = count;
        knobs.ui.bench.document.change(knobs.next);
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
    bool scaled = is_scaled(s);
    const std::string scale_label = s.scale == "auto" || s.scale == "none" ? "scale by 1/\xe2\x88\x9a"
                                                                             "d"
                                                                           : "scale by 1/" + s.scale;
    if (check_box(ui, scale_label.c_str(), &scaled)) {
        s.scale = scaled ? "auto" : "none";
        ui.bench.document.change(s);
    }
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
    bool drops = s.dropout_p > 0;
    if (check_box(ui, "dropout", &drops)) {
        switch_dropout(s);
        ui.bench.document.change(s);
    }
    if (s.dropout_p > 0) {
        knobs.slider("probability", s.dropout_p, 0, 0.9f, "%.2f");
        knobs.seed("dropout seed", s.dropout_seed);
    }
    if (s.level > 1 && !map) knobs.seed("weight seed", s.seed);
    if (s.level >= 5 && !map) {
        constexpr uint32_t kMostHeads = 12;
        choose_heads(knobs, "heads", s.heads, kMostHeads);
        choose_heads(knobs, "KV heads", s.kv_heads, s.heads);
    }
    if (s.level == 7 && !map) {
        auto length = int(s.length);
        ImGui::SetNextItemWidth(150 * ui.scale);
        if (ImGui::SliderInt("tokens", &length, 0, 1024, length == 0 ? "as typed" : "%d",
                             ImGuiSliderFlags_AlwaysClamp)) {
            s.length = uint32_t(length);
            ui.bench.document.change(s, ImGui::GetID("tokens"));
        }
    }
    bool after = s.route == MaskRoute::after;
    if (check_box(ui, "mask behind the softmax", &after)) {
        s.route = after ? MaskRoute::after : MaskRoute::before;
        ui.bench.document.change(s);
    }
    ImGui::EndChild();
}

}  // namespace fovea::visualizer
