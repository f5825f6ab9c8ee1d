// Runs of the small models: that they learn what they should, and that a step is a function of its state.
#include <fovea/thread_pool.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace fovea {
namespace {

Trainer trainer_for(const Task& task, Runner* device = nullptr) {
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

class Learning : public testing::TestWithParam<uint32_t> {};

TEST_P(Learning, reaches_the_goal_of_the_task_with_every_seed) {
    const Task task = make_task(TaskKind(GetParam()));
    for (uint64_t seed = 0; seed < seeds_tried(); ++seed) {
        const uint32_t steps = steps_to_goal(task, seed);
        RecordProperty("steps_of_seed_" + std::to_string(seed), std::to_string(steps));
        EXPECT_LE(steps, task.goal.within_steps) << task_name(task.options.kind) << ", seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Tasks, Learning, testing::Range(0u, uint32_t(TaskKind::text)),
                         [](const auto& tested) { return std::string(task_name(TaskKind(tested.param))); });

TEST(Step, depends_on_the_state_alone) {
    const Task task = make_task(TaskKind::reverse);
    Trainer trainer = trainer_for(task), other = trainer_for(task);
    TrainState state = start_training(task, 7);
    take_steps(trainer, state, 5);
    const TrainState kept = state;
    take_steps(trainer, state, 5);
    // Rewound, after other work on the same trainer, and on a new trainer.
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
        const std::unique_ptr<Runner> device = make_cpu_runner(&parallel, workers);
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

// ---- places in a run ----

TEST(TrainingPlace, what_is_written_is_read_again) {
    for (const char* text : {"induction,1,0,0,", "induction+nostart+copy,7,150,2,q c d q",
                             "induction+nobias+learned,0,99999,15,", "reverse+rotary,4294967295,1,1,c b a",
                             "sort+rotary,3,300,0,", "recall,2,20,3,"}) {
        const Result<TrainingPlace> place = read_training_place(text);
        ASSERT_TRUE(place) << text << ": " << place.error().text;
        EXPECT_EQ(write_training_place(*place), text);
    }
    // Parts that are left out have their first values.
    EXPECT_EQ(write_training_place(*read_training_place("sort")), "sort,1,0,0,");
    const TrainingPlace place = *read_training_place("induction+nostart,9,40,2,q, c");
    EXPECT_FALSE(place.options.first_token);
    EXPECT_EQ(place.seed, 9u);
    EXPECT_EQ(place.step, 40u);
    EXPECT_EQ(place.heads_off, 2u);
    EXPECT_EQ(place.tokens, "q, c");
}

TEST(TrainingPlace, what_cannot_be_one_is_refused_by_name) {
    const std::pair<const char*, const char*> bad[] = {{"", "one of"},
                                                       {"juggling,1", "juggling"},
                                                       {"text,1", "text"},
                                                       {"sort+nostart", "first_token"},
                                                       {"induction+quickly", "quickly"},
                                                       {"sort,-1", "seed"},
                                                       {"sort,4294967296", "seed"},
                                                       {"sort,1,100001", "step"},
                                                       {"sort,1,1.5", "step"},
                                                       {"sort,1,1,x", "ablated heads"}};
    for (const auto& [text, word] : bad) {
        const Result<TrainingPlace> place = read_training_place(text);
        ASSERT_FALSE(place) << text;
        EXPECT_NE(place.error().text.find(word), std::string::npos) << text << ": " << place.error().text;
    }
}

// More states than are kept: forward, back over dropped ones, and forward to where the run was.
TEST(TrainingRun, any_step_is_reached_with_the_bits_of_the_first_time) {
    Result<TrainingRun> run = TrainingRun::open(make_task(TaskKind::reverse), 5);
    ASSERT_TRUE(run) << run.error().text;
    std::vector<TrainState> states = {run->state()};
    std::vector<uint32_t> told;
    const auto tell = [&](const StepReport& report) { return told.push_back(report.step), true; };
    for (uint32_t n = 0; n < 300; ++n) {
        ASSERT_TRUE(run->seek(n + 1, tell));
        states.push_back(run->state());
    }
    EXPECT_EQ(told.size(), 300u);
    for (const uint32_t step : {300u, 151u, 152u, 7u, 0u, 299u, 300u}) {
        ASSERT_TRUE(run->seek(step, tell));
        EXPECT_TRUE(run->state() == states[step]) << step;
    }
    // Whoever is told may end it.
    ASSERT_TRUE(run->seek(350, [](const StepReport& report) { return report.step < 309; }));
    EXPECT_EQ(run->state().step, 310u);
    run->begin(6);
    EXPECT_TRUE(run->state() == start_training(run->task(), 6));
}

}  // namespace
}  // namespace fovea
