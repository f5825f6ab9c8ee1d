// Runs of the small models: that they learn what they should, and that a step is a function of its state.
#include <fovea/thread_pool.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace fovea {
namespace {

Trainer trainer_for(const Task& task, TrainDevice* device = nullptr) {
    Result<Trainer> trainer = Trainer::open(task, device);
    EXPECT_TRUE(trainer) << trainer.error().text;
    return std::move(*trainer);
}

void take_steps(Trainer& trainer, TrainState& state, uint32_t count) {
    for (uint32_t n = 0; n < count; ++n) {
        const Result<StepReport> report = trainer.step(state);
        ASSERT_TRUE(report) << report.error().text;
    }
}

StepReport judged(Trainer& trainer, const TrainState& state) {
    const Result<StepReport> report = trainer.evaluate(state);
    EXPECT_TRUE(report) << report.error().text;
    return *report;
}

// Two seeds in every run; FOVEA_TRAIN_SEEDS=10 tries as many.
uint64_t seeds_tried() {
    const char* count = std::getenv("FOVEA_TRAIN_SEEDS");
    return count ? std::strtoull(count, nullptr, 10) : 2;
}

// The first step, of every tenth one, at which the goal is reached; one more than the goal's where it is not
// by then.
uint32_t steps_to_goal(const Task& task, uint64_t seed) {
    Trainer trainer = trainer_for(task);
    TrainState state = start_training(task, seed);
    while (state.step <= task.goal.within_steps) {
        if (reaches(judged(trainer, state), task.goal)) return state.step;
        take_steps(trainer, state, 10);
    }
    return task.goal.within_steps + 1;
}

class Learning : public testing::TestWithParam<TaskKind> {};

TEST_P(Learning, reaches_the_goal_of_the_task_with_every_seed) {
    const Task task = make_task(GetParam());
    for (uint64_t seed = 0; seed < seeds_tried(); ++seed) {
        const uint32_t steps = steps_to_goal(task, seed);
        RecordProperty("steps_of_seed_" + std::to_string(seed), std::to_string(steps));
        EXPECT_LE(steps, task.goal.within_steps) << task_name(GetParam()) << ", seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Tasks, Learning,
                         testing::Values(TaskKind::induction, TaskKind::sort, TaskKind::reverse,
                                         TaskKind::recall),
                         [](const auto& tested) { return std::string(task_name(tested.param)); });

TEST(Step, depends_on_the_state_alone) {
    const Task task = make_task(TaskKind::reverse);
    Trainer trainer = trainer_for(task), other = trainer_for(task);
    TrainState state = start_training(task, 7);
    take_steps(trainer, state, 5);
    const TrainState kept = state;
    take_steps(trainer, state, 5);
    // Rewound, after other work on the same trainer, and on a trainer of its own.
    TrainState unrelated = start_training(task, 8);
    take_steps(trainer, unrelated, 3);
    TrainState again = kept;
    take_steps(trainer, again, 5);
    EXPECT_TRUE(again == state);
    TrainState elsewhere = kept;
    take_steps(other, elsewhere, 5);
    EXPECT_TRUE(elsewhere == state);
    EXPECT_FALSE(unrelated.weights == start_training(task, 8).weights);
}

TEST(Step, gives_the_same_bits_for_any_number_of_threads) {
    const Task task = make_task(TaskKind::induction);
    Trainer alone = trainer_for(task);
    TrainState expected = start_training(task, 3);
    take_steps(alone, expected, 4);
    for (const uint32_t workers : {2u, 5u}) {
        ThreadPool pool(workers);
        const FoveaParallel parallel = pool.parallel();
        const std::unique_ptr<TrainDevice> device = make_cpu_train_device(&parallel, workers);
        Trainer trainer = trainer_for(task, device.get());
        TrainState state = start_training(task, 3);
        take_steps(trainer, state, 4);
        EXPECT_TRUE(state == expected) << workers << " workers";
    }
}

TEST(State, taken_up_again_from_a_file_goes_on_as_if_never_stopped) {
    const Task task = make_task(TaskKind::recall);
    Trainer trainer = trainer_for(task);
    TrainState state = start_training(task, 1234567890123456789u);
    take_steps(trainer, state, 3);
    const Result<TensorSet> file = state_tensors(state);
    ASSERT_TRUE(file) << file.error().text;
    Result<TrainState> read = read_state(*file);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_TRUE(*read == state);
    take_steps(trainer, state, 3);
    take_steps(trainer, *read, 3);
    EXPECT_TRUE(*read == state);
}

}  // namespace
}  // namespace fovea
