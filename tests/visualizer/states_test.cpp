// One state after another: whatever was shown before, a level or task opens as at a fresh start; exports and
// sessions hold what they say; what was set comes back.
#include "data/exporting.hpp"
#include "data/session_file.hpp"
#include "data/text_file.hpp"
#include "document/opened_model.hpp"
#include "panels/keys.hpp"
#include "run.hpp"
#include "theme/theme.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/model/learned.hpp>

#include <fstream>
#include <thread>

namespace fovea::visualizer {
namespace {

class StatesTest : public VisualizerTest {
  protected:
    static std::vector<std::string> presets() {
        std::vector<std::string> all = learned_tasks();
        for (int level = 1; level <= kLevelCount; ++level) all.push_back(std::to_string(level));
        return all;
    }
    static Options preset(const std::string& name) {
        Options o;
        if (name.size() == 1)
            o.level = name[0] - '0';
        else
            o.task = name;
        return o;
    }
    void open(const std::string& name) {
        if (name.size() == 1)
            bench->show_level(name[0] - '0');
        else
            bench->show_task(name);
    }
    std::vector<float> weights() const {
        const Stage& stage = *bench->computation.find_stage(StageId::weights);
        return {stage.values.begin(), stage.values.end()};
    }
    std::string file(const std::string& name) const {
        const Result<std::string> text = read_text_file(folder / name);
        return text ? *text : "";
    }
    std::string problems() const {
        std::string all;
        for (const Problem& problem : bench->problems) all += problem.where + ": " + problem.text + "\n";
        return all;
    }
    // A model of GPT-2's family whose tokens are those of a real tokenizer.
    std::filesystem::path model_with_words() const {
        const std::filesystem::path families = FOVEA_FAMILIES, to = folder / "reads-words";
        std::filesystem::create_directories(to);
        std::filesystem::copy_file(families / "gpt2/config.json", to / "config.json");
        std::filesystem::copy_file(families.parent_path() / "tokenizers/gpt2.json", to / "tokenizer.json");
        Result<TensorSet> set = load_safetensors(families / "gpt2/model.safetensors");
        EXPECT_TRUE(set);
        for (Tensor& tensor : set->tensors) {
            const uint64_t rows = tensor.name.ends_with("wte.weight")   ? 330
                                  : tensor.name.ends_with("wpe.weight") ? 64
                                                                        : 0;
            if (rows == 0) continue;
            std::vector<float> values(rows * tensor.shape[1]);
            for (size_t i = 0; i < values.size(); ++i) values[i] = float(i * 2654435761u % 1000) / 500 - 1;
            tensor = make_tensor(tensor.name, {rows, tensor.shape[1]}, std::move(values)).value();
        }
        EXPECT_TRUE(save_safetensors(to / "model.safetensors", *set));
        return to;
    }
};

TEST_F(StatesTest, every_level_and_task_opens_from_every_other_as_at_a_fresh_start) {
    for (const std::string& to : presets()) {
        Workbench fresh(*device, false);
        ASSERT_TRUE(apply_options(fresh, preset(to)));
        for (const std::string& from : presets()) {
            bench->document.change(Settings());
            open(from);
            open(to);
            Settings shown = bench->document.settings();
            // A task remembers the level that one comes back to.
            if (!shown.task.empty()) shown.level = fresh.document.settings().level;
            EXPECT_EQ(shown, fresh.document.settings()) << from << " to " << to;
        }
    }
    // The numbers, too: level 1 has no scale, level 4 drops weights.
    open("induction");
    compute();
    const std::vector<float> own = weights();
    for (const char* from : {"1", "4"}) {
        open(from);
        compute();
        open("induction");
        compute();
        EXPECT_EQ(weights(), own) << from;
    }
}

TEST_F(StatesTest, the_level_about_dropout_opens_on_what_dropout_leaves) {
    open("3");
    compute();
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_4, alt}));
    compute();
    EXPECT_EQ(bench->stage().name, "dropped");
    // List and matrix are of one stage.
    EXPECT_EQ(bench->shown_weights().stage, &bench->stage());
    show("weights");
    EXPECT_EQ(bench->shown_weights().stage->name, "weights");
    show("queries");
    EXPECT_EQ(bench->shown_weights().stage->name, "weights");
}

TEST_F(StatesTest, a_changed_level_is_not_called_the_level_and_comes_back) {
    open("3");
    compute();
    EXPECT_EQ(describe(*bench).find("level 3, Causal mask; "), 0u);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_Space, plain}));
    compute();
    EXPECT_EQ(describe(*bench).find("level 3, Causal mask, changed; "), 0u) << describe(*bench).substr(0, 80);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_3, alt}));
    EXPECT_TRUE(is_plain_level(bench->document.settings()));
}

TEST_F(StatesTest, only_what_was_selected_cuts_an_export) {
    open("3");
    compute();
    const auto rows_of = [&](const char* name) {
        EXPECT_TRUE(export_file(*bench, (folder / name).string()));
        const Result<CsvTable> table = load_csv(folder / name);
        EXPECT_TRUE(table) << table.error().text;
        return table ? *table : CsvTable{};
    };
    show("weights");
    bench->view.picked_row = 2, bench->view.picked_column = 1;
    const std::vector<CellInput> inputs = bench->picked_inputs();
    ASSERT_FALSE(inputs.empty());
    bench->show_input(inputs[0]);
    ASSERT_TRUE(bench->view.marked);
    EXPECT_EQ(rows_of("walked.csv").values.shape, (std::vector<uint64_t>{6, 6}));
    // Rows and columns have names.
    const CsvTable whole = rows_of("whole.csv");
    EXPECT_EQ(whole.rows,
              (std::vector<std::string>{"0 Your", "1 journey", "2 starts", "3 with", "4 one", "5 step"}));
    EXPECT_EQ(whole.columns, whole.rows);
    bench->view.selection = CellRect{1, 2, 0, 3};
    const CsvTable part = rows_of("part.csv");
    EXPECT_EQ(part.values.shape, (std::vector<uint64_t>{2, 4}));
    EXPECT_EQ(part.rows, (std::vector<std::string>{"1 journey", "2 starts"}));
    ASSERT_TRUE(export_file(*bench, (folder / "part.svg").string()));
    const std::string svg = file("part.svg");
    EXPECT_NE(svg.find(">journey<"), std::string::npos);
    EXPECT_EQ(svg.find(">step<"), std::string::npos);
    // Another matrix is whole.
    bench->show_stage(bench->view.stage + 1);
    EXPECT_FALSE(bench->view.selection);
    bench->view.selection = CellRect{1, 2, 0, 3};
    open("2");
    compute();
    EXPECT_FALSE(bench->view.selection);
}

TEST_F(StatesTest, a_click_on_an_input_keeps_query_and_key_and_has_a_way_back) {
    open("2");
    compute();
    show("weights");
    bench->view.picked_row = 4, bench->view.picked_column = 3;
    const std::vector<CellInput> inputs = bench->picked_inputs();
    ASSERT_FALSE(inputs.empty());
    ASSERT_TRUE(inputs[0].stage->over_keys);
    bench->show_input(inputs[0]);
    EXPECT_EQ(bench->view.picked_row, 4);
    EXPECT_EQ(bench->view.picked_column, 3);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_Backspace, plain}));
    EXPECT_EQ(bench->stage().name, "weights");
    EXPECT_EQ(std::pair(bench->view.picked_row, bench->view.picked_column), std::pair(4, 3));
    EXPECT_FALSE(bench->view.pinned);
    EXPECT_FALSE(bench->view.marked);
    bench->go_back();  // nowhere: nothing
    EXPECT_EQ(bench->stage().name, "weights");
}

TEST_F(StatesTest, a_head_that_is_off_takes_no_tokens_with_it) {
    if (!TextTokenizer::available()) GTEST_SKIP() << "this build has no PCRE2, or no utf8proc";
    for (const std::string& path :
         {model_with_words().string(), std::string(FOVEA_FAMILIES "/llama_q8/model.gguf")}) {
        ASSERT_TRUE(open_any(*bench, path)) << problems();
        compute();
        const std::vector<std::string> tokens = bench->computation.tokens();
        ASSERT_GT(tokens.size(), 2u);
        for (int n = 0; n < 6; ++n) {
            Settings settings = bench->document.settings();
            settings.mapping.layer = 1;
            toggle_head(settings, {uint32_t(n / 2 % 2), 1});
            bench->document.change(settings);
            compute();
            ASSERT_EQ(bench->computation.tokens(), tokens) << path << " change " << n;
        }
    }
}

TEST_F(StatesTest, sessions_of_a_published_model_bring_it_back) {
    const std::filesystem::path path = model_with_words();
    ASSERT_TRUE(open_any(*bench, path.string())) << problems();
    Settings s = bench->document.settings();
    if (s.model->tokenizer) s.text = "Hello, world!";
    toggle_head(s, {0, 1});
    change_head(s, {{1, 2}, 0.5f, ""});
    change_head(s, {{1, 3}, 1, s.text});
    s.mapping.layer = 1;
    bench->document.change(s);
    bench->view.head = 2;
    compute();
    bench->view.head = 2;
    bench->past.lock();
    ASSERT_TRUE(save_session(*bench, folder / "model.fovea"));
    EXPECT_EQ(session_left_out(*bench), "");

    const auto expect_back = [&](const std::string& text) {
        Workbench other(*device, false);
        const Result<void> read = read_session(other, text, folder);
        ASSERT_TRUE(read) << read.error().text;
        const Settings back = other.document.settings();
        ASSERT_TRUE(back.model);
        EXPECT_TRUE(std::filesystem::equivalent(back.model->path, path));
        Settings same = back;
        same.model = s.model;
        EXPECT_EQ(same, s);
        EXPECT_EQ(other.view.head, 2u);
        ASSERT_EQ(other.past.all().size(), 1u);
        EXPECT_EQ(other.past.all()[0].head, 2u);
        EXPECT_EQ(other.past.all()[0].settings.mapping.layer, 1u);
        EXPECT_TRUE(other.problems.empty()) << other.problems.back().text;
    };
    const std::string text = file("model.fovea");
    expect_back(text);
    expect_back(session_text(*bench, folder));  // as the autosave has it
    // A program that cannot show it reports that, and computes nothing else under its name.
    const Result<ReadSession> read = fovea::read_session(text);
    ASSERT_TRUE(read);
    const Result<SessionModel> computed = session_model(read->session);
    ASSERT_FALSE(computed);
    EXPECT_NE(computed.error().text.find("reads-words"), std::string::npos) << computed.error().text;

    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const size_t at = changed.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return changed.replace(at, from.size(), to);
    };
    Workbench other(*device, false);
    for (const auto& [bad, said] : {std::pair{with("0 1 0", "7 1 0"), "'7 1 0'; it must be LAYER HEAD SCALE"},
                                    {with("1 2 0.5", "1 2 half"), "scales 0 to 2"},
                                    {with("reads-words", "no-such"), "no-such"}}) {
        const Result<void> refused = read_session(other, bad, folder);
        ASSERT_FALSE(refused) << said;
        EXPECT_NE(refused.error().text.find(said), std::string::npos) << refused.error().text;
    }
    // Another model at the same place is told.
    std::ofstream(path / "config.json", std::ios::app) << "\n";
    ASSERT_TRUE(read_session(other, text, folder));
    EXPECT_NE(other.problems.back().text.find("has changed"), std::string::npos);
}

TEST_F(StatesTest, a_session_says_what_it_leaves_out_and_names_its_file) {
    open("induction");
    compute();
    (void)bench->training.view();  // looked at
    bench->window.centre = CentreTab::train;
    EXPECT_NE(session_text(*bench, ".").find(R"("train": "")"), std::string::npos);
    while (bench->training.is_behind()) std::this_thread::yield();
    bench->training.playground().step_once();
    while (bench->training.is_behind()) std::this_thread::yield();
    EXPECT_EQ(session_text(*bench, ".").find(R"("train": "")"), std::string::npos);
    EXPECT_EQ(session_left_out(*bench), "");
    bench->window.centre = CentreTab::matrix;
    EXPECT_NE(session_text(*bench, ".").find(R"("train": "")"), std::string::npos);
    EXPECT_NE(session_left_out(*bench).find("the training run"), std::string::npos);
    bench->show_trained();
    compute();
    EXPECT_NE(session_left_out(*bench).find("the weights trained here"), std::string::npos);
    save_shown(*bench, (folder / "trained.fovea").string());
    ASSERT_TRUE(bench->window.notice);
    EXPECT_FALSE(bench->window.notice->good);
    EXPECT_NE(bench->window.notice->text.find("without the weights trained here"), std::string::npos);

    // A session has no theme, those of before neither.
    bench->window.theme = Theme::light;
    ASSERT_TRUE(read_session(
        *bench, R"({"format":"fovea-session","version":1,"state":{},"desktop":{"theme":"dark"}})", folder));
    EXPECT_EQ(bench->window.theme, Theme::light);

    std::ofstream(folder / "newer.fovea") << R"({"format": "fovea-session", "version": 99})";
    const Result<void> refused = open_session(*bench, folder / "newer.fovea");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text.find("newer.fovea: "), 0u) << refused.error().text;
}

TEST_F(StatesTest, an_own_text_of_letters_leaves_one_line_and_the_pick_at_its_end) {
    open("induction");
    compute();
    EXPECT_EQ(text_hint(bench->document.settings()), "letters a to z");
    EXPECT_TRUE(reads_no_words(bench->document.settings()));
    EXPECT_FALSE(reads_no_words(level_settings(2)));
    for (const char* text :
         {"the cat, the", "the cat, the cat!", "the cat, the cat! 42", "the cat the cat"}) {
        Settings s = bench->document.settings();
        s.text = text;
        bench->document.change(s, 7);
        bench->pick_largest(UINT64_MAX);
        compute();
        size_t lines = 0;
        for (const Problem& problem : bench->problems) lines += problem.where == "text" ? 1 : 0;
        EXPECT_EQ(lines, std::string(text).find_first_of(",!4") == std::string::npos ? 0u : 1u) << problems();
        EXPECT_EQ(problems().find("file: "), std::string::npos);
    }
    const Workbench::Weights weights = bench->shown_weights();
    EXPECT_EQ(bench->view.picked_row, int(weights.stage->rows) - 1);
    const std::span<const float> row = weights.row(uint64_t(bench->view.picked_row));
    EXPECT_EQ(row[size_t(bench->view.picked_column)], *std::max_element(row.begin(), row.end()));
}

TEST_F(StatesTest, equal_tokens_have_their_index) {
    open("2");
    Settings s = bench->document.settings();
    s.text = "the cat and the dog";
    bench->document.change(s);
    compute();
    EXPECT_EQ(token_name(*bench, 0), "the (0)");
    EXPECT_EQ(token_name(*bench, 1), "cat");
    EXPECT_EQ(token_name(*bench, 3), "the (3)");
    bench->view.picked_row = 3, bench->view.picked_column = 0;
    show("weights");
    EXPECT_NE(describe(*bench).find("the (3)"), std::string::npos) << describe(*bench);
}

// The faster one of the software drivers, at any place in the list.
TEST_F(StatesTest, devices_are_ranked_by_how_fast_a_frame_is) {
    const auto rank = [](VkPhysicalDeviceType type, uint32_t vendor) {
        VkPhysicalDeviceProperties properties{};
        properties.deviceType = type, properties.vendorID = vendor;
        return device_rank(properties);
    };
    constexpr uint32_t kMesa = 0x10005, kSwiftShader = 0x1ae0, kNvidia = 0x10de;
    EXPECT_GT(rank(VK_PHYSICAL_DEVICE_TYPE_CPU, kMesa), rank(VK_PHYSICAL_DEVICE_TYPE_CPU, kSwiftShader));
    EXPECT_GT(rank(VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, kSwiftShader),
              rank(VK_PHYSICAL_DEVICE_TYPE_CPU, kMesa));
    EXPECT_GT(rank(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, kNvidia),
              rank(VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, kNvidia));
    EXPECT_GT(rank(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, kNvidia),
              rank(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, kNvidia));
    EXPECT_GT(rank(VK_PHYSICAL_DEVICE_TYPE_CPU, kSwiftShader), 0);
}

// A logit's color means one thing in every stage, whichever signs its matrix has.
TEST_F(StatesTest, logits_of_all_stages_have_one_map_of_colors) {
    for (int level = 1; level <= kLevelCount; ++level) {
        bench->show_level(level);
        compute();
        for (const Stage& stage : bench->computation.stages()) {
            if (!stage.id || !stage_text(*stage.id).is_signed) continue;
            for (const ColorRange& range : stage.ranges)
                EXPECT_EQ(coloring_of({}, range).map, Colormap::blue_orange)
                    << "level " << level << " " << stage.name;
        }
    }
}

TEST(TextOrder, right_to_left_text_is_drawn_from_its_end) {
    EXPECT_EQ(in_drawing_order("plain \xc3\xa9 \xe7\x8c\xab"), "plain \xc3\xa9 \xe7\x8c\xab");
    EXPECT_EQ(in_drawing_order(""), "");
    EXPECT_EQ(in_drawing_order("a\xe2\x80\x8e"
                               "b\xe2\x81\xa6"),
              "ab");  // marks have no picture
    if (!reorders_text()) GTEST_SKIP() << "this build has no FriBidi";
    EXPECT_EQ(in_drawing_order("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d"), "\xd7\x9d\xd7\x95\xd7\x9c\xd7\xa9");
    // Numbers and Latin words within keep their direction.
    EXPECT_EQ(in_drawing_order("\xd7\xa9\xd7\x9c 12"), "12 \xd7\x9c\xd7\xa9");
    EXPECT_EQ(in_drawing_order("a \xd7\xa9\xd7\x9c b"), "a \xd7\x9c\xd7\xa9 b");
    // Meem, reh, hah, beh, alef: initial, final, initial, medial, final form.
    EXPECT_EQ(in_drawing_order("\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7"),
              "\xef\xba\x8e\xef\xba\x92\xef\xba\xa3\xef\xba\xae\xef\xbb\xa3");
    // Lam and alef are one glyph, without a gap.
    EXPECT_EQ(in_drawing_order("\xd9\x84\xd8\xa7"), "\xef\xbb\xbb");
}

}  // namespace
}  // namespace fovea::visualizer
