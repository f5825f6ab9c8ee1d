// The long head that is looked at as a map: where it comes from, who computes its tiles, the buffers that
// they are drawn from, the place that is seen and the picked weight.
#pragma once

#include "document/background.hpp"
#include "document/imported_file.hpp"
#include "document/long_map.hpp"
#include "document/problems.hpp"
#include "matrix/map_buffers.hpp"

#include <future>
#include <optional>
#include <utility>

namespace fovea::visualizer {

// The device that computes the map's tiles. Automatic: the GPU if it is hardware and also computes the rest.
// A software driver has only the CPU's time, which the CPU backend uses better.
enum class TilesOn { automatic, device, processor };

// Where the map is looked at, in cells.
struct MapPlace {
    double row = 0, key = 0;   // in the middle of the view
    double cells_a_pixel = 0;  // 0: fit
    uint64_t picked_row = 0, picked_key = 0;
    bool largest = false;  // the largest weight of a pixel instead of its mass
};

// Which head of which file a map shows, and how the file was read.
struct MapOrigin {
    std::shared_ptr<const ImportedFile> file;
    ImportMapping mapping;
    uint32_t head = 0;
};

class ShownMap {
  public:
    ShownMap(GpuDevice& device, const Background& background, Problems& problems,
             std::vector<VkBuffer>& released)
        : device_(device), background_(background), problems_(problems), released_(released) {}
    ~ShownMap();

    // The head that is shown; null: none.
    LongMap* head() const { return head_.get(); }
    explicit operator bool() const { return head_ != nullptr; }
    MapBuffers* buffers() const { return buffers_.get(); }
    MapPlace place;

    // Each of these is there from the next frame on. A preset's tokens are drawn by a thread where there are
    // frames meanwhile.
    void want_preset(std::string_view name) { wanted_preset_ = name; }
    void want(LongHead head) { wanted_head_ = std::move(head); }
    // Where the next map is looked at, if it has so many keys.
    void want_place(uint64_t tokens, const MapPlace& wanted) { wanted_place_ = {tokens, wanted}; }
    // Another head of the file whose map is shown.
    void show_head(uint32_t head);
    void compute_tiles_on(TilesOn where);
    TilesOn tiles_on() const { return tiles_on_; }
    // The queries and keys of a preset are being drawn.
    bool is_coming() const { return coming_map_.valid(); }

    // The picked cell, derived, and its row; null while a thread computes them, which it does where they
    // would hold up a frame.
    const MapPick* pick();
    const Derivation* derivation() {
        const MapPick* p = pick();
        return p && p->derivation ? &*p->derivation : nullptr;
    }
    // Moves the pick to the largest weight of a block, at once or some frames later.
    void pick_largest(const MapBlock& block);

    bool threads_work() const { return coming_pick_.valid() || coming_map_.valid(); }
    bool threads_ended() const { return has_come(coming_pick_) || has_come(coming_map_); }
    // The settings are to be followed, or what is wanted to be opened.
    bool wants_update() const { return wants_update_ || wanted_head_ || !wanted_preset_.empty(); }
    // Frames in flight must have ended before the next update.
    bool needs_idle() const {
        return wants_update() || has_come(coming_map_) || (buffers_ && buffers_->full());
    }

    // Opens what is wanted and follows the settings; true if a map was opened or begun.
    bool update(const Settings& settings, bool on_cpu);
    // A preset that a thread has drawn; true if it was opened.
    bool take_coming(const Settings& settings, bool on_cpu);
    // Takes the tiles that have ended and hands out the next one.
    void advance();

    // True if the settings' file is already shown.
    bool shows_file_of(const Settings& settings) const;
    // Shows a head of a file whose weights are too many to be kept: `head` where it is not shown yet.
    void open_file_head(const Projected& projected, const Settings& settings, uint32_t head, bool on_cpu);

    // The state that another device continues from.
    struct Carry {
        std::optional<LongHead> head;
        std::optional<MapOrigin> origin;
        MapPlace place;
        TilesOn tiles_on = TilesOn::automatic;
    };
    Carry carry() const;
    void take(Carry carried, const Settings& settings, bool on_cpu);

  private:
    void open(LongHead head, const Settings& settings, bool on_cpu);
    GpuDevice* tiles_device(bool on_cpu) const;
    void forget_pick();

    GpuDevice& device_;
    const Background& background_;
    Problems& problems_;
    std::vector<VkBuffer>& released_;
    std::unique_ptr<LongMap> head_;
    std::unique_ptr<MapBuffers> buffers_;
    TilesOn tiles_on_ = TilesOn::automatic;
    bool wants_update_ = false;
    std::string wanted_preset_;
    std::optional<LongHead> wanted_head_;
    std::optional<std::pair<uint64_t, MapPlace>> wanted_place_;
    std::future<Result<LongHead>> coming_map_;
    std::optional<MapOrigin> origin_;
    uint32_t wanted_file_head_ = 0;
    std::optional<MapPick> pick_;
    std::future<MapPick> coming_pick_;  // ends before the map that it reads
    std::optional<MapBlock> wanted_largest_;
};

}  // namespace fovea::visualizer
