// Tests missing parts: no Vulkan, no memory on the device.
#include "data/exporting.hpp"
#include "picture.hpp"
#include "run.hpp"
#include "visualizer_fixture.hpp"

#include <cstdlib>

namespace fovea::visualizer {
namespace {

using TroubleTest = VisualizerTest;

void run(Workbench& bench) {
    for (bool more = true; more;) {
        Result<bool> updated = false;
        ASSERT_TRUE(bench.computation.device().run_once(
            [&](VkCommandBuffer cmd) { updated = bench.update(cmd, 1e8); }));
        ASSERT_TRUE(updated) << updated.error().text;
        more = *updated;
    }
}

TEST_F(TroubleTest, without_vulkan_the_processor_computes_and_paints_the_same) {
    const std::unique_ptr<GpuDevice> none = GpuDevice::without_vulkan("a test has none");
    Workbench plain(*none, false);
    EXPECT_TRUE(plain.computation.on_cpu());
    plain.computation.compute_on_cpu(false);
    EXPECT_TRUE(plain.computation.on_cpu());
    for (Workbench* s : {bench.get(), &plain}) {
        s->document.change(level_settings(3));
        run(*s);
        ASSERT_TRUE(s->computation.complete());
        s->computation.compute_on_cpu(true);
        run(*s);
    }
    const PictureSize size{1200, 720, 1, false};
    const Result<Tensor> drawn = draw_picture(*bench, size), painted = draw_picture(plain, size);
    ASSERT_TRUE(drawn) << drawn.error().text;
    ASSERT_TRUE(painted) << painted.error().text;
    ASSERT_EQ(drawn->bytes.size(), painted->bytes.size());
    size_t other = 0;
    for (size_t i = 0; i < drawn->bytes.size(); i += 4)
        for (size_t c = 0; c < 3; ++c)
            if (std::abs(int(drawn->bytes[i + c]) - int(painted->bytes[i + c])) > 24) {
                ++other;
                break;
            }
    // The names of the devices, and edges between pixels.
    EXPECT_LT(double(other) / double(drawn->bytes.size() / 4), 0.01);
    plain.map.want_preset("4k");
    run(plain);
    ASSERT_TRUE(plain.map);
    EXPECT_FALSE(plain.map.head()->on_device());
    EXPECT_TRUE(draw_picture(plain, size));
}

TEST_F(TroubleTest, out_of_memory_keeps_the_last_result_and_offers_a_map) {
    GpuWishes wishes;
    wishes.validation = true;
    wishes.memory_limit_bytes = 48u << 20;
    Result<std::unique_ptr<GpuDevice>> small = GpuDevice::open(wishes);
    ASSERT_TRUE(small) << small.error().text;
    {
        Workbench s(**small, false);
        s.document.change(level_settings(7));
        run(s);
        const float before = s.computation.find_stage(StageId::weights)->values[17];
        Settings large = s.document.settings();
        large.length = 1000;
        s.document.change(large);
        run(s);
        ASSERT_TRUE(s.window.notice);
        EXPECT_TRUE(s.window.notice->offers_map);
        for (const char* part : {"Out of device memory", "needs", "free"})
            EXPECT_NE(s.window.notice->text.find(part), std::string::npos) << s.window.notice->text;
        EXPECT_NE(s.computation.problem().find("scores needs"), std::string::npos) << s.computation.problem();
        EXPECT_EQ(s.computation.find_stage(StageId::weights)->values[17], before);
        s.show_refused_as_map();
        run(s);
        ASSERT_TRUE(s.map);
        EXPECT_EQ(s.map.head()->tokens(), 1000u);
        EXPECT_NE(s.document.settings().length, 1000);
        EXPECT_TRUE(s.computation.problem().empty());
    }
    for (const std::string& message : (*small)->take_messages()) ADD_FAILURE() << message;
}

// After a lost device, the same session continues on another one.
TEST_F(TroubleTest, a_session_goes_on_on_another_device) {
    bench->document.change(level_settings(5));
    compute();
    bench->past.keep();
    bench->document.change(level_settings(6));
    Settings hot = bench->document.settings();
    hot.temperature = 2;
    bench->document.change(hot);
    compute();
    show("scaled");
    const std::string before = describe(*bench);
    Workbench other(*device, true);
    other.take(bench->carry());
    run(other);
    EXPECT_EQ(other.document.settings(), hot);
    EXPECT_EQ(other.stage().name, "scaled");
    ASSERT_NE(other.past.kept(), nullptr);
    EXPECT_EQ(other.past.kept()->result->settings.level, 5);
    other.document.undo();
    EXPECT_EQ(other.document.settings().level, 6);
    EXPECT_EQ(other.document.settings().temperature, 1);
}

}  // namespace
}  // namespace fovea::visualizer
