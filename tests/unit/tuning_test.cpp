// A tuning as text: what is written is read again, and what is wrong is rejected by its field and line.
#include "shaders/planned.hpp"

#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace fovea {
namespace {

DeviceInfo some_gpu() {
    DeviceInfo device;
    device.name = "Some GPU (rev 2)";
    device.driver = "some driver: 1.2, Vulkan 1.3.4";
    device.properties = test::gpu_properties();
    return device;
}

Tuning some_tuning() {
    Tuning tuning{some_gpu().name, some_gpu().driver, {}, FOVEA_MASK_MAP_NEVER};
    tuning.flash_tiles[0] = {1, 32, 2};
    tuning.flash_tiles[1] = {2, 16, 1};  // one row, heads of the middle width: not the other way round
    tuning.flash_tiles[4] = {3, 8, 1};
    tuning.flash_tiles[8] = {8, 16, 2};
    return tuning;
}

TEST(Tuning, is_read_as_it_was_written) {
    const Tuning written = some_tuning();
    const std::string text = tuning_text(written);
    for (const std::string& form :
         {text, "fovea tuning 1\r\n# by hand\r\n\r\n" + text.substr(text.find('\n') + 1)}) {
        const Result<Tuning> read = read_tuning(form);
        ASSERT_TRUE(read) << read.error().text;
        EXPECT_EQ(read->device, written.device);
        EXPECT_EQ(read->driver, written.driver);
        EXPECT_EQ(read->mask_map, written.mask_map);
        EXPECT_EQ(memcmp(read->flash_tiles, written.flash_tiles, sizeof written.flash_tiles), 0);
    }
}

TEST(Tuning, refuses_a_malformed_text_by_field_and_line) {
    const std::string head = "fovea tuning 1\ndevice d\ndriver e\n";
    const std::string tile = "flash_tile rows 1 dim_v 64: ";
    struct Case {
        std::string text;
        const char* field;
        const char* says;
    };
    const Case cases[] = {
        {"", "version", "empty"},
        {"fovea tuning 2\ndevice d\ndriver e\n", "version", "'fovea tuning 2' is not 'fovea tuning 1'"},
        {"{\"tuning\": 1}", "version", "line 1"},
        {"fovea tuning 1\ndriver e\n", "device", "ends without its line"},
        {"fovea tuning 1\ndevice d\n", "driver", "ends without its line"},
        {head + "speed 7\n", "speed", "line 4"},
        {head + "mask_map maybe\n", "mask_map", "'maybe' is not"},
        {head + "mask_map never again\n", "mask_map", "line 4"},
        {head + tile + "8 rows 16 threads\n", "flash_tile", "line 4"},
        {head + tile + "-8 rows 16 threads 1 column_quads\n", "flash_tile", "line 4"},
        {head + tile + "99999999999 rows 16 threads 1 column_quads\n", "flash_tile", "line 4"},
        {head + tile + "0 rows 0 threads 0 column_quads\n", "flash_tile", "rows is 0; it must be at least 1"},
        {head + "flash_tile rows 2 dim_v 64: 8 rows 16 threads 1 column_quads\n", "flash_tile",
         "rows 1|4|more"},
        {head + tile + "1 rows 16 threads 1 column_quads\n" + tile + "1 rows 8 threads 1 column_quads\n",
         "flash_tile", "has a second tile"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.text);
        const Result<Tuning> read = read_tuning(c.text);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().field, c.field) << read.error().text;
        EXPECT_NE(read.error().text.find(c.says), std::string::npos) << read.error().text;
    }
}

TEST(Tuning, is_for_the_device_and_driver_that_it_was_made_on) {
    DeviceInfo device = some_gpu();
    ASSERT_TRUE(apply_tuning(some_tuning(), device));
    EXPECT_EQ(device.properties.mask_map, FOVEA_MASK_MAP_NEVER);
    EXPECT_EQ(device.properties.flash_tiles[4].rows, 3u);
    const auto refused = [](const Tuning& tuning, DeviceInfo to, const char* field, const char* says) {
        const Result<void> r = apply_tuning(tuning, to);
        ASSERT_FALSE(r);
        EXPECT_EQ(r.error().field, field);
        EXPECT_NE(r.error().text.find(says), std::string::npos) << r.error().text;
    };
    Tuning other = some_tuning();
    other.device = "Another GPU";
    refused(other, some_gpu(), "tuning.device", "Another GPU");
    other = some_tuning();
    for (const char* driver : {"some driver: 1.3", "some driver: 1.3, Vulkan 1.3.4"}) {
        other.driver = driver;
        refused(other, some_gpu(), "tuning.driver", driver);
    }
    other = some_tuning();
    other.flash_tiles[2] = {9, 16, 1};
    refused(other, some_gpu(), "properties.flash_tiles[2]", "9 rows, 16 threads");
    other.flash_tiles[2] = {8, 64, 1};
    refused(other, some_gpu(), "properties.flash_tiles[2]", "64 threads");
    refused(some_tuning(), list_devices(1)[0], "tuning.device", "needs a Vulkan device");
}

TEST(Tuning, the_map_of_a_mask_must_save_more_than_it_costs) {
    struct Case {
        MaskMapTimes times;
        FoveaMaskMap map;
    };
    const Case cases[] = {
        {{1.00, 1.03, 1.00, 0.23}, FOVEA_MASK_MAP_AUTO},  // as on a software driver
        {{1.00, 0.99, 1.00, 0.94}, FOVEA_MASK_MAP_AUTO},
        {{1.00, 1.00, 1.00, 0.96}, FOVEA_MASK_MAP_NEVER},  // saves next to nothing
        {{1.00, 1.00, 1.00, 1.30}, FOVEA_MASK_MAP_NEVER},
        {{1.00, 1.50, 1.00, 0.60}, FOVEA_MASK_MAP_NEVER},  // costs more than it saves
        {{1.00, 1.30, 1.00, 0.60}, FOVEA_MASK_MAP_AUTO},
    };
    for (const Case& c : cases)
        EXPECT_EQ(mask_map_worth(c.times), c.map)
            << c.times.random_with << " at random, " << c.times.blocks_with << " of blocks";
}

TEST(Tuning, is_refused_by_an_engine_that_cannot_use_it) {
    EngineOptions options;
    options.backend = BackendChoice::cpu;
    options.tuning_file = "no such folder/no such file";
    const Result<Engine> missing = Engine::open(options);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, FOVEA_IO_ERROR);
    EXPECT_EQ(missing.error().field, "tuning_file");
}

}  // namespace
}  // namespace fovea
