// Motion, where it is wanted: a stage fades into the next. The picked token goes through the layer, one
// column every 200 ms.
#pragma once

#include "document/cell_inputs.hpp"
#include "document/window_state.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

namespace fovea::visualizer {

class Motion {
  public:
    explicit Motion(const WindowState& window) : window_(window) {}
    // The time that motion goes by.
    std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;

    void begin_fade(size_t from) { fade_from_ = from, fade_begin_ = clock(); }
    void end_fade() { fade_begin_.reset(); }
    // The stage before.
    size_t fade_from() const { return fade_from_; }
    // How far: from 0, the stage before, to 1.
    float fade() const {
        if (!fade_begin_ || !window_.motion || window_.locked_tab >= 0) return 1;
        constexpr std::chrono::duration<float> kTime = std::chrono::milliseconds(200);
        return std::min((clock() - *fade_begin_) / kTime, 1.0f);
    }
    void play_path() { path_begin_ = clock(); }
    // How many columns of it the token has come to: without motion all of them.
    size_t path_columns_come() const {
        if (!path_begin_ || !window_.motion) return kMaxPathColumns;
        constexpr std::chrono::milliseconds kStep(200);
        return std::min(size_t((clock() - *path_begin_) / kStep) + 1, kMaxPathColumns);
    }
    bool animating() const { return fade() < 1 || path_columns_come() < kMaxPathColumns; }

  private:
    const WindowState& window_;
    size_t fade_from_ = 0;
    std::optional<std::chrono::steady_clock::time_point> fade_begin_, path_begin_;
};

}  // namespace fovea::visualizer
