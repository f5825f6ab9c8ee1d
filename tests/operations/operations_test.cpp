// Rope, linear and append on the Vulkan device at hand against the float64 reference: seeded random
// descriptions, every byte of the output compared, gaps and margins too.
//   FOVEA_TEST_SEED=n   runs case n alone
#include "support/random.hpp"

#include <fovea/runtime.hpp>
#include "problem/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace fovea::test {
namespace {

constexpr uint64_t kMargin = 256;
constexpr uint64_t kCases = 60;

using Bytes = std::vector<std::byte>;
using Buffers = std::array<Bytes, FOVEA_BIND_COUNT>;

Result<Engine> open(BackendChoice backend) {
    EngineOptions options;
    options.backend = backend;
    options.validation = backend == BackendChoice::vulkan;
    return Engine::open(options);
}

struct Pair {
    Engine device, reference;
};
Pair& engines() {
    static Pair pair = [] {
        Result<Engine> device = open(BackendChoice::vulkan), reference = open(BackendChoice::reference);
        if (!device || !reference) {
            fprintf(stderr, "%s\n", (device ? reference : device).error().text.c_str());
            std::exit(2);
        }
        return Pair{std::move(*device), std::move(*reference)};
    }();
    return pair;
}

// Random finite values; integers stay small and include some that must be clamped or refused by the kernels.
void fill(Random& random, uint32_t binding, FoveaDtype type, uint64_t bytes, Bytes& out) {
    out.assign(bytes + kMargin, std::byte{0xff});
    if (binding == FOVEA_BIND_POSITIONS || binding == FOVEA_BIND_BATCH_TABLE ||
        binding == FOVEA_BIND_BLOCK_TABLE) {
        // The pages of a block table are distinct, as far as 24 reach: two rows may not go to one place.
        const uint64_t first = random.below(24);
        const bool distinct = binding == FOVEA_BIND_BLOCK_TABLE;
        for (uint64_t n = 0; n + 4 <= bytes; n += 4) {
            const int32_t value = int32_t(distinct ? (first + 7 * (n / 4)) % 24 : random.below(24)) - 2;
            memcpy(&out[n], &value, 4);
        }
        return;
    }
    const uint64_t size = type == FOVEA_F16 ? 2 : 4;
    for (uint64_t n = 0; n + size <= bytes; n += size) {
        const float value = float(random.below(4001)) / 1000.0f - 2.0f;
        const uint16_t half = float_to_half(value);
        memcpy(&out[n], type == FOVEA_F16 ? static_cast<const void*>(&half) : &value, size);
    }
}

// Runs a plan of `engine` over copies of the buffers and returns them as they are afterwards.
Buffers run(Engine& engine, const Plan& plan, const Buffers& given, uint64_t shuffle) {
    const FoveaPlanInfo info = plan.info();
    std::array<std::optional<DeviceBuffer>, FOVEA_BIND_COUNT> owned;
    std::array<DeviceBuffer*, FOVEA_BIND_COUNT> buffers{};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || given[i].empty()) continue;
        Result<DeviceBuffer> buffer = engine.buffer(given[i].size());
        EXPECT_TRUE(buffer);
        owned[i].emplace(std::move(*buffer));
        EXPECT_TRUE(owned[i]->upload(given[i]));
        buffers[i] = &*owned[i];
    }
    RunOptions options;
    options.slice_shuffle_seed = shuffle;
    const Result<RunReport> report = engine.run(plan, buffers, options);
    EXPECT_TRUE(report) << (report ? "" : report.error().text);
    Buffers after = given;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!buffers[i]) continue;
        const Result<void> done = owned[i]->download(after[i]);
        EXPECT_TRUE(done);
    }
    for (const std::string& message : engine.take_messages()) ADD_FAILURE() << message;
    return after;
}

float element(const Bytes& bytes, FoveaDtype type, uint64_t index) {
    if (type == FOVEA_F16) {
        uint16_t half;
        memcpy(&half, &bytes[index * 2], 2);
        return half_to_float(half);
    }
    float value;
    memcpy(&value, &bytes[index * 4], 4);
    return value;
}

// `tolerance` 0: bit for bit. Untouched bytes are NaN of the same bits on both sides.
void compare(const Bytes& got, const Bytes& expected, FoveaDtype type, double tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    if (tolerance == 0) {
        EXPECT_TRUE(got == expected);
        return;
    }
    const uint64_t size = type == FOVEA_F16 ? 2 : 4;
    for (uint64_t n = 0; n < got.size() / size; ++n) {
        const float a = element(got, type, n), b = element(expected, type, n);
        if (std::isnan(a) && std::isnan(b)) continue;
        const double rounding = type == FOVEA_F16 ? std::abs(double(b)) / 1000 + 1e-7 : 0;
        ASSERT_NEAR(a, b, tolerance + rounding) << "element " << n;
    }
}

FoveaDtype random_type(Random& random) { return random.chance(0.5) ? FOVEA_F16 : FOVEA_F32; }

// [B, H, L, D] packed, as [B, L, H, D], or with gaps.
FoveaStrides random_strides(Random& random, uint64_t h, uint64_t l, uint64_t d) {
    switch (random.below(3)) {
        case 0:
            return {};
        case 1:
            return {int64_t(l * h * d), int64_t(d), int64_t(h * d)};
        default: {
            const uint64_t row = d + random.below(5), head = l * row + random.below(7);
            return {int64_t(h * head + random.below(9)), int64_t(head), int64_t(row)};
        }
    }
}

// Calls body(n, random) for each case, or for the one that FOVEA_TEST_SEED names.
template <class Body>
void for_cases(const char* test, Body body) {
    const char* only = getenv("FOVEA_TEST_SEED");
    for (uint64_t n = only ? strtoull(only, nullptr, 0) : 0; n < kCases; ++n) {
        SCOPED_TRACE("replay: FOVEA_TEST_SEED=" + std::to_string(n) +
                     " fovea_test_operations --gtest_filter=Operations." + test);
        Random random(n);
        body(random);
        if (only || testing::Test::HasFailure()) return;
    }
}

template <class MakePlan>
void check(Random& random, MakePlan make_plan, FoveaDtype x_type, FoveaDtype w_type, FoveaDtype y_type,
           double tolerance) {
    Result<Plan> plan = make_plan(engines().device), oracle = make_plan(engines().reference);
    ASSERT_TRUE(oracle) << oracle.error().text;
    ASSERT_TRUE(plan) << plan.error().text;
    const FoveaPlanInfo info = plan->info();
    Buffers buffers;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
        if (i == FOVEA_BIND_Y)
            buffers[i].assign(info.binding_bytes[i] + kMargin, std::byte{0xff});
        else
            fill(random, i,
                 i == FOVEA_BIND_X        ? x_type
                 : i == FOVEA_BIND_WEIGHT ? w_type
                                          : FOVEA_F32,
                 info.binding_bytes[i], buffers[i]);
    }
    const Buffers got = run(engines().device, *plan, buffers, random.next());
    const Buffers expected = run(engines().reference, *oracle, buffers, 0);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (i == FOVEA_BIND_Y)
            compare(got[i], expected[i], y_type, tolerance);
        else
            EXPECT_TRUE(got[i] == buffers[i]) << "binding " << i << " is an input and was written";
    }
}

TEST(Operations, rope) {
    for_cases("rope", [](Random& random) {
        FoveaRopeDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.y_type = random_type(random);
        d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
        d.dim = 1 + uint32_t(random.below(40)), d.len = 1 + random.below(30);
        d.rotary_dim = d.dim < 2 ? 0 : 2 * (1 + uint32_t(random.below(d.dim / 2)));
        if (d.dim % 2 == 1 && d.rotary_dim == 0) d.dim = 2;
        d.interleaved = uint32_t(random.below(2));
        d.table_rows = random.chance(0.5) ? 1 + random.below(20) : 0;
        d.x_strides = random_strides(random, d.heads, d.len, d.dim);
        d.y_strides = random_strides(random, d.heads, d.len, d.dim);
        check(
            random, [&](Engine& engine) { return engine.plan_rope(d); }, d.x_type, FOVEA_F32, d.y_type, 1e-6);
    });
}

TEST(Operations, linear) {
    for_cases("linear", [](Random& random) {
        FoveaLinearDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.w_type = random_type(random), d.y_type = random_type(random);
        d.n_in = 1 + uint32_t(random.below(random.chance(0.5) ? 20 : 150));
        d.n_out = 1 + uint32_t(random.below(random.chance(0.5) ? 20 : 300));
        d.rows = 1 + random.below(random.chance(0.5) ? 4 : 100);
        d.has_bias = uint32_t(random.below(2)), d.weight_is_in_out = uint32_t(random.below(2));
        const auto stride = [&](uint64_t columns) {
            return random.chance(0.5) ? 0 : int64_t(columns + random.below(9));
        };
        d.x_row_stride = stride(d.n_in), d.y_row_stride = stride(d.n_out);
        d.w_row_stride = stride(d.weight_is_in_out ? d.n_out : d.n_in);
        check(
            random, [&](Engine& engine) { return engine.plan_linear(d); }, d.x_type, d.w_type, d.y_type,
            2e-4);
    });
}

TEST(Operations, append) {
    for_cases("append", [](Random& random) {
        FoveaAppendDesc d{};
        d.struct_size = sizeof d;
        d.x_type = random_type(random), d.y_type = random_type(random);
        d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
        d.dim = 1 + uint32_t(random.below(20)), d.len = 1 + random.below(9);
        d.has_batch_table = uint32_t(random.below(2));
        d.first_row = d.has_batch_table ? 0 : random.below(20);
        uint64_t rows = d.capacity = 1 + random.below(30);
        if (random.chance(0.5)) {
            d.page_size = 1 + uint32_t(random.below(6));
            // Tables hold -2 .. 21: with fewer pages than that some entries lead nowhere.
            d.page_count = 8 + uint32_t(random.below(20));
            d.block_table_pages = 1 + random.below(8);
            d.capacity = d.block_table_pages * d.page_size - random.below(d.page_size);
            rows = d.page_size;
        }
        d.x_strides = random_strides(random, d.heads, d.len, d.dim);
        d.y_strides = random_strides(random, d.heads, rows, d.dim);
        check(
            random, [&](Engine& engine) { return engine.plan_append(d); }, d.x_type, FOVEA_F32, d.y_type, 0);
    });
}

// y may be x: the same buffer, the same strides.
TEST(Operations, rope_in_place) {
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
        FoveaRopeDesc d{};
        d.struct_size = sizeof d;
        d.x_type = d.y_type = type;
        d.batch = 2, d.heads = 3, d.dim = 22, d.len = 17, d.rotary_dim = 14;
        Result<Plan> plan = engines().device.plan_rope(d);
        ASSERT_TRUE(plan);
        Random random(7);
        const FoveaPlanInfo info = plan->info();
        Buffers buffers;
        fill(random, FOVEA_BIND_X, type, info.binding_bytes[FOVEA_BIND_X], buffers[FOVEA_BIND_X]);
        fill(random, FOVEA_BIND_COS, FOVEA_F32, info.binding_bytes[FOVEA_BIND_COS], buffers[FOVEA_BIND_COS]);
        fill(random, FOVEA_BIND_SIN, FOVEA_F32, info.binding_bytes[FOVEA_BIND_SIN], buffers[FOVEA_BIND_SIN]);
        buffers[FOVEA_BIND_Y] = buffers[FOVEA_BIND_X];
        const Buffers apart = run(engines().device, *plan, buffers, 0);

        std::array<std::optional<DeviceBuffer>, 3> owned;
        std::array<DeviceBuffer*, FOVEA_BIND_COUNT> bound{};
        const uint32_t sources[] = {FOVEA_BIND_X, FOVEA_BIND_COS, FOVEA_BIND_SIN};
        for (size_t n = 0; n < 3; ++n) {
            Result<DeviceBuffer> buffer = engines().device.buffer(buffers[sources[n]].size());
            ASSERT_TRUE(buffer);
            owned[n].emplace(std::move(*buffer));
            ASSERT_TRUE(owned[n]->upload(buffers[sources[n]]));
            bound[sources[n]] = &*owned[n];
        }
        bound[FOVEA_BIND_Y] = bound[FOVEA_BIND_X];
        const Result<RunReport> report = engines().device.run(*plan, bound, {});
        ASSERT_TRUE(report) << report.error().text;
        Bytes in_place(buffers[FOVEA_BIND_X].size());
        ASSERT_TRUE(owned[0]->download(in_place));
        EXPECT_TRUE(in_place == apart[FOVEA_BIND_Y]);
    }
}

}  // namespace
}  // namespace fovea::test
