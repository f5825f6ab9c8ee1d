// What a session remembers: the results before, the kept one, and itself over the loss of its device.
#include "data/imported_file.hpp"
#include "model/session.hpp"

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
    if (!complete() || !stats_done_ || behind()) return;
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
    LockedMatrix one;
    const bool layered = settings_.file && settings_.mapping.kind != ImportKind::tables;
    one.name = layered ? head_name(settings_.mapping.layer, view.head)
                       : "level " + std::to_string(settings_.level) + " H" + std::to_string(view.head + 1);
    if (stage().name != "weights") one.name += " " + stage().name;
    one.result = std::make_unique<KeptResult>(
        KeptResult{settings_, projected_.tokens, stages_, view.head, run_, host_buffers_});
    one.stage = view.stage, one.head = view.head;
    ui.locked_tab = int(locked_.size());
    ui.centre = CentreTab::matrix;
    locked_.push_back(std::move(one));
}

void Session::unlock_matrix(size_t tab) {
    if (tab >= locked_.size()) return;
    for (const Stage& stage : locked_[tab].result->stages) released.push_back(stage.buffer->handle());
    retired_.push_back(std::move(locked_[tab].result));
    locked_.erase(locked_.begin() + std::ptrdiff_t(tab));
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
    end_restoring();
    if (settings == settings_) return;
    if (gesture == 0 || gesture != last_gesture_) {
        undo_.push_back(settings_);
        if (undo_.size() > kMostUndo) undo_.erase(undo_.begin());
    }
    last_gesture_ = gesture;
    redo_.clear();
    settings_ = settings;
    dirty_ = true;
}

void Session::undo() {
    end_restoring();
    if (undo_.empty()) return;
    redo_.push_back(settings_);
    settings_ = undo_.back();
    undo_.pop_back();
    last_gesture_ = 0;
    dirty_ = true;
}

void Session::redo() {
    end_restoring();
    if (redo_.empty()) return;
    undo_.push_back(settings_);
    settings_ = redo_.back();
    redo_.pop_back();
    last_gesture_ = 0;
    dirty_ = true;
}

void Session::restore_kept(const Settings& kept, uint32_t head) {
    restoring_ = Restoring{settings_, view, wanted_stage, head};
    settings_ = kept;
    dirty_ = true;
}

void Session::end_restoring() {
    if (!restoring_) return;
    settings_ = restoring_->settings;
    view = restoring_->view;
    wanted_stage = restoring_->stage;
    restoring_.reset();
    dirty_ = true;
}

// A kept result that has been computed anew is kept, and the session's own comes next.
bool Session::go_on_after_kept() {
    if (!restoring_ || behind() || !complete() || !stats_done_) return false;
    const uint32_t head = restoring_->head;
    if (problem_.empty()) keep_result();
    if (kept_ && head < find_stage("weights")->heads) kept_->head = head;
    end_restoring();
    return true;
}

SessionCarry Session::carry() {
    SessionCarry c;
    end_restoring();
    c.settings = settings_;
    c.undo = undo_, c.redo = redo_;
    c.view = view, c.ui = ui;
    c.problems = problems;
    c.theme = theme;
    c.restorable = restorable;
    c.stage = view.stage < stages_.size() ? stages_[view.stage].name : wanted_stage;
    c.tiles_on = tiles_on_;
    if (!locked_.empty()) {
        c.problems.push_back({"tabs", "the locked matrices went with the device", false});
        c.ui.locked_tab = -1;
    }
    if (kept_) c.kept = {kept_->settings, kept_->head};
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
    if (carried.kept) restore_kept(carried.kept->first, carried.kept->second);
}

}  // namespace fovea::visualizer
