// Shared by the steps that rewrite texts and those that split them.
#pragma once

#include <fovea/files.hpp>

#include <string>
#include <vector>

#include "tokenizer/text_steps.hpp"

namespace fovea {

inline Error unknown(std::string what) { return {FOVEA_UNSUPPORTED, "tokenizer", std::move(what)}; }
inline Error broken(std::string what) { return {FOVEA_INVALID_ARGUMENT, "tokenizer", std::move(what)}; }

inline Error too_costly() {
    return broken("the tokenizer's pattern needs too many steps for this text: over 2048 a byte");
}

// Returns the piece with `text` before it.
AlignedText with_before(const AlignedText& piece, std::string_view text);
// Runs steps in order, in builds that know the characters; others take ASCII.
TextStep in_order(std::vector<TextStep> steps, bool needs_tables);

}  // namespace fovea
