// The scheduler and the engine together: what the scheduler adds up from finer tiles is what the engine
// computes, and the planted context's rows add up to 1.
#include <fovea/inspect/long_context.hpp>
#include <fovea/inspect/map_tiles.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace fovea {
namespace {

constexpr uint32_t kTokens = 700;  // three tiles of cells along either side, the last in part

void run(const Plan& plan, FoveaHostBuffer (&bindings)[FOVEA_BIND_COUNT]) {
    std::vector<uint64_t> workspace(plan.info().workspace_bytes / 8 + 8);
    void* memory = workspace.data();
    size_t room = workspace.size() * 8;
    FoveaCpuRun call{};
    call.struct_size = sizeof call;
    call.binding_count = FOVEA_BIND_COUNT;
    call.bindings = bindings;
    call.workspace = {std::align(64, plan.info().workspace_bytes, memory, room), plan.info().workspace_bytes};
    const Result<void> done = plan.run_cpu(call);
    ASSERT_TRUE(done) << done.error().text;
}

class Head {
  public:
    Head() : context_(*long_context(kTokens)), lse_(kTokens) {
        bind(FOVEA_BIND_Q, context_.q);
        bind(FOVEA_BIND_K, context_.k);
        bind(FOVEA_BIND_V, context_.k);
        bind(FOVEA_BIND_LSE, lse_);
        const Result<Plan> plan = plan_cpu(context_.call);
        EXPECT_TRUE(plan);
        run(*plan, bindings_);
    }
    MapPixels tile(const FoveaMapTileDesc& desc) {
        MapPixels pixels{std::vector<uint64_t>(256 * 256), std::vector<float>(256 * 256)};
        bind(FOVEA_BIND_TILE_MASS, pixels.mass);
        bind(FOVEA_BIND_TILE_MAX, pixels.max);
        const Result<FoveaDeviceProperties> properties = cpu_properties();
        const Result<Plan> plan = plan_map_tile(*properties, context_.call, desc);
        EXPECT_TRUE(plan);
        run(*plan, bindings_);
        return pixels;
    }

  private:
    template <class T>
    void bind(FoveaBinding binding, std::vector<T>& values) {
        bindings_[binding] = {values.data(), values.size() * sizeof(T)};
    }
    LongContext context_;
    std::vector<float> lse_;
    FoveaHostBuffer bindings_[FOVEA_BIND_COUNT] = {};
};

MapView whole(uint32_t pixels) {
    MapView view;
    view.rect = {0, 0, kTokens, kTokens};
    view.width = view.height = pixels;
    return view;
}

TEST(MapEngine, tiles_built_from_finer_ones_are_the_engines) {
    Head head;
    MapTiles tiles({kTokens, kTokens});
    ASSERT_EQ(tiles.highest_level(), 2u);
    tiles.set_view(whole(kTokens));
    int run_tiles = 0;
    while (const auto id = tiles.next()) {
        EXPECT_FALSE(id->sampled);
        tiles.store(*id, head.tile(tiles.description(*id)));
        ++run_tiles;
    }
    EXPECT_EQ(run_tiles, 9);
    for (const uint32_t pixels : {kTokens / 2, kTokens / 4}) {
        tiles.set_view(whole(pixels));
        EXPECT_FALSE(tiles.next()) << "all cells are known";
        ASSERT_EQ(tiles.progress().quality, MapQuality::exact);
        for (const MapPiece& piece : tiles.pieces()) {
            const MapPixels own = head.tile(tiles.description(piece.id));
            EXPECT_TRUE(own.mass == piece.pixels->mass) << "level " << piece.id.level;
            EXPECT_TRUE(own.max == piece.pixels->max) << "level " << piece.id.level;
        }
    }
}

TEST(MapEngine, rows_add_up_to_one) {
    Head head;
    MapTiles tiles({kTokens, kTokens});
    tiles.set_view(whole(kTokens / 4));
    const MapTileId top{0, 0, 2, 0, 0, false};
    const MapPixels pixels = head.tile(tiles.description(top));
    const std::vector<float> values = map_values(tiles, top, pixels, MapReducer::mass);
    for (size_t y = 0; y < 256; ++y) {
        double sum = 0;
        for (size_t x = 0; x < 256; ++x) sum += values[y * 256 + x];
        EXPECT_NEAR(sum, y < kTokens / 4 ? 1.0 : 0.0, 1e-5) << "pixel row " << y;
    }
}

}  // namespace
}  // namespace fovea
