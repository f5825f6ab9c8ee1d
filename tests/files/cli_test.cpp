// The command line on every malformed file: exit 2, one line that begins with "fovea: error: ", no output
// file.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

TEST(CommandLine, RefusesEveryMalformedFileInOneLine) {
    const Scratch scratch;
    size_t refused = 0;
    for (const char* format : {"safetensors", "npy", "npz", "csv", "png"}) {
        const auto folder = std::filesystem::path(FOVEA_CORPUS) / format;
        std::ifstream list(folder / "expected.txt");
        for (std::string line; std::getline(list, line);) {
            const size_t tab = line.find('\t');
            if (tab + 1 == line.size()) continue;  // a valid file
            const std::string file = (folder / line.substr(0, tab)).string();
            const std::string command = std::string("\"") + FOVEA_CLI + "\" attend \"" + file +
                                        "\" --out \"" + (scratch / "out.safetensors").string() + "\" > \"" +
                                        (scratch / "stdout").string() + "\" 2> \"" +
                                        (scratch / "stderr").string() + "\"";
            const int status = std::system(command.c_str());
            const std::string error = read_file(scratch / "stderr");
            EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << file << "\n" << error;
            EXPECT_TRUE(error.starts_with("fovea: error: ")) << file << "\n" << error;
            EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << file << "\n" << error;
            EXPECT_NE(error.find(line.substr(tab + 1)), std::string::npos) << file << "\n" << error;
            EXPECT_EQ(read_file(scratch / "stdout"), "") << file;
            EXPECT_EQ(scratch.file_count(), 2u) << file;
            ++refused;
        }
    }
    EXPECT_GE(refused, 200u);
}

}  // namespace
}  // namespace fovea
