// Training on a Vulkan device: the same curve, the same goal.
#include "train/float64_trainer.hpp"

#include <fovea/model/device_runner.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace fovea::testing_train {
namespace {

Result<Engine> vulkan_engine() {
    EngineOptions options;
    options.backend = BackendChoice::vulkan;
    return Engine::open(options);
}

bool may_be_missing() { return std::getenv("FOVEA_TEST_DRIVER") == nullptr; }

// Both layers, the norms and the rotation.
TEST(TrainingOnVulkan, follows_the_loss_curve_of_the_float64_trainer) {
    Result<Engine> engine = vulkan_engine();
    if (!engine && may_be_missing()) GTEST_SKIP() << engine.error().text;
    ASSERT_TRUE(engine) << engine.error().text;
    DeviceRunner device(*engine);
    const Task task = make_task(TaskKind::induction);
    Result<Trainer> trainer = Trainer::open(task, &device);
    ASSERT_TRUE(trainer) << trainer.error().text;
    TrainState state = start_training(task, 9);
    Float64Trainer exact(task, 9);
    for (int n = 0; n < 8; ++n) {
        const Result<StepReport> report = trainer->step(state);
        ASSERT_TRUE(report) << report.error().text;
        EXPECT_NEAR(report->objective, exact.step(), 1e-4) << "step " << n;
    }
}

TEST(TrainingOnVulkan, reaches_the_goal_of_reverse) {
    Result<Engine> engine = vulkan_engine();
    if (!engine && may_be_missing()) GTEST_SKIP() << engine.error().text;
    ASSERT_TRUE(engine) << engine.error().text;
    DeviceRunner device(*engine);
    const Task task = make_task(TaskKind::reverse);
    Result<Trainer> trainer = Trainer::open(task, &device);
    ASSERT_TRUE(trainer) << trainer.error().text;
    TrainState state = start_training(task, 1);
    Result<StepReport> report = trainer->evaluate(state);
    while (report && !reaches(*report, task.goal) && state.step < task.goal.within_steps) {
        for (int n = 0; n < 20; ++n) {
            const Result<StepReport> step = trainer->step(state);
            ASSERT_TRUE(step) << step.error().text;
        }
        report = trainer->evaluate(state);
    }
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_TRUE(reaches(*report, task.goal))
        << "accuracy " << report->accuracy << " after " << state.step << " steps";
}

}  // namespace
}  // namespace fovea::testing_train
