// The tables of engine/model/tables, as they stand in the library.
#pragma once

#include <fovea/files/json.hpp>

namespace fovea {

// "levels", "session", "stages", "stories" or "learned". The page's engine has neither of the last two: the
// page itself does.
//
// A story is a list of steps for a level, each with what to read (`title`, `text`), session keys over the
// level's own (`show`), the cells it is about (`mark`: first row, first column, last row, last column), one
// thing to do
// (`try`; by the keys `keys`, or `type` written into the control `on`), when it is done (`done`: keys that
// are a value, are `not` a value, `least` or `most`), and what is then to be seen (`see`).
const JsonValue& model_table(std::string_view name);

}  // namespace fovea
