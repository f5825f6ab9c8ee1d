// The flow on one screen and the plane of vectors: what is lit is a way that the numbers really take, motion
// keeps its time and stays away where none is wanted, and what is moved has the weights that it says.
#include "data/session_file.hpp"
#include "document/vector_plot.hpp"
#include "panels/keys.hpp"
#include "run.hpp"
#include "visualizer_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

namespace fovea::visualizer {
namespace {

using FlowTest = VisualizerTest;
using VectorsTest = VisualizerTest;

bool meet(const CellRect& a, const CellRect& b) {
    return a.row_begin <= b.row_last && b.row_begin <= a.row_last && a.column_begin <= b.column_last &&
           b.column_begin <= a.column_last;
}

// True if the cell is computed from a highlighted cell of the matrix, also through stages that are not on the
// screen.
bool comes_from(const AttentionResult& result, const CellInput& cell, const PathMatrix& from) {
    std::vector<CellInput> inputs = {cell};
    for (int depth = 0; depth < 4; ++depth) {
        std::vector<CellInput> next;
        for (const CellInput& one : inputs)
            for (const CellInput& input :
                 cell_inputs(result, *one.stage, one.head, uint64_t(one.cells.row_begin),
                             uint64_t(one.cells.column_begin))) {
                const bool here = input.stage == from.stage && input.head == from.head;
                if (here && std::any_of(from.cells.begin(), from.cells.end(),
                                        [&](const CellRect& cells) { return meet(cells, input.cells); }))
                    return true;
                if (!here) next.push_back(input);
            }
        inputs = std::move(next);
    }
    return false;
}

std::vector<std::string> names_of(const std::vector<PathMatrix>& path) {
    std::vector<std::string> names;
    for (const PathMatrix& matrix : path) names.push_back(matrix.stage->name);
    return names;
}

TEST_F(FlowTest, each_level_has_its_matrices_in_their_order) {
    const std::vector<std::string> expected[] = {
        {"inputs", "scores", "weights", "context"},
        {"inputs", "queries", "keys", "values", "scores", "scaled", "weights", "context"},
        {"inputs", "queries", "keys", "values", "scores", "masked", "weights", "context"},
        {"inputs", "queries", "keys", "values", "scores", "masked", "dropped", "context"},
        {"inputs", "queries", "keys", "values", "scores", "masked", "weights", "context"},
        {"inputs", "queries", "keys", "values", "scores", "masked", "weights", "context", "output"},
        {"inputs", "queries", "keys", "values", "scores", "masked", "weights", "context", "output"}};
    for (int level = 1; level <= 7; ++level) {
        bench->document.change(level_settings(level));
        compute();
        show("weights");
        const std::vector<PathMatrix> path =
            token_path(*bench->computation.result(), bench->stage(), 0, 3, 1);
        EXPECT_EQ(names_of(path), expected[level - 1]) << "level " << level;
    }
}

// Whatever is picked: of the lit cells of a matrix one is computed from lit cells of each matrix that it is
// linked with.
TEST_F(FlowTest, what_is_lit_is_the_way_that_the_numbers_take) {
    std::mt19937 random(7);
    for (int level = 1; level <= 7; ++level) {
        Settings settings = level_settings(level);
        settings.causal = level % 2 == 0;
        if (level == 7) settings.heads = 6, settings.kv_heads = 3;
        bench->document.change(settings);
        compute();
        const AttentionResult& result = *bench->computation.result();
        size_t links = 0;
        for (const char* picked : {"inputs", "queries", "scores", "masked", "weights", "context", "output"}) {
            const Stage* stage = result.find_stage(picked);
            for (int n = 0; stage && n < 8; ++n) {
                const uint64_t row = random() % stage->rows, column = random() % stage->columns;
                const auto head = uint32_t(random() % stage->heads);
                const std::vector<PathMatrix> path = token_path(result, *stage, head, row, column);
                for (const PathMatrix& to : path) {
                    for (const size_t from : to.from) {
                        ASSERT_LT(path[from].column, to.column);
                        if (to.cells.empty() || path[from].cells.empty()) continue;
                        const CellRect& lit = to.cells.front();
                        bool found = false;
                        for (int at = lit.row_begin; at <= lit.row_last && !found; ++at)
                            found = comes_from(
                                result, {to.stage, to.head, {at, at, lit.column_begin, lit.column_begin}},
                                path[from]);
                        EXPECT_TRUE(found) << "level " << level << ", " << picked << "[" << row << ", "
                                           << column << "] head " << head << ": " << to.stage->name
                                           << " from " << path[from].stage->name;
                        ++links;
                    }
                }
            }
        }
        EXPECT_GT(links, 100u) << "level " << level;
    }
}

TEST_F(FlowTest, the_token_moves_on_every_200_ms_and_not_at_all_without_motion) {
    compute();
    auto now = std::chrono::steady_clock::time_point{} + std::chrono::hours(1);
    bench->motion.clock = [&] { return now; };
    EXPECT_EQ(bench->motion.path_columns_come(), kMaxPathColumns) << "before it is played all is lit";
    ASSERT_TRUE(run_key(*bench, {ImGuiKey_F, shift}));
    EXPECT_EQ(bench->window.centre, CentreTab::flow);
    EXPECT_EQ(bench->motion.path_columns_come(), kMaxPathColumns) << "no motion is wanted";
    EXPECT_FALSE(bench->motion.animating());
    bench->window.motion = true;
    bench->motion.play_path();
    for (size_t columns = 1; columns < kMaxPathColumns; ++columns) {
        EXPECT_EQ(bench->motion.path_columns_come(), columns);
        EXPECT_TRUE(bench->motion.animating());
        now += std::chrono::milliseconds(199);
        EXPECT_EQ(bench->motion.path_columns_come(), columns);
        now += std::chrono::milliseconds(1);
    }
    EXPECT_EQ(bench->motion.path_columns_come(), kMaxPathColumns);
    EXPECT_FALSE(bench->motion.animating());
}

TEST_F(FlowTest, a_description_says_the_way) {
    bench->document.change(level_settings(2));
    compute();
    show("weights");
    bench->view.picked_row = 1, bench->view.picked_column = 2;
    bench->window.centre = CentreTab::flow;
    EXPECT_NE(describe(*bench).find(
                  "way: row 1 of inputs; row 2 of inputs; row 1 of queries; row 2 of keys; row 2 of "
                  "values; scores[1, 2]; scaled[1, 2]; weights[1, 2]; row 1 of context\n"),
              std::string::npos)
        << describe(*bench);
}

// ---- the plane ----

TEST(PrincipalPlaneTest, finds_the_two_directions_that_differ_most) {
    // Along (1, 1, 0, 0) / sqrt 2 widely, along (0, 0, 0, 1) less, about a mean.
    std::mt19937 random(3);
    std::uniform_real_distribution<double> draw(-1, 1);
    std::vector<float> rows;
    for (int n = 0; n < 40; ++n) {
        const double far = 5 * draw(random), near = draw(random);
        for (const double value : {3 + far / std::numbers::sqrt2, far / std::numbers::sqrt2 - 1, 2.0, near})
            rows.push_back(float(value));
    }
    const PrincipalPlane plane = principal_plane(rows, 4, true);
    EXPECT_NEAR(plane.share, 1, 1e-9);
    EXPECT_NEAR(std::abs(plane.axes[0][0]), 1 / std::numbers::sqrt2, 0.03);
    EXPECT_NEAR(std::abs(plane.axes[1][3]), 1, 0.03);
    double across = 0;
    for (size_t c = 0; c < 4; ++c) across += plane.axes[0][c] * plane.axes[1][c];
    EXPECT_NEAR(across, 0, 1e-9);
    // A moved vector is at its new place, and its part orthogonal to the plane is unchanged.
    const std::vector<float> vector{1, 2, 7, -1}, moved = plane.moved(vector, {0.5, -2});
    EXPECT_NEAR(plane.place(moved)[0], 0.5, 1e-5);
    EXPECT_NEAR(plane.place(moved)[1], -2, 1e-5);
    EXPECT_FLOAT_EQ(moved[2], 7);
    EXPECT_NEAR(double(moved[0] - moved[1]), -1, 0.4);
}

TEST(PrincipalPlaneTest, equal_vectors_have_no_directions_and_two_numbers_their_own) {
    const std::vector<float> equal{1, 2, 3, 1, 2, 3};
    const PrincipalPlane none = principal_plane(equal, 3, true);
    EXPECT_EQ(none.place(std::span(equal).first(3)), (std::array<double, 2>{0, 0}));
    EXPECT_EQ(none.share, 1);
    const std::vector<float> pairs{0.5f, -3, 2, 1};
    const PrincipalPlane own = principal_plane(pairs, 2, false);
    EXPECT_EQ(own.place(std::span(pairs).first(2)), (std::array<double, 2>{0.5, -3}));
    EXPECT_EQ(own.share, 1);
}

// ---- what is tried out ----

// By the layer's own rules, whatever they are: a vector that stays where it is leaves the weights as they
// are.
TEST_F(VectorsTest, what_is_not_moved_keeps_its_weights_under_all_rules) {
    for (int level = 1; level <= 7; ++level) {
        for (const bool after : {false, true}) {
            Settings settings = level_settings(level);
            settings.softcap = 3, settings.alibi = level % 2 == 1, settings.causal = true,
            settings.temperature = 0.7f;
            if (after) settings.route = MaskRoute::after;
            if (level == 7) settings.hidden_keys = {2};
            bench->document.change(settings);
            compute();
            const AttentionResult& result = *bench->computation.result();
            const Stage* stage =
                result.find_stage(settings.dropout_p > 0 ? StageId::dropped : StageId::weights);
            ASSERT_TRUE(stage);
            for (uint32_t head = 0; head < stage->heads; ++head) {
                bench->vectors.follow(result, head);
                ASSERT_EQ(bench->vectors.why_not(), "");
                EXPECT_FALSE(bench->vectors.tries());
                bench->vectors.of_words = false;
                for (const VectorPoint& point : bench->vectors.points())
                    if (point.kind == VectorKind::query && point.token == 4)
                        bench->vectors.try_out(point.kind, 4, point.at);
                EXPECT_TRUE(bench->vectors.tries());
                const Result<F32Tensor>& tried = bench->vectors.tried_weights();
                ASSERT_TRUE(tried) << tried.error().text;
                const std::span<const float> own = stage->head_values(head);
                ASSERT_EQ(tried->values.size(), own.size());
                for (size_t i = 0; i < own.size(); ++i)
                    ASSERT_NEAR(tried->values[i], own[i], 2e-6)
                        << "level " << level << ", head " << head << ", " << i;
            }
        }
    }
}

TEST_F(VectorsTest, a_moved_query_or_key_has_the_weights_of_its_place) {
    Settings settings = level_settings(2);
    settings.text = "a b a c";
    bench->document.change(settings);
    compute();
    const AttentionResult& result = *bench->computation.result();
    VectorPlot& vectors = bench->vectors;
    vectors.follow(result, 0);
    const auto expect_weights = [&](uint64_t row) {
        std::vector<std::array<double, 2>> keys(4);
        std::array<double, 2> query{};
        for (const VectorPoint& p : vectors.points()) {
            if (p.kind == VectorKind::key) keys[p.token] = p.at;
            if (p.kind == VectorKind::query && p.token == row) query = p.at;
        }
        double sum = 0, exps[4];
        for (size_t k = 0; k < 4; ++k)
            sum += exps[k] = std::exp((query[0] * keys[k][0] + query[1] * keys[k][1]) / std::sqrt(2.0));
        const Result<F32Tensor>& tried = vectors.tried_weights();
        ASSERT_TRUE(tried) << tried.error().text;
        for (size_t k = 0; k < 4; ++k)
            EXPECT_NEAR(double(tried->row(row)[k]), exps[k] / sum, 1e-6) << row << ", " << k;
    };
    vectors.try_out(VectorKind::query, 1, {2.5, -1.5});
    expect_weights(1);
    expect_weights(3);
    // The two words that are equal have one key.
    vectors.try_out(VectorKind::key, 0, {-1, 2});
    expect_weights(1);
    for (const VectorPoint& p : vectors.points())
        EXPECT_EQ(p.tried, p.kind == VectorKind::key ? p.token == 0 || p.token == 2 : p.token == 1)
            << p.token;
    // Another head's or result's plane knows nothing of it.
    settings.text = "a b a d";
    bench->document.change(settings);
    compute();
    vectors.follow(*bench->computation.result(), 0);
    EXPECT_FALSE(vectors.tries());
}

TEST_F(VectorsTest, a_moved_word_is_the_sessions_and_one_step_of_undo) {
    bench->document.change(level_settings(2));
    compute();
    const Settings before = bench->document.settings();
    VectorPlot& vectors = bench->vectors;
    vectors.follow(*bench->computation.result(), 0);
    vectors.of_words = true;
    ASSERT_EQ(vectors.why_words_stay(), "");
    const std::vector<double> axis = vectors.plane().axes[0];
    const std::array<double, 2> to{0.9, -0.3};
    for (const double share : {0.3, 0.6, 1.0}) {  // steps of one drag
        ASSERT_TRUE(set_session_key(
            *bench, "edits",
            vectors.edits_with(bench->document.settings(), 1, {{share * to[0], share * to[1]}}), 77));
        compute();
        vectors.follow(*bench->computation.result(), 0);
    }
    EXPECT_EQ(vectors.plane().axes[0], axis) << "the plane turned under the mouse";
    EXPECT_EQ(bench->document.settings().edits.size(), 3u);
    const Stage* inputs = bench->computation.find_stage(StageId::inputs);
    const std::array<double, 2> at = vectors.plane().place(inputs->values.subspan(3, 3));
    EXPECT_NEAR(at[0], to[0], 2e-3);
    EXPECT_NEAR(at[1], to[1], 2e-3);
    EXPECT_NE(describe(*bench).find("3 cells are set by hand"), std::string::npos);
    bench->document.undo();
    EXPECT_EQ(bench->document.settings(), before) << "a drag is one step";
    bench->document.redo();
    ASSERT_TRUE(set_session_key(*bench, "edits", vectors.edits_with(bench->document.settings(), 0, {})));
    EXPECT_TRUE(bench->document.settings().edits.empty());
    // Trained weights do not change, and a picture needs fewer tokens than this.
    bench->show_task("induction");
    compute();
    vectors.follow(*bench->computation.result(), 0);
    EXPECT_NE(vectors.why_words_stay(), "");
    Settings many = level_settings(7);
    many.length = 65;
    bench->document.change(many);
    compute();
    vectors.follow(*bench->computation.result(), 0);
    EXPECT_NE(vectors.why_not().find("65"), std::string::npos) << vectors.why_not();
}

}  // namespace
}  // namespace fovea::visualizer
