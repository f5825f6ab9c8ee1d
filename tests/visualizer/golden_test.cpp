// Pictures of every level and panel against kept ones, as coarse grids of lightness: a panel that moved, lost
// its contents or its colors is seen; other fonts and drivers are not. FOVEA_WRITE_GOLDEN=FILE writes the
// grids anew.
#include "visualizer_fixture.hpp"

#include <cstdlib>
#include <fstream>
#include <map>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kColumns = 40, kRows = 24;
// Levels of lightness of 255, on average over the grid and in any one tile.
constexpr double kMeanTolerance = 2.5;
constexpr int kTileTolerance = 45;

std::vector<int> grid_of(const Tensor& image) {
    const uint64_t height = image.shape[0], width = image.shape[1];
    std::vector<int> grid;
    for (uint64_t row = 0; row < kRows; ++row) {
        for (uint64_t column = 0; column < kColumns; ++column) {
            uint64_t sum = 0, count = 0;
            for (uint64_t y = row * height / kRows; y < (row + 1) * height / kRows; ++y)
                for (uint64_t x = column * width / kColumns; x < (column + 1) * width / kColumns;
                     ++x, ++count) {
                    const std::byte* p = &image.bytes[(y * width + x) * 4];
                    sum += (uint64_t(p[0]) * 54 + uint64_t(p[1]) * 183 + uint64_t(p[2]) * 19) / 256;
                }
            grid.push_back(int(sum / count));
        }
    }
    return grid;
}

std::map<std::string, std::vector<int>> kept_grids() {
    std::map<std::string, std::vector<int>> grids;
    std::ifstream file(FOVEA_GOLDEN);
    std::string name, hex;
    while (file >> name >> hex)
        for (size_t i = 0; i + 1 < hex.size(); i += 2)
            grids[name].push_back(std::stoi(hex.substr(i, 2), nullptr, 16));
    return grids;
}

using GoldenTest = VisualizerTest;

TEST_F(GoldenTest, pictures_look_like_the_kept_ones) {
    struct Case {
        std::string name;
        int level;
        Theme theme = Theme::dark;
        float scale = 1;
        std::vector<std::string> show = {};
        std::string long_map = {};
        std::string task = {};
    };
    std::vector<Case> cases;
    for (int level = 1; level <= 7; ++level) cases.push_back({"level" + std::to_string(level), level});
    cases.push_back({"light", 3, Theme::light});
    cases.push_back({"light-2x", 2, Theme::light, 2});
    cases.push_back({"compare", 5, Theme::dark, 1, {"compare", "problems"}});
    cases.push_back({"mask", 4, Theme::dark, 1, {"mask"}});
    cases.push_back({"map", 2, Theme::dark, 1, {}, "4k"});
    cases.push_back({"learned", 2, Theme::dark, 1, {}, {}, "induction"});
    const std::map<std::string, std::vector<int>> kept = kept_grids();
    const char* write = std::getenv("FOVEA_WRITE_GOLDEN");
    std::ofstream out;
    if (write) out.open(write);
    for (const Case& c : cases) {
        Options o;
        o.level = c.level, o.theme = c.theme, o.scale = c.scale, o.show = c.show, o.long_map = c.long_map;
        o.task = c.task;
        o.width = 1200, o.height = 720;
        o.exact = true;
        const Tensor image = picture_of(o, folder);
        ASSERT_EQ(image.shape.size(), 3u) << c.name;
        const std::vector<int> grid = grid_of(image);
        if (write) {
            out << c.name << ' ';
            for (const int value : grid) {
                constexpr char kHex[] = "0123456789abcdef";
                out << kHex[value >> 4] << kHex[value & 15];
            }
            out << '\n';
            continue;
        }
        const auto found = kept.find(c.name);
        ASSERT_NE(found, kept.end()) << c.name;
        ASSERT_EQ(found->second.size(), grid.size());
        double sum = 0;
        for (size_t i = 0; i < grid.size(); ++i) {
            const int difference = std::abs(grid[i] - found->second[i]);
            sum += difference;
            EXPECT_LE(difference, kTileTolerance)
                << c.name << ": tile in row " << i / kColumns << ", column " << i % kColumns;
        }
        EXPECT_LE(sum / double(grid.size()), kMeanTolerance) << c.name;
    }
}

}  // namespace
}  // namespace fovea::visualizer
