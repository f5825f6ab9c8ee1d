// How the CPU planner cuts work, as tables; and that neither threads nor their number change a bit.
#include "plan/plan.hpp"
#include "support/cpu_device.hpp"

#include <fovea/fovea.hpp>
#include <fovea/thread_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace fovea::test {
namespace {

constexpr uint32_t kAvx2 = 3, kAvx512 = 4;

FoveaDeviceProperties properties_of(uint32_t threads, uint32_t target) {
    FoveaDeviceProperties properties = cpu_device(threads, target);
    properties.l2_bytes = 1 << 20;
    return properties;
}

struct Shape {
    uint32_t batch, heads_q, heads_kv;
    uint64_t len_q, len_kv;
    uint32_t dim;
    bool causal = false;
    uint32_t outputs = FOVEA_OUTPUT_O;

    FoveaAttentionDesc desc() const {
        Attention call;
        call.batch(batch).heads(heads_q, heads_kv).lengths(len_q, len_kv).dims(dim);
        if (causal) call.causal(Align::top_left);
        call.desc.outputs = outputs;
        return call.desc;
    }
};

struct KernelCase {
    const char* name;
    Shape shape;
    FoveaKernel kernel;
    const char* reason;  // part of it
};

const KernelCase kKernelCases[] = {
    {"one query over many keys", {1, 32, 8, 1, 8192, 128}, FOVEA_KERNEL_DECODE, "share each load"},
    {"twelve rows", {1, 12, 3, 3, 1024, 64}, FOVEA_KERNEL_DECODE, "keys are split"},
    {"thirteen rows",
     {1, 13, 1, 1, 1024, 64},
     FOVEA_KERNEL_FLASH,
     "not decode: it is made for fewer queries"},
    {"narrow heads", {1, 1, 1, 1, 1024, 8}, FOVEA_KERNEL_FLASH, "not decode: it is made for wider heads"},
    {"few keys", {1, 1, 1, 1, 15, 64}, FOVEA_KERNEL_FLASH, "not decode: it is made for more keys"},
    {"six tokens", {2, 2, 2, 6, 6, 2}, FOVEA_KERNEL_FLASH, "online softmax"},
    {"long", {1, 12, 12, 1024, 1024, 64}, FOVEA_KERNEL_FLASH, "online softmax"},
    {"weights",
     {1, 1, 1, 64, 64, 8, false, FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS},
     FOVEA_KERNEL_STAGED,
     "does not support matrix outputs"},
    {"statistics of a decode call",
     {1, 4, 1, 1, 512, 8, false, FOVEA_OUTPUT_O | FOVEA_OUTPUT_ROW_STATS},
     FOVEA_KERNEL_STAGED,
     "row statistics"},
};

TEST(CpuPlan, chooses_the_kernel_by_rows_and_keys) {
    for (const KernelCase& c : kKernelCases) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_attention(properties_of(2, kAvx2), c.shape.desc());
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_EQ(plan->info().kernel, c.kernel) << plan->info().reason;
        EXPECT_NE(strstr(plan->info().reason, c.reason), nullptr) << plan->info().reason;
        EXPECT_NE(plan->explain().find("instruction set: AVX2"), std::string::npos) << plan->explain();
    }
}

// The places of a block, 32 rows apart, use the same sets of L1 if they are whole pages apart.
TEST(CpuPlan, fetches_into_the_second_cache_where_the_first_has_no_more_ways_than_places) {
    const auto fetches_to_second = [](uint64_t l1_bytes, uint32_t dim, FoveaDtype type) {
        FoveaDeviceProperties properties = properties_of(1, kAvx512);
        properties.l1_bytes = l1_bytes;
        FoveaAttentionDesc desc = Shape{1, 4, 1, 1, 4096, dim}.desc();
        desc.k_type = desc.v_type = type;
        const Result<Plan> plan = plan_attention(properties, desc);
        EXPECT_TRUE(plan) << plan.error().text;
        return plan->explain().find("fetched ahead into the second cache") != std::string::npos;
    };
    constexpr uint64_t kKib = 1024;
    EXPECT_TRUE(fetches_to_second(32 * kKib, 128, FOVEA_F32));
    EXPECT_FALSE(fetches_to_second(36 * kKib, 128, FOVEA_F32));
    EXPECT_FALSE(fetches_to_second(0, 128, FOVEA_F32));
    EXPECT_TRUE(fetches_to_second(32 * kKib, 64, FOVEA_F16));
    EXPECT_FALSE(fetches_to_second(32 * kKib, 96, FOVEA_F16));
    EXPECT_FALSE(fetches_to_second(32 * kKib, 128, FOVEA_Q8_0));
}

TEST(CpuPlan, refuses_decode_by_name_where_its_panel_is_too_small) {
    FoveaAttentionDesc desc = Shape{1, 1, 1, 100, 512, 64}.desc();
    desc.kernel = FOVEA_KERNEL_DECODE;
    const Result<Plan> plan = plan_attention(properties_of(1, kAvx512), desc);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, FOVEA_UNSUPPORTED);
    EXPECT_EQ(plan.error().field, "kernel");
}

// The choice's bounds from both sides, for each width of vectors: how many rows of a group and how many keys
// make decode the better kernel.
TEST(CpuPlan, chooses_decode_up_to_the_rows_that_a_target_and_a_head_allow) {
    struct Bound {
        uint32_t lanes, dim, rows;  // rows 0: never
    };
    constexpr Bound kBounds[] = {{1, 15, 0},  {1, 16, 1},  {1, 64, 1},  {4, 15, 0},  {4, 16, 1},
                                 {4, 31, 1},  {4, 32, 4},  {8, 15, 0},  {8, 16, 4},  {8, 31, 4},
                                 {8, 32, 12}, {16, 15, 0}, {16, 16, 4}, {16, 31, 4}, {16, 32, 12}};
    uint32_t checked = 0;
    for (uint32_t target = 1; strcmp(foveaCpuTargetName(target), "unknown") != 0; ++target) {
        SCOPED_TRACE(foveaCpuTargetName(target));
        const auto chosen = [&](uint32_t rows, uint64_t keys, uint32_t dim_qk, uint32_t dim_v) {
            FoveaAttentionDesc desc = Shape{1, rows, 1, 1, keys, dim_qk}.desc();
            desc.dim_v = dim_v;
            const Result<Plan> plan = plan_attention(properties_of(1, target), desc);
            return plan ? plan->info().kernel : FOVEA_KERNEL_AUTO;
        };
        for (const Bound& bound : kBounds) {
            if (bound.lanes != cpu::target_shape(target).lanes) continue;
            SCOPED_TRACE(bound.dim);
            ++checked;
            if (bound.rows > 0) {
                EXPECT_EQ(chosen(bound.rows, 16, bound.dim, bound.dim), FOVEA_KERNEL_DECODE);
                EXPECT_EQ(chosen(bound.rows, 16, 128, bound.dim), FOVEA_KERNEL_DECODE);
                EXPECT_EQ(chosen(bound.rows, 15, bound.dim, bound.dim), FOVEA_KERNEL_FLASH);
            }
            EXPECT_EQ(chosen(bound.rows + 1, 16, bound.dim, bound.dim), FOVEA_KERNEL_FLASH);
            EXPECT_EQ(chosen(bound.rows + 1, 16, bound.dim, 128), FOVEA_KERNEL_FLASH);
            EXPECT_EQ(chosen(bound.rows + 1, 16, 128, bound.dim), FOVEA_KERNEL_FLASH);
        }
    }
    EXPECT_GT(checked, 0u);
}

TEST(CpuPlan, takes_decode_by_name_up_to_the_rows_of_one_panel) {
    for (uint32_t target = 1; strcmp(foveaCpuTargetName(target), "unknown") != 0; ++target) {
        SCOPED_TRACE(foveaCpuTargetName(target));
        const uint32_t panel = cpu::target_shape(target).panel();
        for (const uint32_t rows : {panel, panel + 1}) {
            for (FoveaAttentionDesc desc :
                 {Shape{1, rows, 1, 1, 512, 64}.desc(), Shape{2, 3, 3, rows, 512, 64}.desc()}) {
                desc.kernel = FOVEA_KERNEL_DECODE;
                const Result<Plan> plan = plan_attention(properties_of(1, target), desc);
                EXPECT_EQ(bool(plan), rows == panel);
                if (plan) continue;
                EXPECT_EQ(plan.error().code, FOVEA_UNSUPPORTED);
                EXPECT_EQ(plan.error().field, "kernel");
            }
        }
    }
}

// A limit that holds the scratch of the workers and the partial results of one head is enough: slices shrink
// first.
TEST(CpuPlan, decode_cuts_smaller_slices_before_it_refuses_a_workspace) {
    for (const uint32_t threads : {1u, 3u}) {
        FoveaAttentionDesc desc = Shape{16, 16, 16, 1, 8192, 64}.desc();
        desc.kernel = FOVEA_KERNEL_DECODE;
        const Result<Plan> roomy = plan_attention(properties_of(threads, kAvx2), desc);
        ASSERT_TRUE(roomy) << roomy.error().text;
        const CpuPlan cut = roomy->get()->cpu;
        const uint64_t head = cut.splits * cut.partial_bytes, scratch = cut.scratch_bytes * threads;
        ASSERT_GT(cut.groups_per_slice, 3u);
        EXPECT_EQ(roomy->info().workspace_bytes, scratch + cut.groups_per_slice * head);
        for (const uint64_t heads : {uint64_t{1}, uint64_t{2}, cut.groups_per_slice}) {
            desc.workspace_limit = scratch + heads * head;
            const Result<Plan> tight = plan_attention(properties_of(threads, kAvx2), desc);
            ASSERT_TRUE(tight) << tight.error().text;
            EXPECT_EQ(tight->get()->cpu.groups_per_slice, heads);
            EXPECT_EQ(tight->info().workspace_bytes, desc.workspace_limit);
            EXPECT_EQ(tight->info().slice_count, (256 + heads - 1) / heads);
        }
        desc.workspace_limit = scratch + head - 1;
        const Result<Plan> refused = plan_attention(properties_of(threads, kAvx2), desc);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, FOVEA_LIMIT_EXCEEDED);
        EXPECT_EQ(refused.error().field, "workspace_limit");
    }
}

CpuPlan cut_of(const Shape& shape, uint32_t threads, uint32_t target) {
    const Result<Plan> plan = plan_attention(properties_of(threads, target), shape.desc());
    return plan ? plan->get()->cpu : CpuPlan{};
}

// Work of a causal task grows with its queries: with enough tasks for each thread, taken from the longest on,
// the last one to finish holds the others up for a small part of the whole.
TEST(CpuPlan, balances_causal_triangles) {
    for (const uint32_t threads : {2u, 4u, 8u}) {
        const Shape shape{1, 4, 4, 4096, 4096, 64, true};
        const CpuPlan cut = cut_of(shape, threads, kAvx512);
        ASSERT_GT(cut.tasks, 0u);
        std::vector<double> busy(threads);
        double all = 0;
        for (uint64_t task = 0; task < cut.tasks; ++task) {
            const uint64_t tile = cut.query_tiles - 1 - task / shape.heads_kv;
            const double begin = double(tile * cut.query_tile);
            const double end = std::min(double(shape.len_q), begin + cut.query_tile);
            const double work = (end * end - begin * begin) / 2;
            *std::min_element(busy.begin(), busy.end()) += work;
            all += work;
        }
        EXPECT_LT(*std::max_element(busy.begin(), busy.end()) * threads, all * 1.05) << threads << " threads";
    }
}

TEST(CpuPlan, covers_every_query_once_in_tasks_of_whole_panels) {
    for (const uint64_t len : {1ull, 5ull, 47ull, 48ull, 49ull, 1000ull, 4096ull}) {
        for (const uint32_t group : {1u, 3u, 4u, 8u}) {
            const Shape shape{2, 2 * group, 2, len, 300, 64};
            const CpuPlan cut = cut_of(shape, 3, kAvx512);
            if (cut.splits) continue;  // the decode kernel
            SCOPED_TRACE(testing::Message() << len << " queries, group " << group);
            EXPECT_GE(uint64_t{cut.query_tile} * cut.query_tiles, len);
            EXPECT_LT(uint64_t{cut.query_tile} * (cut.query_tiles - 1), len);
            EXPECT_EQ(cut.tasks, uint64_t{cut.query_tiles} * 4);
            const uint32_t panel = cpu::target_shape(kAvx512).panel();
            EXPECT_GE(cut.panels * panel, cut.query_tile * group);
            if (cut.query_tiles > 1) {
                EXPECT_EQ(cut.query_tile * group % panel, 0u);
            }
        }
    }
}

TEST(CpuPlan, splits_keys_by_length_and_heads_alone) {
    struct SplitCase {
        uint64_t keys;
        uint32_t heads;
        uint64_t splits;
    };
    for (const SplitCase& c : {SplitCase{100, 2, 1},
                               {512, 2, 1},
                               {513, 2, 2},
                               {8192, 1, 16},
                               {8192, 2, 16},
                               {8192, 4, 8},
                               {8192, 8, 4},
                               {8192, 32, 4},
                               {32768, 2, 16},
                               {1 << 20, 2, 64}}) {
        for (const uint32_t threads : {1u, 2u, 16u}) {
            for (const uint32_t batch : {1u, 7u}) {
                const CpuPlan cut = cut_of({batch, 4 * c.heads, c.heads, 1, c.keys, 64}, threads, kAvx2);
                EXPECT_EQ(cut.splits, c.splits) << c.keys << " keys, " << c.heads << " heads";
                EXPECT_EQ(cut.tasks, batch * c.heads * c.splits);
                EXPECT_GE(cut.splits * cut.split_keys, c.keys);
            }
        }
    }
}

TEST(CpuPlan, small_problems_wake_no_thread) {
    EXPECT_TRUE(cut_of({2, 2, 2, 6, 6, 2}, 8, kAvx2).serial);
    EXPECT_FALSE(cut_of({1, 12, 12, 1024, 1024, 64}, 8, kAvx2).serial);
}

TEST(CpuPlan, workspace_grows_with_the_length_at_most_and_stays_small) {
    for (const uint32_t threads : {1u, 4u}) {
        for (const Shape& shape : {Shape{1, 1, 1, 16384, 16384, 64, true}, Shape{1, 32, 8, 1, 16384, 128}}) {
            const Result<Plan> plan = plan_attention(properties_of(threads, kAvx512), shape.desc());
            ASSERT_TRUE(plan);
            EXPECT_LE(plan->info().workspace_bytes, uint64_t{threads} * (4u << 20));
        }
    }
}

// Small calls run on one worker, so sweeps of them would not notice a workspace with scratch for only one.
TEST(CpuPlan, a_workspace_has_scratch_for_every_worker) {
    FoveaAttentionDesc desc = Shape{2, 8, 4, 2048, 2048, 64}.desc();
    desc.workspace_limit = uint64_t{1} << 30;
    FoveaAttentionDesc plain = desc;
    plain.kernel = FOVEA_KERNEL_PLAIN;
    FoveaLinearDesc linear{};
    linear.struct_size = sizeof linear;
    linear.n_in = 256, linear.n_out = 512, linear.rows = 4096;
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.height = tile.width = 64;
    tile.outputs = FOVEA_TILE_MASS;
    const std::function<Result<Plan>(const FoveaDeviceProperties&)> calls[] = {
        [&](const FoveaDeviceProperties& properties) { return plan_attention(properties, desc); },
        [&](const FoveaDeviceProperties& properties) { return plan_attention(properties, plain); },
        [&](const FoveaDeviceProperties& properties) { return plan_linear(properties, linear); },
        [&](const FoveaDeviceProperties& properties) { return plan_map_tile(properties, desc, tile); },
        [&](const FoveaDeviceProperties& properties) {
            return plan_attention_backward(properties, desc, attention_backward());
        }};
    for (const auto& call : calls) {
        const Result<Plan> one = call(properties_of(1, kAvx2)), four = call(properties_of(4, kAvx2));
        ASSERT_TRUE(one && four);
        SCOPED_TRACE(one->info().reason);
        EXPECT_GT(one->info().workspace_bytes, 0u);
        EXPECT_EQ(four->info().workspace_bytes, 4 * one->info().workspace_bytes);
    }
}

TEST(CpuPlan, a_slice_budget_is_kept_down_to_the_smallest_slice_and_refuses_nothing) {
    const struct {
        FoveaKernel kernel;
        Shape shape;
    } kCalls[] = {{FOVEA_KERNEL_FLASH, {2, 4, 2, 300, 500, 64, true}},
                  {FOVEA_KERNEL_STAGED, {2, 4, 2, 300, 500, 64, true, FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS}},
                  {FOVEA_KERNEL_DECODE, {2, 32, 8, 1, 4096, 64}},
                  {FOVEA_KERNEL_PLAIN, {2, 4, 2, 300, 500, 64, true}},
                  {FOVEA_KERNEL_REFERENCE, {2, 4, 2, 300, 500, 64, true}}};
    for (const auto& call : kCalls) {
        for (const uint32_t threads : {1u, 4u}) {
            SCOPED_TRACE(kernel_name(call.kernel) + (", threads: " + std::to_string(threads)));
            FoveaAttentionDesc desc = call.shape.desc();
            desc.kernel = call.kernel;
            double smallest = 0;
            for (const double budget : {1.0, 1e4, 1e5, 1e6, 1e7, 1e8, 1e12}) {
                desc.max_slice_cost = budget;
                const Result<Plan> plan = plan_attention(properties_of(threads, kAvx2), desc);
                ASSERT_TRUE(plan) << plan.error().text;
                const FoveaPlanInfo info = plan->info();
                if (smallest == 0) smallest = info.max_slice_flops;
                EXPECT_LE(info.max_slice_flops, std::max(budget, smallest)) << "budget " << budget;
                EXPECT_GE(info.max_slice_flops * double(info.slice_count), info.flops) << "budget " << budget;
            }
            EXPECT_GT(smallest, 1);
        }
    }
}

TEST(CpuPlan, slices_of_gradients_hold_all_work_and_keep_their_budget) {
    for (const uint32_t gradients : {uint32_t(FOVEA_GRAD_Q), uint32_t(FOVEA_GRAD_K | FOVEA_GRAD_V), 0u}) {
        FoveaAttentionDesc desc = Shape{2, 8, 2, 300, 500, 64}.desc();
        FoveaAttentionBackwardDesc backward = attention_backward(gradients);
        backward.kernel = FOVEA_KERNEL_FLASH;
        double smallest = 0;
        for (const double budget : {1.0, 1e6, 1e7, 1e8, 1e12}) {
            SCOPED_TRACE("gradients " + std::to_string(gradients) + ", budget " + std::to_string(budget));
            desc.max_slice_cost = budget;
            const Result<Plan> plan = plan_attention_backward(properties_of(2, kAvx2), desc, backward);
            ASSERT_TRUE(plan) << plan.error().text;
            const FoveaPlanInfo info = plan->info();
            if (smallest == 0) smallest = info.max_slice_flops;
            EXPECT_LE(info.max_slice_flops, std::max(budget, smallest));
            EXPECT_GE(info.max_slice_flops * double(info.slice_count), info.flops);
        }
    }
}

TEST(CpuPlan, gradients_keep_the_limit_of_the_workspace) {
    FoveaAttentionDesc desc = Shape{2, 8, 4, 512, 512, 64}.desc();
    FoveaAttentionBackwardDesc backward = attention_backward();
    const Result<Plan> plan = plan_attention_backward(properties_of(4, kAvx2), desc, backward);
    ASSERT_TRUE(plan) << plan.error().text;
    ASSERT_EQ(plan->info().kernel, FOVEA_KERNEL_FLASH);
    desc.workspace_limit = plan->info().workspace_bytes;
    const Result<Plan> just = plan_attention_backward(properties_of(4, kAvx2), desc, backward);
    ASSERT_TRUE(just) << just.error().text;
    EXPECT_EQ(just->info().kernel, FOVEA_KERNEL_FLASH);
    --desc.workspace_limit;
    const Result<Plan> less = plan_attention_backward(properties_of(4, kAvx2), desc, backward);
    ASSERT_TRUE(less) << less.error().text;
    EXPECT_EQ(less->info().kernel, FOVEA_KERNEL_PLAIN);
    EXPECT_LE(less->info().workspace_bytes, desc.workspace_limit);
    backward.kernel = FOVEA_KERNEL_FLASH;
    const Result<Plan> refused = plan_attention_backward(properties_of(4, kAvx2), desc, backward);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "workspace_limit");
}

// Buffers filled by a fixed rule, and the bytes of o and lse after a run.
std::vector<std::byte> run_with(const Shape& shape, uint32_t target, uint32_t threads) {
    FoveaAttentionDesc desc = shape.desc();
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    const Result<Plan> plan = plan_attention(properties_of(threads, target), desc);
    EXPECT_TRUE(plan);
    const FoveaPlanInfo info = plan->info();
    std::vector<std::vector<float>> memory(FOVEA_BIND_COUNT);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n) {
        uint32_t state = n + 1;
        memory[n].resize(size_t(info.binding_bytes[n] / 4));
        for (float& x : memory[n])
            state = state * 1664525u + 1013904223u, x = float(state >> 8) * 0x1p-23f - 1;
        bindings[n] = {memory[n].data(), info.binding_bytes[n]};
    }
    std::vector<std::byte> workspace(size_t(info.workspace_bytes) + 64);
    ThreadPool pool(threads);
    const FoveaParallel parallel = pool.parallel();
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings;
    const size_t skew = (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
    run.workspace = {workspace.data() + skew, info.workspace_bytes};
    if (threads > 1) run.parallel = &parallel;
    const Result<void> done = plan->run_cpu(run);
    EXPECT_TRUE(done) << done.error().text;
    std::vector<std::byte> result;
    for (const uint32_t n : {uint32_t{FOVEA_BIND_O}, uint32_t{FOVEA_BIND_LSE}}) {
        const auto* from = reinterpret_cast<const std::byte*>(memory[n].data());
        result.insert(result.end(), from, from + info.binding_bytes[n]);
    }
    return result;
}

TEST(CpuPlan, threads_change_no_bit) {
    const uint32_t best = cpu_properties(1)->cpu_target;
    for (uint32_t target = 1; target <= best; ++target) {
        if (cpu::runnable_targets() >> target & 1u) {
            for (const Shape& shape : {Shape{1, 4, 2, 150, 300, 20, true}, Shape{2, 8, 2, 1, 2500, 40},
                                       Shape{1, 2, 2, 3, 1400, 33}, Shape{3, 5, 1, 64, 65, 16}}) {
                const std::vector<std::byte> one = run_with(shape, target, 1);
                for (const uint32_t threads : {2u, 3u, 7u})
                    EXPECT_EQ(run_with(shape, target, threads), one)
                        << foveaCpuTargetName(target) << ", " << threads << " threads";
            }
        }
    }
}

// Each set of instructions against each other one: they round in different orders and nothing more.
TEST(CpuPlan, instruction_sets_agree) {
    const uint32_t best = cpu_properties(1)->cpu_target;
    for (const Shape& shape : {Shape{1, 4, 2, 150, 300, 20, true}, Shape{2, 8, 2, 1, 2500, 40}}) {
        const std::vector<std::byte> expected = run_with(shape, best, 1);
        for (uint32_t target = 1; target < best; ++target) {
            if (!(cpu::runnable_targets() >> target & 1u)) continue;
            const std::vector<std::byte> got = run_with(shape, target, 1);
            ASSERT_EQ(got.size(), expected.size());
            for (size_t n = 0; n + 4 <= got.size(); n += 4) {
                float a, b;
                memcpy(&a, &got[n], 4);
                memcpy(&b, &expected[n], 4);
                ASSERT_NEAR(a, b, 4e-6 * std::max(1.0f, std::abs(b))) << foveaCpuTargetName(target);
            }
        }
    }
}

}  // namespace
}  // namespace fovea::test
