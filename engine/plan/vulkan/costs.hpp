// Costs and tile shapes that the Vulkan planners share.
#pragma once

#include "plan/plan.hpp"

namespace fovea {

// FLOP that one slice may cost: the caller's figure, what the device was measured to do, or some
// 50 ms at a careful rate for its class.
double slice_cost(const FoveaPlan_T& plan);
// Returns the budget by which a problem is rejected if its smallest slice exceeds it: the caller's, never the
// planner's own.
double refusing_slice_cost(const FoveaPlan_T& plan);

constexpr uint32_t kSoftwareThreads = 16;  // in a workgroup on a software driver

inline bool is_software(const FoveaPlan_T& plan) { return plan.properties.device_class == FOVEA_CLASS_CPU; }
// Software drivers take a second or more to compile a pipeline, so one pipeline serves all calls there. Fixed
// splits are an exception: their bits must not depend on the device.
inline bool shares_pipelines(const FoveaPlan_T& plan) {
    return is_software(plan) && !plan.problem.fixed_splits;
}

struct TileWish {
    uint64_t rows, columns;
    FoveaDeviceClass device_class;
};
TileChoice choose_tile(const TileWish& wish);

// (query, key) pairs that tiles of rows x keys compute, all heads and entries; lengths that only the batch
// table knows count as full.
double pairs_of_tiles(const Problem& p, uint32_t tile_rows, uint32_t tile_keys, int64_t key_limit);

}  // namespace fovea
