// An attention call in words that its caller can check against what was meant.
#pragma once

#include "plan/text_sink.hpp"
#include "problem/problem.hpp"

namespace fovea {

// Where query 0 stands among the keys, what is hidden by rule, how each tensor and matrix is read, and what
// is one for several.
void explain_call(const Problem& problem, TextSink& text);

}  // namespace fovea
