// Plans at the edge of a device's limits: each limit equal to the plan's use, one step above and one below.
// Every plan stays within the limits, and a limit that is reached but not exceeded rejects nothing.
#include "shaders/planned.hpp"
#include "shaders/windows.hpp"

#include "plan/vulkan/shaders.hpp"
#include "shaders/interface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace fovea::test {
namespace {

struct Call {
    const char* name;
    std::function<Result<Plan>(const FoveaDeviceProperties&)> plan;
};

Call attention_call(const char* name, FoveaAttentionDesc desc,
                    const std::function<void(FoveaAttentionDesc&)>& change = {}) {
    if (change) change(desc);
    return {name,
            [desc](const FoveaDeviceProperties& properties) { return plan_attention(properties, desc); }};
}

template <class Make, class Desc>
Result<Plan> made(Make make, const FoveaDeviceProperties& properties, const Desc& desc) {
    FoveaPlan plan = nullptr;
    Diag diag;
    if (make(&properties, &desc, nullptr, &plan, &diag) != FOVEA_OK)
        return Error{diag.code, diag.field, diag.text, 0};
    return Plan(plan);
}

std::vector<Call> calls() {
    const auto named = [](FoveaKernel kernel) { return [=](FoveaAttentionDesc& d) { d.kernel = kernel; }; };
    std::vector<Call> all;
    all.push_back(attention_call("decode in splits", attention_desc(1, 4, 4, 1, 4096, 64, 64),
                                 [](FoveaAttentionDesc& d) {
                                     d.kernel = FOVEA_KERNEL_FLASH, d.flags = FOVEA_FLAG_FIXED_SPLITS;
                                     d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
                                 }));
    all.push_back(attention_call(
        "wide values in splits", attention_desc(2, 6, 2, 5, 3000, 40, 300),
        [](FoveaAttentionDesc& d) { d.kernel = FOVEA_KERNEL_FLASH, d.flags = FOVEA_FLAG_FIXED_SPLITS; }));
    all.push_back(attention_call(
        "many rows in splits", attention_desc(1, 2, 2, 600, 2048, 8, 8),
        [](FoveaAttentionDesc& d) { d.kernel = FOVEA_KERNEL_FLASH, d.flags = FOVEA_FLAG_FIXED_SPLITS; }));
    // Partial results in float32 are more than all that is bound in float16.
    all.push_back(attention_call("many rows of halves in splits", attention_desc(1, 2, 2, 1200, 2048, 8, 8),
                                 [](FoveaAttentionDesc& d) {
                                     d.kernel = FOVEA_KERNEL_FLASH, d.flags = FOVEA_FLAG_FIXED_SPLITS;
                                     d.q_type = d.k_type = d.v_type = d.o_type = FOVEA_F16;
                                 }));
    all.push_back(
        attention_call("flash", attention_desc(2, 4, 2, 130, 200, 24, 40), named(FOVEA_KERNEL_FLASH)));
    all.push_back(
        attention_call("flash, odd rows", attention_desc(2, 3, 3, 77, 33, 5, 7), named(FOVEA_KERNEL_FLASH)));
    all.push_back(attention_call("flash with a mask's map", attention_desc(1, 2, 1, 64, 5000, 16, 16),
                                 [](FoveaAttentionDesc& d) {
                                     d.kernel = FOVEA_KERNEL_FLASH;
                                     d.mask.present = 1, d.mask.type = FOVEA_U8, d.mask.heads = 2;
                                 }));
    all.push_back(
        attention_call("staged", attention_desc(2, 4, 2, 130, 203, 24, 40), [](FoveaAttentionDesc& d) {
            d.kernel = FOVEA_KERNEL_STAGED, d.outputs = 127;
            d.bias.present = 1, d.bias.type = FOVEA_F16;
        }));
    all.push_back({"map tile", [](const FoveaDeviceProperties& properties) {
                       FoveaMapTileDesc tile{};
                       tile.struct_size = sizeof tile;
                       tile.height = 23, tile.width = 51;
                       tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
                       return plan_map_tile(properties, attention_desc(2, 4, 2, 77, 301, 40, 24), tile);
                   }});
    all.push_back({"map tile of narrow rows", [](const FoveaDeviceProperties& properties) {
                       FoveaMapTileDesc tile{};
                       tile.struct_size = sizeof tile;
                       tile.height = 10, tile.width = 1;
                       FoveaAttentionDesc d = attention_desc(1, 1, 1, 3000, 3, 1, 1);
                       d.q_type = d.k_type = FOVEA_F16;
                       return plan_map_tile(properties, d, tile);
                   }});
    all.push_back({"gradients", [](const FoveaDeviceProperties& properties) {
                       FoveaAttentionBackwardDesc backward = attention_backward();
                       backward.has_lse_gradient = 1;
                       // The widest window is that of dk.
                       backward.dk_strides = {203 * 480 * 2, 203 * 480, 480};
                       return plan_attention_backward(properties, attention_desc(2, 6, 2, 77, 203, 24, 200),
                                                      backward);
                   }});
    all.push_back({"gradients of narrow rows", [](const FoveaDeviceProperties& properties) {
                       FoveaAttentionDesc d = attention_desc(1, 8, 1, 700, 9, 1, 1);
                       d.q_type = d.k_type = d.v_type = d.o_type = FOVEA_F16;
                       FoveaAttentionBackwardDesc backward = attention_backward();
                       backward.do_type = backward.dq_type = FOVEA_F16;
                       return plan_attention_backward(properties, d, backward);
                   }});
    all.push_back({"linear", [](const FoveaDeviceProperties& properties) {
                       FoveaLinearDesc d{};
                       d.struct_size = sizeof d;
                       d.n_in = 70, d.n_out = 33, d.rows = 300, d.has_bias = 1;
                       return made(foveaPlanLinear, properties, d);
                   }});
    all.push_back({"rope", [](const FoveaDeviceProperties& properties) {
                       FoveaRopeDesc d{};
                       d.struct_size = sizeof d;
                       d.batch = 2, d.heads = 3, d.dim = 24, d.len = 301;
                       return made(foveaPlanRope, properties, d);
                   }});
    all.push_back({"append", [](const FoveaDeviceProperties& properties) {
                       FoveaAppendDesc d{};
                       d.struct_size = sizeof d;
                       d.batch = 2, d.heads = 3, d.dim = 24, d.len = 31, d.capacity = 400;
                       return made(foveaPlanAppend, properties, d);
                   }});
    all.push_back({"gather", [](const FoveaDeviceProperties& properties) {
                       FoveaGatherDesc d{};
                       d.struct_size = sizeof d;
                       d.batch = 2, d.heads = 3, d.dim = 24, d.len = 31, d.capacity = 400,
                       d.position_heads = 3;
                       return made(foveaPlanGather, properties, d);
                   }});
    all.push_back({"merge", [](const FoveaDeviceProperties& properties) {
                       FoveaMergeDesc d{};
                       d.struct_size = sizeof d;
                       d.parts = 5, d.batch = 2, d.heads = 3, d.dim = 24, d.len = 31;
                       return made(foveaPlanMerge, properties, d);
                   }});
    return all;
}

struct Use {
    uint64_t groups[3] = {}, range = 0;
};

// Returns the needs of a plan's dispatches; each is checked here.
Use use_of(const Plan& plan, const FoveaDeviceProperties& properties) {
    Use use;
    const FoveaPlanInfo info = plan.info();
    const uint64_t slices = std::min<uint64_t>(info.slice_count, 400);
    for (uint64_t n = 0; n < slices; ++n) {
        for (const FoveaDispatch& d : dispatches_of(plan, n * info.slice_count / slices)) {
            expect_windows_within(d, info, properties);
            for (int axis = 0; axis < 3; ++axis)
                use.groups[axis] = std::max<uint64_t>(use.groups[axis], d.groups[axis]);
            for (uint32_t i = 0; i < d.binding_count; ++i)
                use.range = std::max(use.range, d.bindings[i].size);
        }
    }
    return use;
}

constexpr uint32_t kAlignments[] = {4, 16, 256};

TEST(Limits, of_workgroup_counts_are_kept_to_the_last_one) {
    for (const Call& call : calls()) {
        for (int axis = 0; axis < 3; ++axis) {
            SCOPED_TRACE(testing::Message() << call.name << ", axis " << axis);
            const Result<Plan> roomy = call.plan(gpu_properties());
            ASSERT_TRUE(roomy) << roomy.error().text;
            const uint64_t used = use_of(*roomy, gpu_properties()).groups[axis];
            for (const uint64_t limit : {used + 1, used, used - 1, used / 2, uint64_t{1}}) {
                if (limit == 0) continue;
                FoveaDeviceProperties properties = gpu_properties();
                properties.max_workgroup_count[axis] = uint32_t(limit);
                const Result<Plan> plan = call.plan(properties);
                if (plan) use_of(*plan, properties);
                if (limit < used) continue;
                ASSERT_TRUE(plan) << limit << " are enough: " << plan.error().text;
                EXPECT_EQ(plan->info().slice_count, roomy->info().slice_count) << "nothing had to be cut";
            }
        }
    }
}

TEST(Limits, of_descriptors_are_kept_to_the_last_byte) {
    for (const Call& call : calls()) {
        for (const uint32_t alignment : kAlignments) {
            SCOPED_TRACE(testing::Message() << call.name << ", alignment " << alignment);
            FoveaDeviceProperties properties = gpu_properties();
            properties.storage_offset_alignment = alignment;
            const Result<Plan> roomy = call.plan(properties);
            ASSERT_TRUE(roomy) << roomy.error().text;
            const uint64_t used = use_of(*roomy, properties).range;
            std::set<uint64_t> limits;
            // Sizes that windows round up to, and steps around the needs of each smaller number of rows.
            for (uint64_t n = 0; n <= 64; ++n) limits.insert(used + 2 * alignment - std::min(used, n * 4));
            for (uint64_t part = 2; part < 40; ++part)
                for (const uint64_t more : {0, 4, 8, 60}) limits.insert(used / part / 4 * 4 + more);
            for (const uint64_t limit : limits) {
                properties.max_storage_range = limit;
                const Result<Plan> plan = call.plan(properties);
                if (plan) use_of(*plan, properties);
                if (testing::Test::HasFailure()) FAIL() << "max_storage_range " << limit;
            }
            // The planner keeps room for a window that begins before its first row, and for whole words.
            properties.max_storage_range = used + 2 * std::max(alignment, 16u);
            const Result<Plan> enough = call.plan(properties);
            EXPECT_TRUE(enough) << enough.error().text;
        }
    }
}

// All keys of a head are in one descriptor: its rows, and room to begin at an allowed offset.
TEST(Limits, of_a_descriptor_serve_what_fits_exactly) {
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED}) {
        FoveaAttentionDesc desc = attention_desc(1, 1, 1, 4, 1000, 16, 8);
        desc.kernel = kernel;
        FoveaDeviceProperties properties = gpu_properties();
        properties.max_storage_range = 1000 * 16 * 4 + 16;
        const Result<Plan> plan = plan_attention(properties, desc);
        EXPECT_TRUE(plan) << plan.error().text;
        --properties.max_storage_range;
        const Result<Plan> less = plan_attention(properties, desc);
        ASSERT_FALSE(less);
        EXPECT_EQ(less.error().field, "K");
    }
}

TEST(Limits, of_a_workspace_are_kept_to_the_last_byte) {
    for (const FoveaKernel kernel : {FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED}) {
        for (const uint32_t flags : {0u, uint32_t{FOVEA_FLAG_FIXED_SPLITS}}) {
            FoveaAttentionDesc desc = attention_desc(2, 4, 2, 33, 3000, 24, 40);
            desc.kernel = kernel;
            desc.flags = flags;
            const Result<Plan> roomy = plan_attention(gpu_properties(), desc);
            ASSERT_TRUE(roomy) << roomy.error().text;
            const uint64_t used = roomy->info().workspace_bytes;
            for (uint64_t limit = used; limit > 0;
                 limit = limit > 4000 ? limit * 9 / 10 : limit - std::min<uint64_t>(limit, 97)) {
                desc.workspace_limit = limit;
                const Result<Plan> plan = plan_attention(gpu_properties(), desc);
                EXPECT_TRUE(plan || limit != used);
                if (!plan) {
                    EXPECT_EQ(plan.error().code, FOVEA_LIMIT_EXCEEDED);
                    continue;
                }
                EXPECT_LE(plan->info().workspace_bytes, limit);
                use_of(*plan, gpu_properties());
            }
        }
    }
}

// Returns the shared memory of the first dispatch's workgroups, by the formulas that interface_test.cpp
// checks against the modules; 0 for a kernel without matrices.
uint64_t shared_bytes(const FoveaDispatch& d) {
    using shader::kMatrixDepth, shader::kMatrixPad;
    const auto spec = [&](uint32_t id) { return uint64_t{d.spec[id]}; };
    const uint64_t rows = spec(FOVEA_SPEC_ROWS), m = spec(FOVEA_SPEC_MATRIX_M), n = spec(FOVEA_SPEC_MATRIX_N);
    if (d.shader == uint32_t(Shader::flash_coopmat)) {
        const uint64_t columns = spec(FOVEA_SPEC_COLUMN_QUADS) * n * spec(FOVEA_SPEC_SUBGROUPS);
        return FOVEA_MATRIX_SHARED_BYTES(rows, spec(FOVEA_SPEC_KEYS), spec(FOVEA_SPEC_DEPTH), columns, n);
    }
    if (d.shader == uint32_t(Shader::linear_coopmat))
        return FOVEA_LINEAR_SHARED_BYTES(rows, spec(FOVEA_SPEC_COLUMNS), spec(FOVEA_SPEC_SUBGROUPS), m, n);
    return 0;
}

TEST(Limits, of_shared_memory_are_kept_to_the_last_byte) {
    FOVEA_NEEDS_SHADER(Shader::flash_coopmat);
    FOVEA_NEEDS_SHADER(Shader::linear_coopmat);
    const Call matrix_calls[] = {
        attention_call("flash_coopmat", attention_desc(1, 8, 2, 512, 512, 128, 128),
                       [](FoveaAttentionDesc& d) { d.precision = FOVEA_PRECISION_F16_INPUTS; }),
        attention_call("flash_coopmat of wide heads", attention_desc(1, 2, 2, 64, 512, 40, 256),
                       [](FoveaAttentionDesc& d) { d.precision = FOVEA_PRECISION_F16_INPUTS; }),
        {"linear_coopmat", [](const FoveaDeviceProperties& properties) {
             FoveaLinearDesc d{};
             d.struct_size = sizeof d;
             d.n_in = 512, d.n_out = 512, d.rows = 512, d.precision = FOVEA_PRECISION_F16_INPUTS;
             return made(foveaPlanLinear, properties, d);
         }}};
    for (const Call& call : matrix_calls) {
        SCOPED_TRACE(call.name);
        FoveaDeviceProperties properties = gpu_properties();
        add_matrices(properties);
        std::set<uint64_t> used;
        for (uint64_t limit = 65536; limit >= 16384; limit -= 256) {
            properties.max_shared_bytes = uint32_t(limit);
            const Result<Plan> plan = call.plan(properties);
            ASSERT_TRUE(plan) << plan.error().text;
            const uint64_t bytes = shared_bytes(dispatches_of(*plan, 0)[0]);
            ASSERT_LE(bytes, limit);
            if (bytes) used.insert(bytes);
        }
        EXPECT_GE(used.size(), 1u) << "no plan took matrices";
        // The memory that a tile takes is enough for it.
        for (const uint64_t bytes : used) {
            if (bytes <= floor_properties().max_shared_bytes) continue;
            properties.max_shared_bytes = uint32_t(bytes);
            const Result<Plan> plan = call.plan(properties);
            ASSERT_TRUE(plan);
            EXPECT_EQ(shared_bytes(dispatches_of(*plan, 0)[0]), bytes);
            properties.max_shared_bytes = uint32_t(bytes - 1);
            const Result<Plan> less = call.plan(properties);
            ASSERT_TRUE(less);
            EXPECT_LT(shared_bytes(dispatches_of(*less, 0)[0]), bytes);
        }
    }
}

}  // namespace
}  // namespace fovea::test
