#include <gtest/gtest.h>
#include <fovea/inspect/colour_map.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace fovea {
namespace {

TEST(ColourMap, names_go_both_ways) {
    for (const ColourMap map : kColourMaps) EXPECT_EQ(colour_map_from_name(colour_map_name(map)), map);
    EXPECT_EQ(colour_map_from_name("jet"), std::nullopt);
}

TEST(ColourMap, sequential_maps_grow_in_lightness_all_the_way) {
    for (const ColourMap map : {ColourMap::viridis, ColourMap::magma, ColourMap::cividis, ColourMap::grey}) {
        const ColourTable table = colour_table(map);
        for (size_t i = 1; i < table.size(); ++i) {
            EXPECT_GE(lightness(table[i]), lightness(table[i - 1]) - 0.25)
                << colour_map_name(map) << " at " << i;
            EXPECT_LT(lightness(table[i]) - lightness(table[i - 1]), 1.5)
                << colour_map_name(map) << " at " << i;
        }
        EXPECT_GT(lightness(table[255]) - lightness(table[0]), 70.0) << colour_map_name(map);
        // Even steps: a quarter of the map is between an eighth and two fifths of the lightness.
        for (size_t quarter = 0; quarter < 4; ++quarter) {
            const double step =
                lightness(table[std::min<size_t>(quarter * 64 + 64, 255)]) - lightness(table[quarter * 64]);
            const double share = step / (lightness(table[255]) - lightness(table[0]));
            EXPECT_GT(share, 0.125) << colour_map_name(map);
            EXPECT_LT(share, 0.4) << colour_map_name(map);
        }
    }
}

TEST(ColourMap, the_diverging_map_is_lightest_in_the_middle_and_as_dark_at_both_ends) {
    const ColourTable table = colour_table(ColourMap::blue_orange);
    for (size_t i = 1; i < 128; ++i) EXPECT_GE(lightness(table[i]), lightness(table[i - 1]) - 0.25) << i;
    for (size_t i = 129; i < 256; ++i) EXPECT_LE(lightness(table[i]), lightness(table[i - 1]) + 0.25) << i;
    EXPECT_NEAR(lightness(table[0]), lightness(table[255]), 6.0);
    EXPECT_NEAR(lightness(table[64]), lightness(table[191]), 8.0);
    EXPECT_GT(lightness(table[127]), 94.0);
}

TEST(ColourMap, control_points_are_met) {
    EXPECT_EQ(colour_table(ColourMap::viridis)[0], (Rgb{0x44, 0x01, 0x54}));
    EXPECT_EQ(colour_table(ColourMap::viridis)[255], (Rgb{0xfd, 0xe7, 0x25}));
    EXPECT_EQ(colour_table(ColourMap::magma)[85], (Rgb{0x72, 0x1f, 0x81}));
}

TEST(ColourMap, digits_can_be_read_on_every_colour) {
    for (const ColourMap map : kColourMaps) {
        for (const Rgb colour : colour_table(map)) EXPECT_GE(contrast(colour, text_colour_on(colour)), 4.5);
    }
}

TEST(ColourRange, places_and_values_are_inverse) {
    for (const ColourRange range : {ColourRange{0.0, 2.0}, ColourRange{1e-4, 1.0, ColourScale::logarithmic},
                                    ColourRange{-1.0, 3.0, ColourScale::symmetric}}) {
        for (const double place : {0.0, 0.25, 0.5, 1.0}) {
            EXPECT_NEAR(range.place(range.value_at(place)), place, 1e-12);
        }
    }
    EXPECT_EQ((ColourRange{-1.0, 3.0, ColourScale::symmetric}.place(0.0)), 0.5);
    EXPECT_EQ((ColourRange{0.0, 1.0}.place(7.0)), 1.0);
    EXPECT_EQ((ColourRange{1e-4, 1.0, ColourScale::logarithmic}.place(0.0)), 0.0);
    EXPECT_EQ((ColourRange{2.0, 2.0}.place(2.0)), 0.5);
}

TEST(ColourRange, fits_weights_from_zero_and_scores_around_it) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> weights = {0.2f, 0.8f}, scores = {-3.0f, 1.0f, -infinity, infinity};
    EXPECT_EQ(fitted_range(weights).low, 0.0);
    EXPECT_NEAR(fitted_range(weights).high, 0.8, 1e-7);
    EXPECT_EQ(fitted_range(scores).scale, ColourScale::symmetric);
    EXPECT_EQ(fitted_range(scores).low, -3.0);
    EXPECT_EQ(fitted_range({}).high, 1.0);
}

TEST(ColourOf, values_without_a_place_have_colours_of_their_own) {
    const ColourTable table = colour_table(ColourMap::viridis);
    EXPECT_EQ(colour_of(std::nan(""), table, {}), kNanColour);
    EXPECT_EQ(colour_of(-std::numeric_limits<double>::infinity(), table, {}), kInfinityColour);
    EXPECT_EQ(colour_of(1.0, table, {}), table[255]);
    EXPECT_EQ(colour_of(-5.0, table, {}), table[0]);
}

}  // namespace
}  // namespace fovea
