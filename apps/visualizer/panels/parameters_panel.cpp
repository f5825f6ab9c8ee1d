// The knobs of the attention call.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fovea::visualizer {
namespace {

// Shows the sentence of the control that was drawn last.
void hint(std::string_view label) {
    if (!ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal | ImGuiHoveredFlags_AllowWhenDisabled)) return;
    if (const char* text = parameter_hint(label)) {
        ImGui::BeginTooltip();
        ImGui::PushTextWrapPos(ImGui::GetFontSize() * 24);
        ImGui::TextUnformatted(text);
        ImGui::PopTextWrapPos();
        ImGui::EndTooltip();
    }
}

// Narrow panels keep the names of their knobs.
float knob_width(const PanelContext& ui) {
    return std::clamp(ImGui::GetContentRegionAvail().x - 96 * ui.scale, 80 * ui.scale, 150 * ui.scale);
}

struct Knobs {
    PanelContext& ui;
    Settings next;

    void toggle(const char* label, bool& value) {
        if (check_box(ui, label, &value)) ui.bench.document.change(next);
        hint(label);
    }
    void slider(const char* label, float& value, float low, float high, const char* format) {
        ImGui::SetNextItemWidth(knob_width(ui));
        if (ImGui::SliderFloat(label, &value, low, high, format, ImGuiSliderFlags_AlwaysClamp))
            ui.bench.document.change(next, ImGui::GetID(label));
        hint(label);
    }
    // A number of the session, drawn as a float.
    void slider(const char* label, double& value, float low, float high, const char* format) {
        auto shown = float(value);
        ImGui::SetNextItemWidth(knob_width(ui));
        if (ImGui::SliderFloat(label, &shown, low, high, format, ImGuiSliderFlags_AlwaysClamp)) {
            value = double(shown);
            ui.bench.document.change(next, ImGui::GetID(label));
        }
        hint(label);
    }
    void slider(const char* label, int& value, int low, int high, const char* format = nullptr) {
        ImGui::SetNextItemWidth(knob_width(ui));
        if (ImGui::SliderInt(label, &value, low, high,
                             format      ? format
                             : value < 0 ? texts().parameters.unbounded
                                         : "%d",
                             ImGuiSliderFlags_AlwaysClamp))
            ui.bench.document.change(next, ImGui::GetID(label));
        hint(label);
    }
    void seed(const char* label, uint64_t& value) {
        ImGui::SetNextItemWidth(knob_width(ui));
        int number = int(std::min<uint64_t>(value, INT32_MAX));
        if (ImGui::InputInt(label, &number)) {
            value = uint64_t(std::max(number, 0));
            ui.bench.document.change(next, ImGui::GetID(label));
        }
        hint(label);
    }
};

void draw_pattern(Knobs& knobs, Settings& s) {
    ImGui::SetNextItemWidth(knob_width(knobs.ui));
    const bool open = ImGui::BeginCombo("pattern", std::string(mask_pattern_name(s.pattern)).c_str());
    if (!open) return hint("pattern");
    for (int i = 0; i < kMaskPatternCount; ++i) {
        if (!ImGui::Selectable(std::string(mask_pattern_name(MaskPattern(i))).c_str(),
                               s.pattern == MaskPattern(i)))
            continue;
        s.pattern = MaskPattern(i);
        knobs.ui.bench.document.change(s);
    }
    ImGui::EndCombo();
}

// A synthetic context and a model that predicts the next token see no later key, whatever is chosen here.
void draw_causal(Knobs& knobs, const LongMap* map) {
    if (map ? !map->head().always_causal : !is_causal_model(knobs.next))
        return knobs.toggle(texts().parameters.causal, knobs.next.causal);
    bool on = true;
    ImGui::BeginDisabled();
    check_box(knobs.ui, texts().parameters.always_causal, &on);
    ImGui::EndDisabled();
    hint(texts().parameters.causal);
}

// A number of heads from 1 to 12, or the divisors of `of` where key/value heads share query heads.
void choose_heads(Knobs& knobs, const char* label, uint32_t& heads, uint32_t of) {
    ImGui::SetNextItemWidth(knob_width(knobs.ui));
    if (!ImGui::BeginCombo(label, std::to_string(heads).c_str())) return hint(label);
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
    const float width =
        ImGui::CalcTextSize(texts().parameters.reset).x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorPos(
        {ImGui::GetContentRegionMax().x - width, ImGui::GetCursorStartPos().y - 4 * ui.scale});
    const Settings& s = ui.bench.document.settings();
    if (ImGui::Button(texts().parameters.reset)) {
        Settings reset = shows_model(s) ? task_settings(s.task, s) : level_settings(s.level, s);
        reset.text = s.text;
        reset.file = s.file;
        reset.mapping = s.mapping;
        ui.bench.document.change(reset);
    }
    tooltip(texts().parameters.reset_hint);
    ImGui::SetCursorPos(below);
}

}  // namespace

const char* parameter_hint(std::string_view label) {
    const std::pair<std::string_view, const char*> hints[] = {
        {"scale", texts().parameters.scale_hint},
        {"temperature", texts().parameters.temperature_hint},
        {"softcap", texts().parameters.softcap_hint},
        {texts().parameters.causal, texts().parameters.causal_hint},
        {"window", texts().parameters.window_hint},
        {texts().parameters.keys_before, texts().parameters.keys_before_hint},
        {texts().parameters.keys_after, texts().parameters.keys_after_hint},
        {"ALiBi", texts().parameters.alibi_hint},
        {"RoPE", texts().parameters.rope_hint},
        {"pattern", texts().parameters.pattern_hint},
        {"dropout", texts().parameters.dropout_hint},
        {"probability", texts().parameters.probability_hint},
        {texts().parameters.dropout_seed, texts().parameters.dropout_seed_hint},
        {texts().parameters.weight_seed, texts().parameters.weight_seed_hint},
        {"heads", texts().parameters.heads_hint},
        {texts().parameters.kv_heads, texts().parameters.kv_heads_hint},
        {"tokens", texts().parameters.tokens_hint},
        {texts().parameters.after_softmax, texts().parameters.after_softmax_hint},
    };
    const auto at = std::find_if(std::begin(hints), std::end(hints),
                                 [&](const auto& hint) { return hint.first == label; });
    return at == std::end(hints) ? nullptr : at->second;
}

void draw_parameters_panel(PanelContext& ui) {
    heading(ui, texts().parameters.title);
    draw_reset(ui);
    ImGui::BeginChild("knobs");
    Knobs knobs{ui, ui.bench.document.settings()};
    Settings& s = knobs.next;
    const LongMap* map = ui.bench.window.centre == CentreTab::map ? ui.bench.map.head() : nullptr;
    const int last =
        map ? int(map->head().call.len_kv) - 1 : std::max(int(ui.bench.computation.tokens().size()) - 1, 1);
    bool scaled = is_scaled(s);
    const std::string scale_label = s.scale == "auto" || s.scale == "none"
                                        ? texts().parameters.scale_by_width
                                        : fill(texts().parameters.scale_by, {s.scale});
    if (check_box(ui, scale_label.c_str(), &scaled)) {
        s.scale = scaled ? "auto" : "none";
        ui.bench.document.change(s);
    }
    hint("scale");
    knobs.slider("temperature", s.temperature, 0.05f, 10, "%.2f");
    knobs.slider("softcap", s.softcap, 0, 10, s.softcap == 0 ? texts().parameters.off : "%.2f");
    ImGui::Dummy({0, 3 * ui.scale});
    draw_causal(knobs, map);
    ImGui::SameLine(std::max(130 * ui.scale, ImGui::GetItemRectSize().x + 16 * ui.scale));
    knobs.toggle("window", s.windowed);
    if (s.windowed) {
        knobs.slider(texts().parameters.keys_before, s.window_left, -1, last);
        knobs.slider(texts().parameters.keys_after, s.window_right, -1, last);
    }
    knobs.toggle("ALiBi", s.alibi);
    const bool of_level = !shows_model(s);  // a model has its own weights, heads and positions
    if (s.level >= 2 && of_level) {
        ImGui::SameLine(130 * ui.scale);
        ImGui::BeginDisabled(map);  // q and k of a map do not change
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
    hint("dropout");
    if (s.dropout_p > 0) {
        knobs.slider("probability", s.dropout_p, 0, 0.9f, "%.2f");
        knobs.seed(texts().parameters.dropout_seed, s.dropout_seed);
    }
    if (s.level > 1 && of_level && !map) knobs.seed(texts().parameters.weight_seed, s.seed);
    if (s.level >= 5 && of_level && !map) {
        constexpr uint32_t kMaxHeads = 12;
        choose_heads(knobs, "heads", s.heads, kMaxHeads);
        choose_heads(knobs, texts().parameters.kv_heads, s.kv_heads, s.heads);
    }
    if (s.level == 7 && of_level && !map) {
        auto length = int(s.length);
        ImGui::SetNextItemWidth(knob_width(ui));
        if (ImGui::SliderInt("tokens", &length, 0, 1024, length == 0 ? texts().parameters.as_typed : "%d",
                             ImGuiSliderFlags_AlwaysClamp)) {
            s.length = uint32_t(length);
            ui.bench.document.change(s, ImGui::GetID("tokens"));
        }
    }
    bool after = s.route == MaskRoute::after;
    if (check_box(ui, texts().parameters.after_softmax, &after)) {
        s.route = after ? MaskRoute::after : MaskRoute::before;
        ui.bench.document.change(s);
    }
    hint(texts().parameters.after_softmax);
    ImGui::EndChild();
}

}  // namespace fovea::visualizer
