#include <gtest/gtest.h>
#include <fovea/inspect/colormap.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace fovea {
namespace {

TEST(Colormap, names_go_both_ways) {
    for (const Colormap map : kColormaps) EXPECT_EQ(colormap_from_name(colormap_name(map)), map);
    EXPECT_EQ(colormap_from_name("jet"), std::nullopt);
}

TEST(Colormap, sequential_maps_grow_in_lightness_all_the_way) {
    for (const Colormap map : {Colormap::viridis, Colormap::magma, Colormap::cividis, Colormap::grey}) {
        const ColorTable table = color_table(map);
        for (size_t i = 1; i < table.size(); ++i) {
            EXPECT_GE(lightness(table[i]), lightness(table[i - 1]) - 0.25)
                << colormap_name(map) << " at " << i;
            EXPECT_LT(lightness(table[i]) - lightness(table[i - 1]), 1.5)
                << colormap_name(map) << " at " << i;
        }
        EXPECT_GT(lightness(table[255]) - lightness(table[0]), 70.0) << colormap_name(map);
        // Even steps: a quarter of the map is between an eighth and two fifths of the lightness.
        for (size_t quarter = 0; quarter < 4; ++quarter) {
            const double step =
                lightness(table[std::min<size_t>(quarter * 64 + 64, 255)]) - lightness(table[quarter * 64]);
            const double share = step / (lightness(table[255]) - lightness(table[0]));
            EXPECT_GT(share, 0.125) << colormap_name(map);
            EXPECT_LT(share, 0.4) << colormap_name(map);
        }
    }
}

TEST(Colormap, the_diverging_map_is_lightest_in_the_middle_and_as_dark_at_both_ends) {
    const ColorTable table = color_table(Colormap::blue_orange);
    for (size_t i = 1; i < 128; ++i) EXPECT_GE(lightness(table[i]), lightness(table[i - 1]) - 0.25) << i;
    for (size_t i = 129; i < 256; ++i) EXPECT_LE(lightness(table[i]), lightness(table[i - 1]) + 0.25) << i;
    EXPECT_NEAR(lightness(table[0]), lightness(table[255]), 6.0);
    EXPECT_NEAR(lightness(table[64]), lightness(table[191]), 8.0);
    EXPECT_GT(lightness(table[127]), 94.0);
}

TEST(Colormap, control_points_are_met) {
    EXPECT_EQ(color_table(Colormap::viridis)[0], (Rgb{0x44, 0x01, 0x54}));
    EXPECT_EQ(color_table(Colormap::viridis)[255], (Rgb{0xfd, 0xe7, 0x25}));
    EXPECT_EQ(color_table(Colormap::magma)[85], (Rgb{0x72, 0x1f, 0x81}));
}

TEST(Colormap, digits_can_be_read_on_every_color) {
    for (const Colormap map : kColormaps) {
        for (const Rgb color : color_table(map)) EXPECT_GE(contrast(color, text_color_on(color)), 4.5);
    }
}

TEST(ColorRange, places_and_values_are_inverse) {
    for (const ColorRange range : {ColorRange{0.0, 2.0}, ColorRange{1e-4, 1.0, ColorScale::logarithmic},
                                   ColorRange{-1.0, 3.0, ColorScale::symmetric}}) {
        for (const double place : {0.0, 0.25, 0.5, 1.0}) {
            EXPECT_NEAR(range.place(range.value_at(place)), place, 1e-12);
        }
    }
    EXPECT_EQ((ColorRange{-1.0, 3.0, ColorScale::symmetric}.place(0.0)), 0.5);
    EXPECT_EQ((ColorRange{0.0, 1.0}.place(7.0)), 1.0);
    EXPECT_EQ((ColorRange{1e-4, 1.0, ColorScale::logarithmic}.place(0.0)), 0.0);
    EXPECT_EQ((ColorRange{2.0, 2.0}.place(2.0)), 0.5);
}

TEST(ColorRange, fits_weights_from_zero_and_scores_around_it) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> weights = {0.2f, 0.8f}, scores = {-3.0f, 1.0f, -infinity, infinity};
    EXPECT_EQ(fitted_range(weights).low, 0.0);
    EXPECT_NEAR(fitted_range(weights).high, 0.8, 1e-7);
    EXPECT_EQ(fitted_range(scores).scale, ColorScale::symmetric);
    EXPECT_EQ(fitted_range(scores).low, -3.0);
    EXPECT_EQ(fitted_range({}).high, 1.0);
}

TEST(ColorOf, values_without_a_place_have_colors_of_their_own) {
    const ColorTable table = color_table(Colormap::viridis);
    EXPECT_EQ(color_of(std::nan(""), table, {}), kNanColor);
    EXPECT_EQ(color_of(-std::numeric_limits<double>::infinity(), table, {}), kInfinityColor);
    EXPECT_EQ(color_of(1.0, table, {}), table[255]);
    EXPECT_EQ(color_of(-5.0, table, {}), table[0]);
}

}  // namespace
}  // namespace fovea
