// The document that the reader edits: the settings with their tensors, and the undo history. Nothing here
// computes.
#pragma once

#include "document/background.hpp"
#include "document/imported_file.hpp"
#include "document/opened_model.hpp"
#include "document/problems.hpp"
#include "document/settings.hpp"

#include <future>
#include <memory>
#include <string>
#include <vector>

namespace fovea::visualizer {

// The file's name without its folder.
std::string file_name(const std::string& path);

class Document {
  public:
    Document(const Background& background, Problems& problems)
        : background_(background), problems_(problems) {}

    const Settings& settings() const { return settings_; }
    // The settings before go to the undo stack. Edits within one gesture (a slider's drag) are one step: pass
    // the same `gesture`, not 0.
    void change(const Settings& settings, uint64_t gesture = 0);
    bool can_undo() const { return !undo_.empty(); }
    bool can_redo() const { return !redo_.empty(); }
    void undo() { step(undo_, redo_); }
    void redo() { step(redo_, undo_); }
    // Another number whenever the settings have become other ones.
    uint64_t revision() const { return revision_; }

    // Settings with those before and after them, for a document that goes on from here.
    struct History {
        Settings settings;
        std::vector<Settings> undo, redo;
    };
    History history() const { return {settings_, undo_, redo_}; }
    void go_on_from(History history);

    // Opens a file of tensors; an error becomes a line of the problems. Where there are frames, a large file
    // is read by a thread: then the answer is `later`, and take_read_file() opens it once file_has_come().
    enum class Opened { yes, no, later };
    Opened open_file(const std::string& path);
    // The same of a published model, which a thread always opens: its tokenizer takes a moment.
    Opened open_model(const std::string& path);
    bool reads_file() const { return coming_file_.valid() || coming_model_.valid(); }
    bool file_has_come() const { return has_come(coming_file_) || has_come(coming_model_); }
    Opened take_read_file();
    // The name of the file that a thread reads; empty: none.
    std::string coming_file() const { return reads_file() ? file_name(coming_path_) : ""; }

  private:
    void step(std::vector<Settings>& from, std::vector<Settings>& to);
    Opened take(Result<std::shared_ptr<const ImportedFile>> file);
    Opened take(Result<std::shared_ptr<const OpenedModel>> model);

    const Background& background_;
    Problems& problems_;
    Settings settings_;
    std::vector<Settings> undo_, redo_;
    uint64_t last_gesture_ = 0, revision_ = 0;
    std::future<Result<std::shared_ptr<const ImportedFile>>> coming_file_;
    std::future<Result<std::shared_ptr<const OpenedModel>>> coming_model_;
    std::string coming_path_;
};

}  // namespace fovea::visualizer
