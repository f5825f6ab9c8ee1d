// The map of a long head: numbers against double precision, exact tiles against each other, settings
// followed.
#include "data/session_file.hpp"
#include "document/long_map.hpp"
#include "panels/keys.hpp"
#include "panels/panels.hpp"
#include "picture.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/files.hpp>
#include <fovea/model/session.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

namespace fovea::visualizer {
namespace {

using MapTest = VisualizerTest;

double weight(const LongContext& c, uint64_t row, uint64_t key) {
    double sum = 0, wanted = 0;
    for (uint64_t j = 0; j <= row; ++j) {
        double dot = 0;
        for (uint64_t d = 0; d < kLongContextDim; ++d)
            dot += double(c.q[row * kLongContextDim + d]) * double(c.k[j * kLongContextDim + d]);
        const double e = std::exp(dot / std::sqrt(double(kLongContextDim)) - 30);
        sum += e;
        if (j == key) wanted = e;
    }
    return wanted / sum;
}

// Tiles by the device's kernels and by the CPU's.
class TilesTest : public VisualizerTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Tiles, TilesTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "Device" : "Processor"; });

constexpr uint32_t kTokens = 1024;

LongHead head_of(const LongContext& c) { return {{c.call, c.q, c.k}, "1k", true}; }

MapView view_of(MapRect rect, uint32_t side) {
    MapView view;
    view.rect = rect;
    view.width = view.height = side;
    return view;
}

TEST_F(MapTest, exact_tiles_among_previews_are_framed_and_the_share_grows) {
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    LongMap map(head_of(*made), level_settings(2), nullptr, {});
    map.tiles().set_view(view_of({0, 0, 512, 512}, 256));
    EXPECT_EQ(map_share(map), 0);
    EXPECT_TRUE(exact_among_previews(map.tiles()).empty());
    map.finish(true);
    EXPECT_EQ(map_share(map), 1);
    EXPECT_TRUE(exact_among_previews(map.tiles()).empty()) << "all of it is exact: nothing to tell apart";
    // One tile of four (one of them hidden) is there from before.
    map.tiles().set_view(view_of({0, 0, kTokens, kTokens}, 512));
    map.finish(false);
    ASSERT_EQ(map.tiles().progress().quality, MapQuality::sampled);
    const std::vector<MapRect> framed = exact_among_previews(map.tiles());
    ASSERT_EQ(framed.size(), map.tiles().progress().exact);
    ASSERT_GE(framed.size(), 1u);
    EXPECT_EQ(framed[0].first_row, 0);
    EXPECT_EQ(framed[0].rows, 512);
    const double share = map_share(map);
    EXPECT_GT(share, 0.5);
    EXPECT_LT(share, 1);
    map.finish(true);
    EXPECT_EQ(map_share(map), 1);
    EXPECT_TRUE(exact_among_previews(map.tiles()).empty());
}

TEST_P(TilesTest, tiles_and_picks_hold_the_weights) {
    GpuDevice* place = GetParam() ? device.get() : nullptr;
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    const LongContext& context = *made;
    Settings settings = level_settings(2);
    LongMap map(head_of(context), settings, place, {});
    map.tiles().set_view(view_of({512, 256, 256, 512}, 256));
    map.finish(true);
    ASSERT_EQ(map.problem(), "");
    EXPECT_EQ(map.on_device(), GetParam()) << map.where();
    ASSERT_EQ(map.tiles().progress().quality, MapQuality::exact);
    const MapTileId id{0, 0, 0, 2, 1, false};
    const MapPixels* pixels = map.tiles().find(id);
    ASSERT_NE(pixels, nullptr);
    const std::vector<float> values = map_values(map.tiles(), id, *pixels, MapReducer::mass);
    std::mt19937 random(5);
    for (int n = 0; n < 20; ++n) {
        const uint64_t row = 512 + random() % 256, key = 256 + random() % 256;
        const double expected = key <= row ? weight(context, row, key) : 0;
        EXPECT_NEAR(values[(row - 512) * 256 + key - 256], expected, 2e-6) << row << ", " << key;
        const Result<Derivation> derived = map.derive(row, key);
        ASSERT_TRUE(derived) << derived.error().text;
        EXPECT_NEAR(derived->weight, expected, 2e-6 * std::max(1.0, expected));
    }
    // The overview's pixels, exact: each row of pixels sums to 1.
    map.tiles().set_view(view_of({0, 0, kTokens, kTokens}, 512));
    map.finish(true);
    const MapTileId left{0, 0, 1, 1, 0, false}, right{0, 0, 1, 1, 1, false};
    ASSERT_NE(map.tiles().find(left), nullptr);
    const std::vector<float> a = map_values(map.tiles(), left, *map.tiles().find(left), MapReducer::mass),
                             b = map_values(map.tiles(), right, *map.tiles().find(right), MapReducer::mass);
    for (size_t row = 0; row < 256; row += 37) {
        double sum = 0;
        for (size_t x = 0; x < 256; ++x) sum += double(a[row * 256 + x]) + double(b[row * 256 + x]);
        EXPECT_NEAR(sum, 1, 1e-4) << row;
    }
    settings.temperature = 2;
    EXPECT_TRUE(map.follow(settings, place));
    EXPECT_FALSE(map.follow(settings, place));
    EXPECT_EQ(map.tiles().find(left), nullptr);
    EXPECT_EQ(map.rows_known(), 0);
}

// Masks and dropout of the settings apply in every tile, sampled or exact, and in the picks.
TEST_P(TilesTest, masks_and_dropout_are_those_of_the_forward) {
    GpuDevice* place = GetParam() ? device.get() : nullptr;
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    Settings hidden = level_settings(2), padding = hidden, strided = hidden, painted = hidden,
             dropout = hidden;
    hidden.hidden_keys = {0, 3, 600, 5000};
    padding.pattern = MaskPattern::padding;
    padding.hidden_keys = {7};
    strided.pattern = MaskPattern::strided;
    painted.pattern = MaskPattern::painted;
    painted.painted = {{1, 1, 1, 0, 1, 1, 1, 0, 1}, 3, 3};  // each cell a third of the queries and keys
    dropout.dropout_p = 0.5, dropout.dropout_random = DropoutRandom::counter;
    dropout.dropout_seed = 77;
    for (const Settings& s : {hidden, padding, strided, painted, dropout}) {
        LongMap map(head_of(*made), s, place, {});
        ASSERT_EQ(map.head().left_out, "");
        map.tiles().set_view(view_of({512, 512, 256, 256}, 256));
        map.finish(true);
        ASSERT_EQ(map.problem(), "");
        ASSERT_EQ(map.on_device(), GetParam()) << map.where();
        const MapTileId id{0, 0, 0, 2, 2, false};
        ASSERT_NE(map.tiles().find(id), nullptr);
        const std::vector<float> values = map_values(map.tiles(), id, *map.tiles().find(id), MapReducer::max);
        std::mt19937 random(9);
        int zero = 0;
        for (int n = 0; n < 24; ++n) {
            const uint64_t row = 512 + random() % 256, key = n == 0 ? 600 : 512 + random() % 256;
            const Result<Derivation> d = map.derive(row, key);
            ASSERT_TRUE(d) << d.error().text;
            const float expected = s.dropout_p > 0 ? d->dropped_weight : d->weight;
            EXPECT_NEAR(values[(row - 512) * 256 + key - 512], expected, 2e-6 * std::max(1.0f, expected));
            const bool seen = key <= row && pattern_shows(s, row, key, kTokens, kTokens) &&
                              !std::binary_search(s.hidden_keys.begin(), s.hidden_keys.end(), uint32_t(key));
            EXPECT_EQ(d->hidden_by.empty(), seen) << row << ", " << key;
            zero += expected == 0;
        }
        EXPECT_GT(zero, 0);
        // A preview's single rows have the sums of the exact tile's blocks of rows.
        LongMap preview(head_of(*made), s, place, {});
        preview.tiles().set_view(view_of({0, 0, kTokens, kTokens}, 256));
        preview.finish(false);
        const MapTileId whole{0, 0, 2, 0, 0, true};
        const MapPixels* sampled = preview.tiles().find(whole);
        ASSERT_NE(sampled, nullptr);
        const std::vector<float> seen = map_values(preview.tiles(), whole, *sampled, MapReducer::max);
        for (uint64_t y = 128; y < 192; ++y)
            for (uint64_t x = 128; x < 192; ++x)
                // Both sums of a row are float32, in another order.
                EXPECT_NEAR(seen[y * 256 + x], values[(4 * y + 2 - 512) * 256 + 4 * x + 2 - 512], 2e-5);
        const Result<std::vector<float>> row = map.row_weights(700);
        ASSERT_TRUE(row) << row.error().text;
        double sum = 0;
        for (const float w : *row) sum += double(w);
        EXPECT_NEAR(sum, 1, 1e-4);
        EXPECT_NEAR((*row)[650], map.derive(700, 650)->weight, 2e-6);
    }
    Settings too_long = painted;
    too_long.painted.cells.assign(8, 1);  // no square: it belongs to no map
    EXPECT_TRUE(pattern_shows(too_long, 5, 5, kTokens, kTokens));
}

TEST_F(MapTest, a_mask_of_cells_is_left_out_where_it_would_be_too_large) {
    LongHead head;
    Attention call;
    call.batch(1).heads(1).lengths(9000, 9000).dims(2).outputs(FOVEA_OUTPUT_LSE);
    head.call = call.desc;
    head.q.assign(18000, 0.5f), head.k = head.q;
    Settings s = level_settings(2);
    s.pattern = MaskPattern::strided;
    s.hidden_keys = {2};
    LongMap map(head, s, nullptr, {});
    EXPECT_NE(map.head().left_out.find("strided"), std::string::npos);
    EXPECT_EQ(map.head().mask.size(), (9000u + 255) / 256 * 256);
    const Result<Derivation> d = map.derive(10, 2);
    ASSERT_TRUE(d);
    EXPECT_FALSE(d->hidden_by.empty());
    EXPECT_NEAR(map.derive(10, 3)->weight, 1.0 / 8999, 1e-9);
}

// The window's frames go on while the device computes, also while the view moves.
TEST_F(MapTest, the_device_works_beside_the_frames) {
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    const LongContext& context = *made;
    Settings settings = level_settings(2);
    settings.windowed = true;
    settings.window_left = 100;
    std::atomic<int> wakes = 0;
    LongMap map(head_of(context), settings, device.get(), [&] { ++wakes; });
    ASSERT_TRUE(map.on_device()) << map.where();
    int frames = 0, moved = 0;
    const auto begin = std::chrono::steady_clock::now();
    const auto patient = [&] { return std::chrono::steady_clock::now() - begin < std::chrono::minutes(10); };
    do {
        const bool moves = wakes < 1;
        map.tiles().set_view(view_of({512, moves ? 0.0 : 256.0, 512, 512}, 256));
        map.advance();  // waits for no tile
        moved += moves;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (++frames > 0 && patient() && map.tiles().progress().quality != MapQuality::exact);
    EXPECT_EQ(map.problem(), "");
    EXPECT_EQ(map.tiles().progress().quality, MapQuality::exact);
    EXPECT_GT(moved, 0);
    EXPECT_GT(frames, 2);
    EXPECT_GT(map.rows_known(), 0);
    EXPECT_EQ(map.where().find(device->name()), 0u) << map.where();
    EXPECT_NE(map.where().find(" ms a slice"), std::string::npos) << map.where();
    map.tiles().set_view(view_of({512, 512, 256, 256}, 256));
    map.finish(true);
    const MapTileId id{0, 0, 0, 2, 2, false};
    ASSERT_NE(map.tiles().find(id), nullptr);
    const std::vector<float> values = map_values(map.tiles(), id, *map.tiles().find(id), MapReducer::max);
    const Result<Derivation> seen = map.derive(700, 650), hidden = map.derive(700, 590);
    ASSERT_TRUE(seen && hidden);
    EXPECT_NEAR(values[(700 - 512) * 256 + 650 - 512], seen->weight, 2e-6);
    EXPECT_EQ(values[(700 - 512) * 256 + 590 - 512], 0);
}

TEST_F(MapTest, a_file_too_large_for_matrices_opens_as_a_map) {
    constexpr uint64_t kLength = 5200, kDim = 4;
    std::mt19937 random(3);
    std::vector<float> q(kLength * kDim);
    for (float& v : q) v = float(random() % 2000) / 1000 - 1;
    TensorSet set;
    set.tensors = {*make_tensor("q", {1, 1, kLength, kDim}, q), *make_tensor("k", {1, 1, kLength, kDim}, q)};
    const std::string path = (folder / "long.safetensors").string();
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    ASSERT_TRUE(bench->map);
    EXPECT_EQ(bench->map.head()->tokens(), kLength);
    EXPECT_EQ(bench->window.centre, CentreTab::map);
    bench->map.place.picked_row = 4000, bench->map.place.picked_key = 17;
    EXPECT_TRUE(bench->map.derivation());
}

// A session comes back where it was looked at: at a part of a matrix, of a synthetic map, of a file's own.
class PlaceTest : public VisualizerTest {
  protected:
    void draw() {
        PictureSize size;
        size.width = 1000, size.height = 700;
        const Result<Tensor> drawn = draw_picture(*bench, size);
        ASSERT_TRUE(drawn) << drawn.error().text;
    }
    // Saves, and opens it in a session that has seen nothing else.
    void come_back() {
        const std::filesystem::path path = folder / "place.fovea";
        ASSERT_TRUE(save_session(*bench, path));
        bench = std::make_unique<Workbench>(*device, false);
        const Result<void> opened = open_session(*bench, path);
        ASSERT_TRUE(opened) << opened.error().text;
        compute();
        EXPECT_TRUE(bench->problems.empty()) << bench->problems.back().text;
        draw();
    }
    void expect_map(uint64_t tokens, const MapPlace& place) {
        ASSERT_TRUE(bench->map);
        EXPECT_EQ(bench->window.centre, CentreTab::map);
        EXPECT_EQ(bench->map.head()->tokens(), tokens);
        EXPECT_NEAR(bench->map.place.row, place.row, 1);
        EXPECT_NEAR(bench->map.place.key, place.key, 1);
        EXPECT_NEAR(bench->map.place.cells_a_pixel, place.cells_a_pixel, 1e-3);
        EXPECT_EQ(bench->map.place.largest, place.largest);
        EXPECT_EQ(bench->map.place.picked_row, uint64_t(place.row));
    }
};

TEST_F(PlaceTest, of_a_matrix) {
    Settings s = level_settings(7);
    s.length = 120;
    bench->document.change(s);
    compute();
    bench->view.picked_row = 100, bench->view.picked_column = 30;
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_I, shift}));
    draw();
    const ViewState before = bench->view;
    ASSERT_GT(before.zoom, 2);
    ASSERT_LT(before.pan_y, -0.5f);
    come_back();
    EXPECT_NEAR(bench->view.zoom, before.zoom, 0.01);
    EXPECT_NEAR(bench->view.pan_x, before.pan_x, 1e-3);
    EXPECT_NEAR(bench->view.pan_y, before.pan_y, 1e-3);
    // The whole is the whole.
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_F, plain}));
    come_back();
    EXPECT_EQ(bench->view.zoom, 0);
    EXPECT_EQ(bench->window.centre, CentreTab::matrix);
}

TEST_F(PlaceTest, of_a_synthetic_map) {
    bench->map.want_preset("4k");
    compute();
    draw();
    bench->map.place.row = 3000, bench->map.place.key = 1000, bench->map.place.cells_a_pixel = 0.25;
    bench->map.place.largest = true;
    draw();
    const MapPlace before = bench->map.place;
    come_back();
    expect_map(4096, before);
    // One that is of no map that there is leaves a line.
    Session session;
    session.zoom = "5000,1,1,1,mass";
    const std::filesystem::path& here = folder;
    ASSERT_TRUE(read_session(*bench, write_session(session), here));
    ASSERT_FALSE(bench->problems.empty());
    EXPECT_NE(bench->problems.back().text.find("5,000"), std::string::npos) << bench->problems.back().text;
}

TEST_F(PlaceTest, of_a_file) {
    constexpr uint64_t kLength = 5200, kDim = 4;
    std::mt19937 random(3);
    std::vector<float> q(kLength * kDim);
    for (float& v : q) v = float(random() % 2000) / 1000 - 1;
    TensorSet set;
    set.tensors = {*make_tensor("q", {1, 1, kLength, kDim}, q), *make_tensor("k", {1, 1, kLength, kDim}, q)};
    const std::string path = (folder / "own.safetensors").string();
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    draw();
    bench->map.place.row = 4000, bench->map.place.key = 1000, bench->map.place.cells_a_pixel = 0.02;
    draw();
    const MapPlace before = bench->map.place;
    const std::filesystem::path kept = folder / "place.fovea";
    ASSERT_TRUE(save_session(*bench, kept));
    bench = std::make_unique<Workbench>(*device, false);
    ASSERT_TRUE(open_session(*bench, kept));
    compute();
    draw();
    expect_map(kLength, before);
}

// From anywhere the largest weight of the row is one key away, then the next below it, down to their digits.
TEST_F(PlaceTest, jumps_go_down_the_peaks_of_a_row) {
    Settings s = level_settings(7);
    s.length = 60;
    bench->document.change(s);
    compute();
    show("weights");
    bench->view.picked_row = 40, bench->view.picked_column = 3, bench->view.head = 2;
    const Stage& weights = bench->stage();
    const std::span<const float> row = weights.head_values(2).subspan(40 * weights.columns, 41);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_M, shift}));
    float last = row[size_t(bench->view.picked_column)];
    EXPECT_EQ(last, *std::max_element(row.begin(), row.end()));
    std::set<int> seen{bench->view.picked_column};
    for (int i = 1; i < 41; ++i) {
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_P, shift}));
        const float now = row[size_t(bench->view.picked_column)];
        EXPECT_LE(now, last);
        last = now;
        EXPECT_TRUE(seen.insert(bench->view.picked_column).second);
    }
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_P, shift}));  // after the last one the first again
    EXPECT_EQ(row[size_t(bench->view.picked_column)], *std::max_element(row.begin(), row.end()));
    EXPECT_TRUE(bench->view.pinned);

    bench->map.want_preset("4k");
    compute();
    draw();
    MapPlace& place = bench->map.place;
    place.picked_row = 3000, place.picked_key = 2000;
    ASSERT_TRUE(bench->map.pick());
    const std::vector<std::pair<uint64_t, float>> largest = bench->map.pick()->largest;
    ASSERT_GT(largest.size(), 3u);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_M, shift}));
    EXPECT_EQ(place.picked_key, largest[0].first);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_I, shift}));
    draw();
    EXPECT_LE(place.cells_a_pixel, 1.0 / 46);  // cells with digits
    for (size_t i = 1; i < 3; ++i) {
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_P, shift}));
        EXPECT_EQ(place.picked_key, largest[i].first);
        draw();
        // The view has gone there.
        const MapRect& seen_cells = bench->map.head()->tiles().view().rect;
        EXPECT_GE(double(place.picked_key), seen_cells.first_key);
        EXPECT_LT(double(place.picked_key), seen_cells.first_key + seen_cells.keys);
    }
}

}  // namespace
}  // namespace fovea::visualizer
