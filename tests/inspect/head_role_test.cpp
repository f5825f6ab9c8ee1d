// Checks sentences about heads, and the stripe that shows one: by a slow search, and in the shipped models.
#include <fovea/inspect/head_role.hpp>
#include <fovea/inspect/learned_lesson.hpp>

#include <fovea/model/session.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fovea {
namespace {

// The longest slanted run through any cell, in the order that longest_stripe() promises.
std::optional<WeightStripe> searched(const std::vector<float>& weights, int rows, int columns) {
    std::optional<WeightStripe> best;
    for (const int step : {1, -1})
        for (int row = 0; row < rows; ++row)
            for (int column = 0; column < columns; ++column) {
                uint32_t length = 0;
                for (int i = row, j = column; i < rows && j >= 0 && j < columns; ++i, j += step) {
                    if (weights[size_t(i * columns + j)] < 0.4f) break;
                    ++length;
                }
                if (length >= 3 && (!best || length > best->length))
                    best = WeightStripe{uint32_t(row), uint32_t(column), length, step};
            }
    return best;
}

TEST(HeadRole, the_longest_stripe_is_found_in_random_matrices) {
    std::mt19937 random(20261129);
    size_t left = 0, right = 0, none = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const int rows = 1 + int(random() % 12), columns = 1 + int(random() % 12);
        const double share = 0.15 + 0.1 * (trial % 5);
        std::vector<float> weights(size_t(rows * columns));
        std::uniform_real_distribution<float> small(0, 0.399f), large(0.4f, 1);
        for (float& weight : weights)
            weight = std::generate_canonical<double, 24>(random) < share ? large(random) : small(random);
        const std::optional<WeightStripe> found = longest_stripe(weights, uint64_t(columns)),
                                          expected = searched(weights, rows, columns);
        ASSERT_EQ(found.has_value(), expected.has_value()) << trial;
        none += !found;
        if (!found) continue;
        EXPECT_EQ(found->row, expected->row) << trial;
        EXPECT_EQ(found->column, expected->column) << trial;
        EXPECT_EQ(found->length, expected->length) << trial;
        EXPECT_EQ(found->step, expected->step) << trial;
        (found->step > 0 ? right : left) += 1;
    }
    EXPECT_GT(left, 20u);
    EXPECT_GT(right, 20u);
    EXPECT_GT(none, 20u);
    EXPECT_FALSE(longest_stripe({}, 0));
}

TEST(HeadRole, every_label_of_the_shipped_models_is_a_sentence_about_the_tasks_tokens) {
    for (const std::string& task : learned_tasks()) {
        const Result<LearnedModel> model = learned_model(task);
        ASSERT_TRUE(model);
        for (const std::string& label : model->head_labels)
            EXPECT_EQ(head_role(label, task).sentence.empty(), label == "no clear role")
                << task << ": " << label;
    }
    EXPECT_EQ(head_role("induction", "induction").sentence,
              "This head looks for what came after the same letter last time");
    EXPECT_EQ(head_role("induction").stripe, "each token finds what followed it last time");
    EXPECT_EQ(head_role("previous token", "text").sentence, "This head looks at the word before");
    EXPECT_EQ(head_role("", "text").sentence, "");
}

// The stripe of the head that copies is on the letters after their first occurrence.
TEST(HeadRole, the_stripe_of_the_shipped_induction_head_is_what_it_says) {
    Result<LearnedModel> model = learned_model("induction");
    ASSERT_TRUE(model);
    const Result<LearnedLesson> lesson = learned_lesson(std::move(*model));
    ASSERT_TRUE(lesson);
    for (const LearnedHead& head : lesson->heads) {
        const std::optional<WeightStripe> stripe = longest_stripe(head.weights.values, lesson->tokens.size());
        if (head.label == "no clear role") continue;
        ASSERT_TRUE(stripe) << head.label;
        EXPECT_GE(stripe->length, 5u);
        for (uint32_t n = 0; n < stripe->length; ++n) {
            const size_t row = stripe->row + n, column = stripe->column + n;
            if (head.label == "induction")
                EXPECT_EQ(lesson->tokens[column - 1], lesson->tokens[row]) << n;
            else
                EXPECT_EQ(column + 1, row) << n;
        }
    }
}

// The head and the cell that the window and the page show first are those that show the job best.
TEST(HeadRole, the_first_head_of_a_shipped_model_is_the_clearest) {
    for (const std::string& task : learned_tasks()) {
        const Session first = level_session(1, task);
        Result<LearnedModel> model = learned_model(task);
        ASSERT_TRUE(model);
        const std::vector<uint32_t> ids = learned_text(*model, first.text).tokens;
        const Result<LearnedLesson> lesson = learned_lesson(std::move(*model), ids);
        ASSERT_TRUE(lesson);
        const size_t head = clearest_head(*lesson);
        EXPECT_EQ(first.head, head) << task;
        const std::span<const float> row = lesson->heads[head].weights.row(first.row);
        EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), ptrdiff_t(first.column)) << task;
        EXPECT_GE(row[first.column], 0.8f) << task;
    }
}

// Against the sum over the named cells, on seeded weights and sequences with repetitions.
TEST(HeadRole, a_job_s_share_is_the_mean_weight_on_its_keys) {
    std::mt19937 random(7);
    for (int trial = 0; trial < 100; ++trial) {
        const size_t count = 4 + random() % 20;
        std::vector<uint32_t> ids(count);
        std::vector<float> weights(count * count);
        for (uint32_t& id : ids) id = random() % 5;
        for (float& weight : weights) weight = float(random() % 1000) / 1000;
        double sum = 0, rows = 0;
        for (size_t i = 1; i < count; ++i) {
            double own = 0;
            bool any = false;
            for (size_t j = 1; j < i; ++j)
                if (ids[j - 1] == ids[i]) own += double(weights[i * count + j]), any = true;
            if (any) sum += own, ++rows;
        }
        EXPECT_NEAR(job_share("induction", weights, ids), rows > 0 ? sum / rows : 0, 1e-6);
        double before = 0;
        for (size_t i = 1; i < count; ++i) before += double(weights[i * count + i - 1]) / double(count - 1);
        EXPECT_NEAR(job_share("previous token", weights, ids), before, 1e-6);
        const std::optional<WeightStripe> stripe = longest_stripe(weights, count);
        double along = 0;
        for (uint32_t n = 0; stripe && n < stripe->length; ++n)
            along += double(
                weights[(stripe->row + n) * count + size_t(int(stripe->column) + int(n) * stripe->step)]);
        EXPECT_NEAR(job_share("mirror image", weights, ids), stripe ? along / stripe->length : 0, 1e-6);
    }
}

TEST(HeadRole, words_start_after_the_spaces_of_the_text) {
    using Texts = std::vector<std::string>;
    using Flags = std::vector<bool>;
    EXPECT_EQ(word_starts("ab Ab", Texts{"<start>", "a", "b", "a", "b"}),
              (Flags{false, false, false, true, false}));
    EXPECT_EQ(word_starts("d1  i10", Texts{"d", "1", "i", "10"}), (Flags{false, false, true, false}));
    EXPECT_EQ(word_starts("a,b ?c", Texts{"a", "b", "c"}), (Flags{false, false, true}));
    EXPECT_EQ(word_starts(" ab c", Texts{"a", "b", "c"}), (Flags{false, false, true}));
    EXPECT_TRUE(word_starts("17 3 29", Texts{"17", "3", "29"}).empty());
    EXPECT_TRUE(word_starts("ab", Texts{"a", "x"}).empty());
    EXPECT_TRUE(word_starts("", {}).empty());
}

TEST(HeadRole, a_picture_of_heads_begins_with_the_sentence) {
    Result<LearnedModel> model = learned_model("induction");
    ASSERT_TRUE(model);
    const Result<LearnedLesson> lesson = learned_lesson(std::move(*model));
    ASSERT_TRUE(lesson);
    const Result<RgbaImage> with = learned_picture(*lesson, {.pixel_ratio = 1});
    const Result<RgbaImage> panels =
        render_heatmaps(learned_panels(*lesson), {.title = "x", .subtitle = "x", .pixel_ratio = 1});
    ASSERT_TRUE(with && panels);
    EXPECT_EQ(with->width, panels->width);
    EXPECT_GT(with->height, panels->height + 150);
    // The arc to the letter that came next last time, and the stripe's frame in each matrix.
    const auto count = [&](const RgbaImage& image, uint8_t r, uint8_t g, uint8_t b) {
        size_t found = 0;
        for (size_t i = 0; i + 3 < image.rgba.size(); i += 4)
            found += image.rgba[i] == r && image.rgba[i + 1] == g && image.rgba[i + 2] == b;
        return found;
    };
    EXPECT_GT(count(*with, 214, 96, 0), 300u);
    EXPECT_EQ(count(*panels, 214, 96, 0), 0u);
    EXPECT_GT(count(*with, 22, 98, 214), 30u);
}

}  // namespace
}  // namespace fovea
