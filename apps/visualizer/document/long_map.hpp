// The weights of one long head as a map to zoom into: the head of a preset or file under the settings' masks
// and rules, and the values of a picked cell. MapSource computes the tiles; the matrix itself is never
// there.
#pragma once

#include "document/settings.hpp"
#include "gpu/gpu_device.hpp"
#include "inspect/map_source.hpp"

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/long_context.hpp>

#include <utility>

namespace fovea::visualizer {

struct Projected;

struct LongHead : MapHead {
    std::string name;              // "128k", or of a file
    bool always_causal = false;    // whatever the settings say
    std::string left_out;          // the parts of the settings or the file that a map this long cannot use
    uint32_t head = 0, heads = 1;  // which of how many; of a file
    float divisor = 0;             // divisor of the scores; 0: the square root of the head size
    bool has_sink = false;
    // [rows, keys] or one row for all queries, 1 is visible; null: none.
    std::shared_ptr<const std::vector<uint8_t>> file_mask;
    std::string lost_mask, lost_bias;  // the parts of the file that are too large to keep
};

Result<LongHead> long_preset(std::string_view name);
// One head of a file's or level's projected tensors; `divisor` of its scores, 0: the square root of its
// width.
LongHead long_head(const Projected& projected, uint32_t head, float divisor);

// A picked weight and its row.
struct MapPick {
    uint64_t row = 0, key = 0;
    std::optional<Derivation> derivation;  // none where it could not be computed
    // The row's largest weights in descending order, before dropout, and the sum over all keys.
    std::vector<std::pair<uint64_t, float>> largest;
    double share = 0;
};
// Cells of a map, at least one.
struct MapBlock {
    uint64_t first_row = 0, rows = 1, first_key = 0, keys = 1;
};

class LongMap {
  public:
    // Computes tiles on the kind of `device`, or on the CPU if it is null or rejects them. `wake` is called
    // from other threads whenever there is something new to draw. Masks, scale, temperature, softcap and
    // dropout (Philox, counter-based) are taken from the settings.
    LongMap(LongHead head, const Settings& settings, GpuDevice* device, std::function<void()> wake);
    ~LongMap();
    LongMap(const LongMap&) = delete;
    LongMap& operator=(const LongMap&) = delete;

    const std::string& name() const { return head_.name; }
    const LongHead& head() const { return head_; }
    uint64_t tokens() const { return head_.call.len_kv; }
    uint64_t rows() const { return head_.call.len_q; }
    const FoveaAttentionDesc& call() const { return head_.call; }
    // Another mask, scale or place: forgets every tile. False if nothing differs.
    bool follow(const Settings& settings, GpuDevice* device);

    MapTiles& tiles() { return source_.tiles(); }
    void advance() { source_.advance(); }
    // Waits until the view is exact, or has something everywhere. For pictures without a window.
    void finish(bool exact) { source_.finish(exact); }
    // Returns the engine's error, if there is one.
    const std::string& problem() const { return source_.problem(); }
    uint64_t finished_tiles() const { return source_.finished(); }
    double rows_known() const { return double(source_.rows_known()) / double(rows()); }
    bool on_device() const { return device_ && source_.refusal().empty(); }
    // The device's driver compiles the first kernels.
    bool waits() const { return on_device() && source_.finished() == 0 && source_.rows_known() == 0; }
    // "CPU, 1 thread", and the reason if a requested device is not used.
    std::string where() const;

    // In float32 from q and k, whatever the tiles say; on this thread, about one row's work. These may run on
    // another thread than the map's, but not while follow() does.
    Result<Derivation> derive(uint64_t row, uint64_t key) const;
    // Returns the row's weight for each key, before dropout; computed now, in float32 on this thread.
    Result<std::vector<float>> row_weights(uint64_t row) const;
    // Both; the row's part from `before` where that is of the same row.
    MapPick pick(uint64_t row, uint64_t key, const MapPick* before = nullptr) const;
    // Returns the place of the largest weight of a block, as the tiles have it. Costs about the work of the
    // block's rows.
    Result<std::pair<uint64_t, uint64_t>> largest_of(const MapBlock& block) const;
    // Returns the cost of largest_of(), in FLOP.
    double cost_of(const MapBlock& block) const {
        return 2.0 * double(head_.call.dim_qk) * double(block.rows) * double(tokens());
    }

  private:
    GpuDevice* device_;
    LongHead head_;
    Settings masked_by_;
    MapSource source_;  // reads head_
};

}  // namespace fovea::visualizer
