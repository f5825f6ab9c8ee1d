// What a session remembers: the results before, the kept one, and itself over the loss of its device.
#include "data/imported_file.hpp"
#include "model/session.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostUndo = 200;

}  // namespace

const Stage* KeptResult::find_stage(std::string_view name) const {
    for (const Stage& stage : stages)
        if (stage.name == name) return &stage;
    return nullptr;
}

std::string KeptResult::title() const {
    const std::string from =
        settings.file ? std::filesystem::path(settings.file->path).filename().string() : settings.text;
    return "level " + std::to_string(settings.level) + ", \xe2\x80\x9c" + from + "\xe2\x80\x9d, " +
           std::string(precision_name(settings.precision)) + " on the " +
           (run->on_cpu() ? "processor" : "device");
}

uint64_t KeptResult::size_bytes() const {
    uint64_t sum = run->input_bytes() + run->output_bytes() + run->workspace_bytes();
    for (const auto& buffer : host_buffers) sum += buffer->size_bytes();
    return sum;
}

void Session::keep_result() {
    if (complete() && stats_done_ && !behind()) keep_present();
}

void Session::keep_present() {
    drop_kept();
    kept_ = std::make_unique<KeptResult>(
        KeptResult{settings_, projected_.tokens, stages_, view.head, run_, host_buffers_});
}

void Session::drop_kept() {
    if (!kept_) return;
    for (const Stage& stage : kept_->stages) released.push_back(stage.buffer->handle());
    retired_.push_back(std::move(kept_));
}

void Session::lock_matrix() {
    if (!complete() || !stats_done_ || behind()) return;
    if (locked_.size() == kMostLocked)
        return report("tabs", "six matrices are locked: unlock one first", false);
    lock_present(view.stage, view.head);
    ui.locked_tab = int(locked_.size()) - 1;
    ui.centre = CentreTab::matrix;
}

void Session::lock_present(size_t stage, uint32_t head) {
    LockedMatrix one;
    const bool layered = settings_.file && settings_.mapping.kind != ImportKind::tables;
    one.name = layered ? head_name(settings_.mapping.layer, head)
                       : "level " + std::to_string(settings_.level) + " H" + std::to_string(head + 1);
    if (stages_[stage].name != "weights") one.name += " " + stages_[stage].name;
    one.result = std::make_unique<KeptResult>(
        KeptResult{settings_, projected_.tokens, stages_, head, run_, host_buffers_});
    one.stage = stage, one.head = head;
    locked_.push_back(std::move(one));
}

void Session::unlock_matrix(size_t tab) {
    if (tab >= locked_.size()) return;
    for (const Stage& stage : locked_[tab].result->stages) released.push_back(stage.buffer->handle());
    retired_.push_back(std::move(locked_[tab].result));
    locked_.erase(locked_.begin() + ptrdiff_t(tab));
    if (ui.locked_tab >= int(tab)) --ui.locked_tab;
}

Shown Session::shown() const {
    if (ui.centre == CentreTab::matrix && ui.locked_tab >= 0 && size_t(ui.locked_tab) < locked_.size()) {
        const LockedMatrix& one = locked_[size_t(ui.locked_tab)];
        return {&one.result->stages[one.stage], one.head, one.result->run.get(), &one.result->tokens};
    }
    return {&stage(), view.head, run_.get(), &projected_.tokens};
}

void Session::swap_kept() {
    if (!kept_ || !complete() || !stats_done_ || behind()) return;
    const Settings kept = kept_->settings;
    const uint32_t head = kept_->head;
    keep_result();
    view.head = head;
    change(kept);
}

void Session::change(const Settings& settings, uint64_t gesture) {
    Settings& own = own_settings();
    if (settings == own) return;
    if (gesture == 0 || gesture != last_gesture_) {
        undo_.push_back(own);
        if (undo_.size() > kMostUndo) undo_.erase(undo_.begin());
    }
    last_gesture_ = gesture;
    redo_.clear();
    own = settings;
    settings_changed();
}

void Session::undo() {
    if (undo_.empty()) return;
    redo_.push_back(std::exchange(own_settings(), undo_.back()));
    undo_.pop_back();
    last_gesture_ = 0;
    settings_changed();
}

void Session::redo() {
    if (redo_.empty()) return;
    undo_.push_back(std::exchange(own_settings(), redo_.back()));
    redo_.pop_back();
    last_gesture_ = 0;
    settings_changed();
}

std::string Session::own_stage() const {
    if (restoring_) return restoring_->stage;
    return view.stage < stages_.size() ? stages_[view.stage].name : wanted_stage;
}

std::vector<PastResult> Session::past() const {
    std::vector<PastResult> all;
    if (kept_) all.push_back({kept_->settings, kept_->head, false, {}});
    for (const LockedMatrix& one : locked_)
        all.push_back({one.result->settings, one.head, true, one.result->stages[one.stage].name});
    if (restoring_) all.insert(all.end(), restoring_->past.begin(), restoring_->past.end());
    return all;
}

void Session::restore(std::vector<PastResult> past) {
    end_restoring();
    if (past.empty()) return;
    const auto locks = [](const PastResult& one) { return one.locked; };
    if (std::any_of(past.begin(), past.end(), locks))
        while (!locked_.empty()) unlock_matrix(locked_.size() - 1);
    Settings first = past[0].settings;
    restoring_ = Restoring{std::move(past), std::exchange(settings_, std::move(first)), view, wanted_stage,
                           ui.locked_tab};
    ui.locked_tab = -1;
    dirty_ = true;
}

void Session::end_restoring() {
    if (!restoring_) return;
    settings_ = restoring_->settings;
    view = restoring_->view;
    wanted_stage = restoring_->stage;
    ui.locked_tab = std::min(restoring_->locked_tab, int(locked_.size()) - 1);
    restoring_.reset();
    dirty_ = true;
}

// What has been computed again is kept or locked, and the next comes; at last the session's own. One that was
// refused has left its reason among the problems.
bool Session::go_on_restoring() {
    if (!restoring_ || dirty_ || projecting_) return false;
    const bool refused = !problem_.empty();
    if (!refused && !(complete() && stats_done_)) return false;
    std::vector<PastResult>& past = restoring_->past;
    do {
        const PastResult one = past.front();
        past.erase(past.begin());
        if (refused) continue;
        const auto found = std::find_if(stages_.begin(), stages_.end(),
                                        [&](const Stage& s) { return is_stage(s.name, one.stage); });
        const size_t stage = size_t(found - stages_.begin());
        if (!one.locked) {
            keep_present();
            kept_->head = std::min(one.head, uint32_t(find_stage("weights")->heads) - 1);
        } else if (stage < stages_.size() && locked_.size() < kMostLocked) {
            lock_present(stage, std::min(one.head, uint32_t(stages_[stage].heads) - 1));
        } else {
            report(
                "tabs",
                "a locked matrix is gone: its result has no stage \xe2\x80\x9c" + one.stage + "\xe2\x80\x9d",
                false);
        }
    } while (!past.empty() && past.front().settings == settings_);
    if (past.empty()) {
        end_restoring();
    } else {
        settings_ = past.front().settings;
        dirty_ = true;
    }
    return true;
}

SessionCarry Session::carry() {
    SessionCarry c;
    c.past = past();
    c.stage = own_stage();
    const int tab = restoring_ ? restoring_->locked_tab : ui.locked_tab;
    end_restoring();
    c.settings = settings_;
    c.undo = undo_, c.redo = redo_;
    c.view = view, c.ui = ui;
    c.ui.locked_tab = tab;
    c.problems = problems;
    c.theme = theme;
    c.restorable = restorable;
    c.tiles_on = tiles_on_;
    if (map) c.map = map->head();
    if (map) c.map_source = map_source_;
    return c;
}

void Session::take(SessionCarry carried) {
    settings_ = std::move(carried.settings);
    undo_ = std::move(carried.undo), redo_ = std::move(carried.redo);
    view = carried.view;
    problems = std::move(carried.problems);
    theme = carried.theme;
    restorable = carried.restorable;
    wanted_stage = carried.stage;
    tiles_on_ = carried.tiles_on;
    dirty_ = true;
    if (carried.map) open_map(std::move(*carried.map));
    map_source_ = carried.map_source;
    if (map_source_) wanted_map_head_ = map_source_->head;
    ui = carried.ui;
    restore(std::move(carried.past));
}

}  // namespace fovea::visualizer
