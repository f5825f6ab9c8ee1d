// The runtime's CPU engine where memory runs out: a failed call says so, and the next one works.
#include "runtime/processors.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

size_t largest_allowed = SIZE_MAX;  // limit of the aligned allocations that may fail

}  // namespace

// The engine's buffers and workspace come from these.
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    const auto step = size_t(alignment);
    return size > largest_allowed ? nullptr : aligned_alloc(step, (size + step - 1) / step * step);
}
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { free(memory); }

namespace fovea::test {
namespace {

Result<RunReport> attend(Engine& engine, uint64_t keys) {
    FoveaAttentionDesc desc =
        Attention().batch(1).heads(1).lengths(2, keys).dims(2).kernel(FOVEA_KERNEL_REFERENCE).desc;
    std::vector<float> q(4, 0.5f), k(keys * 2, 0.25f), v(keys * 2, 3.0f), o(4, -1.0f);
    HostBindings bindings{};
    bindings[FOVEA_BIND_Q] = {q.data(), q.size() * 4};
    bindings[FOVEA_BIND_K] = {k.data(), k.size() * 4};
    bindings[FOVEA_BIND_V] = {v.data(), v.size() * 4};
    bindings[FOVEA_BIND_O] = {o.data(), o.size() * 4};
    Result<RunReport> report = engine.attention(desc, bindings);
    for (const float x : o) EXPECT_NEAR(x, report ? 3.0f : -1.0f, 1e-5f) << "of " << keys << " keys";
    return report;
}

// Systems promise more memory than they have; a page of it that is written ends the process.
TEST(CpuEngine, RefusesMemoryThatTheProcessDoesNotHave) {
    const uint64_t all = runtime::memory_of_process();
    ASSERT_GT(all, 0u);
    if (all > SIZE_MAX / 4) GTEST_SKIP() << "this system does not say how much memory there is";
    EngineOptions options;
    options.backend = BackendChoice::cpu;
    Result<Engine> engine = Engine::open(options);
    ASSERT_TRUE(engine) << engine.error().text;
    const Result<DeviceBuffer> huge = engine->buffer(all + 1);
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().code, FOVEA_OUT_OF_HOST_MEMORY);
    EXPECT_NE(huge.error().text.find(std::to_string(all + 1)), std::string::npos) << huge.error().text;
}

TEST(CpuEngine, WorksAgainAfterAWorkspaceThatWasNotToBeHad) {
    EngineOptions options;
    options.backend = BackendChoice::cpu;
    Result<Engine> engine = Engine::open(options);
    ASSERT_TRUE(engine) << engine.error().text;
    ASSERT_TRUE(attend(*engine, 64));
    const uint64_t needed = attend(*engine, 1000)->workspace_bytes;
    ASSERT_GT(needed, 64u);
    largest_allowed = size_t(needed);
    const Result<RunReport> failed = attend(*engine, 20000);
    largest_allowed = SIZE_MAX;
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, FOVEA_OUT_OF_HOST_MEMORY);
    for (const uint64_t keys : {1000, 64, 20000}) {
        const Result<RunReport> again = attend(*engine, keys);
        EXPECT_TRUE(again) << again.error().text;
    }
}

}  // namespace
}  // namespace fovea::test
