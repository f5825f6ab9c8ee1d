// The task that reads: its tokenizer, which tokens it trains and judges on, and its steps, on a text that the
// tests make up, as the one of the repository's weights is not part of the repository.
#include <fovea/model/trace.hpp>
#include <fovea/thread_pool.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace fovea {
namespace {

// Sentences of a few words in an order that a counter draws, one a line.
std::string made_up_text(uint32_t lines) {
    constexpr const char* kWho[] = {"The king", "His son", "A prophet", "The people of the land", "He"};
    constexpr const char* kDid[] = {"said unto", "went up to", "gave gold to", "sat before"};
    constexpr const char* kWhom[] = {"the house", "the king's daughter", "all the cities", "them that fear"};
    uint32_t state = 12345;
    const auto draw = [&](uint32_t limit) {
        state = state * 1664525u + 1013904223u;
        return (state >> 16) % limit;
    };
    std::string text;
    for (uint32_t n = 0; n < lines; ++n)
        text += std::string(kWho[draw(5)]) + " " + kDid[draw(4)] + " " + kWhom[draw(4)] + ", and " +
                kDid[draw(4)] + " " + kWhom[draw(4)] + ".\n";
    return text;
}

std::shared_ptr<const TrainingText> small_text() {
    static const Result<std::shared_ptr<const TrainingText>> text =
        TrainingText::make(made_up_text(900), 120);
    EXPECT_TRUE(text) << text.error().text;
    return *text;
}

std::vector<uint32_t> numbers(const std::vector<TextToken>& tokens) {
    std::vector<uint32_t> all;
    for (const TextToken& token : tokens) all.push_back(token.token);
    return all;
}

TEST(LearnedTokenizer, joins_the_most_frequent_pair_first) {
    // 'o' 'w' and 'l' 'o' are there as often; of those the pair of older tokens goes first, and letters are
    // numbered in the order of their bytes: l before o. Then the two that are left of it, then with the
    // space.
    std::string text;
    for (int n = 0; n < 2000; ++n) text += "low low\n";
    const Result<std::shared_ptr<const TrainingText>> made = TrainingText::make(text, 10);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ((*made)->tokenizer().vocabulary(),
              (std::vector<std::string>{"<start>", "<unknown>", "l", "o", "w", "\u21b5", "\u2423", "lo",
                                        "low", "\u2423low"}));
    EXPECT_EQ(numbers((*made)->tokenizer().encode("low lo wow")),
              (std::vector<uint32_t>{8, 6, 7, 6, 4, 3, 4}));
}

TEST(LearnedTokenizer, covers_a_text_without_gaps_and_says_it_again) {
    const LearnedTokenizer& tokenizer = small_text()->tokenizer();
    const std::string text = "The king's  son said,\nand 7 \u00e9\xff kings went";
    std::vector<TextToken> tokens = tokenizer.encode(text);
    size_t at = 0;
    for (const TextToken& token : tokens) {
        EXPECT_EQ(token.first_byte, at);
        EXPECT_GT(token.bytes, 0u);
        if (token.token != LearnedTokenizer::kUnknown) {
            EXPECT_EQ(tokenizer.plain(token.token), text.substr(token.first_byte, token.bytes));
        }
        at += token.bytes;
    }
    EXPECT_EQ(at, text.size());
    EXPECT_EQ(std::count_if(tokens.begin(), tokens.end(),
                            [](const TextToken& t) { return t.token == LearnedTokenizer::kUnknown; }),
              3);
    EXPECT_EQ(tokenizer.decode(numbers(tokens)), "The king's  son said,\nand \ufffd \ufffd\ufffd kings went");
    EXPECT_EQ(tokens[0].bytes, 3u);  // "The", a word of the text, is one token
    EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(LearnedTokenizer, refuses_a_vocabulary_that_is_none) {
    const auto refusal = [](std::vector<std::string> words) {
        const Result<LearnedTokenizer> tokenizer = LearnedTokenizer::open(std::move(words));
        return tokenizer ? std::string("opened") : tokenizer.error().text;
    };
    EXPECT_EQ(refusal({"a", "b"}), "vocabulary does not begin with <start> <unknown>");
    EXPECT_EQ(refusal({"<start>", "<unknown>", "a", "a"}), "vocabulary has 'a' twice");
    EXPECT_EQ(refusal({"<start>", "<unknown>", ""}), "vocabulary has no text for token 2");
}

TEST(TrainingText, that_is_too_short_or_has_too_many_characters_is_refused) {
    const auto refusal = [](std::string_view text, uint32_t tokens) {
        const auto made = TrainingText::make(text, tokens);
        return made ? std::string("made") : made.error().text;
    };
    EXPECT_NE(refusal("In the beginning", 100).find("too few to train"), std::string::npos);
    EXPECT_NE(refusal("", 100).find("0 tokens"), std::string::npos);
    EXPECT_EQ(refusal("abcdefgh", 9),
              "text holds 8 different characters, more than fit into a vocabulary of 9");
}

TEST(TrainingText, trains_and_judges_on_tokens_of_different_places) {
    const std::shared_ptr<const TrainingText> text = small_text();
    const uint32_t context = make_text_task(text)->model.context;
    std::set<size_t> trained;
    for (const size_t line : text->training_lines())
        for (size_t place = line; place < line + context; ++place) trained.insert(place);
    for (const size_t line : text->held_out_lines())
        for (size_t place = line; place < line + context; ++place)
            ASSERT_FALSE(trained.contains(place)) << "place " << place;
    EXPECT_GE(text->training_lines().size(), 500u);
}

TEST(TextTask, shows_some_tokens_as_unknown_and_asks_for_those_of_the_text) {
    const Task task = *make_text_task(small_text());
    const Batch batch = training_batch(task, 5, 3);
    size_t unknown = 0;
    for (uint32_t row = 0; row < batch.rows; ++row) {
        const size_t first = size_t(row) * batch.context;
        EXPECT_EQ(batch.tokens[first], LearnedTokenizer::kStart);
        for (uint32_t i = 1; i < batch.context; ++i) {
            const bool hidden = batch.tokens[first + i] == LearnedTokenizer::kUnknown;
            unknown += hidden;
            if (!hidden) {
                EXPECT_EQ(batch.tokens[first + i], batch.targets[first + i - 1]);
            }
            EXPECT_NE(batch.targets[first + i], LearnedTokenizer::kUnknown);
        }
    }
    EXPECT_NEAR(double(unknown), 16 * 127 / 64.0, 20);
    EXPECT_EQ(training_batch(task, 5, 3).tokens, batch.tokens);
    EXPECT_NE(training_batch(task, 5, 4).tokens, batch.tokens);
    for (const uint32_t token : held_out_batch(task, 0).tokens) EXPECT_NE(token, LearnedTokenizer::kUnknown);
}

TEST(TextTask, warms_up_and_cools_down) {
    const TaskRecipe recipe = make_text_task(small_text())->recipe;
    EXPECT_DOUBLE_EQ(recipe.rate(recipe.warm_up_steps / 2), recipe.learning_rate / 2);
    EXPECT_DOUBLE_EQ(recipe.rate(recipe.cooling_from), recipe.learning_rate);
    EXPECT_DOUBLE_EQ(recipe.rate((recipe.cooling_from + recipe.cooling_to) / 2), recipe.learning_rate / 2);
    EXPECT_DOUBLE_EQ(recipe.rate(recipe.cooling_to), recipe.learning_rate / 50);
    EXPECT_DOUBLE_EQ(recipe.rate(recipe.cooling_to + 100), recipe.learning_rate / 50);
    EXPECT_DOUBLE_EQ(make_task(TaskKind::sort).recipe.rate(100000), 2e-2);  // which does not cool
}

// Some steps on one thread; the same on three, in two parts with a file between.
TEST(TextTask, learns_with_the_same_bits_on_any_threads_and_from_a_file) {
    const Task task = *make_text_task(small_text());
    Result<Trainer> trainer = Trainer::open(task);
    ASSERT_TRUE(trainer) << trainer.error().text;
    TrainState state = start_training(task, 2);
    const double before = trainer->evaluate(state)->loss;
    for (int n = 0; n < 12; ++n) ASSERT_TRUE(trainer->step(state));
    const Result<StepReport> after = trainer->evaluate(state);
    ASSERT_TRUE(after) << after.error().text;
    EXPECT_LT(after->loss, before - 0.5);
    EXPECT_EQ(after->heads.size(), 12u);

    ThreadPool pool(3);
    const FoveaParallel parallel = pool.parallel();
    const std::unique_ptr<Runner> device = make_cpu_runner(&parallel, 3);
    Result<Trainer> wide = Trainer::open(task, device.get());
    ASSERT_TRUE(wide) << wide.error().text;
    TrainState parts = start_training(task, 2);
    for (int n = 0; n < 5; ++n) ASSERT_TRUE(wide->step(parts));
    const Result<TensorSet> file = state_tensors(task, parts);
    ASSERT_TRUE(file) << file.error().text;
    Result<TrainState> read = read_state(*file);
    ASSERT_TRUE(read) << read.error().text;
    for (int n = 0; n < 7; ++n) ASSERT_TRUE(wide->step(*read));
    EXPECT_TRUE(*read == state);
}

TEST(TextTask, without_its_text_shows_what_it_learned_and_refuses_to_learn) {
    const Task task = *make_text_task(small_text());
    Result<Trainer> trainer = Trainer::open(task);
    ASSERT_TRUE(trainer) << trainer.error().text;
    TrainState state = start_training(task, 4);
    for (int n = 0; n < 2; ++n) ASSERT_TRUE(trainer->step(state));
    const Result<TensorSet> file = weight_tensors(task, state);
    ASSERT_TRUE(file) << file.error().text;
    const Result<Task> opened = read_task(*file);
    ASSERT_TRUE(opened) << opened.error().text;
    EXPECT_EQ(opened->vocabulary, task.vocabulary);
    TrainState halved = *read_state(*file);
    Result<Trainer> reader = Trainer::open(*opened);
    ASSERT_TRUE(reader) << reader.error().text;
    const std::string refusal =
        "task.text has only a vocabulary; training needs the text that it was learned from";
    const TrainState kept = halved;
    const Result<StepReport> step = reader->step(halved), judged = reader->evaluate(halved);
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().text, refusal);
    ASSERT_FALSE(judged);
    EXPECT_EQ(judged.error().text, refusal);
    EXPECT_TRUE(halved == kept);

    // Every program shows the same results for the same file.
    const Result<LearnedModel> learned = read_learned_model(*file);
    ASSERT_TRUE(learned) << learned.error().text;
    const Result<std::vector<uint32_t>> tokens = learned_tokens(*learned, "The king's son went up");
    ASSERT_TRUE(tokens) << tokens.error().text;
    EXPECT_EQ(tokens->front(), LearnedTokenizer::kStart);
    const Result<Probe> probe = reader->probe(halved, *tokens);
    ASSERT_TRUE(probe) << probe.error().text;
    Result<ModelInput> input = learned_input(*learned, *tokens);
    ASSERT_TRUE(input) << input.error().text;
    Result<Trace> trace = Trace::open(learned->model, std::move(*input));
    ASSERT_TRUE(trace) << trace.error().text;
    const Result<F32Tensor> next = trace->stage(StageId::probabilities, 0, trace->layers() - 1);
    ASSERT_TRUE(next) << next.error().text;
    for (size_t n = 0; n < next->values.size(); ++n)
        ASSERT_NEAR(next->values[n], probe->probabilities[n], 1e-4) << "number " << n;

    const Result<Task> without = make_task(task_options(TaskKind::text));
    ASSERT_FALSE(without);
    EXPECT_EQ(without.error().text, "kind is text, a task that is made of a text; use make_text_task");
}

}  // namespace
}  // namespace fovea
