#include "learned_lesson.hpp"

#include "output_file.hpp"

#include <fovea/files.hpp>
#include <fovea/inspect/learned_lesson.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace fovea::app {
namespace {

// The three keys that a query looks at most: "e 0.97, o 0.01, v 0.01".
std::string strongest(const LearnedLesson& lesson, const LearnedHead& head, size_t query) {
    const std::span<const float> row = head.weights.row(query);
    std::vector<size_t> keys(query + 1);
    std::iota(keys.begin(), keys.end(), size_t{0});
    std::stable_sort(keys.begin(), keys.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
    keys.resize(std::min<size_t>(keys.size(), 3));
    std::string text;
    for (const size_t key : keys) {
        char number[16];
        std::snprintf(number, sizeof number, "%.2f", double(row[key]));
        text += (text.empty() ? "" : ", ") + lesson.tokens[key] + " (place " + std::to_string(key) + ") " +
                number;
    }
    return text;
}

// A token in a column, whose width counts characters, not bytes.
std::string padded(std::string text, size_t width) {
    const auto characters =
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
    if (size_t(characters) < width) text.append(width - size_t(characters), ' ');
    return text;
}

void print_task(const LearnedLesson& lesson) {
    const LearnedModel& learned = lesson.learned;
    std::printf("%s: %s\n", learned.task.c_str(), learned.title.c_str());
    print_wrapped("  ", learned.about);
    std::string tokens;
    for (const std::string& token : lesson.tokens) tokens += " " + token;
    std::printf("  tokens:%s\n", tokens.c_str());
    std::printf("  weights: %s\n\nwhat to look at\n", learned.made_by.c_str());
    for (const std::string& paragraph : learned.look_at) print_wrapped("  ", paragraph);
    const size_t last = lesson.tokens.size() - 1;
    std::printf("\nwhat the heads do, and where the last token '%s' (place %zu) looks most\n",
                lesson.tokens[last].c_str(), last);
    for (const LearnedHead& head : lesson.heads)
        std::printf("  layer %u, head %u  %-20s %s\n", head.layer, head.head, head.label.c_str(),
                    strongest(lesson, head, last).c_str());
    std::printf("\nwhat the model says after each token\n");
    for (size_t i = 0; i <= last; ++i)
        std::printf("  %s -> %s %.3f\n", padded(lesson.tokens[i], 8).c_str(),
                    padded(lesson.said[i], 8).c_str(), double(lesson.probabilities[i]));
}

}  // namespace

bool is_learned_task(std::string_view name) {
    const std::vector<std::string> tasks = learned_tasks();
    return std::find(tasks.begin(), tasks.end(), name) != tasks.end();
}

void list_learned_tasks() {
    for (const std::string& task : learned_tasks()) {
        const Result<LearnedModel> learned = learned_model(task);
        std::printf("%-36s learned %s\n", task.c_str(), learned ? learned->title.c_str() : "");
    }
}

Result<int> teach_task(std::string_view task, const Arguments& arguments) {
    const std::string_view other = arguments.first_of({"--check", "--backend", "--device", "--kernel"});
    if (!other.empty())
        return Error{FOVEA_INVALID_ARGUMENT, std::string(other),
                     other == "--check"
                         ? "--check compares with a tutorial's printed tables, and '" + std::string(task) +
                               "' is a trained model; give a tutorial's lesson, such as t1-08"
                         : std::string(other) + " needs a tutorial's lesson; '" + std::string(task) +
                               "' is a trained model, which runs on the CPU: leave " + std::string(other) +
                               " out"};
    Result<LearnedModel> learned = learned_model(task);
    if (!learned) return learned.error();
    const Result<LearnedLesson> lesson = learned_lesson(std::move(*learned));
    if (!lesson) return lesson.error();
    print_task(*lesson);
    if (!arguments.has("--png")) return 0;
    HeatmapStyle style;
    style.dark = arguments.has("--dark");
    const Result<RgbaImage> image = learned_picture(*lesson, style);
    if (!image) return image.error();
    if (Result<void> written = write_picture_file(*image, arguments.text("--png")); !written)
        return written.error();
    return 0;
}

Result<void> write_picture_file(const RgbaImage& image, std::string_view path) {
    const Result<Tensor> pixels = make_tensor("picture", FOVEA_U8, {image.height, image.width, 4},
                                              std::as_bytes(std::span(image.rgba)));
    if (!pixels) return pixels.error();
    {
        const HeldInterrupts held;
        const Result<uint64_t> written = save_png(path, *pixels);
        if (!written) return written.error();
    }
    std::printf("wrote: %.*s (%u by %u)\n", int(path.size()), path.data(), image.width, image.height);
    return {};
}

void print_wrapped(const char* indent, std::string_view text) {
    constexpr size_t kColumns = 100;
    size_t column = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (column != 0 && column + 1 + word.size() > kColumns) {
            std::printf("\n");
            column = 0;
        }
        std::printf("%s%.*s", column == 0 ? indent : " ", int(word.size()), word.data());
        column += word.size() + 1;
        at = end + 1;
    }
    std::printf("\n");
}

}  // namespace fovea::app
