// The ways to store a KV cache's rows.
#pragma once

#include <fovea/fovea.h>

namespace fovea {

/// A type, and whether its rows are rotated.
struct CacheType {
    FoveaDtype type = FOVEA_F32;
    bool rotated = false;  // FOVEA_FLAG_ROTATED_CACHE

    friend bool operator==(const CacheType&, const CacheType&) = default;
};

}  // namespace fovea
