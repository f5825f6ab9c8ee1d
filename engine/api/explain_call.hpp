// Describes an attention call as text, so that the caller can check it against what was meant.
#pragma once

#include "plan/text_sink.hpp"
#include "problem/problem.hpp"

namespace fovea {

// Describes the position of query 0 among the keys, the masking rules, how each tensor and matrix is read,
// and what is broadcast.
void explain_call(const Problem& problem, TextSink& text);

}  // namespace fovea
