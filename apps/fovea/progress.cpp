#include "progress.hpp"

#include "standard_streams.hpp"

namespace fovea::app {

Progress::Progress(std::string what, Elsewhere elsewhere)
    : Progress(std::move(what), elsewhere, stderr, is_terminal(2), Clock::now()) {}

Progress::Progress(std::string what, Elsewhere elsewhere, std::FILE* to, bool is_terminal,
                   Clock::time_point start)
    : what_(std::move(what)),
      to_(to),
      start_(start),
      last_(start),
      terminal_(is_terminal),
      lines_(elsewhere == Elsewhere::lines) {}

Progress::~Progress() {
    if (shown_) std::fprintf(to_, "\r\033[K");
}

bool Progress::at(Clock::time_point now, double done, const std::string& detail) {
    using namespace std::chrono_literals;
    if (terminal_ ? now - start_ < 500ms || now - last_ < 100ms : !lines_ || now - last_ < 5s) return true;
    last_ = now;
    shown_ = terminal_;
    std::fprintf(to_, "%s%s: %.0f%%%s%s%s", terminal_ ? "\r\033[K" : "", what_.c_str(), 100 * done,
                 detail.empty() ? "" : ", ", detail.c_str(), terminal_ ? "" : "\n");
    std::fflush(to_);
    return true;
}

std::string time_text(double seconds) {
    const auto minutes = uint64_t(seconds / 60);
    if (minutes >= 60) return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
    return minutes ? std::to_string(minutes) + " min" : std::to_string(uint64_t(seconds)) + " s";
}

}  // namespace fovea::app
