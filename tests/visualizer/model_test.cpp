// Models of several layers in the window: heads that learned are what a reader sees first, and every layer
// and head shows the numbers of the model's own trace.
#include "data/session_file.hpp"
#include "describe.hpp"
#include "options.hpp"
#include "panels/keys.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/model/learned.hpp>
#include <fovea/model/trace.hpp>

#include <array>
#include <cmath>

namespace fovea::visualizer {
namespace {

using ModelTest = VisualizerTest;

Options options_of(std::vector<std::string> words) {
    words.insert(words.begin(), "fovea-visualizer");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const Result<Options> options = parse_options(int(pointers.size()), pointers.data());
    EXPECT_TRUE(options) << options.error().text;
    return options ? *options : Options();
}

TEST_F(ModelTest, heads_that_learned_are_the_first_picture) {
    ASSERT_TRUE(apply_options(*bench, options_of({})));
    compute();
    const std::string text = describe(*bench);
    EXPECT_EQ(text.find("induction, L1H0 induction; "), 0u) << text.substr(0, 80);
    EXPECT_NE(text.find("<start> w i t h f o v e a"), std::string::npos);
    // The letter that comes again looks at the one that came after it last time.
    EXPECT_EQ(bench->computation.tokens()[size_t(bench->view.picked_row)], "a");
    EXPECT_EQ(bench->computation.tokens()[size_t(bench->view.picked_column)], "f");
    ASSERT_TRUE(bench->derivation());
    EXPECT_GT(bench->derivation()->weight, 0.5f);
    EXPECT_EQ(head_label(bench->document.settings(), {0, 0}), "previous token");
    // What asks for something else gets that.
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--preset", "2"}, {"--text", "a cat"}, {"file.npy"}})
        EXPECT_EQ(options_of(words).task, "") << words[0];
    EXPECT_EQ(options_of({"--preset", "sort"}).task, "sort");
}

TEST_F(ModelTest, every_layer_and_head_has_the_traces_numbers) {
    for (const std::string& task : learned_tasks()) {
        bench->show_task(task);
        const Settings begin = bench->document.settings();
        Result<SessionModel> made = session_model(begin);
        ASSERT_TRUE(made) << made.error().text;
        Result<Trace> trace = Trace::open(made->model, made->input);
        ASSERT_TRUE(trace);
        for (const uint32_t layer : shown_layers(begin)) {
            Settings settings = begin;
            settings.mapping.layer = layer;
            bench->document.change(settings);
            compute();
            for (const TraceStage& stage : trace->stages(layer)) {
                const Result<F32Tensor> expected = trace->whole_stage(stage.id, layer);
                ASSERT_TRUE(expected);
                show(stage.id);
                const Stage& shown = bench->stage();
                ASSERT_EQ(shown.values.size(), expected->values.size()) << task << " " << stage.id;
                for (size_t i = 0; i < expected->values.size(); ++i) {
                    const float a = shown.values[i], b = expected->values[i];
                    if (std::isinf(b))
                        ASSERT_EQ(a, b) << task << " " << stage.id;
                    else
                        ASSERT_NEAR(a, b, 2e-5f * std::max(1.0f, std::abs(b)))
                            << task << ", layer " << layer << ", " << stage.id << " [" << i << "]";
                }
            }
        }
    }
}

TEST_F(ModelTest, sums_of_every_layer_end_in_the_drawn_number) {
    bench->show_task("induction");
    for (const uint32_t layer : {0u, 1u}) {
        Settings settings = bench->document.settings();
        settings.mapping.layer = layer;
        bench->document.change(settings);
        compute();
        for (const char* name : {"queries", "keys", "values", "context", "output"}) {
            show(name);
            bench->view.head = 1 % uint32_t(bench->stage().heads);
            bench->view.picked_row = 7, bench->view.picked_column = 3;
            const std::optional<CellSum> sum = bench->picked_sum();
            ASSERT_TRUE(sum) << "layer " << layer << " " << name;
            EXPECT_NEAR(sum->result, value(name, 7, 3, bench->view.head), 2e-5) << layer << " " << name;
        }
    }
}

// The induction head needs the previous-token head: without it the letter that is due is no longer said.
TEST_F(ModelTest, a_head_that_is_off_is_missed_behind_it) {
    bench->show_task("induction");
    compute();
    const auto due = [&] {
        show("probabilities");
        const std::vector<std::string>& words = learned_model("induction")->model->vocabulary;
        const auto v = size_t(std::find(words.begin(), words.end(), "e") - words.begin());
        return value("probabilities", 17, v);  // behind "... f o v", the third time
    };
    const float whole = due();
    EXPECT_GT(whole, 0.8f);
    Settings settings = bench->document.settings();
    toggle_head(settings, {0, 0});
    bench->document.change(settings);
    compute();
    EXPECT_LT(due(), 0.5f * whole);
    EXPECT_TRUE(is_off(bench->document.settings(), {0, 0}));
    bench->document.undo();
    compute();
    EXPECT_EQ(due(), whole);
}

TEST_F(ModelTest, sessions_keep_task_layer_head_and_what_is_off) {
    bench->show_task("recall");
    Settings settings = bench->document.settings();
    toggle_head(settings, {0, 1});
    settings.mapping.layer = 1;
    bench->document.change(settings);
    bench->view.head = 1;
    compute();
    const std::string path = (folder / "task.fovea").string();
    ASSERT_TRUE(save_session(*bench, path));
    const Settings saved = bench->document.settings();
    bench->document.change(level_settings(2));
    bench->view.head = 0;
    compute();
    ASSERT_TRUE(open_session(*bench, path));
    compute();
    EXPECT_EQ(bench->document.settings(), saved);
    EXPECT_EQ(bench->view.head, 1u);
    EXPECT_EQ(bench->document.settings().mapping.layer, 1u);
}

TEST_F(ModelTest, a_text_that_says_nothing_to_the_model_is_refused_and_the_picture_stays) {
    bench->show_task("sort");
    compute();
    const size_t tokens = bench->computation.tokens().size();
    Settings settings = bench->document.settings();
    settings.text = "words";
    bench->document.change(settings);
    EXPECT_FALSE(update());
    EXPECT_NE(bench->computation.problem().find("no token of the task sort"), std::string::npos);
    EXPECT_EQ(bench->computation.tokens().size(), tokens);
    bench->document.undo();
    compute();
}

TEST_F(ModelTest, the_levels_are_one_key_away_and_have_their_own_sentence) {
    ASSERT_TRUE(apply_options(*bench, options_of({})));
    compute();
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_3, alt}));
    compute();
    EXPECT_EQ(bench->computation.tokens()[1], "journey");
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_0, alt}));
    compute();
    EXPECT_EQ(bench->document.settings().task, "induction");
    EXPECT_EQ(bench->computation.tokens()[0], "<start>");
}

}  // namespace
}  // namespace fovea::visualizer
