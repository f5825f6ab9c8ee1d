// The knobs of the attention call.
#include "panels/panels.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fovea::visualizer {
namespace {

// Tooltips of the controls, one sentence each.
constexpr std::pair<std::string_view, const char*> kHints[] = {
    {"scale",
     "Scores are divided by this, so that wide heads do not make the softmax sharp (Vaswani et al., 2017)."},
    {"temperature", "Divides the scores: above 1 the weights even out, below 1 the largest takes more."},
    {"softcap",
     "Keeps scores within \xc2\xb1"
     "c by c\xc2\xb7tanh(s / c), as Gemma 2 does. 0: off."},
    {"causal mask",
     "A token sees itself and the tokens before it, as in a model that predicts the next word."},
    {"window", "A token sees only so many keys before and after itself."},
    {"keys before", "How many keys before itself a token sees."},
    {"keys after", "How many keys after itself a token sees."},
    {"ALiBi",
     "Scores fall with the distance of query and key, by a slope for each head (Press et al., 2022)."},
    {"RoPE",
     "Queries and keys are turned by angles of their positions, so that their product knows the distance "
     "(Su et al., 2021)."},
    {"pattern", "Adds a mask to causal and window: padding, prefix, stripes, blocks, or painted."},
    {"dropout",
     "In training some weights become 0 at random, and the others grow by 1 / (1 \xe2\x88\x92 p)."},
    {"probability", "p, the share of weights that are dropped."},
    {"dropout seed", "Where the random numbers of the dropout mask begin."},
    {"weight seed", "Where the random numbers of W_query, W_key and W_value begin."},
    {"heads", "Each head attends by itself; their contexts are put side by side."},
    {"KV heads", "Several query heads share one key and value head (Ainslie et al., 2023)."},
    {"tokens", "Repeats the tokens up to this length."},
    {"mask after the softmax", "Masks weights after the softmax and divides each row by its remaining sum."},
};

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
                             : value < 0 ? "unbounded"
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
        return knobs.toggle("causal mask", knobs.next.causal);
    bool on = true;
    ImGui::BeginDisabled();
    check_box(knobs.ui, "always causal", &on);
    ImGui::EndDisabled();
    hint("causal mask");
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
    const float width = ImGui::CalcTextSize("Reset").x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetCursorPos(
        {ImGui::GetContentRegionMax().x - width, ImGui::GetCursorStartPos().y - 4 * ui.scale});
    const Settings& s = ui.bench.document.settings();
    if (ImGui::Button("Reset")) {
        Settings reset = shows_model(s) ? task_settings(s.task, s) : level_settings(s.level, s);
        reset.text = s.text;
        reset.file = s.file;
        reset.mapping = s.mapping;
        ui.bench.document.change(reset);
    }
    tooltip("Restores the parameters of the level or model.");
    ImGui::SetCursorPos(below);
}

}  // namespace

const char* parameter_hint(std::string_view label) {
    const auto at = std::find_if(std::begin(kHints), std::end(kHints),
                                 [&](const auto& hint) { return hint.first == label; });
    return at == std::end(kHints) ? nullptr : at->second;
}

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
    hint("scale");
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
        knobs.seed("dropout seed", s.dropout_seed);
    }
    if (s.level > 1 && of_level && !map) knobs.seed("weight seed", s.seed);
    if (s.level >= 5 && of_level && !map) {
        constexpr uint32_t kMaxHeads = 12;
        choose_heads(knobs, "heads", s.heads, kMaxHeads);
        choose_heads(knobs, "KV heads", s.kv_heads, s.heads);
    }
    if (s.level == 7 && of_level && !map) {
        auto length = int(s.length);
        ImGui::SetNextItemWidth(knob_width(ui));
        if (ImGui::SliderInt("tokens", &length, 0, 1024, length == 0 ? "as typed" : "%d",
                             ImGuiSliderFlags_AlwaysClamp)) {
            s.length = uint32_t(length);
            ui.bench.document.change(s, ImGui::GetID("tokens"));
        }
    }
    bool after = s.route == MaskRoute::after;
    if (check_box(ui, "mask after the softmax", &after)) {
        s.route = after ? MaskRoute::after : MaskRoute::before;
        ui.bench.document.change(s);
    }
    hint("mask after the softmax");
    ImGui::EndChild();
}

}  // namespace fovea::visualizer
