// Reading a lesson from the library's data.
#pragma once

#include <fovea/files/json.hpp>
#include <fovea/inspect/lessons.hpp>

#include "files/embedded.hpp"

namespace fovea {

// The lessons' data, carried in the library: facts and printed tables of each example, and the tensors to
// compare with. Two tables, so that a program that never compares does not carry the second.
std::span<const EmbeddedFile> lesson_facts();
std::span<const EmbeddedFile> lesson_expectations();

// Parses one of these files; gives a null value if it is not JSON.
JsonValue lesson_json(const EmbeddedFile& file);

// {"shape": [..], "data": [..]}; "-inf" is a string.
F32Tensor tensor_from_json(const JsonValue& value);

// The data was written with the library and is tested as a whole: a lesson that cannot be read is a bug, not
// an input.
Lesson lesson_from_json(const JsonValue& value);

}  // namespace fovea
