// Simulates the mouse, frame by frame and without a window: hovering, clicks and drags in panels whose layout
// is known only from pictures, and small items next to the cells that were cut or had no room.
#include "picture.hpp"
#include "visualizer_fixture.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace fovea::visualizer {
namespace {

class MouseTest : public VisualizerTest {
  protected:
    // The picture after the mouse has gone this way, one place a frame.
    Tensor after(std::vector<PictureMouse> mouse) {
        size.mouse = std::move(mouse);
        Result<Tensor> image = draw_picture(*bench, size);
        EXPECT_TRUE(image) << image.error().text;
        return image ? std::move(*image) : Tensor{};
    }
    ImU32 at(const Tensor& image, uint64_t x, uint64_t y) const {
        const std::byte* p = &image.bytes[(y * image.shape[1] + x) * 4];
        return IM_COL32(uint8_t(p[0]), uint8_t(p[1]), uint8_t(p[2]), 255);
    }
    // The middle of a square of the color, as far as the picture has one.
    std::optional<PictureMouse> spot_of(const Tensor& image, ImU32 color, uint64_t side, uint64_t left,
                                        uint64_t right, uint64_t top) const {
        for (uint64_t y = top; y + side < size.height - 40; ++y)
            for (uint64_t x = left; x + side < right; ++x) {
                bool all = true;
                for (uint64_t n = 0; n < side * side && all; ++n)
                    all = at(image, x + n % side, y + n / side) == color;
                if (all) return PictureMouse{float(x + side / 2), float(y + side / 2)};
            }
        return {};
    }
    void alone(CentreTab centre) {
        bench->window.centre = centre;
        bench->window.layout.left_shown = bench->window.layout.right_shown =
            bench->window.layout.bottom_shown = false;
        size.width = 960, size.height = 560;
    }

    PictureSize size;
};

// Over the small weights every cell can be picked; over the tokens' vectors the token, and the stage stays.
TEST_F(MouseTest, the_flow_is_picked_by_hovering_and_a_name_leads_to_the_large_matrix) {
    bench->document.change(level_settings(2));
    compute();
    show("weights");
    alone(CentreTab::flow);
    std::set<std::pair<int, int>> cells;
    std::set<std::string> stages;
    std::optional<PictureMouse> over_weights;
    for (const float y : {230.0f, 262.0f, 294.0f})
        for (float x = 330; x < 800; x += 24) {
            show("scores");
            bench->view.picked_row = bench->view.picked_column = 0;
            after({{x - 1, y}, {x, y}});
            stages.insert(bench->stage().name);
            cells.insert({bench->view.picked_row, bench->view.picked_column});
            ASSERT_TRUE(bench->stage().over_keys);
            if (bench->stage().name == "weights") over_weights = PictureMouse{x, y};
        }
    EXPECT_EQ(stages, (std::set<std::string>{"scores", "scaled", "weights"}));
    EXPECT_GT(cells.size(), 8u);
    ASSERT_TRUE(over_weights);
    // A click pins there, and a second one lets go; then what is hovered is picked again.
    const PictureMouse down{over_weights->x, over_weights->y, true};
    after({*over_weights, *over_weights, down, *over_weights, *over_weights});
    EXPECT_TRUE(bench->view.pinned);
    const int row = bench->view.picked_row;
    after({{over_weights->x, over_weights->y - 60}, {over_weights->x, over_weights->y - 61}});
    EXPECT_EQ(bench->view.picked_row, row);
    after({*over_weights, *over_weights, down, *over_weights, *over_weights});
    EXPECT_FALSE(bench->view.pinned);
    // The name is above its matrix.
    for (float y = over_weights->y; y > 60 && bench->window.centre == CentreTab::flow; y -= 6)
        after({{over_weights->x, y},
               {over_weights->x, y},
               {over_weights->x, y, true},
               {over_weights->x, y},
               {over_weights->x, y}});
    EXPECT_EQ(bench->window.centre, CentreTab::matrix);
    EXPECT_EQ(bench->stage().name, "weights");
}

TEST_F(MouseTest, the_query_is_dragged_in_the_plane_and_the_weights_follow) {
    bench->document.change(level_settings(2));
    compute();
    show("weights");
    alone(CentreTab::vectors);
    const Tensor before = after({});
    EXPECT_FALSE(bench->vectors.tries());
    // The picked query's end is the one spot of the accent's color that is so large; tabs are above.
    const std::optional<PictureMouse> query = spot_of(before, palette(Theme::dark).accent, 6, 4, 560, 110);
    ASSERT_TRUE(query);
    std::vector<PictureMouse> drag{*query, *query};
    for (int step = 0; step <= 6; ++step)
        drag.push_back({query->x - 10.0f * float(step), query->y + 8.0f * float(step), true});
    drag.push_back({query->x - 60, query->y + 48});
    after(drag);
    EXPECT_TRUE(bench->vectors.tries());
    EXPECT_EQ(bench->vectors.held.kind, VectorKind::query);
    EXPECT_EQ(int(bench->vectors.held.token), bench->view.picked_row);
    EXPECT_TRUE(bench->document.settings().edits.empty());
    const Result<F32Tensor>& tried = bench->vectors.tried_weights();
    ASSERT_TRUE(tried);
    const Stage* weights = bench->computation.find_stage(StageId::weights);
    double moved = 0;
    for (size_t key = 0; key < 6; ++key)
        moved += std::abs(double(tried->row(1)[key]) - double(weights->values[6 + key]));
    EXPECT_GT(moved, 0.02);
    for (size_t key = 0; key < 6; ++key) EXPECT_NEAR(tried->row(2)[key], weights->values[12 + key], 1e-6);
    // Another text's plane begins as it is.
    bench->document.change(level_settings(3));
    compute();
    after({});
    EXPECT_FALSE(bench->vectors.tries());
}

TEST_F(MouseTest, a_word_is_dragged_and_is_the_sessions) {
    bench->document.change(level_settings(2));
    compute();
    show("weights");
    alone(CentreTab::vectors);
    after({});
    bench->vectors.of_words = true;
    const Tensor before = after({});
    const std::optional<PictureMouse> word = spot_of(before, palette(Theme::dark).accent, 4, 4, 560, 110);
    ASSERT_TRUE(word);
    std::vector<PictureMouse> drag{*word, *word};
    for (int step = 0; step <= 4; ++step)
        drag.push_back({word->x + 9.0f * float(step), word->y - 5.0f * float(step), true});
    after(drag);
    const Settings& now = bench->document.settings();
    ASSERT_EQ(now.edits.size(), 3u);
    EXPECT_EQ(now.edits[0].stage, StageId::inputs);
    EXPECT_EQ(int(now.edits[0].row), bench->view.picked_row);
    compute();
    bench->document.undo();
    EXPECT_TRUE(bench->document.settings().edits.empty()) << "a drag is one step of undo";
}

// The sheet's button closes it, and a click next to it does nothing.
TEST_F(MouseTest, done_ends_the_sheet_that_says_how_a_file_is_read) {
    const std::string path = (folder / "qkv.safetensors").string();
    TensorSet set;
    for (const char* name : {"q", "k", "v"})
        set.tensors.push_back(*make_tensor(name, {1, 4, 6}, std::vector<float>(24, 0.5f)));
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    size.width = 1200, size.height = 720;
    bench->window.open_dialog(Dialog::import_sheet);
    const Tensor sheet = after({});
    ASSERT_EQ(bench->window.dialog, Dialog::import_sheet);
    // It is in the middle, over a darkened background; its left edge is where the middle line first has its
    // own background.
    const ImU32 ground = palette(Theme::dark).panel;
    uint64_t left = 0, bottom = 0;
    for (uint64_t x = 100; x < 600 && !left; ++x) {
        bool all = true;
        for (uint64_t y = 350; y < 370; ++y) all &= at(sheet, x, y) == ground;
        if (all) left = x;
    }
    ASSERT_GT(left, 0u);
    for (uint64_t y = 360; y < 719 && !bottom; ++y)
        if (at(sheet, left + 6, y) != ground) bottom = y;
    ASSERT_GT(bottom, 360u);
    const auto click = [&](float x, float y) { after({{x, y}, {x, y}, {x, y, true}, {x, y}, {x, y}}); };
    click(float(left) - 60, float(bottom));
    EXPECT_EQ(bench->window.dialog, Dialog::import_sheet);
    click(float(left) + 36, float(bottom) - 28);
    EXPECT_EQ(bench->window.dialog, Dialog::none);
    EXPECT_TRUE(bench->document.settings().file);
}

// The grip has no padding, and its tooltip had none either: letters touched the frame.
TEST_F(MouseTest, the_tooltip_of_a_panels_edge_has_room_around_its_words) {
    compute();
    size.width = 1200, size.height = 720;
    const Tensor without = after({});
    const Tensor with = after(std::vector<PictureMouse>(60, PictureMouse{300, 400}));
    // The pictures differ in the tooltip, except for the edge's line.
    uint64_t left = with.shape[1], right = 0, top = with.shape[0], bottom = 0;
    for (uint64_t y = 0; y < with.shape[0]; ++y)
        for (uint64_t x = 310; x < with.shape[1]; ++x)
            if (at(with, x, y) != at(without, x, y))
                left = std::min(left, x), right = std::max(right, x), top = std::min(top, y),
                bottom = std::max(bottom, y);
    ASSERT_GT(right, left + 200) << "there is no tooltip";
    ASSERT_LT(bottom, top + 60);
    const ImU32 ground = palette(Theme::dark).panel;
    uint64_t ink_left = right, ink_top = bottom;
    for (uint64_t y = top + 2; y + 2 < bottom; ++y)
        for (uint64_t x = left + 2; x + 2 < right; ++x)
            if (at(with, x, y) != ground) ink_left = std::min(ink_left, x), ink_top = std::min(ink_top, y);
    EXPECT_GE(ink_left, left + 6);
    EXPECT_GE(ink_top, top + 4);
}

// With rows of one pixel, the first one's number was cut at the matrix's upper edge.
TEST_F(MouseTest, the_first_rows_number_is_whole_at_512_tokens) {
    Settings settings = level_settings(7);
    settings.length = 512;
    bench->document.change(settings);
    compute();
    show("weights");
    bench->view.picked_row = 300;
    alone(CentreTab::matrix);
    size.height = 720;
    const Tensor image = after({});
    // The rows' numbers are left of the matrix; their heights are those of digits.
    const ImU32 ground = palette(Theme::dark).panel;
    std::vector<std::pair<uint64_t, uint64_t>> runs;  // ranges of pixel rows with ink
    uint64_t label_right = 0;
    for (uint64_t x = 30; x < 500 && !label_right; ++x) {
        uint64_t rows = 0;
        for (uint64_t y = 150; y < 640; ++y) rows += at(image, x, y) != ground;
        if (rows > 400) label_right = x;  // the matrix
    }
    ASSERT_GT(label_right, 60u);
    for (uint64_t y = 100; y < 690; ++y) {
        bool ink = false;
        for (uint64_t x = label_right - 34; x + 6 < label_right; ++x) ink |= at(image, x, y) != ground;
        if (ink && (runs.empty() || runs.back().second != y)) runs.push_back({y, y});
        if (ink) runs.back().second = y + 1;
    }
    ASSERT_GT(runs.size(), 4u);
    const auto height = [](const auto& run) { return run.second - run.first; };
    // The first is what says which side is which, where it reaches so far.
    const size_t first = height(runs[0]) > height(runs[2]) + 1 || runs[1].first - runs[0].first < 20 ? 1 : 0;
    EXPECT_GE(height(runs[first]) + 1, height(runs[3])) << "the first row's number is cut";
}

}  // namespace
}  // namespace fovea::visualizer
