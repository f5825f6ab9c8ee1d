#include "document/shown_map.hpp"

#include "document/document.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {
namespace {

// A pick is about so much work for each key and dimension; above, it takes longer than a frame.
constexpr uint64_t kMaxPickElements = 1u << 20;
constexpr double kMaxLargestFlops = 4e10, kMaxLargestAtOnce = 5e7;

}  // namespace

ShownMap::~ShownMap() = default;

GpuDevice* ShownMap::tiles_device(bool on_cpu) const {
    const bool software = device_.properties().device_class == FOVEA_CLASS_CPU;
    const bool wanted =
        tiles_on_ == TilesOn::device || (tiles_on_ == TilesOn::automatic && !on_cpu && !software);
    return wanted && device_.has_vulkan() ? &device_ : nullptr;
}

void ShownMap::compute_tiles_on(TilesOn where) {
    if (where == tiles_on_) return;
    tiles_on_ = where;
    wants_update_ = true;
}

void ShownMap::show_head(uint32_t head) {
    if (!head_ || !origin_ || head >= head_->head().heads || head == wanted_file_head_) return;
    wanted_file_head_ = head;
    wants_update_ = true;
}

void ShownMap::open(LongHead head, const Settings& settings, bool on_cpu) {
    forget_pick();
    origin_.reset();
    if (buffers_) buffers_->clear(released_);
    buffers_ = std::make_unique<MapBuffers>(device_);
    const uint64_t rows = head.call.len_q, keys = head.call.len_kv;
    head_ = std::make_unique<LongMap>(std::move(head), settings, tiles_device(on_cpu), background_.wake());
    place = MapPlace{};
    place.picked_row = rows / 2, place.picked_key = std::min(rows, keys) / 2;
    const auto wanted = std::exchange(wanted_place_, std::nullopt);
    if (!wanted || wanted->first != keys) return;
    place = wanted->second;
    place.picked_row = std::min(place.picked_row, rows - 1);
    place.picked_key = std::min(place.picked_key, keys - 1);
}

bool ShownMap::update(const Settings& settings, bool on_cpu) {
    wants_update_ = false;
    const bool opens = wanted_head_ || !wanted_preset_.empty();
    if (wanted_head_) open(*std::exchange(wanted_head_, std::nullopt), settings, on_cpu);
    if (!wanted_preset_.empty()) {
        // Drawing a million tokens takes seconds.
        const auto how = background_.has_frames() ? std::launch::async : std::launch::deferred;
        coming_map_ = std::async(how, [name = std::exchange(wanted_preset_, ""), wake = background_.wake()] {
            Result<LongHead> head = long_preset(name);
            if (wake) wake();
            return head;
        });
        if (!background_.has_frames()) coming_map_.wait();
    }
    forget_pick();
    if (head_ && head_->follow(settings, tiles_device(on_cpu))) buffers_->clear(released_);
    return opens;
}

bool ShownMap::take_coming(const Settings& settings, bool on_cpu) {
    if (!has_come(coming_map_)) return false;
    Result<LongHead> head = coming_map_.get();
    if (!head) {
        problems_.report("map", head.error().text, true);
        return false;
    }
    open(std::move(*head), settings, on_cpu);
    return true;
}

void ShownMap::advance() {
    if (buffers_ && buffers_->full()) buffers_->prune(released_);
    if (head_) head_->advance();
}

bool ShownMap::shows_file_of(const Settings& settings) const {
    return head_ && origin_ && origin_->file == settings.file && origin_->mapping == settings.mapping &&
           origin_->head == wanted_file_head_;
}

void ShownMap::open_file_head(const Projected& projected, const Settings& settings, uint32_t head,
                              bool on_cpu) {
    const bool same_file = head_ && origin_ && origin_->file == settings.file;
    const MapPlace before = place;
    const auto heads = uint32_t(projected.q.shape[0]);
    if (!same_file) wanted_file_head_ = head;
    wanted_file_head_ = std::min(wanted_file_head_, heads - 1);
    LongHead shown = long_head(projected, wanted_file_head_, settings.mapping.divisor);
    shown.name = file_name(settings.file->path);
    open(std::move(shown), settings, on_cpu);
    origin_ = MapOrigin{settings.file, settings.mapping, wanted_file_head_};
    if (same_file && before.picked_row < head_->rows() && before.picked_key < head_->tokens()) place = before;
    if (same_file) return;
    problems_.report("map",
                     "the file's weights are too many to keep as matrices: head " +
                         std::to_string(wanted_file_head_) + " of " + std::to_string(heads) +
                         " is shown as a map",
                     false);
}

const MapPick* ShownMap::pick() {
    if (!head_) return nullptr;
    if (has_come(coming_pick_)) {
        pick_ = coming_pick_.get();
        if (wanted_largest_) place.picked_row = pick_->row, place.picked_key = pick_->key;
        wanted_largest_.reset();
    }
    const uint64_t row = place.picked_row, key = place.picked_key;
    if (pick_ && pick_->row == row && pick_->key == key) return &*pick_;
    if (coming_pick_.valid()) return nullptr;
    const MapPick* before = pick_ ? &*pick_ : nullptr;
    if (!background_.has_frames() || head_->tokens() * head_->call().dim_qk <= kMaxPickElements) {
        pick_ = head_->pick(row, key, before);
        return &*pick_;
    }
    coming_pick_ = std::async(std::launch::async,
                              [of = head_.get(), row, key, known = pick_, done = background_.end_of_step()] {
                                  MapPick pick = of->pick(row, key, known ? &*known : nullptr);
                                  done();
                                  return pick;
                              });
    return nullptr;
}

void ShownMap::pick_largest(const MapBlock& block) {
    if (!head_ || coming_pick_.valid()) return;
    const auto middle = [&] {
        place.picked_row = block.first_row + block.rows / 2;
        place.picked_key = block.first_key + block.keys / 2;
    };
    if (head_->cost_of(block) > kMaxLargestFlops) return middle();
    if (!background_.has_frames() || head_->cost_of(block) <= kMaxLargestAtOnce) {
        const auto found = head_->largest_of(block);
        if (!found) return middle();
        place.picked_row = found->first, place.picked_key = found->second;
        return;
    }
    wanted_largest_ = block;
    coming_pick_ = std::async(
        std::launch::async, [of = head_.get(), block, known = pick_, done = background_.end_of_step()] {
            const auto found = of->largest_of(block);
            MapPick pick = found ? of->pick(found->first, found->second, known ? &*known : nullptr)
                                 : of->pick(block.first_row, block.first_key);
            done();
            return pick;
        });
}

// Before the map changes or goes: no thread reads it any more.
void ShownMap::forget_pick() {
    if (coming_pick_.valid()) coming_pick_.wait();
    coming_pick_ = {};
    wanted_largest_.reset();
    pick_.reset();
}

ShownMap::Carry ShownMap::carry() const {
    Carry c{{}, {}, place, tiles_on_};
    if (head_) c.head = head_->head(), c.origin = origin_;
    return c;
}

void ShownMap::take(Carry carried, const Settings& settings, bool on_cpu) {
    tiles_on_ = carried.tiles_on;
    if (carried.head) open(std::move(*carried.head), settings, on_cpu);
    origin_ = std::move(carried.origin);
    if (origin_) wanted_file_head_ = origin_->head;
    place = carried.place;
}

}  // namespace fovea::visualizer
