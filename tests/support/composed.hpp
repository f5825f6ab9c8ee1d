// Calls composed of other calls, checked against the equivalent single call: a mask over only the last keys
// (the others are a call without one, and foveaPlanMerge combines the results), and lists of the keys that
// each head reads (rows of a block table). The reference is the float64 result of one dense call with the
// same mask, so that it shares neither cuts nor tables with the tested calls.
#pragma once

#include "support/case_generator.hpp"
#include "support/run_case.hpp"

namespace fovea::test {

enum class Composition : uint32_t { none, tail_mask, key_lists };

// "tail-masks" and "key-lists".
const char* composition_name(Composition composition);
// False where `name` is none.
bool composition_from_name(const char* name, Composition& composition);

// Drawn as generate_case draws, then made what the composition is about. `seed` and `limits` give one case.
Case generate_composed(Composition composition, uint64_t seed, const CaseLimits& limits);

// As run_case does, which it is for `none`: poisoned inputs, slices in any order, workers; some again on
// clean inputs for the same bits.
CaseReport run_composed(Executor& executor, Composition composition, const PreparedCase& prepared);

}  // namespace fovea::test
