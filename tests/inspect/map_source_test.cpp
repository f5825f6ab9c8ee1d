// The driver of maps: tiles of the CPU and of a device hold the weights, and a change of the call forgets
// them.
#include "inspect/map_source.hpp"

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/long_context.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace fovea {
namespace {

constexpr uint32_t kTokens = 700;

MapView view_of(MapRect rect, uint32_t side) {
    MapView view;
    view.rect = rect;
    view.width = view.height = side;
    return view;
}

MapHead head_of(const LongContext& context) { return {context.call, context.q, context.k}; }

EngineOptions on(BackendChoice backend) {
    EngineOptions options;
    options.backend = backend;
    options.cpu_threads = 2;
    return options;
}

// Pixels of one cell each hold the weight of the derivation; a preview's are those of its cells.
void expect_weights(MapHead head, const EngineOptions& options, bool of_device) {
    MapSource source(head, options);
    source.tiles().set_view(view_of({256, 256, 256, 256}, 256));
    source.finish(true);
    ASSERT_EQ(source.problem(), "");
    EXPECT_EQ(source.refusal(), "");
    EXPECT_EQ(source.slice_seconds() > 0, of_device);
    EXPECT_EQ(source.rows_known(), 256u);
    const MapTileId id{0, 0, 0, 1, 1, false};
    const MapPixels* const pixels = source.tiles().find(id);
    ASSERT_TRUE(pixels);
    const std::vector<float> exact = pixels->max;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    head.bind(bindings);
    for (uint64_t n = 0; n < 40; ++n) {
        const uint64_t row = 256 + n * 6, key = 256 + n * 37 % 250;
        const Result<Derivation> derived = derive_cell(head.call, bindings, Cell{0, 0, row, key});
        ASSERT_TRUE(derived) << derived.error().text;
        EXPECT_NEAR(exact[(row - 256) * 256 + key - 256], derived->weight, 2e-6) << row << ", " << key;
    }
    MapSource preview(head, options);
    preview.tiles().set_view(view_of({0, 0, 1024, 1024}, 256));
    preview.finish(false);
    const MapPixels* const sampled = preview.tiles().find({0, 0, 2, 0, 0, true});
    ASSERT_TRUE(sampled) << preview.problem();
    EXPECT_GE(preview.rows_known(), 175u);  // the rows in the middle of pixels of four
    for (uint64_t y = 64; y < 128; ++y)
        for (uint64_t x = 64; x < 128; ++x)
            EXPECT_NEAR(sampled->max[y * 256 + x], exact[(4 * y + 2 - 256) * 256 + 4 * x + 2 - 256], 2e-5)
                << y << ", " << x;
}

MapHead masked(const LongContext& context) {
    MapHead head = head_of(context);
    head.mask.assign(kTokens, 1);
    head.mask[300] = head.mask[5] = 0;
    head.call.mask.present = 1, head.call.mask.type = FOVEA_U8;
    head.call.mask.rows = 1, head.call.mask.keys = kTokens;
    head.call.mask.strides = {int64_t(kTokens), int64_t(kTokens), int64_t(kTokens)};
    return head;
}

MapHead windowed(const LongContext& context) {
    MapHead head = head_of(context);
    head.call.flags |= FOVEA_FLAG_WINDOW;
    head.call.window_left = 100;
    head.call.align = FOVEA_ALIGN_TOP_LEFT;
    return head;
}

TEST(MapSource, tiles_of_the_cpu_hold_the_weights) {
    const Result<LongContext> context = long_context(kTokens);
    ASSERT_TRUE(context);
    for (const MapHead& head : {head_of(*context), masked(*context), windowed(*context)})
        expect_weights(head, on(BackendChoice::cpu), false);
}

TEST(MapSource, tiles_OnVulkan_hold_the_weights) {
    const Result<LongContext> context = long_context(kTokens);
    ASSERT_TRUE(context);
    for (const MapHead& head : {head_of(*context), masked(*context), windowed(*context)})
        expect_weights(head, on(BackendChoice::vulkan), true);
}

TEST(MapSource, where_a_device_refuses_the_cpu_computes_and_says_why) {
    const Result<LongContext> context = long_context(kTokens);
    ASSERT_TRUE(context);
    const MapHead head = head_of(*context);
    EngineOptions none = on(BackendChoice::vulkan);
    none.device_name = "a device that nobody has";
    MapSource source(head, none);
    source.tiles().set_view(view_of({0, 0, 256, 256}, 256));
    source.finish(true);
    EXPECT_EQ(source.problem(), "");
    EXPECT_NE(source.refusal(), "");
    EXPECT_EQ(source.tiles().progress().quality, MapQuality::exact);
}

TEST(MapSource, another_call_forgets_tiles_and_sums) {
    const Result<LongContext> context = long_context(kTokens);
    ASSERT_TRUE(context);
    MapHead head = head_of(*context);
    std::atomic<int> wakes = 0;
    MapSource source(head, on(BackendChoice::cpu), [&] { ++wakes; });
    const MapTileId id{0, 0, 0, 0, 0, false};
    source.tiles().set_view(view_of({0, 0, 256, 256}, 256));
    EXPECT_TRUE(source.advance());
    source.follow(on(BackendChoice::cpu), [&] { head.call.softcap = 0; });  // amid the first tile
    source.finish(true);
    ASSERT_TRUE(source.tiles().find(id));
    const std::vector<float> before = source.tiles().find(id)->max;
    EXPECT_GE(wakes, 1);
    source.follow(on(BackendChoice::cpu), [&] { head.call.softcap = 5; });
    EXPECT_EQ(source.tiles().find(id), nullptr);
    EXPECT_EQ(source.rows_known(), 0u);
    source.finish(true);
    ASSERT_TRUE(source.tiles().find(id));
    EXPECT_NE(source.tiles().find(id)->max, before);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    head.bind(bindings);
    for (uint64_t n = 10; n < 250; n += 30)
        EXPECT_NEAR(source.tiles().find(id)->max[n * 256 + n / 2],
                    derive_cell(head.call, bindings, Cell{0, 0, n, n / 2})->weight, 2e-6);
    // An error of the planner ends the work.
    source.follow(on(BackendChoice::cpu), [&] { head.call.dropout_p = 2; });
    source.finish(true);
    EXPECT_NE(source.problem(), "");
}

}  // namespace
}  // namespace fovea
