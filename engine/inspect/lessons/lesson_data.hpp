// Reading a lesson from the library's data.
#pragma once

#include <fovea/inspect/lessons.hpp>

#include "inspect/json.hpp"

namespace fovea {

// {"shape": [..], "data": [..]}; "-inf" is a string.
F32Tensor tensor_from_json(const JsonValue& value);

// The data was written with the library and is tested as a whole: a lesson that cannot be read is a bug, not
// an input.
Lesson lesson_from_json(const JsonValue& value);

}  // namespace fovea
