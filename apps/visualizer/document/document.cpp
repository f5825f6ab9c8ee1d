#include "document/document.hpp"

#include <filesystem>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr size_t kMaxUndo = 200;

}  // namespace

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void Document::change(const Settings& settings, uint64_t gesture) {
    if (settings == settings_) return;
    if (gesture == 0 || gesture != last_gesture_) {
        undo_.push_back(settings_);
        if (undo_.size() > kMaxUndo) undo_.erase(undo_.begin());
    }
    last_gesture_ = gesture;
    redo_.clear();
    settings_ = settings;
    ++revision_;
}

void Document::step(std::vector<Settings>& from, std::vector<Settings>& to) {
    if (from.empty()) return;
    to.push_back(std::exchange(settings_, std::move(from.back())));
    from.pop_back();
    last_gesture_ = 0;
    ++revision_;
}

void Document::go_on_from(History history) {
    settings_ = std::move(history.settings);
    undo_ = std::move(history.undo), redo_ = std::move(history.redo);
    ++revision_;
}

Document::Opened Document::open_file(const std::string& path) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (!background_.has_frames() || error || size < kLargeFileBytes) return take(open_import(path));
    if (reads_file()) {
        problems_.report("file", file_name(path) + ": " + coming_file() + " is still being read", false);
        return Opened::no;
    }
    coming_path_ = path;
    coming_file_ = std::async(std::launch::async, [path, done = background_.end_of_step()] {
        Result<std::shared_ptr<const ImportedFile>> file = open_import(path);
        done();
        return file;
    });
    return Opened::later;
}

Document::Opened Document::take_read_file() {
    return has_come(coming_file_) ? take(coming_file_.get()) : take(coming_model_.get());
}

Document::Opened Document::open_model(const std::string& path) {
    if (!background_.has_frames()) return take(visualizer::open_model(path));
    if (reads_file()) {
        problems_.report("file", file_name(path) + ": " + coming_file() + " is still being read", false);
        return Opened::no;
    }
    coming_path_ = path;
    coming_model_ = std::async(std::launch::async, [path, done = background_.end_of_step()] {
        Result<std::shared_ptr<const OpenedModel>> model = visualizer::open_model(path);
        done();
        return model;
    });
    return Opened::later;
}

Document::Opened Document::take(Result<std::shared_ptr<const OpenedModel>> model) {
    if (!model) {
        problems_.report(model.error().field.empty() ? "model" : model.error().field, model.error().text,
                         true);
        return Opened::no;
    }
    const OpenedModel& opened = **model;
    if (!opened.tokenizer)
        problems_.report("model",
                         opened.name + ": " + opened.why_no_text + ", so that token IDs from 0 to " +
                             std::to_string(opened.weights.config().vocabulary - 1) +
                             " are typed in the place of words",
                         false);
    change(model_settings(std::move(*model), settings_));
    return Opened::yes;
}

Document::Opened Document::take(Result<std::shared_ptr<const ImportedFile>> file) {
    if (!file) {
        problems_.report(file.error().field, file.error().text, true);
        return Opened::no;
    }
    change(settings_for(std::move(*file), settings_));
    return Opened::yes;
}

}  // namespace fovea::visualizer
