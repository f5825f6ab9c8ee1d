// Linear layers with FOVEA_PRECISION_INT8_INPUTS against a float64 product that rounds X in the same way.

#include "cpu/target.hpp"
#include "model/block_run.hpp"
#include "model/stored_weights.hpp"

#include <fovea/model/generate.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <functional>

namespace fovea {
namespace {

const FoveaDtype kTypes[] = {FOVEA_Q4_0, FOVEA_Q4_1, FOVEA_Q5_0, FOVEA_Q5_1,
                             FOVEA_Q8_0, FOVEA_Q4_K, FOVEA_Q5_K, FOVEA_Q6_K};
const F32Tensor kNoBias(Shape{0});

void for_targets(const std::function<void(uint32_t)>& body) {
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        SCOPED_TRACE(cpu::target_name(target));
        body(target);
    }
}

// By one instruction set and kernel.
void multiply(uint32_t target, FoveaKernel kernel, const Weight& w, const F32Tensor& bias, const F32Tensor& x,
              F32Tensor& y, const FoveaParallel* parallel = nullptr) {
    Result<FoveaDeviceProperties> properties = cpu_properties(parallel ? parallel->worker_count : 1);
    ASSERT_TRUE(properties);
    properties->cpu_target = target;
    FoveaLinearDesc call = linear_of(w.stored, bias, x);
    call.precision = FOVEA_PRECISION_INT8_INPUTS;
    call.kernel = kernel;
    const Result<Plan> plan = plan_linear(*properties, call);
    ASSERT_TRUE(plan) << plan.error().text;
    run_linear(*plan, w, bias, x, y, parallel);
}

// A row of X as the kernels round it: 32 values share a scale, and `step` is half of it.
struct Rounded {
    std::vector<double> values, step;
    explicit Rounded(std::span<const float> x) {
        for (size_t first = 0; first < x.size(); first += 32) {
            float largest = 0;
            for (const float v : x.subspan(first, 32)) largest = std::max(largest, std::abs(v));
            const bool none = largest < 0x1p-110f;
            const float inverse = none ? 0 : 127.0f / largest, scale = none ? 0 : largest / 127.0f;
            for (const float v : x.subspan(first, 32)) {
                values.push_back(double(std::nearbyint(v * inverse)) * double(scale));
                step.push_back(none ? 0x1p-110 : double(scale) * 0.5001);
            }
        }
    }
};

// Integer products are exact: only the sum over groups rounds, three times for each. What the rounding of X
// changes is at most half a step of each value.
void expect_rounded_product(const Weight& w, const F32Tensor& bias, const F32Tensor& x, const F32Tensor& y) {
    const uint64_t rows = w.stored.shape[0], columns = w.stored.shape[1];
    for (uint64_t i = 0; i < x.rows(); ++i) {
        const Rounded rounded(x.row(i));
        for (uint64_t n = 0; n < rows; ++n) {
            const float* const weights = w.plain.data() + n * columns;
            const double begin = bias.values.empty() ? 0 : double(bias.values[n]);
            double sum = begin, exact = begin, size = 0, change = 0, largest = 0;
            for (uint64_t e = 0; e < columns; ++e) {
                sum += double(weights[e]) * rounded.values[e];
                exact += double(weights[e]) * double(x.row(i)[e]);
                size += std::abs(rounded.values[e]);
                change += std::abs(double(weights[e])) * rounded.step[e];
                largest = std::max(largest, std::abs(double(weights[e])));
            }
            const double floor =
                (3.0 * double(columns) / 16 + 4) * 0x1p-24 * (2 * largest * size + std::abs(begin));
            ASSERT_NEAR(double(y.row(i)[n]), sum, floor) << dtype_name(w.stored.type) << " [" << rows << ", "
                                                         << columns << "], row " << i << ", output " << n;
            ASSERT_NEAR(double(y.row(i)[n]), exact, change + floor);
        }
    }
}

TEST(IntegerLinear, gives_the_product_of_rounded_rows_on_every_instruction_set) {
    std::mt19937 random(20261129);
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    for_targets([&](uint32_t target) {
        for (const FoveaDtype type : kTypes)
            // Outputs, blocks of a row, rows of X: more than a task, a panel or a stretch takes at a time.
            for (const auto& [outputs, blocks, count] :
                 {std::array{1u, 1u, 1u}, {5u, 3u, 3u}, {9u, 41u, 9u}, {130u, 3u, 70u}}) {
                const Weight w(type, outputs, blocks * dtype_info(type).block.numbers, random);
                const F32Tensor x = random_rows(count, w.stored.columns(), random);
                const F32Tensor bias =
                    outputs % 2 == 0 ? reshaped(random_rows(1, outputs, random), {outputs}) : kNoBias;
                for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_AUTO}) {
                    F32Tensor y({count + 1, outputs}), threaded({count, outputs});
                    std::fill(y.values.begin(), y.values.end(), NAN);
                    multiply(target, kernel, w, bias, x, y);
                    expect_rounded_product(w, bias, x, y);
                    EXPECT_TRUE(std::all_of(y.row(count).begin(), y.row(count).end(), [](float v) {
                        return v != v;
                    })) << "nothing is written after the last row";
                    y.values.resize(count * outputs);
                    multiply(target, kernel, w, bias, x, threaded, &parallel);
                    EXPECT_EQ(threaded.values, y.values) << "threads change no bit";
                }
            }
    });
}

// A row has the same bits in every batch that one kernel takes.
TEST(IntegerLinear, a_batch_changes_no_bit_of_a_row) {
    std::mt19937 random(20261130);
    for_targets([&](uint32_t target) {
        for (const FoveaDtype type : kTypes) {
            const Weight w(type, 37, 1280, random);
            const F32Tensor x = random_rows(23, 1280, random);
            F32Tensor all({23, 37});
            multiply(target, FOVEA_KERNEL_AUTO, w, kNoBias, x, all);
            for (const uint64_t count : {5u, 8u, 17u}) {
                F32Tensor some({count, 1280}), y({count, 37});
                std::copy_n(x.values.begin(), some.values.size(), some.values.begin());
                multiply(target, FOVEA_KERNEL_AUTO, w, kNoBias, some, y);
                EXPECT_TRUE(std::equal(y.values.begin(), y.values.end(), all.values.begin())) << count;
            }
        }
    });
}

#if defined(__x86_64__)
// Where products and sums are fused alike, many rows have the same bits on all instruction sets.
TEST(IntegerLinear, many_rows_have_the_same_bits_with_avx2_and_avx512) {
    const uint32_t both = 1u << cpu::kTargetAvx2 | 1u << cpu::kTargetAvx512;
    if ((cpu::runnable_targets() & both) != both) GTEST_SKIP() << "no AVX-512 here";
    std::mt19937 random(20261201);
    for (const FoveaDtype type : kTypes) {
        const Weight w(type, 37, 1280, random);
        const F32Tensor x = random_rows(9, 1280, random);
        F32Tensor narrow({9, 37}), wide({9, 37});
        multiply(cpu::kTargetAvx2, FOVEA_KERNEL_AUTO, w, kNoBias, x, narrow);
        multiply(cpu::kTargetAvx512, FOVEA_KERNEL_AUTO, w, kNoBias, x, wide);
        EXPECT_EQ(narrow.values, wide.values) << dtype_name(type);
    }
}
#endif

TEST(IntegerLinear, takes_activations_of_every_size) {
    std::mt19937 random(20261202);
    float (*const changes[])(float x, uint64_t e) = {
        [](float x, uint64_t e) { return e % 32 == 5 ? 1e30f * x : x; },
        [](float x, uint64_t e) { return e / 32 % 2 ? x : 0.0f; },
        [](float x, uint64_t) { return 1e-40f * x; },
        [](float x, uint64_t) { return 1e-31f * x; },
        [](float x, uint64_t) { return 1e33f * x; },
        [](float x, uint64_t e) { return std::ldexp(x, int(e / 32 * 7 % 60) - 30); },
        [](float x, uint64_t e) { return e % 2 ? 127.0f : std::round(40 * x); },
    };
    for_targets([&](uint32_t target) {
        for (const FoveaDtype type : kTypes)
            for (const auto change : changes)
                for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_AUTO}) {
                    const Weight w(type, 19, 512, random);
                    F32Tensor x = random_rows(6, 512, random), y({6, 19});
                    for (uint64_t n = 0; n < x.values.size(); ++n) x.values[n] = change(x.values[n], n % 512);
                    multiply(target, kernel, w, kNoBias, x, y);
                    expect_rounded_product(w, kNoBias, x, y);
                }
    });
}

TEST(IntegerLinear, what_is_not_finite_makes_its_row_nan) {
    std::mt19937 random(5);
    for_targets([&](uint32_t target) {
        for (const FoveaDtype type : kTypes)
            for (const float odd : {INFINITY, -INFINITY, NAN})
                for (const FoveaKernel kernel : {FOVEA_KERNEL_DECODE, FOVEA_KERNEL_AUTO}) {
                    const Weight w(type, 11, 512, random);
                    F32Tensor x = random_rows(6, 512, random), y({6, 11});
                    x.row(2)[300] = odd;
                    multiply(target, kernel, w, kNoBias, x, y);
                    for (uint64_t i = 0; i < 6; ++i)
                        for (const float v : y.row(i)) EXPECT_EQ(v == v, i != 2) << i;
                }
    });
}

TEST(IntegerLinear, a_plan_says_its_products_and_what_it_refuses) {
    Result<FoveaDeviceProperties> properties = cpu_properties(2);
    ASSERT_TRUE(properties);
    FoveaLinearDesc call = foveaLinearDesc();
    call.precision = FOVEA_PRECISION_INT8_INPUTS;
    call.w_type = FOVEA_Q4_K, call.n_in = 256, call.n_out = 64;
    const auto said = [&] {
        const Result<Plan> plan = plan_linear(*properties, call);
        return plan ? plan->info().reason + ("\n" + plan->explain())
                    : plan.error().field + ": " + plan.error().text;
    };
    const auto says = [&](const char* words) { EXPECT_NE(said().find(words), std::string::npos) << said(); };
    for (const uint64_t rows : {1u, 4u}) {
        call.rows = rows;
        says("decode: few rows: each weight is read once, as it is stored, and multiplied by X in 8 bits");
        says("products: int8, exact in int32 for each group of W; sums in float32");
    }
    call.rows = 5;
    says(
        "linear: packed codes of weights times X in 8 bits, sums in ascending order; not decode: made for at "
        "most 4 rows");
    says("products: int8, exact in int32");
    call.x_type = FOVEA_F16, call.rows = 0;
    says("linear: packed codes");
    call.kernel = FOVEA_KERNEL_REFERENCE;
    says("float64 plain loops");
    call = foveaLinearDesc();
    call.n_in = 256, call.n_out = 64, call.rows = 1;
    call.w_type = FOVEA_Q4_K;
    EXPECT_EQ(said().find("int8"), std::string::npos) << "float32 unless it is asked for";
    call.precision = FOVEA_PRECISION_INT8_INPUTS;
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16, FOVEA_BF16}) {
        call.w_type = type;
        EXPECT_EQ(said(), std::string("precision: precision is FOVEA_PRECISION_INT8_INPUTS and w_type is ") +
                              dtype_name(type) + "; it needs a quantized w_type");
    }
    FoveaAttentionDesc attention = foveaAttentionDesc();
    attention.batch = attention.heads_q = attention.heads_kv = 1;
    attention.dim_qk = attention.dim_v = 8, attention.len_q = attention.len_kv = 4;
    attention.precision = FOVEA_PRECISION_INT8_INPUTS;
    const Result<Plan> refused = plan_attention(*cpu_properties(1), attention);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text, "precision is FOVEA_PRECISION_INT8_INPUTS, which is only for linear");
}

// The logits of a model whose matrices are q8_0: near those of float32, and the same choices.
TEST(IntegerLinear, a_model_generates_the_same_tokens) {
    const Result<CheckpointModel> model =
        CheckpointModel::open(std::filesystem::path(FOVEA_FAMILIES) / "llama_q8/model.gguf");
    ASSERT_TRUE(model) << model.error().text;
    const std::unique_ptr<Runner> plain = make_cpu_runner(), rounds = make_cpu_runner();
    rounds->set_stored_precision(FOVEA_PRECISION_INT8_INPUTS);
    std::vector<uint32_t> text[2];
    std::vector<std::vector<float>> logits[2];
    for (Runner* const runner : {plain.get(), rounds.get()}) {
        DecoderOptions options;
        options.engine = runner;
        Result<Decoder> decoder = Decoder::open(*model, 24, options);
        ASSERT_TRUE(decoder);
        std::vector<uint32_t> next = {5, 3, 8, 20, 2, 7};
        for (size_t n = 0; n < 10; ++n) {
            const Result<std::vector<float>> row = decoder->run(next);
            ASSERT_TRUE(row) << row.error().text;
            next = {Sampler(0, 0).choose(*row, 0).value()};
            text[runner == rounds.get()].push_back(next[0]);
            logits[runner == rounds.get()].push_back(*row);
        }
    }
    EXPECT_EQ(text[0], text[1]);
    EXPECT_NE(logits[0], logits[1]) << "int8 products were not taken";
    for (size_t n = 0; n < logits[0].size(); ++n) {
        float largest = 0, worst = 0;
        for (size_t i = 0; i < logits[0][n].size(); ++i) {
            largest = std::max(largest, std::abs(logits[0][n][i]));
            worst = std::max(worst, std::abs(logits[0][n][i] - logits[1][n][i]));
        }
        EXPECT_LE(worst, 0.06f * largest) << "token " << n;
    }
}

}  // namespace
}  // namespace fovea
