// Every part's gradient: the float64 trainer against central differences, the trainer against it.
#include "train/float64_trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fovea::testing_train {
namespace {

// Every part that a model can have is in one of these.
std::vector<Task> tasks_with_every_part() {
    std::vector<Task> tasks;
    for (uint32_t kind = 0; TaskKind(kind) != TaskKind::text; ++kind)
        tasks.push_back(make_task(TaskKind(kind)));
    TaskOptions broken = task_options(TaskKind::induction);
    broken.first_token = false;
    broken.copy_only = true;
    broken.query_key_bias = false;
    broken.positions = Positions::learned;
    tasks.push_back(*make_task(broken));
    return tasks;
}

TEST(Float64Trainer, has_the_gradients_that_central_differences_have) {
    for (const Task& task : tasks_with_every_part()) {
        Float64Trainer trainer(task, 5);
        for (int n = 0; n < 2; ++n) trainer.step();  // away from biases of zero
        Batch batch = training_batch(task, 5, 2);
        batch.rows = 2;  // all that it takes, and quicker
        batch.loss_weights.resize(2u * batch.context);
        std::vector<double> gradient;
        trainer.loss(batch, &gradient);
        std::mt19937 random(11);
        for (const WeightEntry& entry : weight_entries(task.model))
            for (int tries = 0; tries < 3; ++tries) {
                double& weight = trainer.weights[entry.offset + random() % entry.count];
                const double g = gradient[size_t(&weight - trainer.weights.data())], kept = weight,
                             step = 1e-5;
                weight = kept + step;
                const double above = trainer.loss(batch, nullptr);
                weight = kept - step;
                const double below = trainer.loss(batch, nullptr);
                weight = kept;
                EXPECT_NEAR((above - below) / (2 * step), g, 1e-8 * (1 + std::fabs(g)))
                    << task_name(task.options.kind) << ", " << entry.name;
            }
    }
}

TEST(Trainer, has_the_gradients_of_the_float64_trainer) {
    for (const Task& task : tasks_with_every_part()) {
        Result<Trainer> trainer = Trainer::open(task);
        ASSERT_TRUE(trainer) << trainer.error().text;
        TrainState state = start_training(task, 6);
        for (int n = 0; n < 10; ++n) ASSERT_TRUE(trainer->step(state));
        Float64Trainer exact(task, 6);
        exact.weights.assign(state.weights.begin(), state.weights.end());
        std::vector<double> expected;
        exact.loss(training_batch(task, 6, state.step), &expected);
        const Result<std::vector<float>> gradient = trainer->gradient(state);
        ASSERT_TRUE(gradient) << gradient.error().text;
        for (const WeightEntry& entry : weight_entries(task.model)) {
            double largest = 0, error = 0;
            for (size_t n = entry.offset; n < entry.offset + entry.count; ++n) {
                largest = std::max(largest, std::fabs(expected[n]));
                error = std::max(error, std::fabs(expected[n] - (*gradient)[n]));
            }
            // Sums of some hundred rows in float32; a wrong term is as large as the gradient itself.
            EXPECT_LE(error, 5e-6 * largest + 1e-9) << task_name(task.options.kind) << ", " << entry.name;
        }
    }
}

TEST(Trainer, follows_the_loss_curve_of_the_float64_trainer_for_50_steps) {
    for (const TaskKind kind : {TaskKind::induction, TaskKind::reverse}) {
        const Task task = make_task(kind);
        Result<Trainer> trainer = Trainer::open(task);
        ASSERT_TRUE(trainer) << trainer.error().text;
        TrainState state = start_training(task, 9);
        Float64Trainer exact(task, 9);
        double worst = 0;
        for (int n = 0; n < 50; ++n) {
            const Result<StepReport> report = trainer->step(state);
            ASSERT_TRUE(report) << report.error().text;
            worst = std::max(worst, std::fabs(report->objective - exact.step()));
        }
        EXPECT_LE(worst, 1e-4) << task_name(kind);
        RecordProperty(std::string(task_name(kind)) + "_worst", std::to_string(worst));
    }
}

}  // namespace
}  // namespace fovea::testing_train
