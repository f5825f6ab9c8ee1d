// A map tile as plain loops: each cell's weight from its logit and the given lse, rounded to whole units,
// added to its pixel. One row of pixels at a time.
#pragma once

#include "problem/map_tile.hpp"
#include "reference/attention_loops.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::reference {

template <class Real>
class MapTileLoops : AttentionLoops<Real> {
    using Base = AttentionLoops<Real>;
    using typename Base::Row;

  public:
    // Returns the scratch of one worker, a multiple of 64 bytes: sums and maxima of a row of pixels, then the
    // scratch of AttentionLoops.
    static uint64_t scratch_bytes(const Problem& problem, const MapTile& tile) {
        const uint64_t pixels = uint64_t(tile.keys.pixels) * sizeof(Pixel);
        return align_up(align_up(pixels, 64) + Base::scratch_count(problem) * sizeof(Real), 64);
    }

    MapTileLoops(const Problem& problem, const MapTile& tile, const FoveaHostBuffer* bindings)
        : Base(problem, bindings), tile_(tile) {}

    // Row of pixels number `flat` counts (head, y) with y fastest.
    void compute_pixel_row(uint64_t flat, unsigned char* scratch) const {
        auto* pixels = reinterpret_cast<Pixel*>(scratch);
        const uint64_t pixel_bytes = uint64_t(tile_.keys.pixels) * sizeof(Pixel);
        auto* numbers = reinterpret_cast<Real*>(scratch + align_up(pixel_bytes, 64));
        memset(static_cast<void*>(pixels), 0, pixel_bytes);
        const int64_t y = int64_t(flat) % tile_.rows.pixels;
        const uint32_t head = tile_.first_head + uint32_t(int64_t(flat) / tile_.rows.pixels);
        if (tile_.sampled) {
            add_row(head, tile_.rows.middle(y), numbers, pixels);
        } else {
            for (int64_t i = tile_.rows.begin(y); i < tile_.rows.begin(y + 1); ++i)
                add_row(head, i, numbers, pixels);
        }
        write(uint64_t(flat) * uint64_t(tile_.keys.pixels), pixels);
    }

  private:
    struct Pixel {
        uint64_t mass;
        float max;
        uint32_t invalid;
    };

    void add_row(uint32_t head, int64_t i, Real* numbers, Pixel* pixels) const {
        if (i >= p.len_q) return;
        const uint64_t bh = uint64_t{tile_.batch} * p.heads_q + head;
        Row row = this->locate(bh * uint64_t(p.len_q) + uint64_t(i), numbers);
        const KeyRange seen = row.keys;
        if (seen.empty()) return;
        this->load_query(row);
        const Real lse = Real(this->template input<float>(FOVEA_BIND_LSE)[row.flat]);
        for (int64_t x = 0; x < tile_.keys.pixels; ++x) {
            KeyRange cells{tile_.keys.begin(x), tile_.keys.begin(x + 1)};
            if (tile_.sampled) cells = {tile_.keys.middle(x), tile_.keys.middle(x) + 1};
            row.keys = {std::max(cells.begin, seen.begin), std::min(cells.end, seen.end)};
            if (row.keys.empty()) continue;
            this->compute_logits(row);
            for (int64_t j = row.keys.begin; j < row.keys.end; ++j) add_cell(row, j, lse, pixels[x]);
        }
    }

    void add_cell(const Row& row, int64_t j, Real lse, Pixel& pixel) const {
        if (row.logits[j] == -Base::kInfinity || (p.dropout && !this->is_kept(row, j))) return;
        const Real before = std::exp(row.logits[j] - lse);
        if (!(before <= Real(kMaxTileWeight))) {
            pixel.invalid = 1;
            return;
        }
        const Real weight = p.dropout ? before * Real(p.keep_scale) : before;
        pixel.mass = add_tile_units(pixel.mass, tile_units(double(weight)));
        pixel.max = std::max(pixel.max, float(weight));
    }

    void write(uint64_t first, const Pixel* pixels) const {
        auto* mass = this->template output<unsigned char>(FOVEA_BIND_TILE_MASS);
        auto* max = this->template output<float>(FOVEA_BIND_TILE_MAX);
        for (int64_t x = 0; x < tile_.keys.pixels; ++x) {
            const Pixel& pixel = pixels[x];
            const bool valid = !pixel.invalid && pixel.mass < kTileMassLimit;
            const uint64_t units = valid ? pixel.mass : uint64_t{FOVEA_TILE_INVALID};
            // memcpy, because the binding's alignment may be only 4 bytes.
            if (tile_.mass) memcpy(mass + (first + uint64_t(x)) * sizeof units, &units, sizeof units);
            if (tile_.max)
                max[first + uint64_t(x)] =
                    pixel.invalid ? std::numeric_limits<float>::quiet_NaN() : pixel.max;
        }
    }

    using Base::p;
    const MapTile& tile_;
};

}  // namespace fovea::reference
