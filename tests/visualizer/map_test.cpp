// The map of a long head: numbers against double precision, exact tiles against each other, settings
// followed.
#include "model/long_map.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

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

// Tiles by the device's kernels and by the processor's.
class TilesTest : public VisualizerTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Tiles, TilesTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "Device" : "Processor"; });

constexpr uint32_t kTokens = 1024;

LongHead head_of(const LongContext& c) { return {"1k", c.call, c.q, c.k, true}; }

MapView view_of(MapRect rect, uint32_t side) {
    MapView view;
    view.rect = rect;
    view.width = view.height = side;
    return view;
}

TEST_P(TilesTest, tiles_and_picks_hold_the_weights) {
    GpuDevice* place = GetParam() ? device.get() : nullptr;
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    const LongContext& context = *made;
    Settings settings = level_settings(2);
    LongMap map(head_of(context), settings, place, {});
    map.tiles().set_view(view_of({512, 256, 256, 512}, 256));
    ASSERT_TRUE(map.finish(true));
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
    ASSERT_TRUE(map.finish(true));
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

// The device's tiles come in shares of frames, also while the view moves.
TEST_F(MapTest, the_device_works_a_share_of_each_frame) {
    const Result<LongContext> made = long_context(kTokens);
    ASSERT_TRUE(made);
    const LongContext& context = *made;
    Settings settings = level_settings(2);
    settings.windowed = true;
    settings.window_left = 100;
    LongMap map(head_of(context), settings, device.get(), {});
    ASSERT_TRUE(map.on_device()) << map.where();
    int frames = 0;
    // Frames go on without tiles while the driver compiles.
    const auto begin = std::chrono::steady_clock::now();
    const auto patient = [&] { return std::chrono::steady_clock::now() - begin < std::chrono::minutes(2); };
    do {
        const double key = frames < 6 ? 0 : 256;
        map.tiles().set_view(view_of({512, key, 512, 512}, 256));
        Result<bool> more = false;
        ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { more = map.advance(cmd, 2); }));
        ASSERT_TRUE(more) << more.error().text;
    } while (++frames > 0 && patient() && map.tiles().progress().quality != MapQuality::exact);
    EXPECT_EQ(map.problem(), "");
    EXPECT_EQ(map.tiles().progress().quality, MapQuality::exact);
    if (device->facts().device_class == FOVEA_CLASS_CPU) {
        EXPECT_GT(frames, 8);
    }
    EXPECT_EQ(map.where().find(device->name()), 0u) << map.where();
    map.tiles().set_view(view_of({512, 512, 256, 256}, 256));
    ASSERT_TRUE(map.finish(true));
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
    ASSERT_TRUE(session->open_file(path));
    compute();
    ASSERT_NE(session->map, nullptr);
    EXPECT_EQ(session->map->tokens(), kLength);
    EXPECT_EQ(session->ui.centre, CentreTab::map);
    session->ui.map.picked_row = 4000, session->ui.map.picked_key = 17;
    EXPECT_TRUE(session->map_derivation());
}

}  // namespace
}  // namespace fovea::visualizer
