// Linear layers on weights as files store them, against the dequantised matrix in float64.

#include "cpu/block_rows.hpp"
#include "cpu/kernels.hpp"
#include "cpu/target.hpp"
#include "model/block_run.hpp"
#include "model/stored_weights.hpp"
#include "plan/plan.hpp"

#include <fovea/thread_pool.hpp>

#include <algorithm>

namespace fovea {

namespace {

const FoveaDtype kTypes[] = {FOVEA_F32,  FOVEA_F16,  FOVEA_BF16, FOVEA_Q4_0, FOVEA_Q4_1, FOVEA_Q5_0,
                             FOVEA_Q5_1, FOVEA_Q8_0, FOVEA_Q4_K, FOVEA_Q5_K, FOVEA_Q6_K};

// By the few-rows kernel of one instruction set.
void rows_on_cpu(uint32_t target, const Weight& w, const F32Tensor& bias, const F32Tensor& x, F32Tensor& y,
                 const FoveaParallel* parallel = nullptr, bool byte_products = true) {
    Result<FoveaDeviceProperties> properties = cpu_properties(parallel ? parallel->worker_count : 1);
    ASSERT_TRUE(properties);
    properties->cpu_target = target;
    FoveaLinearDesc call = linear_of(w.stored, bias, x);
    call.kernel = FOVEA_KERNEL_DECODE;
    const Result<Plan> plan = plan_linear(*properties, call);
    ASSERT_TRUE(plan) << plan.error().text;
    if (!byte_products) plan->get()->cpu.kernels.byte_products = false;
    run_linear(*plan, w, bias, x, y, parallel);
}
const F32Tensor kNoBias(Shape{0});

TEST(StoredLinear, gives_the_dequantised_product_on_every_instruction_set) {
    std::mt19937 random(20261122);
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    size_t targets = 0;
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        ++targets;
        SCOPED_TRACE(cpu::target_name(target));
        for (const FoveaDtype type : kTypes)
            for (const auto& [rows, blocks] :
                 {std::pair{1u, 1u}, {5u, 3u}, {131u, 2u}, {9u, 19u}, {700u, 7u}}) {
                // Types without blocks may end in a part of a vector.
                const uint64_t elements = dtype_info(type).block.numbers;
                const uint64_t columns = elements == 1 ? 37 * blocks : elements * blocks;
                const Weight w(type, rows, columns, random);
                const F32Tensor x = random_rows(2, columns, random);
                const F32Tensor bias =
                    rows % 2 == 0 ? reshaped(random_rows(1, rows, random), {rows}) : F32Tensor(Shape{0});
                F32Tensor y({3, rows}), threaded({2, rows});
                std::fill(y.values.begin(), y.values.end(), NAN);
                rows_on_cpu(target, w, bias, x, y);
                expect_row_verdict(w, bias, x, y);
                EXPECT_TRUE(std::all_of(y.row(2).begin(), y.row(2).end(), [](float v) { return v != v; }))
                    << "nothing is written behind the last row";
                y.values.resize(2 * rows);
                rows_on_cpu(target, w, bias, x, threaded, &parallel);
                EXPECT_EQ(threaded.values, y.values) << "threads change no bit";
            }
    }
    EXPECT_GE(targets, 2u);
}

// If no kernel is named, this one is chosen for a few rows of float32 with a weight of another type.
TEST(StoredLinear, a_plan_takes_the_kernel_for_few_rows_and_says_why_not) {
    Result<FoveaDeviceProperties> properties = cpu_properties(2);
    ASSERT_TRUE(properties);
    const auto reason = [&](FoveaDtype type, uint64_t rows, void (*change)(FoveaLinearDesc&)) {
        FoveaLinearDesc call{};
        call.struct_size = sizeof call;
        call.w_type = type, call.n_in = 256, call.n_out = 64, call.rows = rows;
        change(call);
        const Result<Plan> plan = plan_linear(*properties, call);
        return plan ? std::string(plan->info().reason) : plan.error().text;
    };
    const auto none = [](FoveaLinearDesc&) {};
    const auto by_name = [](FoveaLinearDesc& d) { d.kernel = FOVEA_KERNEL_DECODE; };
    const char* const few = "decode: few rows: each weight is read once, as it is stored";
    for (const FoveaDtype type : std::span(kTypes).subspan(1))
        for (const uint64_t rows : {1u, 4u}) EXPECT_EQ(reason(type, rows, none), few) << dtype_name(type);
    const std::string many =
        "linear: register tiles on packed weights, sums in ascending order; not decode: ";
    EXPECT_EQ(reason(FOVEA_Q4_0, 5, none), many + "made for at most 4 rows");
    EXPECT_EQ(reason(FOVEA_F32, 1, none), many + "its sums have another order than those of many rows");
    EXPECT_EQ(reason(FOVEA_F16, 1, [](FoveaLinearDesc& d) { d.y_type = FOVEA_F16; }),
              many + "X and Y are not both float32");
    EXPECT_EQ(reason(FOVEA_F16, 1, [](FoveaLinearDesc& d) { d.weight_is_in_out = 1; }),
              many + "the weight is [n_in, n_out]");
    EXPECT_EQ(reason(FOVEA_F32, 9, by_name),
              "decode (asked for by name): few rows: each weight is read once, as it is stored");
    EXPECT_EQ(reason(FOVEA_F32, 1,
                     [](FoveaLinearDesc& d) { d.kernel = FOVEA_KERNEL_DECODE, d.x_type = FOVEA_F16; }),
              "kernel decode cannot run this call on the CPU: X and Y are not both float32");
}

// Several products of one x at once have the same bits as each by itself.
TEST(StoredLinear, several_at_once_are_what_each_is_alone) {
    std::mt19937 random(20261127);
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    const std::unique_ptr<Runner> engine = make_cpu_runner(&parallel, parallel.worker_count);
    const F32Tensor x = random_rows(3, 512, random);
    std::vector<Weight> weights;
    std::vector<F32Tensor> biases, alone, together;
    for (const auto& [type, rows] : {std::pair{FOVEA_Q4_0, 333u},
                                     {FOVEA_F16, 40u},
                                     {FOVEA_Q4_0, 1u},
                                     {FOVEA_F32, 20u},
                                     {FOVEA_Q8_0, 700u}}) {
        weights.emplace_back(type, rows, 512, random);
        biases.push_back(rows % 2 == 0 ? reshaped(random_rows(1, rows, random), {rows}) : kNoBias);
        alone.emplace_back(Shape{3, rows}), together.emplace_back(Shape{3, rows});
    }
    std::vector<StoredProduct> products;
    for (size_t n = 0; n < weights.size(); ++n) {
        rows_on_cpu(cpu::best_target(), weights[n], biases[n], x, alone[n]);
        products.push_back({&weights[n].stored, &biases[n], &together[n]});
    }
    ASSERT_TRUE(engine->stored_linears(products, x));
    EXPECT_EQ(together, alone);
}

// Blocks of activations as they may come: what is changed in normal numbers, of each of 32.
struct Activations {
    const char* name;
    float (*change)(float x, uint64_t e);
};
const Activations kActivations[] = {
    {"one large number in a block", [](float x, uint64_t e) { return e % 32 == 5 ? 1e30f * x : x; }},
    {"huge beside tiny", [](float x, uint64_t e) { return (e % 2 ? 1e30f : 1e-30f) * x; }},
    {"one in each block", [](float x, uint64_t e) { return e % 32 == 9 ? x : 0.0f; }},
    {"a block of zeros", [](float x, uint64_t e) { return e / 32 % 2 ? x : 0.0f; }},
    {"subnormal", [](float x, uint64_t) { return 1e-40f * x; }},
    {"near the largest", [](float x, uint64_t) { return 1e33f * x; }},
    {"blocks far apart", [](float x, uint64_t e) { return std::ldexp(x, int(e / 32 * 7 % 60) - 30); }},
    {"long tails", [](float x, uint64_t) { return x * std::exp(4 * std::abs(x)); }},
    {"the last number below a power of two",
     [](float x, uint64_t e) {
         return e % 32 == 31 ? -std::nextafter(4.0f, 0.0f) : std::clamp(x, -3.0f, 3.0f);
     }},
};

TEST(StoredLinear, takes_activations_of_every_size) {
    std::mt19937 random(20261126);
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        for (const FoveaDtype type : {FOVEA_Q4_0, FOVEA_Q8_0, FOVEA_Q5_0, FOVEA_Q5_1, FOVEA_F16})
            for (const Activations& a : kActivations)
                for (const uint64_t blocks : {1u, 6u, 19u}) {
                    SCOPED_TRACE(std::string(cpu::target_name(target)) + ", " + a.name);
                    const Weight w(type, 37, 32 * blocks, random);
                    F32Tensor x = random_rows(3, 32 * blocks, random), y({3, 37}), plain({3, 37});
                    for (uint64_t n = 0; n < x.values.size(); ++n)
                        x.values[n] = a.change(x.values[n], n % (32 * blocks));
                    rows_on_cpu(target, w, kNoBias, x, y);
                    expect_row_verdict(w, F32Tensor(Shape{0}), x, y);
                    rows_on_cpu(target, w, kNoBias, x, plain, nullptr, false);
                    EXPECT_EQ(plain.values, y.values) << "products of bytes change no bit";
                }
    }
}

TEST(StoredLinear, what_is_not_finite_stays_so) {
    std::mt19937 random(3);
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        SCOPED_TRACE(cpu::target_name(target));
        for (const float odd : {INFINITY, -INFINITY, NAN})
            for (const uint64_t at : {0u, 200u, 607u}) {
                const Weight w(FOVEA_Q4_0, 37, 608, random);
                F32Tensor x = random_rows(1, 608, random), y({1, 37});
                x.values[at] = odd;
                rows_on_cpu(target, w, kNoBias, x, y);
                for (uint64_t n = 0; n < 37; ++n) {
                    float plain = 0;
                    for (uint64_t e = 0; e < 608; ++e) plain += w.plain[n * 608 + e] * x.values[e];
                    if (plain != plain) {
                        EXPECT_NE(y.values[n], y.values[n]) << n;
                    } else {
                        EXPECT_EQ(y.values[n], plain) << n;
                    }
                }
            }
    }
}

// On targets that multiply bytes: rows of similar values are split, small values next to a large one are not.
TEST(StoredLinear, activations_are_split_where_that_keeps_them) {
    if (!(cpu::runnable_targets() >> cpu::kTargetAvx512 & 1u)) GTEST_SKIP() << "no AVX-512 here";
    std::mt19937 random(4);
    F32Tensor x = random_rows(1, 640, random);
    std::vector<cpu::DigitGroup> groups(cpu::digit_groups(640));
    std::vector<uint32_t> odd(20);
    cpu::BlockRows call{};
    call.format = FOVEA_Q4_0, call.columns = 640, call.x = x.values.data();
    const auto split = cpu::split_digits_kernel_of(cpu::kTargetAvx512);
    split(call, groups.data(), odd.data());
    ASSERT_NE(call.digits, nullptr);
    EXPECT_EQ(call.odd_blocks, 0u);
    for (uint64_t e = 0; e < 640; ++e) {
        const uint64_t lane = e / 32 % 4, half = e % 32 / 16, at = 16 * lane + e % 16;
        const cpu::DigitGroup& g = groups[e / 128];
        const double number =
            65536.0 * g.digits[0][half][at] + 256.0 * g.digits[1][half][at] + g.digits[2][half][at];
        EXPECT_NEAR(number * double(g.unit[4 * lane]), double(x.values[e]), double(g.unit[4 * lane]) / 2)
            << e;
        EXPECT_LE(g.unit[4 * lane], 4.5f * 0x1p-21f) << "at least 22 bits of the largest";
    }
    x.values[70] = 1e4f, x.values[400] = NAN;
    groups.assign(groups.size(), {});
    split(call, groups.data(), odd.data());
    ASSERT_NE(call.digits, nullptr);
    EXPECT_EQ(std::vector(odd.begin(), odd.begin() + int64_t(call.odd_blocks)),
              (std::vector<uint32_t>{2, 12}));
    for (float& v : x.values) v = INFINITY;
    split(call, groups.data(), odd.data());
    EXPECT_EQ(call.digits, nullptr);
}

// For those who look at a matrix: one output's weights, or all of them.
TEST(StoredLinear, weights_are_there_to_be_looked_at) {
    std::mt19937 random(8);
    const Weight w(FOVEA_Q8_0, 7, 96, random);
    Linear layer;
    layer.weight = {{7, 96}, {}};
    layer.stored = std::make_shared<const StoredWeight>(w.stored);
    for (const uint64_t row : {0u, 6u}) {
        const auto from = w.plain.begin() + int64_t(row * 96);
        EXPECT_EQ(*weights_of_output(layer, row), std::vector<float>(from, from + 96));
    }
    const Result<Linear> whole = widened(layer);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->weight.values, std::vector<float>(w.plain.begin(), w.plain.end()));
    EXPECT_EQ(*weights_of_output(*whole, 6), *weights_of_output(layer, 6));
}

// The runner with many rows, and with types that linear() does not read.
TEST(StoredLinear, many_rows_and_other_types_take_the_engines_linear_layer) {
    std::mt19937 random(7);
    const std::unique_ptr<Runner> engine = make_cpu_runner();
    for (const FoveaDtype type : {FOVEA_Q4_0, FOVEA_BF16, FOVEA_F64, FOVEA_Q5_0, FOVEA_Q5_1, FOVEA_Q6_K})
        for (const uint64_t rows : {1u, 4u, 9u}) {
            const Weight w(type, 67, 512, random);
            const F32Tensor x = random_rows(rows, 512, random),
                            bias = reshaped(random_rows(1, 67, random), {67});
            F32Tensor y({rows, 67});
            const Result<void> run = engine->stored_linear(w.stored, bias, x, y);
            ASSERT_TRUE(run) << run.error().text;
            expect_row_verdict(w, bias, x, y);
        }
}

}  // namespace
}  // namespace fovea
