// The compiled shaders against the plans that dispatch them and against shaders/interface.h: binding slots,
// push constants, specialization constants, and the floor of shared memory and capabilities.
#include "shaders/planned.hpp"
#include "shaders/spirv_module.hpp"

#include "plan/vulkan/shaders.hpp"
#include "problem/row_parts.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea::test {
namespace {

enum Capability : uint32_t {
    kShader = 1,
    kFloat16 = 9,
    kGroupNonUniform = 61,
    kGroupNonUniformArithmetic = 63,
    kGroupNonUniformShuffle = 65,
    kStorageBuffer16BitAccess = 4433,
    kVulkanMemoryModel = 5345,
    kCooperativeMatrixKHR = 6022,
    kCooperativeMatrixReductionsNV = 5430,
    kCooperativeMatrixConversionsNV = 5431,
    kCooperativeMatrixPerElementOperationsNV = 5432,
};

bool is_coopmat(uint32_t shader) {
    return std::string(foveaShaderName(shader)).find("coopmat") != std::string::npos;
}

bool is_flexible(uint32_t shader) {
    return std::string(foveaShaderName(shader)).starts_with("flash_coopmat2");
}

SpirvModule module_of(uint32_t shader) {
    size_t count = 0;
    const uint32_t* words = foveaShaderCode(shader, &count);
    return SpirvModule::read({words, count});
}

// One dispatch of every shader, found by planning what leads to it: one that says most of its constants.
class EveryShader {
  public:
    EveryShader() {
        for (const FoveaDeviceClass device : {FOVEA_CLASS_CPU, FOVEA_CLASS_DISCRETE}) {
            FoveaDeviceProperties properties = gpu_properties();
            properties.device_class = device;
            for (const uint32_t features :
                 {uint32_t{FOVEA_FEATURE_DEVICE_ATOMICS}, uint32_t{FOVEA_FEATURE_F16_STORAGE}}) {
                properties.features = features;
                for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
                    add_attention(properties, type);
                    FoveaDeviceProperties with_subgroups = properties;
                    add_subgroups(with_subgroups, 32, 32);
                    add_attention(with_subgroups, type);
                    FoveaDeviceProperties with_shuffles = properties;
                    add_shuffles(with_shuffles, 8);
                    add_attention(with_shuffles, type);
                    if (foveaShaderCode(uint32_t(Shader::flash_coopmat), nullptr))
                        add_coopmat(properties, type);
                    add_map_tile(properties);
                    add_backward(properties);
                    add_operations(properties, type);
                }
            }
        }
    }

    std::map<uint32_t, FoveaDispatch> dispatches;

  private:
    void add(FoveaPlan handle) {
        const Plan plan(handle);
        ASSERT_NE(handle, nullptr);
        for (const FoveaDispatch& d : dispatches_of(plan, 0)) {
            FoveaDispatch& kept = dispatches[d.shader];
            if (d.spec_count > kept.spec_count) kept = d;
        }
    }
    void add_attention(const FoveaDeviceProperties& properties, FoveaDtype type) {
        FoveaAttentionDesc desc = attention_desc(2, 4, 2, 70, 2 * shader::kFixedSplitKeys, 40, 24);
        desc.o_type = type;
        desc.mask.present = 1;
        desc.mask.type = FOVEA_U8;
        for (const FoveaKernel kernel : {FOVEA_KERNEL_STAGED, FOVEA_KERNEL_FLASH}) {
            for (const uint32_t flags : {0u, uint32_t{FOVEA_FLAG_FIXED_SPLITS}}) {
                desc.kernel = kernel;
                desc.flags = flags;
                FoveaPlan plan = nullptr;
                EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, nullptr), FOVEA_OK);
                add(plan);
            }
        }
    }
    void add_coopmat(FoveaDeviceProperties properties, FoveaDtype type) {
        add_matrices(properties);
        FoveaAttentionDesc desc = attention_desc(2, 4, 2, 70, 90, 40, 24);
        desc.o_type = type;
        desc.precision = FOVEA_PRECISION_F16_INPUTS;
        desc.kernel = FOVEA_KERNEL_FLASH_COOPMAT;
        FoveaPlan plan = nullptr;
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        add_flexible_matrices(properties, 128);
        desc.kernel = FOVEA_KERNEL_FLASH_COOPMAT2;
        EXPECT_EQ(foveaPlanAttention(&properties, &desc, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
    }
    void add_map_tile(const FoveaDeviceProperties& properties) {
        FoveaAttentionDesc desc = attention_desc(2, 4, 2, 70, 90, 40, 24);
        desc.mask.present = 1;
        desc.mask.type = FOVEA_U8;
        FoveaMapTileDesc tile{};
        tile.struct_size = sizeof tile;
        tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
        FoveaPlan plan = nullptr;
        EXPECT_EQ(foveaPlanMapTile(&properties, &desc, &tile, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
    }
    void add_backward(const FoveaDeviceProperties& properties) {
        FoveaAttentionDesc desc = attention_desc(1, 1, 1, 7, 9, 8, 8);
        desc.flags = FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS, desc.align = FOVEA_ALIGN_TOP_LEFT;
        desc.bias.present = 1;
        for (const uint32_t gradients :
             {uint32_t{FOVEA_GRAD_Q}, uint32_t{FOVEA_GRAD_K | FOVEA_GRAD_V}, uint32_t{FOVEA_GRAD_BIAS},
              uint32_t{FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS}}) {
            const FoveaAttentionBackwardDesc backward = attention_backward(gradients);
            FoveaPlan plan = nullptr;
            EXPECT_EQ(foveaPlanAttentionBackward(&properties, &desc, &backward, nullptr, &plan, nullptr),
                      FOVEA_OK);
            add(plan);
        }
    }
    void add_operations(const FoveaDeviceProperties& properties, FoveaDtype type) {
        FoveaPlan plan = nullptr;
        FoveaRopeDesc rope{};
        rope.struct_size = sizeof rope;
        rope.y_type = type;
        rope.batch = rope.heads = 2, rope.dim = 8, rope.len = 5;
        EXPECT_EQ(foveaPlanRope(&properties, &rope, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaLinearDesc linear{};
        linear.struct_size = sizeof linear;
        linear.y_type = type;
        linear.n_in = 12, linear.n_out = 20, linear.rows = 33;
        EXPECT_EQ(foveaPlanLinear(&properties, &linear, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaDeviceProperties with_matrices = properties;
        add_matrices(with_matrices);
        linear.precision = FOVEA_PRECISION_F16_INPUTS;
        EXPECT_EQ(foveaPlanLinear(&with_matrices, &linear, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaAppendDesc append{};
        append.struct_size = sizeof append;
        append.y_type = type;
        append.batch = append.heads = 2, append.dim = 8, append.len = 5, append.capacity = 9;
        EXPECT_EQ(foveaPlanAppend(&properties, &append, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaAttentionDesc rotated = attention_desc(1, 1, 1, 5, 9, 32, 32);
        rotated.o_type = type, rotated.v_type = FOVEA_Q8_0, rotated.flags = FOVEA_FLAG_ROTATED_CACHE;
        EXPECT_EQ(foveaPlanAttention(&properties, &rotated, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaGatherDesc gather{};
        gather.struct_size = sizeof gather;
        gather.y_type = type;
        gather.batch = gather.heads = 2, gather.dim = 8, gather.len = 5, gather.capacity = 9;
        EXPECT_EQ(foveaPlanGather(&properties, &gather, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        NormDesc norm{};
        norm.width = 8, norm.rows = 5, norm.adds = norm.has_weight = norm.has_bias = 1;
        EXPECT_EQ(plan_norm(&properties, &norm, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        PointwiseDesc pointwise{};
        pointwise.count = 8;
        EXPECT_EQ(plan_pointwise(&properties, &pointwise, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
        FoveaMergeDesc merge{};
        merge.struct_size = sizeof merge;
        merge.y_type = type;
        merge.parts = 3, merge.batch = merge.heads = 2, merge.dim = 8, merge.len = 5;
        EXPECT_EQ(foveaPlanMerge(&properties, &merge, nullptr, &plan, nullptr), FOVEA_OK);
        add(plan);
    }
};

TEST(Shaders, every_module_is_dispatched_as_it_declares) {
    const EveryShader every;
    for (uint32_t shader = 0; shader < kShaderCount; ++shader) {
        SCOPED_TRACE(foveaShaderName(shader));
        if (is_left_out(shader)) continue;
        ASSERT_TRUE(every.dispatches.contains(shader)) << "no plan of this test leads to the shader";
        const FoveaDispatch& d = every.dispatches.at(shader);
        const SpirvModule m = module_of(shader);
        EXPECT_EQ(m.push_bytes, d.push_words * 4);
        for (uint32_t i = 0; i < d.binding_count; ++i)
            EXPECT_TRUE(m.bindings.contains(d.bindings[i].slot))
                << "slot " << d.bindings[i].slot << " is bound and not declared";
        ASSERT_FALSE(m.spec_ids.empty());
        EXPECT_LT(*m.spec_ids.rbegin(), d.spec_count);
        EXPECT_EQ(m.workgroup_size_spec_id, uint32_t{FOVEA_SPEC_THREADS});
    }
}

TEST(Shaders, push_constants_are_the_structs_of_the_interface) {
    const std::map<uint32_t, size_t> sizes = {
        {uint32_t(Shader::scores_direct), sizeof(shader::ScoresPush)},
        {uint32_t(Shader::scores_shared), sizeof(shader::ScoresPush)},
        {uint32_t(Shader::softmax), sizeof(shader::SoftmaxPush)},
        {uint32_t(Shader::flash), sizeof(shader::FlashPush)},
        {uint32_t(Shader::flash_subgroup), sizeof(shader::FlashPush)},
        {uint32_t(Shader::flash_shuffle), sizeof(shader::FlashPush)},
        {uint32_t(Shader::flash_combine), sizeof(shader::CombinePush)},
        {uint32_t(Shader::flash_extra), sizeof(shader::FlashExtra)},
        {uint32_t(Shader::map_tile), sizeof(shader::MapPush)},
        {uint32_t(Shader::backward_query), sizeof(shader::BackwardPush)},
        {uint32_t(Shader::backward_key), sizeof(shader::BackwardPush)},
        {uint32_t(Shader::backward_bias), sizeof(shader::BackwardPush)},
        {uint32_t(Shader::backward_row), sizeof(shader::BackwardPush)},
        {uint32_t(Shader::backward_sum), sizeof(shader::RowSumPush)},
        {uint32_t(Shader::weighted_sum_direct), sizeof(shader::WeightedSumPush)},
        {uint32_t(Shader::weighted_sum_shared), sizeof(shader::WeightedSumPush)},
        {uint32_t(Shader::linear_shared), sizeof(shader::LinearPush)},
        {uint32_t(Shader::linear_direct), sizeof(shader::LinearPush)},
        {uint32_t(Shader::rope), sizeof(shader::RopePush)},
        {uint32_t(Shader::cache_rows), sizeof(shader::CacheRowsPush)},
        {uint32_t(Shader::merge), sizeof(shader::MergePush)},
        {uint32_t(Shader::norm), sizeof(shader::NormPush)},
        {uint32_t(Shader::pointwise), sizeof(shader::PointwisePush)},
        {uint32_t(Shader::rotate), sizeof(shader::RotatePush)},
    };
    for (const auto& [shader, size] : sizes)
        EXPECT_EQ(module_of(shader).push_bytes, size) << foveaShaderName(shader);
}

TEST(Shaders, keep_to_the_floor) {
    const EveryShader every;
    for (uint32_t shader = 0; shader < kShaderCount; ++shader) {
        SCOPED_TRACE(foveaShaderName(shader));
        if (is_left_out(shader)) continue;
        const SpirvModule m = module_of(shader);
        // Vulkan 1.1 takes SPIR-V up to 1.3; the extension of flexible matrices comes with 1.3's.
        EXPECT_EQ(m.version, is_flexible(shader) ? 0x10600u : 0x10300u);
        EXPECT_LE(m.push_bytes, shader::kFloorPushBytes);
        EXPECT_LE(m.shared_bytes, shader::kFloorSharedBytes);
        const uint32_t threads = every.dispatches.at(shader).spec[FOVEA_SPEC_THREADS];
        EXPECT_GE(threads, 1u);
        EXPECT_LE(threads, shader::kFloorInvocations);
        std::set<uint32_t> allowed = {kShader};
        if (m.spec_ids.contains(FOVEA_SPEC_STORED_TYPE)) allowed.insert(kStorageBuffer16BitAccess);
        if (std::string(foveaShaderName(shader)).starts_with("flash_subgroup"))
            allowed.insert({kGroupNonUniform, kGroupNonUniformArithmetic});
        if (std::string(foveaShaderName(shader)).starts_with("flash_shuffle"))
            allowed.insert({kGroupNonUniform, kGroupNonUniformShuffle});
        if (is_coopmat(shader))
            allowed.insert({kFloat16, kGroupNonUniform, kVulkanMemoryModel, kCooperativeMatrixKHR});
        if (std::string(foveaShaderName(shader)).starts_with("flash_coopmat"))
            allowed.insert(kGroupNonUniformShuffle);
        if (is_flexible(shader))
            allowed.insert({kCooperativeMatrixReductionsNV, kCooperativeMatrixConversionsNV,
                            kCooperativeMatrixPerElementOperationsNV});
        for (const uint32_t capability : m.capabilities)
            EXPECT_TRUE(allowed.contains(capability)) << capability;
    }
}

// The planner trusts the formula; the module's arrays are reflected at its constants' defaults.
TEST(Shaders, shared_memory_of_matrices_is_what_the_formula_says) {
    const uint32_t shader = uint32_t(Shader::flash_coopmat);
    FOVEA_NEEDS_SHADER(shader);
    using shader::kMatrixPad;
    const uint32_t rows = 16, keys = 32, depth = 32, columns = 1 * 4 * 8, n = 8;
    EXPECT_EQ(module_of(shader).shared_bytes, FOVEA_MATRIX_SHARED_BYTES(rows, keys, depth, columns, n));
}

TEST(Shaders, shared_memory_of_flash_by_shuffles_is_what_the_formula_says) {
    // Without row statistics their array, which nothing touches then, has one place.
    EXPECT_EQ(module_of(uint32_t(Shader::flash_shuffle)).shared_bytes,
              FOVEA_SHUFFLE_SHARED_BYTES(shader::kFlashShuffleRows, 1) + FOVEA_STATS_SHARED_BYTES(1, 1));
}

TEST(Shaders, shared_memory_of_flexible_matrices_is_what_the_formula_says) {
    const uint32_t shader = uint32_t(Shader::flash_coopmat2);
    FOVEA_NEEDS_SHADER(shader);
    using shader::kMatrixPad;
    const uint32_t rows = 16, keys = 32, depth = 32, columns = 4 * 8;
    EXPECT_EQ(module_of(shader).shared_bytes, FOVEA_FLEXIBLE_SHARED_BYTES(rows, keys, depth, columns));
}

TEST(Shaders, shared_memory_of_linear_matrices_is_what_the_formula_says) {
    const uint32_t shader = uint32_t(Shader::linear_coopmat);
    FOVEA_NEEDS_SHADER(shader);
    using shader::kMatrixDepth, shader::kMatrixPad, shader::kMatrixSide;
    EXPECT_EQ(module_of(shader).shared_bytes, FOVEA_LINEAR_SHARED_BYTES(kMatrixSide, kMatrixSide, 4, 8, 8));
}

TEST(Shaders, the_reader_refuses_what_is_no_module) {
    const uint32_t garbage[] = {1, 2, 3, 4, 5, 6};
    EXPECT_TRUE(SpirvModule::read(garbage).bindings.empty());
    size_t count = 0;
    const uint32_t* words = foveaShaderCode(0, &count);
    std::vector<uint32_t> cut(words, words + count);
    cut[5] = 0xffffu << 16;  // an instruction longer than the module
    EXPECT_TRUE(SpirvModule::read(cut).bindings.empty());
    EXPECT_FALSE(SpirvModule::read({words, count}).bindings.empty());
}

TEST(Shaders, have_code_and_names_up_to_the_last) {
    size_t count = 1;
    EXPECT_EQ(foveaShaderCode(kShaderCount, &count), nullptr);
    EXPECT_EQ(count, 0u);
    EXPECT_STREQ(foveaShaderName(kShaderCount), "unknown");
    EXPECT_STREQ(foveaShaderName(uint32_t(Shader::softmax)), "softmax");
}

}  // namespace
}  // namespace fovea::test
