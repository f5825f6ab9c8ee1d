// The errors of Vulkan plans, with their fields; and the explanations of plans.
#include "shaders/planned.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace fovea::test {
namespace {

struct Refusal {
    const char* field;
    FoveaResult code;
    std::function<void(FoveaDeviceProperties&, FoveaAttentionDesc&)> change;
};

TEST(Refusals, name_the_field) {
    const Refusal refusals[] = {
        {"properties.max_workgroup_invocations", FOVEA_UNSUPPORTED,
         [](auto& f, auto&) { f.max_workgroup_invocations = 64; }},
        {"properties.max_shared_bytes", FOVEA_UNSUPPORTED, [](auto& f, auto&) { f.max_shared_bytes = 8192; }},
        {"properties.max_push_bytes", FOVEA_UNSUPPORTED, [](auto& f, auto&) { f.max_push_bytes = 64; }},
        {"properties.max_workgroup_count[1]", FOVEA_UNSUPPORTED,
         [](auto& f, auto&) { f.max_workgroup_count[1] = 0; }},
        {"properties.storage_offset_alignment", FOVEA_INVALID_ARGUMENT,
         [](auto& f, auto&) { f.storage_offset_alignment = 96; }},
        {"properties.storage_offset_alignment", FOVEA_INVALID_ARGUMENT,
         [](auto& f, auto&) { f.storage_offset_alignment = 512; }},
        {"properties.subgroup_size", FOVEA_INVALID_ARGUMENT, [](auto& f, auto&) { f.subgroup_size = 24; }},
        {"properties.max_subgroup_size", FOVEA_INVALID_ARGUMENT,
         [](auto& f, auto&) { f.max_subgroup_size = 256; }},
        {"properties.max_storage_range", FOVEA_UNSUPPORTED,
         [](auto& f, auto&) { f.max_storage_range = 215; }},
        {"properties.max_storage_range", FOVEA_INVALID_ARGUMENT,
         [](auto& f, auto&) { f.max_storage_range = uint64_t{1} << 32; }},
        {"properties.flash_tiles[4]", FOVEA_INVALID_ARGUMENT,
         [](auto& f, auto&) {
             f.flash_tiles[4] = {4, 12, 1};
         }},
        {"properties.mask_map", FOVEA_INVALID_ARGUMENT, [](auto& f, auto&) { f.mask_map = FoveaMaskMap(3); }},
        {"properties.cpu_threads", FOVEA_LIMIT_EXCEEDED, [](auto& f, auto&) { f.cpu_threads = 65537; }},
        {"o_type", FOVEA_UNSUPPORTED, [](auto&, auto& d) { d.o_type = FOVEA_F16; }},
        {"kernel", FOVEA_UNSUPPORTED, [](auto&, auto& d) { d.kernel = FOVEA_KERNEL_PLAIN; }},
        {"kernel", FOVEA_UNSUPPORTED, [](auto&, auto& d) { d.kernel = FOVEA_KERNEL_FLASH_COOPMAT2; }},
        {"kernel", FOVEA_UNSUPPORTED,
         [](auto&, auto& d) { d.kernel = FOVEA_KERNEL_FLASH, d.outputs = FOVEA_OUTPUT_WEIGHTS; }},
        {"kernel", FOVEA_UNSUPPORTED, [](auto&, auto& d) { d.k_type = FOVEA_F8_E4M3; }},
        {"kernel", FOVEA_UNSUPPORTED,
         [](auto&, auto& d) {
             d.kernel = FOVEA_KERNEL_AUTO, d.v_type = FOVEA_F8_E5M2, d.outputs = FOVEA_OUTPUT_WEIGHTS;
         }},
        {"max_slice_cost", FOVEA_LIMIT_EXCEEDED, [](auto&, auto& d) { d.max_slice_cost = 100; }},
        {"workspace_limit", FOVEA_LIMIT_EXCEEDED, [](auto&, auto& d) { d.workspace_limit = 600; }},
        {"len_kv", FOVEA_SIZE_OVERFLOW, [](auto&, auto& d) { d.len_kv = uint64_t{1} << 29; }},
        // One head's keys do not fit one descriptor, however small the slice.
        {"K", FOVEA_LIMIT_EXCEEDED, [](auto&, auto& d) { d.len_kv = 300000, d.dim_qk = 128; }},
        {"V", FOVEA_LIMIT_EXCEEDED, [](auto&, auto& d) { d.len_kv = 300000, d.dim_v = 128; }},
        // 2^32 numbers in 2.4 GB: the bytes fit, but shaders count numbers in 32 bits.
        {"K", FOVEA_LIMIT_EXCEEDED,
         [](auto& f, auto& d) {
             f.max_storage_range = UINT32_MAX;
             d.kernel = FOVEA_KERNEL_FLASH, d.k_type = FOVEA_Q4_0;
             d.dim_qk = 32, d.len_kv = uint64_t{1} << 27;
         }},
        {"K", FOVEA_LIMIT_EXCEEDED,
         [](auto&, auto& d) { d.page_size = 16, d.page_count = 1 << 20, d.block_table_pages = 7; }},
        {"properties.max_workgroup_count", FOVEA_LIMIT_EXCEEDED,
         [](auto& f, auto& d) { f.max_workgroup_count[0] = 2, d.len_kv = 4096; }},
    };
    for (const Refusal& refusal : refusals) {
        FoveaDeviceProperties properties = floor_properties();
        FoveaAttentionDesc desc = attention_desc(2, 4, 2, 50, 100, 16, 16);
        desc.kernel = FOVEA_KERNEL_STAGED;
        refusal.change(properties, desc);
        FoveaPlan plan = nullptr;
        Diag diag;
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, &diag), refusal.code)
            << refusal.field;
        EXPECT_STREQ(diag.field, refusal.field) << diag.text;
        EXPECT_EQ(plan, nullptr);
        Diag checked;
        EXPECT_EQ(foveaCheckAttention(&properties, &desc, &checked), refusal.code);
        EXPECT_STREQ(checked.text, diag.text);
    }
}

TEST(Refusals, matrices_that_would_not_fit_are_refused_by_name) {
    // One row of the matrix is larger than a descriptor.
    FoveaDeviceProperties properties = floor_properties();
    FoveaAttentionDesc desc = attention_desc(1, 1, 1, 4, uint64_t{1} << 26, 1, 1);
    properties.max_storage_range = uint64_t{1} << 28;
    properties.max_workgroup_count[0] = UINT32_MAX;
    desc.k_type = desc.v_type = FOVEA_F16;
    desc.workspace_limit = uint64_t{1} << 32;
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS;
    desc.max_slice_cost = 1e12;
    FoveaPlan plan = nullptr;
    Diag diag;
    EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "WEIGHTS") << diag.text;
}

TEST(Refusals, other_operations_name_the_field_too) {
    const FoveaDeviceProperties properties = floor_properties();
    Diag diag;
    FoveaPlan plan = nullptr;
    FoveaLinearDesc linear{};
    linear.struct_size = sizeof linear;
    linear.n_in = 1 << 16, linear.n_out = 1 << 12, linear.rows = 3, linear.weight_is_in_out = 1;
    EXPECT_EQ(foveaPlanLinear(&properties, &linear, nullptr, &plan, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "WEIGHT") << "columns of [n_in, n_out] span the whole matrix";
    linear.weight_is_in_out = 0;
    EXPECT_EQ(foveaPlanLinear(&properties, &linear, nullptr, &plan, &diag), FOVEA_OK) << "rows are cut";
    foveaDestroyPlan(plan);
    linear.kernel = FOVEA_KERNEL_PLAIN;
    EXPECT_EQ(foveaPlanLinear(&properties, &linear, nullptr, &plan, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.field, "kernel");

    FoveaAppendDesc append{};
    append.struct_size = sizeof append;
    append.batch = append.heads = 1, append.dim = 128, append.len = 1, append.capacity = 1 << 20;
    EXPECT_EQ(foveaPlanAppend(&properties, &append, nullptr, &plan, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "Y");
    // Bytes are replaced in their words, which other threads write too.
    append.capacity = 1 << 10;
    append.y_type = FOVEA_F8_E4M3;
    FoveaDeviceProperties no_atomics = gpu_properties();
    no_atomics.features &= ~uint32_t{FOVEA_FEATURE_DEVICE_ATOMICS};
    EXPECT_EQ(foveaPlanAppend(&no_atomics, &append, nullptr, &plan, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.text,
                 "y_type is 5; to write it the device needs atomics of device scope "
                 "(FOVEA_FEATURE_DEVICE_ATOMICS)");
    append.y_type = FOVEA_Q8_0;
    EXPECT_EQ(foveaPlanAppend(&no_atomics, &append, nullptr, &plan, &diag), FOVEA_OK) << "halves are stored";
    foveaDestroyPlan(plan);
}

TEST(Explain, says_kernel_reason_tiles_and_slices) {
    FoveaAttentionDesc desc = attention_desc(2, 4, 2, 50, 100, 16, 16);
    desc.kernel = FOVEA_KERNEL_STAGED;
    const Result<Plan> plan = plan_attention(gpu_properties(), desc);
    ASSERT_TRUE(plan);
    const std::string text = plan->explain();
    for (const char* part : {"staged", "scores: tiles of 64 x 64", "softmax:", "weighted sum:", "a slice:"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
}

TEST(Explain, says_why_not_a_faster_kernel) {
    FoveaAttentionDesc desc = attention_desc(1, 2, 2, 50, 100, 16, 16);
    const Result<Plan> one_pass = plan_attention(gpu_properties(), desc);
    ASSERT_TRUE(one_pass);
    EXPECT_EQ(one_pass->info().kernel, FOVEA_KERNEL_FLASH);
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS;
    const Result<Plan> staged = plan_attention(gpu_properties(), desc);
    ASSERT_TRUE(staged);
    EXPECT_EQ(staged->info().kernel, FOVEA_KERNEL_STAGED);
    EXPECT_NE(std::string(staged->info().reason).find("not flash: it does not support matrix outputs"),
              std::string::npos)
        << staged->info().reason;
}

// A measured tile has 1 to 8 rows, 8, 16 or 32 threads, 1 or 2 quads of columns, or nothing at all.
TEST(Refusals, of_tiles_that_no_shader_has) {
    const auto plan_with = [](const FoveaFlashTile& tile) {
        FoveaDeviceProperties properties = gpu_properties();
        properties.flash_tiles[2] = tile;
        return plan_attention(properties, attention_desc(1, 2, 2, 64, 64, 16, 16));
    };
    const FoveaFlashTile served[] = {{0, 0, 0}, {1, 8, 1}, {8, 32, 2}, {3, 16, 2}};
    for (const FoveaFlashTile& tile : served) EXPECT_TRUE(plan_with(tile)) << tile.rows;
    const FoveaFlashTile refused[] = {{0, 8, 1},  {9, 8, 1}, {4, 0, 1}, {4, 12, 1},
                                      {4, 64, 1}, {4, 8, 0}, {4, 8, 3}};
    for (const FoveaFlashTile& tile : refused) {
        const Result<Plan> plan = plan_with(tile);
        ASSERT_FALSE(plan) << tile.rows << ", " << tile.threads << ", " << tile.column_quads;
        EXPECT_EQ(plan.error().code, FOVEA_INVALID_ARGUMENT);
        EXPECT_EQ(plan.error().field, "properties.flash_tiles[2]");
    }
}

}  // namespace
}  // namespace fovea::test
