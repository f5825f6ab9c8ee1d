// Models of several layers in the window: heads that learned are what a reader sees first, and every layer
// and head shows the numbers of the model's own trace.
#include "data/exporting.hpp"
#include "data/session_file.hpp"
#include "document/opened_model.hpp"
#include "panels/keys.hpp"
#include "panels/panels.hpp"
#include "run.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/model/learned.hpp>
#include <fovea/model/trace.hpp>

#include <cmath>
#include <fstream>
#include <random>
#include <thread>

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
    EXPECT_EQ(text.find("induction, L1H1 induction; "), 0u) << text.substr(0, 80);
    EXPECT_EQ(bench->window.centre, CentreTab::sentence);
    EXPECT_NE(text.find("<start> w i t h f o v e a"), std::string::npos);
    // The letter that comes again looks at the one that came after it last time.
    EXPECT_EQ(bench->computation.tokens()[size_t(bench->view.picked_row)], "a");
    EXPECT_EQ(bench->computation.tokens()[size_t(bench->view.picked_column)], "f");
    ASSERT_TRUE(bench->derivation());
    EXPECT_GT(bench->derivation()->weight, 0.5f);
    EXPECT_EQ(head_label(bench->document.settings(), {0, 0}), "previous token");
    // An explicit request is followed.
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"--preset", "2"}, {"--text", "a cat"}, {"file.npy"}}) {
        EXPECT_EQ(options_of(words).task, "") << words[0];
        EXPECT_FALSE(options_of(words).first_view) << words[0];
    }
    EXPECT_FALSE(options_of({"--show", "flow"}).first_view);
    EXPECT_EQ(options_of({"--preset", "sort"}).task, "sort");
}

TEST_F(ModelTest, every_layer_and_head_has_the_traces_numbers) {
    for (const std::string task : {"induction", "recall", "reverse", "sort"}) {
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
                show(stage_name(stage.id));
                const Stage& shown = bench->stage();
                ASSERT_EQ(shown.values.size(), expected->values.size())
                    << task << " " << stage_name(stage.id);
                for (size_t i = 0; i < expected->values.size(); ++i) {
                    const float a = shown.values[i], b = expected->values[i];
                    if (std::isinf(b))
                        ASSERT_EQ(a, b) << task << " " << stage_name(stage.id);
                    else
                        ASSERT_NEAR(a, b, 2e-5f * std::max(1.0f, std::abs(b)))
                            << task << ", layer " << layer << ", " << stage_name(stage.id) << " [" << i
                            << "]";
                }
            }
        }
    }
}

// Every fifth cell of each stage that is a sum: the terms come to the number that is drawn, each term is the
// product of its two operands, and the stages that have sums are those that are not given or of queries and
// keys.
void expect_sums(Workbench& bench, const std::string& where) {
    for (size_t i = 0; i < bench.computation.stages().size(); ++i) {
        const Stage& stage = bench.computation.stages()[i];
        if (stage.over_keys || stage.name == "inputs" || stage.name.starts_with("w_")) continue;
        bench.view.stage = i;
        for (uint32_t head = 0; head < stage.heads; ++head)
            for (uint64_t cell = 0; cell < stage.rows * stage.columns; cell += 5 + stage.columns / 7) {
                bench.view.head = head;
                bench.view.picked_row = int(cell / stage.columns);
                bench.view.picked_column = int(cell % stage.columns);
                const std::optional<CellSum> sum = bench.picked_sum();
                ASSERT_TRUE(sum) << where << " " << stage.name;
                const float drawn = stage.head_values(head)[cell];
                ASSERT_NEAR(sum->result, drawn, 2e-5 * std::max(1.0f, std::abs(drawn)))
                    << where << " " << stage.name << " head " << head << " cell " << cell;
                double again = double(sum->added);
                for (const CellSum::Term& term : sum->terms) {
                    ASSERT_EQ(term.product, term.a * term.b);
                    again += double(term.product);
                }
                ASSERT_NEAR(sum->sum, again, 2e-5 * std::max(1.0, std::abs(again)));
                ASSERT_TRUE(!sum->ending.empty() || sum->result == sum->sum) << where << " " << stage.name;
            }
    }
}

TEST_F(ModelTest, sums_of_every_layer_end_in_the_drawn_number) {
    for (const std::string& task : learned_tasks()) {
        bench->show_task(task);
        for (const uint32_t layer : shown_layers(bench->document.settings())) {
            Settings settings = bench->document.settings();
            settings.mapping.layer = layer;
            bench->document.change(settings);
            compute();
            expect_sums(*bench, task + ", layer " + std::to_string(layer));
        }
    }
}

// Parts in each order, with and without gates, norms after the parts, and fused matrices.
TEST_F(ModelTest, sums_of_published_models_end_in_the_drawn_number_and_name_their_tensors) {
    const std::tuple<const char*, const char*, const char*> all[] = {
        {"gpt2", "W_down", "h.1.mlp.c_proj.weight, column 3"},
        {"qwen3", "W_up", "layers.1.mlp.up_proj.weight, row 3"},
        {"gemma2", "W_gate", "layers.1.mlp.gate_proj.weight, row 3"},
        {"phi3", "W_up", "layers.1.mlp.gate_up_proj.weight, row "},
        {"glm4", "W_up", "layers.1.mlp.gate_up_proj.weight, row "},
        {"pythia", "W_down", "layers.1.mlp.dense_4h_to_h.weight, row 3"},
        {"bert", "W_up", "layer.1.intermediate.dense.weight, row 3"}};
    for (const auto& [family, matrix, origin] : all) {
        ASSERT_TRUE(open_any(*bench, std::string(FOVEA_FAMILIES "/") + family)) << family;
        for (const uint32_t layer : {0u, 1u}) {
            Settings settings = bench->document.settings();
            settings.mapping.layer = layer;
            bench->document.change(settings);
            compute();
            expect_sums(*bench, std::string(family) + ", layer " + std::to_string(layer));
        }
        show(std::string(matrix) == "W_down" ? "ff_output" : "ff_hidden");
        bench->view.picked_row = 2, bench->view.picked_column = 3;
        const std::optional<CellSum> sum = bench->picked_sum();
        ASSERT_TRUE(sum) << family;
        const std::string told = cell_sum_text(*sum, bench->stage().name, 2, 3);
        EXPECT_NE(told.find(matrix), std::string::npos) << told;
        EXPECT_NE(told.find(origin), std::string::npos) << told;
    }
}

// The induction head needs the previous-token head: without it the letter that is due is no longer said.
// Only pairs are masked: probabilities of the next token were hatched by the mask of other cells.
TEST_F(ModelTest, no_probability_of_a_next_token_is_hidden) {
    bench->show_task("induction");
    compute();
    const Stage* probabilities = bench->computation.find_stage(StageId::probabilities);
    ASSERT_TRUE(probabilities);
    EXPECT_FALSE(probabilities->hiding);
    for (uint64_t row = 0; row < probabilities->rows; ++row)
        for (uint64_t token = 0; token < probabilities->columns; ++token)
            ASSERT_FALSE(probabilities->hidden(0, row, token)) << row << ", " << token;
    EXPECT_TRUE(bench->computation.find_stage(StageId::weights)->hidden(0, 0, 1));
}

TEST_F(ModelTest, a_head_that_is_off_is_missed_behind_it) {
    bench->show_task("induction");
    compute();
    const auto due = [&] {
        show("probabilities");
        const std::vector<std::string>& words = learned_model("induction")->model->vocabulary;
        const auto v = size_t(std::find(words.begin(), words.end(), "e") - words.begin());
        return value("probabilities", 17, v);  // after "... f o v", the third time
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

// ---- published models ----

// Every family's small random model: each head's map is the run's own, computed a layer at a time.
TEST_F(ModelTest, a_published_model_shows_every_layer_and_head) {
    for (const char* name : {"gpt2", "llama_q8/model.gguf", "gemma2"}) {
        ASSERT_TRUE(open_any(*bench, std::string(FOVEA_FAMILIES "/") + name)) << bench->problems.back().text;
        EXPECT_EQ(bench->window.centre, CentreTab::layers);
        compute();
        const Settings settings = bench->document.settings();
        EXPECT_TRUE(is_causal_model(settings));  // the model's own mask, whatever the check box shows
        const CheckpointModel& weights = settings.model->weights;
        const Result<std::vector<uint32_t>> ids = tokens_of(*settings.model, settings.text);
        ASSERT_TRUE(ids) << ids.error().text;
        ModelRunOptions options;
        options.with_weights = true;
        const Result<ModelRun> run = run_model(weights, *ids, options);
        ASSERT_TRUE(run) << run.error().text;
        for (const uint32_t layer : shown_layers(settings)) {
            bench->show_head(layer, 1);
            compute();
            show("weights");
            const std::vector<float>& expected = run->weights[layer].values;
            ASSERT_EQ(bench->stage().values.size(), expected.size()) << name;
            for (size_t i = 0; i < expected.size(); ++i)
                ASSERT_NEAR(bench->stage().values[i], expected[i], 2e-5f) << name << " layer " << layer;
        }
        const HeadGrid* grid = bench->head_grid();
        ASSERT_TRUE(grid);
        ASSERT_TRUE(bench->computation.finish_wanted_grid());
        EXPECT_TRUE(grid->complete());
        EXPECT_TRUE(grid->problem().empty()) << grid->problem();
        // The predictions are those of the run.
        bench->view.picked_row = int(ids->size()) - 1;
        const PromptNext* next = bench->next_table();
        ASSERT_TRUE(next) << bench->computation.next_problem();
        ASSERT_EQ(next->after.size(), shown_layers(settings).size() + 1);
        const std::vector<NextToken> expected = *next_tokens(run->logits.row(ids->size() - 1), 3);
        for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_EQ(next->after.back()[i].id, expected[i].id) << name;
            EXPECT_NEAR(next->after.back()[i].probability, expected[i].probability, 1e-5) << name;
        }
    }
}

// A model of GPT-2's family with a row of its table for each token of a real tokenizer,
// and places for a sentence.
void write_model_that_reads_text(const std::filesystem::path& folder) {
    const std::filesystem::path families = FOVEA_FAMILIES;
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(families / "gpt2/config.json", folder / "config.json");
    std::filesystem::copy_file(families.parent_path() / "tokenizers/gpt2.json", folder / "tokenizer.json");
    Result<TensorSet> set = load_safetensors(families / "gpt2/model.safetensors");
    ASSERT_TRUE(set) << set.error().text;
    std::mt19937 random(11);
    for (Tensor& tensor : set->tensors) {
        const uint64_t rows = tensor.name.ends_with("wte.weight")   ? 330
                              : tensor.name.ends_with("wpe.weight") ? 64
                                                                    : 0;
        if (rows == 0) continue;
        std::vector<float> values(rows * tensor.shape[1]);
        for (float& value : values) value = float(random()) * 0x1p-31f - 1.0f;
        tensor = make_tensor(tensor.name, {rows, tensor.shape[1]}, std::move(values)).value();
    }
    ASSERT_TRUE(save_safetensors(folder / "model.safetensors", *set));
}

TEST_F(ModelTest, a_sentence_is_typed_into_a_published_model_and_every_head_follows) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no utf8proc";
    const std::filesystem::path path = std::filesystem::path(folder) / "reads-text";
    write_model_that_reads_text(path);
    ASSERT_TRUE(open_any(*bench, path.string())) << bench->problems.back().text;
    compute();
    // Texts and their tokens by the library tokenizers, as tests/model/tokenizers has them.
    const std::pair<const char*, std::vector<uint32_t>> typed[] = {
        {"caf\xc3\xa9 na\xc3\xafve", {287, 318, 269, 263, 315}},
        {"Hello, world!", {41, 70, 297, 80, 13, 222, 88, 80, 83, 77, 69, 2}},
        {"it's we'll I'D", {74, 85, 8, 84, 222, 313, 8, 297, 222, 42, 8, 37}}};
    for (const auto& [text, ids] : typed) {
        Settings settings = bench->document.settings();
        ASSERT_TRUE(settings.model->tokenizer) << settings.model->why_no_text;
        settings.text = text;
        bench->document.change(settings);
        compute();
        ASSERT_EQ(bench->computation.tokens().size(), ids.size()) << text;
        for (size_t i = 0; i < ids.size(); ++i)
            EXPECT_EQ(bench->computation.tokens()[i], token_text(*settings.model, ids[i])) << text;
        ModelRunOptions options;
        options.with_weights = true;
        const Result<ModelRun> run = run_model(settings.model->weights, ids, options);
        ASSERT_TRUE(run) << run.error().text;
        for (const uint32_t layer : shown_layers(settings)) {
            bench->show_head(layer, 2);
            compute();
            show("weights");
            const std::vector<float>& expected = run->weights[layer].values;
            ASSERT_EQ(bench->stage().values.size(), expected.size()) << text;
            for (size_t i = 0; i < expected.size(); ++i)
                ASSERT_NEAR(bench->stage().values[i], expected[i], 2e-5f) << text << ", layer " << layer;
        }
        ASSERT_TRUE(bench->head_grid());
        ASSERT_TRUE(bench->computation.finish_wanted_grid());
        EXPECT_TRUE(bench->head_grid()->complete()) << bench->head_grid()->problem();
        bench->view.picked_row = int(ids.size()) - 1;
        const PromptNext* next = bench->next_table();
        ASSERT_TRUE(next) << bench->computation.next_problem();
        EXPECT_EQ(next->after.back()[0].id, (*next_tokens(run->logits.row(ids.size() - 1), 1))[0].id);
    }
    // A token of nothing but a space is shown as one, not by the letter that the vocabulary has for it.
    EXPECT_EQ(token_text(*bench->document.settings().model, 222), "\xe2\x90\xa3");
    EXPECT_EQ(token_text(*bench->document.settings().model, 297), "ll");
    EXPECT_FALSE(is_causal_model(level_settings(3)));
    // Text that cannot be used leaves the picture unchanged and is reported.
    const size_t tokens = bench->computation.tokens().size();
    Settings settings = bench->document.settings();
    settings.text = "\xff\xfe";
    bench->document.change(settings);
    EXPECT_FALSE(update());
    EXPECT_NE(bench->computation.problem().find("UTF-8"), std::string::npos) << bench->computation.problem();
    EXPECT_EQ(bench->computation.tokens().size(), tokens);
}

TEST_F(ModelTest, a_head_of_a_published_model_is_off_in_all_that_follows) {
    ASSERT_TRUE(open_any(*bench, FOVEA_FAMILIES "/llama3"));
    compute();
    ASSERT_TRUE(bench->head_grid());
    ASSERT_TRUE(bench->computation.finish_wanted_grid());
    bench->view.picked_row = 5;
    ASSERT_TRUE(bench->next_table());
    const PromptNext whole = *bench->next_table();
    EXPECT_TRUE(whole.before.empty());
    Settings settings = bench->document.settings();
    toggle_head(settings, {0, 1});
    bench->document.change(settings);
    compute();
    ASSERT_TRUE(bench->head_grid());
    ASSERT_TRUE(bench->computation.finish_wanted_grid());
    const PromptNext* now = bench->next_table();
    ASSERT_TRUE(now) << bench->computation.next_problem();
    const Result<std::vector<uint32_t>> ids = tokens_of(*settings.model, settings.text);
    ModelRunOptions options;
    options.changes.head_scales = {{1, 0}};
    const Result<ModelRun> run = run_model(settings.model->weights, *ids, options);
    ASSERT_TRUE(run) << run.error().text;
    const std::vector<NextToken> expected = *next_tokens(run->logits.row(5), 1);
    EXPECT_EQ(now->after.back()[0].id, expected[0].id);
    EXPECT_NEAR(now->after.back()[0].probability, expected[0].probability, 1e-5);
    // The unchanged table is next to it.
    ASSERT_EQ(now->before.size(), whole.after.back().size());
    EXPECT_EQ(now->before[0].id, whole.after.back()[0].id);
    EXPECT_NE(now->after.back()[0].probability, whole.after.back()[0].probability);
    // The shown layer's own output is without the head, too.
    const Result<Block> block = settings.model->weights.block(0, ids->size());
    ASSERT_TRUE(block);
    show("output");
    bench->view.picked_row = 3, bench->view.picked_column = 2;
    const std::optional<CellSum> sum = bench->picked_sum();
    ASSERT_TRUE(sum);
    EXPECT_NEAR(sum->result, value("output", 3, 2), 2e-5);
    EXPECT_NE(sum->how.find("self_attn.o_proj.weight, row 2"), std::string::npos) << sum->how;
}

// The window shows the results of run_model() with the same changes, in the table of next tokens and in the
// shown layer's values, together with those of the unchanged model.
TEST_F(ModelTest, a_head_of_a_published_model_is_scaled_and_another_is_patched) {
    // Once every layer has been run: a thread runs them.
    const auto next_table = [&]() -> const PromptNext* {
        EXPECT_TRUE(bench->head_grid() && bench->computation.finish_wanted_grid());
        return bench->next_table();
    };
    for (const char* family : {"llama3", "gpt2"}) {
        ASSERT_TRUE(open_any(*bench, std::string(FOVEA_FAMILIES "/") + family));
        Settings settings = bench->document.settings();
        settings.text = "3 1 4 1 5 9";
        bench->document.change(settings);
        compute();
        bench->view.picked_row = 5;
        ASSERT_TRUE(next_table()) << bench->computation.next_problem();
        const std::string other = "2 7 1 8 2 8";
        const Result<std::vector<uint32_t>> ids = tokens_of(*settings.model, settings.text),
                                            others = tokens_of(*settings.model, other);
        for (const bool patched : {false, true}) {
            change_head(settings, {{1, 1}, 0.25f, ""});
            if (patched) change_head(settings, {{0, 2}, 1, other});
            bench->document.change(settings);
            compute();
            ModelRunOptions options;
            options.with_hidden = true;
            options.changes.head_scales = {{}, {1, 0.25f}};
            if (patched)
                options.changes.patches = *head_contexts(settings.model->weights, *others, {{0, 2, {}}});
            const Result<ModelRun> run = run_model(settings.model->weights, *ids, options);
            ASSERT_TRUE(run) << run.error().text;
            const std::vector<NextToken> expected = *next_tokens(run->logits.row(5), 1);
            const PromptNext* now = next_table();
            ASSERT_TRUE(now) << bench->computation.next_problem();
            EXPECT_EQ(now->after.back()[0].id, expected[0].id) << family;
            EXPECT_NEAR(now->after.back()[0].probability, expected[0].probability, 1e-5) << family;
            ASSERT_FALSE(now->before.empty());
            for (const uint32_t layer : {0u, 1u}) {
                settings.mapping.layer = layer;
                bench->document.change(settings);
                compute();
                show("block");
                const std::vector<float>& leaves = run->hidden[layer + 1].values;
                ASSERT_EQ(bench->stage().values.size(), leaves.size());
                for (size_t i = 0; i < leaves.size(); ++i)
                    ASSERT_NEAR(bench->stage().values[i], leaves[i], 2e-5f)
                        << family << ", layer " << layer << (patched ? ", patched" : ", scaled");
            }
            settings.mapping.layer = 0;
        }
        EXPECT_EQ(change_text(settings, {1, 1}), ", \xc3\x97 0.25");
        EXPECT_NE(change_text(settings, {0, 2}).find(other), std::string::npos);
        // A text of another length is rejected with a message; with the heads restored, the values are the
        // model's own.
        change_head(settings, {{0, 2}, 1, "1 2 3"});
        bench->document.change(settings);
        EXPECT_FALSE(update());
        EXPECT_NE(bench->computation.problem().find("has 3 tokens"), std::string::npos)
            << bench->computation.problem();
        settings.changed.clear();
        bench->document.change(settings);
        compute();
        const Result<ModelRun> plain = run_model(settings.model->weights, *ids);
        const PromptNext* as_it_was = next_table();
        ASSERT_TRUE(as_it_was);
        EXPECT_EQ(as_it_was->after.back()[0].id, (*next_tokens(plain->logits.row(5), 1))[0].id);
    }
}

TEST_F(ModelTest, a_wrong_model_is_refused_in_one_line_and_the_picture_stays) {
    compute();
    const std::filesystem::path empty = std::filesystem::path(folder) / "model";
    std::filesystem::create_directories(empty);
    std::ofstream(empty / "config.json") << R"({"model_type": "mamba", "hidden_size": 8})";
    std::filesystem::copy_file(FOVEA_FAMILIES "/gpt2/model.safetensors", empty / "model.safetensors");
    EXPECT_FALSE(open_any(*bench, empty.string()));
    EXPECT_NE(bench->problems.back().text.find("mamba"), std::string::npos) << bench->problems.back().text;
    std::ofstream(std::filesystem::path(folder) / "no.gguf") << "GGUFno";
    EXPECT_FALSE(open_any(*bench, (folder / "no.gguf").string()));
    EXPECT_EQ(bench->problems.back().text.find('\n'), std::string::npos);
    std::ofstream(std::filesystem::path(folder) / "text.gguf") << "hello, this is a text file";
    EXPECT_FALSE(open_any(*bench, (folder / "text.gguf").string()));
    EXPECT_NE(bench->problems.back().text.find(
                  "not a GGUF file: it does not begin with 'GGUF' but with 'hello, t'"),
              std::string::npos)
        << bench->problems.back().text;
    compute();
    EXPECT_EQ(bench->computation.tokens()[1], "journey");
    // A model without a tokenizer says what is typed instead, and keeps numbers that were typed already.
    Settings typed = bench->document.settings();
    typed.text = "3 1 2";
    bench->document.change(typed);
    ASSERT_TRUE(open_any(*bench, FOVEA_FAMILIES "/gpt2"));
    EXPECT_NE(bench->problems.back().text.find("token IDs from 0 to"), std::string::npos)
        << bench->problems.back().text;
    compute();
    EXPECT_EQ(bench->computation.tokens().size(), 3u);
    // A text that the model cannot read is told, too.
    Settings settings = bench->document.settings();
    settings.text = "1 2 three";
    bench->document.change(settings);
    EXPECT_FALSE(update());
    EXPECT_NE(bench->computation.problem().find("'three' is not a token ID"), std::string::npos)
        << bench->computation.problem();
    settings.text = "1 2 100000";
    bench->document.change(settings);
    EXPECT_FALSE(update());
    EXPECT_NE(bench->computation.problem().find("100000"), std::string::npos);
}

// ---- walks ----

// Does the task of a step: by the window's own functions if it has some, else by setting the session's keys.
void fulfil(Workbench& bench, const StoryStep& step) {
    std::string json = session_text(bench, ".");
    for (const StoryCheck& check : step.checks) {
        const std::string value = check.kind != StoryCheck::Kind::is_not ? check.value
                                  : check.key == "text"                  ? "another sentence"
                                                                         : "7";
        const size_t key = json.find("\"" + check.key + "\": ");
        ASSERT_NE(key, std::string::npos) << check.key;
        const size_t begin = key + check.key.size() + 4, end = json.find_first_of(",\n", begin);
        const bool is_text = json[begin] == '"';
        json.replace(begin, end - begin, is_text ? "\"" + value + "\"" : value);
    }
    ASSERT_TRUE(read_session(bench, json, "."));
    Settings settings = bench.document.settings();
    for (const StoryCheck& check : step.checks) {
        if (check.key == "stage") {
            bench.show_stage(bench.computation.result()->stage_index(check.value));
            bench.view.wanted_stage = check.value;  // where it comes only with the change
        }
        EXPECT_TRUE(check.key != "mask" || set_mask_key(settings, check.value)) << check.value;
        if (check.key == "i") bench.view.picked_row = std::stoi(check.value);
        if (check.key == "j") bench.view.picked_column = std::stoi(check.value);
    }
    bench.document.change(settings);
}

TEST_F(ModelTest, every_walk_comes_to_its_end_and_no_step_counts_before_it_is_done) {
    for (int level = 1; level <= kLevelCount; ++level) {
        bench->document.change(level_settings(level));
        compute();
        const std::vector<StoryStep> steps = story(level);
        ASSERT_FALSE(steps.empty());
        for (size_t n = 1; n <= steps.size(); ++n) {
            ASSERT_TRUE(run_key(*bench, {ImGuiKey_F3, plain}));
            compute();
            const std::string where =
                "walk, step " + std::to_string(n) + " of " + std::to_string(steps.size()) + ": ";
            std::string text = describe_story(*bench);
            EXPECT_EQ(text.find(where), 0u) << text;
            EXPECT_NE(text.find("; to do: "), std::string::npos) << "level " << level << ", " << text;
            fulfil(*bench, steps[n - 1]);
            compute();
            text = describe_story(*bench);
            EXPECT_NE(text.find("; done: "), std::string::npos) << "level " << level << ", " << text;
        }
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_F3, shift}));
        EXPECT_EQ(bench->document.settings().step, steps.size() - 1);
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_F3, control}));
        EXPECT_EQ(describe_story(*bench), "");
    }
}

// By the keys that the page's walk is walked with, too.
TEST_F(ModelTest, a_step_is_done_by_its_keys) {
    bench->document.change(level_settings(1));
    compute();
    const std::vector<std::vector<ImGuiKey>> keys = {{ImGuiKey_DownArrow},
                                                     {ImGuiKey_RightArrow, ImGuiKey_RightArrow},
                                                     {ImGuiKey_LeftArrow, ImGuiKey_LeftArrow}};
    for (const std::vector<ImGuiKey>& step : keys) {
        step_story(*bench, 1);
        compute();
        for (const ImGuiKey key : step) run_key(*bench, {key, plain});
        EXPECT_NE(describe_story(*bench).find("; done: "), std::string::npos) << describe_story(*bench);
    }
}

// ---- training ----

// The panel's steps are the engine's own, and a step that was taken can be shown again.
TEST_F(ModelTest, a_model_learns_in_the_window_and_any_step_can_be_shown_again) {
    Playground& play = bench->training.playground();
    const auto settle = [&] {
        while (!play.idle()) std::this_thread::yield();
    };
    play.choose(TaskKind::reverse);
    settle();
    for (int n = 0; n < 40; ++n) play.step_once();
    settle();
    const TrainingView view = bench->training.view();
    EXPECT_EQ(view.step, 40u);
    ASSERT_EQ(view.curve.points.size(), 40u);
    const Task task = make_task(TaskKind::reverse);
    TrainState state = start_training(task, 1);
    Result<Trainer> trainer = Trainer::open(task);
    ASSERT_TRUE(trainer);
    std::vector<TrainState> states;
    for (int n = 0; n < 40; ++n) {
        states.push_back(state);
        const Result<StepReport> report = trainer->step(state);
        ASSERT_TRUE(report);
        EXPECT_EQ(view.curve.points[size_t(n)].loss, report->loss);
    }
    const Result<Probe> probe = trainer->probe(state, task.sample);
    ASSERT_TRUE(probe);
    EXPECT_EQ(view.probe.weights, probe->weights);
    ASSERT_TRUE(view.judged);
    EXPECT_EQ(view.judged->accuracy, trainer->evaluate(state)->accuracy);
    // Back to step 17, from which the same steps come again.
    play.seek(17);
    settle();
    EXPECT_EQ(bench->training.view().step, 17u);
    EXPECT_EQ(bench->training.view().probe.weights, trainer->probe(states[17], task.sample)->weights);
    EXPECT_EQ(bench->training.view().last, 40u);
    // An ablated head, and another seed next to the first run.
    play.switch_head(0);
    settle();
    EXPECT_EQ(bench->training.view().probe.probabilities,
              trainer->probe(states[17], task.sample, {1})->probabilities);
    play.switch_head(0);
    play.new_seed();
    settle();
    EXPECT_EQ(bench->training.view().others.size(), 1u);
    EXPECT_EQ(bench->training.view().curve.seed, 2u);
    EXPECT_EQ(bench->training.view().step, 0u);
    play.step_once();
    settle();
    // An exported state continues as the run itself would.
    const std::filesystem::path path = folder / "state.safetensors";
    ASSERT_TRUE(play.save_state(path));
    const Result<TensorSet> file = load_safetensors(path);
    ASSERT_TRUE(file);
    const Result<TrainState> again = read_state(*file);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->step, 1u);
    EXPECT_EQ(again->seed, 2u);
    ASSERT_TRUE(play.save_curves(folder / "curves.csv"));
    // The state in every panel.
    bench->show_trained();
    compute();
    EXPECT_EQ(bench->document.settings().task, "reverse");
    const std::vector<float> shown(bench->stage().values.begin(), bench->stage().values.end());
    bench->show_task("reverse");
    compute();
    EXPECT_NE(shown, std::vector<float>(bench->stage().values.begin(), bench->stage().values.end()));
}

// The run of a session, and a session of the run: the key `train`, as the page's address has it.
TEST_F(ModelTest, a_session_brings_back_the_step_that_a_model_was_at) {
    ASSERT_TRUE(apply_options(*bench, options_of({})));
    compute();
    const auto settle = [&] {
        while (bench->training.is_behind()) std::this_thread::yield();
    };
    const std::string json =
        R"({"format":"fovea-session","version":1,"state":{"task":"reverse","train":"reverse+rotary,4,30,1,c b a"}})";
    ASSERT_TRUE(read_session(*bench, json, "."));
    EXPECT_EQ(bench->window.centre, CentreTab::train);
    settle();
    TaskOptions options = task_options(TaskKind::reverse);
    options.positions = Positions::rotary;
    const Task task = *make_task(options);
    TrainState state = start_training(task, 4);
    Result<Trainer> trainer = Trainer::open(task);
    ASSERT_TRUE(trainer);
    for (int n = 0; n < 30; ++n) ASSERT_TRUE(trainer->step(state));
    const std::vector<uint32_t> tokens = *task_tokens(task, "c b a");
    EXPECT_EQ(bench->training.view().step, 30u);
    EXPECT_EQ(bench->training.view().curve.points.size(), 30u);
    EXPECT_EQ(bench->training.view().probe.weights, trainer->probe(state, tokens, {1})->weights);
    EXPECT_NE(session_text(*bench, ".").find(R"("train": "reverse+rotary,4,30,1,c b a")"), std::string::npos)
        << session_text(*bench, ".");
    // By the palette; one that is none is told, and the run stays.
    ASSERT_TRUE(set_session_key(*bench, "train", "sort,2,3"));
    settle();
    EXPECT_EQ(write_training_place(bench->training.playground().place()), "sort,2,3,0,");
    ASSERT_TRUE(set_session_key(*bench, "train", "sort,2,-3"));
    settle();
    EXPECT_EQ(write_training_place(bench->training.playground().place()), "sort,2,3,0,");
    EXPECT_NE(bench->problems.back().text.find("'-3' as its step"), std::string::npos);
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
