// The measured speed of a device sizes the next plan's slices and changes nothing else.
#include "shaders/planned.hpp"

#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace fovea {
namespace {

using test::attention_desc;

FoveaDeviceProperties measured(FoveaDeviceProperties properties, double slice_cost) {
    properties.slice_cost = slice_cost;
    return properties;
}

struct SizedCase {
    const char* name;
    FoveaDeviceProperties properties;
    FoveaAttentionDesc desc;
};

std::vector<SizedCase> cases() {
    FoveaDeviceProperties shuffles = test::floor_properties(), matrices = test::gpu_properties(),
                          flexible = test::gpu_properties();
    test::add_shuffles(shuffles, 8);
    test::add_matrices(matrices);
    test::add_flexible_matrices(flexible, 128);
    std::vector<SizedCase> all;
    for (const auto& [name, properties] : {std::pair{"software, smallest limits", test::floor_properties()},
                                           {"software with shuffles", shuffles},
                                           {"GPU", test::gpu_properties()},
                                           {"GPU with matrices", matrices},
                                           {"GPU with flexible matrices", flexible}}) {
        all.push_back({name, properties, attention_desc(2, 4, 4, 512, 512, 64, 64)});
        all.push_back({name, properties, attention_desc(1, 32, 1, 300, 4096, 128, 128)});
        all.push_back({name, properties, attention_desc(1, 8, 8, 1, 1000, 72, 40)});
        all.back().desc.flags = FOVEA_FLAG_CAUSAL, all.back().desc.align = FOVEA_ALIGN_TOP_LEFT;
    }
    return all;
}

// From what no workgroup can keep to what no problem here reaches.
std::vector<double> measured_costs() {
    std::vector<double> costs;
    for (double cost = 1; cost < 1e13; cost *= 3) costs.push_back(cost);
    return costs;
}

// The kernel, and the shaders of a slice as they are specialised: what the results' bits depend on.
std::string way_of_computing(const Plan& plan) {
    std::string way = foveaKernelName(plan.info().kernel);
    for (const FoveaDispatch& d : test::dispatches_of(plan, 0)) {
        way += std::string("; ") + foveaShaderName(d.shader) + " " + std::to_string(d.subgroup_size);
        // Only the cost decides if a slice may have several entries, and this changes no result.
        for (uint32_t i = 0; i < d.spec_count; ++i)
            way += " " + std::to_string(i == FOVEA_SPEC_CALL ? d.spec[i] & ~shader::kEntriesCall : d.spec[i]);
    }
    return way;
}

TEST(SizedPlan, a_measured_cost_changes_no_kernel_and_refuses_nothing) {
    uint32_t other_kernels = 0, refused = 0;
    for (const SizedCase& c : cases()) {
        const Result<Plan> unsized = plan_attention(c.properties, c.desc);
        ASSERT_TRUE(unsized) << c.name << ": " << unsized.error().text;
        std::set<uint64_t> slice_counts;
        for (const double cost : measured_costs()) {
            const Result<Plan> plan = plan_attention(measured(c.properties, cost), c.desc);
            ASSERT_TRUE(plan) << c.name << ", measured " << cost << ": " << plan.error().text;
            EXPECT_EQ(way_of_computing(*plan), way_of_computing(*unsized)) << c.name << ", measured " << cost;
            slice_counts.insert(plan->info().slice_count);
            // The same as a budget of the description's own does both: there is something to keep from.
            FoveaAttentionDesc limited = c.desc;
            limited.max_slice_cost = cost;
            const Result<Plan> asked = plan_attention(c.properties, limited);
            if (!asked) ++refused;
            if (asked && asked->info().kernel != unsized->info().kernel) ++other_kernels;
        }
        EXPECT_GT(slice_counts.size(), 2u) << c.name << ": what was measured must size slices";
    }
    EXPECT_GT(other_kernels, 0u);
    EXPECT_GT(refused, 0u);
}

TEST(SizedPlan, a_budget_of_the_callers_own_comes_first) {
    FoveaAttentionDesc desc = attention_desc(2, 4, 4, 512, 512, 64, 64);
    desc.max_slice_cost = 1e8;
    const Result<Plan> asked = plan_attention(test::floor_properties(), desc);
    const Result<Plan> sized = plan_attention(measured(test::floor_properties(), 1e6), desc);
    ASSERT_TRUE(asked && sized);
    EXPECT_EQ(sized->info().slice_count, asked->info().slice_count);
    desc.max_slice_cost = 1;  // no workgroup keeps it
    EXPECT_FALSE(plan_attention(measured(test::floor_properties(), 1e8), desc));
}

TEST(SizedPlan, a_measured_cost_refuses_no_tile) {
    const FoveaAttentionDesc desc = attention_desc(1, 2, 2, 512, 512, 64, 64);
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.width = tile.height = 128;
    std::set<uint64_t> slice_counts;
    for (const double cost : measured_costs()) {
        const Result<Plan> plan = plan_map_tile(measured(test::floor_properties(), cost), desc, tile);
        ASSERT_TRUE(plan) << "measured " << cost << ": " << plan.error().text;
        slice_counts.insert(plan->info().slice_count);
    }
    EXPECT_GT(slice_counts.size(), 2u);
    FoveaAttentionDesc limited = desc;
    limited.max_slice_cost = measured_costs().front();
    EXPECT_FALSE(plan_map_tile(test::floor_properties(), limited, tile))
        << "the smallest is nothing to keep from";
}

TEST(SizedPlan, a_cost_that_no_device_has_is_an_error) {
    const FoveaAttentionDesc desc = attention_desc(1, 2, 2, 16, 16, 8, 8);
    for (const double cost : {-1.0, double(NAN)}) {
        const Result<Plan> plan = plan_attention(measured(test::gpu_properties(), cost), desc);
        ASSERT_FALSE(plan);
        EXPECT_EQ(plan.error().field, "properties.slice_cost");
    }
}

// An engine in float64 has it in its properties.
TEST(ForcedKernel, is_that_of_every_call_that_may_name_one) {
    FoveaDeviceProperties properties = *cpu_properties(1);
    const FoveaAttentionDesc desc = attention_desc(1, 2, 2, 16, 16, 8, 8);
    FoveaRopeDesc rope{};
    rope.struct_size = sizeof rope, rope.batch = rope.heads = 1, rope.len = 4, rope.dim = 8;
    FoveaLinearDesc linear{};
    linear.struct_size = sizeof linear, linear.rows = 2, linear.n_in = linear.n_out = 8;
    FoveaMergeDesc merge{};
    merge.struct_size = sizeof merge, merge.parts = 2, merge.batch = merge.heads = 1, merge.len = 3,
    merge.dim = 8;
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile, tile.width = tile.height = 4;
    FoveaAppendDesc append{};
    append.struct_size = sizeof append, append.batch = append.heads = 1, append.dim = 8;
    append.len = append.capacity = 4;
    for (const FoveaKernel kernel : {FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE}) {
        properties.forced_kernel = kernel;
        const Result<Plan> plans[] = {plan_attention(properties, desc),
                                      plan_attention_backward(properties, desc, attention_backward()),
                                      plan_map_tile(properties, desc, tile),
                                      plan_rope(properties, rope),
                                      plan_linear(properties, linear),
                                      plan_merge(properties, merge)};
        for (const Result<Plan>& plan : plans) {
            ASSERT_TRUE(plan) << plan.error().text;
            EXPECT_EQ(plan->info().kernel, kernel) << plan->info().reason;
        }
        EXPECT_TRUE(plan_append(properties, append)) << "it moves bits, by the one kernel there is";
    }
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FoveaKernel(99)}) {
        properties.forced_kernel = kernel;
        const Result<Plan> plan = plan_attention(properties, desc);
        ASSERT_FALSE(plan);
        EXPECT_EQ(plan.error().field, "properties.forced_kernel");
    }
}

}  // namespace
}  // namespace fovea
