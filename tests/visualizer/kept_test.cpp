// A result kept as A: it stays while the session changes, is undone and redone; its difference to the present
// one follows from the two results' values; a result of another shape is rejected with a message.
#include "document/comparison.hpp"
#include "visualizer_fixture.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

using KeptTest = VisualizerTest;

std::vector<float> weights_of(const Stage& stage, uint32_t head) {
    const std::span<const float> values = stage.head_values(head);
    return {values.begin(), values.end()};
}

TEST_F(KeptTest, a_kept_result_stays_through_changes_undo_and_redo) {
    bench->document.change(level_settings(2));
    compute();
    show("weights");
    const std::vector<float> full = weights_of(bench->stage(), 0);
    bench->past.keep();
    ASSERT_NE(bench->past.kept(), nullptr);
    bench->document.change(level_settings(3));
    compute();
    show("weights");
    const std::vector<float> causal = weights_of(bench->stage(), 0);
    ASSERT_NE(full, causal);
    const auto expect_kept = [&] {
        const Comparison c = comparison_of(*bench);
        ASSERT_EQ(c.why_not, "");
        EXPECT_EQ(weights_of(*c.a, c.head_a), full);
    };
    expect_kept();
    bench->document.undo();
    compute();
    show("weights");
    EXPECT_EQ(weights_of(bench->stage(), 0), full);
    expect_kept();
    bench->document.redo();
    compute();
    show("weights");
    EXPECT_EQ(weights_of(bench->stage(), 0), causal);
    expect_kept();

    const Comparison c = comparison_of(*bench);
    const HeadDifference d = difference_of(*c.a, c.head_a, *c.b, c.head_b, 1);
    double largest = 0, sum = 0, divergence = 0;
    for (size_t i = 0; i < full.size(); ++i) {
        const double difference = std::abs(double(full[i]) - double(causal[i]));
        largest = std::max(largest, difference), sum += difference;
        if (i / 6 != 1) continue;
        const double middle = (double(full[i]) + double(causal[i])) / 2;
        for (const double p : {double(full[i]), double(causal[i])})
            if (p > 0) divergence += p * std::log(p / middle) / 2;
    }
    EXPECT_DOUBLE_EQ(d.largest, largest);
    EXPECT_NEAR(d.mean, sum / 36, 1e-12);
    EXPECT_NEAR(d.jensen_shannon, divergence, 1e-12);
    EXPECT_GT(d.jensen_shannon, 0.1);
    EXPECT_EQ(std::abs(double(full[d.row * 6 + d.column]) - double(causal[d.row * 6 + d.column])), largest);
    EXPECT_FALSE(same_cells_hidden(*c.a, 0, *c.b, 0));

    bench->past.swap();
    compute();
    show("weights");
    EXPECT_EQ(weights_of(bench->stage(), 0), full);
    EXPECT_EQ(weights_of(*bench->past.kept()->result->find_stage(StageId::weights), 0), causal);
    bench->past.drop_kept();
    EXPECT_TRUE(bench->needs_idle());
    compute();
    EXPECT_FALSE(bench->needs_idle());
}

TEST_F(KeptTest, another_shape_is_refused_in_words_and_sentences_of_one_length_are_not) {
    bench->document.change(level_settings(5));
    compute();
    bench->past.keep();
    Settings settings = bench->document.settings();
    settings.text = "My long road ended after noon";
    bench->document.change(settings);
    compute();
    show("weights");
    EXPECT_EQ(comparison_of(*bench).why_not, "");
    EXPECT_EQ(bench->past.kept()->result->tokens().at(1), "journey");
    settings.text = "Two words";
    bench->document.change(settings);
    compute();
    show("weights");
    EXPECT_NE(comparison_of(*bench).why_not.find("6 x 6"), std::string::npos);
    bench->past.drop_kept();
    EXPECT_EQ(bench->past.kept(), nullptr);
    EXPECT_EQ(comparison_of(*bench).why_not, "");  // for two heads again
}

TEST_F(KeptTest, pictures_of_a_kept_result_in_each_way) {
    std::vector<std::vector<std::byte>> pictures;
    for (const CompareHow how : {CompareHow::side, CompareHow::triangle, CompareHow::difference}) {
        Options o;
        o.level = 3;
        o.against = "2";
        o.show = {"compare", "memory"};
        o.how = how;
        o.width = 1200, o.height = 720;
        const Tensor image = picture_of(o, folder);
        std::vector<std::byte> bytes(image.bytes.begin(), image.bytes.end());
        for (const auto& other : pictures) EXPECT_NE(bytes, other);
        pictures.push_back(std::move(bytes));
    }
    Options o;
    o.against = "9";
    o.describe = true;
    o.validation = true;  // as the fixture's device: they share the functions that were loaded
    const Result<void> refused = run_headless(o);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "--against");
}

// As in the window, where results can be read some frames after they were recorded.
TEST_F(KeptTest, what_is_complete_has_its_ranges) {
    Workbench late(*device, false, 2);
    Settings settings = level_settings(7);
    settings.length = 300;
    late.document.change(settings);
    bool complete = false;
    for (int frame = 0; frame < 100000 && !complete; ++frame) {
        Result<bool> updated = false;
        ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { updated = late.update(cmd, 1e7); }));
        ASSERT_TRUE(updated) << updated.error().text;
        complete = late.computation.complete();
        if (!complete) continue;
        EXPECT_EQ(late.stage().ranges.size(), late.stage().heads) << "frame " << frame;
    }
    EXPECT_TRUE(complete);
}

// A locked matrix stays what it was, with its own numbers and derivations, until it is unlocked.
TEST_F(KeptTest, locked_matrices_stay_in_tabs_of_their_own) {
    bench->document.change(level_settings(5));
    compute();
    show("weights");
    bench->view.head = 1;
    const std::vector<float> first = weights_of(bench->stage(), 1);
    bench->past.lock();
    ASSERT_EQ(bench->past.locked().size(), 1u);
    EXPECT_EQ(bench->past.locked()[0].name, "level 5 H1");
    EXPECT_EQ(bench->window.locked_tab, 0);
    Settings s = level_settings(7);
    s.length = 40;
    bench->document.change(s);
    compute();
    show("scaled");
    bench->view.picked_row = 3, bench->view.picked_column = 2;
    ASSERT_EQ(weights_of(*bench->shown().stage, bench->shown().head), first);
    ASSERT_TRUE(bench->derivation());
    EXPECT_NEAR(bench->derivation()->weight, first[3 * 6 + 2], 2e-6);
    bench->window.locked_tab = -1;
    EXPECT_EQ(bench->shown().stage, &bench->stage());
    ASSERT_TRUE(bench->derivation());
    EXPECT_EQ(bench->derivation()->scale, bench->computation.run().desc().scale);
    bench->past.lock();
    EXPECT_EQ(bench->past.locked()[1].name, "level 7 H1 scaled");
    bench->past.unlock(0);
    EXPECT_EQ(bench->window.locked_tab, 0);
    EXPECT_TRUE(bench->needs_idle());
    bench->document.undo();
    compute();
    EXPECT_EQ(bench->shown().stage->rows, 40u);
    for (int i = 0; i < 20; ++i) bench->past.lock();
    EXPECT_EQ(bench->past.locked().size(), PastResults::kMaxLocked);
    while (!bench->past.locked().empty()) bench->past.unlock(0);
    EXPECT_EQ(bench->window.locked_tab, -1);
    compute();
}

// Another precision and another place are results like others: what they cost in digits is the difference.
TEST_F(KeptTest, precisions_and_places_are_compared) {
    bench->document.change(level_settings(5));
    compute();
    show("weights");
    const std::vector<float> exact = weights_of(bench->stage(), 0);
    bench->past.keep();
    Settings s = bench->document.settings();
    s.precision = Precision::f16;
    bench->document.change(s);
    compute();
    show("weights");
    Comparison c = comparison_of(*bench);
    HeadDifference d = difference_of(*c.a, 0, *c.b, 0, 1);
    EXPECT_GT(d.largest, 0);
    EXPECT_LT(d.largest, 1e-3);
    EXPECT_NE(bench->past.kept()->result->title().find("float32 on the device"), std::string::npos);
    // Queries are shown as they are stored: ten bits after the first.
    for (const float q : bench->computation.find_stage(StageId::queries)->values) {
        int exponent = 0;
        const float scaled = std::ldexp(std::frexp(q, &exponent), 11);
        EXPECT_EQ(scaled, std::floor(scaled)) << q;
    }
    // The picked cell's derivation is of the stored numbers, too.
    const float drawn =
        value("weights", uint64_t(bench->view.picked_row), uint64_t(bench->view.picked_column));
    ASSERT_TRUE(bench->derivation());
    EXPECT_NEAR(bench->derivation()->weight, drawn, 2e-6);

    s.precision = Precision::f32;
    bench->document.change(s);
    bench->computation.compute_on_cpu(true);
    compute();
    show("weights");
    c = comparison_of(*bench);
    d = difference_of(*c.a, 0, *c.b, 0, 1);
    EXPECT_LT(d.largest, 1e-6);
    bench->past.drop_kept();
    s.precision = Precision::f16_inputs;
    bench->document.change(s);
    // The CPU multiplies float32, and reports that.
    compute();
    EXPECT_NE(bench->problems.back().text.find("cooperative"), std::string::npos);
}

// Where the device has cooperative matrices the context is theirs, and close to the exact one; elsewhere the
// reason is told and the last result stays.
TEST_F(KeptTest, products_of_halves_give_the_context_or_a_reason) {
    Settings s = level_settings(7);
    s.length = 40;
    bench->document.change(s);
    compute();
    const Stage* context = bench->computation.find_stage(StageId::context);
    const std::vector<float> exact(context->values.begin(), context->values.end());
    s.precision = Precision::f16_inputs;
    bench->document.change(s);
    if (device->properties().coopmat_m == 0) {
        EXPECT_FALSE(update());
        EXPECT_NE(bench->computation.problem().find("cooperative"), std::string::npos)
            << bench->computation.problem();
        return;
    }
    ASSERT_TRUE(update()) << bench->computation.problem();
    context = bench->computation.find_stage(StageId::context);
    EXPECT_NE(context->formula.find("flash_coopmat"), std::string::npos) << context->formula;
    ASSERT_EQ(context->values.size(), exact.size());
    float largest = 0, reach = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
        largest = std::max(largest, std::abs(context->values[i] - exact[i]));
        reach = std::max(reach, std::abs(exact[i]));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(largest, 4e-3f * reach);
}

}  // namespace
}  // namespace fovea::visualizer
