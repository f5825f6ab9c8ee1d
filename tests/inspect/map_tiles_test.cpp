// The tile scheduler as a pure function of views and results.
#include <fovea/inspect/map_tiles.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace fovea {
namespace {

constexpr uint64_t kTileBytes = uint64_t{kMapTileSide} * kMapTileSide * 12;

MapPixels pixels_of(uint64_t mass, float max) {
    constexpr size_t count = size_t{kMapTileSide} * kMapTileSide;
    return {std::vector<uint64_t>(count, mass), std::vector<float>(count, max)};
}

MapView whole(double side, uint32_t pixels) {
    MapView view;
    view.rect = {0, 0, side, side};
    view.width = view.height = pixels;
    return view;
}

// Runs everything the view asks for; the names in order.
std::vector<MapTileId> run_all(MapTiles& tiles) {
    std::vector<MapTileId> ran;
    while (const auto id = tiles.next()) {
        ran.push_back(*id);
        tiles.store(*id, pixels_of(1, 0.5f));
    }
    return ran;
}

TEST(MapTiles, pyramid_covers_the_matrix) {
    EXPECT_EQ(MapTiles({256, 256}).highest_level(), 0u);
    EXPECT_EQ(MapTiles({257, 3}).highest_level(), 1u);
    EXPECT_EQ(MapTiles({131072, 131072}).highest_level(), 9u);
    const MapTiles tiles({131072, 131072});
    EXPECT_EQ(tiles.level_of(whole(131072, 256)), 9u);
    EXPECT_EQ(tiles.level_of(whole(131072, 1024)), 7u);
    EXPECT_EQ(tiles.level_of(whole(131072, 1000)), 7u);
    EXPECT_EQ(tiles.level_of(whole(100, 1000)), 0u);
    EXPECT_EQ(tiles.level_of(MapView{}), 9u);
}

TEST(MapTiles, previews_come_first_from_the_centre_out) {
    MapTiles tiles({131072, 131072});
    tiles.set_view(whole(131072, 1024));
    const std::vector<MapTileId> ran = run_all(tiles);
    ASSERT_EQ(ran.size(), 32u);
    std::set<MapTileId> seen(ran.begin(), ran.end());
    EXPECT_EQ(seen.size(), 32u) << "a tile was named twice";
    double last = 0;
    for (size_t n = 0; n < 32; ++n) {
        EXPECT_EQ(ran[n].sampled, n < 16);
        const double distance = std::hypot(ran[n].y - 1.5, ran[n].x - 1.5);
        if (n == 16) last = 0;
        EXPECT_GE(distance, last - 1e-9);
        last = distance;
    }
    EXPECT_EQ(tiles.progress().quality, MapQuality::exact);
    EXPECT_EQ(tiles.progress().cached_bytes, 16 * kTileBytes) << "previews are kept beside exact tiles";
    EXPECT_FALSE(tiles.next());
}

TEST(MapTiles, single_cells_need_no_preview) {
    MapTiles tiles({5000, 5000});
    MapView view = whole(256, 256);
    view.rect.first_row = view.rect.first_key = 1024;
    tiles.set_view(view);
    const auto id = tiles.next();
    ASSERT_TRUE(id);
    EXPECT_EQ(*id, (MapTileId{0, 0, 0, 4, 4, false}));
    EXPECT_FALSE(tiles.next()) << "the only tile is running";
    EXPECT_EQ(tiles.progress().quality, MapQuality::empty);
    tiles.give_back(*id);
    EXPECT_EQ(tiles.next(), id);
    tiles.store(*id, pixels_of(1, 1));
    EXPECT_EQ(tiles.progress().quality, MapQuality::exact);
}

TEST(MapTiles, quality_goes_from_empty_to_sampled_to_exact) {
    MapTiles tiles({1024, 1024});
    tiles.set_view(whole(1024, 256));
    EXPECT_EQ(tiles.progress().quality, MapQuality::empty);
    MapTileId id = *tiles.next();
    EXPECT_TRUE(id.sampled);
    tiles.store(id, pixels_of(1, 1));
    EXPECT_EQ(tiles.progress().quality, MapQuality::sampled);
    std::vector<MapPiece> pieces = tiles.pieces();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_FALSE(pieces[0].exact);
    EXPECT_EQ(pieces[0].target.rows, 1024);
    EXPECT_EQ(pieces[0].source_width, 256);
    id = *tiles.next();
    EXPECT_FALSE(id.sampled);
    tiles.store(id, pixels_of(2, 1));
    EXPECT_EQ(tiles.progress().quality, MapQuality::exact);
    pieces = tiles.pieces();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_TRUE(pieces[0].exact);
    EXPECT_EQ(pieces[0].pixels->mass[0], 2u);
}

TEST(MapTiles, a_closer_view_shows_its_part_of_the_tile_above) {
    MapTiles tiles({1024, 1024});
    tiles.set_view(whole(1024, 256));
    run_all(tiles);
    MapView view = whole(200, 200);
    view.rect.first_row = 600, view.rect.first_key = 300;
    tiles.set_view(view);
    EXPECT_EQ(tiles.progress().quality, MapQuality::sampled);
    const std::vector<MapPiece> pieces = tiles.pieces();
    ASSERT_EQ(pieces.size(), 2u * 1);  // tiles (2, 1) and (3, 1) of level 0
    for (const MapPiece& piece : pieces) {
        EXPECT_FALSE(piece.exact);
        EXPECT_EQ(piece.id.level, 2u);
        EXPECT_EQ(piece.target.rows, 256);
        EXPECT_EQ(piece.source_height, 64);
        EXPECT_EQ(piece.source_y, piece.target.first_row / 4);
        EXPECT_EQ(piece.source_x, 64);
    }
}

TEST(MapTiles, four_exact_tiles_make_the_one_above) {
    MapTiles tiles({1000, 500});  // level 1 has 2 x 1 tiles; level 0 has 4 x 2
    MapView view;
    view.rect = {0, 0, 1000, 500};
    view.width = 500, view.height = 1000;
    tiles.set_view(view);
    EXPECT_EQ(run_all(tiles).size(), 8u);
    view.width = 250, view.height = 500;  // level 1
    tiles.set_view(view);
    EXPECT_FALSE(tiles.next()) << "its cells are all known";
    const MapPixels* built = tiles.find({0, 0, 1, 1, 0, false});
    ASSERT_TRUE(built);
    EXPECT_EQ(built->mass[0], 4u);
    EXPECT_EQ(built->mass.back(), 4u);
    EXPECT_EQ(built->max[0], 0.5f);
    view.width = view.height = 64;  // level 2: half of it is beyond the last key
    tiles.set_view(view);
    EXPECT_EQ(tiles.progress().level, 2u);
    EXPECT_FALSE(tiles.next());
    built = tiles.find({0, 0, 2, 0, 0, false});
    ASSERT_TRUE(built);
    EXPECT_EQ(built->mass[0], 16u);
    EXPECT_EQ(built->mass[255], 0u);
}

TEST(MapTiles, what_is_invalid_stays_so_above) {
    MapTiles tiles({512, 512});
    tiles.set_view(whole(512, 512));
    while (const auto id = tiles.next()) {
        MapPixels pixels = pixels_of(3, 0.25f);
        if (id->y == 0 && id->x == 1) pixels.mass[1] = FOVEA_TILE_INVALID, pixels.max[1] = NAN;
        tiles.store(*id, std::move(pixels));
    }
    tiles.set_view(whole(512, 256));
    EXPECT_FALSE(tiles.next());
    const MapPixels* built = tiles.find({0, 0, 1, 0, 0, false});
    ASSERT_TRUE(built);
    EXPECT_EQ(built->mass[128], FOVEA_TILE_INVALID);
    EXPECT_TRUE(std::isnan(built->max[128]));
    EXPECT_EQ(built->mass[129], 12u);
    EXPECT_TRUE(std::isnan(map_values(tiles, {0, 0, 1, 0, 0, false}, *built, MapReducer::mass)[128]));
}

TEST(MapTiles, cache_stays_within_its_limit_but_for_the_view) {
    MapTiles tiles({4096, 4096}, 6 * kTileBytes);
    for (int step = 0; step < 8; ++step) {
        MapView view = whole(512, 512);
        view.rect.first_row = 512.0 * step;
        tiles.set_view(view);
        run_all(tiles);
        EXPECT_EQ(tiles.progress().exact, 4u);
        EXPECT_LE(tiles.progress().cached_bytes, 6 * kTileBytes);
    }
    EXPECT_TRUE(tiles.find({0, 0, 0, 14, 0, false}));
    EXPECT_FALSE(tiles.find({0, 0, 0, 0, 0, false})) << "the oldest goes first";
    tiles.set_view(whole(1024, 1024));  // 16 tiles
    run_all(tiles);
    EXPECT_EQ(tiles.progress().exact, 16u);
    EXPECT_EQ(tiles.progress().cached_bytes, 16 * kTileBytes);
    tiles.clear();
    EXPECT_EQ(tiles.progress().cached_bytes, 0u);
    EXPECT_EQ(tiles.progress().quality, MapQuality::empty);
}

TEST(MapTiles, tiles_of_an_old_view_are_unwanted_but_kept) {
    MapTiles tiles({4096, 4096});
    tiles.set_view(whole(256, 256));
    const MapTileId id = *tiles.next();
    EXPECT_TRUE(tiles.wanted(id));
    MapView view = whole(256, 256);
    view.rect.first_key = 2048;
    tiles.set_view(view);
    EXPECT_FALSE(tiles.wanted(id));
    tiles.store(id, pixels_of(1, 1));
    EXPECT_TRUE(tiles.find(id));
    tiles.store({0, 0, 0, 3, 3, false}, pixels_of(1, 1));
    EXPECT_FALSE(tiles.find({0, 0, 0, 3, 3, false})) << "nobody asked for it";
    const MapTileId other = *tiles.next();
    tiles.clear();
    tiles.store(other, pixels_of(1, 1));
    EXPECT_FALSE(tiles.find(other)) << "of the call before";
}

TEST(MapTiles, heads_do_not_mix) {
    MapTiles tiles({256, 256});
    MapView view = whole(256, 256);
    tiles.set_view(view);
    run_all(tiles);
    view.head = 1;
    tiles.set_view(view);
    EXPECT_EQ(tiles.progress().quality, MapQuality::empty);
    EXPECT_EQ(tiles.next()->head, 1u);
}

TEST(MapTiles, a_view_beyond_the_matrix_needs_nothing) {
    MapTiles tiles({100, 100});
    MapView view = whole(50, 50);
    view.rect.first_row = 200;
    tiles.set_view(view);
    EXPECT_FALSE(tiles.next());
    EXPECT_EQ(tiles.progress().needed, 0u);
    view.rect.first_row = -20;
    tiles.set_view(view);
    EXPECT_EQ(tiles.progress().needed, 1u);
}

TEST(MapTiles, descriptions_are_those_of_the_engine) {
    MapTiles tiles({100000, 70000});
    const FoveaMapTileDesc tile = tiles.description({2, 7, 3, 5, 4, true});
    EXPECT_EQ(tile.struct_size, sizeof tile);
    EXPECT_EQ(tile.batch, 2u);
    EXPECT_EQ(tile.first_head, 7u);
    EXPECT_EQ(tile.head_count, 1u);
    EXPECT_EQ(tile.first_row, 5u * 2048);
    EXPECT_EQ(tile.row_count, 2048u);
    EXPECT_EQ(tile.first_key, 4u * 2048);
    EXPECT_EQ(tile.width, kMapTileSide);
    EXPECT_EQ(tile.sampled, 1u);
}

// One row gives 1 in all: a pixel's number is the mean over the rows that are there.
TEST(MapTiles, values_are_means_over_rows) {
    FoveaMapTileDesc tile{};
    tile.row_count = 8, tile.key_count = 4, tile.height = 2, tile.width = 1;
    const uint64_t one = uint64_t{1} << 40;
    const uint64_t mass[] = {4 * one, 2 * one};
    std::vector<float> values = map_values(tile, 100, mass);
    EXPECT_EQ(values, (std::vector<float>{1.0f, 0.5f}));
    values = map_values(tile, 6, mass);  // the second pixel has only rows 4 and 5
    EXPECT_EQ(values, (std::vector<float>{1.0f, 1.0f}));
}

}  // namespace
}  // namespace fovea
