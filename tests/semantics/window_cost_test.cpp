// A window is a loop bound: keys outside it cost nothing. Counted in the plans, for every kind of device and
// every kernel that takes the problem.
#include "semantics/under_test.hpp"
#include "support/cpu_device.hpp"
#include "support/wall.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cstdio>

namespace fovea::test {
namespace {

// A GPU with what Vulkan 1.2 guarantees, and float16 storage.
FoveaDeviceProperties vulkan_device(FoveaDeviceClass device_class) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_VULKAN;
    properties.device_class = device_class;
    properties.features = FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_SUBGROUP_ARITHMETIC |
                          FOVEA_FEATURE_SUBGROUP_SHUFFLE | FOVEA_FEATURE_DEVICE_ATOMICS;
    properties.max_workgroup_invocations = 1024, properties.max_shared_bytes = 32768,
    properties.max_push_bytes = 128;
    for (uint32_t& count : properties.max_workgroup_count) count = 65535;
    properties.subgroup_size = properties.min_subgroup_size = properties.max_subgroup_size = 32;
    properties.storage_offset_alignment = 64;
    properties.max_storage_range = uint64_t{1} << 27;
    properties.core_count = 32;
    return properties;
}

struct Device {
    const char* name;
    FoveaDeviceProperties properties;
};
std::vector<Device> devices() {
    if (!foveaShaderCode(0, nullptr)) {
        printf("skipped Vulkan: this build has no shaders\n");
        return {{"cpu", cpu_device(2)}};
    }
    return {{"cpu", cpu_device(2)},
            {"software Vulkan", vulkan_device(FOVEA_CLASS_CPU)},
            {"integrated", vulkan_device(FOVEA_CLASS_INTEGRATED)},
            {"discrete", vulkan_device(FOVEA_CLASS_DISCRETE)}};
}

struct Shape {
    const char* name;
    uint64_t len_q;
    int64_t left, right;
};
constexpr uint64_t kKeys = 32768;
constexpr Shape kShapes[] = {{"prefill, 128 to the left", kKeys, 127, 0},
                             {"prefill, 64 to each side", kKeys, 64, 63},
                             {"the last 1024 queries", 1024, 127, 0},
                             {"decode", 1, 127, 0}};

double needed_pairs(const Shape& shape) {
    double pairs = 0;
    for (int64_t i = int64_t(kKeys - shape.len_q); i < int64_t(kKeys); ++i)
        pairs +=
            double(std::min<int64_t>(kKeys - 1, i + shape.right) - std::max<int64_t>(0, i - shape.left) + 1);
    return pairs;
}

TEST(WindowCost, of_128_keys_in_32768_is_within_half_again_of_the_arithmetic_it_needs) {
    const FoveaKernel kernels[] = {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_STAGED, FOVEA_KERNEL_FLASH,
                                   FOVEA_KERNEL_DECODE};
    size_t counted = 0;
    const std::vector<Device> known = devices();
    for (const Device& device : known) {
        for (const Shape& shape : kShapes) {
            const double needed = needed_pairs(shape);
            for (const FoveaKernel kernel : kernels) {
                FoveaAttentionDesc desc =
                    Attention().batch(1).heads(1).lengths(shape.len_q, kKeys).dims(64).desc;
                desc.flags = FOVEA_FLAG_WINDOW;
                desc.align = FOVEA_ALIGN_BOTTOM_RIGHT;
                desc.window_left = shape.left, desc.window_right = shape.right;
                desc.kernel = kernel;
                const Result<Plan> plan = plan_attention(device.properties, desc);
                if (!plan) {
                    ASSERT_EQ(plan.error().field, "kernel") << plan.error().text;
                    ASSERT_NE(kernel, FOVEA_KERNEL_AUTO);
                    continue;
                }
                const FoveaPlanInfo info = plan->info();
                const double share = info.visited_pairs / needed;
                printf("%s, %s, %s: %.3f of the pairs needed, 1/%.0f of all\n", device.name, shape.name,
                       kernel_name(info.kernel), share, info.total_pairs / info.visited_pairs);
                EXPECT_GE(share, 1.0 - 1e-12);
                EXPECT_LE(share, 1.5);
                EXPECT_DOUBLE_EQ(info.flops, 2.0 * (64 + 64) * info.visited_pairs);
                // The scores of all pairs would take 4 GiB.
                EXPECT_LE(info.workspace_bytes, uint64_t{64} << 20);
                ++counted;
            }
        }
    }
    EXPECT_GE(counted, known.size() * std::size(kShapes) * 2);
}

// And on the CPU judged by what is read: every page that holds only keys outside the window has no access.
TEST(WindowCost, keys_outside_the_window_are_never_read) {
    constexpr uint64_t kCached = 16384, kDim = 64, kLeft = 255;
    for (const std::string& name : cpu_names()) {
        if (name.rfind("cpu@", 0) != 0) continue;
        SCOPED_TRACE(name);
        for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_FLASH, FOVEA_KERNEL_STAGED}) {
            SCOPED_TRACE(kernel_name(kernel));
            FoveaAttentionDesc desc = Attention().batch(1).heads(2, 1).lengths(3, kCached).dims(kDim).desc;
            desc.flags = FOVEA_FLAG_WINDOW;
            desc.align = FOVEA_ALIGN_OFFSET;
            desc.q_offset = 9000;
            desc.window_left = kLeft, desc.window_right = 0;
            desc.kernel = kernel;
            FoveaDeviceProperties properties = cpu_device(1);
            for (uint32_t id = 1; id < 32; ++id)
                if (name.substr(4) == foveaCpuTargetName(id)) properties.cpu_target = id;
            const Result<Plan> plan = plan_attention(properties, desc);
            ASSERT_TRUE(plan) << plan.error().text;
            const FoveaPlanInfo info = plan->info();
            const Running running("keys outside a window, " + name + ", kernel " + kernel_name(kernel));
            std::vector<WalledMemory> memory;
            FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
            for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
                if (info.binding_bytes[i] == 0) continue;
                memory.emplace_back(info.binding_bytes[i]);
                bindings[i] = {memory.back().data(), info.binding_bytes[i]};
                if (i != FOVEA_BIND_K && i != FOVEA_BIND_V) continue;
                constexpr uint64_t kRow = kDim * sizeof(float);
                memory.back().forbid(0, (9000 - kLeft) * kRow);
                memory.back().forbid((9000 + 3) * kRow, (kCached - 9000 - 3) * kRow);
            }
            const WalledMemory workspace(info.workspace_bytes);
            FoveaCpuRun run{};
            run.struct_size = sizeof run;
            run.binding_count = FOVEA_BIND_COUNT, run.bindings = bindings;
            run.workspace = {workspace.data(), info.workspace_bytes};
            const Result<void> done = plan->run_cpu(run);
            EXPECT_TRUE(done) << done.error().text;
        }
    }
}

}  // namespace
}  // namespace fovea::test
