#include "plan/vulkan/costs.hpp"

#include "problem/checked.hpp"
#include "problem/visibility.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <limits>

namespace fovea {
namespace {

constexpr double kSoftwareSliceCost = 2e8;
constexpr double kIntegratedSliceCost = 1e10;
constexpr double kDiscreteSliceCost = 1e11;
// Below this many rows shared tiles would compute mostly nothing.
constexpr uint64_t kFewRows = 16;
// Row tiles that are counted one by one; beyond, their number tells little more than the rows themselves.
constexpr int64_t kCountedTiles = 1 << 16;

// Operations whose description has a budget.
bool has_attention(const FoveaPlan_T& plan) {
    return plan.operation == Operation::attention || plan.operation == Operation::map_tile ||
           plan.operation == Operation::backward;
}

}  // namespace

double slice_cost(const FoveaPlan_T& plan) {
    if (has_attention(plan)) {
        if (plan.problem.max_slice_cost > 0) return plan.problem.max_slice_cost;
        if (plan.properties.slice_cost > 0) return plan.properties.slice_cost;
    }
    switch (plan.properties.device_class) {
        case FOVEA_CLASS_CPU:
            return kSoftwareSliceCost;
        case FOVEA_CLASS_DISCRETE:
            return kDiscreteSliceCost;
        case FOVEA_CLASS_INTEGRATED:
        case FOVEA_CLASS_VIRTUAL:
            break;
    }
    return kIntegratedSliceCost;
}

double refusing_slice_cost(const FoveaPlan_T& plan) {
    const bool asked = has_attention(plan) && plan.problem.max_slice_cost > 0;
    return asked ? plan.problem.max_slice_cost : std::numeric_limits<double>::infinity();
}

TileChoice choose_tile(const TileWish& wish) {
    if (wish.device_class != FOVEA_CLASS_CPU && wish.rows >= kFewRows)
        return {true, shader::kSharedThreads, shader::kSharedRows, shader::kSharedColumns, 0};
    // Software drivers run a workgroup's threads as vector lanes: rows that all lanes share are loaded once,
    // and small workgroups cost nothing.
    const uint32_t most = wish.device_class == FOVEA_CLASS_CPU ? 16 : 64;
    uint32_t threads = 8;
    while (threads < most && uint64_t{threads} * shader::kThreadColumns < wish.columns) threads *= 2;
    const uint32_t rows = wish.rows <= 2 ? 1 : shader::kDirectRows;
    return {false, threads, rows, threads * shader::kThreadColumns, 0};
}

double pairs_of_tiles(const Problem& p, uint32_t tile_rows, uint32_t tile_keys, int64_t key_limit) {
    const BatchView view = batch_view(p, nullptr, 0);
    const double heads = double(p.batch) * p.heads_q;
    if (p.len_q / tile_rows > kCountedTiles) return visible_pairs(p, view) * heads;
    double pairs = 0;
    for (int64_t i = 0; i < p.len_q; i += tile_rows) {
        const KeyRange keys = visible_keys_of_rows(p, view, i, i + tile_rows);
        if (keys.empty()) continue;
        const int64_t begin = keys.begin / tile_keys * tile_keys;
        const int64_t end = std::min<int64_t>(
            key_limit, begin + int64_t(ceil_div(uint64_t(keys.end - begin), tile_keys)) * tile_keys);
        pairs += double(end - begin) * double(std::min<int64_t>(tile_rows, p.len_q - i));
    }
    return pairs * heads;
}

}  // namespace fovea
