// What a session leaves to threads, so that no frame waits: reading large files, and picks on long maps.
#include "data/imported_file.hpp"
#include "model/attention_inputs.hpp"
#include "model/session.hpp"
#include "model/token_model.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace fovea::visualizer {
namespace {

// From here on reading a file takes longer than a frame.
constexpr uint64_t kLargeFileBytes = 16u << 20;
// From here on a GPT block's projections do: three of 768 x 768 for each token.
constexpr size_t kManyTokens = 32;
// A pick is about so much work for each key and dimension; above, it takes longer than a frame.
constexpr uint64_t kMostPickElements = 1u << 20;
constexpr double kMostLargestFlops = 4e10, kMostLargestAtOnce = 5e7;

bool same_projection(const Settings& a, const Settings& b) {
    return a.file == b.file && (!a.file || a.mapping == b.mapping) && a.scaled == b.scaled &&
           a.text == b.text && a.tokenizer == b.tokenizer && a.level == b.level && a.length == b.length &&
           a.weight_seed == b.weight_seed && a.kv_heads == b.kv_heads && a.rope == b.rope;
}

uint64_t size_of(const ImportedFile& file) {
    uint64_t sum = 0;
    for (const Tensor& t : file.set.tensors) sum += t.bytes.size();
    return sum;
}

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

std::function<void()> Session::wake_after() const {
    return [steps = thread_steps_, wake = wake] {
        ++*steps;
        if (wake) wake();
    };
}

bool Session::open_file(const std::string& path) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (frames_in_flight_ == 0 || error || size < kLargeFileBytes) {
        Result<std::shared_ptr<const ImportedFile>> file = open_import(path);
        const bool opened = bool(file);
        take_file(std::move(file));
        return opened;
    }
    if (coming_file_.valid()) {
        report("file", name_of(path) + ": " + name_of(coming_path_) + " is still being read", false);
        return false;
    }
    coming_path_ = path;
    coming_file_ = std::async(std::launch::async, [path, done = wake_after()] {
        Result<std::shared_ptr<const ImportedFile>> file = open_import(path);
        done();
        return file;
    });
    return false;
}

void Session::take_file(Result<std::shared_ptr<const ImportedFile>> file) {
    const bool was_large = !std::exchange(coming_path_, "").empty();
    if (!file) {
        report(file.error().field, file.error().text, true);
        ui.show(BottomTab::problems);
        return;
    }
    change(settings_for(std::move(*file), settings()));
    ui.centre = CentreTab::matrix;
    if (was_large) ui.open_dialog(Dialog::import_sheet);
}

std::string Session::preparing() const {
    if (coming_file_.valid()) return "reading " + name_of(coming_path_);
    if (!projecting_) return "";
    const Settings& s = projecting_->settings;
    return s.file ? "reading " + name_of(s.file->path) : "projecting the tokens";
}

std::optional<Result<Projected>> Session::projection(const Settings& by) {
    if (projected_by_ && same_projection(*projected_by_, by) && projected_by_->precision == by.precision)
        return Result<Projected>(projected_);
    if (projection_has_come()) {
        Projecting ended = std::move(*projecting_);
        projecting_.reset();
        Result<Projected> projected = ended.future.get();
        if (same_projection(ended.settings, by)) return projected;
    }
    const auto project_all = [](const Settings& s) { return s.file ? project_import(s) : project(s); };
    const bool heavy = by.file ? size_of(*by.file) >= kLargeFileBytes
                               : by.level == 7 && text_tokens(by).size() >= kManyTokens;
    if (frames_in_flight_ == 0 || !heavy) return project_all(by);
    if (projecting_) return {};  // another's, not ended yet
    projecting_ = Projecting{by, std::async(std::launch::async, [by, project_all, done = wake_after()] {
                                 Result<Projected> projected = project_all(by);
                                 done();
                                 return projected;
                             })};
    return {};
}

bool Session::map_is_of_file() const {
    return map && map_source_ && map_source_->file == settings_.file &&
           map_source_->mapping == settings_.mapping && map_source_->head == wanted_map_head_;
}

void Session::open_file_map(const Projected& projected) {
    const bool same_file = map && map_source_ && map_source_->file == settings_.file;
    const MapPlace place = ui.map;
    const auto heads = uint32_t(projected.q.shape[1]);
    if (!same_file) wanted_map_head_ = view.head;
    wanted_map_head_ = std::min(wanted_map_head_, heads - 1);
    LongHead head = long_head(projected, wanted_map_head_, settings_.mapping.divisor);
    head.name = name_of(settings_.file->path);
    open_map(std::move(head));
    map_source_ = MapSource{settings_.file, settings_.mapping, wanted_map_head_};
    if (same_file && place.picked_row < map->rows() && place.picked_key < map->tokens()) ui.map = place;
    if (same_file) return;
    report("map",
           "the file's weights are too many to keep as matrices: head " +
               std::to_string(wanted_map_head_ + 1) + " of " + std::to_string(heads) + " is shown as a map",
           false);
}

void Session::show_map_head(uint32_t head) {
    if (!map || !map_source_ || head >= map->head().heads || head == wanted_map_head_) return;
    wanted_map_head_ = head;
    dirty_ = true;
}

const MapPick* Session::map_pick() {
    if (!map) return nullptr;
    if (has_come(coming_pick_)) {
        map_pick_ = coming_pick_.get();
        if (wanted_largest_) ui.map.picked_row = map_pick_->row, ui.map.picked_key = map_pick_->key;
        wanted_largest_.reset();
    }
    const uint64_t row = ui.map.picked_row, key = ui.map.picked_key;
    if (map_pick_ && map_pick_->row == row && map_pick_->key == key) return &*map_pick_;
    if (coming_pick_.valid()) return nullptr;
    const MapPick* before = map_pick_ ? &*map_pick_ : nullptr;
    if (frames_in_flight_ == 0 || map->tokens() * map->call().dim_qk <= kMostPickElements) {
        map_pick_ = map->pick(row, key, before);
        return &*map_pick_;
    }
    coming_pick_ =
        std::async(std::launch::async, [of = map.get(), row, key, known = map_pick_, done = wake_after()] {
            MapPick pick = of->pick(row, key, known ? &*known : nullptr);
            done();
            return pick;
        });
    return nullptr;
}

void Session::pick_largest(const MapBlock& block) {
    if (!map || coming_pick_.valid()) return;
    const auto middle = [&] {
        ui.map.picked_row = block.first_row + block.rows / 2;
        ui.map.picked_key = block.first_key + block.keys / 2;
    };
    if (map->cost_of(block) > kMostLargestFlops) return middle();
    if (frames_in_flight_ == 0 || map->cost_of(block) <= kMostLargestAtOnce) {
        const auto found = map->largest_of(block);
        if (!found) return middle();
        ui.map.picked_row = found->first, ui.map.picked_key = found->second;
        return;
    }
    wanted_largest_ = block;
    coming_pick_ =
        std::async(std::launch::async, [of = map.get(), block, known = map_pick_, done = wake_after()] {
            const auto found = of->largest_of(block);
            MapPick pick = found ? of->pick(found->first, found->second, known ? &*known : nullptr)
                                 : of->pick(block.first_row, block.first_key);
            done();
            return pick;
        });
}

// Before the map changes or goes: no thread reads it any more.
void Session::forget_pick() {
    if (coming_pick_.valid()) coming_pick_.wait();
    coming_pick_ = {};
    wanted_largest_.reset();
    map_pick_.reset();
}

}  // namespace fovea::visualizer
