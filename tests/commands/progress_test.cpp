// The progress line of long commands, at times that the test gives, and as a person sees it.
#include "progress.hpp"
#include "command_run.hpp"

namespace fovea {
namespace {

using namespace test;
using app::Progress;
using std::chrono::milliseconds;

std::string printed(bool is_terminal, Progress::Elsewhere elsewhere) {
    std::FILE* const to = std::tmpfile();
    const Progress::Clock::time_point start = Progress::Clock::now();
    {
        Progress progress("heads", elsewhere, to, is_terminal, start);
        for (int n = 0; n < 120; ++n)  // 12 seconds
            EXPECT_TRUE(progress.at(start + milliseconds(100 * n), n / 120.0, std::to_string(n) + " of 120"));
    }
    std::string text(size_t(std::ftell(to)), '\0');
    std::rewind(to);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), to), text.size());
    std::fclose(to);
    return text;
}

TEST(Progress, is_a_line_every_five_seconds_where_there_is_no_terminal) {
    EXPECT_EQ(printed(false, Progress::Elsewhere::lines), "heads: 42%, 50 of 120\nheads: 83%, 100 of 120\n");
    EXPECT_EQ(printed(false, Progress::Elsewhere::nothing), "");
}

TEST(Progress, replaces_its_line_on_a_terminal_and_goes) {
    const std::string text = printed(true, Progress::Elsewhere::lines);
    EXPECT_TRUE(text.starts_with("\r\033[Kheads: 4%, 5 of 120\r\033[Kheads: 5%, 6 of 120\r")) << text;
    EXPECT_TRUE(text.ends_with("heads: 99%, 119 of 120\r\033[K")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 116);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0);
}

TEST(Progress, says_times_in_the_largest_units) {
    EXPECT_EQ(app::time_text(9.9), "9 s");
    EXPECT_EQ(app::time_text(150), "2 min");
    EXPECT_EQ(app::time_text(7500), "2 h 5 min");
}

}  // namespace
}  // namespace fovea
