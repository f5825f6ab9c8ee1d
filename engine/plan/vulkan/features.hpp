// Writes FOVEA_FEATURE_* as the names of the switches that an application enables.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>

namespace fovea {

// "shaderFloat16, subgroupSizeControl and computeFullSubgroups", cut to the room.
void write_feature_names(uint32_t features, char* text, size_t room);

// Returns why a kernel that needs `needed` cannot run, or null if all of them are enabled. If the device has
// everything that is missing but the application did not enable it, the text says so and names the switch;
// otherwise it is `lacks`.
const char* missing_features(const FoveaDeviceProperties& properties, uint32_t needed, const char* lacks);

// Rejects bits that this library does not know.
FoveaResult check_features(const FoveaDeviceProperties& properties, FoveaDiag* diag);

}  // namespace fovea
