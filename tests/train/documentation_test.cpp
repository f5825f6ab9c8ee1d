// The code of docs/guides/training.md and docs/concepts/models-as-data.md, which scripts/paste_code.py takes
// from here.
#include <fovea/model.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <string_view>

namespace fovea {
namespace {

TEST(Documentation, a_model_trains_a_step_at_a_time) {
    // [step]
    const Task task = make_task(TaskKind::induction);
    TrainState state = start_training(task, 1);  // a value: a copy of it is all that it takes to rewind
    Result<Trainer> trainer = Trainer::open(task);
    Result<StepReport> report = trainer->step(state);          // loss, accuracy, scores of each head
    Result<Probe> probe = trainer->probe(state, task.sample);  // weights and probabilities on one sequence
    // [end step]
    ASSERT_TRUE(report && probe);
    EXPECT_EQ(state.step, 1u);
    EXPECT_GT(report->loss, 3);
}

TEST(Documentation, a_run_goes_to_the_place_that_a_text_names) {
    // task, seed, step, heads off, sequence
    const Result<TrainingPlace> place = read_training_place("induction,1,15,2,");
    Result<TrainingRun> run = TrainingRun::open(*make_task(place->options), place->seed);
    const Result<void> there = run->seek(place->step, [](const StepReport&) { return true; });
    ASSERT_TRUE(there) << there.error().text;
    EXPECT_EQ(run->state().step, 15u);
}

TEST(Documentation, a_session_is_traced_stage_by_stage) {
    constexpr std::string_view text =
        R"({"format": "fovea-session", "version": 1, "state": {"level": 3, "text": "a b c"}})";
    size_t stages = 0;
    // [trace]
    Result<ReadSession> read = read_session(text);  // read->notes: what was taken otherwise
    Result<SessionModel> made = session_model(read->session);
    Result<Trace> trace = Trace::open(made->model, made->input);
    for (const TraceStage& stage : trace->stages())  // id, formula, heads, rows, columns; nothing is computed
        stages += stage.heads;
    Result<F32Tensor> weights = trace->stage(StageId::weights, 0);  // head 0 of the first layer
    // [end trace]
    ASSERT_TRUE(weights) << weights.error().text;
    EXPECT_EQ(weights->values.size(), 9u);
    EXPECT_GT(stages, 5u);
}

}  // namespace
}  // namespace fovea
