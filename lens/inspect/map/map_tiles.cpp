#include <fovea/inspect/map_tiles.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fovea {
namespace {

constexpr uint64_t kPixels = uint64_t{kMapTileSide} * kMapTileSide;
constexpr uint64_t kTileBytes = kPixels * (sizeof(uint64_t) + sizeof(float));

uint64_t side_of(uint32_t level) { return uint64_t{kMapTileSide} << level; }

uint64_t add_mass(uint64_t a, uint64_t b) {
    constexpr uint64_t limit = uint64_t{1} << 63;
    return a >= limit || b >= limit || a + b >= limit ? FOVEA_TILE_INVALID : a + b;
}

struct TileRange {
    uint32_t begin, end;
};

// Tiles of `side` cells that [first, first + count) touches, within `length` cells.
TileRange tiles_over(double first, double count, uint64_t length, uint64_t side) {
    const double low = std::clamp(first, 0.0, double(length)),
                 high = std::clamp(first + count, 0.0, double(length));
    if (!(low < high)) return {0, 0};
    return {uint32_t(low / double(side)), uint32_t(std::ceil(high / double(side)))};
}

}  // namespace

MapTiles::MapTiles(MapExtent extent, uint64_t byte_limit) : extent_(extent), byte_limit_(byte_limit) {
    while (side_of(highest_level_) < std::max(extent.rows, extent.keys)) ++highest_level_;
}

uint32_t MapTiles::level_of(const MapView& view) const {
    if (view.width == 0 || view.height == 0) return highest_level_;
    const double cells = std::min(view.rect.rows / view.height, view.rect.keys / view.width);
    uint32_t level = 0;
    while (level < highest_level_ && std::ldexp(1.0, int(level) + 1) <= cells) ++level;
    return level;
}

void MapTiles::set_view(const MapView& view) {
    view_ = view;
    order_.clear();
    const uint32_t level = level_of(view);
    const uint64_t side = side_of(level);
    const MapRect& r = view.rect;
    const TileRange ys = tiles_over(r.first_row, r.rows, extent_.rows, side),
                    xs = tiles_over(r.first_key, r.keys, extent_.keys, side);
    for (uint32_t y = ys.begin; y < ys.end; ++y)
        for (uint32_t x = xs.begin; x < xs.end; ++x)
            order_.push_back({view.batch, view.head, level, y, x, false});
    const double centre_y = (r.first_row + r.rows / 2) / double(side) - 0.5,
                 centre_x = (r.first_key + r.keys / 2) / double(side) - 0.5;
    const auto distance = [&](const MapTileId& id) {
        const double dy = id.y - centre_y, dx = id.x - centre_x;
        return dy * dy + dx * dx;
    };
    std::stable_sort(order_.begin(), order_.end(),
                     [&](const MapTileId& a, const MapTileId& b) { return distance(a) < distance(b); });
    evict();
}

std::optional<MapTileId> MapTiles::next() {
    const auto is_running = [&](const MapTileId& id) {
        return std::find(running_.begin(), running_.end(), id) != running_.end();
    };
    // One pixel for each cell costs the same sampled or not.
    for (MapTileId id : order_) {
        if (id.level == 0 || cache_.count(id) || build_from_children(id)) continue;
        id.sampled = true;
        if (cache_.count(id) || is_running(id)) continue;
        running_.push_back(id);
        return id;
    }
    for (const MapTileId& id : order_) {
        if (cache_.count(id) || is_running(id) || build_from_children(id)) continue;
        running_.push_back(id);
        return id;
    }
    return std::nullopt;
}

bool MapTiles::needed(const MapTileId& id) const {
    MapTileId exact = id;
    exact.sampled = false;
    if (std::find(order_.begin(), order_.end(), exact) == order_.end()) return false;
    return !id.sampled || !cache_.count(exact);
}

bool MapTiles::wanted(const MapTileId& id) const { return needed(id) && !cache_.count(id); }

void MapTiles::store(const MapTileId& id, MapPixels pixels) {
    const bool was_running = std::find(running_.begin(), running_.end(), id) != running_.end();
    give_back(id);
    if (!was_running || pixels.mass.size() != kPixels || pixels.max.size() != kPixels) return;
    insert(id, std::move(pixels));
    evict();
}

void MapTiles::give_back(const MapTileId& id) {
    running_.erase(std::remove(running_.begin(), running_.end(), id), running_.end());
}

void MapTiles::clear() {
    cache_.clear();
    ages_.clear();
    running_.clear();
    bytes_ = 0;
}

void MapTiles::touch(Entry& entry, const MapTileId& id) {
    ages_.erase(entry.age);
    entry.age = ages_.insert(ages_.end(), id);
}

void MapTiles::insert(const MapTileId& id, MapPixels pixels) {
    erase(id);
    Entry entry{std::move(pixels), ages_.insert(ages_.end(), id)};
    cache_.emplace(id, std::move(entry));
    bytes_ += kTileBytes;
    if (id.sampled) return;
    MapTileId preview = id;  // it has served
    preview.sampled = true;
    erase(preview);
}

void MapTiles::erase(const MapTileId& id) {
    const auto found = cache_.find(id);
    if (found == cache_.end()) return;
    ages_.erase(found->second.age);
    cache_.erase(found);
    bytes_ -= kTileBytes;
}

void MapTiles::evict() {
    for (auto age = ages_.begin(); age != ages_.end() && bytes_ > byte_limit_;) {
        const MapTileId id = *age++;
        if (!needed(id)) erase(id);
    }
}

FoveaMapTileDesc MapTiles::description(const MapTileId& id) const {
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.batch = id.batch;
    tile.first_head = id.head;
    tile.head_count = 1;
    tile.row_count = tile.key_count = side_of(id.level);
    tile.first_row = id.y * tile.row_count;
    tile.first_key = id.x * tile.key_count;
    tile.width = tile.height = kMapTileSide;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    tile.sampled = id.sampled ? 1 : 0;
    return tile;
}

MapRect MapTiles::cells_of(const MapTileId& id) const {
    const double side = double(side_of(id.level));
    return {id.y * side, id.x * side, side, side};
}

bool MapTiles::beyond(const MapTileId& id) const {
    const MapRect cells = cells_of(id);
    return cells.first_row >= double(extent_.rows) || cells.first_key >= double(extent_.keys);
}

const MapPixels* MapTiles::find(const MapTileId& id) const {
    const auto found = cache_.find(id);
    return found == cache_.end() ? nullptr : &found->second.pixels;
}

// Four exact tiles of the level below make an exact one without any work on cells.
bool MapTiles::build_from_children(const MapTileId& id) {
    if (id.level == 0) return false;
    const MapPixels* children[4] = {};
    for (uint32_t n = 0; n < 4; ++n) {
        const MapTileId child{id.batch, id.head, id.level - 1, id.y * 2 + n / 2, id.x * 2 + n % 2, false};
        children[n] = find(child);
        if (!children[n] && !beyond(child)) return false;
    }
    constexpr uint32_t half = kMapTileSide / 2;
    MapPixels out{std::vector<uint64_t>(kPixels), std::vector<float>(kPixels)};
    for (uint32_t n = 0; n < 4; ++n) {
        if (!children[n]) continue;
        for (uint32_t p = 0; p < half * half; ++p) {
            const uint32_t y = p / half, x = p % half;
            const size_t to = size_t(n / 2 * half + y) * kMapTileSide + n % 2 * half + x;
            for (uint32_t quarter = 0; quarter < 4; ++quarter) {
                const size_t from = size_t(2 * y + quarter / 2) * kMapTileSide + 2 * x + quarter % 2;
                const uint64_t mass = children[n]->mass[from];
                out.mass[to] = add_mass(out.mass[to], mass);
                const float max = children[n]->max[from];
                if (std::isnan(max) || max > out.max[to]) out.max[to] = max;
            }
        }
    }
    insert(id, std::move(out));
    return true;
}

MapPiece MapTiles::piece_of(const MapTileId& id, const MapTileId& target) const {
    MapPiece piece{};
    piece.id = id;
    piece.pixels = find(id);
    piece.exact = !id.sampled && id.level == target.level;
    piece.target = cells_of(id.level > target.level ? target : id);
    const MapRect own = cells_of(id);
    const double pixel = std::ldexp(1.0, int(id.level));
    piece.source_y = (piece.target.first_row - own.first_row) / pixel;
    piece.source_x = (piece.target.first_key - own.first_key) / pixel;
    piece.source_height = piece.target.rows / pixel;
    piece.source_width = piece.target.keys / pixel;
    return piece;
}

// The tile's own preview, or else its part of the nearest tile above.
void MapTiles::add_fallback(const MapTileId& id, std::vector<MapPiece>& out) {
    MapTileId above = id;
    for (; above.level <= highest_level_; ++above.level, above.y /= 2, above.x /= 2) {
        for (const bool sampled : {false, true}) {
            above.sampled = sampled;
            const auto found = cache_.find(above);
            if (found == cache_.end()) continue;
            touch(found->second, above);
            out.push_back(piece_of(above, id));
            return;
        }
    }
}

// Exact tiles of the level below are drawn over the substitute for a missing tile.
void MapTiles::add_finer(const MapTileId& id, std::vector<MapPiece>& out) {
    if (id.level == 0) return;
    for (uint32_t n = 0; n < 4; ++n) {
        const MapTileId child{id.batch, id.head, id.level - 1, id.y * 2 + n / 2, id.x * 2 + n % 2, false};
        const auto found = cache_.find(child);
        if (found == cache_.end()) continue;
        touch(found->second, child);
        out.push_back(piece_of(child, id));
    }
}

std::vector<MapPiece> MapTiles::pieces() {
    std::vector<MapPiece> out;
    for (const MapTileId& id : order_) {
        add_fallback(id, out);
        if (!cache_.count(id)) add_finer(id, out);
    }
    return out;
}

MapProgress MapTiles::progress() const {
    MapProgress p;
    p.level = level_of(view_);
    p.needed = uint32_t(order_.size());
    p.running = uint32_t(running_.size());
    p.cached_bytes = bytes_;
    bool all_shown = true;
    for (MapTileId id : order_) {
        p.exact += cache_.count(id) ? 1 : 0;
        bool shown = false;
        for (; !shown && id.level <= highest_level_; ++id.level, id.y /= 2, id.x /= 2) {
            for (const bool sampled : {false, true}) {
                id.sampled = sampled;
                shown = shown || cache_.count(id);
            }
        }
        all_shown = all_shown && shown;
    }
    if (all_shown) p.quality = p.exact == p.needed ? MapQuality::exact : MapQuality::sampled;
    return p;
}

std::vector<float> map_values(const FoveaMapTileDesc& tile, uint64_t len_q, std::span<const uint64_t> mass) {
    std::vector<float> out(mass.size());
    const uint64_t rows_left = len_q > tile.first_row ? len_q - tile.first_row : 0;
    for (size_t n = 0; n < mass.size(); ++n) {
        const uint64_t y = n / tile.width % tile.height;
        const uint64_t begin = std::min(y * tile.row_count / tile.height, rows_left),
                       end = std::min((y + 1) * tile.row_count / tile.height, rows_left);
        const uint64_t rows = tile.sampled ? 1 : std::max<uint64_t>(end - begin, 1);
        out[n] = mass[n] == FOVEA_TILE_INVALID ? std::numeric_limits<float>::quiet_NaN()
                                               : float(double(mass[n]) * FOVEA_TILE_UNIT / double(rows));
    }
    return out;
}

std::vector<float> map_values(const MapTiles& tiles, const MapTileId& id, const MapPixels& pixels,
                              MapReducer reducer) {
    if (reducer == MapReducer::max) return pixels.max;
    std::vector<float> values = map_values(tiles.description(id), tiles.extent().rows, pixels.mass);
    // A sampled cell counts for every key of its pixel, up to the row's total weight.
    if (id.sampled)
        for (float& value : values)
            value = std::max(value, std::min(value * std::ldexp(1.0f, int(id.level)), 1.0f));
    return values;
}

}  // namespace fovea
