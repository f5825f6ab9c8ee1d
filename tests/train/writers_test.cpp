// Why the heads of trained models attend.
#include <fovea/inspect/writers.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fovea {
namespace {

// Trained as the library's own model is; see made_by of its file.
TEST(WritersOfSeeds, an_induction_weight_is_the_querys_token_by_what_the_previous_token_head_wrote) {
    const Task task = make_task(TaskKind::induction);
    for (uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Result<Trainer> trainer = Trainer::open(task);
        ASSERT_TRUE(trainer) << trainer.error().text;
        TrainState state = start_training(task, seed);
        while (state.step < 600) ASSERT_TRUE(trainer->step(state));
        const Result<StepReport> report = trainer->evaluate(state);
        ASSERT_TRUE(report) << report.error().text;
        const Result<LearnedModel> learned = state_model(task, state);
        ASSERT_TRUE(learned) << learned.error().text;
        const uint32_t heads = uint32_t(report->heads.size()) / 2;
        const auto has_role = [&](uint32_t layer, uint32_t head, HeadScore role) {
            const HeadLabel label = head_label(report->heads[layer * heads + head]);
            return label.named && label.score == role;
        };
        const Batch batch = held_out_batch(task, 1);
        size_t seen = 0, largest = 0;
        for (uint32_t row = 0; row < 4; ++row) {
            const std::vector<uint32_t> ids(batch.tokens.begin() + row * batch.context,
                                            batch.tokens.begin() + (row + 1) * batch.context);
            Result<Trace> trace = Trace::open(learned->model, *learned_input(*learned, ids));
            ASSERT_TRUE(trace) << trace.error().text;
            for (uint32_t head = 0; head < heads; ++head) {
                if (!has_role(1, head, HeadScore::induction)) continue;
                const Result<F32Tensor> weights = trace->stage(StageId::weights, head, 1);
                ASSERT_TRUE(weights) << weights.error().text;
                for (uint64_t query = 0; query < ids.size(); ++query)
                    for (uint64_t key = 1; key < query; ++key) {
                        if (ids[key - 1] != ids[query] || weights->row(query)[key] < 0.5f) continue;
                        const Result<ScoreWriters> of = score_writers(*trace, ids, {1, head, query, key});
                        ASSERT_TRUE(of) << of.error().text;
                        const WriterEntry top = largest_entries(*of, 1)[0];
                        const Writer &asks = of->writers[top.query_writer],
                                     &wrote = of->writers[top.key_writer];
                        ++seen;
                        largest += top.value > 0 && asks.kind == Writer::Kind::token &&
                                   wrote.kind == Writer::Kind::head &&
                                   has_role(0, wrote.head, HeadScore::previous);
                    }
            }
        }
        EXPECT_GT(seen, 100u);
        EXPECT_EQ(largest, seen);
    }
}

}  // namespace
}  // namespace fovea
