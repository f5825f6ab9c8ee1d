// Models that learned a task, opened as published models are.
#include <fovea/model/learned.hpp>
#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace fovea {
namespace {

TEST(LearnedCheckpoint, opens_as_a_model_with_the_logits_and_tokens_of_the_learned_one) {
    size_t with_texts = 0;
    for (const std::string& task : learned_tasks()) {
        SCOPED_TRACE(task);
        const LearnedModel learned = *learned_model(task);
        const Result<TextModel> model = open_text_model(std::filesystem::path(task));
        ASSERT_TRUE(model) << model.error().text;
        const ModelConfig& f = model->weights.config();
        EXPECT_EQ(f.layers, learned.model->blocks.size());
        EXPECT_EQ(f.heads, learned.model->blocks[0].attention.heads);
        EXPECT_EQ(f.rope.has_value(), learned.model->blocks[0].attention.rope.has_value());
        EXPECT_TRUE(model->weights.missing().empty());
        EXPECT_TRUE(model->weights.unread().empty());
        const std::span<const uint32_t> ids =
            std::span(learned.sample).first(std::min<size_t>(20, learned.sample.size()));
        const Result<ModelRun> run = run_model(model->weights, ids);
        ASSERT_TRUE(run) << run.error().text;
        Trace trace = *Trace::open(learned.model, *learned_input(learned, ids));
        const Result<F32Tensor> logits = trace.stage(StageId::logits, 0, trace.layers() - 1);
        ASSERT_TRUE(logits) << logits.error().text;
        ASSERT_EQ(run->logits.shape, logits->shape);
        for (size_t i = 0; i < logits->values.size(); ++i)
            ASSERT_NEAR(run->logits.values[i], logits->values[i], 1e-4f) << "logit " << i;
        EXPECT_EQ(model->tokenizer.has_value(), learned.tokenizer == nullptr);
        if (!model->tokenizer) continue;
        ++with_texts;
        std::string text;
        for (const uint32_t id : ids)
            if (const std::string& word = learned.model->vocabulary[id]; word != "<start>")
                text += (text.empty() ? "" : " ") + word;
        const Result<std::vector<uint32_t>> tokens = model->tokenizer->encode(text);
        ASSERT_TRUE(tokens) << tokens.error().text;
        EXPECT_TRUE(std::ranges::equal(*tokens, ids));
        EXPECT_EQ(model->tokenizer->decode(*tokens), text);
    }
    EXPECT_EQ(with_texts, learned_tasks().size() - 1);
}

TEST(LearnedCheckpoint, other_names_are_paths) {
    EXPECT_TRUE(learned_checkpoint("no such task").empty());
    const Result<CheckpointModel> none = CheckpointModel::open("no such task");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().text, "cannot open no such task: No such file or directory");
}

}  // namespace
}  // namespace fovea
