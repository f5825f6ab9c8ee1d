// The weights of one long head as a map to zoom into: tiles computed by the engine on threads of their own,
// from q, k and each row's log-sum-exp; never the matrix itself. Rows' log-sum-exp are computed when a tile
// first needs them.
#pragma once

#include "model/settings.hpp"

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/long_context.hpp>
#include <fovea/inspect/map_tiles.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fovea::visualizer {

struct Projected;

// One head's queries and keys, [tokens, dim] each, and the call that they are for.
struct LongHead {
    std::string name;  // "128k", or of a file
    FoveaAttentionDesc call;
    std::vector<float> q, k;
    bool always_causal = false;  // whatever the settings say
};
Result<LongHead> long_preset(std::string_view name);
// One head of a file's or level's projected tensors.
LongHead long_head(const Projected& projected, uint32_t head);

class LongMap {
  public:
    // `wake` is called from another thread whenever there is something new to draw. Mask, scale, temperature
    // and softcap are taken from the settings.
    LongMap(LongHead head, const Settings& settings, std::function<void()> wake);
    ~LongMap();
    LongMap(const LongMap&) = delete;
    LongMap& operator=(const LongMap&) = delete;

    const std::string& name() const { return head_.name; }
    uint64_t tokens() const { return head_.call.len_kv; }
    uint64_t rows() const { return head_.call.len_q; }
    const FoveaAttentionDesc& call() const { return head_.call; }
    // Another mask or scale: forgets every tile. False if nothing differs.
    bool follow(const Settings& settings);

    MapTiles& tiles() { return tiles_; }
    // Takes what the threads have finished and gives them the next tile of the view. True while there is
    // work.
    bool advance();
    // Waits until the view is exact, or has something everywhere. For pictures without a window.
    void finish(bool exact);
    // What the engine refused, if it did.
    const std::string& problem() const { return problem_; }
    // Tiles finished so far: another number is a reason to draw.
    uint64_t finished_tiles() const { return finished_tiles_; }
    uint32_t workers() const { return workers_; }
    double rows_known() const { return double(known_count_.load()) / double(rows()); }

    // In float32 from q and k, whatever the tiles say; on this thread, about one row's work.
    Result<Derivation> derive(uint64_t row, uint64_t key);

  private:
    struct Job {
        MapTileId id;
        FoveaMapTileDesc tile;
    };
    struct Done {
        MapTileId id;
        bool whole = false;
        MapPixels pixels;
        std::string problem;
    };
    void work();
    Done run(const Job& job);
    Result<void> compute_rows(uint64_t first, uint64_t count);
    Result<void> know_rows_of(const Job& job);
    FoveaHostBuffer host(const std::vector<float>& values, uint64_t first_row) const;
    static void spread(void* user, uint32_t count, FoveaTask task, void* arg);

    LongHead head_;
    MapTiles tiles_;
    std::function<void()> wake_;
    uint32_t workers_;
    std::string problem_;

    // Of the working thread alone.
    std::vector<float> lse_;
    std::vector<uint8_t> known_;
    std::atomic<uint64_t> known_count_{0}, finished_tiles_{0};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Job> job_;  // guarded by mutex_, as the next three
    std::optional<Done> done_;
    bool busy_ = false, ending_ = false;
    std::atomic<bool> cancelled_{false};
    std::thread thread_;
};

}  // namespace fovea::visualizer
