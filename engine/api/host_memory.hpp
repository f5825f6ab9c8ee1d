// The host's allocator, or malloc where none is given.
#pragma once

#include <fovea/fovea.h>

namespace fovea {

// Copies *given, or the default if null, to `out`. Refuses one with only some of its functions set.
FoveaResult choose_allocator(const FoveaHostAllocator* given, FoveaHostAllocator& out, FoveaDiag* diag);

}  // namespace fovea
