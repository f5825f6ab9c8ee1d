// Rotary embedding against float64, on every instruction set.
#include "kernels/operation_run.hpp"

#include <cmath>

namespace fovea::test {
namespace {

FoveaRopeDesc random_rope(Random& random) {
    FoveaRopeDesc d{};
    d.struct_size = sizeof d;
    d.x_type = random_type(random), d.y_type = random_type(random);
    d.batch = 1 + uint32_t(random.below(3)), d.heads = 1 + uint32_t(random.below(4));
    d.dim = 2 + uint32_t(random.below(150)), d.len = 1 + random.below(30);
    d.rotary_dim = 2 * (1 + uint32_t(random.below(d.dim / 2)));
    d.interleaved = uint32_t(random.below(2));
    d.table_rows = random.chance(0.5) ? 1 + random.below(20) : 0;
    d.x_strides = random_strides(random, d.heads, d.len, d.dim);
    d.y_strides = random_strides(random, d.heads, d.len, d.dim);
    return d;
}

// Two products of numbers below 4 and a sum: three roundings. Untouched bytes are NaN on both sides.
void compare(const Bytes& got, const Bytes& expected, FoveaDtype type) {
    ASSERT_EQ(got.size(), expected.size());
    for (uint64_t n = 0; n < got.size() / (type == FOVEA_F32 ? 4 : 2); ++n) {
        const double a = element(got, type, n), b = element(expected, type, n);
        if (std::isnan(a) && std::isnan(b)) continue;
        const double rounding = type == FOVEA_F16    ? std::abs(b) * 0x1p-10 + 0x1p-24
                                : type == FOVEA_BF16 ? std::abs(b) * 0x1p-7
                                                     : 0;
        ASSERT_NEAR(a, b, 32 * 0x1p-23 + rounding) << "element " << n;
    }
}

TEST(Rope, meets_float64_on_every_instruction_set_and_any_number_of_threads) {
    for_cases(200, [](Random& random) {
        FoveaRopeDesc d = random_rope(random);
        const FoveaPlanInfo info = plan_of(foveaPlanRope, d, cpu_device(1)).info();
        const Buffers buffers = random_buffers(random, info, d.x_type, FOVEA_F32);
        FoveaRopeDesc reference = d;
        reference.kernel = FOVEA_KERNEL_REFERENCE;
        const Bytes exact = run(plan_of(foveaPlanRope, reference, cpu_device(1)), buffers, 1);
        const uint64_t shuffle = random.next();
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const Bytes got = run(plan_of(foveaPlanRope, d, cpu_device(1, target)), buffers, 1);
            compare(got, exact, d.y_type);
            EXPECT_TRUE(run(plan_of(foveaPlanRope, d, cpu_device(3, target)), buffers, 3, shuffle) == got);
        }
    });
}

// X and Y may be the same memory.
TEST(Rope, runs_in_place) {
    for_cases(60, [](Random& random) {
        FoveaRopeDesc d = random_rope(random);
        d.y_type = d.x_type, d.y_strides = d.x_strides;
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const Plan plan = plan_of(foveaPlanRope, d, cpu_device(1, target));
            Buffers buffers = random_buffers(random, plan.info(), d.x_type, FOVEA_F32);
            buffers[FOVEA_BIND_Y] = buffers[FOVEA_BIND_X];  // the same bytes in the gaps
            const Bytes apart = run(plan, buffers, 1);
            FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
            for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) bound[i] = {buffers[i].data(), buffers[i].size()};
            bound[FOVEA_BIND_Y] = bound[FOVEA_BIND_X];
            FoveaCpuRun given{};
            given.struct_size = sizeof given;
            given.binding_count = FOVEA_BIND_COUNT;
            given.bindings = bound;
            const Result<void> done = plan.run_cpu(given);
            ASSERT_TRUE(done) << done.error().text;
            EXPECT_TRUE(buffers[FOVEA_BIND_X] == apart);
        }
    });
}

}  // namespace
}  // namespace fovea::test
