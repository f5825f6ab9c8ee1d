// Drives an attention map: selects the tiles that a view needs and keeps the log-sum-exp of the rows. A
// runner computes on a separate thread. The program keeps the picture.
#pragma once

#include <fovea/inspect/map_tiles.hpp>
#include <fovea/model/device_runner.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace fovea {

// One head's queries and keys, [tokens, dim] each in float32, and the call that they are for.
struct MapHead {
    FoveaAttentionDesc call = foveaAttentionDesc();
    std::vector<float> q, k;
    std::vector<uint8_t> mask;  // as call.mask describes it: one row for all queries, or a row each
    std::vector<float> bias;    // as call.bias describes it, laid out as the mask is
    float slope = 0, sink = 0;  // the ALiBi slope and the attention sink, 0 if the call has none

    // The inputs of a call whose rows begin at `first_row` and whose keys at `first_key`. No output of such
    // calls depends on values, so keys are bound in their place.
    void bind(FoveaHostBuffer* bindings, uint64_t first_row = 0, uint64_t first_key = 0) const;
    // The call for the log-sum-exp of `count` rows from `first_row` on, to which dropout does not matter.
    FoveaAttentionDesc rows_call(uint64_t first_row, uint64_t count) const;
};

class MapSource {
  public:
    // `head` must outlive the source. If the device of `on` rejects the call, the CPU computes. `wake` is
    // called from the source's thread whenever a tile has ended. With `wake` a device rests between slices,
    // so that the same device can draw.
    MapSource(const MapHead& head, EngineOptions on, std::function<void()> wake = {});
    ~MapSource();
    MapSource(const MapSource&) = delete;
    MapSource& operator=(const MapSource&) = delete;

    MapTiles& tiles() { return tiles_; }
    // Runs `change`, which may write to the head, while nothing reads it, and forgets every tile and sum.
    void follow(EngineOptions on, const std::function<void()>& change);
    // Stores what has ended and hands out the next tile of the view. True while a tile is under way.
    bool advance();
    // Waits until the view is exact, or has something everywhere.
    void finish(bool exact);

    // The error of a tile, which ends the work; empty: none.
    const std::string& problem() const { return problem_; }
    uint64_t rows_known() const { return known_count_; }
    uint64_t finished() const { return finished_; }  // tiles so far
    // Why the device does not compute, if it was asked to; empty: it does, or was not.
    std::string refusal() const;
    double slice_seconds() const { return slice_seconds_; }  // mean of a device's last call; 0: none yet

  private:
    struct Job {
        MapTileId id;
        FoveaMapTileDesc tile;
    };
    struct Done {
        MapTileId id;
        MapPixels pixels;
        std::optional<Error> error;
    };

    void work();
    Result<MapPixels> compute(const FoveaMapTileDesc& tile);
    Result<void> open();
    template <class Make>
    Result<Plan> plan_small(bool of_rows, FoveaAttentionDesc call, Make make) const;
    Result<void> run(bool of_rows, const Plan& plan, const HostBindings& bindings);
    bool is_vulkan() const { return runner_->properties().backend == FOVEA_BACKEND_VULKAN; }
    Result<void> know_rows_of(const FoveaMapTileDesc& tile);
    Result<void> sum_rows(uint64_t first, uint64_t count);
    Result<void> sum_scattered(std::span<const uint64_t> rows);
    Result<void> sum_group(std::span<const uint64_t> rows, bool causal);
    Result<void> sums(const FoveaAttentionDesc& call, const HostBindings& bindings);
    void know(uint64_t row) { known_count_ += !std::exchange(known_[row], uint8_t{1}); }

    const MapHead& head_;
    EngineOptions wanted_;
    std::function<void()> wake_;
    MapTiles tiles_;
    std::string problem_;

    // Only the working thread touches these while there is a job.
    std::unique_ptr<DeviceRunner> runner_;
    std::shared_ptr<const void> inputs_ = std::make_shared<int>();  // lives as long as these are the head's
    std::vector<float> lse_;
    std::vector<uint8_t> known_;
    std::array<double, 2> rates_{};  // FLOP/s of a device, of pixels and of rows

    std::atomic<uint64_t> known_count_{0}, finished_{0};
    std::atomic<double> slice_seconds_{0};
    std::atomic<bool> cancelled_{false}, hurried_{false};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Job> job_;  // guarded by mutex_, as the next three
    std::optional<Done> done_;
    std::string refusal_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace fovea
