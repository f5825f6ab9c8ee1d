// Pictures without a window: right size, right colors in the right place, both themes and two scales, silent
// validation.
#include "panels/canvas.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/inspect/colormap.hpp>

#include <string>

namespace fovea::visualizer {
namespace {

class PictureTest : public testing::Test {
  protected:
    TemporaryFolder folder;
};

uint64_t count_of(const Tensor& image, Rgb color) {
    uint64_t count = 0;
    for (size_t i = 0; i + 3 < image.bytes.size(); i += 4)
        count += uint8_t(image.bytes[i]) == color.r && uint8_t(image.bytes[i + 1]) == color.g &&
                 uint8_t(image.bytes[i + 2]) == color.b;
    return count;
}

TEST_F(PictureTest, both_themes_and_scales_show_the_matrix) {
    for (const Theme theme : {Theme::dark, Theme::light}) {
        for (const float scale : {1.0f, 2.0f}) {
            Options o;
            o.theme = theme;
            o.scale = scale;
            o.width = 1200, o.height = 720;
            const Tensor image = picture_of(o, folder);
            ASSERT_EQ(image.shape, (std::vector<uint64_t>{uint64_t(720 * scale), uint64_t(1200 * scale), 4}));
            // The largest weight has the map's last color: a whole cell of it, except for its digits and
            // frame.
            const Rgb brightest = color_table(Colormap::viridis)[255];
            EXPECT_GT(count_of(image, brightest), uint64_t(900 * scale * scale));
            const ImU32 ground = palette(theme).panel;
            const Rgb panel{uint8_t(ground), uint8_t(ground >> 8), uint8_t(ground >> 16)};
            EXPECT_GT(count_of(image, panel), uint64_t(250000 * scale * scale));
        }
    }
}

// Six words keep cells of 46 units, which have digits, in a small window and with large type. Frame and
// digits of the picked cell are not its color.
TEST_F(PictureTest, small_windows_and_large_type_keep_the_cells) {
    const Rgb brightest = color_table(Colormap::viridis)[255];
    for (const auto& [width, height, scale] : {std::tuple{1024u, 640u, 1.0f}, {800u, 480u, 2.0f}}) {
        Options o;
        o.scale = scale;
        o.width = width, o.height = height;
        const Tensor image = picture_of(o, folder);
        // The longest line is a cell's side; small pictures next to the matrix have smaller cells.
        uint64_t side = 0, run = 0;
        const uint64_t pixels = image.shape[0] * image.shape[1];
        for (uint64_t at = 0; at < pixels; ++at) {
            const std::byte* p = &image.bytes[at * 4];
            const bool bright = Rgb{uint8_t(p[0]), uint8_t(p[1]), uint8_t(p[2])} == brightest;
            run = !bright ? 0 : at % image.shape[1] == 0 ? 1 : run + 1;
            side = std::max(side, run);
        }
        EXPECT_GE(side, uint64_t(36 * scale)) << width << " x " << height;
    }
}

// Entropies of many rows that are nearly equal would be one block; bars of other values begin at 0.
TEST(BarsTest, begin_below_what_is_nearly_equal) {
    std::vector<float> even(512, 6.0f);
    even[7] = 6.2f, even[9] = 5.8f;
    EXPECT_GT(bars_begin(even), 5.5f);
    EXPECT_LT(bars_begin(even), 5.8f);
    even[9] = 0.1f;
    EXPECT_EQ(bars_begin(even), 0);
    EXPECT_EQ(bars_begin({6.0f, 6.1f}), 0) << "a few bars are read from 0";
    EXPECT_EQ(bars_begin({}), 0);
}

// In a narrow window the roofline's picture covered the text next to it: there must be only background left
// of its frame.
TEST_F(PictureTest, words_of_the_gpu_panel_end_before_the_roofs_picture) {
    {  // closed before the picture's own is opened: a program has one at a time
        const Result<std::unique_ptr<GpuDevice>> device = GpuDevice::open({});
        ASSERT_TRUE(device) << device.error().text;
        if (!(*device)->has_timestamps()) GTEST_SKIP() << "this device has no timestamps: there is no roof";
    }
    for (const uint32_t width : {1280u, 1600u}) {
        Options o;
        o.theme = Theme::light;
        o.width = width, o.height = 800;
        o.show = {"gpu"};
        o.roof = true;
        const Tensor image = picture_of(o, folder);
        ASSERT_FALSE(image.bytes.empty());
        const auto is = [&](uint64_t x, uint64_t y, ImU32 color) {
            const std::byte* p = &image.bytes[(y * width + x) * 4];
            return uint8_t(p[0]) == uint8_t(color) && uint8_t(p[1]) == uint8_t(color >> 8) &&
                   uint8_t(p[2]) == uint8_t(color >> 16);
        };
        const ImU32 raised = palette(Theme::light).raised, panel = palette(Theme::light).panel;
        // The frame's left edge is the first column with so high a run of its color; bar and buttons are
        // lower.
        constexpr uint64_t kFrameHeight = 70;
        uint64_t left = 0, top = 0;
        for (uint64_t x = 320; x + 320 < width && !left; ++x)
            for (uint64_t y = 590, run = 0; y < 765 && !left; ++y) {
                run = is(x, y, raised) ? run + 1 : 0;
                if (run == kFrameHeight) left = x, top = y + 1 - run;
            }
        ASSERT_GT(left, 0u) << width << ": the roof's picture is not where it was";
        for (uint64_t y = top; y < top + kFrameHeight; ++y)
            for (uint64_t x = left - 12; x + 4 < left; ++x)
                ASSERT_TRUE(is(x, y, panel)) << width << ": " << x << ", " << y;
    }
}

// After a number with an exponent, "weights on the CPU" may not be cut at the panel's edge.
TEST_F(PictureTest, what_the_picked_number_is_ends_within_the_panel) {
    Options o;
    o.theme = Theme::light;
    o.width = 1024, o.height = 640;
    o.on_cpu = true;
    std::string text = "w0";
    for (int n = 1; n < 128; ++n) text += " w" + std::to_string(n);
    o.text = text;
    const Tensor image = picture_of(o, folder);
    ASSERT_FALSE(image.bytes.empty());
    const ImU32 panel = palette(Theme::light).panel;
    uint64_t ink = 0, cut = 0;
    for (uint64_t y = 94; y < 114; ++y)
        for (uint64_t x = 782; x < 1002; ++x) {  // the scroll bar begins there, the room ends at 998
            const bool ground = uint8_t(image.bytes[(y * 1024 + x) * 4]) == uint8_t(panel);
            (x < 998 ? ink : cut) += !ground;
        }
    EXPECT_GT(ink, 300u) << "the number is not where it was";
    EXPECT_EQ(cut, 0u);
}

// Half of a causal map is masked, not 0: it has the background's color, in both themes, and cells do at any
// zoom.
TEST_F(PictureTest, what_a_causal_map_hides_is_not_colored_as_a_weight) {
    for (const Theme theme : {Theme::dark, Theme::light}) {
        Options o;
        o.theme = theme;
        o.long_map = "4k";
        o.width = 1280, o.height = 800;
        const Tensor image = picture_of(o, folder);
        const ImU32 hidden = palette(theme).matrix_ground;
        const Rgb ground{uint8_t(hidden), uint8_t(hidden >> 8), uint8_t(hidden >> 16)};
        const uint64_t half = 400 * 400 / 2;
        EXPECT_GT(count_of(image, ground), half * 9 / 10);
        EXPECT_LT(count_of(image, color_table(Colormap::magma)[0]), half * 12 / 10);
    }
}

// A synthetic map is of no level: none of the buttons above it is lit.
TEST_F(PictureTest, no_level_is_lit_above_a_synthetic_map) {
    const auto lit = [&](const std::string& map) {
        Options o;
        o.level = 2;
        o.long_map = map;
        o.width = 1280, o.height = 800;
        Tensor bar = picture_of(o, folder);
        bar.bytes = bar.bytes.first(size_t(1280) * 40 * 4);
        const ImU32 accent = palette(Theme::dark).accent;
        return count_of(bar, {uint8_t(accent), uint8_t(accent >> 8), uint8_t(accent >> 16)});
    };
    EXPECT_GT(lit(""), 1000u);
    EXPECT_EQ(lit("4k"), 0u);
}

// The frame of a picked cell leaves most of a small one to its color: cells are 12 pixels and more here.
TEST_F(PictureTest, the_picked_cell_keeps_its_color_when_it_is_small) {
    const auto bright = [&](const char* pick) {
        Options o;
        o.task = "induction";
        o.width = 1024, o.height = 640;
        o.pick = pick;
        return count_of(picture_of(o, folder), color_table(Colormap::viridis)[255]);
    };
    // Both leave the same column's lines; the first is a weight of 1, in the brightest color, the second is
    // not.
    const uint64_t framed = bright("0,0"), plain = bright("19,0");
    EXPECT_LT(framed, plain);
    EXPECT_LT(plain - framed, 60u);
}

uint8_t alpha_at(const Tensor& image, uint64_t y, uint64_t x) {
    return uint8_t(image.bytes[(y * image.shape[1] + x) * 4 + 3]);
}

TEST_F(PictureTest, parts_of_the_window_and_nothing_behind_them) {
    Options o;
    o.level = 3;
    o.theme = Theme::light;
    o.look = {PicturePart::matrix, 1, true, true};
    const Tensor whole = picture_of(o, folder);
    ASSERT_EQ(whole.shape.size(), 3u);
    const Rgb brightest = color_table(Colormap::viridis)[255];
    EXPECT_GT(count_of(whole, brightest), 3000u);  // the first cell, and no frame of a picked one
    EXPECT_EQ(alpha_at(whole, 0, 0), 0);
    uint64_t clear = 0, solid = 0;
    for (size_t i = 3; i < whole.bytes.size(); i += 4) {
        clear += whole.bytes[i] == std::byte{0};
        solid += whole.bytes[i] == std::byte{255};
    }
    // 21 of 36 cells of 72 x 72 are visible; the others have a hatch, and letters and the bar are next to
    // them.
    EXPECT_GT(solid, 21u * 68 * 68);
    EXPECT_LT(solid, 26u * 72 * 72);
    EXPECT_GT(clear, whole.bytes.size() / 4 / 3);

    o.select = "0:2,0:2";
    o.look.legend = false;
    o.scale = 2;
    const Tensor selected = picture_of(o, folder);
    ASSERT_EQ(selected.shape.size(), 3u);
    EXPECT_EQ(selected.shape[1], uint64_t((2 * 16 + 92 + 2 * 72) * 2));
    EXPECT_GT(count_of(selected, brightest), 12000u);

    o = Options();
    o.width = 1200, o.height = 720;
    const Tensor window = picture_of(o, folder);
    o.look.part = PicturePart::view;
    const Tensor view = picture_of(o, folder);
    ASSERT_EQ(view.shape.size(), 3u);
    EXPECT_GT(view.shape[1], 300u);
    EXPECT_LT(view.shape[1], window.shape[1] - 500);
    // The window has the thumbnail of the head, too, which is below the view.
    EXPECT_GT(count_of(view, brightest), 900u);
    EXPECT_GT(count_of(window, brightest), count_of(view, brightest));
}

TEST_F(PictureTest, refuses_what_cannot_be_drawn) {
    Options o;
    o.screenshot = (folder / "none.png").string();
    o.look.transparent = true;
    Result<void> done = run_headless(o);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().field, "transparent");
    o.look.transparent = false;
    o.width = o.height = 16384, o.scale = 8;
    done = run_headless(o);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().field, "picture");
    EXPECT_NE(done.error().text.find("131072 x 131072"), std::string::npos) << done.error().text;
    EXPECT_FALSE(std::filesystem::exists(o.screenshot));
}

TEST_F(PictureTest, exports_the_shown_numbers) {
    Options o;
    o.stage = "scaled";
    o.export_path = (folder / "scores.csv").string();
    const Result<void> done = run_headless(o);
    ASSERT_TRUE(done) << done.error().text;
    const Result<CsvTable> table = load_csv(o.export_path);
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ(table->values.shape, (std::vector<uint64_t>{6, 6}));
    EXPECT_EQ(table->columns[1], "1 journey");
}

TEST_F(PictureTest, refuses_by_name_and_leaves_no_file) {
    const char* bad[][3] = {{"x", "--size", "12x9"},
                            {"x", "--preset", "8"},
                            {"x", "--theme", "blue"},
                            {"x", "--device", "first"}};
    for (const auto& words : bad) {
        const Result<Options> parsed = parse_options(3, const_cast<char**>(words));
        ASSERT_FALSE(parsed);
        EXPECT_EQ(parsed.error().field, words[1]);
    }
    Options o;
    o.stage = "weights of gold";
    o.screenshot = (folder / "none.png").string();
    const Result<void> done = run_headless(o);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().field, "--stage");
    EXPECT_FALSE(std::filesystem::exists(o.screenshot));
}

}  // namespace
}  // namespace fovea::visualizer
