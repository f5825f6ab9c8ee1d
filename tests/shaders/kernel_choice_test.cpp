// Which kernel an attention call gets on Vulkan, and the reason that goes with it.
#include "shaders/planned.hpp"

#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace fovea::test {
namespace {

FoveaDeviceProperties matrix_properties() {
    FoveaDeviceProperties properties = gpu_properties();
    add_matrices(properties);
    return properties;
}

FoveaDeviceProperties flexible_properties() {
    FoveaDeviceProperties properties = gpu_properties();
    add_flexible_matrices(properties, 128);
    return properties;
}

struct Choice {
    const char* name;
    FoveaDeviceProperties properties;
    std::function<void(FoveaAttentionDesc&)> change;
    FoveaKernel kernel;
    const char* reason;  // a part of it
};

TEST(KernelChoice, goes_by_this_table) {
    const bool has_coopmat = foveaShaderCode(uint32_t(Shader::flash_coopmat), nullptr) != nullptr;
    const auto f16 = [](FoveaAttentionDesc& d) { d.precision = FOVEA_PRECISION_F16_INPUTS; };
    const auto bf16 = [](FoveaAttentionDesc& d) { d.precision = FOVEA_PRECISION_BF16_INPUTS; };
    FoveaDeviceProperties bfloat16 = matrix_properties();
    bfloat16.features |= FOVEA_FEATURE_BF16_INPUTS;
    FoveaDeviceProperties software = matrix_properties();
    software.device_class = FOVEA_CLASS_CPU;
    FoveaDeviceProperties little_shared = matrix_properties();
    little_shared.max_shared_bytes = 16384;
    const Choice table[] = {
        {"any device", floor_properties(), {}, FOVEA_KERNEL_FLASH, "not flash_coopmat: it rounds its inputs"},
        {"a matrix wanted", gpu_properties(),
         [](auto& d) { d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS; }, FOVEA_KERNEL_STAGED,
         "not flash: it does not support matrix outputs"},
        {"row statistics wanted", flexible_properties(),
         [&](auto& d) {
             f16(d);
             d.outputs = FOVEA_OUTPUT_ROW_STATS;
         },
         has_coopmat ? FOVEA_KERNEL_FLASH_COOPMAT : FOVEA_KERNEL_FLASH,
         "not flash_coopmat2: it does not support row statistics"},
        {"a cache in fewer bits", matrix_properties(),
         [&](auto& d) {
             f16(d);
             d.v_type = FOVEA_Q4_0;
         },
         has_coopmat ? FOVEA_KERNEL_FLASH_COOPMAT : FOVEA_KERNEL_FLASH, "flash"},
        {"a budget below one row", gpu_properties(), [](auto& d) { d.max_slice_cost = 2e5; },
         FOVEA_KERNEL_STAGED, "not flash: max_slice_cost is 200000 FLOP"},
        {"cooperative matrices", matrix_properties(), f16,
         has_coopmat ? FOVEA_KERNEL_FLASH_COOPMAT : FOVEA_KERNEL_FLASH, "flash"},
        {"matrices of bfloat16", bfloat16, bf16,
         has_coopmat ? FOVEA_KERNEL_FLASH_COOPMAT : FOVEA_KERNEL_FLASH, "flash"},
        {"no matrices of bfloat16", matrix_properties(), bf16, FOVEA_KERNEL_FLASH,
         "the device lists no matrices of bfloat16"},
        {"flexible matrices", flexible_properties(), f16,
         has_coopmat ? FOVEA_KERNEL_FLASH_COOPMAT : FOVEA_KERNEL_FLASH, "flash"},
        {"cooperative matrices, float32 asked for",
         matrix_properties(),
         {},
         FOVEA_KERNEL_FLASH,
         "FOVEA_PRECISION_F16_INPUTS must allow"},
        {"no cooperative matrices", gpu_properties(), f16, FOVEA_KERNEL_FLASH,
         "does not support cooperative matrices"},
        {"matrices in software", software, f16, FOVEA_KERNEL_FLASH, "no hardware for cooperative matrices"},
        {"decode", matrix_properties(),
         [&](auto& d) {
             f16(d);
             d.len_q = 1;
         },
         FOVEA_KERNEL_FLASH, "too few query rows"},
        {"a large head in little memory", little_shared,
         [&](auto& d) {
             f16(d);
             d.dim_qk = 256;
         },
         FOVEA_KERNEL_FLASH,
         has_coopmat ? "not flash_coopmat: properties.max_shared_bytes is 16384" : "flash"},
        {"by name", gpu_properties(), [](auto& d) { d.kernel = FOVEA_KERNEL_STAGED; }, FOVEA_KERNEL_STAGED,
         "staged (asked for by name)"},
    };
    for (const Choice& c : table) {
        SCOPED_TRACE(c.name);
        FoveaAttentionDesc desc = attention_desc(1, 8, 2, 512, 512, 64, 64);
        if (c.change) c.change(desc);
        const Result<Plan> plan = plan_attention(c.properties, desc);
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_EQ(plan->info().kernel, c.kernel);
        EXPECT_NE(std::string(plan->info().reason).find(c.reason), std::string::npos) << plan->info().reason;
    }
}

TEST(KernelChoice, a_kernel_by_name_that_cannot_is_refused_with_the_reason) {
    FoveaAttentionDesc desc = attention_desc(1, 2, 2, 64, 64, 64, 64);
    desc.kernel = FOVEA_KERNEL_FLASH_COOPMAT;
    const Result<Plan> plan = plan_attention(matrix_properties(), desc);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, FOVEA_UNSUPPORTED);
    EXPECT_EQ(plan.error().field, "kernel");
    EXPECT_NE(plan.error().text.find("FOVEA_PRECISION_F16_INPUTS"), std::string::npos) << plan.error().text;
}

// flash_coopmat2 by name: its shape, or why not.
TEST(KernelChoice, flexible_matrices_go_by_this_table) {
    FOVEA_NEEDS_SHADER(Shader::flash_coopmat2);
    struct FlexibleChoice {
        const char* name;
        uint32_t workgroup;  // size of the matrices' workgroup; 0: a subgroup
        uint32_t len_q, dim;
        std::function<void(FoveaDeviceProperties&)> change;
        uint32_t rows, keys, columns;  // 0: rejected
        const char* text;              // part of the explanation or the error
    };
    using Properties = FoveaDeviceProperties;
    const auto none = [](Properties&) {};
    const FlexibleChoice table[] = {
        {"a workgroup", 128, 512, 64, none, 64, 64, 64, "matrices belong to its workgroup"},
        {"few rows", 128, 8, 64, none, 32, 64, 64, "matrices belong to its workgroup"},
        {"a large head", 128, 512, 256, none, 32, 32, 64, "matrices belong to its workgroup"},
        {"256 threads", 256, 512, 64, [](Properties& f) { f.max_workgroup_invocations = 256; }, 64, 64, 64,
         "256 threads"},
        {"more threads than allowed", 256, 512, 64, none, 0, 0, 0, "its workgroups do not fit"},
        {"a subgroup", 0, 512, 64, none, 16, 32, 64, "matrices belong to its subgroup"},
        {"software", 0, 512, 64,
         [](Properties& f) {
             f.device_class = FOVEA_CLASS_CPU;
             f.coopmat2_m = f.coopmat2_n = f.coopmat2_k = f.subgroup_size = 8;
         },
         8, 16, 16, "matrices belong to its subgroup"},
        {"memory is reserved", 128, 512, 64, [](Properties& f) { f.coopmat2_reserved_bytes = 65536; }, 0, 0,
         0, "do not fit"},
        {"sides are short", 128, 512, 64, [](Properties& f) { f.coopmat2_max_side = 32; }, 0, 0, 0,
         "properties.coopmat2_max_side 32"},
        {"no flexible matrices", 128, 512, 64,
         [](Properties& f) { f.features &= ~uint32_t{FOVEA_FEATURE_COOPMAT2}; }, 0, 0, 0,
         "does not support VK_NV_cooperative_matrix2"},
        {"a subgroup of no chosen size", 0, 512, 64,
         [](Properties& f) { f.features &= ~uint32_t{FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL}; }, 0, 0, 0,
         "lacks full subgroups"},
    };
    for (const FlexibleChoice& c : table) {
        SCOPED_TRACE(c.name);
        FoveaDeviceProperties properties = gpu_properties();
        add_flexible_matrices(properties, c.workgroup);
        c.change(properties);
        FoveaAttentionDesc desc = attention_desc(1, 8, 8, c.len_q, 512, c.dim, c.dim);
        desc.precision = FOVEA_PRECISION_F16_INPUTS;
        desc.kernel = FOVEA_KERNEL_FLASH_COOPMAT2;
        const Result<Plan> plan = plan_attention(properties, desc);
        EXPECT_EQ(bool(plan), c.rows != 0) << (plan ? "" : plan.error().text);
        const std::string text = plan ? plan->explain() : plan.error().text;
        EXPECT_NE(text.find(c.text), std::string::npos) << text;
        if (!plan || !c.rows) continue;
        const FoveaDispatch d = dispatches_of(*plan, 0)[0];
        EXPECT_EQ(d.spec[FOVEA_SPEC_ROWS], c.rows);
        EXPECT_EQ(d.spec[FOVEA_SPEC_KEYS], c.keys);
        EXPECT_EQ(4 * d.spec[FOVEA_SPEC_COLUMN_QUADS], c.columns);
        EXPECT_EQ(d.spec[FOVEA_SPEC_SCOPE], c.workgroup ? shader::kScopeWorkgroup : shader::kScopeSubgroup);
        EXPECT_EQ(d.subgroup_size, c.workgroup ? 0 : properties.subgroup_size);
    }
}

// Linear layers on cooperative matrices: by properties and precision, with the reason where not.
TEST(KernelChoice, linear_goes_by_this_table) {
    FOVEA_NEEDS_SHADER(Shader::linear_coopmat);
    struct LinearChoice {
        const char* name;
        std::function<void(FoveaDeviceProperties&, FoveaLinearDesc&)> change;
        uint32_t subgroups;  // 0: not on cooperative matrices
        const char* reason;
    };
    using Properties = FoveaDeviceProperties;
    using Linear = FoveaLinearDesc;
    const LinearChoice table[] = {
        {"16 x 16 x 16", [](Properties&, Linear&) {}, 4, "cooperative matrices, float16 inputs"},
        {"bfloat16",
         [](Properties& f, Linear& d) {
             f.features |= FOVEA_FEATURE_BF16_INPUTS;
             d.precision = FOVEA_PRECISION_BF16_INPUTS;
         },
         4, "cooperative matrices, bfloat16 inputs"},
        {"bfloat16 where there is none",
         [](Properties&, Linear& d) { d.precision = FOVEA_PRECISION_BF16_INPUTS; }, 0,
         "lists no matrices of bfloat16"},
        {"8 x 8 x 8", [](Properties& f, Linear&) { f.coopmat_m = f.coopmat_n = f.coopmat_k = 8; }, 4,
         "cooperative matrices"},
        {"8 x 16 x 16", [](Properties& f, Linear&) { f.coopmat_m = 8; }, 4, "cooperative matrices"},
        {"subgroups of 64", [](Properties& f, Linear&) { f.subgroup_size = 64; }, 2, "cooperative matrices"},
        {"subgroups of 128", [](Properties& f, Linear&) { f.subgroup_size = 128; }, 1,
         "cooperative matrices"},
        {"48 x 16 x 16", [](Properties& f, Linear&) { f.coopmat_m = 48; }, 0,
         "do not fit into a subgroup's part"},
        {"k of 64", [](Properties& f, Linear&) { f.coopmat_k = 64; }, 0, "do not fit into a subgroup's part"},
        {"the floor's shared memory", [](Properties& f, Linear&) { f.max_shared_bytes = 16384; }, 4,
         "cooperative matrices"},
        {"large matrices in it",
         [](Properties& f, Linear&) {
             f.max_shared_bytes = 16384;
             f.coopmat_m = f.coopmat_n = 32;
         },
         0, "properties.max_shared_bytes"},
        {"float32", [](Properties&, Linear& d) { d.precision = FOVEA_PRECISION_F32; }, 0,
         "F16_INPUTS must allow"},
        {"software", [](Properties& f, Linear&) { f.device_class = FOVEA_CLASS_CPU; }, 0,
         "no hardware for cooperative matrices"},
        {"no matrices", [](Properties& f, Linear&) { f.features &= ~uint32_t{FOVEA_FEATURE_COOPMAT}; }, 0,
         "does not support cooperative matrices"},
        {"few rows", [](Properties&, Linear& d) { d.rows = 4; }, 0, "too few rows"},
    };
    for (const LinearChoice& c : table) {
        SCOPED_TRACE(c.name);
        FoveaDeviceProperties properties = matrix_properties();
        FoveaLinearDesc desc{};
        desc.struct_size = sizeof desc;
        desc.n_in = 96, desc.n_out = 200, desc.rows = 130;
        desc.precision = FOVEA_PRECISION_F16_INPUTS;
        c.change(properties, desc);
        FoveaPlan handle = nullptr;
        Diag diag;
        ASSERT_EQ(foveaPlanLinear(&properties, &desc, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
        const Plan plan(handle);
        EXPECT_NE(std::string(plan.info().reason).find(c.reason), std::string::npos) << plan.info().reason;
        const FoveaDispatch d = dispatches_of(plan, 0)[0];
        EXPECT_EQ(d.subgroup_size, c.subgroups ? properties.subgroup_size : 0u);
        if (!c.subgroups) continue;
        EXPECT_EQ(d.spec[FOVEA_SPEC_SUBGROUPS], c.subgroups);
        EXPECT_EQ(d.spec[FOVEA_SPEC_THREADS], c.subgroups * properties.subgroup_size);
        EXPECT_EQ(d.groups[0], 4u);
        EXPECT_EQ(d.groups[1], 3u);
    }
    const FoveaDeviceProperties properties = matrix_properties();
    FoveaLinearDesc int8 = foveaLinearDesc();
    int8.n_in = 96, int8.n_out = 200, int8.rows = 1, int8.w_type = FOVEA_Q8_0;
    int8.precision = FOVEA_PRECISION_INT8_INPUTS;
    FoveaPlan handle = nullptr;
    Diag diag;
    EXPECT_EQ(foveaPlanLinear(&properties, &int8, nullptr, &handle, &diag), FOVEA_UNSUPPORTED);
    EXPECT_STREQ(diag.text, "precision is FOVEA_PRECISION_INT8_INPUTS, which is only for the CPU");
}

// A kernel that foveaCheckDevice found wrong is passed over, for the class of types that it was found with.
TEST(KernelChoice, kernels_that_failed_the_drivers_check_are_off) {
    const auto off = [](FoveaDeviceProperties properties, uint32_t type,
                        std::initializer_list<Shader> shaders) {
        for (const Shader shader : shaders)
            properties.failed_shaders[type] |= uint64_t{1} << uint32_t(shader);
        return properties;
    };
    FoveaDeviceProperties gpu = gpu_properties();
    add_subgroups(gpu, 32, 32);
    const auto shader_of = [](const FoveaDeviceProperties& properties, FoveaDtype type, std::string& text) {
        FoveaAttentionDesc desc = attention_desc(1, 2, 2, 64, 64, 64, 64);
        desc.k_type = desc.v_type = type;
        const Result<Plan> plan = plan_attention(properties, desc);
        text = plan ? plan->explain() : plan.error().text;
        return plan ? std::string(foveaShaderName(dispatches_of(*plan, 0)[0].shader)) : "";
    };
    constexpr const char* kWhy = "it gave wrong results on this driver (foveaCheckDevice)";
    constexpr uint32_t kF32 = FOVEA_CHECK_F32;
    std::string text;
    EXPECT_EQ(shader_of(gpu, FOVEA_F32, text), "flash_subgroup");
    EXPECT_EQ(shader_of(off(gpu, kF32, {Shader::flash_subgroup}), FOVEA_F32, text), "flash");
    EXPECT_NE(text.find(kWhy), std::string::npos) << text;
    EXPECT_EQ(shader_of(off(gpu, kF32, {Shader::flash_subgroup}), FOVEA_F16, text), "flash_subgroup");
    EXPECT_EQ(shader_of(off(gpu, FOVEA_CHECK_F16, {Shader::flash_subgroup}), FOVEA_F16, text), "flash");
    EXPECT_EQ(shader_of(off(gpu, FOVEA_CHECK_QUANTIZED, {Shader::flash_subgroup}), FOVEA_F16, text),
              "flash_subgroup");
    FoveaDeviceProperties bad = off(gpu, kF32, {Shader::flash_subgroup, Shader::flash});
    EXPECT_EQ(shader_of(bad, FOVEA_F32, text).substr(0, 6), "scores");
    EXPECT_NE(text.find("not flash: flash is off for float32 tensors: "), std::string::npos) << text;
    FoveaAttentionDesc forced = attention_desc(1, 2, 2, 64, 64, 64, 64);
    forced.kernel = FOVEA_KERNEL_FLASH;
    const Result<Plan> refused = plan_attention(bad, forced);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, FOVEA_UNSUPPORTED);
    EXPECT_EQ(refused.error().field, "properties.failed_shaders");
    EXPECT_EQ(refused.error().text, std::string("flash is off for float32 tensors: ") + kWhy +
                                        "; update the driver, or use another kernel or the CPU");
    bad = off(bad, kF32, {Shader::softmax});
    EXPECT_EQ(shader_of(bad, FOVEA_F32, text), "");
    EXPECT_EQ(text.substr(0, 33), "staged is off for float32 tensors");

    FoveaLinearDesc linear = foveaLinearDesc();
    linear.n_in = 96, linear.n_out = 200, linear.rows = 130;
    linear.precision = FOVEA_PRECISION_F16_INPUTS;
    const auto linear_of = [&](const FoveaDeviceProperties& properties) {
        FoveaPlan handle = nullptr;
        if (foveaPlanLinear(&properties, &linear, nullptr, &handle, nullptr) != FOVEA_OK)
            return std::string();
        return std::string(foveaShaderName(dispatches_of(Plan(handle), 0)[0].shader));
    };
    const FoveaDeviceProperties matrices = matrix_properties();
    if (!is_left_out(uint32_t(Shader::linear_coopmat))) {
        EXPECT_EQ(linear_of(matrices), "linear_coopmat");
    }
    EXPECT_EQ(linear_of(off(matrices, kF32, {Shader::linear_coopmat})), "linear_shared");
    EXPECT_EQ(linear_of(off(matrices, kF32, {Shader::linear_coopmat, Shader::linear_shared})),
              "linear_direct");
    EXPECT_EQ(linear_of(off(matrices, kF32,
                            {Shader::linear_coopmat, Shader::linear_shared, Shader::linear_direct})),
              "");
}

}  // namespace
}  // namespace fovea::test
