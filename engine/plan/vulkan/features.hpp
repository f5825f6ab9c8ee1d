// FOVEA_FEATURE_* in words: by the names of the switches that a host turns on.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>

namespace fovea {

// "shaderFloat16, subgroupSizeControl and computeFullSubgroups", cut to the room.
void write_feature_names(uint32_t features, char* text, size_t room);

// Why a kernel that needs `needed` cannot run: null where all of them are on. Where the device has all that
// is missing, and its host alone did not enable it, the text says that and names the switch; else `lacks`.
const char* missing_features(const FoveaDeviceFacts& facts, uint32_t needed, const char* lacks);

// Bits that this library does not know are no features.
FoveaResult check_features(const FoveaDeviceFacts& facts, FoveaDiag* diag);

}  // namespace fovea
