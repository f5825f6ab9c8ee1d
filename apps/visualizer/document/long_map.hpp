// The weights of one long head as a map to zoom into: tiles computed by the engine from q, k and each row's
// log-sum-exp, on the device that draws or on the processor; never the matrix itself.
#pragma once

#include "document/settings.hpp"
#include "document/tile_maker.hpp"

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/long_context.hpp>

#include <utility>

namespace fovea::visualizer {

struct Projected;

Result<LongHead> long_preset(std::string_view name);
// One head of a file's or level's projected tensors; `divisor` of its scores, 0: the square root of its
// width.
LongHead long_head(const Projected& projected, uint32_t head, float divisor);

// A picked weight and the row that it stands in.
struct MapPick {
    uint64_t row = 0, key = 0;
    std::optional<Derivation> derivation;  // none where it could not be computed
    // What the row gives to its largest keys, the largest first, before dropout; and to all of them.
    std::vector<std::pair<uint64_t, float>> largest;
    double share = 0;
};
// Cells of a map, at least one.
struct MapBlock {
    uint64_t first_row = 0, rows = 1, first_key = 0, keys = 1;
};

class LongMap {
  public:
    // Tiles are computed on `device`, null: on the processor, also where the device refuses them. `wake` is
    // called from other threads whenever there is something new to draw. Masks, scale, temperature, softcap
    // and dropout (by counters, Philox) are taken from the settings.
    LongMap(LongHead head, const Settings& settings, GpuDevice* device, std::function<void()> wake);
    ~LongMap();
    LongMap(const LongMap&) = delete;
    LongMap& operator=(const LongMap&) = delete;

    const std::string& name() const { return head_.name; }
    const LongHead& head() const { return head_; }
    uint64_t tokens() const { return head_.call.len_kv; }
    uint64_t rows() const { return head_.call.len_q; }
    const FoveaAttentionDesc& call() const { return head_.call; }
    // Another mask, scale or place: forgets every tile. False if nothing differs. The device must be idle.
    bool follow(const Settings& settings, GpuDevice* device);

    MapTiles& tiles() { return tiles_; }
    // Buffers of the tiles that the device has computed since the last call: to be drawn from.
    struct Fresh {
        MapTileId id;
        GpuBuffer mass, max;
    };
    std::vector<Fresh> take_fresh() { return std::exchange(fresh_, {}); }
    // Takes what is finished, gives out the next tiles of the view and records the frame's share of them, see
    // TileMaker::record. True while the next frame has work to record.
    Result<bool> advance(VkCommandBuffer cmd, int frames_in_flight);
    // Waits until the view is exact, or has something everywhere. For pictures without a window.
    Result<void> finish(bool exact);
    // What the engine refused, if it did.
    const std::string& problem() const { return problem_; }
    bool waits() const { return maker_->waits(); }
    // Tiles finished so far: another number is a reason to draw.
    uint64_t finished_tiles() const { return maker_->finished(); }
    double rows_known() const { return double(maker_->rows_known()) / double(rows()); }
    bool on_device() const { return device_ != nullptr; }
    // "processor, 1 thread", and why not the device if it was asked for.
    std::string where() const {
        return maker_->where() + (refusal_.empty() ? "" : " (the device: " + refusal_ + ")");
    }

    // In float32 from q and k, whatever the tiles say; on this thread, about one row's work. These may run on
    // another thread than the map's, but not while follow() does.
    Result<Derivation> derive(uint64_t row, uint64_t key) const;
    // What the row gives to each key, before dropout; computed now, in float32 on this thread.
    Result<std::vector<float>> row_weights(uint64_t row) const;
    // Both; the row's part from `before` where that is of the same row.
    MapPick pick(uint64_t row, uint64_t key, const MapPick* before = nullptr) const;
    // Where the largest weight of a block stands, as the tiles have it. About the work of the block's rows.
    Result<std::pair<uint64_t, uint64_t>> largest_of(const MapBlock& block) const;
    // What that costs, in FLOP.
    double cost_of(const MapBlock& block) const {
        return 2.0 * double(head_.call.dim_qk) * double(block.rows) * double(tokens());
    }

  private:
    void make_maker();
    bool hand_out();

    LongHead head_;
    MapTiles tiles_;
    std::vector<Fresh> fresh_;
    GpuDevice *device_, *wanted_device_ = device_;
    std::function<void()> wake_;
    std::unique_ptr<TileMaker> maker_;
    Settings masked_by_;
    std::string problem_, refusal_;
};

}  // namespace fovea::visualizer
