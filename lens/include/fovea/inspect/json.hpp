// JSON of traces, lessons and derivations, shared by the C API (<fovea/fovea_inspect.h> documents the
// members) and the page.
#pragma once

#include <fovea/files/json.hpp>
#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/lessons.hpp>
#include <fovea/model/session.hpp>

#include <span>
#include <string>
#include <vector>

namespace fovea {

// JSON has no infinities: they are texts, as is NaN.
std::string number_json(double value);

// A list: `write` makes the JSON of one element.
template <class Range, class Write>
std::string array_json(const Range& range, Write write) {
    std::string out = "[";
    for (const auto& item : range) {
        if (out.size() > 1) out += ',';
        out += write(item);
    }
    return out + "]";
}
// A list of values.
template <class T>
std::string numbers_json(std::span<const T> values) {
    return array_json(values, [](T value) { return number_json(double(value)); });
}
std::string shape_json(const Shape& shape);                     // a list of integers
std::string texts_json(const std::vector<std::string>& texts);  // a list of texts

// "key" and "text" of each.
std::string notes_json(const std::vector<SessionNote>& notes);
// The steps of a derivation as members of an object.
void add_derivation(JsonObject& json, const Derivation& derivation);
// name, title, tutorial, level and number of printed tables of each.
std::string lessons_json(const std::vector<Lesson>& lessons);
// Returns the lesson and each of its printed tables, with the tutorial's strings next to the computed ones.
std::string lesson_json(const Lesson& lesson, const LessonRun& run);

// The lesson with another first seed; as it is where nothing is drawn.
Lesson with_seed(Lesson lesson, uint64_t seed);

}  // namespace fovea
