// Regular expressions over UTF-8 text, by PCRE2: tokenizers split text by patterns of \p{L}, \p{N} and
// look-ahead.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace fovea {

class SplitPattern {
  public:
    static bool available();
    static Result<SplitPattern> compile(std::string_view pattern);
    // Calls `visit(begin, end, is_match)` for each match and each stretch between two, in order. False where
    // the library's limits stopped it.
    bool split(std::string_view text, const std::function<void(size_t, size_t, bool)>& visit) const;

  private:
    std::shared_ptr<const void> code_;
};

}  // namespace fovea
