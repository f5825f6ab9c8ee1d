// The session kept aside while the program runs: after a crash it is offered again. Ended in order, it goes.
#pragma once

#include "data/window_settings.hpp"
#include "document/workbench.hpp"

#include <chrono>
#include <filesystem>

namespace fovea::visualizer {

class Autosave {
  public:
    static constexpr double kIntervalSeconds = 30;

    // In the user's folder for such state; without one nothing is kept.
    Autosave();
    // Reports where the last run left something.
    void offer(Workbench& bench);
    // Writes what has changed, at most twice a minute.
    void update(const Workbench& bench);
    // Whatever the time, before something that may end the program.
    void write_now(const Workbench& bench);
    // Something may have changed that is not written yet.
    bool pending() const { return pending_; }
    void end();
    // True if the tour was ended in an earlier run; keep_tour_ended() records that.
    bool tour_was_ended() const;
    void keep_tour_ended() const;
    // Reads the window's settings, which are independent of the session. For a damaged file it returns an
    // error with the reason, and the next write_window() replaces the file.
    Result<WindowSettings> read_window();
    // Where something has changed since.
    void write_window(const WindowSettings& settings);

  private:
    std::filesystem::path window_settings_path() const;

    std::filesystem::path path_;
    std::string written_;
    std::optional<WindowSettings> window_;                       // as it is in the file
    std::optional<std::chrono::steady_clock::time_point> last_;  // looked at
    bool pending_ = false;
};

}  // namespace fovea::visualizer
