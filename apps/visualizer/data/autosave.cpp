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

void Autosave::offer(Session& session) {
    std::error_code error;
    if (path_.empty() || !std::filesystem::exists(path_, error)) return;
    std::filesystem::path kept = path_;
    kept.replace_filename("before.fovea");
    std::filesystem::rename(path_, kept, error);
    if (error) return;
    session.restorable = kept.string();
}

void Autosave::update(const Session& session) {
    if (path_.empty() || !session.ready() || !session.can_undo()) return;
    const auto now = std::chrono::steady_clock::now();
    const std::string text = session_text(session, path_.parent_path());
    pending_ = text != written_;
    if (!pending_ ||
        (!written_.empty() && std::chrono::duration<double>(now - last_).count() < kIntervalSeconds))
        return;
    write_now(session);
}

void Autosave::write_now(const Session& session) {
    if (path_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    written_ = session_text(session, path_.parent_path());
    (void)write_text_file(path_, written_);
    last_ = std::chrono::steady_clock::now();
    pending_ = false;
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

void Autosave::read_layout(Layout& layout) {
    if (path_.empty()) return;
    const Result<std::string> text = read_text_file(std::filesystem::path(path_).replace_filename("layout"));
    Layout read;
    int shown[4] = {1, 1, 1, 0};
    if (!text ||
        std::sscanf(text->c_str(), "%f %f %f %f %f %d %d %d %d", &read.left, &read.right, &read.bottom,
                    &read.tokens, &read.inspector, &shown[0], &shown[1], &shown[2], &shown[3]) < 5)
        return;
    read.left_shown = shown[0] != 0, read.right_shown = shown[1] != 0;
    read.bottom_shown = shown[2] != 0, read.mirrored = shown[3] != 0;
    const auto within = [](float value, float low, float high) { return value >= low && value <= high; };
    if (within(read.left, 200, 520) && within(read.right, 260, 620) && within(read.bottom, 90, 420) &&
        within(read.tokens, 0.15f, 0.8f) && within(read.inspector, 0.2f, 0.85f))
        layout = layout_ = read;
}

void Autosave::write_layout(const Layout& layout) {
    if (path_.empty() || layout == layout_) return;
    char text[160];
    std::snprintf(text, sizeof text, "%.1f %.1f %.1f %.4f %.4f %d %d %d %d\n", double(layout.left),
                  double(layout.right), double(layout.bottom), double(layout.tokens),
                  double(layout.inspector), layout.left_shown, layout.right_shown, layout.bottom_shown,
                  layout.mirrored);
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    (void)write_text_file(std::filesystem::path(path_).replace_filename("layout"), text);
    layout_ = layout;
}

}  // namespace fovea::visualizer
