// Plans as data: slices cover every row once, windows are inside their buffers and lead to the right 64-bit
// addresses, limits hold, equal calls give equal plans.
#include "shaders/planned.hpp"
#include "shaders/windows.hpp"

#include "plan/vulkan/shaders.hpp"
#include "problem/problem.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace fovea::test {
namespace {

struct PlanCase {
    const char* name;
    FoveaDeviceProperties properties;
    FoveaAttentionDesc desc;
};

std::vector<PlanCase> plan_cases() {
    std::vector<PlanCase> cases;
    const auto add = [&](const char* name, FoveaDeviceProperties properties, FoveaAttentionDesc desc,
                         const std::function<void(FoveaAttentionDesc&)>& change = {}) {
        desc.kernel = FOVEA_KERNEL_STAGED;
        if (change) change(desc);
        cases.push_back({name, properties, desc});
    };
    add("one row", floor_properties(), attention_desc(1, 1, 1, 1, 1, 1, 1));
    add("ragged", floor_properties(), attention_desc(2, 6, 3, 77, 301, 80, 48));
    add("ragged on a gpu", gpu_properties(), attention_desc(2, 6, 3, 77, 301, 80, 48));
    add("no keys", floor_properties(), attention_desc(2, 3, 3, 5, 0, 8, 8));
    add("cost cuts rows", floor_properties(), attention_desc(3, 4, 2, 130, 200, 16, 8),
        [](FoveaAttentionDesc& d) { d.max_slice_cost = 2e5; });
    add("cost cuts heads", floor_properties(), attention_desc(1, 12, 4, 10, 50, 16, 16),
        [](FoveaAttentionDesc& d) { d.max_slice_cost = 1.5e5; });
    add("workspace cuts", floor_properties(), attention_desc(2, 4, 4, 300, 1000, 16, 16),
        [](FoveaAttentionDesc& d) { d.workspace_limit = 1 << 20; });
    add("all outputs", floor_properties(), attention_desc(2, 4, 2, 100, 70, 16, 16),
        [](FoveaAttentionDesc& d) {
            d.outputs = 127;
            d.max_slice_cost = 1e5;
        });
    add("range cuts heads", floor_properties(), attention_desc(1, 64, 8, 512, 70000, 128, 128),
        [](FoveaAttentionDesc& d) { d.max_slice_cost = 1e15; });
    add("window", gpu_properties(), attention_desc(1, 2, 2, 4096, 4096, 64, 64), [](FoveaAttentionDesc& d) {
        d.flags = FOVEA_FLAG_WINDOW | FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_TOP_LEFT;
        d.window_left = 128;
        d.max_slice_cost = 1e8;
    });
    add("strided heads", floor_properties(), attention_desc(2, 4, 2, 90, 120, 24, 24),
        [](FoveaAttentionDesc& d) {
            d.q_strides = {90 * 200, 50, 200};
            d.k_strides = {120 * 77, 37, 77};
            d.max_slice_cost = 1e5;
        });
    return cases;
}

Result<Plan> plan_of(const PlanCase& c) { return plan_attention(c.properties, c.desc); }

shader::SliceView slice_view(const FoveaDispatch& d) { return push_of<shader::SliceView>(d); }

TEST(Slices, cover_every_row_once) {
    for (const PlanCase& c : plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_of(c);
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaPlanInfo info = plan->info();
        std::vector<uint8_t> seen(c.desc.batch * c.desc.heads_q * c.desc.len_q);
        for (uint64_t slice = 0; slice < info.slice_count; ++slice) {
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
            ASSERT_FALSE(all.empty());
            const shader::SliceView v = slice_view(all.back());
            const uint32_t entries = all.back().groups[2];
            ASSERT_EQ(entries % v.heads, 0u);
            for (uint32_t b = 0; b < entries / v.heads; ++b)
                for (uint32_t h = 0; h < v.heads; ++h)
                    for (uint32_t i = 0; i < v.rows; ++i)
                        ++seen[((v.first_batch + b) * c.desc.heads_q + v.first_head + h) * c.desc.len_q +
                               v.first_row + i];
            for (const FoveaDispatch& d : all) {
                expect_windows_within(d, info, c.properties);
                EXPECT_EQ(memcmp(&v, d.push, sizeof v), 0) << "all dispatches of a slice see the same part";
            }
        }
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](uint8_t n) { return n == 1; }));
        EXPECT_EQ(info.slices_share_workspace, info.slice_count > 1 ? 1u : 0u);
    }
}

TEST(Slices, workgroups_cover_their_block) {
    for (const PlanCase& c : plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_of(c);
        ASSERT_TRUE(plan);
        for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice) {
            for (const FoveaDispatch& d : dispatches_of(*plan, slice)) {
                const shader::SliceView v = slice_view(d);
                if (d.shader == uint32_t(Shader::softmax)) {
                    EXPECT_GE(d.groups[0] * (d.spec[FOVEA_SPEC_THREADS] / d.spec[FOVEA_SPEC_ROW_THREADS]),
                              v.rows);
                    continue;
                }
                const bool shared = d.spec[FOVEA_SPEC_ROWS] == shader::kSharedRows;
                const uint32_t columns =
                    shared ? shader::kSharedColumns : d.spec[FOVEA_SPEC_THREADS] * shader::kThreadColumns;
                const bool scores = d.shader <= uint32_t(Shader::scores_shared);
                EXPECT_GE(d.groups[1] * d.spec[FOVEA_SPEC_ROWS], v.rows);
                EXPECT_GE(d.groups[0] * columns, scores ? v.score_stride : c.desc.dim_v);
            }
        }
    }
}

TEST(Slices, stay_within_cost_and_workspace) {
    for (const PlanCase& c : plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_of(c);
        ASSERT_TRUE(plan);
        const FoveaPlanInfo info = plan->info();
        EXPECT_LE(info.workspace_bytes, c.desc.workspace_limit ? c.desc.workspace_limit : uint64_t{64} << 20);
        const double limit = c.desc.max_slice_cost > 0                      ? c.desc.max_slice_cost
                             : c.properties.device_class == FOVEA_CLASS_CPU ? 2e8
                                                                            : 1e11;
        EXPECT_LE(info.max_slice_flops, limit);
        EXPECT_LE(info.visited_pairs, info.total_pairs);
    }
}

TEST(Slices, are_the_same_every_time) {
    for (const PlanCase& c : plan_cases()) {
        const Result<Plan> one = plan_of(c), two = plan_of(c);
        ASSERT_TRUE(one && two);
        EXPECT_EQ(one->explain(), two->explain());
        for (uint64_t slice = 0; slice < one->info().slice_count; ++slice) {
            const std::vector<FoveaDispatch> a = dispatches_of(*one, slice), b = dispatches_of(*two, slice);
            ASSERT_EQ(a.size(), b.size());
            for (size_t n = 0; n < a.size(); ++n) EXPECT_EQ(memcmp(&a[n], &b[n], sizeof a[n]), 0);
        }
    }
}

// The byte that a shader reads for element (b, h, i, 0) of a tensor: window plus 32-bit index.
uint64_t address(const FoveaDispatchBinding& window, const shader::TensorView& view, uint64_t b, uint64_t h,
                 uint64_t i, uint32_t element_bytes) {
    const uint64_t index = view.base + b * view.batch + h * view.head + i * view.row;
    EXPECT_LT(index, uint64_t{1} << 32) << "the index does not fit the shader's 32 bits";
    return window.offset + index * element_bytes;
}

// Tensors whose sizes cross 2^27, 2^31 and 2^32 bytes and elements: first and last row of sampled slices.
TEST(Slices, lead_to_64_bit_addresses) {
    struct Sizes {
        uint64_t range, len;
        uint32_t dim_qk, dim_v;  // rows of odd lengths begin at offsets that a descriptor cannot have
    };
    const uint64_t least = uint64_t{1} << 27, most = UINT32_MAX;
    for (const auto& [range, len, dim_qk, dim_v] :
         {Sizes{least, 65536, 128, 64}, Sizes{most, 65536, 128, 64}, Sizes{least, 131072, 128, 64},
          Sizes{most, 131072, 128, 64}, Sizes{least, 65537, 125, 63}, Sizes{most, 131071, 125, 63}}) {
        for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
            FoveaDeviceProperties properties = gpu_properties();
            properties.max_storage_range = range;
            FoveaAttentionDesc desc = attention_desc(3, 64, 16, len, len, dim_qk, dim_v);
            desc.q_type = desc.k_type = desc.v_type = desc.o_type = type;
            desc.kernel = FOVEA_KERNEL_STAGED;
            const uint32_t bytes = type == FOVEA_F16 ? 2 : 4;
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan) << plan.error().text;
            const FoveaPlanInfo info = plan->info();
            const PlanCase c{"", properties, desc};
            for (uint64_t n = 0; n <= 64; ++n) {
                const uint64_t slice = (info.slice_count - 1) * n / 64;
                const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
                for (const FoveaDispatch& d : all) expect_windows_within(d, info, c.properties);
                const auto scores = push_of<shader::ScoresPush>(all[0]);
                const shader::SliceView& v = scores.slice;
                const uint64_t b = all[0].groups[2] / v.heads - 1, h = v.heads - 1, i = v.rows - 1;
                const uint64_t q_row = ((v.first_batch + b) * 64 + v.first_head + h) * len + v.first_row + i;
                EXPECT_EQ(address(*binding_at(all[0], FOVEA_SLOT_Q), scores.q, b, h, i, bytes),
                          q_row * dim_qk * bytes);
                const uint64_t kv_head = (v.first_head + h) / 4, kv_local = kv_head - v.first_head / 4;
                const uint64_t k_row = ((v.first_batch + b) * 16 + kv_head) * len + len - 1;
                EXPECT_EQ(address(*binding_at(all[0], FOVEA_SLOT_K), scores.k, b, kv_local, len - 1, bytes),
                          k_row * dim_qk * bytes);
                const auto sum = push_of<shader::WeightedSumPush>(all[2]);
                EXPECT_EQ(address(*binding_at(all[2], FOVEA_SLOT_O), sum.o, b, h, i, bytes),
                          q_row * dim_v * bytes);
                EXPECT_EQ(address(*binding_at(all[2], FOVEA_SLOT_V), sum.v, b, kv_local, len - 1, bytes),
                          k_row * dim_v * bytes);
            }
        }
    }
}

// Windows of blocks of 34 and 18 bytes begin between two of them and where a descriptor may.
TEST(Slices, lead_to_whole_blocks_of_compressed_caches) {
    for (const FoveaDtype type : {FOVEA_F8_E4M3, FOVEA_F8_E5M2, FOVEA_Q8_0, FOVEA_Q4_0}) {
        for (const uint32_t alignment : {4u, 64u, 256u}) {
            SCOPED_TRACE(testing::Message() << "type " << type << ", alignment " << alignment);
            FoveaDeviceProperties properties = gpu_properties();
            properties.storage_offset_alignment = alignment;
            FoveaAttentionDesc desc = attention_desc(3, 6, 3, 20, 67, 96, 160);
            desc.k_type = desc.v_type = type;
            desc.max_slice_cost = 2e6;
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan) << plan.error().text;
            ASSERT_EQ(plan->info().slice_count, 9u) << "a slice for each head";
            for (uint64_t slice = 0; slice < 9; ++slice) {
                const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
                const FoveaDispatch& d = all.back();
                expect_windows_within(d, plan->info(), properties);
                const auto push = push_of<shader::FlashPush>(d);
                const auto expect_head = [&](uint32_t slot, const shader::HeadView& view, uint32_t dim) {
                    const FoveaDispatchBinding& window = *binding_at(d, slot);
                    const int64_t head = int64_t(slice) * 67 * dim;
                    EXPECT_EQ(view.base % storage_block(type).numbers, 0u);
                    EXPECT_EQ(int64_t(window.offset) + stored_bytes(type, view.base),
                              stored_bytes(type, head));
                    EXPECT_GE(int64_t(window.offset + window.size), stored_bytes(type, head + 67 * dim));
                };
                expect_head(FOVEA_SLOT_K, push.k, 96);
                expect_head(FOVEA_SLOT_V, push.v, 160);
            }
        }
    }
}

// Appended rows: a slice for each head, each with the whole cache of that head in its window.
TEST(Slices, of_appended_blocks_lie_in_windows_of_whole_blocks) {
    for (const FoveaDtype type : {FOVEA_F8_E4M3, FOVEA_Q8_0, FOVEA_Q4_0}) {
        for (const uint32_t alignment : {4u, 64u, 256u}) {
            SCOPED_TRACE(testing::Message() << "type " << type << ", alignment " << alignment);
            FoveaDeviceProperties properties = gpu_properties();
            properties.storage_offset_alignment = alignment;
            properties.features |= FOVEA_FEATURE_DEVICE_ATOMICS;
            const int64_t head = 700 * 96;
            properties.max_storage_range = uint64_t(stored_bytes(type, 2 * head));
            FoveaAppendDesc d = foveaAppendDesc();
            d.y_type = type;
            d.batch = 1, d.heads = 5, d.dim = 96, d.len = 13, d.capacity = 700;
            FoveaPlan handle = nullptr;
            Diag diag;
            ASSERT_EQ(foveaPlanAppend(&properties, &d, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
            const Plan plan(handle);
            ASSERT_EQ(plan.info().slice_count, 5u);
            for (uint64_t slice = 0; slice < 5; ++slice) {
                const FoveaDispatch dispatch = dispatches_of(plan, slice)[0];
                expect_windows_within(dispatch, plan.info(), properties);
                const auto push = push_of<shader::CacheRowsPush>(dispatch);
                const FoveaDispatchBinding& window = *binding_at(dispatch, FOVEA_SLOT_Y);
                EXPECT_EQ(push.y.base % storage_block(type).numbers, 0u);
                EXPECT_EQ(int64_t(window.offset) + stored_bytes(type, push.y.base),
                          stored_bytes(type, int64_t(slice) * head));
                EXPECT_GE(int64_t(window.offset + window.size),
                          stored_bytes(type, int64_t(slice + 1) * head));
                EXPECT_EQ(window.size % 4, 0u);
            }
        }
    }
}

TEST(Slices, few_keys_in_a_window_cost_few_pairs) {
    FoveaAttentionDesc desc = attention_desc(1, 1, 1, 32768, 32768, 64, 64);
    desc.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
    desc.window_left = 127;
    desc.kernel = FOVEA_KERNEL_STAGED;
    const Result<Plan> plan = plan_attention(floor_properties(), desc);
    ASSERT_TRUE(plan);
    const double needed = 128.0 * 32768 - 127.0 * 128 / 2;
    EXPECT_GE(plan->info().visited_pairs, needed);
    EXPECT_LE(plan->info().visited_pairs, 1.6 * needed);
    EXPECT_LT(plan->info().workspace_bytes, uint64_t{64} << 20);

    desc.flags = FOVEA_FLAG_CAUSAL, desc.align = FOVEA_ALIGN_TOP_LEFT;
    desc.window_left = 0;
    const Result<Plan> causal = plan_attention(floor_properties(), desc);
    ASSERT_TRUE(causal);
    EXPECT_NEAR(causal->info().visited_pairs / causal->info().total_pairs, 0.5, 0.01);
}

// Each stage reads what the one before wrote.
TEST(Slices, stages_follow_each_other_behind_barriers) {
    for (const PlanCase& c : plan_cases()) {
        SCOPED_TRACE(c.name);
        const Result<Plan> plan = plan_of(c);
        ASSERT_TRUE(plan);
        const std::vector<FoveaDispatch> all = dispatches_of(*plan, 0);
        for (size_t n = 0; n < all.size(); ++n)
            EXPECT_EQ(all[n].barrier_before, n > 0 ? 1u : 0u) << "dispatch " << n;
    }
}

// q is rotated into the workspace before attention reads it there, and o out of it afterwards.
TEST(Slices, of_a_rotated_cache_rotate_what_their_kernels_read_and_write) {
    for (const uint64_t keys : {67u, 20000u}) {
        FoveaAttentionDesc desc = attention_desc(2, 6, 3, keys > 100 ? 1 : 20, keys, 96, 64);
        desc.k_type = FOVEA_Q4_0, desc.v_type = FOVEA_Q8_0, desc.flags = FOVEA_FLAG_ROTATED_CACHE;
        desc.q_type = FOVEA_F16;
        desc.max_slice_cost = keys > 100 ? 0 : 1e6;
        FoveaDeviceProperties properties = gpu_properties();
        const Result<Plan> plan = plan_attention(properties, desc);
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaPlanInfo info = plan->info();
        EXPECT_EQ(info.slices_share_workspace, info.slice_count > 1 ? 1u : 0u);
        EXPECT_GE(info.workspace_bytes, 4 * 2 * 6 * desc.len_q * (96 + 64));
        for (const char* said :
             {"q is rotated in the workspace first", "rotated KV cache: k and v, by blocks of 32", "q: f16"})
            EXPECT_NE(plan->explain().find(said), std::string::npos) << said << "\n" << plan->explain();
        for (uint64_t slice = 0; slice < info.slice_count; ++slice) {
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
            ASSERT_EQ(all.size(), keys > 100 ? 4u : 3u) << "splits have a merge";
            ASSERT_EQ(all.size(), info.dispatches_per_slice);
            const auto same = [&](const FoveaDispatch& a, uint32_t slot_a, const FoveaDispatch& b,
                                  uint32_t slot_b) {
                const FoveaDispatchBinding x = *binding_at(a, slot_a), y = *binding_at(b, slot_b);
                EXPECT_EQ(x.source, uint32_t{FOVEA_BIND_WORKSPACE});
                EXPECT_EQ(y.source, uint32_t{FOVEA_BIND_WORKSPACE});
                EXPECT_EQ(x.offset, y.offset);
                EXPECT_EQ(x.size, y.size);
                EXPECT_LE(x.offset + x.size, info.workspace_bytes);
            };
            for (const FoveaDispatch& d : all) expect_windows_within(d, info, properties);
            const size_t last = all.size() - 1;
            EXPECT_EQ(all[0].shader, uint32_t(Shader::rotate));
            EXPECT_EQ(all[last].shader, uint32_t(Shader::rotate));
            EXPECT_EQ(binding_at(all[0], FOVEA_SLOT_X)->source, uint32_t{FOVEA_BIND_Q});
            EXPECT_EQ(binding_at(all[last], FOVEA_SLOT_Y)->source, uint32_t{FOVEA_BIND_O});
            same(all[0], FOVEA_SLOT_Y, all[1], FOVEA_SLOT_Q);
            same(all[last - 1], FOVEA_SLOT_O, all[last], FOVEA_SLOT_X);
            for (size_t n = 0; n <= last; ++n) EXPECT_EQ(all[n].barrier_before, n > 0 ? 1u : 0u) << n;
        }
    }
}

TEST(Slices, nothing_to_do_is_no_slice) {
    const Result<Plan> plan = plan_attention(floor_properties(), attention_desc(2, 2, 2, 0, 9, 8, 8));
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->info().slice_count, 0u);
    EXPECT_EQ(plan->info().workspace_bytes, 0u);
}

TEST(Slices, too_little_room_is_refused) {
    FoveaAttentionDesc desc = attention_desc(1, 1, 1, 4, 4, 4, 4);
    desc.kernel = FOVEA_KERNEL_STAGED;
    const Result<Plan> plan = plan_attention(floor_properties(), desc);
    ASSERT_TRUE(plan);
    FoveaDispatch out[2];
    uint32_t count = 2;
    Diag diag;
    EXPECT_EQ(foveaGetDispatches(plan->get(), 0, out, &count, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "count");
}

}  // namespace
}  // namespace fovea::test
