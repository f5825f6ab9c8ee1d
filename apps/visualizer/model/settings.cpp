#include "model/settings.hpp"

#include <array>

namespace fovea::visualizer {

std::string_view level_name(int level) {
    constexpr std::array<std::string_view, kLevelCount> kNames = {"Attention without weights",
                                                                  "Trainable weights",
                                                                  "Causal mask",
                                                                  "Dropout",
                                                                  "Stacked heads",
                                                                  "Split heads",
                                                                  "GPT block"};
    return kNames.at(size_t(level - 1));
}

Settings level_settings(int level) {
    Settings s;
    s.level = level;
    s.scaled = level >= 2;
    s.causal = level >= 3;
    s.dropout = level == 4;
    if (level == 3 || level == 4) s.weight_seed = 789;
    return s;
}

}  // namespace fovea::visualizer
