// A session on a device under the validation layer, without a window; any message fails the test.
#pragma once

#include "model/session.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace fovea::visualizer {

class VisualizerTest : public testing::Test {
  protected:
    void SetUp() override {
        GpuWishes wishes;
        wishes.validation = true;
        Result<std::unique_ptr<GpuDevice>> opened = GpuDevice::open(wishes);
        ASSERT_TRUE(opened) << opened.error().text;
        device = std::move(*opened);
        session = std::make_unique<Session>(*device, false);
        // Several drivers' runs share the machine's temporary folder at the same time.
        std::random_device random;
        folder = std::filesystem::temp_directory_path() /
                 ("fovea_visualizer_" + std::to_string(random()) + std::to_string(random()));
        std::filesystem::create_directories(folder);
    }
    void TearDown() override {
        session.reset();
        std::filesystem::remove_all(folder);
        for (const std::string& message : device->take_messages()) ADD_FAILURE() << message;
    }
    // True if the settings were accepted.
    bool update() {
        for (bool more = true; more;) {
            Result<bool> updated = false;
            const Result<void> ran =
                device->run_once([&](VkCommandBuffer cmd) { updated = session->update(cmd, 1e8); });
            EXPECT_TRUE(ran) << ran.error().text;
            EXPECT_TRUE(updated) << updated.error().text;
            more = ran && updated && *updated;
        }
        return session->problem().empty();
    }
    void compute() { ASSERT_TRUE(update()) << session->problem(); }
    void show(const std::string& name) {
        for (size_t i = 0; i < session->stages().size(); ++i)
            if (session->stages()[i].name == name) session->view.stage = i;
        ASSERT_EQ(session->stage().name, name);
    }
    float value(const std::string& stage, uint64_t row, uint64_t column, uint64_t head = 0) {
        show(stage);
        const Stage& s = session->stage();
        return s.values[(head * s.rows + row) * s.columns + column];
    }

    std::unique_ptr<GpuDevice> device;
    std::unique_ptr<Session> session;
    std::filesystem::path folder;
};

}  // namespace fovea::visualizer
