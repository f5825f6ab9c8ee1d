// The promises of the one-pass kernel: with fixed splits, bits that depend neither on the batch nor on the
// device; device memory that grows with the lengths and not with their product; and a long call that reports
// and stops.
#include "support/vulkan_executor.hpp"
#include "vulkan/gpu.hpp"

#include "problem/compressed.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace fovea::test {
namespace {

constexpr uint32_t kHeads = 4, kKvHeads = 2, kDim = 24;
constexpr uint64_t kKeys = 2500, kQueries = 2;

Attention fixed_splits(uint32_t batch) {
    Attention call;
    call.batch(batch).heads(kHeads, kKvHeads).lengths(kQueries, kKeys).dims(kDim).kernel(FOVEA_KERNEL_FLASH);
    call.desc.flags |= FOVEA_FLAG_FIXED_SPLITS;
    return call;
}

Result<Engine> open_vulkan(bool validation = false) { return Engine::open(unchecked_vulkan(validation)); }

// o of a call on device buffers, planned for `properties`.
std::vector<float> run(Engine& engine, const Attention& call, const FoveaDeviceProperties& properties,
                       const std::vector<float> (&inputs)[3]) {
    const Result<Plan> plan = plan_attention(properties, call.desc);
    EXPECT_TRUE(plan) << plan.error().text;
    std::vector<DeviceBuffer> kept;
    kept.reserve(4);
    DeviceBuffer* buffers[FOVEA_BIND_COUNT] = {};
    const FoveaBinding names[] = {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V, FOVEA_BIND_O};
    for (int i = 0; i < 4; ++i) {
        Result<DeviceBuffer> buffer = engine.buffer(plan->info().binding_bytes[names[i]]);
        EXPECT_TRUE(buffer) << buffer.error().text;
        if (i < 3) {
            const std::span bytes = std::as_bytes(std::span(inputs[i]));
            EXPECT_TRUE(buffer->upload(bytes.first(std::min<size_t>(bytes.size(), buffer->size_bytes()))));
        }
        kept.push_back(std::move(*buffer));
        buffers[names[i]] = &kept.back();
    }
    const Result<RunReport> report = engine.run(*plan, buffers);
    EXPECT_TRUE(report) << report.error().text;
    std::vector<float> o(kept[3].size_bytes() / 4);
    EXPECT_TRUE(kept[3].download(std::as_writable_bytes(std::span(o))));
    return o;
}

TEST(FlashOnDevice, fixed_splits_give_the_same_bits_in_any_batch_and_on_any_device) {
    Result<Engine> engine = open_vulkan();
    ASSERT_TRUE(engine) << engine.error().text;
    const std::vector<float> inputs[3] = {random_floats(3 * kHeads * kQueries * kDim, 1),
                                          random_floats(3 * kKvHeads * kKeys * kDim, 2),
                                          random_floats(3 * kKvHeads * kKeys * kDim, 3)};
    const FoveaDeviceProperties here = engine->properties();
    const std::vector<float> three = run(*engine, fixed_splits(3), here, inputs);
    const std::vector<float> one = run(*engine, fixed_splits(1), here, inputs);
    ASSERT_EQ(three.size(), 3 * one.size());
    EXPECT_EQ(memcmp(three.data(), one.data(), one.size() * 4), 0) << "another batch";
    for (const uint32_t cores : {1u, 20u, 200u}) {
        FoveaDeviceProperties other = here;
        other.device_class = FOVEA_CLASS_DISCRETE;
        other.core_count = cores;
        EXPECT_TRUE(same_bits(run(*engine, fixed_splits(3), other, inputs), three)) << cores << " cores";
    }
}

// A tile of eight rows that is a subgroup's finds its keys in shared memory, one of four loads them itself;
// both add the same products in the same order. Odd numbers of quads, keys that end within a block, windows.
TEST(FlashOnDevice, keys_through_shared_memory_give_the_bits_of_keys_loaded_directly) {
    Result<Engine> engine = open_vulkan(true);
    ASSERT_TRUE(engine) << engine.error().text;
    constexpr uint64_t kLength = 150;
    FoveaDeviceProperties properties = engine->properties();
    properties.device_class = FOVEA_CLASS_DISCRETE;
    uint32_t threads = 8;  // the widest subgroup's, among the sizes that a tile may have
    for (const uint32_t size : {16u, 32u})
        if (size >= properties.min_subgroup_size && size <= properties.max_subgroup_size) threads = size;
    for (const uint32_t dim : {4u, 12u, 40u, 64u}) {
        const std::vector<float> inputs[3] = {random_floats(kLength * dim, 1),
                                              random_floats(kLength * dim, 2),
                                              random_floats(kLength * dim, 3)};
        Attention call;
        call.batch(1).heads(1).lengths(kLength, kLength).dims(dim).causal(Align::top_left);
        call.window(70, 0).kernel(FOVEA_KERNEL_FLASH);
        std::vector<float> results[2];
        for (const uint32_t rows : {4u, 8u}) {
            for (FoveaFlashTile& tile : properties.flash_tiles) tile = {rows, threads, 1};
            const Result<Plan> plan = plan_attention(properties, call.desc);
            ASSERT_TRUE(plan) << plan.error().text;
            FoveaDispatch dispatch = {};
            uint32_t count = 1;
            ASSERT_EQ(foveaGetDispatches(plan->get(), 0, &dispatch, &count, nullptr), FOVEA_OK);
            if (std::string(foveaShaderName(dispatch.shader)) != "flash_subgroup")
                GTEST_SKIP() << "no subgroups of " << threads << " lanes for flash here";
            results[rows / 8] = run(*engine, call, properties, inputs);
        }
        EXPECT_TRUE(same_bits(results[0], results[1])) << "dim " << dim;
    }
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

// Matrices multiply hidden values by 0, which does not undo a NaN: the kernel leaves them out.
TEST(FlashOnDevice, matrices_keep_what_is_no_number_to_the_rows_that_see_it) {
    Result<Engine> engine = open_vulkan(true);
    ASSERT_TRUE(engine) << engine.error().text;
    constexpr uint64_t kLength = 50;
    Attention call;
    call.batch(1).heads(1).lengths(kLength, kLength).dims(kDim).causal(Align::top_left);
    call.desc.precision = FOVEA_PRECISION_F16_INPUTS;
    call.kernel(FOVEA_KERNEL_FLASH_COOPMAT);
    if (!(engine->properties().features & FOVEA_FEATURE_COOPMAT))
        GTEST_SKIP() << "no cooperative matrices here";
    std::vector<float> inputs[3] = {random_floats(kLength * kDim, 1), random_floats(kLength * kDim, 2),
                                    random_floats(kLength * kDim, 3)};
    const std::vector<float> clean = run(*engine, call, engine->properties(), inputs);
    inputs[2][20 * kDim + 3] = NAN;
    inputs[2][33 * kDim + 7] = INFINITY;
    inputs[2][40 * kDim + 9] = 1e6f;  // finite, and beyond float16
    const std::vector<float> got = run(*engine, call, engine->properties(), inputs);
    for (uint64_t i = 0; i < kLength; ++i) {
        for (uint32_t c = 0; c < kDim; ++c) {
            const float x = got[i * kDim + c];
            if (c == 3 && i >= 20)
                EXPECT_TRUE(std::isnan(x)) << i;
            else if (c == 7 && i >= 33)
                EXPECT_EQ(x, INFINITY) << i;
            else if (c == 9 && i >= 40)
                EXPECT_TRUE(std::isfinite(x) && x > 0) << i;
            else
                EXPECT_EQ(x, clean[i * kDim + c]) << "row " << i << " column " << c;
        }
    }
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

// Checks the value of a row with a single visible key: every code of 8-bit floats, and blocks with scales of
// any bits, by words. Rows of k are whole quads or not: that is another form of the kernel. `is_as(o,
// number)` checks results other than NaN.
void expect_each_compressed_number(Engine& engine, FoveaKernel kernel, FoveaPrecision precision,
                                   bool (*is_as)(float, float)) {
    constexpr uint32_t kEntries = 301, kColumns = 32;
    for (const FoveaDtype type : {FOVEA_F8_E4M3, FOVEA_F8_E5M2, FOVEA_Q8_0, FOVEA_Q4_0}) {
        std::vector<unsigned char> v(size_t(stored_bytes(type, kEntries * kColumns)));
        std::mt19937 random(type);
        for (size_t n = 0; n < v.size(); ++n) v[n] = (unsigned char)(n < 256 ? n : random());
        for (const uint32_t dim : {4u, 3u}) {
            Attention call;
            call.batch(kEntries).heads(1).lengths(1, 1).dims(dim);
            call.desc.dim_v = kColumns, call.desc.v_type = type;
            call.desc.kernel = kernel, call.desc.precision = precision;
            std::vector<float> q(kEntries * dim), k(kEntries * dim), o(kEntries * kColumns, -7.0f);
            HostBindings bindings = {};
            bindings[FOVEA_BIND_Q] = {q.data(), q.size() * 4};
            bindings[FOVEA_BIND_K] = {k.data(), k.size() * 4};
            bindings[FOVEA_BIND_V] = {v.data(), v.size()};
            bindings[FOVEA_BIND_O] = {o.data(), o.size() * 4};
            const Result<RunReport> report = engine.attention(call, bindings);
            ASSERT_TRUE(report) << report.error().text;
            for (uint32_t n = 0; n < o.size(); ++n) {
                const float wanted = compressed_number(v.data(), type, n);
                if (std::isnan(wanted))
                    ASSERT_TRUE(std::isnan(o[n])) << "type " << type << ", number " << n;
                else
                    ASSERT_TRUE(is_as(o[n], wanted)) << "type " << type << ", number " << n << ", dim " << dim
                                                     << ": " << o[n] << " for " << wanted;
            }
        }
    }
    for (const std::string& message : engine.take_messages()) ADD_FAILURE() << message;
}

TEST(FlashOnDevice, reads_each_compressed_number_as_the_processor_does) {
    Result<Engine> engine = open_vulkan(true);
    ASSERT_TRUE(engine) << engine.error().text;
    expect_each_compressed_number(*engine, FOVEA_KERNEL_FLASH, FOVEA_PRECISION_F32,
                                  [](float o, float number) { return o == number; });
}

TEST(FlashOnDevice, matrices_round_each_compressed_number_once) {
    Result<Engine> engine = open_vulkan(true);
    ASSERT_TRUE(engine) << engine.error().text;
    if (!(engine->properties().features & FOVEA_FEATURE_COOPMAT))
        GTEST_SKIP() << "no cooperative matrices here";
    // To float16: half a unit off, the largest one for what is beyond; a device may take subnormal ones for
    // 0.
    expect_each_compressed_number(*engine, FOVEA_KERNEL_FLASH_COOPMAT, FOVEA_PRECISION_F16_INPUTS,
                                  [](float o, float number) {
                                      const float size = std::fabs(number);
                                      if (std::isinf(number)) return o == number;
                                      if (size > 65504) return o == std::copysign(65504.0f, number);
                                      return std::fabs(o - number) <= 0x1p-11f * size + 0x1p-14f;
                                  });
}

uint64_t device_bytes_of(const FoveaPlanInfo& info) {
    uint64_t bytes = info.workspace_bytes;
    for (const uint64_t binding : info.binding_bytes) bytes += binding;
    return bytes;
}

TEST(FlashOnDevice, memory_grows_with_the_length) {
    Result<Engine> engine = open_vulkan();
    ASSERT_TRUE(engine) << engine.error().text;
    for (const uint64_t length : {1024, 4096, 16384, 65536}) {
        Attention call;
        call.batch(1).heads(1).lengths(length, length).dims(64).causal(Align::top_left);
        const Result<Plan> plan = plan_attention(engine->properties(), call);
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_EQ(plan->info().kernel, FOVEA_KERNEL_FLASH);
        const uint64_t tensors = 4 * length * 64 * sizeof(float), planned = device_bytes_of(plan->info());
        EXPECT_LE(planned, tensors + 4096) << length;
        if (length > 1024) continue;
        std::vector<float> memory[4];
        HostBindings bindings = {};
        const FoveaBinding names[] = {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V, FOVEA_BIND_O};
        for (int i = 0; i < 4; ++i) {
            memory[i].resize(length * 64);
            bindings[names[i]] = {memory[i].data(), memory[i].size() * 4};
        }
        const Result<RunReport> report = engine->attention(call, bindings);
        ASSERT_TRUE(report) << report.error().text;
        EXPECT_EQ(report->device_bytes, planned) << "what the runtime took";
    }
}

// 65536 x 65536 is more than a thousand slices on a software driver: the first few are run.
TEST(FlashOnDevice, a_long_call_reports_progress_and_can_be_cancelled) {
    Result<Engine> engine = open_vulkan();
    ASSERT_TRUE(engine) << engine.error().text;
    constexpr uint64_t kLength = 65536;
    Attention call;
    call.batch(1).heads(1).lengths(kLength, kLength).dims(64);
    std::vector<float> memory[4];
    HostBindings bindings = {};
    const FoveaBinding names[] = {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V, FOVEA_BIND_O};
    for (int i = 0; i < 4; ++i) {
        memory[i].resize(kLength * 64);
        bindings[names[i]] = {memory[i].data(), memory[i].size() * 4};
    }
    std::vector<double> shares;
    RunOptions run;
    run.progress = [&](double share) {
        shares.push_back(share);
        return share == 0;
    };
    const Result<RunReport> report = engine->attention(call, bindings, run);
    if (report) {  // a device that is done before it can be asked twice
        EXPECT_LE(report->slices, 4u);
        return;
    }
    EXPECT_EQ(report.error().code, FOVEA_CANCELLED) << report.error().text;
    EXPECT_GT(shares.back(), 0.0);
    EXPECT_LT(shares.back(), 0.5);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    // The engine goes on to other work.
    Attention small;
    small.batch(1).heads(1).lengths(64, 64).dims(64);
    EXPECT_TRUE(engine->attention(small, bindings));
}

}  // namespace
}  // namespace fovea::test
