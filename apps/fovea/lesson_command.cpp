#include "commands.hpp"

#include "arguments.hpp"
#include "attention_options.hpp"
#include "learned_lesson.hpp"
#include "output_file.hpp"
#include "progress.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect.hpp>
#include <fovea/model/device_runner.hpp>
#include <fovea/model/session.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

namespace fovea::app {
namespace {

constexpr OptionSpec kLessonOptions[] = {
    {"--list", "", "name all lessons"},
    {"--check", "", "compare with the tutorials' printed tables and the recorded tensors"},
    {"--png", "FILE", "draw the lesson's matrices"},
    {"--dark", "", "with --png: on a dark ground"},
    {"--backend", "B", "strict (default: plain float32), auto, cpu, vulkan or reference"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--kernel", "K", "auto (default), plain, staged, flash, ...: not with --backend strict"},
    {"--help", "", "this text"},
};

// Lessons before the first level have none.
const char* level_term(uint32_t level) { return level == 0 ? "" : level_text(int(level)).term.c_str(); }

using Backend = std::unique_ptr<DeviceRunner>;  // null: the strict order

Result<Backend> choose_backend(const Arguments& arguments) {
    const bool names_device = arguments.has("--device");
    const bool is_strict =
        arguments.text("--backend") == "strict" || (!arguments.has("--backend") && !names_device);
    if (is_strict) {
        if (!names_device && !arguments.has("--kernel")) return Backend();
        return Error{FOVEA_INVALID_ARGUMENT, names_device ? "--device" : "--kernel",
                     std::string(names_device ? "--device" : "--kernel") +
                         " cannot be combined with --backend strict; give another backend"};
    }
    const Result<EngineOptions> options = engine_options(arguments);
    if (!options) return options.error();
    const Result<FoveaKernel> kernel =
        arguments.has("--kernel") ? kernel_from_name(arguments.text("--kernel")) : FOVEA_KERNEL_AUTO;
    if (!kernel) return kernel.error();
    return DeviceRunner::open(*options, *kernel);
}

std::string times_text(uint32_t times) {
    return times == 1 ? "once" : times == 2 ? "twice" : std::to_string(times) + " times";
}

void print_stage(const Lesson& lesson, const LessonStage& stage) {
    std::printf("\n%s %s\n", stage.name.c_str(), format_shape(stage.tensor.shape).c_str());
    std::printf("  %s\n%s\n", stage.formula.c_str(), stage.printed.c_str());
    for (const size_t index : stage.table_indices) {
        const PrintedTable& table = lesson.tables[index];
        const bool same = prints_as(table, stage.tensor);
        std::printf("  printed in the tutorial %s%s%s\n", times_text(table.times).c_str(),
                    table.label != stage.name ? (", as " + table.label).c_str() : "",
                    same ? ", digit for digit" : ", with other digits");
        if (!table.note.empty()) print_wrapped("  note: ", table.note);
    }
}

void print_lesson(const Lesson& lesson, const LessonRun& run) {
    std::printf("%s: %s\n", lesson.name.c_str(), lesson.title.c_str());
    std::printf("  level %u, %s; from: %s; backend: %s\n", lesson.level, level_term(lesson.level),
                lesson.tutorial.c_str(), run.backend.c_str());
    print_wrapped("  ", lesson.about);
    for (const std::string& note : lesson.notes) print_wrapped("  note: ", note);
    if (!lesson.tokens.empty()) {
        std::string tokens;
        for (const std::string& token : lesson.tokens) tokens += " " + token;
        std::printf("  tokens:%s\n", tokens.c_str());
    }
    for (const LessonStage& stage : run.stages) print_stage(lesson, stage);
}

// One line for each other backend and driver: how far its values are from `runs`.
void print_other_backends(const std::vector<Lesson>& lessons, const std::vector<LessonRun>& runs) {
    std::printf("\nlargest difference of the other backends from this run\n");
    std::vector<Backend> others;
    others.emplace_back();
    for (const DeviceInfo& device : list_devices()) {
        if (!device.usable) continue;
        EngineOptions options;
        options.backend =
            device.properties.backend == FOVEA_BACKEND_CPU ? BackendChoice::cpu : BackendChoice::vulkan;
        options.device = static_cast<int>(device.number);
        Result<Backend> backend = DeviceRunner::open(options);
        if (backend) {
            others.push_back(std::move(*backend));
        } else {
            std::printf("  %-40s not opened: %s\n", device.name.c_str(), backend.error().text.c_str());
        }
    }
    for (const Backend& other : others) {
        const std::string name = other ? other->name() : "strict";
        if (name == runs.front().backend) continue;
        Progress progress("running the lessons on " + name);
        RunDifference largest;
        std::string failure;
        for (size_t i = 0; i < lessons.size() && failure.empty(); ++i) {
            const Result<LessonRun> run = run_lesson(lessons[i], other.get());
            if (!run) {
                failure = run.error().text;
                break;
            }
            const RunDifference difference = compare_runs(runs[i], *run);
            if (difference.largest > largest.largest) {
                largest = {difference.largest, lessons[i].name + " " + difference.stage};
            }
            progress(static_cast<double>(i + 1) / static_cast<double>(lessons.size()));
        }
        if (!failure.empty()) {
            std::printf("  %-40s failed: %s\n", name.c_str(), failure.c_str());
        } else if (largest.largest == 0.0) {
            std::printf("  %-40s none: the same bits\n", name.c_str());
        } else {
            std::printf("  %-40s %s in %s\n", name.c_str(), format_number(largest.largest, 3).c_str(),
                        largest.stage.c_str());
        }
    }
}

// One line a lesson, what is wrong below it, and the count as the last line. Returns the exit code.
int print_check(const std::vector<Lesson>& lessons, const std::vector<LessonRun>& runs, bool strict) {
    LessonCheck total;
    for (size_t i = 0; i < lessons.size(); ++i) {
        const LessonCheck check = check_lesson(lessons[i], runs[i]);
        std::printf("%-36s %3u of %3u tables digit for digit, %3u of %3u tensors within 2e-6\n",
                    lessons[i].name.c_str(), check.tables_exact, check.tables, check.tensors_within,
                    check.tensors);
        for (const std::string& failure : check.failures) std::printf("  %s\n", failure.c_str());
        total.add(check);
    }
    std::printf("backend: %s\n", runs.front().backend.c_str());
    std::printf("%u of %u tensors within 2e-6 * max(1, |x|); largest difference %s\n", total.tensors_within,
                total.tensors, format_number(total.largest_difference, 3).c_str());
    std::printf("%u of %u printed tables within one unit of the last digit\n", total.tables_within_unit,
                total.tables);
    std::printf("%u of %u printed tables digit for digit\n", total.tables_exact, total.tables);
    const uint32_t tables = strict ? total.tables_exact : total.tables_within_unit;
    return tables == total.tables && total.tensors_within == total.tensors ? 0 : 1;
}

Result<void> write_picture(const Lesson& lesson, const LessonRun& run, const Arguments& arguments) {
    HeatmapStyle style;
    style.dark = arguments.has("--dark");
    const Result<RgbaImage> image = lesson_picture(lesson, run, style);
    if (!image) return image.error();
    return write_picture_file(*image, arguments.text("--png"));
}

void print_list() {
    uint32_t tables = 0;
    const std::vector<Lesson> lessons = list_lessons();
    for (const Lesson& lesson : lessons) {
        uint32_t of_lesson = 0;
        for (const PrintedTable& table : lesson.tables) of_lesson += table.times;
        tables += of_lesson;
        std::printf("%-36s level %u  %3u tables  %s\n", lesson.name.c_str(), lesson.level, of_lesson,
                    lesson.title.c_str());
    }
    std::printf("%zu lessons, %u printed tables\n", lessons.size(), tables);
    list_learned_tasks();
}

void print_lesson_help() {
    std::printf(
        "usage: fovea lesson [NAME|LEVEL|TASK|all] [options]\n\n"
        "The worked examples of five attention tutorials, computed from their seeds and inputs, every stage "
        "printed as\n"
        "the tutorial prints it. Without a name: the walk from scores without weights to trainable weights "
        "(t3-01 to t3-06).\n"
        "TASK is one that a small model learned (%s): what its heads do; "
        "see `fovea train`.\n"
        "NAME as in the list that --list prints (t1-08 is enough); LEVEL 1 to 7:\n",
        known_learned_tasks().c_str());
    for (int level = 1; level <= 7; ++level) {
        const Result<Lesson> lesson = find_lesson(std::to_string(level));
        std::printf("  %d  %-26s %s\n", level, level_term(uint32_t(level)),
                    lesson ? lesson->name.c_str() : "");
    }
    std::printf("\n");
    print_options(kLessonOptions);
    std::printf(
        "\nWith --check the last line is the number of printed tables that came out digit for digit; exit 1 "
        "if the strict\n"
        "backend misses one, or another misses one by more than a unit of its last digit.\n");
}

// The first lessons of one tutorial: "Your journey starts with one step", without weights and with them.
constexpr const char* kWalk[] = {"t3-01", "t3-02", "t3-03", "t3-04", "t3-05", "t3-06"};

Result<std::vector<Lesson>> choose_lessons(const Arguments& arguments) {
    if (arguments.positional().empty()) {
        std::vector<Lesson> walk;
        for (const char* name : kWalk) {
            Result<Lesson> lesson = find_lesson(name);
            if (!lesson) return lesson.error();
            walk.push_back(std::move(*lesson));
        }
        return walk;
    }
    const std::string_view name = arguments.positional()[0];
    if (name == "all") {
        if (arguments.has("--png")) {
            return Error{FOVEA_INVALID_ARGUMENT, "--png",
                         "--png draws one lesson; give a name or a level in place of 'all'"};
        }
        return list_lessons();
    }
    Result<Lesson> lesson = find_lesson(name);
    if (!lesson) return lesson.error();
    return std::vector<Lesson>{std::move(*lesson)};
}

Result<void> check_words(const Arguments& a) {
    const std::vector<std::string_view>& names = a.positional();
    if (names.size() > 1)
        return Error{FOVEA_INVALID_ARGUMENT, std::string(names[1]),
                     "lesson takes one name or level; the second is '" + printable_name(names[1], 40) + "'"};
    if (a.has("--list") && !names.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--list",
                     "--list names every lesson and takes no name; leave out '" +
                         printable_name(names[0], 40) + "' or --list"};
    if (const std::string_view other = a.first_of({"--check", "--png"}); a.has("--list") && !other.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--list",
                     "--list cannot be combined with " + std::string(other)};
    if (a.has("--dark") && !a.has("--png"))
        return Error{FOVEA_INVALID_ARGUMENT, "--dark", "--dark needs --png FILE, the picture that it is for"};
    if (a.has("--png")) return check_writable(a.text("--png"), ".png");
    return {};
}

Result<int> teach(const Arguments& arguments) {
    if (Result<void> ok = check_words(arguments); !ok) return ok.error();
    if (arguments.has("--list")) return print_list(), 0;
    if (!arguments.positional().empty() && is_learned_task(arguments.positional()[0]))
        return teach_task(arguments.positional()[0], arguments);
    const Result<std::vector<Lesson>> lessons = choose_lessons(arguments);
    if (!lessons) return lessons.error();
    const Result<Backend> backend = choose_backend(arguments);
    if (!backend) return backend.error();

    std::vector<LessonRun> runs;
    for (const Lesson& lesson : *lessons) {
        Result<LessonRun> run = run_lesson(lesson, backend->get());
        if (!run) return run.error();
        runs.push_back(std::move(*run));
    }
    if (arguments.has("--png"))
        if (Result<void> ok = write_picture(lessons->back(), runs.back(), arguments); !ok) return ok.error();
    if (arguments.has("--check")) return print_check(*lessons, runs, *backend == nullptr);
    for (size_t i = 0; i < lessons->size(); ++i) {
        if (i != 0) std::printf("\n\n");
        print_lesson((*lessons)[i], runs[i]);
    }
    print_other_backends(*lessons, runs);
    return 0;
}

}  // namespace

int lesson_command(Words words) { return run_command(words, kLessonOptions, print_lesson_help, teach); }

}  // namespace fovea::app
