#include "data/autosave.hpp"

#include "data/session_file.hpp"
#include "data/text_file.hpp"

#include <cstdio>
#include <cstdlib>

namespace fovea::visualizer {

Autosave::Autosave() {
    for (const auto& [variable, below] :
         {std::pair{"XDG_STATE_HOME", ""}, {"HOME", ".local/state"}, {"LOCALAPPDATA", ""}}) {
        const char* folder = std::getenv(variable);
        if (!folder || !*folder) continue;
        path_ = std::filesystem::path(folder) / below / "fovea" / "autosave.fovea";
        return;
    }
}

void Autosave::offer(Workbench& bench) {
    std::error_code error;
    if (path_.empty() || !std::filesystem::exists(path_, error)) return;
    std::filesystem::path kept = path_;
    kept.replace_filename("before.fovea");
    std::filesystem::rename(path_, kept, error);
    if (error) return;
    bench.window.restorable = kept.string();
}

// Writing the session as text takes long compared to a frame, so it happens only when it may be saved.
void Autosave::update(const Workbench& bench) {
    if (path_.empty() || !bench.computation.ready() || bench.past.restoring() || !bench.document.can_undo())
        return;
    const auto now = std::chrono::steady_clock::now();
    pending_ = last_ && std::chrono::duration<double>(now - *last_).count() < kIntervalSeconds;
    if (!pending_) write_now(bench);
}

void Autosave::write_now(const Workbench& bench) {
    if (path_.empty()) return;
    pending_ = false;
    last_ = std::chrono::steady_clock::now();
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    std::string text = session_text(bench, path_.parent_path());
    if (text == written_) return;
    written_ = std::move(text);
    (void)write_text_file(path_, written_);
}

void Autosave::end() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove(path_, error);
}

// Where nothing can be kept a tour would come again and again.
bool Autosave::tour_was_ended() const {
    std::error_code error;
    return path_.empty() ||
           std::filesystem::exists(std::filesystem::path(path_).replace_filename("tour"), error);
}

void Autosave::keep_tour_ended() const {
    if (path_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    (void)write_text_file(std::filesystem::path(path_).replace_filename("tour"), "ended\n");
}

std::filesystem::path Autosave::window_settings_path() const {
    return path_.empty() ? path_ : std::filesystem::path(path_).replace_filename("window");
}

Result<WindowSettings> Autosave::read_window() {
    if (path_.empty()) return WindowSettings{};
    Result<WindowSettings> read = read_window_settings(window_settings_path());
    if (read) window_ = *read;
    return read;
}

void Autosave::write_window(const WindowSettings& settings) {
    if (path_.empty() || (window_ && settings == *window_)) return;
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    (void)write_window_settings(window_settings_path(), settings);
    window_ = settings;
}

}  // namespace fovea::visualizer
