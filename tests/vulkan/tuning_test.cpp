// Tiles that a tuning may choose: each gives right results, and a file of them reaches the plans of an
// engine.
#include "files/scratch.hpp"
#include "support/vulkan_executor.hpp"
#include "vulkan/gpu.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace fovea::test {
namespace {

constexpr uint64_t kQueries = 21, kKeys = 150;
constexpr uint32_t kHeads = 4, kKvHeads = 2, kDim = 40, kDimV = 75;  // 2 x 21 rows of a head, dim_v 65 to 128
constexpr size_t kClass = 3 * 2 + 1;

Attention call() {
    Attention attention;
    attention.batch(1).heads(kHeads, kKvHeads).lengths(kQueries, kKeys).dims(kDim, kDimV);
    attention.causal(Align::bottom_right).kernel(FOVEA_KERNEL_FLASH);
    return attention;
}

struct Memory {
    std::vector<float> q = random_floats(kHeads * kQueries * kDim, 1);
    std::vector<float> k = random_floats(kKvHeads * kKeys * kDim, 2);
    std::vector<float> v = random_floats(kKvHeads * kKeys * kDimV, 3);
    std::vector<float> o = std::vector<float>(kHeads * kQueries * kDimV);
};

std::vector<float> run(Engine& engine, const Attention& attention) {
    Memory m;
    HostBindings bindings = {};
    bindings[FOVEA_BIND_Q] = {m.q.data(), m.q.size() * 4},
    bindings[FOVEA_BIND_K] = {m.k.data(), m.k.size() * 4};
    bindings[FOVEA_BIND_V] = {m.v.data(), m.v.size() * 4},
    bindings[FOVEA_BIND_O] = {m.o.data(), m.o.size() * 4};
    const Result<RunReport> report = engine.attention(attention, bindings);
    EXPECT_TRUE(report) << report.error().text;
    return m.o;
}

Result<Engine> open_engine(const std::string& tuning_file = "") {
    EngineOptions options = unchecked_vulkan(true);
    options.tuning_file = tuning_file;
    return Engine::open(options);
}

void write_text(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

// Slow compilers get one tile; the quick one every number of threads and columns that `./dev bench tune`
// measures, and of rows the extremes.
std::vector<FoveaFlashTile> tiles_for_this_driver() {
    const char* driver = std::getenv("FOVEA_TEST_DRIVER");
    if (!driver || std::string_view(driver) != "lavapipe26") return {{8, 8, 2}};
    std::vector<FoveaFlashTile> tiles = {{1, 32, 2}, {3, 16, 1}, {4, 8, 1}};
    for (const uint32_t threads : {8u, 16u, 32u})
        for (const uint32_t quads : {1u, 2u}) tiles.push_back({8, threads, quads});
    return tiles;
}

TEST(TuningOnDevice, tiles_give_right_results) {
    EngineOptions options;
    options.backend = BackendChoice::reference;
    Result<Engine> reference = Engine::open(options);
    ASSERT_TRUE(reference) << reference.error().text;
    Attention oracle = call();
    oracle.kernel(FOVEA_KERNEL_AUTO);
    const std::vector<float> expected = run(*reference, oracle);
    const Scratch scratch;
    const Result<Engine> untuned = open_engine();
    ASSERT_TRUE(untuned) << untuned.error().text;
    for (const FoveaFlashTile& tile : tiles_for_this_driver()) {
        SCOPED_TRACE(std::to_string(tile.rows) + " rows " + std::to_string(tile.threads) + " threads " +
                     std::to_string(tile.column_quads) + " quads");
        Tuning tuning{untuned->device().name, untuned->device().driver, {}, FOVEA_MASK_MAP_AUTO};
        tuning.flash_tiles[kClass] = tile;
        write_text(scratch / "tuning", tuning_text(tuning));
        Result<Engine> engine = open_engine((scratch / "tuning").string());
        ASSERT_TRUE(engine) << engine.error().text;
        const Result<Plan> plan = plan_attention(engine->properties(), call());
        ASSERT_TRUE(plan) << plan.error().text;
        EXPECT_NE(plan->explain().find("tiles of " + std::to_string(tile.rows) + " rows x " +
                                       std::to_string(4 * tile.threads) + " keys, "),
                  std::string::npos)
            << plan->explain();
        EXPECT_NE(plan->explain().find("(measured on this device)"), std::string::npos);
        expect_close(run(*engine, call()), expected, 2e-6f);
        for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
    }
}

TEST(TuningOnDevice, of_another_driver_is_refused) {
    const Scratch scratch;
    const Result<Engine> here = open_engine();
    ASSERT_TRUE(here) << here.error().text;
    write_text(scratch / "tuning",
               tuning_text({here->device().name, "another driver", {}, FOVEA_MASK_MAP_AUTO}));
    const Result<Engine> refused = open_engine((scratch / "tuning").string());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "tuning.driver");
    EXPECT_NE(refused.error().text.find("another driver"), std::string::npos) << refused.error().text;
}

}  // namespace
}  // namespace fovea::test
