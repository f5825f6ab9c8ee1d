// Deep zoom: the weights of one head as tiles of pixels, from q, k and lse. The matrix is never held; the
// inspection library's scheduler says which tile comes next, the engine's map tile computes it.
#pragma once

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/map_tiles.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/model/trace.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::web {

// One head's tensors of the reader's own: q [rows, dim], k [keys, dim], float32. `head` of `heads`: of those
// that the file has, for what depends on it.
struct OwnHead {
    uint32_t head = 0, heads = 1;
    uint32_t rows = 0, keys = 0, dim = 0;
    const float* q = nullptr;  // null: none, the session's text is taken
    const float* k = nullptr;
};

class DeepZoom {
  public:
    // Planted patterns: <fovea/inspect/long_context.hpp>.
    static Result<DeepZoom> of_tokens(uint32_t tokens);
    // The head of an address's session: of all tokens of its text, or of `own`. `learned` as Page has it.
    static Result<DeepZoom> of_session(std::string_view address, const OwnHead& own,
                                       std::shared_ptr<const LearnedModel> learned, Runner& runner);

    const MapExtent& extent() const { return tiles_.extent(); }
    const MapTiles& tiles() const { return tiles_; }
    std::vector<MapPiece> pieces() { return tiles_.pieces(); }
    // Return the tokens of a session's text, if it has one, and notes about the parts of the session that
    // were not used.
    const std::vector<Token>& tokens() const { return tokens_; }
    const std::vector<SessionNote>& notes() const { return notes_; }

    // Runs the next slices of the forward pass that yields lse, about `max_flops` of each worker. Progress
    // 0..1.
    Result<double> prepare(Runner& runner, double max_flops);

    // A tile that is no longer in view is given up.
    void set_view(const MapView& view);
    // Runs about `max_flops` of each worker of the tile that the view needs next. True if a tile was
    // finished.
    Result<bool> step(Runner& runner, double max_flops);

    // For another device, which computes in the place of prepare and step. The plan of the forward pass,
    // whose result goes into `lse`; `dim_v` is the width of the values, which play no part in it but must be
    // bound.
    Result<Plan> plan_forward(const FoveaDeviceProperties& properties, uint32_t dim_v,
                              double max_flops) const;
    const FoveaHostBuffer& input(uint32_t binding) const { return inputs_[binding]; }
    std::vector<float>& lse() { return lse_; }
    // The plan of the tile that the view needs next, an empty one where it needs none; its pixels go into
    // `pixels`. It is stored or given up before the next one is taken.
    Result<Plan> plan_tile(const FoveaDeviceProperties& properties, double max_flops);
    bool has_tile() const { return running_.has_value(); }  // set_view gives up one that is out of view
    MapPixels& pixels() { return pixels_; }
    void store_tile();
    void give_up_tile();

    // One weight, as a tile of a single cell.
    Result<double> weight(Runner& runner, uint64_t query, uint64_t key);
    // Returns every step of a weight except those with values, computed only from q and k: the row's sum is
    // computed again.
    Result<Derivation> derive(uint64_t query, uint64_t key) const;

  private:
    DeepZoom(FoveaAttentionDesc call, std::shared_ptr<const void> owner,
             std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> inputs);
    using Bindings = std::array<FoveaHostBuffer, FOVEA_BIND_COUNT>;
    // A plan that is run one slice at a time.
    struct Sliced {
        Plan plan;
        uint64_t next = 0;
    };
    // Runs the next slice, if there is one, and returns the share that is done.
    Result<double> run_slice(Runner& runner, Sliced& run, const Bindings& bindings);
    Bindings tile_bindings(MapPixels& pixels);

    FoveaAttentionDesc call_;
    std::shared_ptr<const void> owner_;  // owner of the memory of inputs_
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> inputs_;
    MapTiles tiles_;
    std::vector<float> lse_;
    std::vector<Token> tokens_;
    std::vector<SessionNote> notes_;
    Workspace workspace_;
    Sliced forward_, tile_;
    std::optional<MapTileId> running_;  // the tile that is being computed
    MapPixels pixels_;
};

}  // namespace fovea::web
