// Rotated KV caches: the rotation against its definition, the errors of each type with and without an outlier
// channel, and what cannot be rotated. Attention is compared with float64 on every backend by the sweep and
// by tests/semantics/rotation_test.cpp, append's bytes by tests/operations.
#include "kernels/operation_run.hpp"
#include "support/case.hpp"

#include "problem/rotation.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace fovea::test {
namespace {

TEST(Rotation, is_the_matrix_that_it_is_defined_as_and_its_own_inverse) {
    for_cases(40, [](Random& random) {
        std::vector<double> row(32 * (1 + random.below(5)));
        for (double& x : row) x = random.uniform(-3, 3);
        std::vector<double> rotated = row, defined = row;
        rotate_row(rotated.data(), rotated.size());
        rotate_by_definition(defined);
        for (size_t n = 0; n < row.size(); ++n) ASSERT_NEAR(rotated[n], defined[n], 1e-14) << n;
        rotate_row(rotated.data(), rotated.size());
        for (size_t n = 0; n < row.size(); ++n) ASSERT_NEAR(rotated[n], row[n], 1e-14) << n;
    });
}

constexpr uint32_t kHeads = 2, kQueries = 24, kKeys = 1024, kDim = 128, kOutlier = 37;

struct Qkv {
    Bytes q, k, v;
};
// Near normal; `outlier` is added to one channel of k and of v, with the sign that each row draws for v.
Qkv random_qkv(uint64_t seed, float outlier) {
    Random random(seed);
    const auto normal = [&] {
        double sum = 0;
        for (int n = 0; n < 12; ++n) sum += random.uniform(-0.5, 0.5);
        return float(sum);
    };
    const auto filled = [&](uint64_t rows) {
        std::vector<float> x(rows * kDim);
        for (float& one : x) one = normal();
        return x;
    };
    const auto bytes = [](const std::vector<float>& x) {
        Bytes out(x.size() * 4);
        memcpy(out.data(), x.data(), out.size());
        return out;
    };
    std::vector<float> q = filled(kHeads * kQueries), k = filled(kHeads * kKeys), v = filled(kHeads * kKeys);
    for (size_t row = 0; row < kHeads * kKeys; ++row) {
        k[row * kDim + kOutlier] += outlier;
        v[row * kDim + kOutlier] += random.chance(0.5) ? outlier : -outlier;
    }
    return {bytes(q), bytes(k), bytes(v)};
}

Bytes appended(const Bytes& x, FoveaDtype type, bool rotate) {
    FoveaAppendDesc d = foveaAppendDesc();
    d.y_type = type, d.batch = 1, d.heads = kHeads, d.dim = kDim, d.len = d.capacity = kKeys,
    d.rotate = rotate;
    const Plan plan = plan_of(foveaPlanAppend, d, cpu_device(1));
    Buffers buffers;
    buffers[FOVEA_BIND_X] = x;
    buffers[FOVEA_BIND_Y].resize(plan.info().binding_bytes[FOVEA_BIND_Y]);
    EXPECT_TRUE(run_in_place(plan, buffers));
    return buffers[FOVEA_BIND_Y];
}

struct Results {
    std::vector<float> o, weights;
};
Results attended(const Qkv& x, FoveaDtype type, bool rotate) {
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = 1, d.heads_q = d.heads_kv = kHeads, d.len_q = kQueries, d.len_kv = kKeys,
    d.dim_qk = d.dim_v = kDim;
    d.k_type = d.v_type = type, d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS;
    d.kernel = FOVEA_KERNEL_REFERENCE;
    if (rotate) d.flags |= FOVEA_FLAG_ROTATED_CACHE;
    const Plan plan = plan_of(foveaPlanAttention, d, cpu_device(1));
    Buffers buffers;
    buffers[FOVEA_BIND_Q] = x.q;
    buffers[FOVEA_BIND_K] = appended(x.k, type, rotate);
    buffers[FOVEA_BIND_V] = appended(x.v, type, rotate);
    for (const FoveaBinding output : {FOVEA_BIND_O, FOVEA_BIND_WEIGHTS})
        buffers[output].resize(plan.info().binding_bytes[output]);
    EXPECT_TRUE(run_in_place(plan, buffers));
    Results out{std::vector<float>(buffers[FOVEA_BIND_O].size() / 4),
                std::vector<float>(buffers[FOVEA_BIND_WEIGHTS].size() / 4)};
    memcpy(out.o.data(), buffers[FOVEA_BIND_O].data(), out.o.size() * 4);
    memcpy(out.weights.data(), buffers[FOVEA_BIND_WEIGHTS].data(), out.weights.size() * 4);
    return out;
}

struct Cost {
    double divergence;  // mean KL of a row of weights, nats
    double error;       // squared error of o without the outlier's column, of its mean square
};
Cost cost_of(const Results& exact, const Results& got) {
    Cost cost{};
    for (size_t n = 0; n < exact.weights.size(); ++n) {
        const double p = double(exact.weights[n]), q = double(got.weights[n]);
        if (p > 0) cost.divergence += p * std::log(p / q) / (kHeads * kQueries);
    }
    double size = 0;
    for (size_t n = 0; n < exact.o.size(); ++n) {
        if (n % kDim == kOutlier) continue;
        cost.error += std::pow(double(got.o[n]) - double(exact.o[n]), 2),
            size += std::pow(double(exact.o[n]), 2);
    }
    cost.error /= size;
    return cost;
}

// The table of docs/concepts/numerics.md.
TEST(Rotation, undoes_what_an_outlier_channel_does_to_blocks_and_costs_nothing_without_one) {
    const Qkv normal = random_qkv(11, 0), outlier = random_qkv(12, 25);
    const Results exact = attended(normal, FOVEA_F32, false), far = attended(outlier, FOVEA_F32, false);
    std::printf("relative RMS error of o, divergence of weights: normal data, an outlier channel\n");
    for (const FoveaDtype type :
         {FOVEA_F16, FOVEA_BF16, FOVEA_F8_E4M3, FOVEA_F8_E5M2, FOVEA_Q8_0, FOVEA_Q4_0}) {
        Cost costs[2][2] = {};
        const bool blocks = type == FOVEA_Q8_0 || type == FOVEA_Q4_0;
        for (int rotate = 0; rotate <= int(blocks); ++rotate) {
            const Cost& plain = costs[rotate][0] = cost_of(exact, attended(normal, type, rotate));
            const Cost& bad = costs[rotate][1] = cost_of(far, attended(outlier, type, rotate));
            std::printf("%-8s %-8s %8.2g %8.2g   %8.2g %8.2g\n", dtype_name(type), rotate ? "rotated" : "",
                        std::sqrt(plain.error), plain.divergence, std::sqrt(bad.error), bad.divergence);
        }
        if (!blocks) continue;
        SCOPED_TRACE(dtype_name(type));
        EXPECT_GT(costs[0][1].error, 4 * costs[0][0].error);
        EXPECT_GT(costs[0][1].error, 4 * costs[1][1].error);
        EXPECT_GT(costs[0][1].divergence, 4 * costs[1][1].divergence);
        EXPECT_NEAR(std::sqrt(costs[1][0].error / costs[0][0].error), 1, 0.05);
    }
}

// v is a part of the rows of k, as in latent attention: the same blocks serve both.
TEST(Rotation, a_v_that_is_a_view_of_k_is_rotated_back) {
    Random random(5);
    std::vector<float> rows(40 * 96), q(6 * 96);
    for (float& x : rows) x = float(random.uniform(-2, 2));
    for (float& x : q) x = float(random.uniform(-1, 1));
    const auto run_with = [&](bool rotate) {
        FoveaAppendDesc a = foveaAppendDesc();
        a.y_type = FOVEA_Q8_0, a.batch = a.heads = 1, a.dim = 96, a.len = a.capacity = 40, a.rotate = rotate;
        const Plan append = plan_of(foveaPlanAppend, a, cpu_device(1));
        Buffers buffers;
        buffers[FOVEA_BIND_X].resize(rows.size() * 4);
        memcpy(buffers[FOVEA_BIND_X].data(), rows.data(), rows.size() * 4);
        buffers[FOVEA_BIND_Y].resize(append.info().binding_bytes[FOVEA_BIND_Y]);
        EXPECT_TRUE(run_in_place(append, buffers));
        FoveaAttentionDesc d = foveaAttentionDesc();
        d.batch = d.heads_q = d.heads_kv = 1, d.len_q = 6, d.len_kv = 40, d.dim_qk = 96, d.dim_v = 64;
        d.k_type = d.v_type = FOVEA_Q8_0, d.v_strides = {40 * 96, 40 * 96, 96};
        if (rotate) d.flags |= FOVEA_FLAG_ROTATED_CACHE;
        const Plan plan = plan_of(foveaPlanAttention, d, cpu_device(1));
        Buffers bound;
        bound[FOVEA_BIND_Q].resize(q.size() * 4);
        memcpy(bound[FOVEA_BIND_Q].data(), q.data(), q.size() * 4);
        bound[FOVEA_BIND_K] = bound[FOVEA_BIND_V] = buffers[FOVEA_BIND_Y];
        bound[FOVEA_BIND_O].resize(plan.info().binding_bytes[FOVEA_BIND_O]);
        EXPECT_TRUE(run_in_place(plan, bound));
        return bound[FOVEA_BIND_O];
    };
    const Bytes plain = run_with(false), rotated = run_with(true);
    for (uint64_t n = 0; n < 6 * 64; ++n)
        EXPECT_NEAR(element(rotated, FOVEA_F32, n), element(plain, FOVEA_F32, n), 0.02) << n;
}

TEST(Rotation, what_cannot_be_is_refused_by_name) {
    const FoveaDeviceProperties cpu = cpu_device(1);
    FoveaAttentionDesc good = foveaAttentionDesc();
    good.batch = good.heads_q = good.heads_kv = 1, good.len_q = 3, good.len_kv = 5,
    good.dim_qk = good.dim_v = 64;
    good.k_type = FOVEA_Q8_0, good.flags = FOVEA_FLAG_ROTATED_CACHE;
    const auto refusal = [&](const FoveaAttentionDesc& d) -> std::string {
        Diag diag;
        return foveaCheckAttention(&cpu, &d, &diag) == FOVEA_OK ? "" : diag.text;
    };
    EXPECT_EQ(refusal(good), "");
    FoveaAttentionDesc bad = good;
    bad.k_type = FOVEA_F16, bad.v_type = FOVEA_F8_E4M3;
    EXPECT_EQ(
        refusal(bad),
        "flags has FOVEA_FLAG_ROTATED_CACHE, and k_type is f16 and v_type f8_e4m3; it needs one that is "
        "FOVEA_Q8_0 or FOVEA_Q4_0");
    bad = good;
    bad.flags |= FOVEA_FLAG_VARLEN, bad.packed_rows_q = 7, bad.align = FOVEA_ALIGN_TOP_LEFT;
    EXPECT_EQ(refusal(bad), "packed_rows_q is 7; it must be 0 with FOVEA_FLAG_ROTATED_CACHE");
    FoveaAttentionBackwardDesc backward{};
    backward.struct_size = sizeof backward;
    FoveaPlan plan = nullptr;
    Diag diag;
    EXPECT_EQ(foveaPlanAttentionBackward(&cpu, &good, &backward, nullptr, &plan, &diag), FOVEA_UNSUPPORTED);
}

}  // namespace
}  // namespace fovea::test
