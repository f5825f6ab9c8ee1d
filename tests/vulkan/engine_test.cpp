// The runtime on a real driver: one call on host memory, buffers that stay, progress, refusals.
#include "support/vulkan_executor.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace fovea::test {
namespace {

class EngineTest : public ::testing::Test {
  protected:
    void SetUp() override {
        EngineOptions options = unchecked_vulkan(true);
        Result<Engine> opened = Engine::open(options);
        ASSERT_TRUE(opened) << opened.error().text;
        engine = std::make_unique<Engine>(std::move(*opened));
        EXPECT_TRUE(engine->is_vulkan());
        options.backend = BackendChoice::reference;
        Result<Engine> loops = Engine::open(options);
        ASSERT_TRUE(loops) << loops.error().text;
        reference = std::make_unique<Engine>(std::move(*loops));
    }
    void TearDown() override {
        if (!engine) return;
        for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
    }
    static std::vector<float> random(size_t count, uint32_t seed) {
        std::mt19937 generator(seed);
        std::vector<float> out(count);
        for (float& x : out) x = float(generator() >> 8) / float(1 << 23) - 1;
        return out;
    }
    static FoveaHostBuffer bytes(std::vector<float>& values) { return {values.data(), values.size() * 4}; }
    static void expect_close(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
    }

    std::unique_ptr<Engine> engine, reference;
};

struct AttentionData {
    FoveaAttentionDesc desc;
    std::vector<float> q, k, v, o;
    HostBindings bindings{};

    explicit AttentionData(uint64_t queries = 50, uint64_t keys = 70) {
        Attention call;
        call.batch(2).heads(4, 2).lengths(queries, keys).dims(24, 16);
        desc = call.desc;
        const auto fill = [](std::vector<float>& values, size_t count, uint32_t seed) {
            std::mt19937 generator(seed);
            values.resize(count);
            for (float& x : values) x = float(generator() >> 8) / float(1 << 23) - 1;
        };
        fill(q, 2 * 4 * queries * 24, 1);
        fill(k, 2 * 2 * keys * 24, 2);
        fill(v, 2 * 2 * keys * 16, 3);
        o.assign(2 * 4 * queries * 16, NAN);
        bindings[FOVEA_BIND_Q] = {q.data(), q.size() * 4};
        bindings[FOVEA_BIND_K] = {k.data(), k.size() * 4};
        bindings[FOVEA_BIND_V] = {v.data(), v.size() * 4};
        bindings[FOVEA_BIND_O] = {o.data(), o.size() * 4};
    }
};

TEST_F(EngineTest, AttentionOnHostMemory) {
    AttentionData here, there;
    const Result<RunReport> report = engine->attention(here.desc, here.bindings);
    ASSERT_TRUE(report) << report.error().text;
    ASSERT_TRUE(reference->attention(there.desc, there.bindings));
    expect_close(here.o, there.o, 2e-6f);
    EXPECT_EQ(report->backend, FOVEA_BACKEND_VULKAN);
    EXPECT_NE(report->kernel, FOVEA_KERNEL_AUTO);
    EXPECT_FALSE(report->device.empty());
    EXPECT_FALSE(report->reason.empty());
    EXPECT_GT(report->slices, 0u);
    EXPECT_GT(report->device_bytes, (here.q.size() + here.k.size()) * 4);
    EXPECT_GT(report->seconds, 0);
    if (engine->properties().features & FOVEA_FEATURE_TIMESTAMPS) {
        EXPECT_GT(report->device_seconds, 0);
    }
}

TEST_F(EngineTest, LeavesGapsOfAStridedOutputAlone) {
    AttentionData here, packed;
    ASSERT_TRUE(engine->attention(packed.desc, packed.bindings));
    here.desc.o_strides = {4 * 50 * 20, 50 * 20, 20};
    here.o.assign(2 * 4 * 50 * 20, 12345.0f);
    here.bindings[FOVEA_BIND_O] = {here.o.data(), here.o.size() * 4};
    const Result<RunReport> report = engine->attention(here.desc, here.bindings);
    ASSERT_TRUE(report) << report.error().text;
    for (size_t row = 0; row < 2 * 4 * 50; ++row) {
        for (size_t i = 0; i < 20; ++i) {
            const float expected = i < 16 ? packed.o[row * 16 + i] : 12345.0f;
            ASSERT_EQ(here.o[row * 20 + i], expected) << "row " << row << " element " << i;
        }
    }
}

TEST_F(EngineTest, SliceOrderDoesNotChangeBitsAndSlicesAreSizedByWhatWasMeasured) {
    AttentionData once, again;
    once.desc.max_slice_cost = again.desc.max_slice_cost = 1e5;
    const Result<RunReport> first = engine->attention(once.desc, once.bindings);
    ASSERT_TRUE(first) << first.error().text;
    EXPECT_GT(first->slices, 4u);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        RunOptions options;
        options.slice_shuffle_seed = seed;
        again.o.assign(again.o.size(), NAN);
        ASSERT_TRUE(engine->attention(again.desc, again.bindings, options));
        EXPECT_EQ(memcmp(once.o.data(), again.o.data(), once.o.size() * 4), 0) << "seed " << seed;
    }
    // With its own choice of cost the engine must get the same bits too, whatever it measured before.
    again.desc.max_slice_cost = 0;
    for (int i = 0; i < 3; ++i) {
        again.o.assign(again.o.size(), NAN);
        ASSERT_TRUE(engine->attention(again.desc, again.bindings));
        EXPECT_EQ(memcmp(once.o.data(), again.o.data(), once.o.size() * 4), 0);
    }
}

TEST_F(EngineTest, BuffersStayOnTheDevice) {
    AttentionData data;
    Result<Plan> plan = plan_attention(engine->properties(), data.desc);
    ASSERT_TRUE(plan) << plan.error().text;
    std::vector<DeviceBuffer> made;
    DeviceBuffer* buffers[FOVEA_BIND_COUNT] = {};
    made.reserve(4);
    for (const FoveaBinding b : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V, FOVEA_BIND_O}) {
        Result<DeviceBuffer> buffer = engine->buffer(data.bindings[b].size_bytes);
        ASSERT_TRUE(buffer) << buffer.error().text;
        made.push_back(std::move(*buffer));
        buffers[b] = &made.back();
        const std::span<const std::byte> host(static_cast<const std::byte*>(data.bindings[b].data),
                                              data.bindings[b].size_bytes);
        if (b != FOVEA_BIND_O) {
            ASSERT_TRUE(made.back().upload(host));
        }
    }
    std::vector<float> zero(data.o.size(), 1.0f), first(data.o.size()), second(data.o.size());
    ASSERT_TRUE(buffers[FOVEA_BIND_O]->download(std::as_writable_bytes(std::span(zero))));
    EXPECT_EQ(zero, std::vector<float>(data.o.size(), 0.0f));
    for (std::vector<float>* out : {&first, &second}) {
        const Result<RunReport> report = engine->run(*plan, buffers);
        ASSERT_TRUE(report) << report.error().text;
        ASSERT_TRUE(buffers[FOVEA_BIND_O]->download(std::as_writable_bytes(std::span(*out))));
    }
    ASSERT_TRUE(engine->attention(data.desc, data.bindings));
    EXPECT_EQ(first, data.o);
    EXPECT_EQ(second, data.o);

    const Result<void> outside = made[0].upload(std::as_bytes(std::span(zero)), data.q.size() * 4);
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().code, FOVEA_INVALID_ARGUMENT);
    buffers[FOVEA_BIND_V] = nullptr;
    const Result<RunReport> missing = engine->run(*plan, buffers);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().field, "bindings[V]");
}

TEST_F(EngineTest, ProgressCountsAndCancels) {
    AttentionData data;
    data.desc.max_slice_cost = 1e5;
    RunOptions options;
    std::vector<double> seen;
    options.progress = [&](double done) {
        seen.push_back(done);
        return true;
    };
    ASSERT_TRUE(engine->attention(data.desc, data.bindings, options));
    ASSERT_GT(seen.size(), 4u);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.back(), 1.0);
    options.progress = [](double done) { return done < 0.3; };
    const Result<RunReport> cancelled = engine->attention(data.desc, data.bindings, options);
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().code, FOVEA_CANCELLED);
    // The engine is as good as before.
    const std::vector<float> before = data.o;
    ASSERT_TRUE(engine->attention(data.desc, data.bindings));
}

TEST_F(EngineTest, RefusesWithTheNumbers) {
    AttentionData data;
    data.bindings[FOVEA_BIND_K].size_bytes -= 4;
    const Result<RunReport> small = engine->attention(data.desc, data.bindings);
    ASSERT_FALSE(small);
    EXPECT_EQ(small.error().field, "bindings[K].size_bytes");
    data.bindings[FOVEA_BIND_K] = {};
    const Result<RunReport> none = engine->attention(data.desc, data.bindings);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().field, "bindings[K]");
    const Result<DeviceBuffer> huge = engine->buffer(uint64_t{1} << 50);
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().code, FOVEA_OUT_OF_DEVICE_MEMORY);
    EXPECT_NE(huge.error().text.find("1073741824 MiB"), std::string::npos) << huge.error().text;
}

TEST_F(EngineTest, RotatesProjectsAndAppends) {
    std::vector<float> x = random(2 * 3 * 5 * 8, 4), cos = random(2 * 5 * 4, 5), sin = random(2 * 5 * 4, 6);
    std::vector<float> weight = random(7 * 8, 7), bias = random(7, 8);
    for (const bool rope : {true, false}) {
        std::vector<float> got(rope ? x.size() : 30 * 7), expected(got.size());
        for (Engine* where : {engine.get(), reference.get()}) {
            HostBindings b{};
            b[FOVEA_BIND_X] = bytes(x);
            b[FOVEA_BIND_Y] = bytes(where == engine.get() ? got : expected);
            if (rope)
                b[FOVEA_BIND_COS] = bytes(cos), b[FOVEA_BIND_SIN] = bytes(sin);
            else
                b[FOVEA_BIND_WEIGHT] = bytes(weight), b[FOVEA_BIND_BIAS] = bytes(bias);
            FoveaRopeDesc r{};
            r.struct_size = sizeof r;
            r.batch = 2;
            r.heads = 3;
            r.len = 5;
            r.dim = 8;
            FoveaLinearDesc l{};
            l.struct_size = sizeof l;
            l.n_in = 8;
            l.n_out = 7;
            l.rows = 30;
            l.has_bias = 1;
            const Result<RunReport> report = rope
                                                 ? where->run_on_host(plan_rope(where->properties(), r), b)
                                                 : where->run_on_host(plan_linear(where->properties(), l), b);
            ASSERT_TRUE(report) << report.error().text;
        }
        expect_close(got, expected, 4e-6f);
    }
}

TEST_F(EngineTest, AppendKeepsTheRowsThatTheCacheHolds) {
    std::vector<float> x = random(3 * 2 * 4, 9), cache(3 * 10 * 4, 5.0f);
    FoveaAppendDesc desc{};
    desc.struct_size = sizeof desc;
    desc.batch = 1;
    desc.heads = 3;
    desc.dim = 4;
    desc.len = 2;
    desc.capacity = 10;
    desc.first_row = 6;
    HostBindings b{};
    b[FOVEA_BIND_X] = bytes(x);
    b[FOVEA_BIND_Y] = bytes(cache);
    const Result<RunReport> report = engine->run_on_host(plan_append(engine->properties(), desc), b);
    ASSERT_TRUE(report) << report.error().text;
    for (size_t h = 0; h < 3; ++h) {
        for (size_t row = 0; row < 10; ++row) {
            for (size_t i = 0; i < 4; ++i) {
                const float expected = row == 6 || row == 7 ? x[(h * 2 + row - 6) * 4 + i] : 5.0f;
                ASSERT_EQ(cache[(h * 10 + row) * 4 + i], expected) << "head " << h << " row " << row;
            }
        }
    }
}

TEST_F(EngineTest, EnginesAreIndependent) {
    Result<Engine> second = Engine::open(unchecked_vulkan(false));
    ASSERT_TRUE(second) << second.error().text;
    AttentionData a, b;
    ASSERT_TRUE(engine->attention(a.desc, a.bindings));
    ASSERT_TRUE(second->attention(b.desc, b.bindings));
    EXPECT_EQ(a.o, b.o);
    EXPECT_TRUE(second->take_messages().empty());
}

}  // namespace
}  // namespace fovea::test
