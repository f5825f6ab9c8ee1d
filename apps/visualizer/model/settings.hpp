// Everything that the reader can change about the computation. A value: undo keeps copies of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::visualizer {

inline constexpr int kLevelCount = 7;

struct Settings {
    int level = 2;  // 1 without weights, 2 trainable, 3 causal, 4 dropout, 5 stacked heads, 6 split heads, 7
                    // GPT block
    std::string text = "Your journey starts with one step";
    uint64_t weight_seed = 123;
    bool scaled = true;  // scores / sqrt(head size); otherwise as they are
    float temperature = 1;
    bool causal = false;
    bool windowed = false;
    int window_left = 2, window_right = 0;
    float softcap = 0;
    bool dropout = false;
    float dropout_p = 0.5f;
    uint64_t dropout_seed = 123;
    bool alibi = false;

    friend bool operator==(const Settings&, const Settings&) = default;
};

// "trainable weights", and the settings that the tutorials use at that level.
std::string_view level_name(int level);
Settings level_settings(int level);

}  // namespace fovea::visualizer
