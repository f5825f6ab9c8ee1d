#include <fovea/half.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace fovea {
namespace {

// Usable in constant expressions.
static_assert(float_to_half(1.0f) == 0x3c00 && half_to_float(0xc000) == -2.0f);
static_assert(float_to_bfloat(1.0f) == 0x3f80 && bfloat_to_float(0xc000) == -2.0f);

/// The value of a finite half by the definition of the format.
double half_by_definition(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(uint16_t half) { return (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0; }
bool is_finite(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

TEST(Half, EveryHalfWidensExactlyAndComesBack) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
        const auto half = static_cast<uint16_t>(i);
        const float wide = half_to_float(half);
        if (is_nan(half)) {
            ASSERT_TRUE(std::isnan(wide) && is_nan(float_to_half(wide))) << i;
            continue;
        }
        const double expected =
            is_finite(half) ? half_by_definition(half) : (i < 0x8000 ? INFINITY : -INFINITY);
        ASSERT_EQ(wide, expected) << i;
        ASSERT_EQ(std::signbit(wide), i >= 0x8000) << i;
        ASSERT_EQ(float_to_half(wide), half) << i;
    }
}

TEST(Half, BetweenNeighboursTheNearestWinsAndTiesGoToEven) {
    for (uint32_t i = 0; i + 1 < 0x7c00; ++i) {
        const auto below = static_cast<uint16_t>(i), above = static_cast<uint16_t>(i + 1);
        const float middle = static_cast<float>((half_by_definition(below) + half_by_definition(above)) / 2);
        const uint16_t even = (i & 1) == 0 ? below : above;
        ASSERT_EQ(float_to_half(middle), even) << i;
        ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), below) << i;
        ASSERT_EQ(float_to_half(std::nextafter(middle, INFINITY)), above) << i;
        ASSERT_EQ(float_to_half(-middle), even | 0x8000) << i;
    }
}

TEST(Half, OverflowAndUnderflow) {
    EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
    EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
    EXPECT_EQ(float_to_half(3e38f), 0x7c00);
    EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
    EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);
    EXPECT_EQ(float_to_half(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
    EXPECT_EQ(float_to_half(-1e-30f), 0x8000);
}

TEST(Half, NanStaysNanWhereverItsPayloadIs) {
    for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0x7fffffffu}) {
        const float nan = std::bit_cast<float>(bits);
        EXPECT_TRUE(is_nan(float_to_half(nan))) << bits;
        EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(nan)))) << bits;
    }
}

TEST(Bfloat, EveryBfloatComesBack) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
        const auto bfloat = static_cast<uint16_t>(i);
        const float wide = bfloat_to_float(bfloat);
        ASSERT_EQ(std::bit_cast<uint32_t>(wide), i << 16);
        if (std::isnan(wide)) continue;
        ASSERT_EQ(float_to_bfloat(wide), bfloat) << i;
    }
}

TEST(Bfloat, BetweenNeighboursTheNearestWinsAndTiesGoToEven) {
    for (uint32_t i = 0; i < 0x7f80; ++i) {
        const uint32_t middle = i << 16 | 0x8000u;
        const auto even = static_cast<uint16_t>((i & 1) == 0 ? i : i + 1);
        ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(middle)), even) << i;
        ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(middle - 1)), i) << i;
        ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(middle + 1)), i + 1) << i;
        ASSERT_EQ(float_to_bfloat(-std::bit_cast<float>(middle)), even | 0x8000) << i;
    }
}

}  // namespace
}  // namespace fovea
