// Plans of the one-pass kernel: every row once, heads that share keys together, splits by rule, memory that
// does not grow with the lengths.
#include "shaders/planned.hpp"

#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea::test {
namespace {

FoveaAttentionDesc flash_desc(uint32_t batch, uint32_t heads_q, uint32_t heads_kv, uint64_t len_q,
                              uint64_t len_kv, uint32_t dim) {
    FoveaAttentionDesc desc = attention_desc(batch, heads_q, heads_kv, len_q, len_kv, dim, dim);
    desc.kernel = FOVEA_KERNEL_FLASH;
    return desc;
}

uint32_t splits_of(const FoveaDispatch& d) { return push_of<shader::FlashPush>(d).group_splits >> 16; }

TEST(FlashPlan, covers_every_row_once) {
    for (const double cost : {0.0, 3e5, 4e4}) {
        for (const uint32_t heads_kv : {1u, 3u, 6u}) {
            FoveaAttentionDesc desc = flash_desc(3, 6, heads_kv, 77, 90, 16);
            bool several = false;
            desc.max_slice_cost = cost;
            const Result<Plan> plan = plan_attention(gpu_properties(), desc);
            ASSERT_TRUE(plan) << plan.error().text;
            const uint32_t group = 6 / heads_kv;
            std::vector<uint8_t> seen(3 * 6 * 77);
            for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice) {
                const std::vector<FoveaDispatch> all = dispatches_of(*plan, slice);
                ASSERT_EQ(all.size(), 1u);
                const auto push = push_of<shader::FlashPush>(all[0]);
                const bool entries = (push.slice.flags & shader::kFlagEntries) != 0;
                several |= entries;
                EXPECT_EQ((all[0].spec[FOVEA_SPEC_CALL] & shader::kEntriesCall) != 0, entries);
                EXPECT_EQ(push.group_splits, group | (entries ? heads_kv : 1u) << 16);
                EXPECT_TRUE(!entries || (push.slice.first_head == 0 && push.slice.rows == 77));
                EXPECT_GE(all[0].groups[0] * all[0].spec[FOVEA_SPEC_ROWS], push.slice.rows * group);
                for (uint32_t h = 0; h < all[0].groups[2] * group; ++h)
                    for (uint32_t i = 0; i < push.slice.rows; ++i)
                        ++seen[(push.slice.first_batch * 6 + push.slice.first_head * group + h) * 77 +
                               push.slice.first_row + i];
            }
            EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](uint8_t n) { return n == 1; }));
            EXPECT_LE(plan->info().max_slice_flops, cost > 0 ? cost : 1e11);
            EXPECT_EQ(several, cost == 0.0) << "the whole batch costs 8e6 FLOP";
        }
    }
}

TEST(FlashPlan, needs_no_memory_for_the_lengths) {
    for (const uint64_t len : {1000, 8000, 64000}) {
        const Result<Plan> plan = plan_attention(floor_properties(), flash_desc(1, 1, 1, len, len, 64));
        ASSERT_TRUE(plan);
        EXPECT_LE(plan->info().workspace_bytes, 4096u);
    }
}

// A workgroup that is one whole subgroup, where properties allow it, and the reason where they do not.
TEST(FlashPlan, subgroups_go_by_this_table) {
    struct Case {
        const char* name;
        uint32_t least, most, vendor_id, dim;
        uint64_t window;  // 0: none
        uint32_t flags;
        FoveaDeviceClass device;
        uint32_t size, threads;  // size 0: none
        const char* text;
    };
    constexpr FoveaDeviceClass kGpu = FOVEA_CLASS_DISCRETE, kSoftware = FOVEA_CLASS_CPU;
    constexpr uint32_t kFixed = FOVEA_FLAG_FIXED_SPLITS;
    const Case cases[] = {
        {"32 lanes", 32, 32, 0x10de, 64, 0, 0, kGpu, 32, 32, "a workgroup is a subgroup of 32"},
        {"32 or 64 lanes", 32, 64, 0x1002, 256, 0, 0, kGpu, 32, 32, "a workgroup is a subgroup of 32"},
        {"64 lanes", 64, 64, 0x1002, 64, 0, 0, kGpu, 0, 32, "subgroups are wider than the workgroup"},
        {"128 lanes", 64, 128, 0x5143, 64, 0, 0, kGpu, 0, 32, "subgroups are wider than the workgroup"},
        {"8 to 16 lanes", 8, 16, 1, 128, 0, 0, kGpu, 16, 16, "a workgroup is a subgroup of 16"},
        {"16 lanes, many columns", 16, 16, 1, 256, 0, 0, kGpu, 0, 32, "holds too few value columns"},
        {"a narrow window", 16, 32, 1, 64, 100, 0, kGpu, 16, 16, "a workgroup is a subgroup of 16"},
        {"a narrow window, 32 lanes", 32, 32, 1, 64, 100, 0, kGpu, 0, 16, "wider than the workgroup"},
        {"Intel", 8, 32, 0x8086, 64, 0, 0, kGpu, 0, 32, "slow Intel's devices down"},
        {"Apple", 32, 32, 0x106b, 64, 0, 0, kGpu, 0, 32, "Apple's Metal"},
        {"ARM", 16, 16, 0x13b5, 64, 0, 0, kGpu, 0, 32, "ARM's drivers"},
        {"fixed splits, 32 lanes", 32, 32, 1, 64, 0, kFixed, kGpu, 32, 32, "is a subgroup of 32"},
        {"fixed splits, 16 lanes", 16, 16, 1, 64, 0, kFixed, kGpu, 0, 32, "too narrow for the workgroup"},
        {"software, 8 lanes", 8, 8, 1, 64, 0, 0, kSoftware, 8, 8, "a workgroup is a subgroup of 8"},
        {"software, 8 lanes, more columns", 8, 8, 1, 65, 0, 0, kSoftware, 0, 16, "too few value columns"},
        {"software, 4 lanes", 4, 4, 1, 16, 0, 0, kSoftware, 0, 16, "too narrow for the workgroup"},
        {"software, fixed splits", 8, 8, 1, 64, 0, kFixed, kSoftware, 0, 32, "too narrow"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaDeviceProperties properties = gpu_properties();
        add_subgroups(properties, c.least, c.most);
        properties.vendor_id = c.vendor_id;
        properties.device_class = c.device;
        FoveaAttentionDesc desc = flash_desc(1, 8, 8, 512, 2048, c.dim);
        desc.flags = c.flags;
        if (c.window) {
            desc.flags |= FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
            desc.window_left = int64_t(c.window);
        }
        const Result<Plan> plan = plan_attention(properties, desc);
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaDispatch d = dispatches_of(*plan, 0)[0];
        EXPECT_EQ(d.subgroup_size, c.size);
        EXPECT_EQ(d.spec[FOVEA_SPEC_THREADS], c.threads);
        EXPECT_LE(d.spec[FOVEA_SPEC_ROWS], c.threads);
        EXPECT_EQ(std::string(foveaShaderName(d.shader)), c.size ? "flash_subgroup" : "flash");
        EXPECT_NE(plan->explain().find(c.text), std::string::npos) << plan->explain();
    }
    const Result<Plan> bare = plan_attention(gpu_properties(), flash_desc(1, 8, 8, 512, 2048, 64));
    ASSERT_TRUE(bare);
    EXPECT_EQ(dispatches_of(*bare, 0)[0].subgroup_size, 0u);
    EXPECT_NE(bare->explain().find("the device does not support subgroup arithmetic"), std::string::npos);
}

// Software drivers with eight lanes or more exchange values by shuffles if a tile has the rows for it.
TEST(FlashPlan, shuffles_go_by_this_table) {
    struct Case {
        const char* name;
        uint32_t lanes;
        uint64_t len_q, len_kv;
        uint32_t group, dim_v, flags;
        uint32_t rows, column_quads;  // rows 0: no shuffles
    };
    constexpr uint32_t kFixed = FOVEA_FLAG_FIXED_SPLITS;
    const Case cases[] = {
        {"nine rows", 8, 9, 70, 1, 32, 0, 16, 1},
        {"eight rows", 8, 8, 70, 1, 32, 0, 0, 0},
        {"nine rows of a group", 8, 3, 70, 3, 33, 0, 16, 2},
        {"64 columns", 8, 100, 70, 1, 64, 0, 16, 2},
        {"65 columns", 8, 100, 70, 1, 65, 0, 16, 4},
        {"128 columns", 8, 100, 70, 1, 128, 0, 16, 4},
        {"129 columns", 8, 100, 70, 1, 129, 0, 0, 0},
        {"much work", 8, 512, 512, 1, 64, 0, 32, 2},
        {"much work of a group", 8, 128, 512, 4, 64, 0, 32, 2},
        {"not quite", 8, 511, 512, 1, 64, 0, 16, 2},
        {"16 lanes", 16, 512, 512, 1, 64, 0, 16, 1},
        {"16 lanes, many columns", 16, 100, 512, 1, 256, 0, 16, 4},
        {"32 lanes", 32, 100, 70, 1, 64, 0, 0, 0},
        {"4 lanes", 4, 100, 70, 1, 64, 0, 0, 0},
        {"fixed splits", 8, 100, 70, 1, 64, kFixed, 0, 0},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaDeviceProperties properties = floor_properties();
        add_shuffles(properties, c.lanes);
        FoveaAttentionDesc desc = attention_desc(1, 2 * c.group, 2, c.len_q, c.len_kv, 24, c.dim_v);
        desc.kernel = FOVEA_KERNEL_FLASH;
        desc.flags = c.flags;
        const Result<Plan> plan = plan_attention(properties, desc);
        ASSERT_TRUE(plan) << plan.error().text;
        const FoveaDispatch d = dispatches_of(*plan, 0)[0];
        const bool shuffles = std::string(foveaShaderName(d.shader)) == "flash_shuffle";
        EXPECT_EQ(shuffles, c.rows != 0);
        EXPECT_EQ(plan->explain().find("values by shuffles") != std::string::npos, shuffles);
        if (!shuffles) continue;
        EXPECT_EQ(d.subgroup_size, c.lanes);
        EXPECT_EQ(d.spec[FOVEA_SPEC_THREADS], c.lanes);
        EXPECT_EQ(d.spec[FOVEA_SPEC_ROWS], c.rows);
        EXPECT_EQ(d.spec[FOVEA_SPEC_COLUMN_QUADS], c.column_quads);
        EXPECT_LE(FOVEA_SHUFFLE_SHARED_BYTES(c.rows, c.lanes) + FOVEA_STATS_SHARED_BYTES(c.rows, c.lanes),
                  shader::kFloorSharedBytes);

        FoveaDeviceProperties gpu = properties, without = properties, older = properties,
                              measured = properties;
        gpu.device_class = FOVEA_CLASS_DISCRETE;
        without.features &= ~uint32_t{FOVEA_FEATURE_SUBGROUP_SHUFFLE};
        older.features &= ~uint32_t{FOVEA_FEATURE_COOPMAT};
        for (FoveaFlashTile& tile : measured.flash_tiles) tile = {4, 8, 1};
        for (const FoveaDeviceProperties& other : {gpu, without, older, measured}) {
            const Result<Plan> loads = plan_attention(other, desc);
            ASSERT_TRUE(loads) << loads.error().text;
            EXPECT_NE(std::string(foveaShaderName(dispatches_of(*loads, 0)[0].shader)), "flash_shuffle");
        }
    }
}

TEST(FlashPlan, takes_the_tile_that_was_measured_for_its_class) {
    struct Case {
        uint32_t heads_q;  // for one key/value head
        uint64_t len_q;
        uint32_t dim, tile_class;
    };
    const Case cases[] = {{1, 1, 64, 0},  {1, 1, 65, 1}, {1, 1, 129, 2}, {4, 1, 8, 3},   {2, 2, 128, 4},
                          {1, 3, 256, 5}, {5, 1, 1, 6},  {1, 90, 96, 7}, {2, 50, 200, 8}};
    for (const Case& c : cases) {
        SCOPED_TRACE(c.tile_class);
        for (FoveaDeviceProperties properties : {gpu_properties(), floor_properties()}) {
            for (uint32_t i = 0; i < FOVEA_TILE_CLASS_COUNT; ++i)
                properties.flash_tiles[i] = {i % 8 + 1, 8, 1};
            properties.flash_tiles[c.tile_class] = {3, 16, 2};
            FoveaAttentionDesc desc = flash_desc(1, c.heads_q, 1, c.len_q, 300, c.dim);
            const Result<Plan> tuned = plan_attention(properties, desc);
            ASSERT_TRUE(tuned) << tuned.error().text;
            const FoveaDispatch d = dispatches_of(*tuned, 0)[0];
            EXPECT_EQ(d.spec[FOVEA_SPEC_ROWS], 3u);
            EXPECT_EQ(d.spec[FOVEA_SPEC_THREADS], 16u);
            EXPECT_EQ(d.spec[FOVEA_SPEC_COLUMN_QUADS], 2u);
            EXPECT_NE(tuned->explain().find("16 threads (measured on this device)"), std::string::npos);
            desc.flags |= FOVEA_FLAG_FIXED_SPLITS;
            const Result<Plan> fixed = plan_attention(properties, desc);
            ASSERT_TRUE(fixed);
            EXPECT_EQ(fixed->explain().find("measured"), std::string::npos);
        }
    }
}

TEST(FlashPlan, makes_a_map_of_a_mask_where_it_is_likely_to_pay) {
    struct Case {
        const char* name;
        uint64_t len_q, len_kv;
        bool mask;
        int64_t window;
        FoveaMaskMap asked;
        const char* obstacle;  // null: there is a map
    };
    const Case cases[] = {
        {"long", 64, 4096, true, -1, FOVEA_MASK_MAP_AUTO, nullptr},
        {"few queries", 31, 4096, true, -1, FOVEA_MASK_MAP_AUTO, "few queries"},
        {"few keys", 64, 1000, true, -1, FOVEA_MASK_MAP_AUTO, "few blocks"},
        {"a window", 64, 4096, true, 100, FOVEA_MASK_MAP_AUTO, "a window"},
        {"asked for", 2, 70, true, 100, FOVEA_MASK_MAP_ALWAYS, nullptr},
        {"not wanted", 64, 4096, true, -1, FOVEA_MASK_MAP_NEVER, "ask for none"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaDeviceProperties properties = gpu_properties();
        properties.mask_map = c.asked;
        FoveaAttentionDesc desc = flash_desc(1, 2, 1, c.len_q, c.len_kv, 16);
        desc.mask.present = 1, desc.mask.type = FOVEA_U8;
        if (c.window >= 0) {
            desc.flags |= FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
            desc.window_left = desc.window_right = c.window;
        }
        const Result<Plan> plan = plan_attention(properties, desc);
        ASSERT_TRUE(plan) << plan.error().text;
        const bool has_map = dispatches_of(*plan, 0)[1].shader == uint32_t(Shader::mask_map);
        EXPECT_EQ(has_map, c.obstacle == nullptr);
        const char* said = c.obstacle ? c.obstacle : "hidden blocks are skipped";
        EXPECT_NE(plan->explain().find(said), std::string::npos) << plan->explain();
    }
    FoveaDeviceProperties properties = gpu_properties();
    properties.mask_map = FoveaMaskMap(3);
    const Result<Plan> refused = plan_attention(properties, flash_desc(1, 1, 1, 5, 5, 8));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "properties.mask_map");
}

// Where slices need no barrier between them, no two of them show the same byte for writing.
TEST(FlashPlan, slices_without_a_barrier_write_apart) {
    struct Case {
        const char* name;
        FoveaStrides o;
        uint32_t outputs, heads_kv, dim;
        uint64_t len_q;
        double cost;
        bool barrier;
    };
    const Case cases[] = {
        {"packed", {0, 0, 0}, FOVEA_OUTPUT_O, 4, 64, 512, 1e7, false},
        {"packed, whole heads", {0, 0, 0}, FOVEA_OUTPUT_O, 4, 64, 64, 1e7, false},
        {"heads of 12024 bytes", {0, 0, 0}, FOVEA_OUTPUT_O, 4, 6, 501, 1e6, true},
        {"heads side by side", {512 * 256, 64, 256}, FOVEA_OUTPUT_O, 4, 64, 512, 1e7, true},
        {"gaps between rows", {4 * 512 * 80, 512 * 80, 80}, FOVEA_OUTPUT_O, 4, 64, 512, 1e7, false},
        {"lse of 512 rows", {0, 0, 0}, FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE, 4, 64, 512, 1e7, false},
        {"lse of 500 rows", {0, 0, 0}, FOVEA_OUTPUT_LSE, 4, 64, 501, 1e7, true},
        {"rows of grouped heads", {0, 0, 0}, FOVEA_OUTPUT_O, 2, 64, 512, 1e7, true},
        {"one slice", {0, 0, 0}, FOVEA_OUTPUT_O, 4, 64, 16, 1e12, false},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaAttentionDesc desc = flash_desc(2, 4, c.heads_kv, c.len_q, 512, c.dim);
        desc.o_strides = c.o;
        desc.outputs = c.outputs;
        desc.max_slice_cost = c.cost;
        const Result<Plan> plan = plan_attention(gpu_properties(), desc);
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_EQ(plan->info().slices_share_workspace != 0, c.barrier);
        std::vector<FoveaDispatchBinding> written;
        bool overlap = false;
        for (uint64_t slice = 0; slice < plan->info().slice_count; ++slice) {
            const size_t earlier = written.size();
            for (const FoveaDispatch& d : dispatches_of(*plan, slice))
                for (uint32_t n = 0; n < d.binding_count; ++n)
                    if (d.bindings[n].written && d.bindings[n].source != FOVEA_BIND_WORKSPACE)
                        written.push_back(d.bindings[n]);
            for (size_t n = earlier; n < written.size(); ++n)
                for (size_t m = 0; m < earlier; ++m)
                    overlap |= written[n].source == written[m].source &&
                               written[n].offset < written[m].offset + written[m].size &&
                               written[m].offset < written[n].offset + written[n].size;
        }
        EXPECT_TRUE(!overlap || c.barrier);
    }
}

// Slices that follow each other without a barrier must not use the same bytes of the workspace, nor show the
// same rows of a packed output.
TEST(FlashPlan, slices_that_share_workspace_or_packed_rows_say_so) {
    FoveaAttentionDesc decode = flash_desc(4, 8, 8, 1, 8192, 64);
    FoveaDeviceProperties wide = gpu_properties();
    wide.core_count = 132;
    const Result<Plan> split = plan_attention(wide, decode);
    ASSERT_TRUE(split) << split.error().text;
    EXPECT_EQ(split->info().slice_count, 4u);
    EXPECT_EQ(split->info().dispatches_per_slice, 2u);
    EXPECT_GT(split->info().workspace_bytes, 0u);
    EXPECT_EQ(split->info().slices_share_workspace, 1u);
    for (uint64_t slice = 0; slice < 4; ++slice) {
        const std::vector<FoveaDispatch> all = dispatches_of(*split, slice);
        ASSERT_EQ(all.size(), 2u);
        EXPECT_GT(splits_of(all[0]), 1u);
        EXPECT_EQ(all[0].barrier_before, 0u);
        EXPECT_EQ(all[1].barrier_before, 1u) << "the merge reads what the splits wrote";
    }
    decode.batch = 1;
    EXPECT_EQ(plan_attention(wide, decode)->info().slices_share_workspace, 0u) << "one slice";

    FoveaAttentionDesc packed = flash_desc(3, 4, 4, 512, 512, 64);
    packed.flags |= FOVEA_FLAG_VARLEN;
    packed.packed_rows_q = 1500;
    const Result<Plan> rows = plan_attention(gpu_properties(), packed);
    ASSERT_TRUE(rows) << rows.error().text;
    EXPECT_EQ(rows->info().slice_count, 1u) << "a budget for all three entries";
    packed.max_slice_cost = rows->info().max_slice_flops / 3;
    EXPECT_EQ(plan_attention(gpu_properties(), packed)->info().slice_count, 3u);
    EXPECT_EQ(plan_attention(gpu_properties(), packed)->info().slices_share_workspace, 1u);
    // Where its rows begin only the table knows: slices of one entry show all packed rows, too.
    packed.batch = 1;
    packed.max_slice_cost = 2e7;
    for (const FoveaStrides& strides : {FoveaStrides{}, FoveaStrides{0, 1500 * 64, 64}}) {
        packed.o_strides = strides;
        const Result<Plan> one = plan_attention(gpu_properties(), packed);
        ASSERT_TRUE(one) << one.error().text;
        EXPECT_GT(one->info().slice_count, 4u);
        EXPECT_EQ(one->info().slices_share_workspace, 1u);
    }
}

// A slice is limited to one entry by parameters that belong to a single entry, and by strides that no push
// constant has room for; packed rows and pages have no such strides.
TEST(FlashPlan, a_slice_has_several_entries_where_one_dispatch_can_say_it) {
    struct Case {
        const char* name;
        void (*edit)(FoveaAttentionDesc&);
        uint64_t slices;
    };
    const Case cases[] = {
        {"heads follow each other", [](FoveaAttentionDesc&) {}, 1},
        {"one head, entries anywhere",
         [](FoveaAttentionDesc& d) {
             d.heads_q = d.heads_kv = 1;
             d.q_strides = {5000, 0, 16};
         },
         1},
        {"rows of all heads side by side",
         [](FoveaAttentionDesc& d) {
             d.k_strides = {90 * 3 * 16, 16, 3 * 16};
         },
         4},
        {"a mask", [](FoveaAttentionDesc& d) { d.mask.present = 1, d.mask.type = FOVEA_U8; }, 4},
        {"dropout by Philox", [](FoveaAttentionDesc& d) { d.dropout_p = 0.5f; }, 1},
        {"pages and packed queries",
         [](FoveaAttentionDesc& d) {
             d.flags |= FOVEA_FLAG_VARLEN;
             d.packed_rows_q = 200;
             d.page_size = 16, d.page_count = 30, d.block_table_pages = 6;
         },
         1},
    };
    // A software driver gathers tables.
    for (const FoveaDeviceProperties& properties : {gpu_properties(), floor_properties()}) {
        for (const Case& c : cases) {
            SCOPED_TRACE(c.name);
            FoveaAttentionDesc desc = flash_desc(4, 6, 3, 77, 90, 16);
            c.edit(desc);
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan) << plan.error().text;
            EXPECT_EQ(plan->info().slice_count, c.slices);
            const FoveaDispatch d = dispatches_of(*plan, 0).back();
            EXPECT_EQ(d.groups[2], c.slices == 1 ? 4 * desc.heads_kv : desc.heads_kv);
            desc.max_slice_cost = plan->info().max_slice_flops / 3;
            const Result<Plan> cut = plan_attention(properties, desc);
            ASSERT_TRUE(cut) << cut.error().text;
            EXPECT_LE(cut->info().max_slice_flops, desc.max_slice_cost);
            EXPECT_GE(cut->info().slice_count, 4u);
        }
    }
}

// Loads of four elements need every row to begin at a multiple of four.
TEST(FlashPlan, four_elements_at_a_time_only_where_every_row_allows_it) {
    struct Case {
        const char* name;
        uint32_t dim_qk, dim_v;
        FoveaStrides q, k, v;
        bool quads;
    };
    const Case cases[] = {
        {"packed", 8, 12, {}, {}, {}, true},
        {"values of six", 8, 6, {}, {}, {}, false},
        {"keys of six", 6, 8, {}, {}, {}, false},
        {"rows of v ten apart", 8, 8, {}, {}, {2 * 90 * 10, 90 * 10, 10}, false},
        {"rows of v twelve apart", 8, 8, {}, {}, {2 * 90 * 12, 90 * 12, 12}, true},
        {"heads of k two elements apart from a multiple", 8, 8, {}, {2 * 722, 722, 8}, {}, false},
        {"entries of k two elements apart from a multiple", 8, 8, {}, {2 * 720 + 2, 720, 8}, {}, false},
        {"entries of v two elements apart from a multiple", 8, 8, {}, {}, {2 * 720 + 2, 720, 8}, false},
        {"rows of q nine apart", 8, 8, {2 * 70 * 9, 70 * 9, 9}, {}, {}, false},
        {"heads of q one element apart from a multiple", 8, 8, {2 * 561, 561, 8}, {}, {}, false},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaAttentionDesc desc = attention_desc(2, 2, 2, 70, 90, c.dim_qk, c.dim_v);
        desc.kernel = FOVEA_KERNEL_FLASH;
        desc.q_strides = c.q, desc.k_strides = c.k, desc.v_strides = c.v;
        for (const FoveaDeviceProperties& properties : {floor_properties(), gpu_properties()}) {
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan) << plan.error().text;
            EXPECT_EQ(dispatches_of(*plan, 0)[0].spec[FOVEA_SPEC_ALIGNED], c.quads ? 1u : 0u);
        }
    }
}

// The pipeline without the code for what changes or hides single logits serves only calls that have none of
// it.
TEST(FlashPlan, plain_calls_alone_take_the_plain_pipeline) {
    struct Case {
        const char* name;
        void (*edit)(FoveaAttentionDesc& d);
        bool general;
    };
    const Case cases[] = {
        {"plain", [](FoveaAttentionDesc&) {}, false},
        {"causal",
         [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_TOP_LEFT; }, false},
        {"sinks", [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_SINKS; }, false},
        {"softcap", [](FoveaAttentionDesc& d) { d.softcap = 3; }, true},
        {"ALiBi", [](FoveaAttentionDesc& d) { d.flags |= FOVEA_FLAG_ALIBI, d.align = FOVEA_ALIGN_TOP_LEFT; },
         true},
        {"a mask", [](FoveaAttentionDesc& d) { d.mask.present = 1, d.mask.type = FOVEA_U8; }, true},
        {"a bias", [](FoveaAttentionDesc& d) { d.bias.present = 1, d.bias.type = FOVEA_F32; }, true},
        {"dropout", [](FoveaAttentionDesc& d) { d.dropout_p = 0.1f; }, true},
        {"a dropout mask",
         [](FoveaAttentionDesc& d) { d.dropout_mask.present = 1, d.dropout_mask.type = FOVEA_U8; }, true},
        {"pages", [](FoveaAttentionDesc& d) { d.page_size = 16, d.page_count = 8, d.block_table_pages = 6; },
         true},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        FoveaAttentionDesc desc = flash_desc(1, 2, 2, 70, 90, 16);
        c.edit(desc);
        const Result<Plan> plan = plan_attention(gpu_properties(), desc);
        ASSERT_TRUE(plan) << plan.error().text;
        for (const FoveaDispatch& d : dispatches_of(*plan, 0)) {
            if (d.shader != uint32_t(Shader::flash)) continue;
            EXPECT_EQ(d.spec[FOVEA_SPEC_CALL], c.general ? 1u : 0u);
        }
    }
}

// One map serves all heads only where neither matrix differs by head.
TEST(FlashPlan, a_map_of_a_mask_is_for_all_heads_where_they_share_it) {
    for (const bool mask_heads : {false, true}) {
        for (const bool bias_heads : {false, true}) {
            FoveaAttentionDesc desc = flash_desc(1, 3, 3, 64, 4096, 16);
            desc.mask.present = 1, desc.mask.type = FOVEA_U8, desc.mask.heads = mask_heads ? 3 : 1;
            desc.bias.present = 1, desc.bias.type = FOVEA_F32, desc.bias.heads = bias_heads ? 3 : 1;
            const Result<Plan> plan = plan_attention(gpu_properties(), desc);
            ASSERT_TRUE(plan) << plan.error().text;
            const std::vector<FoveaDispatch> all = dispatches_of(*plan, 0);
            ASSERT_EQ(all[1].shader, uint32_t(Shader::mask_map));
            EXPECT_EQ(all[1].groups[2], mask_heads || bias_heads ? 3u : 1u);
        }
    }
}

TEST(FlashPlan, splits_keys_only_where_rows_are_few) {
    struct Case {
        uint32_t heads_q, heads_kv;
        uint64_t len_q, len_kv;
        uint32_t cores;
        bool splits;
    };
    const Case cases[] = {
        {8, 8, 1, 8192, 132, true},      // decode: 8 workgroups on 132 cores
        {32, 8, 1, 8192, 8, false},      // 8 workgroups fill 8 cores
        {8, 8, 4096, 4096, 132, false},  // prefill
        {8, 8, 1, 256, 132, false},      // few keys
    };
    for (const Case& c : cases) {
        FoveaDeviceProperties properties = gpu_properties();
        properties.core_count = c.cores;
        const Result<Plan> plan =
            plan_attention(properties, flash_desc(1, c.heads_q, c.heads_kv, c.len_q, c.len_kv, 64));
        ASSERT_TRUE(plan);
        const std::vector<FoveaDispatch> all = dispatches_of(*plan, 0);
        EXPECT_EQ(splits_of(all[0]) > 1, c.splits) << c.len_q << " x " << c.len_kv << " on " << c.cores;
        EXPECT_EQ(all.back().shader == uint32_t(Shader::flash_combine), c.splits);
        const auto push = push_of<shader::FlashPush>(all[0]);
        EXPECT_GE(uint64_t{push.split_keys} * splits_of(all[0]), c.len_kv) << "every key is in a split";
        EXPECT_EQ(push.split_keys % (4 * all[0].spec[FOVEA_SPEC_THREADS]), 0u)
            << "splits end where blocks end";
    }
}

TEST(FlashPlan, fixed_splits_depend_on_the_keys_alone) {
    for (const uint32_t batch : {1u, 7u}) {
        for (const FoveaDeviceProperties& properties : {floor_properties(), gpu_properties()}) {
            FoveaAttentionDesc desc = flash_desc(batch, 4, 2, 3, 5000, 64);
            desc.flags = FOVEA_FLAG_FIXED_SPLITS;
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan);
            const FoveaDispatch d = dispatches_of(*plan, 0)[0];
            EXPECT_EQ(splits_of(d), 5u);
            EXPECT_EQ(push_of<shader::FlashPush>(d).split_keys, 1024u);
        }
    }
}

TEST(FlashPlan, parameters_without_room_go_through_the_workspace) {
    FoveaAttentionDesc desc = flash_desc(2, 4, 2, 30, 40, 16);
    desc.dropout_p = 0.25f;
    const Result<Plan> plan = plan_attention(gpu_properties(), desc);
    ASSERT_TRUE(plan);
    const std::vector<FoveaDispatch> all = dispatches_of(*plan, 0);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].shader, uint32_t(Shader::flash_extra));
    EXPECT_EQ(all[1].barrier_before, 1u);
    const FoveaDispatchBinding *written = binding_at(all[0], FOVEA_SLOT_EXTRA),
                               *read = binding_at(all[1], FOVEA_SLOT_EXTRA);
    ASSERT_TRUE(written && read);
    EXPECT_EQ(written->offset, read->offset);
    desc.max_slice_cost = plan->info().max_slice_flops / 2;
    EXPECT_EQ(plan_attention(gpu_properties(), desc)->info().slices_share_workspace, 1u);
}

}  // namespace
}  // namespace fovea::test
