// "Why?" of the picked cell: the writers of its score, in the window.
#include "data/session_file.hpp"
#include "words_fixture.hpp"

#include <fovea/inspect/writers.hpp>

#include <algorithm>

namespace fovea::visualizer {
namespace {

using WhyTest = WordsTest;

double remainders(const ScoreWriters& of) {
    double sum = 0;
    for (const ScoreWriters::Remainder& one : of.remainders) sum += one.value;
    return sum;
}

TEST_F(WhyTest, the_button_splits_an_induction_score_and_a_click_opens_the_head_that_wrote_to_the_key) {
    bench->show_task("induction");
    compute();
    show("weights");
    const LayerCell cell{bench->document.settings().mapping.layer, bench->view.head,
                         uint64_t(bench->view.picked_row), uint64_t(bench->view.picked_column)};
    ASSERT_EQ(cell.layer, 1u);
    for (const float scale : {1.0f, 2.0f}) {
        bench->window.why = false;
        size.scale = scale;
        size.width = scale == 1 ? 1600 : 1100, size.height = 900;
        std::vector<DrawnWords> all = words_of("inspector");
        expect_whole(all, "Why?");
        EXPECT_TRUE(find_words(all, "exp / sum"));
        (void)words(click(*find_words(all, "Why?")));
        EXPECT_TRUE(bench->window.why);
        all = words_of("inspector");
        const ScoreWriters* of = bench->why();
        ASSERT_TRUE(of) << bench->computation.why_problem();
        EXPECT_EQ(of->cell, cell);
        EXPECT_NEAR(of->sum + remainders(*of), bench->derivation()->masked, 1e-4);
        const WriterEntry top = largest_entries(*of, 1)[0];
        EXPECT_EQ(of->writers[top.query_writer].kind, Writer::Kind::token);
        EXPECT_EQ(of->writers[top.key_writer], (Writer{Writer::Kind::head, 0, 0}));
        for (const std::string& what :
             {std::string("token"), std::string("L0H0"), std::string("query"), std::string("key"),
              format_value(float(top.value)), format_value(float(of->sum)),
              format_fixed(100 * top.value / of->score, 0) + " %"})
            expect_whole(all, what);
        EXPECT_FALSE(find_words(all, "exp / sum"));
    }
    std::vector<DrawnWords> heads = words_of("inspector");
    std::erase_if(heads, [](const DrawnWords& one) { return one.text != "L0H0"; });
    (void)words(click(*std::min_element(heads.begin(), heads.end(), [](const auto& a, const auto& b) {
        return a.top < b.top;  // the largest pair has it at the key
    })));
    compute();
    EXPECT_EQ(bench->document.settings().mapping.layer, 0u);
    EXPECT_EQ(bench->view.head, 0u);
    // The previous-token head at the key's row.
    EXPECT_EQ(bench->view.picked_row, int(cell.key));
    EXPECT_EQ(bench->view.picked_column, int(cell.key) - 1);
}

TEST_F(WhyTest, a_published_models_score_names_what_is_no_pair_and_follows_the_readers_rules) {
    ASSERT_TRUE(open_any(*bench, std::string(FOVEA_FAMILIES "/gemma2"))) << bench->problems.back().text;
    bench->show_head(1, 1);
    compute();
    show("weights");
    bench->window.centre = CentreTab::matrix;
    bench->window.why = true;
    size.height = 1100;
    bench->view.picked_row = int(bench->stage().rows) - 1, bench->view.picked_column = 1;
    const auto why = [&] {
        const ScoreWriters* of = bench->why();
        EXPECT_TRUE(of) << bench->computation.why_problem();
        return of ? *of : ScoreWriters();
    };
    const ScoreWriters whole = why();
    ASSERT_EQ(whole.remainders.size(), 1u);
    expect_whole(words_of("inspector"), "softcap");
    EXPECT_NEAR(whole.score, bench->derivation()->masked, 1e-4);
    EXPECT_NEAR(whole.sum, bench->derivation()->score, 1e-4);
    // A slope in this layer, and a head before it that is off.
    Settings settings = bench->document.settings();
    settings.alibi = true;
    toggle_head(settings, {0, 0});
    bench->document.change(settings);
    compute();
    const ScoreWriters other = why();
    ASSERT_EQ(other.remainders.size(), 2u);
    EXPECT_EQ(other.remainders[1].name, "ALiBi slope");
    EXPECT_NEAR(other.remainders[1].value, bench->derivation()->alibi, 1e-4);
    EXPECT_NEAR(other.score, bench->derivation()->masked, 1e-4);
    for (size_t w = 0; w < other.writers.size(); ++w)
        if (other.writers[w] == Writer{Writer::Kind::head, 0, 0}) {
            EXPECT_EQ(other.of_query_writer(w), 0);
            EXPECT_NE(whole.of_query_writer(w), 0);
        }
}

TEST_F(WhyTest, tensors_and_values_that_no_model_wrote_have_no_button) {
    level(3);
    EXPECT_FALSE(find_words(words_of("inspector"), "Why?"));
    bench->show_task("induction");
    compute();
    show("queries");
    EXPECT_FALSE(find_words(words_of("inspector"), "Why?"));
}

}  // namespace
}  // namespace fovea::visualizer
