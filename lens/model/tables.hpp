// The tables of lens/model/tables, as the library embeds them.
#pragma once

#include <fovea/files/json.hpp>

namespace fovea {

// "levels", "session", "stages", "learned" or "stories". The page's engine has not the last one: the page
// itself does. A row of "learned" has session keys over the level's own (`session`), as a level's row has
// them over the defaults.
//
// A story is a list of steps for a level, each with what to read (`title`, `text`), session keys over the
// level's own (`show`), the cells it is about (`mark`: first row, first column, last row, last column), one
// thing to do
// (`try`; by the keys `keys`, or `type` written into the control `on`), when it is done (`done`: keys that
// are a value, are `not` a value, `least` or `most`), and what is then to be seen (`see`).
const JsonValue& model_table(std::string_view name);

}  // namespace fovea
