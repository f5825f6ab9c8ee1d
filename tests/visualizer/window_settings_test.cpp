// The window's settings between runs: they come back unchanged, a damaged file is rejected with a message,
// and nothing is half written.
#include "data/window_settings.hpp"
#include "data/text_file.hpp"
#include "visualizer_fixture.hpp"

#include <fstream>

namespace fovea::visualizer {
namespace {

WindowSettings changed() {
    WindowSettings s;
    s.layout = {261.5f, 500, 120, 0.5f, 0.25f, false, true, false, true};
    s.theme = Theme::light;
    s.motion = false;
    s.scale_factor = 1.5f;
    s.width = 1281, s.height = 803;
    return s;
}

TEST(WindowSettingsTest, come_back_as_they_were) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "window";
    const Result<WindowSettings> first = read_window_settings(path);
    ASSERT_TRUE(first) << first.error().text;
    EXPECT_EQ(*first, WindowSettings{}) << "a file that is not there gives the defaults";
    for (const WindowSettings& kept : {changed(), WindowSettings{}}) {
        ASSERT_TRUE(write_window_settings(path, kept));
        const Result<WindowSettings> read = read_window_settings(path);
        ASSERT_TRUE(read) << read.error().text;
        EXPECT_EQ(*read, kept);
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
        << "something half written is left";
}

TEST(WindowSettingsTest, a_damaged_file_is_refused_in_words) {
    const std::string good = window_settings_text(changed());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    const struct {
        std::string text, said;
    } cases[] = {
        {"", "fovea window 1"},
        {"{\"left\": 3}", "line 1"},
        {std::string(64, '\0'), "line 1"},
        {with("left 261.5", "left 9999"), "left and a number from 200 to 520"},
        {with("left 261.5", "left nan"), "left and a number"},
        {with("left 261.5", "left 261.5 3"), "line 2"},
        {with("left 261.5", "left"), "line 2"},
        {with("theme light", "theme blue"), "'dark' or 'light'"},
        {with("sides swapped", "sides left"), "'as_at_first' or 'swapped'"},
        {with("motion off", "motion 0"), "'system', 'on' or 'off'"},
        {with("width 1281", "width 1e30"), "from 320 to 16384"},
        {good + "color red\n", "a name that this version knows"},
        {good + "left 300\n", "a name that is not given before"},
    };
    for (const auto& c : cases) {
        const Result<WindowSettings> read = parse_window_settings(c.text);
        ASSERT_FALSE(read) << c.text;
        EXPECT_NE(read.error().text.find(c.said), std::string::npos) << read.error().text;
    }
    // A text that ends early has the defaults for the rest, as one of an older version has.
    for (size_t length = 0; length <= good.size(); ++length)
        (void)parse_window_settings(good.substr(0, length));
    const Result<WindowSettings> part = parse_window_settings("fovea window 1\r\ntheme light\r\n");
    ASSERT_TRUE(part) << part.error().text;
    EXPECT_EQ(part->theme, Theme::light);
    EXPECT_EQ(part->layout, Layout{});
}

TEST(WindowSettingsTest, a_refused_write_leaves_what_was_there) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder / "window";
    ASSERT_TRUE(write_window_settings(path, changed()));
    // The place of the unfinished file is taken by a folder.
    std::filesystem::create_directory(folder / "window.part");
    EXPECT_FALSE(write_window_settings(path, WindowSettings{}));
    const Result<WindowSettings> read = read_window_settings(path);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, changed());
    const Result<WindowSettings> of_folder = read_window_settings(folder / "window.part");
    ASSERT_FALSE(of_folder);
    EXPECT_FALSE(of_folder.error().text.empty());
}

}  // namespace
}  // namespace fovea::visualizer
