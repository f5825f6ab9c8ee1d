#include <gtest/gtest.h>
#include <fovea/inspect.hpp>

#include <limits>
#include <map>

namespace fovea {
namespace {

size_t pixels_of(const RgbaImage& image, Rgb color) {
    size_t count = 0;
    for (size_t i = 0; i < image.rgba.size(); i += 4) {
        count += Rgb{image.rgba[i], image.rgba[i + 1], image.rgba[i + 2]} == color ? 1 : 0;
    }
    return count;
}

HeatmapPanel small_panel() {
    HeatmapPanel panel;
    panel.values = F32Tensor({2, 2}, {0.0f, 1.0f, 0.25f, 0.75f});
    return panel;
}

RgbaImage render(const std::vector<HeatmapPanel>& panels, const HeatmapStyle& style = {}) {
    Result<RgbaImage> image = render_heatmaps(panels, style);
    if (!image) {
        ADD_FAILURE() << image.error().text;
        return {};
    }
    EXPECT_EQ(image->rgba.size(), size_t{4} * image->width * image->height);
    for (size_t i = 3; i < image->rgba.size(); i += 4) EXPECT_EQ(image->rgba[i], 255);
    return std::move(*image);
}

TEST(Heatmap, cells_have_the_colors_of_their_values) {
    const RgbaImage image = render({small_panel()});
    const ColorTable viridis = color_table(Colormap::viridis);
    // 64 units a cell, two pixels a unit, less the gap and the digits: well over half of each.
    for (const float value : small_panel().values.values) {
        EXPECT_GT(pixels_of(image, color_of(value, viridis, {})), 8000u) << value;
    }
    EXPECT_EQ(pixels_of(image, {255, 255, 255}) > image.width * size_t{10}, true);
}

TEST(Heatmap, signed_values_take_the_diverging_map) {
    HeatmapPanel panel = small_panel();
    panel.values.values = {-1.0f, 1.0f, 0.0f, 0.5f};
    const RgbaImage image = render({panel});
    const ColorTable table = color_table(Colormap::blue_orange);
    EXPECT_GT(pixels_of(image, table[0]), 8000u);
    EXPECT_GT(pixels_of(image, table[255]), 8000u);
}

TEST(Heatmap, hidden_cells_and_minus_infinity_are_hatched_without_a_value) {
    HeatmapPanel panel = small_panel();
    panel.values.values = {0.5f, -std::numeric_limits<float>::infinity(), 0.125f, 1.0f};
    panel.hidden = {0, 0, 0, 1};
    const RgbaImage image = render({panel});
    const ColorTable viridis = color_table(Colormap::viridis);
    // The range is that of what is shown: 0.5 is its top, and the color bar's.
    EXPECT_GT(pixels_of(image, viridis[255]), 8000u);
    EXPECT_EQ(pixels_of(image, kInfinityColor), 0u);
    EXPECT_GT(pixels_of(image, {243, 245, 247}), 8000u);
}

TEST(Heatmap, nan_is_magenta) {
    HeatmapPanel panel = small_panel();
    panel.values.values[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_GT(pixels_of(render({panel}), kNanColor), 8000u);
}

TEST(Heatmap, is_the_same_every_time_and_scales_with_the_pixel_ratio) {
    const RgbaImage once = render({small_panel()}), again = render({small_panel()});
    EXPECT_EQ(once.rgba, again.rgba);
    const RgbaImage half = render({small_panel()}, {.pixel_ratio = 1.0});
    EXPECT_NEAR(half.width * 2.0, once.width, 2.0);
    EXPECT_NEAR(half.height * 2.0, once.height, 2.0);
}

TEST(Heatmap, large_matrices_and_many_panels_are_drawn) {
    HeatmapPanel large;
    large.values = F32Tensor({700, 900});
    for (size_t i = 0; i < large.values.values.size(); ++i) {
        large.values.values[i] = static_cast<float>(i % 7) / 7.0f;
    }
    const RgbaImage image = render({large}, {.pixel_ratio = 1.0});
    EXPECT_GT(image.width, 900u);
    EXPECT_LT(image.width, 1200u);
    const RgbaImage grid =
        render({small_panel(), small_panel(), small_panel(), small_panel()}, {.pixel_ratio = 1.0});
    const RgbaImage row = render({small_panel(), small_panel(), small_panel()}, {.pixel_ratio = 1.0});
    EXPECT_EQ(grid.width, row.width);
    EXPECT_GT(grid.height, row.height + 100u);
}

TEST(Heatmap, a_missing_font_is_an_error_not_a_blank) {
    const Result<RgbaImage> image = render_heatmaps({small_panel()}, {.font_path = "no-such-font.ttf"});
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().field, "font");
    EXPECT_NE(image.error().text.find("no-such-font.ttf"), std::string::npos);
}

TEST(Heatmap, refuses_what_it_cannot_draw_with_sizes) {
    const auto error_of = [](HeatmapPanel panel) {
        const Result<RgbaImage> image = render_heatmaps({std::move(panel)});
        return image ? std::string("drawn") : image.error().text;
    };
    HeatmapPanel panel = small_panel();
    panel.values = F32Tensor({2, 2, 2});
    EXPECT_EQ(error_of(panel), "panels[0].values has shape [2, 2, 2]; it must be [rows, columns]");
    panel.values = F32Tensor({2, 4096});
    EXPECT_EQ(error_of(panel), "panels[0].values has shape [2, 4096]; each side must be 1 to 2048");
    panel = small_panel();
    panel.row_labels = {"a", "b", "c"};
    EXPECT_EQ(error_of(panel), "panels[0].row_labels has 3 elements; the matrix needs 2");
    panel = small_panel();
    panel.hidden = {1};
    EXPECT_EQ(error_of(panel), "panels[0].hidden has 1 elements; the matrix needs 4");
    EXPECT_FALSE(render_heatmaps({}));
    EXPECT_FALSE(render_heatmaps({small_panel()}, {.pixel_ratio = 0.0}));
    EXPECT_FALSE(render_heatmaps({small_panel()}, {.panels_per_row = 0}));
    EXPECT_EQ(render_heatmaps(std::vector<HeatmapPanel>(3000, small_panel())).error().code,
              FOVEA_LIMIT_EXCEEDED);
}

TEST(LessonPicture, every_lesson_with_a_matrix_has_one) {
    const std::map<std::string, std::vector<std::string>> expected = {
        {"t1-08-causal-weights", {"scores", "masked scores", "causal weights"}},
        {"t2-03-causal-attention-dropout", {"scores", "masked scores", "weights", "dropped native"}},
        {"t1-12-two-heads-stacked", {"head0.weights", "head1.weights"}},
        {"t1-15-multi-head", {"weights, head 0", "weights, head 1"}},
        {"t1-10-dropout-weights", {"input", "dropped mkl"}},
        {"t0-01-embedding", {"X"}},
    };
    for (const Lesson& lesson : list_lessons()) {
        const Result<LessonRun> run = run_lesson(lesson);
        ASSERT_TRUE(run);
        std::vector<std::string> titles;
        for (const HeatmapPanel& panel : lesson_panels(lesson, *run)) titles.push_back(panel.title);
        // The curve of t0-03 is not a matrix.
        EXPECT_EQ(titles.empty(), lesson.name == "t0-03-softmax-curve") << lesson.name;
        if (const auto found = expected.find(lesson.name); found != expected.end()) {
            EXPECT_EQ(titles, found->second) << lesson.name;
        }
    }
}

TEST(LessonPicture, hatches_what_the_mask_hides) {
    const Lesson lesson = *find_lesson("t4-01");
    const std::vector<HeatmapPanel> panels = lesson_panels(lesson, *run_lesson(lesson));
    ASSERT_EQ(panels.size(), 3u);
    for (const HeatmapPanel& panel : panels) {
        for (size_t i = 0; i < 144; ++i) EXPECT_EQ(panel.hidden[i] != 0, i % 12 > i / 12);
    }
    EXPECT_TRUE(lesson_picture(lesson, *run_lesson(lesson), {.pixel_ratio = 0.5}));
}

}  // namespace
}  // namespace fovea
