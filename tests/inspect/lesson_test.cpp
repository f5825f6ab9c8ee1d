#include <gtest/gtest.h>
#include <fovea/inspect.hpp>
#include <fovea/model.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace fovea {
namespace {

LessonRun run_strictly(const Lesson& lesson) {
    Result<LessonRun> run = run_lesson(lesson);
    if (!run) {
        ADD_FAILURE() << run.error().text;
        return {};
    }
    return std::move(*run);
}

TEST(Lessons, every_table_comes_out_digit_for_digit_in_strict_mode) {
    LessonCheck total;
    for (const Lesson& lesson : list_lessons()) total.add(check_lesson(lesson, run_strictly(lesson)));
    for (const std::string& failure : total.failures) ADD_FAILURE() << failure;
    EXPECT_EQ(total.tables, 133u);
    EXPECT_EQ(total.tables_exact, 133u);
    EXPECT_EQ(total.tables_within_unit, 133u);
    EXPECT_EQ(total.tensors, 455u);
    EXPECT_EQ(total.tensors_within, 455u);
    EXPECT_LE(total.largest_difference, 2e-6);
}

TEST(Lessons, there_are_44_on_seven_levels) {
    std::set<std::string> names;
    std::set<uint32_t> levels;
    size_t printed_numbers = 0;
    for (const Lesson& lesson : list_lessons()) {
        names.insert(lesson.name);
        levels.insert(lesson.level);
        EXPECT_FALSE(lesson.title.empty()) << lesson.name;
        EXPECT_FALSE(lesson.about.empty()) << lesson.name;
        EXPECT_FALSE(lesson.tutorial.empty()) << lesson.name;
        for (const PrintedTable& table : lesson.tables)
            printed_numbers += table.times * table.elements.size();
    }
    EXPECT_EQ(names.size(), 44u);
    EXPECT_EQ(levels, (std::set<uint32_t>{1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(printed_numbers, 3251u);
}

// The recorded normals are those of a C library's float functions; everything else is exact.
// The title of a lesson's picture has only letters that every font has: a title in Chinese was a line of
// boxes.
TEST(Lessons, titles_are_in_latin_letters) {
    for (const Lesson& lesson : list_lessons())
        for (const std::string& text : {lesson.title, lesson.tutorial}) {
            EXPECT_FALSE(text.empty()) << lesson.name;
            for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~') << lesson.name << ": " << text;
        }
}

TEST(Lessons, random_numbers_are_exact_but_for_four_normals) {
    int inexact_normals = 0, masks = 0, tensors = 0;
    for (const Lesson& lesson : list_lessons()) {
        const LessonRun run = run_strictly(lesson);
        for (const auto& [name, recorded] : recorded_tensors(lesson)) {
            const bool is_mask = name.starts_with("keep_");
            const auto draw = std::find_if(lesson.draws.begin(), lesson.draws.end(),
                                           [&, key = name](const Draw& d) { return d.tensor == key; });
            if (!is_mask && draw == lesson.draws.end()) continue;
            (is_mask ? masks : tensors) += 1;
            const LessonStage* stage = run.find(name);
            ASSERT_NE(stage, nullptr) << lesson.name << " " << name;
            for (size_t i = 0; i < recorded.values.size(); ++i) {
                if (stage->tensor.values[i] == recorded.values[i]) continue;
                EXPECT_EQ(lesson.name + " " + name, "t4-01-gpt-attention X") << "element " << i;
                EXPECT_EQ(std::nextafter(recorded.values[i], stage->tensor.values[i]),
                          stage->tensor.values[i]);
                ++inexact_normals;
            }
        }
    }
    EXPECT_EQ(inexact_normals, 4);
    EXPECT_EQ(masks, 14);
    EXPECT_EQ(tensors, 97);
}

TEST(Lessons, the_two_routes_to_a_causal_mask_meet) {
    const LessonRun run = run_strictly(*find_lesson("t3-08"));
    const F32Tensor &after = run.find("masked_simple_norm")->tensor,
                    &before = run.find("causal_weights")->tensor;
    for (size_t i = 0; i < after.values.size(); ++i) EXPECT_NEAR(after.values[i], before.values[i], 1e-6);
    EXPECT_EQ(element_text(before.row(1)[0], Notation::fixed), "0.5517");
    EXPECT_EQ(element_text(before.row(1)[1], Notation::fixed), "0.4483");
}

TEST(Lessons, mean_and_zeros_of_dropped_ones) {
    const F32Tensor dropped = run_strictly(*find_lesson("t0-06")).find("dropped_native")->tensor;
    EXPECT_EQ(std::count(dropped.values.begin(), dropped.values.end(), 0.0f), 2);
    EXPECT_FLOAT_EQ(strict::sum(dropped.values) / 25.0f, 1.15f);
}

TEST(Lessons, stages_carry_formula_and_printed_form) {
    const LessonRun run = run_strictly(*find_lesson("t0-05-causal-mask"));
    EXPECT_EQ(run.backend, "strict");
    EXPECT_EQ(run.find("mask_additive")->printed,
              "tensor([[0., -inf, -inf, -inf, -inf],\n"
              "        [0., 0., -inf, -inf, -inf],\n"
              "        [0., 0., 0., -inf, -inf],\n"
              "        [0., 0., 0., 0., -inf],\n"
              "        [0., 0., 0., 0., 0.]])");
    EXPECT_EQ(run.find("scaled_scores")->formula, "scaled_scores = scores / sqrt(embedding_dim)");
    EXPECT_EQ(run_strictly(*find_lesson("t2-02")).find("W_query")->table_indices,
              (std::vector<size_t>{0, 1, 2}));
    EXPECT_TRUE(run_strictly(*find_lesson("t2-04")).find("mask")->boolean);
    for (const Lesson& lesson : list_lessons()) {
        for (const LessonStage& stage : run_strictly(lesson).stages) {
            EXPECT_TRUE(stage.formula.starts_with(stage.name)) << lesson.name << ": " << stage.formula;
        }
    }
}

TEST(FindLesson, by_name_short_name_and_level) {
    EXPECT_EQ(find_lesson("t1-08-causal-weights")->title, "Causal attention weights, two ways");
    EXPECT_EQ(find_lesson("t1-08")->name, "t1-08-causal-weights");
    for (uint32_t level = 1; level <= 7; ++level) {
        const Result<Lesson> lesson = find_lesson(std::to_string(level));
        ASSERT_TRUE(lesson);
        EXPECT_EQ(lesson->level, level);
    }
}

TEST(FindLesson, refuses_with_names_that_are_near) {
    const Result<Lesson> unknown = find_lesson("t4-02");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().field, "lesson");
    EXPECT_NE(unknown.error().text.find("t4-01-gpt-attention"), std::string::npos) << unknown.error().text;
    EXPECT_FALSE(find_lesson("8"));
    EXPECT_FALSE(find_lesson(""));
}

TEST(CheckLesson, sees_one_digit_and_one_missing_stage) {
    const Result<Lesson> lesson = find_lesson("t1-06");
    LessonRun run = run_strictly(*lesson);
    const LessonCheck good = check_lesson(*lesson, run);
    EXPECT_TRUE(good.failures.empty());

    LessonRun off_by_a_digit = run;
    off_by_a_digit.stages.back().tensor.values[3] += 1e-4f;
    const LessonCheck digit = check_lesson(*lesson, off_by_a_digit);
    EXPECT_EQ(digit.tables_exact + 2, good.tables_exact);  // the tutorial prints this table twice
    EXPECT_EQ(digit.tables_within_unit, good.tables_within_unit);
    EXPECT_EQ(digit.tensors_within + 1, good.tensors_within);
    EXPECT_EQ(digit.failures.size(), 2u);

    LessonRun far_off = run;
    far_off.stages.back().tensor.values[3] += 3e-4f;
    EXPECT_EQ(check_lesson(*lesson, far_off).tables_within_unit + 2, good.tables_within_unit);

    run.stages.pop_back();
    const LessonCheck missing = check_lesson(*lesson, run);
    EXPECT_EQ(missing.tensors_within + 1, good.tensors_within);
    EXPECT_EQ(missing.tables_within_unit + 2, good.tables_within_unit);
}

TEST(CompareRuns, names_the_stage_that_differs_most) {
    LessonRun a = run_strictly(*find_lesson("t1-06")), b = a;
    EXPECT_EQ(compare_runs(a, b).largest, 0.0);
    for (LessonStage& stage : b.stages) {
        if (stage.name == "keys") stage.tensor.values[1] += 0.5f;
        if (stage.name == "scores") stage.tensor.values[1] += 0.25f;
    }
    EXPECT_EQ(compare_runs(a, b).stage, "keys");
    EXPECT_NEAR(compare_runs(a, b).largest, 0.5, 1e-6);
}

}  // namespace
}  // namespace fovea
