// Checks the texts of the window, their places, and that they are complete: read from the drawing.
#include "data/exporting.hpp"
#include "data/text_file.hpp"
#include "panels/keys.hpp"
#include "panels/panel_table.hpp"
#include "theme/theme.hpp"
#include "words_fixture.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace fovea::visualizer {
namespace {

constexpr const char* kSentence =
    "the cat sat on the mat and the dog ran after a small grey mouse under the table near an open door of "
    "house";

TEST_F(WordsTest, key_words_of_a_long_sentence_stand_slanted_in_matrix_and_compare) {
    level(3);
    text(kSentence);
    bench->past.keep();
    for (const CentreTab centre : {CentreTab::matrix, CentreTab::compare}) {
        bench->window.centre = centre;
        const std::vector<DrawnWords> all = words_of("matrix");
        for (const std::string word : {"mouse", "table", "open", "house"}) {
            const size_t slanted = size_t(std::count_if(all.begin(), all.end(), [&](const DrawnWords& one) {
                return one.text == word && !one.cut && std::abs(one.rise - 1) < 0.05f;
            }));
            EXPECT_EQ(slanted, centre == CentreTab::compare ? 2u : 1u) << word << "\n" << all_words(all);
        }
    }
    // A few words are level above their columns.
    bench->past.drop_kept();
    level(2);
    bench->window.centre = CentreTab::matrix;
    for (const DrawnWords& one : words_of("matrix")) EXPECT_EQ(one.rise, 0) << one.text;
}

TEST_F(WordsTest, the_scale_of_the_colors_and_both_axes_have_whole_names) {
    level(2);
    bench->view.colors.spread = Spread::logarithmic;
    const std::vector<DrawnWords> all = words_of("matrix");
    expect_whole(all, "scale: log");
    expect_whole(all, "query \xe2\x86\x93  key \xe2\x86\x92");
    // A matrix that is not over keys has no such names on its sides.
    show("queries");
    EXPECT_FALSE(find_beginning(words_of("matrix"), "query "));
}

TEST_F(WordsTest, a_masked_cell_has_nothing_that_dropout_could_keep) {
    Settings s = level_settings(4);
    ASSERT_TRUE(s.causal && s.dropout_p > 0);
    bench->document.change(s);
    compute();
    show("dropped");
    bench->view.picked_row = 1, bench->view.picked_column = 4;
    std::vector<DrawnWords> all = words_of("inspector");
    expect_whole(all, "masked before dropout");
    bench->view.picked_column = 0;
    std::set<std::string> said;
    for (const int row : {1, 2, 3, 4, 5}) {
        bench->view.picked_row = row;
        all = words_of("inspector");
        EXPECT_FALSE(find_words(all, "masked before dropout"));
        for (const char* words : {"not kept", "kept, \xc3\x97 2"})
            if (find_words(all, words)) said.insert(words);
    }
    EXPECT_EQ(said.size(), 2u) << "of five cells none is kept, or none dropped";
}

// A dropped weight is 0 and does not look like a weight: it has its own hatching, also in the text's list and
// in an exported drawing.
TEST_F(WordsTest, what_dropout_dropped_is_told_from_small_weights_and_from_masked_ones) {
    bench->document.change(level_settings(4));
    compute();
    show("dropped");
    const Stage& stage = bench->stage();
    size_t dropped = 0, masked = 0;
    for (uint64_t row = 0; row < 6; ++row)
        for (uint64_t key = 0; key < 6; ++key) {
            dropped += stage.dropped(0, row, key), masked += stage.hidden(0, row, key);
            EXPECT_EQ(stage.dropped(0, row, key), key <= row && value("keep", row, key) == 0)
                << row << ", " << key;
            show("dropped");
        }
    ASSERT_GT(dropped, 3u);
    ASSERT_EQ(masked, 15u);
    for (const bool on_processor : {false, true}) {
        SCOPED_TRACE(on_processor);
        bench->computation.compute_on_cpu(on_processor);
        compute();
        show("dropped");
        bench->view.picked_row = 5, bench->view.picked_column = 5;
        const std::vector<DrawnWords> all = words();
        EXPECT_EQ(size_t(std::count_if(
                      all.begin(), all.end(),
                      [](const DrawnWords& one) { return one.window == "matrix" && one.text == "0"; })),
                  dropped + 1)
            << "zeros in the cells, and the color bar's";
        expect_whole(all, "masked");
        const auto marks = [&](const char* name) {
            return std::count_if(all.begin(), all.end(), [&](const DrawnWords& one) {
                return one.window == "matrix" && one.text == name;
            });
        };
        EXPECT_EQ(marks("masked"), 1);
        EXPECT_EQ(marks("dropped"), 2) << "the stage's name, and the mark's";
        // Cells: rows and columns of their names. A dropped one is hatched, and nowhere has the map's lowest
        // color.
        const auto name = [&](const char* word, bool above) {
            for (const DrawnWords& one : all)
                if (one.window == "matrix" && one.text == word &&
                    (above ? one.left > 450 && one.top < 200 : one.right < 450 && one.top > 180))
                    return one;
            ADD_FAILURE() << word << " has no name";
            return DrawnWords{};
        };
        constexpr const char* kWords[] = {"Your", "journey", "starts", "with", "one", "step"};
        const Rgb hatch = rgb(palette(Theme::dark).mark), lowest = color_table(Colormap::viridis)[0];
        for (uint64_t row = 1; row < 5; ++row)
            for (uint64_t key = 0; key <= row; ++key) {
                const DrawnWords across = name(kWords[key], true), down = name(kWords[row], false);
                size_t marked = 0, low = 0;
                for (float y = -20; y < 20; ++y)
                    for (float x = -20; x < 20; ++x) {
                        const Rgb here =
                            at((across.left + across.right) / 2 + x, (down.top + down.bottom) / 2 + y);
                        marked += here == hatch, low += here == lowest;
                    }
                EXPECT_EQ(marked > 100, bench->stage().dropped(0, row, key))
                    << row << ", " << key << ": " << marked;
                EXPECT_EQ(low, 0u) << row << ", " << key;
            }
        const auto list = words_of("tokens");
        size_t said = 0, own = 0;
        for (const DrawnWords& one : list) said += one.text == "dropped";
        for (uint64_t key = 0; key < 6; ++key) own += bench->stage().dropped(0, 5, key);
        EXPECT_EQ(said, own) << all_words(list);
    }
    const std::filesystem::path drawing = folder / "dropped.svg";
    ASSERT_TRUE(export_file(*bench, drawing.string()));
    const Result<std::string> svg = read_text_file(drawing);
    ASSERT_TRUE(svg);
    size_t fills = 0;
    for (size_t at = 0; (at = svg->find("fill=\"url(#dropped)\"", at)) != std::string::npos; ++at) ++fills;
    EXPECT_EQ(fills, dropped);
    // Weights before dropout have no such mark.
    show("weights");
    EXPECT_FALSE(find_words(words_of("matrix"), "dropped"));
}

// On nearly white cells, in both themes: a frame of the text's color with a line of the ground within.
TEST_F(WordsTest, the_picked_cells_frame_is_seen_on_a_difference) {
    level(3);
    bench->past.keep();
    Settings s = bench->document.settings();
    s.temperature = 1.001;
    bench->document.change(s);
    compute();
    show("weights");
    bench->window.centre = CentreTab::compare;
    bench->view.how = CompareHow::difference;
    bench->view.picked_row = 0, bench->view.picked_column = 0;  // no difference: the middle of the map
    for (const Theme theme : {Theme::dark, Theme::light}) {
        bench->window.theme = theme;
        const std::vector<DrawnWords> all = words();
        const auto digits = std::find_if(all.begin(), all.end(), [](const DrawnWords& one) {
            return one.window == "matrix" && one.text == "0.0000";
        });
        ASSERT_TRUE(digits != all.end()) << all_words(all);
        // From the digits to the left: the cell's color, the ground, the frame.
        const Rgb frame = rgb(palette(theme).text), ground = rgb(palette(theme).matrix_ground);
        const float y = (digits->top + digits->bottom) / 2;
        float x = digits->left - 4;
        const Rgb cell = at(x, y);
        EXPECT_GT(luminance(cell), 0.7);
        while (x > 0 && at(x, y) == cell) --x;
        EXPECT_EQ(at(x, y), ground) << int(theme);
        EXPECT_EQ(at(x - 2, y), frame) << int(theme);
        EXPECT_GT(contrast(cell, theme == Theme::dark ? ground : frame), 3.0);
    }
}

TEST_F(WordsTest, that_an_a_is_kept_is_said_in_every_panel) {
    level(2);
    EXPECT_FALSE(find_beginning(words_of("status"), "A saved"));
    bench->past.keep();
    bench->document.change(level_settings(3));
    compute();
    show("weights");
    for (const uint32_t width : {1600u, 1024u}) {
        size.width = width;
        expect_whole(words_of("status"), "A saved: level 2");
    }
    bench->past.drop_kept();
    EXPECT_FALSE(find_beginning(words_of("status"), "A saved"));
}

// Dear ImGui draws a slider's number over its grab's rectangle; the two colors have the contrast of text.
TEST_F(WordsTest, a_sliders_number_is_read_over_its_grab) {
    Settings s = level_settings(4);
    s.dropout_p = 0.45;  // the grab in the middle, under the number
    bench->document.change(s);
    compute();
    size.height = 1100;
    for (const Theme theme : {Theme::dark, Theme::light}) {
        bench->window.theme = theme;
        const Palette& colors = palette(theme);
        EXPECT_GE(contrast(rgb(colors.text), rgb(colors.grab)), 4.5);
        const std::vector<DrawnWords> all = words();
        const DrawnWords* number = find_words(all, "0.45");
        ASSERT_TRUE(number) << all_words(all);
        size_t grab = 0, ink = 0;
        for (float y = number->top - 4; y < number->bottom + 4; ++y)
            for (float x = number->left; x < number->right; ++x)
                grab += at(x, y) == rgb(colors.grab), ink += contrast(at(x, y), rgb(colors.grab)) > 2.5;
        EXPECT_GT(grab, 40u) << "the grab is not under the number";
        EXPECT_GT(ink, 12u) << "the number is not over the grab";
    }
}

TEST_F(WordsTest, all_heads_are_written_as_one_npz_with_their_mean_which_is_a_stage_too) {
    level(6);
    const Stage weights = bench->stage();
    ASSERT_EQ(weights.heads, 2u);
    const std::filesystem::path path = folder / "heads.npz";
    ASSERT_TRUE(export_file(*bench, path.string()));
    const Result<TensorSet> read = load_npz(path);
    ASSERT_TRUE(read) << read.error().text;
    ASSERT_EQ(read->tensors.size(), 2u);
    const auto tensor = [&](const std::string& name) {
        const auto found = std::find_if(read->tensors.begin(), read->tensors.end(),
                                        [&](const Tensor& t) { return t.name == name; });
        EXPECT_TRUE(found != read->tensors.end()) << name;
        return *found;
    };
    EXPECT_EQ(tensor("weights").shape, (std::vector<uint64_t>{2, 6, 6}));
    const std::vector<float> all = *to_f32(tensor("weights")), mean = *to_f32(tensor("weights_mean"));
    EXPECT_TRUE(std::equal(all.begin(), all.end(), weights.values.begin(), weights.values.end()));
    ASSERT_EQ(mean.size(), 36u);
    for (const bool on_processor : {false, true}) {
        bench->computation.compute_on_cpu(on_processor);
        compute();
        show("mean_weights");
        for (size_t cell = 0; cell < 36; ++cell) {
            EXPECT_NEAR(mean[cell], (all[cell] + all[36 + cell]) / 2, 1e-7);
            EXPECT_NEAR(bench->stage().values[cell], mean[cell], 1e-6);
            EXPECT_EQ(bench->stage().hidden(0, cell / 6, cell % 6), cell % 6 > cell / 6);
        }
    }
    bench->view.picked_row = 3, bench->view.picked_column = 1;
    EXPECT_FALSE(bench->derivation()) << "no one head's";
    const std::optional<CellSum> sum = bench->picked_sum();
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->terms.size(), 2u);
    EXPECT_EQ(sum->result, bench->stage().values[19]);
    const std::vector<DrawnWords> panel = words_of("inspector");
    expect_whole(panel, "head 0");
    expect_whole(panel, "divided by the 2 heads");
}

TEST_F(WordsTest, a_dialogs_title_begins_above_what_stands_below_it) {
    level(2);
    bench->window.folder = std::filesystem::path(folder).string();
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_E, control}));
    const std::vector<DrawnWords> all = words_of("Export");
    const DrawnWords *title = find_words(all, "Export"), *hint = find_beginning(all, ".png: a picture");
    ASSERT_TRUE(title && hint) << all_words(all);
    EXPECT_NEAR(title->left, hint->left, 3);
}

TEST_F(WordsTest, rows_that_see_nothing_are_counted_in_the_mask_editor) {
    level(2);
    bench->window.centre = CentreTab::mask;
    Settings s = bench->document.settings();
    s.pattern = MaskPattern::painted;
    s.painted = {std::vector<uint8_t>(36, 1), 6, 6};
    const auto hide_row = [&](size_t row) {
        std::fill_n(s.painted.cells.begin() + ptrdiff_t(6 * row), 6, uint8_t(0));
    };
    hide_row(2);
    bench->document.change(s);
    compute();
    expect_whole(words_of("matrix"), "83.3% visible, 1 row is fully masked: its context is 0");
    hide_row(4);
    bench->document.change(s);
    compute();
    expect_whole(words_of("matrix"), "66.7% visible, 2 rows are fully masked: their context is 0");
}

TEST_F(WordsTest, the_keyboard_goes_from_panel_to_panel) {
    level(2);
    words();
    const std::vector<std::string> panels = bench->window.focusable;
    ASSERT_EQ(panels, (std::vector<std::string>{"top", "tokens", "pipeline", "matrix", "bottom", "inspector",
                                                "parameters", "status"}));
    std::vector<std::string> there, back;
    for (size_t i = 0; i < panels.size(); ++i) {
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_Tab, control}));
        words();
        there.push_back(keyboard);
    }
    EXPECT_EQ(there, panels);
    for (size_t i = 0; i < panels.size(); ++i) {
        ASSERT_TRUE(run_key(*bench, {ImGuiKey_Tab, control | shift}));
        words();
        back.insert(back.begin(), keyboard);
    }
    back.push_back(back.front());
    back.erase(back.begin());
    EXPECT_EQ(back, panels);
}

TEST_F(WordsTest, titles_of_a_comparison_end_within_the_panel) {
    level(2);
    bench->past.keep();
    bench->document.change(level_settings(3));
    compute();
    show("weights");
    bench->window.centre = CentreTab::compare;
    size.width = 1024, size.height = 768;
    for (const auto& [how, begins] :
         {std::pair{CompareHow::difference,
                    "A: level 2, no mask, seed 123 minus B: level 3, causal mask, seed 789"},
          {CompareHow::triangle,
           "A: level 2, no mask, seed 123 on and below the diagonal, B: level 3, causal mask, seed 789 "
           "above"},
          {CompareHow::side, "B: level 3, causal mask, seed 789"}}) {
        bench->view.how = how;
        expect_whole(words_of("matrix"), begins);
    }
}

TEST_F(WordsTest, toolbars_are_whole_in_a_small_window) {
    level(6);
    size.width = 1024, size.height = 640;
    bench->window.centre = CentreTab::compare;
    std::vector<DrawnWords> all = words_of("matrix");
    for (const char* name :
         {"Swap", "side by side", "halves", "difference A \xe2\x88\x92 B", "same range", "Save as A"})
        expect_whole(all, name);
    bench->window.centre = CentreTab::mask;
    all = words_of("matrix");
    for (const char* name : {"none", "causal", "window", "padding", "prefix", "strided", "block", "Invert",
                             "Make symmetric", "rectangle", "column"})
        expect_whole(all, name);
    bench->window.token_lines = true;
    size.height = 768;
    expect_whole(words_of(""), "lines of all queries");
}

TEST_F(WordsTest, compare_and_the_export_sheet_hold_type_at_200_percent) {
    level(2);
    bench->past.keep();
    bench->document.change(level_settings(3));
    compute();
    show("weights");
    size.width = 800, size.height = 480, size.scale = 2;
    bench->window.centre = CentreTab::compare;
    const std::vector<DrawnWords> all = words_of("matrix");
    for (const char* name : {"side by side", "halves", "Save as A", "Clear A", "Compare"})
        expect_whole(all, name);
    const DrawnWords keep = *find_words(all, "Save as A");
    for (const DrawnWords& one : all) {
        if (one.text == keep.text) continue;
        EXPECT_FALSE(one.left < keep.right && one.right > keep.left && one.top < keep.bottom &&
                     one.bottom > keep.top)
            << one.text << " is under Save as A";
    }
    // Both matrices are there, and the one of halves.
    const auto sides = [](const std::vector<DrawnWords>& of) {
        return std::count_if(of.begin(), of.end(), [](const DrawnWords& one) {
            return one.text.starts_with("query ") && !one.cut;
        });
    };
    EXPECT_EQ(sides(all), 2) << all_words(all);
    bench->view.how = CompareHow::triangle;
    EXPECT_EQ(sides(words_of("matrix")), 1);

    bench->window.folder = std::filesystem::path(folder).string();
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_E, control}));
    const std::vector<DrawnWords> sheet = words_of("Export");
    for (const char* name : {"Save", "Cancel", "legend", "transparent", "window"}) expect_whole(sheet, name);
    const DrawnWords* typed = find_words(sheet, "weights.png");
    ASSERT_TRUE(typed) << all_words(sheet);
    for (const DrawnWords& one : sheet)
        EXPECT_TRUE(one.top >= 0 && one.bottom <= 960 && one.left >= 0 && one.right <= 1600) << one.text;
}

TEST_F(WordsTest, cells_of_a_map_have_digits_and_the_line_reads_the_pixel_under_the_mouse) {
    bench->map.want_preset("4k");
    bench->window.centre = CentreTab::map;
    compute();
    ASSERT_TRUE(bench->map);
    bench->map.place.picked_row = 900, bench->map.place.picked_key = 870;
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_I, shift}));
    size.exact = true;
    words();
    const std::vector<DrawnWords> all = words_of("matrix");
    const DrawnWords* reading = find_beginning(all, "pixel of query 900, key 870: weight ");
    ASSERT_TRUE(reading) << all_words(all);
    const Derivation* d = bench->map.derivation();
    ASSERT_TRUE(d);
    EXPECT_EQ(reading->text, "pixel of query 900, key 870: weight " + format_value(d->weight, 4));
    // The pick is in the middle, with its own digits.
    const std::string digits = format_value(d->weight, 3);
    const bool stands = std::any_of(all.begin(), all.end(), [&](const DrawnWords& one) {
        return one.text == digits && std::abs((one.left + one.right) / 2 - 790) < 160 &&
               std::abs((one.top + one.bottom) / 2 - 420) < 160;
    });
    EXPECT_TRUE(stands) << digits << " is not in the middle:\n" << all_words(all);
    const DrawnWords one = *find_words(all, digits);
    const std::vector<DrawnWords> hovered =
        words_of("matrix", std::vector<PictureMouse>(4, {one.left - 60, one.top + 70}));
    const DrawnWords* under = find_beginning(hovered, "pixel of query ");
    ASSERT_TRUE(under);
    EXPECT_EQ(under->text.find("pixel of query 900, key 870"), std::string::npos) << under->text;
}

TEST_F(WordsTest, a_dimension_lights_no_word) {
    level(2);
    bench->view.picked_column = 1;
    const ImU32 lit = palette(Theme::dark).text, soft = palette(Theme::dark).text_soft;
    const auto color_of = [&](const char* word) {
        const std::vector<DrawnWords> all = words_of("tokens");
        const DrawnWords* one = find_words(all, word);
        EXPECT_TRUE(one) << all_words(all);
        return one ? one->color : 0;
    };
    EXPECT_EQ(color_of("journey"), lit);
    EXPECT_EQ(color_of("starts"), soft);
    show("context");
    bench->view.picked_column = 1;
    EXPECT_EQ(color_of("journey"), soft) << "the column is a dimension of the context, not this key";
}

TEST_F(WordsTest, one_click_names_a_folder_and_two_enter_it) {
    level(2);
    std::filesystem::create_directories(folder / "below");
    bench->window.folder = std::filesystem::path(folder).string();
    bench->window.open_dialog(Dialog::open);
    const std::string at = bench->window.folder;
    std::vector<DrawnWords> all = words_of("Open a file");
    const DrawnWords* entry = find_words(all, "below/");
    ASSERT_TRUE(entry) << all_words(all);
    words(click(*entry));
    EXPECT_EQ(bench->window.folder, at);
    EXPECT_EQ(bench->window.file_name, "below/");
    words(click(*entry, 2));
    EXPECT_EQ(bench->window.folder, at + "/below");
    EXPECT_EQ(bench->window.dialog, Dialog::open);
}

TEST_F(WordsTest, a_file_that_is_there_is_replaced_by_a_button_of_that_name) {
    level(2);
    const std::filesystem::path path = folder / "weights.csv";
    bench->window.folder = std::filesystem::path(folder).string();
    bench->window.open_dialog(Dialog::save);
    bench->window.file_name = "weights.csv";
    std::vector<DrawnWords> all = words_of("Export");
    ASSERT_TRUE(find_words(all, "Save"));
    EXPECT_FALSE(find_beginning(all, "Replace"));
    words(click(*find_words(all, "Save")));
    ASSERT_TRUE(std::filesystem::exists(path));
    bench->window.open_dialog(Dialog::save);
    bench->window.file_name = "weights.csv";
    all = words_of("Export");
    EXPECT_FALSE(find_words(all, "Save"));
    expect_whole(all, "Replace");
    expect_whole(all, "A file with this name exists and will be replaced.");
}

TEST_F(WordsTest, the_palette_is_called_commands) {
    level(2);
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_P, control}));
    expect_whole(words_of("Commands"), "Commands");
}

TEST_F(WordsTest, a_problem_stands_beside_what_it_is_about) {
    level(2);
    bench->problems.report("k", "has 32 numbers in a row, q has 64", true);
    bench->window.show(BottomTab::problems);
    const std::vector<DrawnWords> all = words_of("bottom");
    const DrawnWords *where = find_words(all, "k"),
                     *what = find_words(all, "has 32 numbers in a row, q has 64");
    ASSERT_TRUE(where && what) << all_words(all);
    EXPECT_LT(what->left - where->right, 30);
    EXPECT_NEAR(what->bottom, where->bottom, 6);
}

TEST_F(WordsTest, a_cut_file_is_said_to_end_early) {
    level(2);
    TensorSet set;
    set.tensors.push_back(*make_tensor("q", {1, 4, 6}, std::vector<float>(24, 0.5f)));
    const std::filesystem::path path = folder / "cut.safetensors";
    ASSERT_TRUE(save_safetensors(path, set));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 40);
    EXPECT_FALSE(bench->open_file(path.string()));
    bench->window.show(BottomTab::problems);
    const std::vector<DrawnWords> all = words_of("bottom");
    const bool said = std::any_of(all.begin(), all.end(), [](const DrawnWords& one) {
        return one.text.find("the file ends early or was cut") != std::string::npos;
    });
    EXPECT_TRUE(said) << all_words(all);
}

TEST_F(WordsTest, heads_of_columns_end_where_their_numbers_do) {
    level(2);
    const std::vector<DrawnWords> all = words_of("inspector");
    const Derivation d = *bench->derivation();
    for (const auto& [title, number] : {std::pair<std::string, float>{"q", d.terms[0].q},
                                        {"k", d.terms[0].k},
                                        {"sum", d.terms[1].running_sum},
                                        {"weight \xc2\xb7 v", d.values[0].contribution},
                                        {"context", d.values[1].context}}) {
        // The last of the name: the steps above have a "sum", too.
        const auto head =
            std::find_if(all.rbegin(), all.rend(), [&](const DrawnWords& one) { return one.text == title; });
        const auto below = std::find_if(all.rbegin(), all.rend(), [&](const DrawnWords& one) {
            return one.text == format_value(number) && head != all.rend() && one.top > head->top &&
                   std::abs(one.right - head->right) < 40;
        });
        ASSERT_TRUE(head != all.rend() && below != all.rend()) << title << "\n" << all_words(all);
        EXPECT_NEAR(head->right, below->right, 3) << title;
    }
}

TEST_F(WordsTest, a_file_without_names_of_tokens_is_not_said_to_have_them) {
    TensorSet set;
    for (const char* name : {"q", "k", "v"})
        set.tensors.push_back(*make_tensor(name, {1, 4, 6}, std::vector<float>(24, 0.5f)));
    const std::string path = (folder / "qkv.safetensors").string();
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    expect_whole(words_of("tokens"), "The file has no token names.");
    set.metadata = {{"tokens", "[\"a\", \"b\", \"c\", \"d\"]"}};
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    expect_whole(words_of("tokens"), "The tokens are those of the file.");
}

TEST_F(WordsTest, the_roof_has_numbers_on_both_axes) {
    if (!device->has_timestamps()) GTEST_SKIP() << "this device has no timestamps: there is no roof";
    level(2);
    bench->computation.roof = Roof{2e12, 4e10};
    bench->window.show(BottomTab::gpu);
    const std::vector<DrawnWords> all = words_of("bottom");
    const DrawnWords *up = find_words(all, "FLOP/s"), *across = find_words(all, "FLOP per byte");
    ASSERT_TRUE(up && across) << all_words(all);
    EXPECT_FALSE(up->cut || across->cut);
    // Powers of ten: left of the upper name, and below the other.
    std::set<std::string> left, below;
    for (const DrawnWords& one : all) {
        if (one.cut || one.left < up->left - 60) continue;
        if (one.right < up->left && one.top > up->top - 12) left.insert(one.text);
        if (one.top > across->top + 4 && one.left > up->left - 40) below.insert(one.text);
    }
    EXPECT_GE(left.size(), 2u) << all_words(all);
    EXPECT_GE(below.size(), 2u) << all_words(all);
    EXPECT_TRUE(below.count("1") || below.count("10")) << all_words(all);
}

TEST_F(WordsTest, the_gpu_panel_has_the_last_300_frames) {
    level(2);
    if (bench->computation.run().times().busy_s <= 0)
        GTEST_SKIP() << "this device has no timestamps: there is no history";
    for (int i = 1; i <= 350; ++i) bench->window.begin_frame() = {float(i) * 1e-3f, 0};
    ASSERT_EQ(bench->window.frames.size(), 300u);
    EXPECT_EQ(bench->window.frames.front().wall_s, 51 * 1e-3f);
    EXPECT_EQ(bench->window.frames.back().wall_s, 350 * 1e-3f);
    bench->window.show(BottomTab::gpu);
    bench->window.layout.bottom = 400;
    // The newest is being drawn: 299 of 51 to 349 ms.
    expect_whole(words_of("bottom"), "last 299 frames: median 200 ms, 95% below 334 ms");
}

TEST_F(WordsTest, scores_of_a_head_on_the_text_are_in_its_tooltip) {
    bench->show_task("induction");
    compute();
    bench->window.centre = CentreTab::layers;
    ASSERT_TRUE(bench->head_grid());
    words();
    std::vector<DrawnWords> all = words_of("matrix");
    const DrawnWords* column = find_words(all, "H0");
    ASSERT_TRUE(column) << all_words(all);
    const PictureMouse over{(column->left + column->right) / 2, column->bottom + 40};
    all = words(std::vector<PictureMouse>(40, over));
    const DrawnWords* scores = find_beginning(all, "on this text: ");
    ASSERT_TRUE(scores) << all_words(all);
    for (const char* name : {"previous token ", "first token ", "same token ", "induction "})
        EXPECT_NE(scores->text.find(name), std::string::npos) << scores->text;
}

TEST_F(WordsTest, a_click_on_a_numbers_source_goes_there) {
    level(2);
    std::vector<DrawnWords> all = words_of("inspector");
    const DrawnWords* source = find_words(all, "row 1 of scaled");
    ASSERT_TRUE(source) << all_words(all);
    const PictureMouse at{source->left + 30, source->top - 30};
    words({at, at, {at.x, at.y, true}, at, at});
    EXPECT_EQ(bench->stage().name, "scaled");
    EXPECT_EQ(bench->view.picked_row, 1);
}

TEST_F(WordsTest, a_session_that_was_not_ended_is_offered_and_opened) {
    bench->document.change(level_settings(5));
    compute();
    const std::filesystem::path kept = folder / "before.fovea";
    ASSERT_TRUE(export_file(*bench, kept.string()));
    bench->document.change(level_settings(2));
    compute();
    EXPECT_FALSE(find_words(words(), "Restore last session"));
    bench->window.restorable = kept.string();
    for (const uint32_t width : {1600u, 1280u, 1024u}) {
        size.width = width;
        expect_whole(words_of("top"), "Restore last session");
    }
    const std::vector<DrawnWords> all = words_of("top");
    words(click(*find_words(all, "Restore last session")));
    compute();
    EXPECT_EQ(bench->document.settings().level, 5);
    EXPECT_TRUE(bench->window.restorable.empty());
}

// The list, the matrix and the cell of the level about dropout are of one stage.
TEST_F(WordsTest, after_dropout_list_matrix_and_cell_agree) {
    bench->show_level(4);
    compute();
    bench->view.picked_row = 2, bench->view.picked_column = 0;
    const Stage& stage = bench->stage();
    ASSERT_EQ(stage.name, "dropped");
    const std::string shown = format_fixed(double(stage.head_values(0)[2 * stage.columns]), 4);
    const std::vector<DrawnWords> all = words();
    size_t seen = 0;
    for (const DrawnWords& one : all)
        if (one.text == shown && (one.window.starts_with("tokens") || one.window.starts_with("matrix") ||
                                  one.window.starts_with("inspector")))
            ++seen;
    EXPECT_GE(seen, 3u) << shown << "\n" << all_words(all);
    expect_whole(all, "after dropout");
    EXPECT_TRUE(find_words(all, "kept, \xc3\x97 2") || find_words(all, "not kept")) << all_words(all);
    // The level's introduction is visible, also in place of an earlier stage.
    for (const int level : {2, 4, 5, 7, 4}) {
        bench->show_level(level);
        compute();
        const std::vector<DrawnWords> stages = words_of("pipeline");
        EXPECT_TRUE(find_words(stages, bench->stage().name)) << level << "\n" << all_words(stages);
    }
}

TEST_F(WordsTest, an_export_says_that_it_is_cut_and_can_be_whole) {
    level(3);
    bench->view.selection = CellRect{1, 2, 0, 3};
    bench->window.folder = std::filesystem::path(folder).string();
    for (const auto& [name, cuts] : {std::pair{"a.csv", true},
                                     {"a.npy", true},
                                     {"a.svg", true},
                                     {"a.npz", false},
                                     {"a.fovea", false},
                                     {"a.png", false}}) {
        bench->window.open_dialog(Dialog::save);
        bench->window.file_name = name;
        EXPECT_EQ(find_words(words_of("Export"), "Only the 2 x 4 selected cells") != nullptr, cuts) << name;
    }
    bench->window.file_name = "a.csv";
    const std::vector<DrawnWords> all = words_of("Export");
    expect_whole(all, "Export all");
    words(click(*find_words(all, "Export all")));
    EXPECT_FALSE(bench->view.selection);
    EXPECT_FALSE(find_words(words_of("Export"), "Only the 2 x 4 selected cells"));
}

TEST_F(WordsTest, equal_tokens_are_told_apart_in_list_cell_and_status) {
    level(2);
    text("the cat and the dog");
    bench->view.picked_row = 3, bench->view.picked_column = 0;
    const std::vector<DrawnWords> all = words();
    for (const char* window : {"tokens", "inspector", "status"})
        EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                                [&](const DrawnWords& one) {
                                    return one.window.starts_with(window) &&
                                           one.text.find("the (3)") != std::string::npos;
                                }))
            << window << "\n"
            << all_words(all);
    EXPECT_FALSE(find_beginning(all, "cat ("));
}

// Beyond the range of a causal matrix is the first row's 1.
TEST_F(WordsTest, the_color_bar_says_that_values_are_beyond_it) {
    level(3);
    std::vector<DrawnWords> all = words_of("matrix");
    EXPECT_TRUE(find_beginning(all, "\xe2\x89\xa5 ")) << all_words(all);
    EXPECT_FALSE(find_beginning(all, "\xe2\x89\xa4 "));
    level(2);
    EXPECT_FALSE(find_beginning(words_of("matrix"), "\xe2\x89\xa5 "));
    bench->view.colors.range_low = 0.16f;
    EXPECT_TRUE(find_beginning(words_of("matrix"), "\xe2\x89\xa4 "));
}

// As many decimals everywhere in a column of the arithmetic.
TEST_F(WordsTest, a_column_of_numbers_has_one_format) {
    size.height = 1400;
    for (const int number : {5, 7}) {
        level(number);
        bench->view.picked_row = 2, bench->view.picked_column = 1;
        const std::vector<DrawnWords> all = words_of("inspector");
        const auto head = std::find_if(all.rbegin(), all.rend(),
                                       [](const DrawnWords& one) { return one.text == "q \xc2\xb7 k"; });
        ASSERT_TRUE(head != all.rend());
        std::set<std::string> formats;
        for (const DrawnWords& one : all) {
            const bool below = one.top > head->bottom && std::abs(one.right - head->right) < 3;
            if (!below || one.text.find_first_not_of("-0123456789.e+") != std::string::npos) continue;
            const size_t point = one.text.find('.'), power = one.text.find('e');
            formats.insert(std::to_string(one.text.size() - point) + (power == std::string::npos ? "" : "e"));
        }
        EXPECT_EQ(formats.size(), 1u) << "level " << number << "\n" << all_words(all);
    }
}

// A mask is painted over the weights: cell, list and status bar are of them, and columns have their words.
TEST_F(WordsTest, the_mask_has_the_weights_cell_and_the_words_of_the_matrix) {
    level(5);
    show("scores");
    bench->window.centre = CentreTab::mask;
    const std::vector<DrawnWords> all = words();
    EXPECT_TRUE(find_beginning(all, "weights  ")) << all_words(all);  // in the status bar
    EXPECT_FALSE(find_beginning(all, "scores on the"));
    text(kSentence);
    bench->window.centre = CentreTab::matrix;
    const auto slanted = [&] {
        size_t count = 0;
        for (const DrawnWords& one : words_of("matrix")) count += one.rise != 0;
        return count;
    };
    const size_t of_matrix = slanted();
    EXPECT_GT(of_matrix, 10u);
    bench->window.centre = CentreTab::mask;
    EXPECT_EQ(slanted(), of_matrix);
}

TEST_F(WordsTest, the_numbers_of_the_flow_are_whole) {
    for (const uint32_t width : {1600u, 1280u, 1024u})
        for (const int number : {2, 5, 6}) {
            size.width = width;
            level(number);
            bench->window.centre = CentreTab::flow;
            for (const DrawnWords& one : words_of("matrix"))
                EXPECT_FALSE(one.cut) << width << ", level " << number << ": " << one.text;
        }
}

TEST_F(WordsTest, letters_are_offered_words) {
    bench->show_task("induction");
    compute();
    EXPECT_FALSE(find_words(words_of("tokens"), "Use words"));
    text("the cat sat on the mat");
    std::vector<DrawnWords> all = words_of("tokens");
    expect_whole(all, "This model reads letters a to z.");
    expect_whole(all, "Use words");
    words(click(*find_words(all, "Use words")));
    compute();
    EXPECT_EQ(bench->document.settings().task, "");
    EXPECT_EQ(bench->computation.tokens().size(), 6u);
}

TEST_F(WordsTest, a_changed_level_says_so_and_a_jump_has_a_way_back) {
    level(3);
    expect_whole(words_of("top"), "3  Causal mask");
    Settings s = bench->document.settings();
    s.causal = false;
    bench->document.change(s);
    compute();
    std::vector<DrawnWords> all = words_of("top");
    expect_whole(all, "3  Causal mask, changed");
    // Choosing the level again restores it; its list has names.
    const std::vector<PictureMouse> opens = click(*find_words(all, "3  Causal mask, changed"));
    all = words(opens);
    for (int number = 1; number <= kLevelCount; ++number)
        expect_whole(all, std::to_string(number) + "  " + level_name(number));
    std::vector<PictureMouse> way = opens;
    for (const PictureMouse& place : click(*find_words(all, "3  Causal mask"))) way.push_back(place);
    words(way);
    compute();
    EXPECT_TRUE(is_plain_level(bench->document.settings()));
    show("weights");
    EXPECT_FALSE(find_words(words_of("inspector"), "Back"));
    bench->show_input(bench->picked_inputs().at(0));
    all = words_of("inspector");
    expect_whole(all, "Back");
    words(click(*find_words(all, "Back")));
    EXPECT_EQ(bench->stage().name, "weights");
}

// Wherever a token is drawn it is drawn from the right.
TEST_F(WordsTest, hebrew_and_arabic_words_stand_as_they_are_written) {
    if (!reorders_text()) GTEST_SKIP() << "this build has no FriBidi";
    level(2);
    text("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7");
    bench->view.picked_row = 0, bench->view.picked_column = 1;
    const std::string hebrew = "\xd7\x9d\xd7\x95\xd7\x9c\xd7\xa9",
                      arabic = "\xef\xba\x8e\xef\xba\x92\xef\xba\xa3\xef\xba\xae\xef\xbb\xa3";
    for (const CentreTab centre : {CentreTab::matrix, CentreTab::flow, CentreTab::vectors, CentreTab::mask}) {
        bench->window.centre = centre;
        words();
        const std::vector<DrawnWords> all = words();
        for (const char* window : {"tokens", "matrix", "inspector", "status"}) {
            std::string said;
            for (const DrawnWords& one : all)
                if (one.window.starts_with(window)) said += one.text + "\n";
            EXPECT_TRUE(said.find(hebrew) != std::string::npos || said.find(arabic) != std::string::npos)
                << int(centre) << " " << window << "\n"
                << said;
            EXPECT_EQ(said.find("\xd7\xa9\xd7\x9c"), std::string::npos) << int(centre) << " " << window;
            EXPECT_EQ(said.find("\xd9\x85"), std::string::npos) << int(centre) << " " << window;
        }
    }
}

// Words on words are read by nobody: in no view and at no size.
TEST_F(WordsTest, no_words_stand_on_others) {
    struct Kind {
        uint32_t width, height;
        float scale;
    };
    level(6);
    bench->view.compared_head = 1;
    for (const Kind kind :
         {Kind{1600, 960, 1}, {1280, 800, 1}, {1024, 768, 1}, {1024, 640, 1}, {800, 480, 2}})
        for (const CentrePanel& centre : centre_panels())
            for (const BottomPanel& bottom : bottom_panels()) {
                if (bottom.tab != BottomTab::heads && centre.tab != CentreTab::matrix) continue;
                size.width = kind.width, size.height = kind.height, size.scale = kind.scale;
                bench->window.centre = centre.tab;
                bench->window.show(bottom.tab);
                const std::vector<DrawnWords> all = words();
                for (size_t i = 0; i < all.size(); ++i)
                    for (size_t j = 0; j < i; ++j) {
                        const DrawnWords &a = all[i], &b = all[j];
                        const float x = std::min(a.right, b.right) - std::max(a.left, b.left),
                                    y = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
                        if (a.rise != 0 || b.rise != 0 || x <= 1.5f * kind.scale || y <= 1.5f * kind.scale)
                            continue;
                        ADD_FAILURE()
                            << kind.width << " x " << kind.height << " at " << kind.scale << ", view "
                            << centre.word << ", strip " << bottom.word << ": \"" << a.text << "\" ("
                            << a.window << ") on \"" << b.text << "\" (" << b.window << ")";
                    }
            }
}

}  // namespace
}  // namespace fovea::visualizer
