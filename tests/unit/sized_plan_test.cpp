// What a device was measured to do sizes the next plan's slices and changes nothing else.
#include "runtime/sized_plan.hpp"

#include "shaders/planned.hpp"

#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <set>

namespace fovea::runtime {
namespace {

using test::attention_desc;

struct SizedCase {
    const char* name;
    FoveaDeviceFacts facts;
    FoveaAttentionDesc desc;
};

std::vector<SizedCase> cases() {
    FoveaDeviceFacts shuffles = test::floor_facts(), matrices = test::gpu_facts(),
                     flexible = test::gpu_facts();
    test::add_shuffles(shuffles, 8);
    test::add_matrices(matrices);
    test::add_flexible_matrices(flexible, 128);
    std::vector<SizedCase> all;
    for (const auto& [name, facts] : {std::pair{"software, smallest limits", test::floor_facts()},
                                      {"software with shuffles", shuffles},
                                      {"GPU", test::gpu_facts()},
                                      {"GPU with matrices", matrices},
                                      {"GPU with flexible matrices", flexible}}) {
        all.push_back({name, facts, attention_desc(2, 4, 4, 512, 512, 64, 64)});
        all.push_back({name, facts, attention_desc(1, 32, 1, 300, 4096, 128, 128)});
        all.push_back({name, facts, attention_desc(1, 8, 8, 1, 1000, 72, 40)});
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
        // Whether a slice may have several entries is the cost's to say, and changes no number.
        for (uint32_t i = 0; i < d.spec_count; ++i)
            way += " " + std::to_string(i == FOVEA_SPEC_CALL ? d.spec[i] & ~shader::kEntriesCall : d.spec[i]);
    }
    return way;
}

TEST(SizedPlan, a_measured_cost_changes_no_kernel_and_refuses_nothing) {
    uint32_t other_kernels = 0, refused = 0;
    for (const SizedCase& c : cases()) {
        const Result<Plan> unsized = plan_sized_attention(c.facts, c.desc, 0);
        ASSERT_TRUE(unsized) << c.name << ": " << unsized.error().text;
        std::set<uint64_t> slice_counts;
        for (const double cost : measured_costs()) {
            const Result<Plan> plan = plan_sized_attention(c.facts, c.desc, cost);
            ASSERT_TRUE(plan) << c.name << ", measured " << cost << ": " << plan.error().text;
            EXPECT_EQ(way_of_computing(*plan), way_of_computing(*unsized)) << c.name << ", measured " << cost;
            slice_counts.insert(plan->info().slice_count);
            // The same as a budget of the description's own does both: there is something to keep from.
            FoveaAttentionDesc limited = c.desc;
            limited.max_slice_cost = cost;
            const Result<Plan> asked = plan_attention(c.facts, limited);
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
    const Result<Plan> asked = plan_attention(test::floor_facts(), desc);
    const Result<Plan> sized = plan_sized_attention(test::floor_facts(), desc, 1e6);
    ASSERT_TRUE(asked && sized);
    EXPECT_EQ(sized->info().slice_count, asked->info().slice_count);
    desc.max_slice_cost = 1;  // no workgroup keeps it
    EXPECT_FALSE(plan_sized_attention(test::floor_facts(), desc, 1e8));
}

TEST(SizedPlan, a_measured_cost_refuses_no_tile) {
    const FoveaAttentionDesc desc = attention_desc(1, 2, 2, 512, 512, 64, 64);
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.width = tile.height = 128;
    std::set<uint64_t> slice_counts;
    for (const double cost : measured_costs()) {
        const Result<Plan> plan = plan_sized_map_tile(test::floor_facts(), desc, tile, cost);
        ASSERT_TRUE(plan) << "measured " << cost << ": " << plan.error().text;
        slice_counts.insert(plan->info().slice_count);
    }
    EXPECT_GT(slice_counts.size(), 2u);
    FoveaAttentionDesc limited = desc;
    limited.max_slice_cost = measured_costs().front();
    EXPECT_FALSE(plan_map_tile(test::floor_facts(), limited, tile)) << "the smallest is nothing to keep from";
}

}  // namespace
}  // namespace fovea::runtime
