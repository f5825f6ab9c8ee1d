// Deep zoom into the weights of one head: which tiles a view needs, in what order, what to show until they
// are there, and which of the old ones to keep. Pure bookkeeping: the caller runs what next() names with
// foveaPlanMapTile and hands the pixels back. Not thread-safe; one object for one attention call.
//
//   MapTiles tiles({rows, keys});
//   tiles.set_view(view);
//   while (auto id = tiles.next())                       // this frame's budget allowing
//       tiles.store(*id, run(tiles.description(*id)));   // or give_back(*id)
//   for (const MapPiece& piece : tiles.pieces()) draw(piece);
//
// The map is a pyramid: a tile of level n has kMapTileSide x kMapTileSide pixels of 2^n x 2^n cells each, and
// is aligned to a grid from row 0 and key 0. Level 0 is one pixel for each weight; the highest level is one
// tile.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

inline constexpr uint32_t kMapTileSide = 256;  // pixels

struct MapExtent {                // The size of the matrix.
    uint64_t rows = 0, keys = 0;  // Lq and Lkv, each at most 2^30
};

// A rectangle of cells, in fractions of a cell. It may extend beyond the matrix.
struct MapRect {
    double first_row = 0, first_key = 0, rows = 0, keys = 0;
};

struct MapView {  // The visible part of the map.
    uint32_t batch = 0, head = 0;
    MapRect rect;
    uint32_t width = 0, height = 0;  // screen pixels
};

struct MapTileId {  // which tile
    uint32_t batch = 0, head = 0;
    uint32_t level = 0;
    uint32_t y = 0, x = 0;  // in tiles of the level
    bool sampled = false;
    friend auto operator<=>(const MapTileId&, const MapTileId&) = default;
};

// kMapTileSide x kMapTileSide, rows of pixels from the top, as bindings TILE_MASS and TILE_MAX give them.
struct MapPixels {
    std::vector<uint64_t> mass;
    std::vector<float> max;
};

// A picture to draw: the part `source` of the pixels of `id` goes to `target` on the map. Later pieces cover
// earlier ones.
struct MapPiece {
    MapTileId id;
    const MapPixels* pixels;                                 // until the next call that is not const
    MapRect target;                                          // cells
    double source_x, source_y, source_width, source_height;  // pixels of the tile
    bool exact;  // at the level that the view asks for, with every cell counted
};

enum class MapQuality {  // How complete a view is.
    empty,               // some part of the view has nothing to show
    sampled,             // every part has something, but somewhere it is a preview, or coarser than the view
    exact
};

struct MapProgress {  // how far a view is
    MapQuality quality = MapQuality::empty;
    uint32_t level = 0;
    uint32_t needed = 0, exact = 0;  // tiles of the view
    uint32_t running = 0;            // handed out by next() and not back yet
    uint64_t cached_bytes = 0;
};

class MapTiles {  // tiles of one call, and what to compute next
  public:
    static constexpr uint64_t kDefaultBytes = uint64_t{192} << 20;

    // The cache keeps at most `byte_limit` bytes of pixels, or more if the current view needs more.
    explicit MapTiles(MapExtent extent, uint64_t byte_limit = kDefaultBytes);

    MapTiles(MapTiles&&) = default;
    MapTiles& operator=(MapTiles&&) = default;

    const MapExtent& extent() const { return extent_; }
    uint32_t highest_level() const { return highest_level_; }
    // Returns the coarsest level whose pixels are not larger than the view's.
    uint32_t level_of(const MapView& view) const;

    void set_view(const MapView& view);
    const MapView& view() const { return view_; }

    // Returns the next tile to compute for the view, or nothing: previews first, from the center out, then
    // exact tiles in the same order. The tile counts as running until store() or give_back().
    std::optional<MapTileId> next();
    // True if the view still wants a running tile. If not, its remaining slices may be skipped.
    bool wanted(const MapTileId& id) const;
    // Takes the result; one of another size than kMapTileSide squared counts as given back.
    void store(const MapTileId& id, MapPixels pixels);
    void give_back(const MapTileId& id);
    // Forgets every tile: another call, another q, k or lse. Running tiles are forgotten too.
    void clear();

    // The description for foveaPlanMapTile, with both outputs.
    FoveaMapTileDesc description(const MapTileId& id) const;
    // The cells of a tile, those beyond the matrix included.
    MapRect cells_of(const MapTileId& id) const;

    // Returns the pieces to draw for the view, in this order.
    std::vector<MapPiece> pieces();
    MapProgress progress() const;

    // The pixels of a tile, if they are there.
    const MapPixels* find(const MapTileId& id) const;

  private:
    struct Entry {
        MapPixels pixels;
        std::list<MapTileId>::iterator age;  // in ages_, the oldest first
    };

    void touch(Entry& entry, const MapTileId& id);
    void insert(const MapTileId& id, MapPixels pixels);
    void erase(const MapTileId& id);
    void evict();
    bool needed(const MapTileId& id) const;
    bool beyond(const MapTileId& id) const;
    bool build_from_children(const MapTileId& id);
    void add_fallback(const MapTileId& id, std::vector<MapPiece>& out);
    void add_finer(const MapTileId& id, std::vector<MapPiece>& out);
    MapPiece piece_of(const MapTileId& id, const MapTileId& target) const;

    MapExtent extent_;
    uint64_t byte_limit_, bytes_ = 0;
    uint32_t highest_level_ = 0;
    MapView view_;
    std::vector<MapTileId> order_;  // exact tiles of the view, from its centre out
    std::map<MapTileId, Entry> cache_;
    std::list<MapTileId> ages_;
    std::vector<MapTileId> running_;
};

enum class MapReducer {  // The value that a pixel shows.
    mass,  // for one row: what the row gives to the pixel's keys; the mean over the pixel's rows
    max    // the largest weight
};

// Returns the value that each pixel's color represents; NaN if the tile has FOVEA_TILE_INVALID. Pixels that
// reach past the last row count only the rows that exist.
std::vector<float> map_values(const MapTiles& tiles, const MapTileId& id, const MapPixels& pixels,
                              MapReducer reducer);
// The same for any rectangle of height x width pixels.
std::vector<float> map_values(const FoveaMapTileDesc& tile, uint64_t len_q, std::span<const uint64_t> mass);

}  // namespace fovea
