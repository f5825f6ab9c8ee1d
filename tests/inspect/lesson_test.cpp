#include <gtest/gtest.h>
#include <fovea/inspect.hpp>

namespace fovea {
namespace {

TEST(Lessons, every_table_comes_out_digit_for_digit_in_strict_mode) {
    StrictExecutor strict;
    LessonCheck total;
    for (const Lesson& lesson : list_lessons()) {
        const Result<LessonRun> run = run_lesson(lesson, strict);
        ASSERT_TRUE(run) << lesson.name << ": " << run.error().text;
        total.add(check_lesson(lesson, *run));
    }
    for (const std::string& failure : total.failures) ADD_FAILURE() << failure;
    EXPECT_EQ(total.tables, 133U);
    EXPECT_EQ(total.tables_exact, 133U);
    EXPECT_EQ(total.tables_within_unit, 133U);
    EXPECT_EQ(total.tensors_within, total.tensors);
    EXPECT_EQ(total.tensors, 391U);
}

}  // namespace
}  // namespace fovea
