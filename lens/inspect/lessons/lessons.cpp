#include <fovea/inspect/lessons.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "inspect/lessons/lesson_data.hpp"

namespace fovea {
namespace {

// The lesson of each level.
constexpr std::array<std::string_view, 7> kLevelLessons = {
    "t1-04-all-tokens",        "t1-06-self-attention-v1",
    "t1-08-causal-weights",    "t2-03-causal-attention-dropout",
    "t1-12-two-heads-stacked", "t1-15-multi-head",
    "t4-01-gpt-attention"};

Lesson read(const EmbeddedFile& file) { return lesson_from_json(lesson_json(file)); }

// "t1-08" of "t1-08-causal-weights".
std::string_view short_name(std::string_view name) { return name.substr(0, 5); }

Error unknown(std::string_view name) {
    std::string text =
        "lesson is '" + std::string(name) + "'; it must be a level from 1 to 7, a task or a name";
    size_t shown = 0;
    for (const EmbeddedFile& file : lesson_facts()) {
        const bool same_tutorial = name.size() >= 2 && file.name.substr(0, 2) == name.substr(0, 2);
        if (same_tutorial) {
            text += (shown++ == 0 ? ": " : ", ") + std::string(file.name);
        }
    }
    if (shown == 0) text += " such as t1-08 (`fovea lesson --list` names all)";
    return Error{FOVEA_INVALID_ARGUMENT, "lesson", text};
}

}  // namespace

const LessonStage* LessonRun::find(std::string_view name) const {
    const auto found =
        std::find_if(stages.begin(), stages.end(), [&](const auto& s) { return s.name == name; });
    return found != stages.end() ? &*found : nullptr;
}

std::vector<Lesson> list_lessons() {
    std::vector<Lesson> lessons;
    for (const EmbeddedFile& file : lesson_facts()) lessons.push_back(read(file));
    return lessons;
}

Result<Lesson> find_lesson(std::string_view name_or_level) {
    std::string_view name = name_or_level;
    if (name.size() == 1 && name[0] >= '1' && name[0] <= '7') {
        name = kLevelLessons[static_cast<size_t>(name[0] - '1')];
    }
    for (const EmbeddedFile& file : lesson_facts()) {
        if (file.name == name || short_name(file.name) == name) return read(file);
    }
    return unknown(name_or_level);
}

RunDifference compare_runs(const LessonRun& a, const LessonRun& b) {
    RunDifference difference;
    for (const LessonStage& stage : a.stages) {
        const LessonStage* other = b.find(stage.name);
        if (other == nullptr || other->tensor.shape != stage.tensor.shape) {
            return {std::numeric_limits<double>::infinity(), stage.name};
        }
        for (size_t i = 0; i < stage.tensor.values.size(); ++i) {
            const double x = stage.tensor.values[i], y = other->tensor.values[i];
            // Equal infinities have no difference; anything that compares false (NaN) has the largest.
            const double distance = x == y ? 0.0 : std::fabs(x - y);
            if (!(distance <= difference.largest)) {
                difference = {std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance,
                              stage.name};
            }
        }
    }
    return difference;
}

}  // namespace fovea
