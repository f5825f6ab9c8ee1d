// The lessons on every backend: each table within one unit of its last printed digit, each tensor within the
// tolerance.
#include <gtest/gtest.h>
#include <fovea/inspect.hpp>
#include <fovea/model/device_runner.hpp>

#include <cstdlib>
#include <string_view>

namespace fovea {
namespace {

// Every `step`th lesson; of 1 all of them.
void expect_lessons(Engine& engine, FoveaKernel kernel, size_t step = 1) {
    DeviceRunner runner(engine, kernel);
    LessonCheck total;
    size_t number = 0;
    for (const Lesson& lesson : list_lessons()) {
        if (number++ % step != 0) continue;
        const Result<LessonRun> run = run_lesson(lesson, &runner);
        ASSERT_TRUE(run) << run.error().text;
        total.add(check_lesson(lesson, *run));
    }
    EXPECT_GE(total.tables, 133u / (2 * step));
    if (step == 1) {
        EXPECT_EQ(total.tables, 133u);
    }
    EXPECT_EQ(total.tables_within_unit, total.tables);
    EXPECT_EQ(total.tensors_within, total.tensors);
    if (total.tables_within_unit != total.tables || total.tensors_within != total.tensors) {
        for (const std::string& failure : total.failures) ADD_FAILURE() << failure;
    }
    std::printf("%s, kernel %s: %u of %u tables digit for digit, %u within one unit; largest difference %s\n",
                runner.name().c_str(), kernel_name(kernel), total.tables_exact, total.tables,
                total.tables_within_unit, format_number(total.largest_difference).c_str());
}

TEST(LessonsOnCpu, every_table_within_one_unit) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::cpu, .cpu_threads = 2});
    ASSERT_TRUE(engine) << engine.error().text;
    for (const FoveaKernel kernel : {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE}) {
        expect_lessons(*engine, kernel);
    }
}

TEST(LessonsOnVulkan, every_table_within_one_unit) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan, .validation = true});
    if (!engine && std::getenv("FOVEA_TEST_DRIVER") == nullptr) GTEST_SKIP() << engine.error().text;
    ASSERT_TRUE(engine) << engine.error().text;
    // The lessons try arithmetic rather than drivers: all of them on one, some on the others.
    const char* driver = std::getenv("FOVEA_TEST_DRIVER");
    const size_t step = driver == nullptr || std::string_view(driver) == "lavapipe26" ? 1 : 8;
    expect_lessons(*engine, FOVEA_KERNEL_AUTO, step);
    expect_lessons(*engine, FOVEA_KERNEL_STAGED, step);
    for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
}

}  // namespace
}  // namespace fovea
