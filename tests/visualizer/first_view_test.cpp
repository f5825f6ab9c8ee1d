// The first view, the walks and the matrix at large type: read from the drawing, as words_test.cpp does.
#include "data/session_file.hpp"
#include "panels/keys.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"
#include "words_fixture.hpp"

#include <fovea/inspect.hpp>
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace fovea::visualizer {
namespace {

class FirstViewTest : public WordsTest {
  protected:
    void SetUp() override {
        WordsTest::SetUp();
        Options options;
        options.task = "induction", options.first_view = true;
        ASSERT_TRUE(apply_options(*bench, options));
        compute();
    }
    // A place of the frame in the picture's units.
    PictureMouse middle_of(const DrawnWords& one) const {
        return {(one.left + one.right) / 2 / size.scale, (one.top + one.bottom) / 2 / size.scale};
    }
};

constexpr const char* kInduction = "This head looks for what came after the same letter last time";

TEST_F(FirstViewTest, one_sentence_is_large_and_says_what_the_head_does) {
    for (const auto& [width, height, scale] :
         {std::tuple{1600u, 960u, 1.0f}, {1280u, 720u, 1.0f}, {1024u, 640u, 1.0f}, {640u, 400u, 2.0f}}) {
        size.width = width, size.height = height, size.scale = scale;
        const std::vector<DrawnWords> all = words();
        expect_whole(all, kInduction);
        expect_whole(all, "100 %");
        const float large = find_words(all, kInduction)->font_size;
        for (const DrawnWords& one : all) {
            EXPECT_LE(one.font_size, large) << one.text;
            EXPECT_FALSE(one.cut) << width << " x " << height << ": " << one.text;
            EXPECT_NE(one.text, "Parameters");
        }
        if (width < 1000) continue;
        for (const char* also :
             {"Walk me through", "See every number", "each letter finds what followed it last time",
              "After \xe2\x80\x9c"
              "a (14)\xe2\x80\x9d the model expects \xe2\x80\x9c"
              "f\xe2\x80\x9d: 88 %"})
            expect_whole(all, also);
    }
    EXPECT_NE(describe(*bench).find(std::string("does: ") + kInduction), std::string::npos);
}

TEST_F(FirstViewTest, a_letter_under_the_mouse_is_the_one_that_asks) {
    const std::vector<DrawnWords> all = words();
    std::vector<const DrawnWords*> letters;
    for (const DrawnWords& one : all)
        if (one.text == "e" && one.font_size >= 26) letters.push_back(&one);
    ASSERT_EQ(letters.size(), 3u) << all_words(all);
    const PictureMouse at = middle_of(*letters[1]);
    words({{at.x - 2, at.y}, at});
    EXPECT_EQ(bench->view.picked_row, 13);
    EXPECT_EQ(bench->view.picked_column, 9);  // the "a" after the first "e"
    EXPECT_FALSE(bench->view.pinned);
    words(click(*letters[1]));
    EXPECT_TRUE(bench->view.pinned);
}

TEST_F(FirstViewTest, it_leads_to_every_number_to_the_walk_and_to_own_words) {
    words(click(*find_words(words(), "See every number")));
    EXPECT_EQ(bench->window.centre, CentreTab::matrix);
    bench->window.centre = CentreTab::sentence;
    words(click(*find_words(words(), "Walk me through")));
    compute();
    EXPECT_EQ(bench->document.settings().step, 1u);
    EXPECT_EQ(bench->window.centre, CentreTab::matrix);
    end_story(*bench);
    compute();
    bench->window.centre = CentreTab::sentence;
    text("the cat sat");
    expect_whole(words(), "This model reads letters a to z.");
    words(click(*find_words(words(), "Use words")));
    compute();
    EXPECT_EQ(bench->computation.tokens().size(), 3u);
    EXPECT_EQ(bench->window.centre, CentreTab::sentence);
    expect_whole(words(), level_text(2).title);
    // Another panel, or another stage, brings the other panels back.
    EXPECT_TRUE(run_key(*bench, {ImGuiKey_P, plain}));
    EXPECT_EQ(bench->window.centre, CentreTab::matrix);
}

using WalkTest = WordsTest;

std::vector<std::string> quoted(const std::string& text) {
    std::vector<std::string> found;
    constexpr size_t kMark = 3;  // bytes of a quotation mark
    for (size_t at = 0; (at = text.find("\xe2\x80\x9c", at)) != std::string::npos;) {
        const size_t end = text.find("\xe2\x80\x9d", at);
        found.push_back(text.substr(at + kMark, end - at - kMark));
        at = end;
    }
    return found;
}

// Each name that a step quotes is a token or is drawn in the window, and the card covers no other words.
TEST_F(WalkTest, walks_name_controls_as_the_window_does_and_cover_nothing) {
    size.width = 1600, size.height = 1200;
    std::set<std::string> controls;
    const auto check = [&](const std::string& subject, const std::vector<StoryStep>& steps) {
        for (size_t n = 0; n < steps.size(); ++n) {
            std::vector<std::string> names;
            for (const std::string* part : {&steps[n].text, &steps[n].instruction})
                for (const std::string& name : quoted(in_window_words(*part)))
                    if (name.size() > 2 && steps[n].shown.text.find(name) == std::string::npos)
                        names.push_back(name);
            if (names.empty()) continue;
            Settings next = bench->document.settings();
            next.step = uint32_t(n);
            bench->document.change(next);
            step_story(*bench, 1);
            compute();
            words();  // the grid of heads has come
            const std::vector<DrawnWords> all = words();
            const DrawnWords* const title = find_beginning(all, std::to_string(n + 1) + " of ");
            ASSERT_TRUE(title) << subject << " " << n + 1 << all_words(all);
            for (const std::string& name : names) {
                controls.insert(name);
                bool drawn = false;
                for (const DrawnWords& one : all)
                    drawn = drawn ||
                            (!one.window.starts_with("story") && one.text.find(name) != std::string::npos);
                EXPECT_TRUE(drawn) << subject << ", step " << n + 1 << ": " << name << "\n" << all_words(all);
            }
            float top = 1e9f, bottom = 0, left = 1e9f, right = 0;
            for (const DrawnWords& one : all)
                if (one.window.starts_with("story")) {
                    EXPECT_FALSE(one.cut) << one.text;
                    top = std::min(top, one.top), bottom = std::max(bottom, one.bottom);
                    left = std::min(left, one.left), right = std::max(right, one.right);
                }
            for (const DrawnWords& one : all) {
                const bool apart =
                    one.bottom <= top || one.top >= bottom || one.right <= left || one.left >= right;
                EXPECT_TRUE(one.window.starts_with("story") || apart) << subject << ": " << one.text;
            }
        }
    };
    for (int number = 1; number <= kLevelCount; ++number) {
        level(number);
        check("level " + std::to_string(number), story(number));
    }
    for (const std::string& task : learned_tasks()) {
        bench->show_task(task);
        compute();
        check(task, story(bench->document.settings().level, task));
    }
    for (const char* name : {"scale by 1/\xe2\x88\x9a"
                             "d",
                             "temperature", "causal mask", "weight seed", "KV heads", "tokens"})
        EXPECT_TRUE(controls.count(name)) << name;
}

TEST_F(WalkTest, walks_use_each_name_of_a_control) {
    EXPECT_EQ(in_window_words("Choose 3 query heads under Heads."),
              "Choose 3 \xe2\x80\x9cheads\xe2\x80\x9d under Parameters.");
    for (const Texts::Story::Name& name : texts().story.names) {
        size_t uses = 0;
        const auto count = [&](const std::string& text) {
            uses += text.find(name.page) != std::string::npos;
        };
        const auto count_all = [&](const std::vector<StoryStep>& steps) {
            for (const StoryStep& step : steps) count(step.text), count(step.instruction), count(step.sight);
        };
        for (int number = 1; number <= kLevelCount; ++number)
            count_all(story(number)), count(level_text(number).lead);
        for (const std::string& task : learned_tasks()) count_all(story(1, task));
        EXPECT_GT(uses, 0u) << name.page;
    }
}

// From 100 to 225 % type on a projector of 1280 x 720 the matrix has at least three fifths of the middle.
TEST_F(WalkTest, the_matrix_keeps_its_share_of_the_middle_at_any_type_size) {
    for (const int number : {2, 5})
        for (const float scale : {1.0f, 1.25f, 1.5f, 1.75f, 2.0f, 2.25f}) {
            size.scale = scale;
            size.width = uint32_t(1280 / scale), size.height = uint32_t(720 / scale);
            level(number);
            ImVec2 middle;
            std::vector<DrawnWords> all;
            size.mouse = {};
            size.seen = [&](const ImDrawData& data) {
                all = drawn_words(data);
                middle = ImGui::FindWindowByName("matrix")->Size;
            };
            ASSERT_TRUE(draw_picture(*bench, size));
            // The rows' words are left of those of the columns.
            const auto row_of = [&](const char* word) {
                const DrawnWords* found = nullptr;
                for (const DrawnWords& one : all)
                    if (one.window.starts_with("matrix") && one.text == word && one.rise == 0 &&
                        (!found || one.left < found->left))
                        found = &one;
                return found ? found->bottom : NAN;
            };
            const float side = (row_of("one") - row_of("with")) * 6;  // on one line, without descenders
            EXPECT_GE(side, 0.6f * std::min(middle.x, middle.y))
                << "level " << number << " at " << scale << all_words(all);
        }
}

}  // namespace
}  // namespace fovea::visualizer
