// Text as coverage masks, from a font file of the system.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::picture {

// One line of text: coverage 0 to 255; the baseline is `ascent` rows below the top.
struct TextMask {
    int width = 0, height = 0, ascent = 0;
    std::vector<uint8_t> coverage;
};

// A font file in memory. Immutable; thread-safe.
class Font {
  public:
    // Tries the paths in order; the error names them all.
    static Result<Font> open_first(const std::vector<std::string>& paths);
    Font(Font&&) noexcept;
    Font& operator=(Font&&) noexcept;
    ~Font();

    const std::string& path() const { return path_; }
    // Advance of a UTF-8 line in pixels, at a height of `size_px` for one em.
    double width(std::string_view text, double size_px) const;
    TextMask draw(std::string_view text, double size_px) const;
    // From the baseline to the top of a capital or a digit.
    double cap_height(double size_px) const;

  private:
    struct State;
    explicit Font(std::unique_ptr<State> state, std::string path);
    std::unique_ptr<State> state_;
    std::string path_;
};

// Where systems keep a font that serves: regular and bold.
std::vector<std::string> usual_font_paths(bool bold);

}  // namespace fovea::picture
