// A session on a device under the validation layer, without a window; any message fails the test.
#pragma once

#include "document/workbench.hpp"
#include "run.hpp"

#include <gtest/gtest.h>
#include <fovea/files.hpp>

#include <filesystem>
#include <random>

namespace fovea::visualizer {

// A folder of the test's own: several drivers' runs share the machine's temporary one at the same time.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() /
                ("fovea_visualizer_" + std::to_string(random()) + std::to_string(random()));
        std::filesystem::create_directories(path_);
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    operator const std::filesystem::path&() const { return path_; }  // NOLINT: it is one
    std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

// The picture that these options draw without a window, under the validation layer: u8 [height, width, 4].
inline Tensor picture_of(Options o, const std::filesystem::path& folder) {
    o.validation = true;
    o.screenshot = (folder / "picture.png").string();
    const Result<void> drawn = run_headless(o);
    EXPECT_TRUE(drawn) << drawn.error().text;
    if (!drawn) return {};
    Result<Tensor> image = load_png(o.screenshot);
    EXPECT_TRUE(image) << image.error().text;
    return image ? std::move(*image) : Tensor{};
}

class VisualizerTest : public testing::Test {
  protected:
    void SetUp() override {
        GpuWishes wishes;
        wishes.validation = true;
        Result<std::unique_ptr<GpuDevice>> opened = GpuDevice::open(wishes);
        ASSERT_TRUE(opened) << opened.error().text;
        device = std::move(*opened);
        bench = std::make_unique<Workbench>(*device, false);
    }
    void TearDown() override {
        bench.reset();
        for (const std::string& message : device->take_messages()) ADD_FAILURE() << message;
    }
    // True if the settings were accepted.
    bool update() {
        for (bool more = true; more;) {
            Result<bool> updated = false;
            const Result<void> ran =
                device->run_once([&](VkCommandBuffer cmd) { updated = bench->update(cmd, 1e8); });
            EXPECT_TRUE(ran) << ran.error().text;
            EXPECT_TRUE(updated) << updated.error().text;
            more = ran && updated && *updated;
        }
        return bench->computation.problem().empty();
    }
    void compute() { ASSERT_TRUE(update()) << bench->computation.problem(); }
    void show(const std::string& name) {
        for (size_t i = 0; i < bench->computation.stages().size(); ++i)
            if (bench->computation.stages()[i].name == name) bench->view.stage = i;
        ASSERT_EQ(bench->stage().name, name);
    }
    float value(const std::string& stage, uint64_t row, uint64_t column, uint64_t head = 0) {
        show(stage);
        const Stage& s = bench->stage();
        return s.values[(head * s.rows + row) * s.columns + column];
    }

    std::unique_ptr<GpuDevice> device;
    std::unique_ptr<Workbench> bench;
    TemporaryFolder folder;
};

}  // namespace fovea::visualizer
