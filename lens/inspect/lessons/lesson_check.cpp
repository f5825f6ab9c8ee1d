#include <fovea/inspect/lessons.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "files/locale_point.hpp"
#include "inspect/lessons/lesson_data.hpp"

namespace fovea {
namespace {

constexpr double kTolerance = 2e-6;

// One unit of the last digit of a printed number: of "0.1234" 1e-4, of "1.2340e-05" 1e-9. "1." counts as four
// decimals: it is how PyTorch writes 1.0000 when all elements are whole.
double unit_of(const std::string& printed) {
    const size_t exponent = printed.find('e');
    if (exponent == std::string::npos) return 1e-4;
    return 1e-4 * std::pow(10.0, std::atoi(printed.c_str() + exponent + 1));
}

double value_of(const std::string& printed) {
    if (printed == "True") return 1.0;
    if (printed == "False") return 0.0;
    return std::strtod(files::for_strtod(printed).c_str(), nullptr);
}

struct TableCheck {
    bool exact = true, within_unit = true;
    std::string first_failure;
};

TableCheck check_table(const PrintedTable& table, const F32Tensor& tensor) {
    TableCheck check;
    if (table.elements.size() != tensor.values.size()) {
        return {false, false,
                "has " + std::to_string(tensor.values.size()) + " elements, the tutorial prints " +
                    std::to_string(table.elements.size())};
    }
    const bool boolean = table.notation == Notation::boolean;
    const Notation notation = boolean ? Notation::boolean : notation_of(tensor.values);
    for (size_t i = 0; i < table.elements.size(); ++i) {
        const std::string& expected = table.elements[i];
        if (element_text(tensor.values[i], notation) == expected) continue;
        if (check.exact) {
            check.first_failure = "element " + std::to_string(i) + " prints " +
                                  element_text(tensor.values[i], notation) + ", the tutorial " + expected;
        }
        check.exact = false;
        const double ours = value_of(element_text(tensor.values[i], table.notation)),
                     theirs = value_of(expected);
        // A little more than one unit: both are decimals that float64 holds only nearly.
        const bool within = ours == theirs || std::fabs(ours - theirs) <= 1.001 * unit_of(expected);
        check.within_unit = check.within_unit && within;
    }
    return check;
}

// |a - b| / max(1, |b|); infinite where only one is infinite.
double relative_difference(const F32Tensor& ours, const F32Tensor& expected) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    if (ours.shape != expected.shape) return kFar;
    double largest = 0.0;
    for (size_t i = 0; i < ours.values.size(); ++i) {
        const double a = ours.values[i], b = expected.values[i];
        if (a == b) continue;
        const double difference = std::fabs(a - b) / std::max(1.0, std::fabs(b));
        largest = std::isnan(difference) ? kFar : std::max(largest, difference);
    }
    return largest;
}

}  // namespace

bool prints_as(const PrintedTable& table, const F32Tensor& tensor) {
    return check_table(table, tensor).exact;
}

std::vector<std::pair<std::string, F32Tensor>> recorded_tensors(const Lesson& lesson) {
    std::vector<std::pair<std::string, F32Tensor>> tensors;
    for (const EmbeddedFile& file : lesson_expectations()) {
        if (file.name != lesson.name) continue;
        const JsonValue recorded = lesson_json(file);
        for (const auto& [name, value] : recorded.members())
            tensors.emplace_back(name, tensor_from_json(value));
    }
    return tensors;
}

void LessonCheck::add(const LessonCheck& other) {
    tables += other.tables;
    tables_exact += other.tables_exact;
    tables_within_unit += other.tables_within_unit;
    tensors += other.tensors;
    tensors_within += other.tensors_within;
    largest_difference = std::max(largest_difference, other.largest_difference);
    failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

LessonCheck check_lesson(const Lesson& lesson, const LessonRun& run) {
    LessonCheck check;
    for (const PrintedTable& table : lesson.tables) {
        check.tables += table.times;
        const LessonStage* stage = run.find(table.tensor);
        const TableCheck result = stage != nullptr ? check_table(table, stage->tensor)
                                                   : TableCheck{false, false, "there is no such stage"};
        if (result.exact) check.tables_exact += table.times;
        if (result.within_unit) check.tables_within_unit += table.times;
        if (!result.exact)
            check.failures.push_back(lesson.name + ": table " + table.label + ": " + result.first_failure);
    }
    for (const auto& [name, recorded] : recorded_tensors(lesson)) {
        ++check.tensors;
        const LessonStage* stage = run.find(name);
        const double difference = stage != nullptr ? relative_difference(stage->tensor, recorded)
                                                   : std::numeric_limits<double>::infinity();
        check.largest_difference = std::max(check.largest_difference, difference);
        if (difference <= kTolerance) {
            ++check.tensors_within;
        } else {
            check.failures.push_back(
                lesson.name + ": tensor " + name +
                (stage == nullptr ? " is missing" : ": largest difference " + format_number(difference)));
        }
    }
    return check;
}

}  // namespace fovea
