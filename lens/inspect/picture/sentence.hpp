// A picture of heads that begins with the text: in large type, with arcs from one token to what it looks at.
#pragma once

#include <fovea/inspect/head_role.hpp>
#include <fovea/inspect/heatmap.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fovea::picture {

struct Sentence {
    std::vector<std::string> tokens;
    std::vector<float> weights;  // each token's weight in the query's row
    std::vector<bool> starts;    // word_starts(): a gap before the token
    size_t query = 0;            // below the number of tokens
};
// A frame in a panel and what it says.
struct Highlight {
    WeightStripe stripe;
    std::string text;
};

// render_heatmaps() below the sentence. `highlights` are as many as panels. The same errors.
Result<RgbaImage> render_sentence(const Sentence& sentence, const std::vector<HeatmapPanel>& panels,
                                  const std::vector<std::optional<Highlight>>& highlights,
                                  const HeatmapStyle& style);

}  // namespace fovea::picture
