// The map of a long head: numbers against double precision, exact tiles against each other, settings
// followed.
#include "model/long_map.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/files.hpp>

#include <algorithm>
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

TEST_F(MapTest, tiles_and_picks_hold_the_weights) {
    Result<LongContext> context = long_context("4k");
    Result<LongHead> head = long_preset("4k");
    ASSERT_TRUE(context && head);
    Settings settings = level_settings(2);
    LongMap map(std::move(*head), settings, {});
    MapView view;
    view.rect = {1024, 1024, 256, 256};
    view.width = view.height = 256;
    map.tiles().set_view(view);
    map.finish(true);
    ASSERT_EQ(map.problem(), "");
    ASSERT_EQ(map.tiles().progress().quality, MapQuality::exact);
    const MapTileId id{0, 0, 0, 4, 4, false};
    const MapPixels* pixels = map.tiles().find(id);
    ASSERT_NE(pixels, nullptr);
    const std::vector<float> values = map_values(map.tiles(), id, *pixels, MapReducer::mass);
    std::mt19937 random(5);
    for (int n = 0; n < 20; ++n) {
        const uint64_t row = 1024 + random() % 256, key = 1024 + random() % 256;
        const double expected = key <= row ? weight(*context, row, key) : 0;
        EXPECT_NEAR(values[(row - 1024) * 256 + key - 1024], expected, 2e-6) << row << ", " << key;
        const Result<Derivation> derived = map.derive(row, key);
        ASSERT_TRUE(derived) << derived.error().text;
        EXPECT_NEAR(derived->weight, expected, 2e-6 * std::max(1.0, expected));
    }
    // The overview's pixels, exact: each row of pixels sums to 1.
    view.rect = {0, 0, 4096, 4096};
    view.width = view.height = 512;
    map.tiles().set_view(view);
    map.finish(true);
    const MapTileId left{0, 0, 3, 1, 0, false}, right{0, 0, 3, 1, 1, false};
    ASSERT_NE(map.tiles().find(left), nullptr);
    const std::vector<float> a = map_values(map.tiles(), left, *map.tiles().find(left), MapReducer::mass),
                             b = map_values(map.tiles(), right, *map.tiles().find(right), MapReducer::mass);
    for (size_t row = 0; row < 256; row += 37) {
        double sum = 0;
        for (size_t x = 0; x < 256; ++x) sum += double(a[row * 256 + x]) + double(b[row * 256 + x]);
        EXPECT_NEAR(sum, 1, 1e-4) << row;
    }
    settings.temperature = 2;
    EXPECT_TRUE(map.follow(settings));
    EXPECT_FALSE(map.follow(settings));
    EXPECT_EQ(map.tiles().find(left), nullptr);
    EXPECT_EQ(map.rows_known(), 0);
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
