#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/map_tile.cpp"
#include <hwy/foreach_target.h>

#include "cpu/map_tile_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void map_tile_task(const AttentionCall& call, const MapTile& tile, uint64_t task, unsigned char* scratch) {
    MapTileTask(call, tile, task, scratch).run();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/kernels.hpp"

namespace fovea::cpu {

decltype(Kernels::map_tile) map_tile_kernel_of(uint32_t target) { FOVEA_SELECT_TARGET(target, map_tile_task) }

}  // namespace fovea::cpu
#endif
