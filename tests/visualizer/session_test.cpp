// The basis of the panels: the levels compute the tutorials' values on the device, undo reverts every key,
// and a picked cell's derivation ends in the drawn value.
#include "data/window_settings.hpp"
#include "document/comparison.hpp"
#include "document/workbench.hpp"
#include "input.hpp"
#include "panels/keys.hpp"
#include "panels/panels.hpp"
#include "run.hpp"
#include "visualizer_fixture.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <set>
#include <thread>

namespace fovea::visualizer {
namespace {

using SessionTest = VisualizerTest;

// The check values of each level's tutorial, to the four decimals that it prints.
TEST_F(SessionTest, levels_give_the_tutorials_numbers) {
    const struct {
        int level;
        const char* stage;
        uint64_t head, row, column;
        float expected;
    } cases[] = {
        {1, "weights", 0, 1, 0, 0.1385f},  {1, "weights", 0, 1, 5, 0.1581f},
        {1, "context", 0, 1, 0, 0.4419f},  {2, "queries", 0, 1, 0, 0.4306f},
        {2, "weights", 0, 1, 0, 0.1500f},  {2, "weights", 0, 1, 5, 0.1820f},
        {2, "context", 0, 1, 0, 0.3061f},  {3, "weights", 0, 1, 0, 0.5517f},
        {3, "weights", 0, 1, 1, 0.4483f},  {4, "dropped", 0, 0, 0, 2.0000f},
        {4, "dropped", 0, 2, 0, 0.7599f},  {4, "dropped", 0, 5, 3, 0.3084f},
        {5, "context", 0, 5, 0, -0.5299f}, {5, "context", 0, 5, 1, -0.1081f},
        {5, "context", 0, 5, 2, 0.5077f},  {5, "context", 0, 5, 3, 0.3493f},
        {5, "context", 0, 5, 0, -0.5299f}, {5, "context", 0, 5, 3, 0.3493f},
        {6, "output", 0, 0, 0, 0.3190f},   {6, "output", 0, 0, 1, 0.4858f},
    };
    for (const auto& c : cases) {
        bench->document.change(level_settings(c.level));
        compute();
        EXPECT_NEAR(value(c.stage, c.row, c.column, c.head), c.expected, 0.51e-4)
            << "level " << c.level << ", " << c.stage << " head " << c.head << " [" << c.row << ", "
            << c.column << "]";
    }
}

TEST_F(SessionTest, derivations_end_in_the_number_that_is_drawn) {
    Settings settings = level_settings(7);
    settings.softcap = 5;
    settings.alibi = true;
    bench->document.change(settings);
    compute();
    std::mt19937 random(20);
    for (int n = 0; n < 200; ++n) {
        const char* names[] = {"scaled", "masked", "weights"};
        const std::string name = names[n % 3];
        show(name);
        const Stage& stage = bench->stage();
        bench->view.head = random() % uint32_t(stage.heads);
        bench->view.picked_row = int(random() % stage.rows);
        bench->view.picked_column = int(random() % stage.columns);
        const float drawn = value(name, uint64_t(bench->view.picked_row), uint64_t(bench->view.picked_column),
                                  bench->view.head);
        const std::optional<Derivation>& d = bench->derivation();
        ASSERT_TRUE(d);
        const float derived = name == "scaled" ? d->score : name == "masked" ? d->masked : d->weight;
        if (std::isinf(drawn) || std::isinf(derived))
            EXPECT_EQ(drawn, derived) << name << " cell " << n;
        else
            EXPECT_NEAR(drawn, derived, 2e-6 * std::max(1.0f, std::abs(derived))) << name << " cell " << n;
    }
}

// A cell of any stage other than queries x keys is a row times a column: the panel's terms add up to the
// drawn value.
TEST_F(SessionTest, every_other_cell_is_the_sum_of_its_terms) {
    for (int level = 1; level <= 7; ++level) {
        Settings settings = level_settings(level);
        settings.rope = level == 7;
        bench->document.change(settings);
        compute();
        std::set<std::string> summed;
        for (size_t i = 0; i < bench->computation.stages().size(); ++i) {
            const Stage& stage = bench->computation.stages()[i];
            if (stage.over_keys) continue;
            show(stage.name);
            for (uint32_t head = 0; head < stage.heads; ++head)
                for (uint64_t cell = 0; cell < stage.rows * stage.columns; cell += 5) {
                    bench->view.head = head;
                    bench->view.picked_row = int(cell / stage.columns);
                    bench->view.picked_column = int(cell % stage.columns);
                    const std::optional<CellSum> sum = bench->picked_sum();
                    if (!sum) continue;
                    summed.insert(stage.name);
                    ASSERT_FALSE(sum->terms.empty());
                    // The highlighted cells are the operands, in their order.
                    const std::vector<CellInput> lit = bench->picked_inputs();
                    ASSERT_FALSE(lit.empty()) << stage.name;
                    for (size_t n = 0; n < lit.size() && !sum->b.empty(); ++n) {
                        const CellRect& r = lit[n].cells;
                        ASSERT_EQ(lit.size(), 2u) << stage.name;
                        ASSERT_EQ(r.rows() * r.columns(), sum->terms.size()) << stage.name;
                        const uint64_t term = (cell * 7 + n) % sum->terms.size();
                        const uint64_t at =
                            (uint64_t(r.row_begin) + (r.rows() > 1 ? term : 0)) * lit[n].stage->columns +
                            uint64_t(r.column_begin) + (r.rows() > 1 ? 0 : term);
                        const float factor = n == 0 ? sum->terms[term].a : sum->terms[term].b;
                        const bool unread = stage.name == "context" && sum->terms[term].a == 0;
                        if (!unread) {
                            EXPECT_EQ(lit[n].stage->head_values(lit[n].head)[at], factor) << stage.name;
                        }
                    }
                    const float drawn = stage.head_values(head)[cell];
                    EXPECT_NEAR(sum->result, drawn, 2e-5 * std::max(1.0f, std::abs(drawn)))
                        << "level " << level << ", " << stage.name << " head " << head << " cell " << cell;
                }
        }
        // Scores light the rows whose product they are, what follows the score or row that it reads.
        for (const Stage& stage : bench->computation.stages()) {
            if (!stage.over_keys || stage.name == "keep") continue;
            const uint32_t head = uint32_t(stage.heads) - 1;
            const std::vector<CellInput> lit =
                cell_inputs(*bench->computation.result(), stage, head, stage.rows - 1, 2);
            ASSERT_FALSE(lit.empty()) << stage.name;
            if (stage.name != "scores") continue;
            double dot = 0;
            for (uint64_t d = 0; d < lit[0].stage->columns; ++d)
                dot += double(lit[0].stage->head_values(
                           lit[0].head)[(stage.rows - 1) * lit[0].stage->columns + d]) *
                       double(lit[1].stage->head_values(lit[1].head)[2 * lit[1].stage->columns + d]);
            EXPECT_NEAR(dot, double(stage.head_values(head)[(stage.rows - 1) * stage.columns + 2]), 1e-4)
                << "level " << level;
        }
        std::set<std::string> expected = {"context", "lse"};
        if (level >= 2) expected.insert({"queries", "keys", "values"});
        if (level >= 6) expected.insert("output");
        EXPECT_EQ(summed, expected) << "level " << level;
    }
}

TEST_F(SessionTest, sums_of_rows_and_shares_of_dropped_weights_add_up) {
    Settings settings = level_settings(4);
    settings.route = MaskRoute::after;
    bench->document.change(settings);
    compute();
    for (const char* name : {"row_sums", "context"}) {
        show(name);
        bench->view.picked_row = 3, bench->view.picked_column = 0;
        const std::optional<CellSum> sum = bench->picked_sum();
        ASSERT_TRUE(sum) << name;
        EXPECT_NEAR(sum->result, value(name, 3, 0), 2e-6) << name;
        EXPECT_EQ(sum->terms[1].name, "journey");
    }
    EXPECT_NE(describe(*bench).find("context[3, 0] = "), std::string::npos);
}

TEST_F(SessionTest, a_row_with_one_key_does_not_stretch_the_colors) {
    bench->document.change(level_settings(3));
    compute();
    show("weights");
    const ColorRange& range = bench->stage().ranges[0];
    EXPECT_NEAR(range.high, 0.5517, 1e-4);  // not the first row's 1
    double least = 1;
    for (const float w : bench->stage().head_values(0))
        if (w > 0) least = std::min(least, double(w));
    EXPECT_EQ(range.least, least);
    ColorChoice logarithmic;
    logarithmic.spread = Spread::logarithmic;
    EXPECT_EQ(coloring_of(logarithmic, range).low, least);
}

TEST(Comparison, names_what_differs) {
    Settings a = level_settings(2), b = a;
    EXPECT_EQ(differing_settings(a, b), (std::pair<std::string, std::string>()));
    b.causal = true;
    EXPECT_EQ(differing_settings(a, b).first, "no mask");
    EXPECT_EQ(differing_settings(a, b).second, "causal mask");
    b.temperature = 2;
    EXPECT_EQ(differing_settings(a, b).second, "causal mask, temperature 2");
}

TEST(HeadOrder, goes_by_a_figure_from_either_end_and_filters_there) {
    const std::vector<double> figures{1.5, 0.25, 2, 0.25, 1};
    using Heads = std::vector<size_t>;
    HeadOrder order;
    order.edge = 0.6f;
    EXPECT_EQ(ordered_heads(figures, order), (Heads{0, 1, 2, 3, 4}));
    order.figure = 1;
    EXPECT_EQ(ordered_heads(figures, order), (Heads{2, 0}));
    order.turn();
    EXPECT_EQ(ordered_heads(figures, order), (Heads{1, 3, 4, 0, 2}));
    order.edge = 0.6f;
    EXPECT_EQ(ordered_heads(figures, order), (Heads{1, 3, 4}));
    order.edge = 0;
    EXPECT_EQ(ordered_heads(figures, order), Heads{});
    order.turn();
    EXPECT_EQ(ordered_heads(figures, order), (Heads{2, 0, 4, 1, 3}));
    EXPECT_EQ(figure_text(6, 1), "6.00 nats");
    EXPECT_EQ(figure_text(4.78e-07, 4), "0.00");
}

TEST(Words, every_control_and_level_has_a_sentence) {
    for (const char* label : {"scale", "temperature", "softcap", "causal mask", "window", "ALiBi", "RoPE",
                              "pattern", "dropout", "mask after the softmax"}) {
        ASSERT_NE(parameter_hint(label), nullptr) << label;
        EXPECT_EQ(std::string(parameter_hint(label)).back(), *parameter_hint(label) ? '.' : ' ') << label;
    }
    for (int level = 1; level <= 7; ++level) {
        EXPECT_GT(level_lead(level).size(), 60u);
        EXPECT_EQ(level_lead(level).find('<'), std::string::npos);
    }
}

TEST_F(SessionTest, every_key_runs_and_undo_restores_the_settings) {
    bench->document.change(level_settings(5));
    compute();
    ASSERT_GE(key_commands().size(), 50u);
    for (const KeyCommand& command : key_commands()) {
        const std::string what = texts().keys.*command.what;
        if (what == "undo" || what == "redo") continue;
        // Each key is bound once.
        const auto same = [&](const KeyCommand& other) {
            return other.key == command.key && other.modifiers == command.modifiers;
        };
        EXPECT_EQ(std::count_if(key_commands().begin(), key_commands().end(), same), 1) << command.keys;
        const Settings before = bench->document.settings();
        const ViewState view = bench->view;
        bench->window = WindowState();
        EXPECT_TRUE(run_key(*bench, {command.key, command.modifiers})) << command.keys;
        compute();
        const bool changed_settings = !(bench->document.settings() == before);
        if (changed_settings) {
            bench->document.undo();
            EXPECT_EQ(bench->document.settings(), before) << what;
            bench->document.redo();
            EXPECT_FALSE(bench->document.settings() == before) << what;
            bench->document.undo();
            compute();
        }
        EXPECT_LT(bench->view.stage, bench->computation.stages().size()) << what;
        EXPECT_LT(bench->view.head, bench->stage().heads) << what;
        bench->view = view;
    }
}

TEST_F(SessionTest, keys_before_the_first_result_wait_for_it) {
    bench->document.change(level_settings(2));
    const auto of = [](ImGuiKey key, int modifiers) { return KeyPress{key, modifiers}; };
    std::vector<KeyPress> early = {of(ImGuiKey_Space, plain), of(ImGuiKey_PageUp, plain),
                                   of(ImGuiKey_N, plain)};
    run_keys(*bench, early);
    EXPECT_EQ(early.size(), 3u);
    EXPECT_FALSE(bench->document.settings().causal);
    std::vector<KeyPress> end = {of(ImGuiKey_Q, control)};
    run_keys(*bench, end);
    EXPECT_TRUE(end.empty());
    EXPECT_TRUE(bench->window.wants_to_quit);
    compute();
    const size_t stage = bench->view.stage;
    run_keys(*bench, early);
    EXPECT_TRUE(early.empty());
    EXPECT_TRUE(bench->document.settings().causal);
    EXPECT_EQ(bench->view.stage, stage - 1);
    // The range is that of the result with the mask, or a line says why it is not.
    compute();
    EXPECT_FALSE(std::isnan(bench->view.colors.range_high));
}

// A key without an event cannot work.
TEST(GlfwKeysTest, every_bound_key_is_on_a_keyboard) {
    std::set<ImGuiKey> reached;
    for (int key = GLFW_KEY_SPACE; key <= GLFW_KEY_LAST; ++key) reached.insert(imgui_key(key, 0));
    for (const KeyCommand& command : key_commands()) EXPECT_TRUE(reached.count(command.key)) << command.keys;
}

TEST_F(SessionTest, tokens_are_words_characters_or_bytes) {
    Settings s = level_settings(3);
    s.tokenizer = Tokenizer::characters;
    bench->document.change(s);
    compute();
    show("weights");
    EXPECT_EQ(bench->computation.tokens().size(), s.text.size());
    EXPECT_EQ(bench->stage().rows, s.text.size());
    s.tokenizer = Tokenizer::bytes;
    s.text = std::string(2000, 'x');
    bench->document.change(s);
    compute();
    EXPECT_EQ(bench->computation.tokens().size(), most_tokens(3));
    EXPECT_NE(bench->problems.back().text.find(std::to_string(most_tokens(3))), std::string::npos);
}

TEST_F(SessionTest, a_hidden_key_is_gone_and_the_rest_adds_up) {
    bench->document.change(level_settings(2));
    compute();
    std::vector<float> before;
    for (uint64_t key = 0; key < 6; ++key) before.push_back(value("weights", 1, key));
    Settings s = bench->document.settings();
    toggle_key(s, 4);
    toggle_key(s, 2);
    EXPECT_EQ(s.hidden_keys, (std::vector<uint32_t>{2, 4}));
    bench->document.change(s);
    compute();
    const float rest = 1 - before[2] - before[4];
    for (uint64_t key = 0; key < 6; ++key)
        EXPECT_NEAR(value("weights", 1, key), key == 2 || key == 4 ? 0 : before[key] / rest, 1e-6) << key;
    EXPECT_TRUE(bench->stage().hidden(0, 1, 2));
    toggle_key(s, 2);
    toggle_key(s, 4);
    bench->document.change(s);
    compute();
    EXPECT_EQ(value("weights", 1, 2), before[2]);
}

// A line is read to its end by a screen reader: of 512 tokens it says the first ones and how many more there
// are.
TEST_F(SessionTest, the_description_of_a_long_text_has_no_endless_line) {
    Settings settings = level_settings(7);
    settings.length = 512;
    bench->document.change(settings);
    compute();
    const std::string text = describe(*bench), line = text.substr(0, text.find('\n'));
    EXPECT_NE(line.find("512 tokens: Your"), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(" and 480 more")) << line;
    EXPECT_LT(line.size(), 400u);
}

// Each dispatch by its shader's name, in its order, and together they are the device's time.
TEST_F(SessionTest, the_dispatches_of_a_run_have_names_and_times) {
    compute();
    if (!device->has_timestamps()) GTEST_SKIP() << "this device has no timestamps";
    const AttentionRun& run = bench->computation.run();
    ASSERT_FALSE(run.on_cpu());
    const RunTimes& times = run.times();
    ASSERT_EQ(times.dispatches.size(), run.info().slice_count * run.info().dispatches_per_slice);
    double sum = 0, before = 0;
    std::set<std::string> names;
    for (const DispatchTime& one : times.dispatches) {
        names.insert(one.name);
        EXPECT_GE(one.begin_s, 0);
        EXPECT_GE(one.end_s, one.begin_s) << one.name;
        EXPECT_GE(one.end_s, before) << one.name;
        EXPECT_GT(one.groups[0], 0u);
        before = one.end_s;
        sum += one.end_s - one.begin_s;
    }
    EXPECT_NEAR(sum, times.busy_s, 1e-9);
    EXPECT_FALSE(times.dispatches.front().waits);
    EXPECT_TRUE(times.dispatches.back().waits) << "weights are read by what follows them";
    for (const char* begin : {"scores", "softmax", "weighted_sum"})
        EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return name.starts_with(begin);
        })) << begin;
}

TEST_F(SessionTest, the_roof_is_above_what_was_reached) {
    bench->document.change(level_settings(7));
    bench->computation.want_roof();
    compute();
    if (!device->has_timestamps()) {
        EXPECT_FALSE(bench->computation.roof);
        return;
    }
    ASSERT_TRUE(bench->computation.roof);
    EXPECT_GT(bench->computation.roof->bytes_per_s, 1e7);
    EXPECT_GT(bench->computation.roof->flops_per_s,
              bench->computation.run().useful_flops() / bench->computation.run().times().busy_s);
}

TEST_F(SessionTest, stages_fade_for_a_moment_where_motion_is_wanted) {
    auto time = std::chrono::steady_clock::now();
    bench->motion.clock = [&time] { return time; };
    bench->document.change(level_settings(3));
    compute();
    show("scaled");
    const size_t scores = bench->view.stage;
    bench->show_stage(scores + 1);
    EXPECT_FALSE(bench->motion.animating());  // as in pictures
    bench->window.motion = true;
    bench->show_stage(scores);
    EXPECT_TRUE(bench->motion.animating());
    EXPECT_EQ(bench->computation.stages()[bench->motion.fade_from()].name, "masked");
    EXPECT_EQ(bench->motion.fade(), 0);
    time += std::chrono::milliseconds(150);
    EXPECT_FLOAT_EQ(bench->motion.fade(), 0.75f);
    time += std::chrono::milliseconds(50);
    EXPECT_FALSE(bench->motion.animating());
    bench->show_stage(scores);
    EXPECT_FALSE(bench->motion.animating());
    bench->show_stage(scores + 1);
    bench->document.change(level_settings(2));
    compute();
    EXPECT_FALSE(bench->motion.animating());  // another result has other stages

    EXPECT_TRUE(says_no_motion("[Settings]\ngtk-theme-name=x\n gtk-enable-animations = 0\r\n"));
    EXPECT_TRUE(says_no_motion("gtk-enable-animations=false"));
    EXPECT_TRUE(says_no_motion("[KDE]\nAnimationDurationFactor=0\n"));
    EXPECT_FALSE(says_no_motion("[Settings]\ngtk-enable-animations=1\nAnimationDurationFactor=0.5\n"));
    EXPECT_FALSE(says_no_motion(""));
}

TEST_F(SessionTest, the_tour_has_five_steps_and_ends) {
    bench->document.change(level_settings(2));
    compute();
    for (int step = 1; step <= kTourSteps; ++step) {
        EXPECT_TRUE(run_key(*bench, {ImGuiKey_F2, plain}));
        EXPECT_EQ(bench->window.tour_step, step);
        EXPECT_NE(describe(*bench).find(tour_text(step)), std::string::npos);
    }
    EXPECT_TRUE(run_key(*bench, {ImGuiKey_F2, plain}));
    EXPECT_EQ(bench->window.tour_step, 0);
    EXPECT_EQ(describe(*bench).find("tour"), std::string::npos);
    run_key(*bench, {ImGuiKey_F2, plain});
    EXPECT_TRUE(run_key(*bench, {ImGuiKey_F2, shift}));
    EXPECT_EQ(bench->window.tour_step, 0);
}

TEST_F(SessionTest, a_drag_is_one_step_of_undo) {
    bench->document.change(level_settings(2));
    compute();
    const Settings before = bench->document.settings();
    for (int i = 1; i <= 20; ++i) {
        Settings next = bench->document.settings();
        next.temperature = 1 + 0.1f * float(i);
        bench->document.change(next, 7);
    }
    bench->document.undo();
    EXPECT_EQ(bench->document.settings(), before);
}

TEST_F(SessionTest, a_refused_change_keeps_the_last_result_and_says_why) {
    bench->document.change(level_settings(2));
    compute();
    const float before = value("weights", 1, 1);
    Settings empty = bench->document.settings();
    empty.text = "  ";
    bench->document.change(empty);
    Result<bool> updated = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { updated = bench->update(cmd, 1e8); }));
    ASSERT_TRUE(updated);
    EXPECT_NE(bench->computation.problem().find("text"), std::string::npos);
    EXPECT_EQ(value("weights", 1, 1), before);
}

TEST_F(SessionTest, the_processor_gives_the_same_numbers) {
    Workbench cpu(*device, true);
    bench->document.change(level_settings(6));
    cpu.document.change(level_settings(6));
    compute();
    Result<bool> updated = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { updated = cpu.update(cmd, 1e8); }));
    ASSERT_TRUE(updated) << updated.error().text;
    const std::span<const float> a = bench->computation.run().values(FOVEA_BIND_WEIGHTS),
                                 b = cpu.computation.run().values(FOVEA_BIND_WEIGHTS);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST_F(SessionTest, the_device_can_be_switched_while_it_computes) {
    Settings settings = level_settings(7);
    settings.length = 200;
    bench->document.change(settings);
    Result<bool> more = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { more = bench->update(cmd, 1); }));
    ASSERT_TRUE(more) << more.error().text;
    bench->computation.compute_on_cpu(true);
    compute();
    EXPECT_TRUE(bench->computation.on_cpu());
    const float on_cpu = value("weights", 150, 77, 5);
    bench->computation.compute_on_cpu(false);
    compute();
    EXPECT_NEAR(value("weights", 150, 77, 5), on_cpu, 1e-6);
    EXPECT_TRUE(bench->problems.empty());
}

// A window does not wait for the driver's compiler: the CPU's values first, then the device's, which are the
// same to the printed digits.
TEST_F(SessionTest, the_processor_stands_in_until_the_kernels_are_ready) {
    std::atomic<int> woken{0};
    Workbench window(*device, false, 2, [&] { ++woken; });
    window.document.change(level_settings(5));
    const auto frame = [&] {  // such a small result is computed at once, not by the frame's command buffer
        const Result<bool> updated = window.update(VK_NULL_HANDLE, 1e8);
        ASSERT_TRUE(updated) << updated.error().text;
    };
    frame();
    ASSERT_TRUE(window.computation.complete());
    ASSERT_TRUE(window.computation.run().stands_in());
    EXPECT_FALSE(window.computation.on_cpu());
    std::vector<std::vector<float>> first;
    for (const Stage& stage : window.computation.stages())
        first.emplace_back(stage.values.begin(), stage.values.end());
    const auto begin = std::chrono::steady_clock::now();
    while (woken == 0 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(10))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(woken, 1);
    ASSERT_TRUE(window.needs_idle());
    frame();
    EXPECT_FALSE(window.computation.run().stands_in());
    EXPECT_FALSE(window.needs_idle());
    ASSERT_TRUE(window.computation.complete());
    for (size_t i = 0; i < first.size(); ++i)
        for (size_t n = 0; n < first[i].size(); ++n) {
            const float now = window.computation.stages()[i].values[n];
            if (std::isfinite(now))
                EXPECT_NEAR(now, first[i][n], 2e-6) << window.computation.stages()[i].name << " " << n;
            else
                EXPECT_EQ(now, first[i][n]) << window.computation.stages()[i].name << " " << n;
        }
    // The same kernels again: at once on the device.
    Settings longer = window.document.settings();
    longer.text += " and another";
    window.document.change(longer);
    frame();
    EXPECT_FALSE(window.computation.run().stands_in());
}

}  // namespace
}  // namespace fovea::visualizer
