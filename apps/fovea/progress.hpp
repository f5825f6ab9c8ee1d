// A progress line on stderr for long work: on a terminal after half a second, gone when done. Elsewhere
// nothing, or a line every five seconds for work of minutes.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace fovea::app {

class Progress {
  public:
    using Clock = std::chrono::steady_clock;
    enum class Elsewhere { nothing, lines };

    explicit Progress(std::string what, Elsewhere elsewhere = Elsewhere::nothing);
    // As if stderr were `to`, from `start` on.
    Progress(std::string what, Elsewhere elsewhere, std::FILE* to, bool is_terminal, Clock::time_point start);
    ~Progress();
    // `detail` is printed after the percentage. Returns true: a command line is cancelled by its signal, not
    // by this.
    bool operator()(double done, const std::string& detail = {}) { return at(Clock::now(), done, detail); }
    bool at(Clock::time_point now, double done, const std::string& detail);

  private:
    std::string what_;
    std::FILE* to_;
    Clock::time_point start_, last_;
    bool terminal_, lines_, shown_ = false;
};

// "3 s", "2 min", "1 h 5 min".
std::string time_text(double seconds);

}  // namespace fovea::app
