// The optional inputs of a file's call affect the shown weights: mask, bias, sinks and slopes, in matrices
// and on maps, against double precision.
#include "data/exporting.hpp"
#include "document/imported_file.hpp"
#include "panels/keys.hpp"
#include "panels/panels.hpp"
#include "visualizer_fixture.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace fovea::visualizer {
namespace {

struct Call {
    uint64_t heads, length, dim;
    double scale = 0;
    std::vector<float> q, k, bias, sinks, slopes;
    std::vector<uint8_t> mask;  // [length, length], or one row for all queries, as the bias of each head
    bool causal = false;

    double logit(uint64_t h, uint64_t i, uint64_t j) const {
        if (causal && j > i) return -INFINITY;
        if (!mask.empty() && !mask[i * length % mask.size() + j]) return -INFINITY;
        double dot = 0;
        for (uint64_t d = 0; d < dim; ++d)
            dot += double(q[(h * length + i) * dim + d]) * double(k[(h * length + j) * dim + d]);
        dot *= scale;
        if (!slopes.empty()) dot += double(slopes[h]) * (double(j) - double(i));
        const uint64_t cells = bias.size() / heads;
        if (cells > 0) dot += double(bias[h * cells + i * length % cells + j]);
        return dot;
    }
    double weight(uint64_t h, uint64_t i, uint64_t j) const {
        double sum = sinks.empty() ? 0 : std::exp(double(sinks[h]));
        for (uint64_t other = 0; other < length; ++other) sum += std::exp(logit(h, i, other));
        return std::exp(logit(h, i, j)) / sum;
    }
};

class ExtrasTest : public VisualizerTest {
  protected:
    Call drawn(uint64_t heads, uint64_t length, uint64_t dim) {
        Call c{heads, length, dim, 0.4, values(heads * length * dim), values(heads * length * dim),
               {},    {},     {},  {}};
        return c;
    }
    std::vector<float> values(uint64_t count) {
        std::vector<float> out(count);
        for (float& v : out) v = float(random() % 2001) / 1000 - 1;
        return out;
    }
    std::string save(const Call& c, const std::string& prefix = "") {
        TensorSet set;
        const std::vector<uint64_t> shape{1, c.heads, c.length, c.dim};
        set.tensors = {*make_tensor(prefix + "q", shape, c.q), *make_tensor(prefix + "k", shape, c.k),
                       *make_tensor(prefix + "v", shape, c.k)};
        if (!c.mask.empty())
            set.tensors.push_back(*make_tensor(prefix + "mask", FOVEA_BOOL,
                                               {1, 1, c.mask.size() / c.length, c.length},
                                               std::as_bytes(std::span(c.mask))));
        if (!c.bias.empty())
            set.tensors.push_back(*make_tensor(
                prefix + "bias", {1, c.heads, c.bias.size() / c.heads / c.length, c.length}, c.bias));
        if (!c.sinks.empty()) set.tensors.push_back(*make_tensor(prefix + "sinks", {c.heads}, c.sinks));
        if (!c.slopes.empty()) set.tensors.push_back(*make_tensor(prefix + "alibi", {c.heads}, c.slopes));
        set.metadata = {{"scale", "0.4"}};
        const std::string path = (folder / ("extras" + std::to_string(++files_) + ".safetensors")).string();
        EXPECT_TRUE(save_safetensors(path, set));
        return path;
    }
    std::vector<uint8_t> holes(uint64_t length) {
        std::vector<uint8_t> mask(length * length, 1);
        for (uint64_t i = 0; i < length; ++i)
            for (uint64_t j = 0; j < length; ++j) mask[i * length + j] = i == j || random() % 3 != 0;
        return mask;
    }

    std::mt19937 random{11};
    int files_ = 0;
};

TEST_F(ExtrasTest, a_files_mask_scores_sinks_and_slopes_are_in_the_weights) {
    Call full = drawn(3, 9, 4);
    full.mask = holes(9), full.bias = values(3 * 9 * 9);
    full.sinks = {0.5f, -1, 2}, full.slopes = {0.5f, 0.25f, 0.1f};
    Call masked = drawn(2, 6, 8), sunk = drawn(2, 6, 8), padded = drawn(2, 6, 8);
    masked.mask = holes(6), sunk.sinks = {1, 0};
    padded.mask = {1, 1, 0, 1, 1, 1}, padded.bias = values(2 * 6);
    for (const Call& c : {full, padded, masked, sunk}) {
        for (const char* prefix : {"", "layers.0."}) {
            bench->problems.clear();
            ASSERT_TRUE(bench->open_file(save(c, prefix)));
            compute();
            for (uint64_t h = 0; h < c.heads; ++h)
                for (uint64_t i = 0; i < c.length; ++i)
                    for (uint64_t j = 0; j < c.length; ++j)
                        ASSERT_NEAR(value("weights", i, j, h), c.weight(h, i, j), 2e-6)
                            << h << ' ' << i << ' ' << j;
            EXPECT_TRUE(bench->problems.empty()) << bench->problems[0].text;
            bench->view.picked_row = 4, bench->view.picked_column = 4;
            ASSERT_TRUE(bench->derivation());
            EXPECT_NEAR(bench->derivation()->weight, c.weight(bench->view.head, 4, 4), 2e-6);
        }
    }
    EXPECT_NE(bench->computation.find_stage(StageId::weights)->formula.find("sink"), std::string::npos);
    // The settings' mask applies, too.
    ASSERT_TRUE(bench->open_file(save(masked)));
    Settings s = bench->document.settings();
    s.hidden_keys = {2};
    bench->document.change(s);
    compute();
    EXPECT_EQ(value("weights", 2, 2), 0);
    const auto hidden = std::find(masked.mask.begin(), masked.mask.end(), 0) - masked.mask.begin();
    EXPECT_EQ(value("weights", uint64_t(hidden) / 6, uint64_t(hidden) % 6), 0);
}

TEST_F(ExtrasTest, one_that_does_not_fit_is_left_out_in_words) {
    Call c = drawn(2, 6, 4);
    c.sinks = {1, 2, 3};
    TensorSet set;
    const std::vector<uint64_t> shape{1, 2, 6, 4};
    set.tensors = {*make_tensor("q", shape, c.q), *make_tensor("k", shape, c.k),
                   *make_tensor("mask", {5, 6}, values(30)), *make_tensor("sinks", {3}, c.sinks)};
    const std::string path = (folder / "odd.safetensors").string();
    ASSERT_TRUE(save_safetensors(path, set));
    ASSERT_TRUE(bench->open_file(path));
    compute();
    int left_out = 0;
    for (const Problem& problem : bench->problems)
        left_out += problem.text.find("the shown weights are without it") != std::string::npos;
    EXPECT_EQ(left_out, 2);
    EXPECT_TRUE(std::isfinite(value("weights", 1, 1)));
}

class MapExtrasTest : public ExtrasTest, public testing::WithParamInterface<bool> {
  protected:
    void check_map(const Projected& projected, const Settings& settings, const Call& call, uint32_t head);
    void check_map(const Call& c, uint32_t head) {
        const Result<std::shared_ptr<const ImportedFile>> file = open_import(save(c));
        ASSERT_TRUE(file) << file.error().text;
        Settings s = settings_for(*file, level_settings(2));
        s.causal = c.causal;
        const Result<Projected> projected = project_import(s);
        ASSERT_TRUE(projected) << projected.error().text;
        check_map(*projected, s, c, head);
    }
};
INSTANTIATE_TEST_SUITE_P(Tiles, MapExtrasTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "Device" : "Processor"; });

// Tiles and picks against the call that the map is of.
void MapExtrasTest::check_map(const Projected& projected, const Settings& settings, const Call& call,
                              uint32_t head) {
    GpuDevice* place = GetParam() ? device.get() : nullptr;
    LongMap map(long_head(projected, head, settings.mapping.divisor), settings, place, {});
    EXPECT_EQ(map.head().left_out, "");
    MapView view;
    view.rect = {0, 0, 256, 512};
    view.width = 512, view.height = 256;
    map.tiles().set_view(view);
    map.finish(true);
    ASSERT_EQ(map.problem(), "");
    ASSERT_EQ(map.on_device(), GetParam()) << map.where();
    const MapTileId id{0, 0, 0, 0, 1, false};
    ASSERT_NE(map.tiles().find(id), nullptr);
    const std::vector<float> values = map_values(map.tiles(), id, *map.tiles().find(id), MapReducer::max);
    for (int n = 0; n < 40; ++n) {
        const uint64_t row = random() % 256, key = 256 + random() % 256;
        const double expected = call.weight(head, row, key);
        EXPECT_NEAR(values[row * 256 + key - 256], expected, 2e-6) << row << ", " << key;
        const Result<Derivation> derived = map.derive(row, key);
        ASSERT_TRUE(derived) << derived.error().text;
        EXPECT_NEAR(derived->weight, expected, 2e-6);
        EXPECT_TRUE(derived->values.empty()) << "a map has no values to weigh";
    }
    const MapPick pick = map.pick(100, 300);
    ASSERT_FALSE(pick.largest.empty());
    EXPECT_NEAR(pick.largest[0].second, call.weight(head, 100, pick.largest[0].first), 2e-6);
    const auto largest = map.largest_of({64, 8, 256, 8});
    ASSERT_TRUE(largest) << largest.error().text;
    for (uint64_t i = 64; i < 72; ++i)
        for (uint64_t j = 256; j < 264; ++j)
            EXPECT_LE(call.weight(head, i, j), call.weight(head, largest->first, largest->second) + 2e-6);
    // Previews know the rows in another order.
    LongMap preview(long_head(projected, head, settings.mapping.divisor), settings, place, {});
    view.rect = {0, 0, 512, 512};
    view.width = view.height = 256;
    preview.tiles().set_view(view);
    preview.finish(false);
    const MapTileId whole{0, 0, 1, 0, 0, true};
    ASSERT_NE(preview.tiles().find(whole), nullptr);
    const std::vector<float> seen =
        map_values(preview.tiles(), whole, *preview.tiles().find(whole), MapReducer::max);
    for (uint64_t y = 0; y < 256; y += 17)
        for (uint64_t x = 0; x < 256; x += 13)
            EXPECT_NEAR(seen[y * 256 + x], call.weight(head, 2 * y + 1, 2 * x + 1), 2e-5);
}

// Slopes of the settings and of a file, its mask, added scores, sinks and scale.
TEST_P(MapExtrasTest, a_map_shows_the_calls_weights) {
    Call c = drawn(2, 512, 16);
    c.mask = holes(512), c.bias = values(2 * 512 * 512);
    c.sinks = {1, -0.5f}, c.slopes = {0.01f, 0.02f};
    Settings s = level_settings(2);
    const Result<std::shared_ptr<const ImportedFile>> file = open_import(save(c));
    ASSERT_TRUE(file) << file.error().text;
    s = settings_for(*file, s);
    EXPECT_TRUE(s.alibi);
    const Result<Projected> projected = project_import(s);
    ASSERT_TRUE(projected) << projected.error().text;
    check_map(*projected, s, c, 1);
    Settings flat = s;
    flat.alibi = false;
    Call level = c;
    level.slopes.clear();
    check_map(*projected, flat, level, 0);
}

// One row of a mask and of added scores for all queries, as a padded batch has it.
TEST_P(MapExtrasTest, a_row_for_all_queries_counts_on_a_map) {
    Call c = drawn(2, 512, 16);
    c.bias = values(2 * 512);
    c.bias[512 + 300] = -INFINITY;
    check_map(c, 1);
    c.mask.assign(512, 1);
    c.mask[260] = c.mask[7] = 0;
    c.causal = true;
    check_map(c, 0);
}

TEST_F(ExtrasTest, a_files_map_keeps_its_place_and_changes_its_head) {
    Call c = drawn(2, 5200, 4);
    const std::string path = save(c);
    ASSERT_TRUE(bench->open_file(path));
    compute();
    ASSERT_TRUE(bench->map);
    ASSERT_EQ(bench->map.head()->head().heads, 2u);
    EXPECT_EQ(bench->map.head()->head().head, 0u);
    EXPECT_TRUE(run_key(*bench, {ImGuiKey_K, plain}));
    ASSERT_TRUE(go_to(*bench, "4000, 17"));
    EXPECT_FALSE(go_to(*bench, "5200, 17"));
    bench->map.place.cells_a_pixel = 2;
    const LongMap* before = bench->map.head();
    ASSERT_NE(bench->map.derivation(), nullptr);
    EXPECT_NEAR(bench->map.derivation()->weight, c.weight(0, 4000, 17), 2e-7);
    Settings s = bench->document.settings();
    s.alibi = true;
    bench->document.change(s);
    compute();
    EXPECT_EQ(bench->map.head(), before) << "a knob does not open the map anew";
    EXPECT_TRUE(bench->map.derivation()->has_alibi);
    EXPECT_EQ(bench->map.place.picked_row, 4000u);
    EXPECT_EQ(bench->map.place.cells_a_pixel, 2);
    s.alibi = false;
    bench->document.change(s);
    EXPECT_TRUE(run_key(*bench, {ImGuiKey_RightBracket, plain}));
    compute();
    EXPECT_EQ(bench->map.head()->head().head, 1u);
    EXPECT_EQ(bench->map.place.picked_row, 4000u);
    ASSERT_NE(bench->map.derivation(), nullptr);
    EXPECT_NEAR(bench->map.derivation()->weight, c.weight(1, 4000, 17), 2e-7);
    // Another matrix's numbers are not written under the map's name.
    const std::string out = (folder / "map.csv").string();
    EXPECT_FALSE(export_file(*bench, out));
    EXPECT_FALSE(std::filesystem::exists(out));
    const size_t problems = bench->problems.size();
    save_shown(*bench, out);
    EXPECT_EQ(bench->problems.size(), problems + 1);
}

// In a window a large file is read by threads, and the pick of a long map, too.
TEST_F(ExtrasTest, a_large_file_opens_behind_the_window) {
    Call c = drawn(1, 5200, 512);
    const std::string path = save(c);
    Workbench window(*device, true, 2);
    const auto frame = [&] {
        // The CPU computes: nothing is recorded.
        const Result<bool> more = window.update(VK_NULL_HANDLE, 1e8);
        ASSERT_TRUE(more) << more.error().text;
    };
    frame();
    EXPECT_FALSE(window.open_file(path)) << "it is not there at once";
    EXPECT_TRUE(window.problems.empty());
    EXPECT_FALSE(window.preparing().empty());
    // A second one at the same time is rejected with a message.
    EXPECT_FALSE(window.open_file(path));
    EXPECT_EQ(window.problems.size(), 1u);
    while (!window.map) {
        frame();
        std::this_thread::yield();
    }
    EXPECT_EQ(window.window.dialog, Dialog::import_sheet);
    EXPECT_TRUE(window.preparing().empty());
    window.map.place.picked_row = 77, window.map.place.picked_key = 3;
    const MapPick* pick = nullptr;
    while (!(pick = window.map.pick())) std::this_thread::yield();
    ASSERT_TRUE(pick->derivation);
    EXPECT_NEAR(pick->derivation->weight, c.weight(0, 77, 3), 1e-6);
    // The largest weight of a block comes later, too.
    const MapBlock block{4000, 16, 3900, 8};
    window.map.pick_largest(block);
    EXPECT_EQ(window.map.place.picked_row, 77u);
    while (window.threads_work()) {  // meanwhile the cell before stays
        ASSERT_NE(pick = window.map.pick(), nullptr);
        std::this_thread::yield();
    }
    ASSERT_TRUE(pick = window.map.pick());
    double largest = 0;
    for (uint64_t i = 0; i < block.rows; ++i)
        for (uint64_t j = 0; j < block.keys; ++j)
            largest = std::max(largest, c.weight(0, block.first_row + i, block.first_key + j));
    EXPECT_EQ(window.map.place.picked_row, pick->row);
    EXPECT_LT(pick->row - block.first_row, block.rows);
    EXPECT_LT(pick->key - block.first_key, block.keys);
    ASSERT_TRUE(pick->derivation);
    EXPECT_NEAR(pick->derivation->weight, largest, 1e-6);
    // Pending work for other settings is dropped.
    const uint64_t picked_row = pick->row;
    window.map.pick_largest({100, 16, 50, 8});
    Settings warmer = window.document.settings();
    warmer.temperature = 2;
    window.document.change(warmer);
    frame();
    EXPECT_EQ(window.map.place.picked_row, picked_row);
    while (!(pick = window.map.pick())) std::this_thread::yield();
    c.scale /= 2;
    ASSERT_TRUE(pick->derivation);
    EXPECT_NEAR(pick->derivation->weight, c.weight(0, pick->row, pick->key), 1e-6);
    window.map.place.picked_row = 78;
    (void)window.map.pick();  // under way when the session goes
}

// A change that bears on no projection does not project anew, and one that does waits for no frame.
TEST_F(ExtrasTest, projections_are_made_behind_the_window_and_once) {
    Workbench window(*device, true, 2);
    const auto frame = [&] {
        const Result<bool> more = window.update(VK_NULL_HANDLE, 1e9);
        ASSERT_TRUE(more) << more.error().text;
    };
    const auto wait = [&] {
        do {
            frame();
            std::this_thread::yield();
        } while (!window.computation.ready() || !window.preparing().empty() ||
                 !window.computation.complete());
        frame();
    };
    Settings s = level_settings(7);
    s.length = 40;
    window.document.change(s);
    frame();
    EXPECT_FALSE(window.computation.ready()) << "the first result is still being projected";
    EXPECT_FALSE(window.preparing().empty());
    wait();
    ASSERT_EQ(window.computation.tokens().size(), 40u);
    // The same as without a window.
    bench->document.change(s);
    compute();
    const std::span<const float> here = window.computation.find_stage(StageId::weights)->values,
                                 there = bench->computation.find_stage(StageId::weights)->values;
    ASSERT_EQ(here.size(), there.size());
    for (size_t i = 0; i < here.size(); ++i) ASSERT_NEAR(here[i], there[i], 2e-6);
    s.temperature = 2;
    window.document.change(s);
    frame();
    EXPECT_TRUE(window.preparing().empty()) << "a temperature projects nothing";
    wait();
    s.seed = 5;
    window.document.change(s);
    frame();
    EXPECT_FALSE(window.preparing().empty());
    EXPECT_TRUE(window.computation.complete()) << "the last result stays";
    window.past.keep();
    EXPECT_EQ(window.past.kept(), nullptr) << "what is shown is not what the settings say";
    // Changed again while a thread works: the last wish counts.
    s.seed = 6;
    window.document.change(s);
    wait();
    bench->document.change(s);
    compute();
    EXPECT_NEAR(window.computation.find_stage(StageId::weights)->values[41],
                bench->computation.find_stage(StageId::weights)->values[41], 2e-6);
    EXPECT_EQ(window.past.kept(), nullptr) << "not another result than that which was asked for";
    ASSERT_EQ(window.problems.size(), 1u);
    EXPECT_EQ(window.problems[0].where, "keeping as A");
    window.past.keep();
    EXPECT_NE(window.past.kept(), nullptr);
    // A key pressed before the result is there is not lost.
    for (const uint64_t seed : {7u, 8u}) {
        window.past.drop_kept();
        s.seed = seed;
        window.document.change(s);
        if (seed == 7) frame();
        window.past.keep();
        EXPECT_EQ(window.past.kept(), nullptr);
        wait();
        ASSERT_NE(window.past.kept(), nullptr);
        EXPECT_EQ(window.past.kept()->result->settings.seed, seed);
    }
}

}  // namespace
}  // namespace fovea::visualizer
