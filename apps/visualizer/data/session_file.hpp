// Sessions as .fovea files: JSON in the format that docs/reference/sessions.md describes, shared with the
// page.
#pragma once

#include "document/workbench.hpp"

#include <filesystem>

namespace fovea::visualizer {

// `folder`: of the session file, which paths of tensors are relative to. Tensors that came without a file are
// embedded. A published model is named by its path, with what is changed of its heads.
std::string session_text(const Workbench& bench, const std::filesystem::path& folder);
Result<void> save_session(const Workbench& bench, const std::filesystem::path& path);
// Names visible results that no session keeps: "the weights trained here"; empty: nothing.
std::string session_left_out(const Workbench& bench);

// Changes settings (one undo step) and view to the session's; after an error nothing is changed. Values out
// of range count as absent, unknown keys are skipped.
Result<void> read_session(Workbench& bench, std::string_view text, const std::filesystem::path& folder);
// Sets one key of session files as an address writes it: ("temp", "5"), ("mask", "window"). Files and models
// stay; a step of undo, or of the `gesture` that it is a part of. An invalid value is rejected, or reported
// among the problems.
Result<void> set_session_key(Workbench& bench, std::string_view key, std::string_view value,
                             uint64_t gesture = 0);
Result<void> open_session(Workbench& bench, const std::filesystem::path& path);
// A session by its extension, else tensors; what is rejected goes to the Problems panel.
bool open_any(Workbench& bench, const std::string& path);

}  // namespace fovea::visualizer
