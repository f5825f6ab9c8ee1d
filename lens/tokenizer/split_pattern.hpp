// Regular expressions over UTF-8 text in the dialect of Oniguruma (https://github.com/kkos/oniguruma,
// doc/RE), for which tokenizers' patterns are written: the same matches in every program and build.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace fovea {

class SplitPattern {
  public:
    // Rejected with an error that names the construct: back references, subexpression calls, conditions,
    // callouts, absent functions, \K, \X, \y, bytes above 0x7f, properties that the tables lack.
    static Result<SplitPattern> compile(std::string_view pattern);
    // Calls `visit(begin, end, is_match)` for each match and each stretch between two, in order; together
    // they are the text. A match may be empty, but not where the match before ends. False if the pattern
    // needs more than most_steps() steps.
    bool split(std::string_view text, const std::function<void(size_t, size_t, bool)>& visit) const;
    // The steps that one text may cost: linear in its size.
    static uint64_t most_steps(size_t text_bytes) {
        return (uint64_t{1} << 20) + 2048 * uint64_t{text_bytes};
    }

    struct Program;

  private:
    std::shared_ptr<const Program> program_;
};

}  // namespace fovea
