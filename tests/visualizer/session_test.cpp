// What the panels stand on: the levels compute the tutorials' numbers on the device, every key does something
// that undo takes back, and a picked cell's derivation ends in the number that is drawn.
#include "model/session.hpp"
#include "data/motion.hpp"
#include "describe.hpp"
#include "keys.hpp"
#include "visualizer_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
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
        {3, "weights", 0, 1, 1, 0.4483f},  {4, "weights", 0, 0, 0, 2.0000f},
        {4, "weights", 0, 2, 0, 0.7599f},  {4, "weights", 0, 5, 3, 0.3084f},
        {5, "context", 0, 5, 0, -0.5299f}, {5, "context", 0, 5, 1, -0.1081f},
        {5, "context", 1, 5, 0, 0.5077f},  {5, "context", 1, 5, 1, 0.3493f},
        {5, "joined", 0, 5, 0, -0.5299f},  {5, "joined", 0, 5, 3, 0.3493f},
        {6, "output", 0, 0, 0, 0.3190f},   {6, "output", 0, 0, 1, 0.4858f},
    };
    for (const auto& c : cases) {
        session->change(level_settings(c.level));
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
    session->change(settings);
    compute();
    std::mt19937 random(20);
    for (int n = 0; n < 200; ++n) {
        const char* names[] = {"scores", "masked", "weights"};
        const std::string name = names[n % 3];
        show(name);
        const Stage& stage = session->stage();
        session->view.head = random() % uint32_t(stage.heads);
        session->view.picked_row = int(random() % stage.rows);
        session->view.picked_column = int(random() % stage.columns);
        const float drawn = value(name, uint64_t(session->view.picked_row),
                                  uint64_t(session->view.picked_column), session->view.head);
        const std::optional<Derivation>& d = session->derivation();
        ASSERT_TRUE(d);
        const float derived = name == "scores" ? d->score : name == "masked" ? d->masked : d->weight;
        if (std::isinf(drawn) || std::isinf(derived))
            EXPECT_EQ(drawn, derived) << name << " cell " << n;
        else
            EXPECT_NEAR(drawn, derived, 2e-6 * std::max(1.0f, std::abs(derived))) << name << " cell " << n;
    }
}

TEST_F(SessionTest, every_key_runs_and_undo_restores_the_settings) {
    session->change(level_settings(5));
    compute();
    ASSERT_GE(key_commands().size(), 50u);
    for (const KeyCommand& command : key_commands()) {
        const std::string what = command.what;
        if (what == "undo" || what == "redo") continue;
        // Each key is bound once.
        const auto same = [&](const KeyCommand& other) {
            return other.key == command.key && other.modifiers == command.modifiers;
        };
        EXPECT_EQ(std::count_if(key_commands().begin(), key_commands().end(), same), 1) << command.keys;
        const Settings before = session->settings();
        const ViewState view = session->view;
        session->ui = UiState();
        EXPECT_TRUE(run_key(*session, {command.key, command.modifiers})) << command.keys;
        compute();
        const bool changed_settings = !(session->settings() == before);
        if (changed_settings) {
            session->undo();
            EXPECT_EQ(session->settings(), before) << what;
            session->redo();
            EXPECT_FALSE(session->settings() == before) << what;
            session->undo();
            compute();
        }
        EXPECT_LT(session->view.stage, session->stages().size()) << what;
        EXPECT_LT(session->view.head, session->stage().heads) << what;
        session->view = view;
    }
}

TEST_F(SessionTest, tokens_are_words_characters_or_bytes) {
    const std::string text = "It's\tna\xc3\xafve, 12";
    using Tokens = std::vector<std::string>;
    EXPECT_EQ(split_text(text, Tokenizer::words, 9), (Tokens{"It's", "na\xc3\xafve", ",", "12"}));
    EXPECT_EQ(
        split_text(text, Tokenizer::characters, 99),
        (Tokens{"I", "t", "'", "s", "09", "n", "a", "\xc3\xaf", "v", "e", ",", "\xe2\x90\xa3", "1", "2"}));
    EXPECT_EQ(split_text("n\xc3\xaf ", Tokenizer::bytes, 99), (Tokens{"n", "c3", "af", "\xe2\x90\xa3"}));
    EXPECT_EQ(split_text("\xc3", Tokenizer::characters, 99), (Tokens{"\xc3"}));  // cut off
    EXPECT_EQ(split_text(text, Tokenizer::bytes, 3).size(), 3u);
    Settings s = level_settings(3);
    s.tokenizer = Tokenizer::characters;
    session->change(s);
    compute();
    show("weights");
    EXPECT_EQ(session->tokens().size(), s.text.size());
    EXPECT_EQ(session->stage().rows, s.text.size());
    s.tokenizer = Tokenizer::bytes;
    s.text = std::string(2000, 'x');
    session->change(s);
    compute();
    EXPECT_EQ(session->tokens().size(), 1024u);
    EXPECT_NE(session->problems.back().text.find("1024"), std::string::npos);
}

TEST_F(SessionTest, a_hidden_key_is_gone_and_the_rest_adds_up) {
    session->change(level_settings(2));
    compute();
    std::vector<float> before;
    for (uint64_t key = 0; key < 6; ++key) before.push_back(value("weights", 1, key));
    Settings s = session->settings();
    toggle_key(s, 4);
    toggle_key(s, 2);
    EXPECT_EQ(s.hidden_keys, (std::vector<uint32_t>{2, 4}));
    session->change(s);
    compute();
    const float rest = 1 - before[2] - before[4];
    for (uint64_t key = 0; key < 6; ++key)
        EXPECT_NEAR(value("weights", 1, key), key == 2 || key == 4 ? 0 : before[key] / rest, 1e-6) << key;
    EXPECT_TRUE(session->stage().hidden(0, 1, 2));
    toggle_key(s, 2);
    toggle_key(s, 4);
    session->change(s);
    compute();
    EXPECT_EQ(value("weights", 1, 2), before[2]);
}

TEST_F(SessionTest, the_roof_is_above_what_was_reached) {
    session->change(level_settings(7));
    session->want_roof();
    compute();
    if (!device->has_timestamps()) {
        EXPECT_FALSE(session->roof);
        return;
    }
    ASSERT_TRUE(session->roof);
    EXPECT_GT(session->roof->bytes_per_s, 1e7);
    EXPECT_GT(session->roof->flops_per_s, session->run().useful_flops() / session->run().times().busy_s);
}

TEST_F(SessionTest, stages_fade_for_a_moment_where_motion_is_wanted) {
    auto time = std::chrono::steady_clock::now();
    session->clock = [&time] { return time; };
    session->change(level_settings(3));
    compute();
    show("scores");
    const size_t scores = session->view.stage;
    session->show_stage(scores + 1);
    EXPECT_FALSE(session->animating());  // as in pictures
    session->ui.motion = true;
    session->show_stage(scores);
    EXPECT_TRUE(session->animating());
    EXPECT_EQ(session->faded_stage().name, "masked");
    EXPECT_EQ(session->fade(), 0);
    time += std::chrono::milliseconds(150);
    EXPECT_FLOAT_EQ(session->fade(), 0.75f);
    time += std::chrono::milliseconds(50);
    EXPECT_FALSE(session->animating());
    session->show_stage(scores);
    EXPECT_FALSE(session->animating());
    session->show_stage(scores + 1);
    session->change(level_settings(2));
    compute();
    EXPECT_FALSE(session->animating());  // another result has other stages

    EXPECT_TRUE(says_no_motion("[Settings]\ngtk-theme-name=x\n gtk-enable-animations = 0\r\n"));
    EXPECT_TRUE(says_no_motion("gtk-enable-animations=false"));
    EXPECT_TRUE(says_no_motion("[KDE]\nAnimationDurationFactor=0\n"));
    EXPECT_FALSE(says_no_motion("[Settings]\ngtk-enable-animations=1\nAnimationDurationFactor=0.5\n"));
    EXPECT_FALSE(says_no_motion(""));
}

TEST_F(SessionTest, the_tour_has_five_steps_and_ends) {
    session->change(level_settings(2));
    compute();
    for (int step = 1; step <= kTourSteps; ++step) {
        EXPECT_TRUE(run_key(*session, {ImGuiKey_F2, plain}));
        EXPECT_EQ(session->ui.tour_step, step);
        EXPECT_NE(describe(*session).find(tour_text(step)), std::string::npos);
    }
    EXPECT_TRUE(run_key(*session, {ImGuiKey_F2, plain}));
    EXPECT_EQ(session->ui.tour_step, 0);
    EXPECT_EQ(describe(*session).find("tour"), std::string::npos);
    run_key(*session, {ImGuiKey_F2, plain});
    EXPECT_TRUE(run_key(*session, {ImGuiKey_F2, shift}));
    EXPECT_EQ(session->ui.tour_step, 0);
}

TEST_F(SessionTest, a_drag_is_one_step_of_undo) {
    session->change(level_settings(2));
    compute();
    const Settings before = session->settings();
    for (int i = 1; i <= 20; ++i) {
        Settings next = session->settings();
        next.temperature = 1 + 0.1f * float(i);
        session->change(next, 7);
    }
    session->undo();
    EXPECT_EQ(session->settings(), before);
}

TEST_F(SessionTest, a_refused_change_keeps_the_last_result_and_says_why) {
    session->change(level_settings(2));
    compute();
    const float before = value("weights", 1, 1);
    Settings empty = session->settings();
    empty.text = "  ";
    session->change(empty);
    Result<bool> updated = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { updated = session->update(cmd, 1e8); }));
    ASSERT_TRUE(updated);
    EXPECT_NE(session->problem().find("text"), std::string::npos);
    EXPECT_EQ(value("weights", 1, 1), before);
}

TEST_F(SessionTest, the_processor_gives_the_same_numbers) {
    Session cpu(*device, true);
    session->change(level_settings(6));
    cpu.change(level_settings(6));
    compute();
    Result<bool> updated = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { updated = cpu.update(cmd, 1e8); }));
    ASSERT_TRUE(updated) << updated.error().text;
    const std::span<const float> a = session->run().values(FOVEA_BIND_WEIGHTS),
                                 b = cpu.run().values(FOVEA_BIND_WEIGHTS);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST_F(SessionTest, the_device_can_be_switched_while_it_computes) {
    Settings settings = level_settings(7);
    settings.length = 200;
    session->change(settings);
    Result<bool> more = false;
    ASSERT_TRUE(device->run_once([&](VkCommandBuffer cmd) { more = session->update(cmd, 1); }));
    ASSERT_TRUE(more) << more.error().text;
    session->compute_on_cpu(true);
    compute();
    EXPECT_TRUE(session->on_cpu());
    const float on_cpu = value("weights", 150, 77, 5);
    session->compute_on_cpu(false);
    compute();
    EXPECT_NEAR(value("weights", 150, 77, 5), on_cpu, 1e-6);
    EXPECT_TRUE(session->problems.empty());
}

// A window does not wait for the driver's compiler: the processor's numbers first, then the device's, which
// are the same to the printed digits.
TEST_F(SessionTest, the_processor_stands_in_until_the_kernels_are_ready) {
    std::atomic<int> woken{0};
    Session window(*device, false, 2);
    window.wake = [&] { ++woken; };
    window.change(level_settings(5));
    const auto frame = [&] {  // what is so small is computed at once, not by the frame's command buffer
        const Result<bool> updated = window.update(VK_NULL_HANDLE, 1e8);
        ASSERT_TRUE(updated) << updated.error().text;
    };
    frame();
    ASSERT_TRUE(window.complete());
    ASSERT_TRUE(window.run().stands_in());
    EXPECT_FALSE(window.on_cpu());
    std::vector<std::vector<float>> first;
    for (const Stage& stage : window.stages()) first.emplace_back(stage.values.begin(), stage.values.end());
    const auto begin = std::chrono::steady_clock::now();
    while (woken == 0 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(10))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(woken, 1);
    ASSERT_TRUE(window.needs_idle());
    frame();
    EXPECT_FALSE(window.run().stands_in());
    EXPECT_FALSE(window.needs_idle());
    ASSERT_TRUE(window.complete());
    for (size_t i = 0; i < first.size(); ++i)
        for (size_t n = 0; n < first[i].size(); ++n) {
            const float now = window.stages()[i].values[n];
            if (std::isfinite(now))
                EXPECT_NEAR(now, first[i][n], 2e-6) << window.stages()[i].name << " " << n;
            else
                EXPECT_EQ(now, first[i][n]) << window.stages()[i].name << " " << n;
        }
    // The same kernels again: at once on the device.
    Settings longer = window.settings();
    longer.text += " and another";
    window.change(longer);
    frame();
    EXPECT_FALSE(window.run().stands_in());
}

}  // namespace
}  // namespace fovea::visualizer
