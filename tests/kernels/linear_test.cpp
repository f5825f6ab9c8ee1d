// The linear layer's kernel against float64, on every instruction set.
#include "kernels/operation_run.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::test {
namespace {

#if defined(__x86_64__) || defined(_M_X64)
constexpr uint64_t kCases = 150;
#else
constexpr uint64_t kCases = 12;  // an emulator may run them
#endif

FoveaLinearDesc random_linear(Random& random) {
    FoveaLinearDesc d{};
    d.struct_size = sizeof d;
    d.x_type = random_type(random), d.w_type = random_type(random), d.y_type = random_type(random);
    // Longer than a depth block, wider than several panels and taller than a tile of rows now and then.
    d.n_in = 1 + uint32_t(random.below(random.chance(0.7) ? 70 : 1100));
    d.n_out = 1 + uint32_t(random.below(random.chance(0.7) ? 60 : 400));
    d.rows = 1 + random.below(random.chance(0.7) ? 40 : 700);
    if (random.chance(0.2)) d.n_in = 256u << random.below(2);  // rows of X that alias in a cache
    d.has_bias = uint32_t(random.below(2)), d.weight_is_in_out = uint32_t(random.below(2));
    const auto stride = [&](uint64_t columns) {
        return random.chance(0.5) ? 0 : int64_t(columns + random.below(9));
    };
    d.x_row_stride = stride(d.n_in), d.y_row_stride = stride(d.n_out);
    d.w_row_stride = stride(d.weight_is_in_out ? d.n_out : d.n_in);
    return d;
}

Bytes magnitudes(Bytes bytes, FoveaDtype type) {
    const size_t size = type == FOVEA_F32 ? 4 : 2;
    for (size_t n = size - 1; n < bytes.size(); n += size) bytes[n] &= std::byte{0x7f};
    return bytes;
}

// The error bound in float32 of a chain of n_in multiply-adds and a bias: (n + 2) roundings of at most the
// sum of the terms' magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), then the
// rounding to Y's type.
struct Oracle {
    Bytes exact, bound;
    FoveaLinearDesc d;

    Oracle(const FoveaLinearDesc& given, const Buffers& buffers) : d(given) {
        d.kernel = FOVEA_KERNEL_REFERENCE;
        d.y_type = FOVEA_F32;
        const Plan plan = plan_of(foveaPlanLinear, d, cpu_device(1));
        Buffers wide = buffers;
        wide[FOVEA_BIND_Y].assign(plan.info().binding_bytes[FOVEA_BIND_Y], std::byte{0xff});
        exact = run(plan, wide, 1);
        for (const auto& [binding, type] :
             {std::pair{FOVEA_BIND_X, d.x_type}, {FOVEA_BIND_WEIGHT, d.w_type}, {FOVEA_BIND_BIAS, FOVEA_F32}})
            wide[binding] = magnitudes(std::move(wide[binding]), type);
        bound = run(plan, wide, 1);
    }

    // The worst error as a share of its bound.
    double worst_share(const Bytes& got, FoveaDtype y_type) const {
        double worst = 0;
        for (uint64_t row = 0; row < d.rows; ++row) {
            for (uint32_t n = 0; n < d.n_out; ++n) {
                const uint64_t index = row * uint64_t(d.y_row_stride ? d.y_row_stride : d.n_out) + n;
                const double expected = element(exact, FOVEA_F32, index);
                double most = (d.n_in + 3) * 0x1p-24 * element(bound, FOVEA_F32, index) + 1e-40;
                if (y_type == FOVEA_F16) most += std::abs(expected) * 0x1p-11 + 0x1p-25;
                if (y_type == FOVEA_BF16) most += std::abs(expected) * 0x1p-8;
                const double share = std::abs(element(got, y_type, index) - expected) / most;
                if (!(share <= worst)) worst = share;
            }
        }
        return worst;
    }
};

// The gaps between rows of Y stay as they were.
void expect_gaps(const FoveaLinearDesc& d, const Bytes& got) {
    const uint64_t size = d.y_type == FOVEA_F32 ? 4 : 2,
                   stride = uint64_t(d.y_row_stride ? d.y_row_stride : d.n_out);
    for (uint64_t row = 0; row + 1 < d.rows; ++row)
        for (uint64_t at = (row * stride + d.n_out) * size; at < (row + 1) * stride * size; ++at)
            ASSERT_EQ(got[at], std::byte{0xff}) << "behind row " << row;
}

TEST(Linear, meets_float64_on_every_instruction_set_and_any_number_of_threads) {
    double worst = 0;
    for_cases(kCases, [&](Random& random) {
        const FoveaLinearDesc d = random_linear(random);
        const FoveaPlanInfo info = plan_of(foveaPlanLinear, d, cpu_device(1)).info();
        const Buffers buffers = random_buffers(random, info, d.x_type, d.w_type);
        const Oracle oracle(d, buffers);
        const uint64_t shuffle = random.next();
        const uint32_t workers = 2 + uint32_t(random.below(6));
        for (const uint32_t target : runnable_targets()) {
            SCOPED_TRACE(foveaCpuTargetName(target));
            const Bytes got = run(plan_of(foveaPlanLinear, d, cpu_device(1, target)), buffers, 1);
            worst = std::max(worst, oracle.worst_share(got, d.y_type));
            EXPECT_LE(oracle.worst_share(got, d.y_type), 1.0);
            expect_gaps(d, got);
            const Plan cut_for_many = plan_of(foveaPlanLinear, d, cpu_device(workers, target));
            EXPECT_TRUE(run(cut_for_many, buffers, workers, shuffle) == got) << workers << " workers";
        }
    });
    std::printf("worst error: %.0f%% of its bound\n", 100 * worst);
}

TEST(Linear, plain_kernel_is_a_chain_in_plain_order) {
    for_cases(20, [&](Random& random) {
        FoveaLinearDesc d = random_linear(random);
        d.kernel = FOVEA_KERNEL_PLAIN;
        d.x_type = d.w_type = d.y_type = FOVEA_F32;
        d.has_bias = 0, d.x_row_stride = d.w_row_stride = d.y_row_stride = 0, d.weight_is_in_out = 0;
        const Plan plan = plan_of(foveaPlanLinear, d, cpu_device(1));
        const Buffers buffers = random_buffers(random, plan.info(), FOVEA_F32, FOVEA_F32);
        const Bytes got = run(plan, buffers, 1);
        for (uint64_t row = 0; row < d.rows; ++row) {
            float sum = 0;
            for (uint32_t k = 0; k < d.n_in; ++k) {
                const float product = float(element(buffers[FOVEA_BIND_X], FOVEA_F32, row * d.n_in + k)) *
                                      float(element(buffers[FOVEA_BIND_WEIGHT], FOVEA_F32, k));
                sum += product;
            }
            ASSERT_EQ(float(element(got, FOVEA_F32, row * d.n_out)), sum) << "row " << row;
        }
    });
}

TEST(Linear, a_plan_for_another_processor_is_refused_at_the_run) {
    FoveaLinearDesc d{};
    d.struct_size = sizeof d;
    d.n_in = d.n_out = 8, d.rows = 2;
    const std::vector<uint32_t> here = runnable_targets();
    for (uint32_t id = 1; std::string(foveaCpuTargetName(id)) != "unknown"; ++id) {
        if (std::find(here.begin(), here.end(), id) != here.end()) continue;
        const Plan plan = plan_of(foveaPlanLinear, d, cpu_device(1, id));
        const FoveaPlanInfo info = plan.info();
        Random random(1);
        Buffers buffers = random_buffers(random, info, FOVEA_F32, FOVEA_F32);
        FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) bound[i] = {buffers[i].data(), buffers[i].size()};
        alignas(64) static std::byte workspace[1 << 20];
        ASSERT_LE(info.workspace_bytes, sizeof workspace);
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = bound;
        run.workspace = {workspace, info.workspace_bytes};
        const Bytes before = buffers[FOVEA_BIND_Y];
        const Result<void> done = plan.run_cpu(run);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, FOVEA_UNSUPPORTED);
        EXPECT_EQ(done.error().field, "properties.cpu_target");
        EXPECT_TRUE(buffers[FOVEA_BIND_Y] == before);
        return;
    }
    GTEST_SKIP() << "every instruction set runs here";
}

}  // namespace
}  // namespace fovea::test
