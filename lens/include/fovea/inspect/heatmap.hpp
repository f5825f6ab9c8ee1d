// Matrices as pictures: colored cells with their values, tokens on both axes, a color bar. For documents and
// for `--png`; the visualizer draws its own.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/inspect/colormap.hpp>
#include <fovea/model/f32_tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

// 8 bits a channel, rows from the top, no padding, not premultiplied.
struct RgbaImage {
    uint32_t width = 0, height = 0;
    std::vector<uint8_t> rgba;  // 4 * width * height
};

struct HeatmapPanel {                     // one matrix
    F32Tensor values;                     // [rows, columns], at least 1 each, at most 2048
    std::string title;                    // above the panel; may be empty
    std::vector<std::string> row_labels;  // one for each row, or empty: the row's number
    std::vector<std::string> column_labels;
    std::string row_caption = "query", column_caption = "key";
    std::vector<uint8_t> hidden;      // 1: hatched and without a number; as many as values, or empty
    std::optional<ColorRange> range;  // default: fitted_range of the cells that are not hidden
};

struct HeatmapStyle {             // The layout of the whole picture.
    std::string title, subtitle;  // above all panels; may be empty
    std::optional<Colormap> map;  // default: viridis, or blue_orange for panels with negative values
    bool dark = false;
    double pixel_ratio = 2.0;     // 0.5 to 4: device pixels for one unit of the layout
    uint32_t panels_per_row = 3;  // at least 1
    // A TrueType or OpenType file. Default: Inter or DejaVu Sans where the system keeps them.
    std::string font_path, bold_font_path;
};

// Draws panels in rows from the left, each with a color bar. -inf is drawn as masked. Fails if there is no
// font (nothing is drawn), if a size does not fit, and in builds without stb_truetype.
Result<RgbaImage> render_heatmaps(const std::vector<HeatmapPanel>& panels, const HeatmapStyle& style = {});

}  // namespace fovea
