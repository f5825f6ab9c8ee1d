#include "problem/map_tile.hpp"

#include "problem/abi_struct.hpp"
#include "problem/checked.hpp"

#include <algorithm>

namespace fovea {
namespace {

// Most rows of a pixel times dropout's factor: a row's weights add up to at most that factor, and the sum of
// a pixel stays a factor of two below its limit.
constexpr double kMaxPixelMass = double(1u << 22);

struct AxisNames {
    const char *first, *count, *pixels, *length;
};

FoveaResult check_axis(uint64_t first, uint64_t count, uint32_t pixels, int64_t length,
                       const AxisNames& names, PixelAxis& axis, FoveaDiag* diag) {
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    if (first >= uint64_t(length))
        return fail(diag, FOVEA_INVALID_ARGUMENT, names.first, "%s is %llu; it must be below %s, %llu",
                    names.first, number(first), names.length, number(uint64_t(length)));
    if (count > uint64_t(kMaxLength))
        return fail(diag, FOVEA_SIZE_OVERFLOW, names.count, "%s is %llu; the limit is 2^30", names.count,
                    number(count));
    if (count == 0) count = uint64_t(length) - first;
    const uint64_t side = pixels ? pixels : count;
    if (side > FOVEA_TILE_MAX_SIDE)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, names.pixels, "%s is %llu; the limit is %d pixels",
                    names.pixels, number(side), int(FOVEA_TILE_MAX_SIDE));
    if (side > count)
        return fail(diag, FOVEA_INVALID_ARGUMENT, names.pixels,
                    "%s is %llu; it must be at most %s, %llu: a pixel holds at least one cell", names.pixels,
                    number(side), names.count, number(count));
    axis = {int64_t(first), int64_t(count), int64_t(side)};
    return FOVEA_OK;
}

FoveaResult check_choices(const FoveaMapTileDesc& d, const Problem& p, FoveaDiag* diag) {
    if (d.batch >= p.batch)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "tile.batch",
                    "tile.batch is %u; the call's batch has %u entries", d.batch, p.batch);
    if (d.first_head >= p.heads_q)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "first_head", "first_head is %u; the call has %u heads",
                    d.first_head, p.heads_q);
    if (d.head_count > p.heads_q - d.first_head)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "head_count",
                    "head_count is %u from head %u on; the call has %u heads", d.head_count, d.first_head,
                    p.heads_q);
    constexpr uint32_t known = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    if (d.outputs & ~known)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "tile.outputs", "tile.outputs has unknown bits 0x%x",
                    d.outputs & ~known);
    if (d.sampled > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "sampled", "sampled is %u; it must be 0 or 1", d.sampled);
    return FOVEA_OK;
}

FoveaResult check_mass(const MapTile& tile, const Problem& p, FoveaDiag* diag) {
    if (p.dropout && p.keep_scale > kMaxTileKeepScale)
        return fail(diag, FOVEA_UNSUPPORTED, "dropout_p",
                    "dropout_p multiplies the kept weights by %g; the limit of a map tile is %g",
                    double(p.keep_scale), double(kMaxTileKeepScale));
    const double rows = double(tile.rows.largest()) * (p.dropout ? double(p.keep_scale) : 1.0);
    if (!tile.sampled && rows > kMaxPixelMass)
        return fail(
            diag, FOVEA_LIMIT_EXCEEDED, "height",
            "height is %lld: a pixel holds %lld rows, whose weights may add up to %g; the limit is %g",
            static_cast<long long>(tile.rows.pixels), static_cast<long long>(tile.rows.largest()), rows,
            kMaxPixelMass);
    return FOVEA_OK;
}

FoveaResult bind_tile(const MapTile& tile, Problem& p, FoveaDiag* diag) {
    const Checked lse = Checked(p.batch) * p.heads_q * uint64_t(p.len_q) * 4;
    const Checked pixels = Checked(tile.head_count) * tile.pixels() * 8;
    if (lse.overflow || pixels.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, lse.overflow ? "len_q" : "head_count",
                    "the size of %s does not fit 64 bits", lse.overflow ? "LSE" : "TILE_MASS");
    constexpr BindingMask values = binding_bit(FOVEA_BIND_V) | binding_bit(FOVEA_BIND_SINKS);
    p.outputs = 0;
    p.sinks = false;
    p.ignored_mask = p.output_mask | binding_bit(FOVEA_BIND_O) | values;
    p.binding_mask &= ~(p.output_mask | values);
    p.output_mask = 0;
    const auto bind = [&](FoveaBinding binding, uint64_t bytes, bool output) {
        p.binding_mask |= binding_bit(binding);
        if (output) p.output_mask |= binding_bit(binding);
        p.binding_bytes[binding] = bytes;
    };
    bind(FOVEA_BIND_LSE, lse.value, false);
    p.ignored_mask &= ~p.binding_mask;
    if (tile.mass) bind(FOVEA_BIND_TILE_MASS, pixels.value, true);
    if (tile.max) bind(FOVEA_BIND_TILE_MAX, pixels.value / 2, true);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (!(p.binding_mask >> i & 1)) p.binding_bytes[i] = 0;
    return FOVEA_OK;
}

}  // namespace

double visible_cells(const Problem& p, const MapTile& tile, const BatchView& view) {
    if (tile.sampled) return tile.cells();
    const int64_t first_row = tile.rows.first;
    const int64_t rows = std::min(first_row + tile.rows.count, view.q_length) - first_row;
    int64_t last_key = std::min(tile.keys.first + tile.keys.count, view.kv_length);
    if (p.mask.present) last_key = std::min(last_key, p.mask.keys);
    if (p.bias.present) last_key = std::min(last_key, p.bias.keys);
    const int64_t keys = last_key - tile.keys.first;
    if (rows <= 0 || keys <= 0) return 0;
    // Sum over the tile's rows n of n + shift, held within [0, keys].
    const auto held_sum = [&](int64_t shift) {
        const int64_t rising = std::clamp<int64_t>(-shift, 0, rows);
        const int64_t full = std::clamp<int64_t>(keys - shift, rising, rows);
        const double first = double(rising + shift), last = double(full - 1 + shift);
        return (first + last) * 0.5 * double(full - rising) + double(rows - full) * double(keys);
    };
    const int64_t position = first_row + view.offset - tile.keys.first;
    double end = double(rows) * double(keys), begin = 0;
    if (p.causal || p.window_right != kUnbounded)
        end = held_sum(position + 1 + (p.causal ? 0 : p.window_right));
    if (p.window_left != kUnbounded) begin = held_sum(position - p.window_left);
    return tile.head_count * std::max(end - begin, 0.0);
}

FoveaResult make_map_tile(const FoveaMapTileDesc* desc, Problem& p, MapTile& tile, FoveaDiag* diag) {
    FoveaMapTileDesc d;
    FoveaResult r;
    if ((r = read_struct(desc, d, "tile", diag))) return r;
    if ((r = check_choices(d, p, diag))) return r;
    tile = MapTile{};
    tile.batch = d.batch;
    tile.first_head = d.first_head;
    tile.head_count = d.head_count ? d.head_count : p.heads_q - d.first_head;
    const uint32_t outputs = d.outputs ? d.outputs : uint32_t(FOVEA_TILE_MASS);
    tile.mass = outputs & FOVEA_TILE_MASS;
    tile.max = outputs & FOVEA_TILE_MAX;
    tile.sampled = d.sampled != 0;
    if ((r = check_axis(d.first_row, d.row_count, d.height, p.len_q,
                        {"first_row", "row_count", "height", "len_q"}, tile.rows, diag)))
        return r;
    if ((r = check_axis(d.first_key, d.key_count, d.width, p.len_kv,
                        {"first_key", "key_count", "width", "len_kv"}, tile.keys, diag)))
        return r;
    if ((r = check_mass(tile, p, diag))) return r;
    return bind_tile(tile, p, diag);
}

}  // namespace fovea
