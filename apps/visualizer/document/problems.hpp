// Errors and warnings, as lines that stay until the reader clears them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fovea::visualizer {

struct Problem {
    std::string where, text;
    bool error = false;  // else a warning
};

class Problems {
  public:
    // A line that is already there is not repeated; beyond kMax lines further ones are dropped.
    void report(std::string where, std::string text, bool error) {
        const bool known = std::any_of(lines_.begin(), lines_.end(),
                                       [&](const Problem& p) { return p.where == where && p.text == text; });
        if (!known && lines_.size() < kMax) lines_.push_back({std::move(where), std::move(text), error});
    }
    // The warnings of `where`, in place of those before.
    void replace(const std::string& where, const std::vector<std::string>& texts) {
        std::erase_if(lines_, [&](const Problem& p) { return p.where == where && !p.error; });
        for (const std::string& text : texts) report(where, text, false);
    }
    void clear() { lines_.clear(); }

    bool empty() const { return lines_.empty(); }
    size_t size() const { return lines_.size(); }
    const Problem& operator[](size_t i) const { return lines_[i]; }
    const Problem& back() const { return lines_.back(); }
    auto begin() const { return lines_.begin(); }
    auto end() const { return lines_.end(); }

  private:
    static constexpr size_t kMax = 200;
    std::vector<Problem> lines_;
};

}  // namespace fovea::visualizer
