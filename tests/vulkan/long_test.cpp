// A long problem through the staged kernels in blocks of query rows: bounded workspace, bounded slices, and
// the same bits whatever the order of the slices.
#include "support/vulkan_executor.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace fovea {
namespace {

// 17 GFLOP for 4096 tokens: a second or two on a driver that compiles to vector code, minutes on one that
// does not.
uint64_t length_for_this_driver() {
    const char* driver = std::getenv("FOVEA_TEST_DRIVER");
    return driver && std::string_view(driver) == "swiftshader" ? 1024 : 4096;
}

TEST(LongAttention, staged_blocks_stay_within_their_budgets_in_any_order) {
    const uint64_t length = length_for_this_driver();
    Result<Engine> engine = Engine::open(test::unchecked_vulkan(false));
    ASSERT_TRUE(engine) << engine.error().text;
    Attention call;
    call.batch(1).heads(4).lengths(length, length).dims(64).kernel(FOVEA_KERNEL_STAGED);
    call.desc.max_slice_cost = 1e8;

    const Result<Plan> plan = plan_attention(engine->properties(), call);
    ASSERT_TRUE(plan) << plan.error().text;
    const FoveaPlanInfo info = plan->info();
    EXPECT_LE(info.workspace_bytes, uint64_t{64} << 20);
    EXPECT_LE(info.max_slice_flops, call.desc.max_slice_cost);
    EXPECT_GT(info.slice_count, 4u);

    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> inputs[3];
    for (std::vector<float>& input : inputs) {
        input.resize(4 * length * 64);
        for (float& x : input) x = normal(random);
    }
    std::vector<float> outputs[2] = {std::vector<float>(4 * length * 64),
                                     std::vector<float>(4 * length * 64)};
    for (int run = 0; run < 2; ++run) {
        HostBindings bindings = {};
        const FoveaBinding names[] = {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V};
        for (int i = 0; i < 3; ++i) bindings[names[i]] = {inputs[i].data(), inputs[i].size() * sizeof(float)};
        bindings[FOVEA_BIND_O] = {outputs[run].data(), outputs[run].size() * sizeof(float)};
        RunOptions shuffled;
        shuffled.slice_shuffle_seed = uint64_t(run) * 99;
        const Result<RunReport> report = engine->attention(call, bindings, shuffled);
        ASSERT_TRUE(report) << report.error().text;
        EXPECT_EQ(report->slices, info.slice_count);
    }
    EXPECT_EQ(std::memcmp(outputs[0].data(), outputs[1].data(), outputs[0].size() * sizeof(float)), 0);
}

TEST(LongAttention, the_planners_own_budget_refuses_nothing) {
    Result<Engine> engine = Engine::open(test::unchecked_vulkan(false));
    ASSERT_TRUE(engine) << engine.error().text;
    Attention call;  // one row of keys costs more than a software driver's slice
    call.batch(1).heads(1).lengths(1, 1 << 20).dims(32).types(FOVEA_F16);
    call.desc.o_type = FOVEA_F32;
    const Result<Plan> plan = plan_attention(engine->properties(), call);
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->info().slice_count, 1u);
}

TEST(LongAttention, matrices_that_do_not_fit_are_refused_by_name) {
    Result<Engine> engine = Engine::open(test::unchecked_vulkan(false));
    ASSERT_TRUE(engine) << engine.error().text;
    Attention call;
    call.batch(1).heads(64).lengths(1 << 20, 1 << 20).dims(64).outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS);
    // Buffers of the size that the plan asks for: no device has 280 TB.
    const Result<Plan> plan = plan_attention(engine->properties(), call);
    const Error refusal =
        plan ? engine->buffer(plan->info().binding_bytes[FOVEA_BIND_WEIGHTS]).error() : plan.error();
    EXPECT_TRUE(refusal.code == FOVEA_LIMIT_EXCEEDED || refusal.code == FOVEA_OUT_OF_DEVICE_MEMORY)
        << refusal.code;
    // It says how much: "bytes" of a binding, or MiB of the device's memory.
    EXPECT_TRUE(refusal.text.find("bytes") != std::string::npos ||
                refusal.text.find("MiB") != std::string::npos)
        << refusal.field << ": " << refusal.text;
}

}  // namespace
}  // namespace fovea
