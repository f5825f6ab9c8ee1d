#include "panels/colour_bar.hpp"

#include <algorithm>

namespace fovea::visualizer {

void draw_colour_bar(const PanelContext& ui, const Colouring& colouring, const ScreenRect& bar, int digits) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const ColourTable table = colour_table(colouring.map);
    constexpr int kStrips = 64;
    for (int i = 0; i < kStrips; ++i) {
        const Rgb colour = table[size_t(255 - i * 255 / (kStrips - 1))];
        draw.AddRectFilled({bar.x, bar.y + bar.height * float(i) / kStrips},
                           {bar.x + bar.width, bar.y + bar.height * float(i + 1) / kStrips + 0.5f},
                           IM_COL32(colour.r, colour.g, colour.b, 255));
    }
    ImFont* font = ui.fonts.small;
    const float s = ui.scale, lowest = bar.y + bar.height - font->FontSize;
    for (int tick = 0; tick <= 4; ++tick) {
        const float share = float(tick) / 4, at = bar.y + bar.height * (1 - share) - font->FontSize / 2;
        draw.AddText(font, font->FontSize, {bar.x + bar.width + 6 * s, std::clamp(at, bar.y - 2 * s, lowest)},
                     palette(ui.bench.window.theme).text_soft,
                     format_number(colouring.value_at(double(share)), digits).c_str());
    }
}

}  // namespace fovea::visualizer
