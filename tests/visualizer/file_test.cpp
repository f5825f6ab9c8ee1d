// Files in and out: each malformed file is a line of the Problems panel, tensors come in whatever their
// layout, sessions come back as they were, exports hold the shown numbers.
#include "data/exporting.hpp"
#include "data/session_file.hpp"
#include "data/text_file.hpp"
#include "document/imported_file.hpp"
#include "files/sha256.hpp"
#include "panels/panels.hpp"
#include "visualizer_fixture.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace fovea::visualizer {
namespace {

class FileTest : public VisualizerTest {
  protected:
    Tensor tensor(const std::string& name, std::vector<uint64_t> shape, uint32_t seed) {
        uint64_t count = 1;
        for (const uint64_t n : shape) count *= n;
        std::mt19937 random(seed);
        std::vector<float> values(count);
        for (float& v : values) v = float(random() % 2001) / 1000 - 1;
        return *make_tensor(name, std::move(shape), std::move(values));
    }
    std::string save(const std::vector<Tensor>& tensors, const std::string& name = "file.safetensors") {
        TensorSet set;
        set.tensors = tensors;
        set.metadata = metadata;
        const std::string path = (folder / name).string();
        EXPECT_TRUE(save_safetensors(path, set));
        return path;
    }
    // The weight of a cell in double precision.
    double expected(const Tensor& q, const Tensor& k, uint64_t dim, uint64_t row, uint64_t column,
                    uint64_t keys) {
        const std::vector<float> qv = *to_f32(q), kv = *to_f32(k);
        double sum = 0, wanted = 0;
        for (uint64_t j = 0; j < keys; ++j) {
            double dot = 0;
            for (uint64_t d = 0; d < dim; ++d) dot += double(qv[row * dim + d]) * double(kv[j * dim + d]);
            const double e = std::exp(dot / std::sqrt(double(dim)));
            sum += e;
            if (j == column) wanted = e;
        }
        return wanted / sum;
    }
    std::vector<std::pair<std::string, std::string>> metadata;
};

TEST_F(FileTest, each_malformed_file_is_a_problem_and_the_picture_stays) {
    bench->document.change(level_settings(3));
    compute();
    const float before = value("weights", 1, 1);
    const Settings settings = bench->document.settings();
    size_t refused = 0, opened = 0;
    for (const char* format : {"safetensors", "npy", "npz", "csv", "png"}) {
        for (const auto& entry :
             std::filesystem::directory_iterator(std::filesystem::path(FOVEA_CORPUS) / format)) {
            if (entry.path().filename() == "expected.txt") continue;
            bench->problems.clear();
            if (bench->open_file(entry.path().string())) {
                ++opened;
                update();  // a file that cannot be shown is rejected with its name, too
                bench->document.undo();
                continue;
            }
            ++refused;
            ASSERT_EQ(bench->problems.size(), 1u) << entry.path();
            EXPECT_FALSE(bench->problems[0].text.empty()) << entry.path();
        }
    }
    EXPECT_GE(refused, 200u);
    EXPECT_EQ(bench->document.settings(), settings) << opened << " files were opened and undone";
    compute();
    EXPECT_EQ(value("weights", 1, 1), before);
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(FOVEA_CORPUS) / "safetensors"))
        EXPECT_FALSE(open_session(*bench, entry.path())) << entry.path();
}

TEST_F(FileTest, layouts_and_fused_tensors_give_the_same_weights) {
    const uint64_t heads = 3, length = 5, dim = 4;
    const Tensor q = tensor("q", {1, heads, length, dim}, 1), k = tensor("k", {1, heads, length, dim}, 2),
                 v = tensor("v", {1, heads, length, dim}, 3);
    metadata = {{"tokens", "[\"The\", \" cat\", \" s\\u00e4t\", \".\", \"\\\"\"]"}, {"causal", "none"}};
    ASSERT_TRUE(bench->open_file(save({q, k, v})));
    compute();
    EXPECT_EQ(bench->computation.tokens(),
              (std::vector<std::string>{"The", " cat", " s\xc3\xa4t", ".", "\""}));
    ASSERT_EQ(bench->stage().heads, heads);
    EXPECT_NEAR(value("weights", 2, 3), expected(q, k, dim, 2, 3, length), 1e-6);

    // The same numbers as [tokens, heads, width], and fused.
    const std::vector<float> qv = *to_f32(q), kv = *to_f32(k), vv = *to_f32(v);
    std::vector<float> turned[3], fused;
    for (uint64_t i = 0; i < length; ++i) {
        for (int part = 0; part < 3; ++part) {
            const std::vector<float>& from = part == 0 ? qv : part == 1 ? kv : vv;
            for (uint64_t h = 0; h < heads; ++h)
                for (uint64_t d = 0; d < dim; ++d) {
                    turned[part].push_back(from[(h * length + i) * dim + d]);
                    fused.push_back(turned[part].back());
                }
        }
    }
    const std::vector<float> first(bench->stage().values.begin(), bench->stage().values.end());
    metadata.clear();
    ASSERT_TRUE(bench->open_file(save({*make_tensor("query", {length, heads, dim}, turned[0]),
                                       *make_tensor("key", {length, heads, dim}, turned[1]),
                                       *make_tensor("value", {length, heads, dim}, turned[2])},
                                      "turned.safetensors")));
    Settings s = bench->document.settings();
    s.mapping.layout = TensorLayout::tokens_first;
    bench->document.change(s);
    compute();
    show("weights");
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(bench->stage().values[i], first[i], 1e-6) << i;
    ASSERT_TRUE(
        bench->open_file(save({*make_tensor("qkv", {length, 3 * heads * dim}, fused)}, "fused.safetensors")));
    s = bench->document.settings();
    ASSERT_EQ(s.mapping.kind, ImportKind::fused);
    EXPECT_EQ(bench->document.settings().mapping.heads, 1u);
    s.mapping.heads = uint32_t(heads);
    bench->document.change(s);
    compute();
    show("weights");
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(bench->stage().values[i], first[i], 1e-6) << i;
}

TEST_F(FileTest, layers_of_a_model_are_applied_to_the_text) {
    metadata = {{"n_head", "2"}};
    std::vector<Tensor> weights;
    for (uint32_t layer = 0; layer < 2; ++layer) {
        const std::string prefix = "h." + std::to_string(layer) + ".attn.";
        weights.push_back(tensor(prefix + "c_attn.weight", {8, 24}, layer * 4 + 1));
        weights.push_back(tensor(prefix + "c_attn.bias", {24}, layer * 4 + 2));
        weights.push_back(tensor(prefix + "c_proj.weight", {8, 8}, layer * 4 + 3));
        weights.push_back(tensor(prefix + "c_proj.bias", {8}, layer * 4 + 4));
    }
    ASSERT_TRUE(bench->open_file(save(weights)));
    EXPECT_EQ(bench->document.settings().mapping.kind, ImportKind::gpt2);
    compute();
    EXPECT_EQ(bench->computation.tokens().at(1), "journey");
    ASSERT_EQ(bench->computation.find_stage(StageId::weights)->heads, 2u);
    const float first = value("weights", 3, 1);
    Settings s = bench->document.settings();
    s.mapping.layer = 1;
    bench->document.change(s);
    compute();
    EXPECT_NE(value("weights", 3, 1), first);
    s.mapping.layer = 2;
    bench->document.change(s);
    EXPECT_FALSE(update());
    bench->document.undo();
    bench->document.undo();
    compute();
    EXPECT_EQ(value("weights", 3, 1), first);
}

TEST_F(FileTest, tensors_that_do_not_fit_are_refused_by_name) {
    bench->document.change(level_settings(2));
    compute();
    const Tensor q = tensor("q", {2, 5, 4}, 1), k = tensor("k", {2, 5, 6}, 2);
    ASSERT_TRUE(bench->open_file(save({q, k})));
    EXPECT_FALSE(update());
    EXPECT_NE(bench->computation.problem().find("keys 6 (tensor 'k')"), std::string::npos)
        << bench->computation.problem();
    EXPECT_TRUE(bench->computation.ready());
    // NaN and infinity are shown, and reported.
    ASSERT_TRUE(bench->open_file(
        save({*make_tensor("heat", {2, 2}, {1.0f, NAN, INFINITY, 2.0f})}, "heat.safetensors")));
    bench->problems.clear();
    compute();
    EXPECT_EQ(bench->computation.find_stage("file: heat")->stats->nan, 1u);
    EXPECT_EQ(bench->problems.size(), 2u);
}

// The title names the file of the shown numbers, or says that they belong to another.
TEST_F(FileTest, a_refused_files_name_is_not_over_anothers_numbers) {
    EXPECT_EQ(file_title(*bench), "");
    const std::string good = save({tensor("q", {2, 4, 4}, 1), tensor("k", {2, 4, 4}, 2)});
    ASSERT_TRUE(bench->open_file(good));
    EXPECT_NE(file_title(*bench).find("(being read)"), std::string::npos);
    compute();
    EXPECT_EQ(file_title(*bench), file_name(good));
    const std::string wrong = save({tensor("q", {2, 4, 4}, 1), tensor("k", {2, 4, 2}, 2)});
    ASSERT_TRUE(bench->open_file(wrong));
    EXPECT_FALSE(update());
    EXPECT_EQ(file_title(*bench),
              file_name(wrong) + " (rejected: the values are those of the settings before)");
    bench->document.undo();
    compute();
    EXPECT_EQ(file_title(*bench), file_name(good));
}

TEST_F(FileTest, a_folder_s_name_enters_it) {
    WindowState window;
    window.file_name = "sub";
    std::filesystem::create_directories(folder / "sub");
    EXPECT_TRUE(enter_folder(window, folder / "sub"));
    EXPECT_EQ(window.folder, (folder / "sub").string());
    EXPECT_EQ(window.file_name, "");
    EXPECT_FALSE(enter_folder(window, folder / "nothing.npy"));
}

TEST_F(FileTest, text_under_a_wrong_name_is_told_as_such) {
    std::ofstream(folder / "hello.safetensors") << "hello, this is no tensor\n";
    EXPECT_FALSE(bench->open_file((folder / "hello.safetensors").string()));
    ASSERT_EQ(bench->problems.size(), 1u);
    EXPECT_NE((*bench->problems.begin()).text.find("it begins with 'hello, t'"), std::string::npos);
}

TEST_F(FileTest, sessions_come_back_as_they_were) {
    Settings s = level_settings(7);
    s.text = "\xe7\x8c\xab and \"dog\"";
    s.temperature = 0.5f;
    s.softcap = 3;
    s.hidden_keys = {1, 4};
    s.alibi = true;
    s.kv_heads = 4;
    s.length = 9;
    s.pattern = MaskPattern::painted;
    s.painted = {std::vector<uint8_t>(81, 1), 9, 9};
    s.painted.cells[5] = s.painted.cells[40] = 0;
    bench->document.change(s);
    compute();
    bench->view.colors.map = Colormap::magma;
    bench->view.colors.automatic_map = false;
    bench->view.colors.range_high = 0.25f;
    bench->view.compared_head = 3;
    show("scaled");
    const std::filesystem::path path = folder / "kept.fovea";
    ASSERT_TRUE(save_session(*bench, path));
    Workbench other(*device, false);
    ASSERT_TRUE(open_session(other, path));
    EXPECT_EQ(other.document.settings(), s);
    EXPECT_EQ(other.view.colors.map, Colormap::magma);
    EXPECT_EQ(other.view.colors.range_high, 0.25f);
    EXPECT_TRUE(std::isnan(other.view.colors.range_low));
    EXPECT_EQ(other.view.compared_head, 3);
    std::swap(bench->view.wanted_stage, other.view.wanted_stage);
    EXPECT_EQ(bench->view.wanted_stage, "scaled");
    for (const char* bad :
         {"", "[]", "{\"format\": \"other\"}", "{\"format\": \"fovea-session\", \"version\": 2}"}) {
        EXPECT_FALSE(read_session(other, bad, folder)) << bad;
        EXPECT_EQ(other.document.settings(), s);
    }
}

TEST_F(FileTest, sessions_hold_tensors_by_path_or_within) {
    const Tensor q = tensor("q", {2, 4, 4}, 1), k = tensor("k", {2, 4, 4}, 2);
    ASSERT_TRUE(bench->open_file(save({q, k})));
    compute();
    const float before = value("weights", 1, 2, 1);
    ASSERT_TRUE(save_session(*bench, folder / "by_path.fovea"));
    bench->document.change(level_settings(1));
    compute();
    ASSERT_TRUE(open_session(*bench, folder / "by_path.fovea"));
    compute();
    EXPECT_EQ(value("weights", 1, 2, 1), before);
    const std::string embedded =
        "{\"format\": \"fovea-session\", \"version\": 1, \"state\": {\"level\": 2},"
        "\"tensors\": {\"q\": {\"shape\": [1, 1, 2], \"f32\": \"AACAPwAAAEA=\"},"
        "\"k\": {\"shape\": [1, 1, 2], \"f32\": \"AACAPwAAAEA=\"}}}";
    ASSERT_TRUE(read_session(*bench, embedded, folder));
    compute();
    EXPECT_FLOAT_EQ(value("scaled", 0, 0), 5 / std::sqrt(2.0f));
    ASSERT_TRUE(save_session(*bench, folder / "within.fovea"));
    EXPECT_NE(read_text_file(folder / "within.fovea")->find("AACAPwAAAEA="), std::string::npos);
    const Result<void> cut = read_session(*bench,
                                          "{\"format\": \"fovea-session\", \"version\": 1, \"state\": {},"
                                          "\"tensors\": {\"q\": {\"shape\": [9, 9, 9], \"f32\": \"AAAA\"}}}",
                                          folder);
    EXPECT_FALSE(cut);
}

TEST_F(FileTest, sessions_keep_a_and_know_a_changed_file) {
    const Tensor q = tensor("q", {1, 4, 4}, 1), k = tensor("k", {1, 4, 4}, 2);
    bench->document.change(level_settings(3));
    compute();
    bench->past.keep();
    ASSERT_TRUE(bench->open_file(save({q, k})));
    compute();
    ASSERT_TRUE(save_session(*bench, folder / "kept.fovea"));
    const std::string text = *read_text_file(folder / "kept.fovea");
    EXPECT_NE(text.find("\"sha256\": \""), std::string::npos);
    bench->past.drop_kept();
    bench->problems.clear();
    ASSERT_TRUE(open_session(*bench, folder / "kept.fovea"));
    compute();
    ASSERT_NE(bench->past.kept(), nullptr);
    EXPECT_EQ(bench->past.kept()->result->settings.level, 3);
    EXPECT_FALSE(bench->past.kept()->result->settings.file);
    EXPECT_TRUE(bench->document.settings().file);
    EXPECT_TRUE(bench->problems.empty());
    save({k, q});
    ASSERT_TRUE(open_session(*bench, folder / "kept.fovea"));
    ASSERT_EQ(bench->problems.size(), 1u);
    EXPECT_NE(bench->problems[0].text.find("has changed"), std::string::npos);
    compute();
    const std::string_view abc = "abc";
    EXPECT_EQ(sha256(std::as_bytes(std::span(abc))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// Locked tabs are computed again, each with its own head and stage; A is restored in addition.
TEST_F(FileTest, sessions_keep_locked_tabs) {
    const Tensor q = tensor("q", {2, 4, 4}, 1), k = tensor("k", {2, 4, 4}, 2);
    bench->document.change(level_settings(5));
    compute();
    show("scaled");
    bench->view.head = 1;
    bench->past.lock();
    bench->past.keep();
    show("weights");
    bench->past.lock();
    ASSERT_TRUE(bench->open_file(save({q, k})));
    compute();
    bench->view.head = 1;
    bench->past.lock();
    Settings hot = bench->document.settings();
    hot.temperature = 2;
    bench->document.change(hot);
    compute();
    const auto tabs = [&] {
        std::vector<std::pair<std::string, std::vector<float>>> all;
        for (const LockedMatrix& one : bench->past.locked()) {
            const std::span<const float> v = one.result->stages[one.stage].head_values(one.head);
            all.push_back({one.name, {v.begin(), v.end()}});
        }
        return all;
    };
    const auto before = tabs();
    ASSERT_EQ(before.size(), 3u);
    EXPECT_EQ(before[0].first, "level 5 H1 scaled");
    const std::string path = (folder / "tabs.fovea").string();
    ASSERT_TRUE(save_session(*bench, path));
    const std::string text = *read_text_file(path);
    // On another device, and from the file.
    for (const bool carried : {true, false}) {
        auto next = std::make_unique<Workbench>(*device, false);
        if (carried)
            next->take(bench->carry());
        else
            ASSERT_TRUE(open_session(*next, path));
        bench = std::move(next);
        EXPECT_TRUE(bench->past.restoring());
        EXPECT_EQ(bench->past.all().size(), 4u);
        // Requests in the meantime apply to the session's own result.
        EXPECT_EQ(bench->document.settings().temperature, 2);
        Settings hotter = bench->document.settings();
        hotter.temperature = 3;
        bench->document.change(hotter);
        compute();
        EXPECT_EQ(bench->document.settings().temperature, 3);
        bench->document.undo();
        compute();
        EXPECT_FALSE(bench->past.restoring());
        EXPECT_EQ(tabs(), before);
        EXPECT_EQ(bench->past.locked()[0].result->run, bench->past.locked()[1].result->run);
        ASSERT_NE(bench->past.kept(), nullptr);
        EXPECT_EQ(bench->past.kept()->head, 1u);
        EXPECT_EQ(session_text(*bench, folder), text);
    }
    // Opened again over itself: the tabs are those of the file, not twice as many.
    ASSERT_TRUE(open_session(*bench, path));
    compute();
    EXPECT_EQ(tabs(), before);
    // A tab whose file is gone is left out, and says so.
    Settings plain = level_settings(2);
    bench->document.change(plain);
    compute();
    ASSERT_TRUE(save_session(*bench, path));
    std::filesystem::remove(folder / "file.safetensors");
    bench->problems.clear();
    ASSERT_TRUE(open_session(*bench, path));
    compute();
    EXPECT_EQ(tabs(), (std::vector{before[0], before[1]}));
    ASSERT_EQ(bench->problems.size(), 1u);
    EXPECT_NE(bench->problems[0].text.find("locked tab 3 is left out"), std::string::npos);
}

TEST_F(FileTest, exports_hold_the_shown_numbers) {
    bench->document.change(level_settings(5));
    compute();
    show("weights");
    bench->view.head = 1;
    const std::span<const float> shown = bench->stage().head_values(1);
    ASSERT_TRUE(export_file(*bench, (folder / "w.npy").string()));
    const Result<Tensor> npy = load_npy(folder / "w.npy");
    ASSERT_TRUE(npy);
    const std::vector<float> values = *to_f32(*npy);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), shown.begin(), shown.end()));
    ASSERT_TRUE(export_file(*bench, (folder / "w.svg").string()));
    const std::string svg = *read_text_file(folder / "w.svg");
    EXPECT_NE(svg.find(">" + format_fixed(shown[6], 4) + "<"), std::string::npos);
    EXPECT_NE(svg.find("journey"), std::string::npos);
    EXPECT_FALSE(export_file(*bench, (folder / "w.exe").string()));
    bench->view.selection = CellRect{1, 2, 3, 5};
    ASSERT_TRUE(export_file(*bench, (folder / "part.npy").string()));
    const Result<Tensor> part = load_npy(folder / "part.npy");
    ASSERT_TRUE(part);
    ASSERT_EQ(part->shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ((*to_f32(*part))[4], shown[2 * 6 + 4]);
    ASSERT_TRUE(export_file(*bench, (folder / "part.csv").string()));
    const Result<CsvTable> table = load_csv((folder / "part.csv").string());
    ASSERT_TRUE(table);
    EXPECT_EQ(table->columns, (std::vector<std::string>{"3 with", "4 one", "5 step"}));
    save_shown(*bench, (folder / "nowhere" / "w.csv").string());
    EXPECT_EQ(bench->problems.size(), 1u);
    // The tensors that the numbers are of stay.
    TensorSet set;
    for (const char* name : {"q", "k", "v"}) set.tensors.push_back(tensor(name, {1, 2, 4}, 3));
    const std::string input = (folder / "in.npz").string();
    ASSERT_TRUE(save_npz(input, set));
    ASSERT_TRUE(bench->open_file(input));
    compute();
    const Result<void> over = export_file(*bench, (folder / "." / "in.npz").string());
    ASSERT_FALSE(over);
    EXPECT_NE(over.error().text.find("is the file that is open"), std::string::npos) << over.error().text;
    EXPECT_TRUE(load_npz(input)->find("q"));
}

// As a model with sliding windows in every second layer is exported: a mask belongs to its layer.
TEST_F(FileTest, a_layer_s_own_mask_hides_what_it_hid) {
    const uint64_t heads = 2, length = 5, dim = 4;
    const auto hidden = [](uint64_t row, uint64_t key) { return key > row || key + 2 < row; };
    std::vector<std::byte> cells;
    for (uint64_t row = 0; row < length; ++row)
        for (uint64_t key = 0; key < length; ++key) cells.push_back(std::byte(!hidden(row, key)));
    std::vector<Tensor> tensors;
    for (uint32_t layer = 0; layer < 2; ++layer)
        for (const char* part : {"q", "k", "v"})
            tensors.push_back(tensor("layers." + std::to_string(layer) + "." + part, {1, heads, length, dim},
                                     10 * layer + uint32_t(part[0])));
    tensors.push_back(*make_tensor("layers.0.mask", FOVEA_BOOL, {1, 1, length, length}, cells));
    tensors.push_back(tensor("layers.1.sinks", {heads}, 5));
    metadata = {{"causal", "top-left"}};
    ASSERT_TRUE(bench->open_file(save(tensors)));
    compute();
    EXPECT_TRUE(bench->problems.empty());
    for (const uint32_t layer : {0u, 1u}) {
        bench->show_head(layer, 1);
        compute();
        for (uint64_t row = 0; row < length; ++row)
            for (uint64_t key = 0; key < length; ++key)
                EXPECT_EQ(value("weights", row, key, 1) == 0, layer == 0 ? hidden(row, key) : key > row);
    }
    // The second layer's sinks take their share of each row.
    EXPECT_LT(value("weights", 0, 0, 1), 1);
    EXPECT_TRUE(bench->problems.empty());
    // A chosen pattern replaces the file's mask.
    bench->show_head(0, 1);
    Settings all = bench->document.settings();
    all.causal = false;
    all.pattern = MaskPattern::block;
    bench->document.change(all);
    compute();
    EXPECT_GT(value("weights", 0, 1, 1), 0);
    EXPECT_EQ(value("weights", 0, 2, 1), 0);
}

// The output of scripts/export_attention.py for a layer with a sliding window.
TEST_F(FileTest, a_file_says_its_window) {
    const uint64_t length = 6;
    metadata = {{"causal", "top-left"}, {"window", "2,-1"}};
    std::vector<Tensor> tensors;
    for (const char* name : {"q", "k", "v"})
        tensors.push_back(tensor(name, {1, 1, length, 4}, uint32_t(name[0])));
    ASSERT_TRUE(bench->open_file(save(tensors)));
    compute();
    EXPECT_TRUE(bench->problems.empty());
    for (uint64_t row = 0; row < length; ++row)
        for (uint64_t key = 0; key < length; ++key)
            EXPECT_EQ(value("weights", row, key, 0) == 0, key > row || key + 2 < row);
}

// Tensors of several layers: the grid has every head, a click shows one as A, another layer's becomes B.
TEST_F(FileTest, layers_and_heads_of_a_model_stand_in_a_grid) {
    const uint64_t heads = 3, length = 5, dim = 4;
    std::vector<Tensor> tensors;
    for (uint32_t layer = 0; layer < 4; ++layer) {
        if (layer == 2) continue;  // a file may lack some
        const std::string name = "layers." + std::to_string(layer) + ".";
        for (const char* part : {"q", "k", "v"})
            tensors.push_back(tensor(name + part, {1, heads, length, dim}, 10 * layer + uint32_t(part[0])));
    }
    metadata = {{"causal", "top-left"}, {"scale", "0.5"}};
    ASSERT_TRUE(bench->open_file(save(tensors)));
    compute();
    EXPECT_EQ(bench->computation.find_stage(StageId::scaled)->formula.substr(0, 4), "Q\xc2\xb7K");
    EXPECT_FLOAT_EQ(bench->computation.run().desc().scale, 0.5f);  // the file's scale
    EXPECT_EQ(layers_of(bench->document.settings()), (std::vector<uint32_t>{0, 1, 3}));
    ASSERT_NE(bench->head_grid(), nullptr);
    ASSERT_TRUE(bench->computation.finish_wanted_grid());
    const HeadGrid& grid = *bench->head_grid();
    ASSERT_TRUE(grid.complete());
    ASSERT_EQ(grid.layers().size(), 3u);
    for (const GridLayer& layer : grid.layers()) {
        ASSERT_EQ(layer.problem, "");
        bench->show_head(layer.layer, 1);
        compute();
        show("weights");
        EXPECT_EQ(bench->head_grid(), &grid);  // served by the same
        ASSERT_EQ(layer.heads.size(), heads);
        const auto* pixels = reinterpret_cast<const float*>(layer.pixels.data());
        for (uint64_t head = 0; head < heads; ++head) {
            const HeadStats& stats = bench->computation.head_stats().at(head);
            EXPECT_NEAR(layer.heads[head].stats.entropy, stats.entropy, 1e-6);
            for (uint64_t row = 0; row < length; ++row)
                for (uint64_t key = 0; key < length; ++key) {
                    const float pixel = pixels[(head * length + row) * length + key];
                    if (key > row)
                        EXPECT_EQ(pixel, -INFINITY);
                    else
                        EXPECT_NEAR(pixel, value("weights", row, key, head), 1e-6);
                }
        }
    }
    bench->show_head(0, 2);
    compute();
    bench->compare_with_head(0, 1);
    EXPECT_EQ(bench->past.kept(), nullptr);
    EXPECT_EQ(bench->view.compared_head, 1);
    bench->compare_with_head(3, 0);
    compute();
    show("weights");
    ASSERT_NE(bench->past.kept(), nullptr);
    EXPECT_EQ(bench->past.kept()->head, 2u);
    EXPECT_EQ(bench->document.settings().mapping.layer, 3u);
    EXPECT_EQ(bench->view.head, 0u);
    bench->document.undo();
    EXPECT_EQ(bench->document.settings().mapping.layer, 0u);
    bench->show_head(1, 0);
    EXPECT_EQ(bench->past.kept(), nullptr);
    compute();
    // Another mask is another grid.
    Settings s = bench->document.settings();
    s.causal = false;
    bench->document.change(s);
    compute();
    ASSERT_NE(bench->head_grid(), nullptr);
    EXPECT_FALSE(bench->head_grid()->complete() && bench->head_grid()->layers()[0].pixels.data() == nullptr);
    ASSERT_TRUE(bench->computation.finish_wanted_grid());
}

}  // namespace
}  // namespace fovea::visualizer
