// The walks through the levels and the learned tasks, from the table `stories`.
#include <fovea/files/json.hpp>
#include <fovea/model/session.hpp>

#include <algorithm>

#include "model/tables.hpp"

namespace fovea {
namespace {

using Kind = StoryCheck::Kind;

// As an address writes it.
std::string in_address(const JsonValue& value) {
    if (value.kind() == JsonValue::Kind::boolean) return value.boolean() ? "1" : "0";
    std::string text(value.scalar_text());
    std::replace(text.begin(), text.end(), ' ', '+');
    return text;
}

// As write_session writes it.
std::string in_session(const JsonValue& value) { return std::string(value.scalar_text()); }

StoryStep read_step(const JsonValue& row, int level, std::string_view task, size_t number) {
    StoryStep step;
    step.title = row["title"].text();
    step.text = row["text"].text();
    step.instruction = row["try"].text();
    step.sight = row["see"].text();
    std::string address = "v=1&level=" + std::to_string(level) + "&task=" + std::string(task) +
                          "&step=" + std::to_string(number);
    for (const auto& [key, value] : row["show"].members()) address += "&" + key + "=" + in_address(value);
    if (Result<ReadSession> read = read_address(address)) step.shown = std::move(read->session);
    size_t marks = 0;
    for (const JsonValue& mark : row["mark"].items())
        if (marks < step.mark.size()) step.mark[marks++] = uint32_t(mark.number());
    for (const auto& [name, kind] :
         {std::pair{"is", Kind::is}, {"not", Kind::is_not}, {"least", Kind::least}, {"most", Kind::most}})
        for (const auto& [key, value] : row["done"][name].members())
            step.checks.push_back({kind, key, in_session(value)});
    return step;
}

bool holds(const StoryCheck& check, const JsonValue& file) {
    const JsonValue& given = file["state"][check.key];
    if (check.kind == Kind::is) return given.scalar_text() == check.value;
    if (check.kind == Kind::is_not) return given.scalar_text() != check.value;
    const Result<JsonValue> bound = parse_json(check.value);
    if (!bound) return false;
    return check.kind == Kind::least ? given.number() >= bound->number() : given.number() <= bound->number();
}

}  // namespace

bool StoryStep::done(const Session& session) const {
    const Result<JsonValue> file = parse_json(write_session(session));
    return file && std::all_of(checks.begin(), checks.end(),
                               [&](const StoryCheck& check) { return holds(check, *file); });
}

std::vector<StoryStep> story(int level, std::string_view task) {
    const auto levels = model_table("stories")["levels"].items();
    std::vector<StoryStep> steps;
    if (level < 1 || size_t(level) > levels.size()) return steps;
    const JsonValue& rows = task.empty() ? levels[size_t(level - 1)] : model_table("stories")["tasks"][task];
    for (const JsonValue& row : rows.items()) steps.push_back(read_step(row, level, task, steps.size() + 1));
    return steps;
}

}  // namespace fovea
