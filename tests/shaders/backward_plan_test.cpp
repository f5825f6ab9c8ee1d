// Gradients as plans on Vulkan: slices cover every query and every key once, stay within their budget and the
// device's descriptors, and say what keeps them apart.
#include "shaders/planned.hpp"
#include "shaders/windows.hpp"

#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea::test {
namespace {

struct GradientPlanCase {
    const char* name;
    FoveaDeviceProperties properties;
    FoveaAttentionDesc desc;
    uint32_t gradients = 0;
};

std::vector<GradientPlanCase> gradient_plan_cases() {
    const FoveaAttentionDesc small = attention_desc(2, 6, 3, 77, 203, 40, 24);
    FoveaAttentionDesc tight = small, tightest = small;
    tight.max_slice_cost = 2e6;
    tightest.max_slice_cost = 7e5;
    FoveaAttentionDesc causal = tight;
    causal.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW, causal.align = FOVEA_ALIGN_TOP_LEFT;
    causal.window_left = 20;
    const FoveaAttentionDesc wide = attention_desc(1, 4, 1, 33, 65, 300, 7);
    return {{"whole heads", gpu_properties(), small},
            {"whole heads on the floor", floor_properties(), small},
            {"cost cuts rows and keys", gpu_properties(), tight},
            {"cost cuts to a tile", floor_properties(), tightest},
            {"a window", gpu_properties(), causal},
            {"columns of several workgroups", gpu_properties(), wide},
            {"queries alone", gpu_properties(), tight, FOVEA_GRAD_Q},
            {"keys alone", gpu_properties(), tight, FOVEA_GRAD_K},
            {"values alone", gpu_properties(), tight, FOVEA_GRAD_V},
            {"one of each", gpu_properties(), attention_desc(1, 1, 1, 1, 1, 1, 1)}};
}

// The rows of q of a group's heads are stored token by token, so their window is small; those of lse never
// are.
TEST(BackwardPlan, the_window_of_lse_spans_the_heads_of_a_group) {
    FoveaAttentionDesc d = attention_desc(1, 4, 1, 1 << 18, 4, 1, 1);
    d.q_strides = d.o_strides = {4 << 18, 1, 4};
    FoveaDeviceProperties properties = gpu_properties();
    FoveaAttentionBackwardDesc backward = attention_backward(FOVEA_GRAD_Q);
    backward.do_strides = backward.dq_strides = d.q_strides;
    ASSERT_TRUE(plan_attention_backward(properties, d, backward));
    properties.max_storage_range = 1 << 20;
    const Result<Plan> plan = plan_attention_backward(properties, d, backward);
    ASSERT_FALSE(plan) << "the window of lse has 3 MiB";
    EXPECT_NE(plan.error().text.find("LSE"), std::string::npos) << plan.error().text;
}

TEST(BackwardPlan, covers_every_query_and_every_key_once) {
    for (const GradientPlanCase& c : gradient_plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan =
            plan_attention_backward(c.properties, c.desc, attention_backward(c.gradients));
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaPlanInfo info = plan->info();
        const FoveaAttentionDesc& d = c.desc;
        const uint32_t group = d.heads_q / d.heads_kv, wanted = c.gradients ? c.gradients : 7;
        std::vector<uint8_t> queries(d.batch * d.heads_q * d.len_q), keys(d.batch * d.heads_kv * d.len_kv);
        for (uint64_t slice = 0; slice < info.slice_count; ++slice) {
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
            ASSERT_GE(all.size(), 3u);
            for (const FoveaDispatch& dispatch : all) expect_windows_within(dispatch, info, c.properties);
            const FoveaDispatch& last = all.back();
            const auto push = push_of<shader::BackwardPush>(last);
            const bool of_keys = last.shader == uint32_t(Shader::backward_key);
            EXPECT_TRUE(of_keys || last.shader == uint32_t(Shader::backward_query));
            EXPECT_EQ(push.heads, group);
            const uint32_t columns = last.groups[2] * last.spec[FOVEA_SPEC_THREADS] * 4;
            EXPECT_GE(columns, of_keys ? std::max(d.dim_qk, d.dim_v) : d.dim_qk);
            if (of_keys) {
                EXPECT_EQ(push.slice.rows, d.len_q);
                EXPECT_GE(last.groups[0] * shader::kBackwardKeys, push.key_count);
                const uint64_t head = push.slice.first_batch * d.heads_kv + push.slice.first_head / group;
                for (uint32_t j = 0; j < push.key_count; ++j) ++keys[head * d.len_kv + push.first_key + j];
            } else {
                EXPECT_GE(last.groups[0] * shader::kBackwardRows, push.slice.rows);
                EXPECT_EQ(last.groups[1], group);
                for (uint32_t h = 0; h < group; ++h) {
                    const uint64_t head = push.slice.first_batch * d.heads_q + push.slice.first_head + h;
                    for (uint32_t i = 0; i < push.slice.rows; ++i)
                        ++queries[head * d.len_q + push.slice.first_row + i];
                }
            }
        }
        const auto all_are = [](const std::vector<uint8_t>& seen, uint8_t times) {
            return std::all_of(seen.begin(), seen.end(), [&](uint8_t n) { return n == times; });
        };
        EXPECT_TRUE(all_are(queries, wanted & FOVEA_GRAD_Q ? 1 : 0));
        EXPECT_TRUE(all_are(keys, wanted & (FOVEA_GRAD_K | FOVEA_GRAD_V) ? 1 : 0));
    }
}

TEST(BackwardPlan, kernels_wait_for_their_parameters_and_slices_for_each_other) {
    for (const GradientPlanCase& c : gradient_plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan =
            plan_attention_backward(c.properties, c.desc, attention_backward(c.gradients));
        ASSERT_TRUE(plan) << plan.error().text;
        for (const uint64_t slice : {uint64_t{0}, plan->info().slice_count - 1}) {
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
            // Parameters, views and gathered inputs are written apart from each other, and the kernel reads
            // what all of them wrote.
            const FoveaDispatchBinding* read = binding_at(all.back(), FOVEA_SLOT_EXTRA);
            ASSERT_TRUE(read && !read->written && all.back().barrier_before);
            uint64_t written = read->offset;
            for (size_t n = 0; n + 1 < all.size(); ++n) {
                SCOPED_TRACE(testing::Message() << "dispatch " << n);
                const FoveaDispatchBinding* part = binding_at(all[n], FOVEA_SLOT_EXTRA);
                ASSERT_TRUE(part && part->written);
                EXPECT_EQ(all[n].barrier_before, 0u);
                EXPECT_GE(part->offset, written);
                written = part->offset + part->size;
            }
            EXPECT_GE(read->offset + read->size, written);
        }
        EXPECT_EQ(plan->info().slices_share_workspace, plan->info().slice_count > 1 ? 1u : 0u);
    }
}

// The least cost of a slice is counted here, from the products that each pair of an unmasked call takes.
TEST(BackwardPlan, stays_within_its_cost) {
    for (const GradientPlanCase& c : gradient_plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan =
            plan_attention_backward(c.properties, c.desc, attention_backward(c.gradients));
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaPlanInfo info = plan->info();
        const double limit = c.desc.max_slice_cost > 0                      ? c.desc.max_slice_cost
                             : c.properties.device_class == FOVEA_CLASS_CPU ? 2e8
                                                                            : 1e11;
        EXPECT_LE(info.max_slice_flops, limit);
        for (uint64_t slice = 0; slice < info.slice_count && !c.desc.flags; ++slice) {
            const FoveaDispatch last = dispatches_of(*plan, slice).back();
            const auto push = push_of<shader::BackwardPush>(last);
            const bool of_keys = last.shader == uint32_t(Shader::backward_key);
            const double pairs =
                double(push.heads) * push.slice.rows * (of_keys ? push.key_count : c.desc.len_kv);
            EXPECT_LE(pairs * 2 * (c.desc.dim_qk + c.desc.dim_v), info.max_slice_flops) << "slice " << slice;
        }
    }
}

TEST(BackwardPlan, a_budget_below_its_smallest_slice_is_refused) {
    FoveaAttentionDesc desc = attention_desc(1, 4, 2, 64, 64, 16, 16);
    for (const uint32_t gradient : {FOVEA_GRAD_Q, FOVEA_GRAD_K}) {
        desc.max_slice_cost = 2000;
        const Result<Plan> plan =
            plan_attention_backward(gpu_properties(), desc, attention_backward(gradient));
        ASSERT_FALSE(plan);
        EXPECT_EQ(plan.error().code, FOVEA_LIMIT_EXCEEDED);
        EXPECT_EQ(plan.error().field, "max_slice_cost");
    }
}

TEST(BackwardPlan, a_gpu_gets_the_code_that_its_problem_needs) {
    const auto general = [](void (*change)(FoveaAttentionDesc&)) {
        FoveaAttentionDesc desc = attention_desc(1, 2, 2, 16, 16, 8, 8);
        change(desc);
        const Result<Plan> plan = plan_attention_backward(gpu_properties(), desc, attention_backward());
        EXPECT_TRUE(plan) << plan.error().text;
        return plan ? dispatches_of(*plan, 0).back().spec[FOVEA_SPEC_CALL] & shader::kGeneralCall : 99u;
    };
    EXPECT_EQ(general([](FoveaAttentionDesc&) {}), 0u);
    EXPECT_EQ(
        general([](FoveaAttentionDesc& d) { d.flags = FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_TOP_LEFT; }),
        0u);
    EXPECT_EQ(general([](FoveaAttentionDesc& d) { d.softcap = 3; }), 1u);
    EXPECT_EQ(
        general([](FoveaAttentionDesc& d) { d.flags = FOVEA_FLAG_ALIBI, d.align = FOVEA_ALIGN_TOP_LEFT; }),
        1u);
    EXPECT_EQ(general([](FoveaAttentionDesc& d) { d.dropout_p = 0.5f; }), 1u);
    EXPECT_EQ(general([](FoveaAttentionDesc& d) { d.mask.present = 1, d.mask.type = FOVEA_U8; }), 1u);
    EXPECT_EQ(general([](FoveaAttentionDesc& d) { d.bias.present = 1; }), 1u);
}

struct SharedBias {
    uint32_t batch, heads;
    int64_t rows;
};

// How often each number of the gradients of a bias, of slopes and of sinks is written afresh (once) and how
// often it is added to, by the dispatches of all slices.
TEST(BackwardPlan, numbers_that_entries_and_heads_share_are_written_once_and_added_to_by_the_others) {
    constexpr uint32_t kBatch = 3, kHeads = 4, kKvHeads = 2, kQueries = 9, kKeys = 150;
    for (const SharedBias& own :
         {SharedBias{1, 1, 1}, SharedBias{1, 4, 9}, SharedBias{3, 1, 9}, SharedBias{3, 4, 1}}) {
        for (const double cost : {0.0, 1.2e6}) {
            SCOPED_TRACE(testing::Message()
                         << own.batch << " x " << own.heads << " x " << own.rows << ", cost " << cost);
            FoveaAttentionDesc desc = attention_desc(kBatch, kHeads, kKvHeads, kQueries, kKeys, 16, 16);
            desc.flags = FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS, desc.align = FOVEA_ALIGN_TOP_LEFT;
            desc.max_slice_cost = cost;
            desc.bias.present = 1;
            desc.bias.batch = own.batch, desc.bias.heads = own.heads, desc.bias.rows = own.rows;
            const Result<Plan> plan = plan_attention_backward(
                gpu_properties(), desc,
                attention_backward(FOVEA_GRAD_BIAS | FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS));
            ASSERT_TRUE(plan) << plan.error().text;
            std::vector<uint32_t> fresh(own.batch * own.heads * uint64_t(own.rows) * kKeys), added = fresh;
            std::vector<uint32_t> slopes(kHeads), slopes_added(kHeads);
            for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice) {
                const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
                EXPECT_LE(all.size(), plan->info().dispatches_per_slice);
                for (size_t n = 0; n < all.size(); ++n) {
                    const FoveaDispatch& d = all[n];
                    expect_windows_within(d, plan->info(), gpu_properties());
                    // Parameters are written over those that the share before has read.
                    if (n > 0 && binding_at(all[n - 1], FOVEA_SLOT_DBIAS)) {
                        EXPECT_EQ(d.barrier_before, 1u);
                    }
                    if (d.shader == uint32_t(Shader::backward_sum)) {
                        const auto push = push_of<shader::RowSumPush>(d);
                        ++(push.store & shader::kStoreAdds ? slopes_added : slopes)[push.head];
                        EXPECT_EQ((push.store & shader::kStoreAdds) != 0,
                                  (push.store & shader::kStoreAdds << 1) != 0);
                    }
                    if (d.shader != uint32_t(Shader::backward_bias)) continue;
                    const auto push = push_of<shader::BackwardPush>(d);
                    const FoveaDispatchBinding* out = binding_at(d, FOVEA_SLOT_DBIAS);
                    ASSERT_TRUE(out && out->written);
                    const uint64_t batch = own.batch > 1 ? push.slice.first_batch : 0;
                    const uint64_t rows = own.rows > 1 ? push.slice.rows : 1,
                                   heads = own.heads > 1 ? push.heads : 1;
                    EXPECT_EQ(d.groups[1], rows);
                    EXPECT_EQ(d.groups[2], heads);
                    EXPECT_GE(d.groups[0] * d.spec[FOVEA_SPEC_THREADS] * 4, push.key_count);
                    for (uint64_t h = 0; h < heads; ++h)
                        for (uint64_t r = 0; r < rows; ++r)
                            for (uint64_t j = 0; j < push.key_count; ++j) {
                                const uint64_t head = own.heads > 1 ? push.slice.first_head + h : 0;
                                const uint64_t row = own.rows > 1 ? push.slice.first_row + r : 0;
                                const uint64_t at =
                                    ((batch * own.heads + head) * uint64_t(own.rows) + row) * kKeys +
                                    push.first_key + j;
                                ++(push.store & shader::kStoreAdds ? added : fresh)[at];
                            }
                }
            }
            const auto all_are = [](const std::vector<uint32_t>& seen, uint32_t times) {
                return std::all_of(seen.begin(), seen.end(), [&](uint32_t n) { return n == times; });
            };
            const uint32_t sharing = (own.batch > 1 ? 1 : kBatch) * (own.heads > 1 ? 1 : kKvHeads);
            EXPECT_TRUE(all_are(fresh, 1));
            EXPECT_TRUE(all_are(added, sharing - 1));
            EXPECT_TRUE(all_are(slopes, 1));
            EXPECT_TRUE(all_are(slopes_added, kBatch - 1));
        }
    }
}

TEST(BackwardPlan, a_bias_without_rows_has_no_gradient_to_write) {
    FoveaAttentionDesc desc = attention_desc(2, 3, 3, 0, 6, 6, 6);
    desc.bias.present = 1;
    desc.bias.batch = 2, desc.bias.heads = 3, desc.bias.rows = 0;
    const Result<Plan> plan =
        plan_attention_backward(gpu_properties(), desc, attention_backward(FOVEA_GRAD_K | FOVEA_GRAD_BIAS));
    ASSERT_TRUE(plan) << plan.error().text;
    for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice)
        for (const FoveaDispatch& dispatch : dispatches_of(*plan, slice))
            EXPECT_NE(dispatch.shader, uint32_t(Shader::backward_bias)) << "slice " << slice;
}

TEST(BackwardPlan, a_bias_that_too_many_share_is_left_to_the_cpu) {
    FoveaAttentionDesc desc = attention_desc(32, 32, 32, 16, 16, 8, 8);
    desc.bias.present = 1;
    desc.bias.batch = desc.bias.heads = 1;
    const Result<Plan> plan =
        plan_attention_backward(gpu_properties(), desc, attention_backward(FOVEA_GRAD_BIAS));
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, FOVEA_UNSUPPORTED);
    EXPECT_EQ(plan.error().field, "gradients");
    desc.bias.batch = 32;
    EXPECT_TRUE(plan_attention_backward(gpu_properties(), desc, attention_backward(FOVEA_GRAD_BIAS)));
}

}  // namespace
}  // namespace fovea::test
