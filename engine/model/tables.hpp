// The tables of engine/model/tables, as they stand in the library.
#pragma once

#include <fovea/files/json.hpp>

namespace fovea {

// "levels", "session" or "stages".
const JsonValue& model_table(std::string_view name);

}  // namespace fovea
