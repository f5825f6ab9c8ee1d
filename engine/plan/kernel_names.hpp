// Kernels by name, for reasons and refusals.
#pragma once

#include <fovea/fovea.h>

namespace fovea {

// "staged", "flash", ...; "unknown" for a number that is no kernel's.
const char* name_of(FoveaKernel kernel);

}  // namespace fovea
