// The test that belongs to a kernel: fresh seeded numbers, every instruction set, float64 as the measure,
// guards around what it writes, and a failure that says how to see it again.
#include "skeleton/skeleton.hpp"

#include "support/guarded_buffer.hpp"
#include "support/random.hpp"

#include <fovea/fovea.h>

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace fovea::test {
namespace {

std::vector<uint32_t> runnable_targets() {
    std::vector<uint32_t> targets;
    for (uint32_t target = 1; std::string(foveaCpuTargetName(target)) != "unknown"; ++target) {
        FoveaDeviceProperties best{};
        best.struct_size = sizeof best;
        // Sets are numbered from the narrowest; the best that runs here runs the ones before it.
        if (foveaCpuProperties(1, &best, nullptr) == FOVEA_OK && target <= best.cpu_target &&
            cpu::weighted_rows_of(target))
            targets.push_back(target);
    }
    return targets;
}

void check(uint32_t target, uint64_t seed, uint64_t rows, size_t columns) {
    Random random(seed);
    std::vector<float> x(rows * columns), weights(columns);
    for (float& value : x) value = float(random.uniform(-1, 1));
    for (float& value : weights) value = float(random.uniform(-1, 1));
    GuardedBuffer y(rows * sizeof(float), 4, std::byte{0xff});
    cpu::weighted_rows_of(target)(x.data(), weights.data(), columns, 0, rows,
                                  reinterpret_cast<float*>(y.data()));
    const std::string what = std::string(foveaCpuTargetName(target)) + ", seed " + std::to_string(seed) +
                             ": " + std::to_string(rows) + " x " + std::to_string(columns);
    EXPECT_EQ(y.changed_margin(), 0) << what;
    for (uint64_t r = 0; r < rows; ++r) {
        double sum = 0, magnitude = 0;
        for (size_t c = 0; c < columns; ++c) {
            sum += double(weights[c]) * x[r * columns + c];
            magnitude += std::fabs(double(weights[c]) * x[r * columns + c]);
        }
        float found;
        std::memcpy(&found, y.contents().data() + r * sizeof found, sizeof found);
        // A sum of n products in any order errs by at most n half ulps of the sum of their magnitudes.
        EXPECT_NEAR(found, sum, double(columns) * FLT_EPSILON / 2 * magnitude) << what << ", row " << r;
    }
}

TEST(Skeleton, weighted_rows_agree_with_float64_on_every_instruction_set) {
    const std::vector<uint32_t> targets = runnable_targets();
    ASSERT_FALSE(targets.empty());
    for (const uint32_t target : targets)
        for (uint64_t seed = 1; seed <= 40; ++seed) check(target, seed, 1 + seed % 5, seed * 7 % 131);
}

}  // namespace
}  // namespace fovea::test
