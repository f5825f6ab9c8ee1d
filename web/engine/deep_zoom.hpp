// Deep zoom: the weights of a long head as tiles of pixels, from q, k and lse. The matrix is never held; the
// inspection library's scheduler says which tile comes next, the engine's map tile computes it.
#pragma once

#include "engine_call.hpp"

#include <fovea/inspect/long_context.hpp>
#include <fovea/inspect/map_tiles.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace fovea::web {

class DeepZoom {
  public:
    static Result<DeepZoom> of_tokens(uint32_t tokens);

    uint64_t tokens() const { return tiles_.extent().rows; }
    const MapTiles& tiles() const { return tiles_; }
    std::vector<MapPiece> pieces() { return tiles_.pieces(); }

    // Runs the next slices of the forward pass that yields lse, about `max_flops` of each worker. Progress
    // 0..1.
    Result<double> prepare(Engine& engine, double max_flops);

    // A tile that is no longer in view is given up.
    void set_view(const MapView& view);
    // Runs about `max_flops` of each worker of the tile that the view needs next. True if a tile was
    // finished.
    Result<bool> step(Engine& engine, double max_flops);

    // For another device, which computes in the place of prepare and step. The plan of the forward pass,
    // whose result goes into `lse`; `dim_v` is the width of the values, which play no part in it but must be
    // bound.
    Result<Plan> plan_forward(const FoveaDeviceFacts& facts, uint32_t dim_v, double max_flops) const;
    const LongContext& context() const { return context_; }
    std::vector<float>& lse() { return lse_; }
    // The plan of the tile that the view needs next, an empty one where it needs none; its pixels go into
    // `pixels`. It is stored or given up before the next one is taken.
    Result<Plan> plan_tile(const FoveaDeviceFacts& facts, double max_flops);
    bool has_tile() const { return running_.has_value(); }  // set_view gives up one that is out of view
    MapPixels& pixels() { return pixels_; }
    void store_tile();
    void give_up_tile();

    // 0 above the diagonal.
    double weight(uint64_t query, uint64_t key) const;

  private:
    DeepZoom(LongContext context);
    Result<bool> begin_tile(Engine& engine, double max_flops);

    LongContext context_;
    MapTiles tiles_;
    std::vector<float> lse_;
    Plan forward_;
    uint64_t next_forward_slice_ = 0;

    // The tile that is being computed, by slices.
    std::optional<MapTileId> running_;
    Plan tile_plan_;
    uint64_t next_tile_slice_ = 0;
    MapPixels pixels_;
};

}  // namespace fovea::web
