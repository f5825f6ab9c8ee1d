// The vector power of two that every softmax uses, against float64, on every instruction set that runs here.
#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/exp_test.cpp"
#include <hwy/foreach_target.h>

#include "cpu/simd_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// `count` is a multiple of 16.
void exp2_all(const float* x, size_t count, float* y) {
    for (size_t n = 0; n < count; n += kLanes) hn::StoreU(exp2(hn::LoadU(F(), x + n)), F(), y + n);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "support/random.hpp"

#include <fovea/fovea.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace fovea::cpu {

void (*exp2_of(uint32_t target))(const float*, size_t, float*) { FOVEA_SELECT_TARGET(target, exp2_all) }

}  // namespace fovea::cpu

namespace fovea::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kBlock = 4096;

template <class Body>
void on_each_target(const Body& body) {
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        SCOPED_TRACE(cpu::target_name(target));
        body(target, cpu::exp2_of(target));
    }
}

// 10^7 exponents: most of them where a softmax's are, at and below 0; the rest spread over all that gives a
// normal number, up to the largest that may be asked for.
TEST(Exp2, errs_by_at_most_two_units_in_the_last_place) {
    on_each_target([](uint32_t target, auto* exp2) {
        Random random(1);
        float x[kBlock], y[kBlock];
        double worst = 0, at = 0;
        for (size_t block = 0; block < 10'000'000 / kBlock + 1; ++block) {
            for (float& value : x) {
                const uint64_t bits = random.next();
                const double u = unit(bits);
                value = float(bits & 3 ? -u * u * 30 : bits & 4 ? -126 + 253 * u : -u * 0x1p-20);
            }
            exp2(x, kBlock, y);
            for (size_t n = 0; n < kBlock; ++n) {
                const double exact = std::exp2(double(x[n]));
                const double error = std::abs(double(y[n]) - exact) / exact;
                if (!(error <= worst)) worst = error, at = x[n];
            }
        }
        // Two units in the last place of a number are at most 2^-22 of it.
        EXPECT_LE(worst, 0x1p-22) << "at " << at;
        std::printf("%s: relative error of 2^x at most %.3g, at %.9g\n", cpu::target_name(target), worst, at);
    });
}

TEST(Exp2, takes_special_values_as_a_softmax_needs_them) {
    on_each_target([](uint32_t, auto* exp2) {
        const auto of = [&](float value) {
            float x[16], y[16];
            for (float& lane : x) lane = value;
            exp2(x, 16, y);
            for (const float lane : y)
                EXPECT_EQ(std::bit_cast<uint32_t>(lane), std::bit_cast<uint32_t>(y[0]));
            return y[0];
        };
        const auto bits = [&](float value) { return std::bit_cast<uint32_t>(of(value)); };
        const float denormal = std::numeric_limits<float>::denorm_min(),
                    largest = std::numeric_limits<float>::max();
        EXPECT_EQ(of(0.0f), 1.0f);
        EXPECT_EQ(of(-0.0f), 1.0f);
        for (const float tiny : {denormal, -denormal, 0x1p-127f, -0x1p-127f, 0x1p-60f, -0x1p-60f})
            EXPECT_NEAR(of(tiny), 1.0, 0x1p-22) << tiny;
        // A hidden key, and every exponent whose power is not a normal number: +0, bit for bit.
        for (const float far : {-kInfinity, -largest, -1e30f, -1000.0f, -150.0f, -149.0f, -127.5f, -127.0f,
                                std::nextafter(-126.0f, -200.0f) - 1.0f})
            EXPECT_EQ(bits(far), 0u) << far;
        for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu})
            EXPECT_TRUE(std::isnan(of(std::bit_cast<float>(nan)))) << nan;
        // Whole exponents are exact from the smallest normal number to the largest power.
        for (int n = -125; n <= 127; ++n) EXPECT_EQ(of(float(n)), std::ldexp(1.0f, n)) << n;
        EXPECT_TRUE(of(-126.0f) == 0x1p-126f || of(-126.0f) == 0.0f);
    });
}

// Between -127 and -126, and nowhere else, a target may already be at zero or still at the exact value.
TEST(Exp2, falls_to_zero_with_the_normal_numbers) {
    on_each_target([](uint32_t, auto* exp2) {
        float x[kBlock], y[kBlock];
        for (size_t n = 0; n < kBlock; ++n) x[n] = -125.0f - 3.0f * float(n) / float(kBlock);
        exp2(x, kBlock, y);
        for (size_t n = 0; n < kBlock; ++n) {
            const double exact = std::exp2(double(x[n]));
            if (x[n] >= -126.0f)
                EXPECT_NEAR(y[n] / exact, 1.0, 0x1p-22) << x[n];
            else
                EXPECT_TRUE(y[n] == 0.0f || (x[n] > -127.0f && std::abs(y[n] / exact - 1.0) <= 0x1p-22))
                    << x[n] << " " << y[n];
            EXPECT_LE(y[n], (n ? y[n - 1] : 1.0f) * (1 + 0x1p-22)) << x[n];
        }
    });
}

}  // namespace
}  // namespace fovea::test
#endif
