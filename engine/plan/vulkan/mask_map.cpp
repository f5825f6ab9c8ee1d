#include "plan/vulkan/flash.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/attention.hpp"
#include "problem/checked.hpp"
#include "shaders/interface.h"

namespace fovea {
namespace {

// Below these a map costs more than it can save: a mask of few rows is read about as often as a map would be.
constexpr int64_t kMinQueries = 32;
constexpr uint32_t kMinBlocks = 16;

bool is_for_all_heads(const Problem& p) {
    return (!p.mask.present || p.mask.strides.head == 0) && (!p.bias.present || p.bias.strides.head == 0);
}

const char* obstacle_of(const FoveaPlan_T& plan, const FlashPlan& f) {
    const Problem& p = plan.problem;
    if (!p.mask.present && !p.bias.present) return "the call has neither a mask nor a bias";
    if (plan.vulkan.visible.key_limit == 0) return "the mask has no columns";
    if (plan.properties.mask_map == FOVEA_MASK_MAP_NEVER) return "the device's properties ask for none";
    if (plan.properties.mask_map == FOVEA_MASK_MAP_ALWAYS) return nullptr;
    if (p.len_q < kMinQueries) return "there are few queries";
    if (ceil_div(plan.vulkan.visible.key_limit, f.block_keys) < kMinBlocks)
        return "there are few blocks of keys";
    if (keys_of_rows(p, plan.vulkan.visible, 1) < plan.vulkan.visible.key_limit)
        return "a window leaves few blocks anyway";
    return nullptr;
}

}  // namespace

void choose_mask_map(const FoveaPlan_T& plan, FlashPlan& f) {
    f.mask_map = {obstacle_of(plan, f), is_for_all_heads(plan.problem), 0, 0};
    if (f.mask_map.obstacle) return;
    const uint64_t blocks = ceil_div(plan.vulkan.visible.key_limit, f.block_keys);
    f.mask_map.words = uint32_t(ceil_div(blocks, shader::kBlocksPerWord));
}

uint64_t mask_map_bytes(const FoveaPlan_T& plan, const FlashPlan& f, uint64_t heads_kv, uint64_t queries) {
    if (f.mask_map.obstacle) return 0;
    const uint64_t tiles = ceil_div(queries * plan.problem.group, f.rows);
    return (f.mask_map.for_all_heads ? 1 : heads_kv) * tiles * f.mask_map.words * 4;
}

void explain_mask_map(const MaskMapPlan& map, TextSink& text) {
    if (map.obstacle) return text.line("no map of the mask's blocks: %s", map.obstacle);
    text.line("a map of the mask's blocks first, %s: hidden blocks are skipped, clear ones read no mask",
              map.for_all_heads ? "one for all heads" : "one for each key/value head");
}

}  // namespace fovea
