// Norms of rows, residual sums and activations against the float64 reference, on every CPU target, or on the
// available device: seeded random calls, in place and not.
#include "problem/row_parts.hpp"
#include "operations/operation_runner.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace fovea::test {
namespace {

constexpr double kRounding = 0x1p-24;

template <class Make, class Desc>
Result<Plan> plan_of(Make make, const FoveaDeviceProperties& properties, const Desc& desc) {
    FoveaPlan handle = nullptr;
    Diag diag;
    if (make(&properties, &desc, nullptr, &handle, &diag) != FOVEA_OK) return diag.error();
    return Plan(handle);
}

std::span<const float> numbers(const Bytes& bytes) {
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
}

// Some far from zero, so that a variance is a small difference of large numbers.
Bytes drawn(Random& random, uint64_t count, float middle = 0) {
    Bytes bytes(count * 4);
    for (uint64_t n = 0; n < count; ++n) {
        const float value = middle + float(random.below(8001)) / 1000.0f - 4.0f;
        memcpy(&bytes[4 * n], &value, 4);
    }
    return bytes;
}

template <class Desc>
Buffers in_plain_loops(FoveaResult (*make)(const FoveaDeviceProperties*, const Desc*,
                                           const FoveaHostAllocator*, FoveaPlan*, FoveaDiag*),
                       Desc desc, FoveaKernel kernel, const Buffers& inputs) {
    std::string error;
    static const auto cpu = make_operation_runner("cpu@scalar", error);
    desc.kernel = kernel;
    const Result<Plan> plan = plan_of(make, cpu->properties(), desc);
    EXPECT_TRUE(plan) << plan.error().text;
    Result<Buffers> after = cpu->run(*plan, inputs, {});
    EXPECT_TRUE(after) << after.error().text;
    return std::move(*after);
}

// WebGPU binds no buffer that a dispatch both reads and writes under two names.
bool binds_in_place() {
    const std::string& name = runners().front()->name();
    return name.starts_with("cpu") || name.starts_with("vulkan");
}

uint64_t cases() { return runners().front()->name().starts_with("cpu") ? 400 : 60; }

TEST(RowParts, norms_are_those_of_the_reference) {
    for (uint64_t seed = 0; seed < cases(); ++seed) {
        SCOPED_TRACE("case " + std::to_string(seed));
        Random random(seed);
        NormDesc d{};
        d.rule = random.chance(0.5) ? NormRule::layer : NormRule::rms;
        d.width = 1 + uint32_t(random.below(random.chance(0.5) ? 40 : 1500));
        d.rows = 1 + random.below(random.chance(0.8) ? 9 : 300);
        d.epsilon = random.pick<float>({1e-5f, 1e-6f, 1e-12f});
        d.has_weight = random.chance(0.8), d.has_bias = d.has_weight && random.chance(0.5);
        d.adds = random.chance(0.4);
        const uint64_t count = d.rows * d.width;
        Buffers inputs;
        inputs[FOVEA_BIND_X] = drawn(random, count, random.pick<float>({0.0f, 0.0f, 20.0f}));
        inputs[FOVEA_BIND_Y].assign(count * 4, std::byte{0x7b});
        if (d.has_weight) inputs[FOVEA_BIND_WEIGHT] = drawn(random, d.width * (1 + d.has_bias));
        if (d.adds) inputs[FOVEA_BIND_O] = drawn(random, count);
        const Buffers exact = in_plain_loops(plan_norm, d, FOVEA_KERNEL_REFERENCE, inputs),
                      plain = in_plain_loops(plan_norm, d, FOVEA_KERNEL_PLAIN, inputs);
        const OperationRun how{random.next(), 1 + uint32_t(random.below(3)),
                               binds_in_place() && random.chance(0.4)};
        for (const auto& runner : runners()) {
            SCOPED_TRACE("on " + runner->name());
            const Result<Plan> plan = plan_of(plan_norm, runner->properties(), d);
            ASSERT_TRUE(plan) << plan.error().text;
            const Result<Buffers> after = runner->run(*plan, inputs, how);
            ASSERT_TRUE(after) << after.error().text;
            if (d.adds) {
                ASSERT_EQ((*after)[FOVEA_BIND_O], exact[FOVEA_BIND_O]);
            }
            const auto read = numbers(d.adds ? exact[FOVEA_BIND_O] : inputs[FOVEA_BIND_X]);
            const auto weight = numbers(inputs[FOVEA_BIND_WEIGHT]);
            for (uint64_t row = 0; row < d.rows; ++row) {
                double worst = 0, plain_worst = 0, largest = 0, mean = 0, squares = 0;
                for (uint32_t c = 0; c < d.width; ++c) mean += double(read[row * d.width + c]) / d.width;
                if (d.rule == NormRule::rms) mean = 0;
                for (uint32_t c = 0; c < d.width; ++c)
                    squares += std::pow(double(read[row * d.width + c]) - mean, 2) / d.width;
                for (uint32_t c = 0; c < d.width; ++c) {
                    const uint64_t n = row * d.width + c;
                    const double right = numbers(exact[FOVEA_BIND_Y])[n];
                    worst = std::max(worst, std::abs(double(numbers((*after)[FOVEA_BIND_Y])[n]) - right));
                    plain_worst =
                        std::max(plain_worst, std::abs(double(numbers(plain[FOVEA_BIND_Y])[n]) - right));
                    const double size =
                        (std::abs(double(read[n])) + std::abs(mean)) / std::sqrt(squares + double(d.epsilon));
                    largest =
                        std::max(largest, size * (d.has_weight ? std::abs(double(weight[c])) : 1.0) +
                                              (d.has_bias ? std::abs(double(weight[d.width + c])) : 0.0));
                }
                ASSERT_LE(worst, 2 * plain_worst + 4 * kRounding * largest)
                    << "row " << row << " of " << d.rows << " x " << d.width << ", rule " << int(d.rule);
            }
        }
    }
}

TEST(RowParts, numbers_are_those_of_the_reference) {
    for (uint64_t seed = 0; seed < cases(); ++seed) {
        SCOPED_TRACE("case " + std::to_string(seed));
        Random random(seed);
        PointwiseDesc d{};
        d.rule =
            random.pick<PointwiseRule>({PointwiseRule::add, PointwiseRule::gelu, PointwiseRule::gelu_tanh,
                                        PointwiseRule::silu, PointwiseRule::relu});
        d.gated = d.rule != PointwiseRule::add && random.chance(0.5);
        d.count = 1 + random.below(random.chance(0.7) ? 400 : 5000);
        Buffers inputs;
        inputs[FOVEA_BIND_X] = drawn(random, d.count);
        // Where exponentials end, and both tails.
        for (const float special :
             {0.0f, -0.0f, 1e-30f, -9.5f, 9.5f, -40.0f, 40.0f, -95.0f, 130.0f, -1e4f, 1e4f})
            memcpy(&inputs[FOVEA_BIND_X][4 * random.below(d.count)], &special, 4);
        inputs[FOVEA_BIND_Y].assign(d.count * 4, std::byte{0x7b});
        if (d.has_other()) inputs[FOVEA_BIND_O] = drawn(random, d.count);
        const Buffers exact = in_plain_loops(plan_pointwise, d, FOVEA_KERNEL_REFERENCE, inputs);
        const OperationRun how{random.next(), 1 + uint32_t(random.below(3)),
                               binds_in_place() && random.chance(0.4)};
        for (const auto& runner : runners()) {
            SCOPED_TRACE("on " + runner->name());
            const Result<Plan> plan = plan_of(plan_pointwise, runner->properties(), d);
            ASSERT_TRUE(plan) << plan.error().text;
            const Result<Buffers> after = runner->run(*plan, inputs, how);
            ASSERT_TRUE(after) << after.error().text;
            for (uint64_t n = 0; n < d.count; ++n) {
                const float x = numbers(inputs[FOVEA_BIND_X])[n], right = numbers(exact[FOVEA_BIND_Y])[n];
                const double size = std::abs(double(x)) *
                                    (d.gated ? std::abs(double(numbers(inputs[FOVEA_BIND_O])[n])) : 1.0);
                // An activation is at most its number; a sum is rounded once.
                const double most = d.rule == PointwiseRule::add ? 0.0 : 4 * kRounding * size;
                ASSERT_LE(std::abs(double(numbers((*after)[FOVEA_BIND_Y])[n]) - double(right)), most)
                    << "number " << n << " of " << d.count << ", " << x << ", rule " << int(d.rule);
            }
        }
    }
}

// Slices and their order change no bit, and each writes what is its own.
TEST(RowParts, large_calls_are_cut) {
    for (const auto& runner : runners()) {
        if (runner->name().starts_with("cpu")) continue;
        FoveaDeviceProperties properties = runner->properties();
        properties.max_storage_range = 1 << 16;
        NormDesc d{};
        d.rule = NormRule::layer, d.width = 700, d.rows = 90, d.epsilon = 1e-5f, d.adds = 1;
        PointwiseDesc p{};
        p.rule = PointwiseRule::silu, p.count = d.width * d.rows, p.gated = 1;
        Random random(5);
        Buffers inputs;
        inputs[FOVEA_BIND_X] = drawn(random, p.count), inputs[FOVEA_BIND_O] = drawn(random, p.count);
        inputs[FOVEA_BIND_Y].assign(p.count * 4, std::byte{0x7b});
        const auto expect_same = [&](auto make, const auto& desc) {
            const Result<Plan> whole = plan_of(make, runner->properties(), desc),
                               cut = plan_of(make, properties, desc);
            ASSERT_TRUE(whole && cut);
            EXPECT_GE(cut->info().slice_count, 4u);
            const Result<Buffers> a = runner->run(*whole, inputs, {}),
                                  b = runner->run(*cut, inputs, {77, 1, false});
            ASSERT_TRUE(a) << a.error().text;
            ASSERT_TRUE(b) << b.error().text;
            EXPECT_EQ((*a)[FOVEA_BIND_Y], (*b)[FOVEA_BIND_Y]);
            EXPECT_EQ((*a)[FOVEA_BIND_O], (*b)[FOVEA_BIND_O]);
        };
        expect_same(plan_norm, d);
        expect_same(plan_pointwise, p);
    }
}

TEST(RowParts, what_cannot_be_is_refused_by_its_field) {
    const FoveaDeviceProperties& properties = runners().front()->properties();
    NormDesc good{};
    good.width = 8, good.rows = 3, good.epsilon = 1e-5f;
    const auto refused = [&](NormDesc d) {
        const Result<Plan> plan = plan_of(plan_norm, properties, d);
        return plan ? std::string("accepted") : plan.error().field;
    };
    EXPECT_EQ(refused(good), "accepted");
    NormDesc d = good;
    d.width = 0;
    EXPECT_EQ(refused(d), "width");
    d = good, d.rows = uint64_t{1} << 31;
    EXPECT_EQ(refused(d), "rows");
    d = good, d.rows = d.width = 1u << 20;
    EXPECT_EQ(refused(d), "rows");
    d = good, d.epsilon = NAN;
    EXPECT_EQ(refused(d), "epsilon");
    d = good, d.has_bias = 1;
    EXPECT_EQ(refused(d), "has_bias");
    PointwiseDesc p{};
    p.count = uint64_t{1} << 31;
    const Result<Plan> plan = plan_of(plan_pointwise, properties, p);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().field, "count");
}

}  // namespace
}  // namespace fovea::test
