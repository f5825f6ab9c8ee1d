#include "progress.hpp"

#include "standard_streams.hpp"

#include <cstdio>

namespace fovea::app {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      start_(std::chrono::steady_clock::now()),
      last_(start_),
      terminal_(is_terminal(2)) {}

Progress::~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
}

bool Progress::operator()(double done, const std::string& detail) {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - start_ < 500ms || now - last_ < 100ms) return true;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\r\033[K%s: %.0f%%%s%s", what_.c_str(), 100 * done, detail.empty() ? "" : ", ",
                 detail.c_str());
    std::fflush(stderr);
    return true;
}

}  // namespace fovea::app
