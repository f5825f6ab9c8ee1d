// Who computes a map's tiles: the drawing's own device, in shares of a frame, or threads of the processor.
#pragma once

#include "gpu/gpu_device.hpp"

#include <fovea/fovea.hpp>
#include <fovea/inspect/map_tiles.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

struct TileJob {
    MapTileId id;
    FoveaMapTileDesc tile;
};
struct TileDone {
    MapTileId id;
    bool whole = false;  // else it was cancelled or refused
    MapPixels pixels;
    std::string problem;
    GpuBuffer mass, max;  // of a tile that the device computed: the same pixels, to be drawn from
};

// One head's queries and keys, [tokens, dim] each, and the call that they are for.
struct LongHead {
    std::string name;  // "128k", or of a file
    FoveaAttentionDesc call;
    std::vector<float> q, k;
    bool always_causal = false;  // whatever the settings say
    // What call.mask describes: one row for all queries, or a row each, which stand kMaskRowBytes apart or a
    // multiple of it, so that any device can bind each of them. Empty: there is no mask.
    std::vector<uint8_t> mask;
    std::vector<float> bias;       // what call.bias describes, laid out as the mask is; empty: none
    std::string left_out;          // what of the settings or the file has no place on a map this long
    uint32_t head = 0, heads = 1;  // which of how many; of a file
    float divisor = 0;             // of the scores; 0: the square root of the width
    float slope = 0, sink = 0;     // of ALiBi, where the call has it; of the row's sums, where it has one
    bool has_sink = false;
    // [rows, keys] or one row for all queries, 1 is visible; null: none.
    std::shared_ptr<const std::vector<uint8_t>> file_mask;
    std::string lost_mask, lost_bias;  // what of the file is too large to be taken along

    static constexpr uint64_t kMaskRowBytes = 256;
    // Where the mask or bias of a call for rows from `first_row` on begins, in bytes.
    uint64_t mask_offset(uint64_t first_row) const {
        return call.mask.rows > 1 ? first_row * uint64_t(call.mask.strides.row) : 0;
    }
    uint64_t bias_offset(uint64_t first_row) const {
        return call.bias.rows > 1 ? first_row * uint64_t(call.bias.strides.row) * 4 : 0;
    }
    // What stands beside queries and keys in a call to be run on the processor, whose rows begin at
    // `first_row` and whose keys at `first_key`.
    void bind_beside(FoveaHostBuffer* bindings, uint64_t first_row = 0, uint64_t first_key = 0) const {
        if (!mask.empty()) {
            const uint64_t skip = mask_offset(first_row) + first_key;
            bindings[FOVEA_BIND_MASK] = {const_cast<uint8_t*>(mask.data()) + skip, mask.size() - skip};
        }
        if (!bias.empty()) {
            const uint64_t skip = bias_offset(first_row) / 4 + first_key;
            bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(bias.data()) + skip, (bias.size() - skip) * 4};
        }
        if (call.flags & FOVEA_FLAG_ALIBI) bindings[FOVEA_BIND_ALIBI] = {const_cast<float*>(&slope), 4};
        if (call.flags & FOVEA_FLAG_SINKS) bindings[FOVEA_BIND_SINKS] = {const_cast<float*>(&sink), 4};
    }
    // The call for the log-sum-exp of `count` rows from `first_row` on; no dropout bears on them.
    FoveaAttentionDesc rows_call(uint64_t first_row, uint64_t count) const {
        FoveaAttentionDesc rows = call;
        rows.len_q = count;
        rows.align = FOVEA_ALIGN_OFFSET;
        rows.q_offset = int64_t(first_row);
        rows.outputs = FOVEA_OUTPUT_LSE;
        rows.dropout_p = 0;
        if (rows.mask.rows > 1) rows.mask.rows = count;
        if (rows.bias.rows > 1) rows.bias.rows = count;
        return rows;
    }
};

// Tiles of one call. Rows' log-sum-exp are computed when a tile first needs them. Used by one thread.
class TileMaker {
  public:
    virtual ~TileMaker() = default;
    // Room for one more job.
    virtual bool has_room() const = 0;
    virtual bool busy() const = 0;
    virtual void start(const TileJob& job) = 0;
    // Gives up the jobs that nobody wants any more; they come back not whole.
    virtual void cancel(const std::function<bool(const MapTileId&)>& wanted) = 0;
    virtual std::optional<TileDone> take() = 0;
    // Waits until some job has ended.
    virtual Result<void> wait() = 0;
    // At the beginning of each frame, outside a render pass, with its command buffer; every earlier frame
    // but the `frames_in_flight` latest has ended.
    virtual Result<void> record(VkCommandBuffer, int /*frames_in_flight*/) { return {}; }
    // Nothing was recorded because the driver still compiles what it takes.
    virtual bool waits() const { return false; }
    virtual uint64_t rows_known() const = 0;
    // Jobs that have ended, or kernels made ready, so far: another number is a reason to draw.
    virtual uint64_t finished() const = 0;
    // "processor, 1 thread", "llvmpipe, 3.1 ms of this frame"
    virtual std::string where() const = 0;
};

// Tiles by the engine's CPU kernels on threads of their own. `wake` is called from those threads. `head` must
// outlive it.
std::unique_ptr<TileMaker> make_processor_tiles(const LongHead& head, std::function<void()> wake);
// Tiles by the engine's Vulkan kernels on the device, in its frames. `wake` is called from another thread
// when their kernels are ready.
Result<std::unique_ptr<TileMaker>> make_device_tiles(GpuDevice& device, const LongHead& head,
                                                     std::function<void()> wake);

}  // namespace fovea::visualizer
