// A progress line on stderr for long work: on a terminal only, after half a second, gone when done.
#pragma once

#include <chrono>
#include <string>

namespace fovea::app {

class Progress {
  public:
    explicit Progress(std::string what);
    ~Progress();
    // `detail` is printed after the percentage. Returns true: a command line is cancelled by its signal, not
    // by this.
    bool operator()(double done, const std::string& detail = {});

  private:
    std::string what_;
    std::chrono::steady_clock::time_point start_, last_;
    bool terminal_, shown_ = false;
};

}  // namespace fovea::app
