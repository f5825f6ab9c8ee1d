#include <fovea/inspect/json.hpp>

#include <cmath>
#include <utility>

namespace fovea {
namespace {

template <class T>
std::string column_json(const std::vector<T>& terms, float T::*member) {
    return array_json(terms, [member](const T& term) { return number_json(term.*member); });
}

std::string table_json(const PrintedTable& table, const LessonRun& run, uint32_t& exact) {
    const LessonStage* stage = run.find(table.tensor);
    std::vector<std::string> ours;
    if (stage)
        for (const float value : stage->tensor.values) ours.push_back(element_text(value, table.notation));
    const bool equal = ours == table.elements;
    exact += equal ? table.times : 0;
    return JsonObject()
        .text("label", table.label)
        .text("tensor", table.tensor)
        .text("note", table.note)
        .number("times", table.times)
        .boolean("exact", equal)
        .text("formula", stage ? stage->formula : "")
        .raw("shape", shape_json(stage ? stage->tensor.shape : Shape{}))
        .raw("theirs", texts_json(table.elements))
        .raw("ours", texts_json(ours))
        .done();
}

// The first of the draws that sets a seed; past the last where nothing is drawn.
size_t first_seed(const Lesson& lesson) {
    size_t n = 0;
    while (n < lesson.draws.size() && lesson.draws[n].kind != Draw::Kind::manual_seed) ++n;
    return n;
}

}  // namespace

std::string number_json(double value) {
    if (std::isfinite(value)) return json_number(value);
    return std::isnan(value) ? "\"nan\"" : value < 0 ? "\"-inf\"" : "\"inf\"";
}
std::string shape_json(const Shape& shape) { return numbers_json(std::span<const uint64_t>(shape)); }
std::string texts_json(const std::vector<std::string>& texts) {
    return array_json(texts, [](const std::string& text) { return json_string(text); });
}

std::string notes_json(const std::vector<SessionNote>& notes) {
    return array_json(notes, [](const SessionNote& note) {
        return JsonObject().text("key", note.key).text("text", note.text).done();
    });
}

void add_derivation(JsonObject& json, const Derivation& d) {
    json.text("hiddenBy", d.hidden_by)
        .raw("q", column_json(d.terms, &DerivationTerm::q))
        .raw("k", column_json(d.terms, &DerivationTerm::k))
        .raw("products", column_json(d.terms, &DerivationTerm::product))
        .raw("running", column_json(d.terms, &DerivationTerm::running_sum))
        .raw("v", column_json(d.values, &DerivationValue::value))
        .raw("contributions", column_json(d.values, &DerivationValue::contribution))
        .raw("context", column_json(d.values, &DerivationValue::context))
        .boolean("hasDropout", d.has_dropout)
        .boolean("kept", d.kept)
        .number("visibleKeys", d.visible_keys);
    const std::pair<const char*, float> numbers[] = {
        {"dot", d.dot},
        {"score", d.score},
        {"capped", d.capped},
        {"alibi", d.alibi},
        {"masked", d.masked},
        {"rowMax", d.row_max},
        {"lse", d.lse},
        {"exponential", d.exponential},
        {"denominator", d.denominator},
        {"weight", d.weight},
        {"finalWeight", d.has_dropout ? d.dropped_weight : d.weight}};
    for (const auto& [key, value] : numbers) json.raw(key, number_json(value));
}

std::string lessons_json(const std::vector<Lesson>& lessons) {
    return array_json(lessons, [](const Lesson& lesson) {
        uint32_t tables = 0;
        for (const PrintedTable& table : lesson.tables) tables += table.times;
        return JsonObject()
            .text("name", lesson.name)
            .text("title", lesson.title)
            .text("tutorial", lesson.tutorial)
            .number("level", lesson.level)
            .number("tables", tables)
            .done();
    });
}

Lesson with_seed(Lesson lesson, uint64_t seed) {
    if (const size_t first = first_seed(lesson); first < lesson.draws.size())
        lesson.draws[first].value = seed;
    return lesson;
}

std::string lesson_json(const Lesson& lesson, const LessonRun& run) {
    uint32_t exact = 0, tables = 0;
    const std::string list = array_json(lesson.tables, [&](const PrintedTable& table) {
        tables += table.times;
        return table_json(table, run, exact);
    });
    const size_t seeded = first_seed(lesson);
    return JsonObject()
        .text("name", lesson.name)
        .text("title", lesson.title)
        .text("tutorial", lesson.tutorial)
        .text("about", lesson.about)
        .number("seed", seeded < lesson.draws.size() ? double(lesson.draws[seeded].value) : -1)
        .raw("notes", texts_json(lesson.notes))
        .raw("list", list)
        .number("tables", tables)
        .number("exact", exact)
        .done();
}

}  // namespace fovea
