#include "panels/color_bar.hpp"

#include <algorithm>

namespace fovea::visualizer {

void draw_color_bar(const PanelContext& ui, const Coloring& coloring, const ScreenRect& bar, int digits,
                    const Clamped& clamped) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ColorTable table = color_table(coloring.map);
    constexpr int kStrips = 64;
    for (int i = 0; i < kStrips; ++i) {
        const Rgb color = table[size_t(255 - i * 255 / (kStrips - 1))];
        draw.AddRectFilled({bar.x, bar.y + bar.height * float(i) / kStrips},
                           {bar.x + bar.width, bar.y + bar.height * float(i + 1) / kStrips + 0.5f},
                           IM_COL32(color.r, color.g, color.b, 255));
    }
    ImFont* font = ui.fonts.small;
    const float s = ui.scale, lowest = bar.y + bar.height - font->FontSize;
    const ImU32 cap = palette(ui.bench.window.theme).warning;
    const float middle = bar.x + bar.width / 2, half = bar.width / 2, tip = 6 * s;
    if (clamped.above)
        draw.AddTriangleFilled({middle - half, bar.y - s}, {middle + half, bar.y - s},
                               {middle, bar.y - s - tip}, cap);
    const float foot = bar.y + bar.height + s;
    if (clamped.below)
        draw.AddTriangleFilled({middle + half, foot}, {middle - half, foot}, {middle, foot + tip}, cap);
    for (int tick = 0; tick <= 4; ++tick) {
        const float share = float(tick) / 4, at = bar.y + bar.height * (1 - share) - font->FontSize / 2;
        draw.AddText(font, font->FontSize, {bar.x + bar.width + 6 * s, std::clamp(at, bar.y - 2 * s, lowest)},
                     palette(ui.bench.window.theme).text_soft,
                     ((tick == 4 && clamped.above   ? "\xe2\x89\xa5 "
                       : tick == 0 && clamped.below ? "\xe2\x89\xa4 "
                                                    : "") +
                      format_number(coloring.value_at(double(share)), digits))
                         .c_str());
    }
}

}  // namespace fovea::visualizer
