// Map tiles as plans on Vulkan: slices cover every pixel once, stay within their budget and the device's
// descriptors, and none is cut where that would need half a pixel.
#include "shaders/planned.hpp"
#include "shaders/windows.hpp"

#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea::test {
namespace {

struct TileCase {
    const char* name;
    FoveaDeviceProperties properties;
    FoveaAttentionDesc desc;
    FoveaMapTileDesc tile;
};

FoveaMapTileDesc tile_of(uint64_t first_row, uint64_t rows, uint64_t first_key, uint64_t keys,
                         uint32_t height, uint32_t width) {
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.first_row = first_row, tile.row_count = rows;
    tile.first_key = first_key, tile.key_count = keys;
    tile.height = height, tile.width = width;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    return tile;
}

std::vector<TileCase> tile_cases() {
    FoveaAttentionDesc small = attention_desc(2, 4, 2, 77, 301, 40, 24);
    FoveaAttentionDesc tight = small;
    tight.max_slice_cost = 5000;
    FoveaAttentionDesc masked = tight;
    masked.mask.present = 1;
    masked.mask.type = FOVEA_U8;
    const FoveaAttentionDesc large = attention_desc(1, 1, 1, 131072, 131072, 64, 64);
    FoveaMapTileDesc sampled = tile_of(0, 131072, 0, 131072, 256, 256);
    sampled.sampled = 1;
    return {
        {"whole", floor_properties(), small, tile_of(0, 0, 0, 0, 0, 0)},
        {"ragged, cut", floor_properties(), tight, tile_of(5, 60, 17, 200, 23, 51)},
        {"masked, cut, past the end", gpu_properties(), masked, tile_of(5, 90, 17, 320, 23, 51)},
        {"overview of 128k", floor_properties(), large, tile_of(0, 131072, 0, 131072, 256, 256)},
        {"overview of 128k on a gpu", gpu_properties(), large, tile_of(0, 131072, 0, 131072, 256, 256)},
        {"sampled overview of 128k", floor_properties(), large, sampled},
        {"single cells of 128k", gpu_properties(), large, tile_of(100000, 256, 99000, 256, 256, 256)},
        {"a large picture", floor_properties(), large, tile_of(0, 131072, 0, 131072, 16384, 16384)},
    };
}

TEST(MapTilePlan, slices_cover_every_pixel_once) {
    for (const TileCase& c : tile_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_map_tile(c.properties, c.desc, c.tile);
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_EQ(plan->info().slices_share_workspace, plan->info().slice_count > 1 ? 1u : 0u)
            << "neighbours show some of the same pixels";
        const FoveaPlanInfo info = plan->info();
        std::vector<uint8_t> seen(info.binding_bytes[FOVEA_BIND_TILE_MAX] / 4 +
                                  info.binding_bytes[FOVEA_BIND_TILE_MASS] / 8);
        if (seen.size() > 1u << 20) seen.clear();  // too many to count one by one
        const uint64_t slices = seen.empty() ? std::min<uint64_t>(info.slice_count, 50) : info.slice_count;
        for (uint64_t slice = 0; slice < slices; ++slice) {
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
            ASSERT_FALSE(all.empty());
            for (const FoveaDispatch& d : all) expect_windows_within(d, info, c.properties);
            const auto push = push_of<shader::MapPush>(all.back());
            const uint32_t x0 = push.origin & 0xffff, columns = push.extent & 0xffff,
                           rows = push.extent >> 16;
            const uint32_t across = 1u << (push.dims >> 22 & 15), down = 1u << (push.dims >> 26 & 15);
            ASSERT_LE(across * down, shader::kMapPixels);
            EXPECT_GE(all.back().groups[0] * across, columns);
            EXPECT_GE(all.back().groups[1] * down, rows);
            if (seen.empty()) continue;
            const FoveaDispatchBinding* mass = binding_at(all.back(), FOVEA_SLOT_TILE_MASS);
            const uint32_t before = push.dims >> 16 & 63, width = push.pixels & 0xffff;
            for (uint32_t y = 0; y < rows; ++y)
                for (uint32_t x = x0; x < x0 + columns; ++x)
                    ++seen[mass->offset / 8 + before % 32 + uint64_t{y} * width + x];
        }
        if (!seen.empty()) {
            const auto end = seen.begin() + ptrdiff_t(info.binding_bytes[FOVEA_BIND_TILE_MASS] / 8);
            EXPECT_TRUE(std::all_of(seen.begin(), end, [](uint8_t n) { return n == 1; }));
        }
    }
}

// Any 256 x 256-pixel view of 131072 x 131072 cells: no buffer grows with their product.
TEST(MapTilePlan, long_contexts_need_little_memory_and_bounded_slices) {
    for (const TileCase& c : tile_cases()) {
        if (c.desc.len_q != 131072 || c.tile.width != 256) continue;
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_map_tile(c.properties, c.desc, c.tile);
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaPlanInfo info = plan->info();
        uint64_t bytes = info.workspace_bytes;
        for (const uint64_t binding : info.binding_bytes) bytes += binding;
        EXPECT_LE(bytes, uint64_t{2 * 131072 * 64 * 4 + 2 * 131072 * 4 + 256 * 256 * 12 + 4096});
        const double budget = c.properties.device_class == FOVEA_CLASS_CPU ? 2e8 : 1e11;
        EXPECT_LE(info.max_slice_flops, budget);
        EXPECT_GE(info.max_slice_flops * double(info.slice_count), info.flops);
    }
}

TEST(MapTilePlan, a_pixel_above_the_callers_budget_is_refused) {
    FoveaAttentionDesc desc = attention_desc(1, 1, 1, 4096, 4096, 64, 64);
    desc.max_slice_cost = 1e9;
    const FoveaMapTileDesc one = tile_of(0, 4096, 0, 4096, 1, 1);
    const Result<Plan> refused = plan_map_tile(floor_properties(), desc, one);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, FOVEA_LIMIT_EXCEEDED);
    EXPECT_EQ(refused.error().field, "max_slice_cost");
    EXPECT_TRUE(plan_map_tile(floor_properties(), desc, tile_of(0, 4096, 0, 4096, 2, 2)));
    desc.max_slice_cost = 0;  // the planner's own budget rejects nothing
    EXPECT_TRUE(plan_map_tile(floor_properties(), desc, one));
}

}  // namespace
}  // namespace fovea::test
