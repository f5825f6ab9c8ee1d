// For builds without stb_truetype: nothing can be written, and a picture without words or numbers would be a
// guess.
#include "inspect/picture/sentence.hpp"

namespace fovea {

Result<RgbaImage> render_heatmaps(const std::vector<HeatmapPanel>&, const HeatmapStyle&) {
    return Error{FOVEA_UNSUPPORTED, "heatmap",
                 "this build draws no pictures: stb_truetype.h was not found (Debian: libstb-dev)"};
}

Result<RgbaImage> picture::render_sentence(const Sentence&, const std::vector<HeatmapPanel>& panels,
                                           const std::vector<std::optional<Highlight>>&,
                                           const HeatmapStyle& style) {
    return render_heatmaps(panels, style);
}

}  // namespace fovea
