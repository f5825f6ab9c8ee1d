// Computes a tile of the map of all weights over many ranks: each rank computes the cells of its own keys, in
// units whose sum does not depend on the order.
#include "mpi/ordered_pass.hpp"
#include "problem/map_tile.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

namespace fovea::mpi {
namespace {

// Cells of one engine call along an axis, which bounds what a rank holds of them: 12 bytes each.
constexpr uint64_t kCells = 1024;
// Rows of a pixel from which on the engine adds them up, in one call for each pixel's rows.
constexpr int64_t kRowsWorthACall = 16;

uint64_t add_units(uint64_t a, uint64_t b) {
    if (a == FOVEA_TILE_INVALID || b == FOVEA_TILE_INVALID) return FOVEA_TILE_INVALID;
    return add_tile_units(a, b);
}
float larger(float a, float b) {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::max(a, b);
}

extern "C" {
static void fovea_mpi_add_units(void* from, void* to, int* count, MPI_Datatype*) {
    auto *a = static_cast<uint64_t*>(from), *b = static_cast<uint64_t*>(to);
    for (int n = 0; n < *count; ++n) b[n] = add_units(a[n], b[n]);
}
static void fovea_mpi_larger(void* from, void* to, int* count, MPI_Datatype*) {
    auto *a = static_cast<float*>(from), *b = static_cast<float*>(to);
    for (int n = 0; n < *count; ++n) b[n] = larger(a[n], b[n]);
}
}

// Pixel of a cell of the axis.
int64_t pixel_of(const PixelAxis& axis, int64_t cell) {
    int64_t n = (cell - axis.first) * axis.pixels / axis.count;
    while (axis.begin(n + 1) <= cell) ++n;
    return n;
}

// Cells [begin, end) of an axis that are in a chunk, counted from 0 of the call.
struct Cut {
    int64_t begin, end;
};
Cut cut(const PixelAxis& axis, const Shards& shards, uint64_t chunk) {
    const auto first = int64_t(shards.first_row(chunk)), rows = int64_t(shards.rows_of(chunk));
    return {std::max(axis.first, first), std::min(axis.first + axis.count, first + rows)};
}

PixelAxis axis_of(uint64_t first, uint64_t count, uint64_t length, uint32_t pixels) {
    const uint64_t cells = count ? count : length - first;
    return {int64_t(first), int64_t(cells), int64_t(pixels ? pixels : cells)};
}

std::optional<Error> refusal(Engine& engine, const ShardedMapTile& call) {
    FoveaAttentionDesc d = call.desc;
    d.outputs = FOVEA_OUTPUT_O;
    d.flags &= ~uint32_t(FOVEA_FLAG_SINKS);
    if (auto error = refusal_of_shards(d, call.chunk, call.whole)) return error;
    d.q_strides = d.k_strides = d.v_strides = d.o_strides = {};
    const Result<Plan> whole =
        plan_map_tile(engine.properties(), d, call.tile);  // which says what is wrong with a tile
    if (!whole) return whole.error();
    const uint32_t outputs = call.tile.outputs ? call.tile.outputs : uint32_t(FOVEA_TILE_MASS);
    if ((outputs & FOVEA_TILE_MASS) && !call.mass) return bad("mass", "mass is null");
    if ((outputs & FOVEA_TILE_MAX) && !call.max) return bad("max", "max is null");
    return std::nullopt;
}

class MapRun {
  public:
    MapRun(const OwnComm& comm, Engine& engine, const ShardedMapTile& call, const RunOptions& options)
        : comm_(comm),
          engine_(engine),
          call_(call),
          options_(options),
          chunks_(call.desc, call.whole),
          rank_(uint32_t(comm.rank())),
          outputs_(call.tile.outputs ? call.tile.outputs : uint32_t(FOVEA_TILE_MASS)),
          heads_(call.tile.head_count ? call.tile.head_count : call.desc.heads_q - call.tile.first_head),
          rows_(axis_of(call.tile.first_row, call.tile.row_count, call.desc.len_q, call.tile.height)),
          columns_(axis_of(call.tile.first_key, call.tile.key_count, call.desc.len_kv, call.tile.width)),
          queries_{Shards(call.desc.len_q, call.chunk, uint32_t(comm.size())), {}, {}},
          keys_{Shards(call.desc.len_kv, call.chunk, uint32_t(comm.size())), {}, {}},
          pass_(comm, report_) {
        const FoveaAttentionDesc& d = call.desc;
        const auto row = [&](uint32_t heads, uint32_t dim, FoveaDtype type) {
            return uint64_t{d.batch} * heads * dim * element_bytes(type);
        };
        queries_.parts = {{call.q, row(d.heads_q, d.dim_qk, d.q_type)},
                          {call.lse, row(d.heads_q, 1, FOVEA_F32)}};
        keys_.parts = {{call.k, row(d.heads_kv, d.dim_qk, d.k_type)}};
    }

    std::optional<Error> prepare() {
        if (auto error =
                queries_.prepare(rank_, call_.chunk, "q", "q or lse is null, and this rank has rows"))
            return error;
        if (auto error = keys_.prepare(rank_, call_.chunk, "k", "k is null, and this rank has rows"))
            return error;
        const uint64_t pixels = heads_ * uint64_t(rows_.pixels) * uint64_t(columns_.pixels);
        if (pixels > INT_MAX)
            return bad("tile",
                       "the tile has more than 2^31 pixels, the limit of an MPI sum; take a smaller tile");
        if (outputs_ & FOVEA_TILE_MASS) mass_.assign(pixels, 0);
        if (outputs_ & FOVEA_TILE_MAX) max_.assign(pixels, 0.0f);
        pass_.reserve(call_.chunk, queries_, keys_);
        report_.bytes_held = pass_.bytes() + mass_.size() * sizeof(uint64_t) + max_.size() * sizeof(float);
        return std::nullopt;
    }

    Result<void> run(std::optional<Error>& own) {
        const Result<void> passed = pass_.run(
            queries_, keys_, [&](uint64_t query, uint64_t key) { return meets(query, key); },
            [&](uint64_t query, const Pieces& q, uint64_t key, const Pieces& k, uint64_t) {
                return add(query, q, key, k);
            },
            own);
        if (!passed) return passed;
        if (Result<void> r = share(mass_, MPI_UINT64_T, fovea_mpi_add_units); !r) return r;
        return share(max_, MPI_FLOAT, fovea_mpi_larger);
    }

    void store() const {
        for (size_t n = 0; n < mass_.size(); ++n)
            call_.mass[n] = mass_[n] < kTileMassLimit ? mass_[n] : uint64_t{FOVEA_TILE_INVALID};
        std::copy(max_.begin(), max_.end(), call_.max);
    }

    ShardReport& report() { return report_; }

  private:
    bool meets(uint64_t query_chunk, uint64_t key_chunk) const {
        const Cut rows = cut(rows_, queries_.shards, query_chunk),
                  columns = cut(columns_, keys_.shards, key_chunk);
        return rows.begin < rows.end && columns.begin < columns.end &&
               chunks_.sees(queries_.shards, query_chunk, keys_.shards, key_chunk);
    }

    std::optional<Error> add(uint64_t query_chunk, const Pieces& q, uint64_t key_chunk, const Pieces& k) {
        const Cut rows = cut(rows_, queries_.shards, query_chunk);
        const bool by_pixel = call_.tile.sampled || rows_.largest() >= kRowsWorthACall;
        for (int64_t row = rows.begin; row < rows.end;) {
            Cut band{row, std::min(rows.end, row + int64_t(kCells))};
            if (by_pixel) {
                const int64_t y = pixel_of(rows_, row);
                band.end = std::min(rows.end, rows_.begin(y + 1));
                row = band.end;
                if (call_.tile.sampled) band = {rows_.middle(y), rows_.middle(y) + 1};
                if (band.begin < rows.begin || band.end > rows.end) continue;  // another chunk has it
            } else {
                row = band.end;
            }
            const Cut columns = cut(columns_, keys_.shards, key_chunk);
            for (int64_t first = columns.begin; first < columns.end; first += int64_t(kCells)) {
                const Cut piece{first, std::min(columns.end, first + int64_t(kCells))};
                for (uint32_t head = 0; head < heads_; ++head)
                    if (auto error = add_cells(query_chunk, q, key_chunk, k, head, band, piece, by_pixel))
                        return error;
            }
        }
        return std::nullopt;
    }

    // Cells of `rows` and `columns`, each row of cells a row of pixels or, with `one_row`, all of them one.
    std::optional<Error> add_cells(uint64_t query_chunk, const Pieces& q, uint64_t key_chunk, const Pieces& k,
                                   uint32_t head, const Cut& rows, const Cut& columns, bool one_row) {
        const uint64_t first_row = queries_.shards.first_row(query_chunk),
                       query_rows = queries_.shards.rows_of(query_chunk),
                       first_key = keys_.shards.first_row(key_chunk),
                       key_rows = keys_.shards.rows_of(key_chunk);
        const TileCells cells{call_.tile.first_head + head,
                              uint64_t(rows.begin) - first_row,
                              uint64_t(rows.end - rows.begin),
                              uint64_t(columns.begin) - first_key,
                              uint64_t(columns.end - columns.begin),
                              one_row,
                              outputs_};
        RunOptions watched = options_;
        watched.progress = [&](double done) {
            pass_.look_at_messages();
            return !options_.progress || options_.progress(done);
        };
        TilePixels pixels;
        if (auto error =
                chunks_.run_tile(engine_, call_.tile.batch, {first_row, query_rows, query_rows}, q[0],
                                 reinterpret_cast<const float*>(q[1]), {first_key, key_rows, key_rows}, k[0],
                                 cells, pixels, watched, report_))
            return error;
        if (pixels.mass.empty() && pixels.max.empty()) return std::nullopt;
        const auto width = size_t(columns.end - columns.begin);
        for (int64_t row = rows.begin; row < (one_row ? rows.begin + 1 : rows.end); ++row) {
            const int64_t y = pixel_of(rows_, row);
            const size_t from = size_t(row - rows.begin) * width;
            const size_t to = (size_t(head) * size_t(rows_.pixels) + size_t(y)) * size_t(columns_.pixels);
            for (size_t n = 0; n < width; ++n) {
                const int64_t x = pixel_of(columns_, columns.begin + int64_t(n));
                if (call_.tile.sampled && columns.begin + int64_t(n) != columns_.middle(x)) continue;
                if (!mass_.empty()) {
                    uint64_t& mass = mass_[to + size_t(x)];
                    mass = add_units(mass, pixels.mass[from + n]);
                }
                if (!max_.empty()) {
                    float& max = max_[to + size_t(x)];
                    max = larger(max, pixels.max[from + n]);
                }
            }
        }
        return std::nullopt;
    }

    template <class T>
    Result<void> share(std::vector<T>& pixels, MPI_Datatype type, MPI_User_function* put_together) const {
        if (pixels.empty()) return {};
        MPI_Op op;
        if (auto error = mpi_error(MPI_Op_create(put_together, 1, &op), "MPI_Op_create")) return *error;
        const int code =
            MPI_Allreduce(MPI_IN_PLACE, pixels.data(), int(pixels.size()), type, op, comm_.get());
        MPI_Op_free(&op);
        if (auto error = mpi_error(code, "MPI_Allreduce")) return *error;
        return {};
    }

    const OwnComm& comm_;
    Engine& engine_;
    const ShardedMapTile& call_;
    const RunOptions& options_;
    ChunkCalls chunks_;
    uint32_t rank_, outputs_, heads_;
    PixelAxis rows_, columns_;
    Side queries_, keys_;
    std::vector<uint64_t> mass_;
    std::vector<float> max_;
    ShardReport report_;
    OrderedPass pass_;
};

}  // namespace

Result<ShardReport> map_tile(MPI_Comm host, Engine& engine, const ShardedMapTile& call,
                             const RunOptions& options) {
    return run_together<MapRun>(
        host, engine, call, call.tile, "tile", [&] { return refusal(engine, call); }, options);
}

}  // namespace fovea::mpi
