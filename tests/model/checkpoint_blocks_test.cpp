// Blocks of real models' formats: checkpoints that the test writes itself, loaded and run, against float64.
#include <gtest/gtest.h>
#include <fovea/inspect/format.hpp>
#include <fovea/model.hpp>
#include <fovea/model/device_runner.hpp>
#include "support/peak_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

namespace fovea {
namespace {

using Matrix = std::vector<std::vector<double>>;

F32Tensor random_tensor(TorchGenerator& generator, Shape shape, float factor) {
    F32Tensor tensor(std::move(shape));
    generator.randn(tensor.values);
    for (float& value : tensor.values) value *= factor;
    return tensor;
}

// A checkpoint file of named float32 tensors, gone at the end. Its name is its own: several drivers' runs of
// this test share the folder.
class Checkpoint {
  public:
    explicit Checkpoint(const char* name)
        : path_(std::filesystem::temp_directory_path() /
                (std::string("fovea_") + name + "_" + std::to_string(std::random_device()()) +
                 ".safetensors")) {}
    ~Checkpoint() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    void add(const std::string& name, const F32Tensor& tensor) {
        set_.tensors.push_back(*make_tensor(name, tensor.shape, tensor.values));
    }
    void note(const char* key, const char* value) { set_.metadata.emplace_back(key, value); }
    const std::filesystem::path& write() {
        const auto written = save_safetensors(path_, set_);
        EXPECT_TRUE(written) << (written ? "" : written.error().text);
        return path_;
    }

  private:
    std::filesystem::path path_;
    TensorSet set_;
};

// [rows, columns] of x times a weight given as in_out or out_in, plus a bias, in float64.
Matrix product(const Matrix& x, const F32Tensor& weight, bool in_out, const F32Tensor* bias) {
    const size_t n_in = weight.shape[in_out ? 0 : 1], n_out = weight.shape[in_out ? 1 : 0];
    Matrix y(x.size(), std::vector<double>(n_out));
    for (size_t i = 0; i < x.size(); ++i) {
        for (size_t o = 0; o < n_out; ++o) {
            double sum = bias != nullptr ? bias->values[o] : 0.0;
            for (size_t d = 0; d < n_in; ++d) {
                sum += x[i][d] * weight.values[in_out ? d * n_out + o : o * n_in + d];
            }
            y[i][o] = sum;
        }
    }
    return y;
}

Matrix rows_of(const F32Tensor& x) {
    Matrix rows;
    for (uint64_t i = 0; i < x.rows(); ++i) rows.emplace_back(x.row(i).begin(), x.row(i).end());
    return rows;
}

// Causal attention of head `h` over the columns that start at the given offsets; writes its columns of
// `context`.
void attend(const Matrix& q, size_t q_at, const Matrix& k, const Matrix& v, size_t kv_at, size_t dim,
            Matrix& context, Matrix* weights) {
    for (size_t i = 0; i < q.size(); ++i) {
        std::vector<double> w(q.size(), 0.0);
        double sum = 0.0;
        for (size_t j = 0; j <= i; ++j) {
            double score = 0.0;
            for (size_t d = 0; d < dim; ++d) score += q[i][q_at + d] * k[j][kv_at + d];
            sum += w[j] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        }
        for (size_t j = 0; j <= i; ++j) {
            w[j] /= sum;
            for (size_t d = 0; d < dim; ++d) context[i][q_at + d] += w[j] * v[j][kv_at + d];
        }
        if (weights != nullptr) weights->push_back(w);
    }
}

void expect_near(const F32Tensor& actual, const Matrix& expected, double tolerance, const char* what) {
    ASSERT_EQ(actual.rows(), expected.size()) << what;
    for (uint64_t i = 0; i < actual.rows(); ++i) {
        for (size_t j = 0; j < expected[i].size(); ++j) {
            ASSERT_NEAR(actual.row(i)[j], expected[i][j], tolerance)
                << what << " row " << i << " column " << j;
        }
    }
}

Result<Trace> trace_of(Block block, const F32Tensor& x, const TraceOptions& options) {
    const auto model = std::make_shared<Model>();
    model->blocks.push_back(std::move(block));
    ModelInput input;
    input.x = x;
    return Trace::open(model, std::move(input), options);
}

TEST(Gpt2Layer, runs_a_block_of_a_checkpoint_with_and_without_the_prefix) {
    TorchGenerator generator(3);
    const F32Tensor c_attn = random_tensor(generator, {12, 36}, 0.3f),
                    b_attn = random_tensor(generator, {36}, 0.1f);
    const F32Tensor c_proj = random_tensor(generator, {12, 12}, 0.3f),
                    b_proj = random_tensor(generator, {12}, 0.1f);
    const F32Tensor x = random_tensor(generator, {9, 12}, 1.0f);

    const Matrix qkv = product(rows_of(x), c_attn, true, &b_attn);
    Matrix context(9, std::vector<double>(12, 0.0)), weights;
    Matrix k(9), v(9);
    for (size_t i = 0; i < 9; ++i) {
        k[i].assign(qkv[i].begin() + 12, qkv[i].begin() + 24);
        v[i].assign(qkv[i].begin() + 24, qkv[i].end());
    }
    for (size_t h = 0; h < 3; ++h) attend(qkv, h * 4, k, v, h * 4, 4, context, &weights);
    const Matrix expected = product(context, c_proj, true, &b_proj);

    for (const char* prefix : {"", "transformer."}) {
        Checkpoint file("gpt2_test");
        const std::string block = std::string(prefix) + "h.5.attn.";
        file.add(block + "c_attn.weight", c_attn);
        file.add(block + "c_attn.bias", b_attn);
        file.add(block + "c_proj.weight", c_proj);
        file.add(block + "c_proj.bias", b_proj);
        const Result<Gpt2Attention> loaded = load_gpt2_attention(file.write(), 5, {.heads = 3});
        ASSERT_TRUE(loaded) << loaded.error().text;
        Result<Trace> trace = trace_of(gpt2_block(*loaded), x, {});
        ASSERT_TRUE(trace) << trace.error().text;
        expect_near(*trace->stage(StageId::output), expected, 1e-5, "output");
        EXPECT_EQ(trace->whole_stage(StageId::weights)->shape, (Shape{3, 9, 9}));
        expect_near(*trace->whole_stage(StageId::weights), weights, 1e-6, "weights");
    }
}

void rotate(Matrix& rows, size_t heads, size_t dim, double theta, size_t first_position) {
    for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t h = 0; h < heads; ++h) {
            for (size_t n = 0; n < dim / 2; ++n) {
                const double turn = std::pow(theta, -2.0 * static_cast<double>(n) / static_cast<double>(dim));
                const double angle = static_cast<double>(i + first_position) * turn;
                double &a = rows[i][h * dim + n], &b = rows[i][h * dim + n + dim / 2];
                const double a0 = a, b0 = b;
                a = a0 * std::cos(angle) - b0 * std::sin(angle);
                b = b0 * std::cos(angle) + a0 * std::sin(angle);
            }
        }
    }
}

TEST(LlamaLayer, runs_a_block_with_grouped_heads_and_rotary_positions) {
    TorchGenerator generator(4);
    const F32Tensor q_proj = random_tensor(generator, {24, 10}, 0.3f),
                    k_proj = random_tensor(generator, {12, 10}, 0.3f);
    const F32Tensor v_proj = random_tensor(generator, {12, 10}, 0.3f),
                    o_proj = random_tensor(generator, {10, 24}, 0.3f);
    const F32Tensor x = random_tensor(generator, {8, 10}, 1.0f);

    Matrix q = product(rows_of(x), q_proj, false, nullptr), k = product(rows_of(x), k_proj, false, nullptr);
    const Matrix v = product(rows_of(x), v_proj, false, nullptr);
    rotate(q, 4, 6, 500.0, 2);
    rotate(k, 2, 6, 500.0, 2);
    Matrix context(8, std::vector<double>(24, 0.0));
    for (size_t h = 0; h < 4; ++h) attend(q, h * 6, k, v, h / 2 * 6, 6, context, nullptr);
    const Matrix expected = product(context, o_proj, false, nullptr);

    Checkpoint file("llama_test");
    const std::string block = "model.layers.0.self_attn.";
    file.add(block + "q_proj.weight", q_proj);
    file.add(block + "k_proj.weight", k_proj);
    file.add(block + "v_proj.weight", v_proj);
    file.add(block + "o_proj.weight", o_proj);
    const Result<LlamaAttention> loaded =
        load_llama_attention(file.write(), 0, {.heads = 4, .kv_heads = 2, .rope_theta = 500.0});
    ASSERT_TRUE(loaded) << loaded.error().text;
    Result<Trace> trace = trace_of(llama_block(*loaded, 2), x, {});
    ASSERT_TRUE(trace) << trace.error().text;
    expect_near(*trace->stage(StageId::output), expected, 1e-5, "output");
}

// ---- at the shape of GPT-2 small

constexpr uint64_t kWidth = 768, kHeads = 12;

Block gpt2_small() {
    TorchGenerator generator(11);
    Gpt2Attention weights;
    weights.embed_dim = kWidth;
    weights.heads = kHeads;
    weights.head_dim = kWidth / kHeads;
    const auto weight = [&](const char* name, Shape shape) {
        F32Tensor tensor = random_tensor(generator, std::move(shape), 0.02f);
        return WeightTensor{name, std::move(tensor.shape), std::move(tensor.values)};
    };
    weights.c_attn_weight = weight("c_attn.weight", {kWidth, 3 * kWidth});
    weights.c_attn_bias = weight("c_attn.bias", {3 * kWidth});
    weights.c_proj_weight = weight("c_proj.weight", {kWidth, kWidth});
    weights.c_proj_bias = weight("c_proj.bias", {kWidth});
    return gpt2_block(std::move(weights));
}

F32Tensor run_block(Engine& engine, FoveaKernel kernel, const Block& layer, const F32Tensor& x,
                    RunReport& report) {
    DeviceRunner runner(engine, kernel);
    Result<Trace> trace = trace_of(layer, x, {Arithmetic::engine, &runner});
    Result<F32Tensor> output = trace ? trace->stage(StageId::output) : trace.error();
    report = runner.last_attention();
    if (!output) {
        ADD_FAILURE() << output.error().text;
        return {};
    }
    return std::move(*output);
}

double largest_error(std::span<const float> a, std::span<const float> b) {
    double largest = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        const double error = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        if (!(error <= largest)) largest = error;
    }
    return largest;
}

F32Tensor first_tokens(const F32Tensor& x, uint64_t tokens) {
    return F32Tensor({tokens, kWidth},
                     {x.values.begin(), x.values.begin() + static_cast<long>(tokens * kWidth)});
}

F32Tensor small_input() {
    TorchGenerator generator(12);
    return random_tensor(generator, {1024, kWidth}, 1.0f);
}

// The error rule: in each row at most twice the error of a plain float32 computation, and a small floor. A
// causal block's first rows do not depend on the tokens after them, so that the oracle need not run over all.
void expect_rule(const Block& layer, const F32Tensor& x, const F32Tensor& output, uint64_t tokens) {
    Result<Engine> exact_engine = Engine::open({.backend = BackendChoice::reference, .cpu_threads = 2});
    Result<Engine> plain_engine = Engine::open({.backend = BackendChoice::cpu, .cpu_threads = 2});
    ASSERT_TRUE(exact_engine && plain_engine);
    RunReport ignored;
    const F32Tensor first = first_tokens(x, tokens);
    const F32Tensor exact = run_block(*exact_engine, FOVEA_KERNEL_REFERENCE, layer, first, ignored);
    const F32Tensor plain = run_block(*plain_engine, FOVEA_KERNEL_PLAIN, layer, first, ignored);
    double worst = 0.0;
    for (uint64_t row = 0; row < tokens; ++row) {
        const double error = largest_error(output.row(row), exact.row(row));
        ASSERT_LE(error, 2.0 * largest_error(plain.row(row), exact.row(row)) + 2e-6) << "row " << row;
        worst = std::max(worst, error);
    }
    std::printf("largest error of %u rows against float64: %s\n", static_cast<unsigned>(tokens),
                format_number(worst, 3).c_str());
}

// Runs the block, says what it took, and looks that no matrix over all tokens was held.
F32Tensor run_and_report(Engine& engine, const Block& layer, const F32Tensor& x) {
    RunReport report;
    double seconds[2] = {};  // the first run also makes what a device keeps
    F32Tensor output;
    for (double& time : seconds) {
        const auto start = std::chrono::steady_clock::now();
        output = run_block(engine, FOVEA_KERNEL_AUTO, layer, x, report);
        time = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const uint64_t tokens = x.shape[0], matrices = kHeads * tokens * tokens * sizeof(float);
    EXPECT_LT(report.workspace_bytes, matrices / 2);
    std::printf(
        "%s, %s: 768 wide, 12 heads, %u tokens: %s the block, then %s, %s of it attention; workspace %s (the "
        "weights would take %s); the process %s at most\n",
        engine.device().name.c_str(), kernel_name(report.kernel), static_cast<unsigned>(tokens),
        format_seconds(seconds[0]).c_str(), format_seconds(seconds[1]).c_str(),
        format_seconds(report.seconds).c_str(), format_bytes(report.workspace_bytes).c_str(),
        format_bytes(matrices).c_str(), format_bytes(test::peak_resident_bytes()).c_str());
    return output;
}

TEST(Gpt2SmallOnCpu, a_block_of_1024_tokens) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::cpu, .cpu_threads = 2});
    ASSERT_TRUE(engine) << engine.error().text;
    const Block layer = gpt2_small();
    const F32Tensor x = small_input();
    expect_rule(layer, x, run_and_report(*engine, layer, x), 1024);
}

TEST(Gpt2SmallOnVulkan, a_block) {
    Result<Engine> engine = Engine::open({.backend = BackendChoice::vulkan});
    if (!engine && std::getenv("FOVEA_TEST_DRIVER") == nullptr) GTEST_SKIP() << engine.error().text;
    ASSERT_TRUE(engine) << engine.error().text;
    Result<Engine> cpu = Engine::open({.backend = BackendChoice::cpu, .cpu_threads = 2});
    ASSERT_TRUE(cpu) << cpu.error().text;
    const Block layer = gpt2_small();
    // SwiftShader takes over a minute for the whole length, and a quarter of it shows the same.
    const char* driver = std::getenv("FOVEA_TEST_DRIVER");
    const bool is_slow = driver != nullptr && std::string_view(driver) == "swiftshader";
    const F32Tensor x = first_tokens(small_input(), is_slow ? 256 : 1024);
    const F32Tensor output = run_and_report(*engine, layer, x);
    expect_rule(layer, x, output, 192);
    // The other rows against the CPU, whose own test holds all of them to the rule.
    RunReport ignored;
    EXPECT_LE(largest_error(output.values, run_block(*cpu, FOVEA_KERNEL_AUTO, layer, x, ignored).values),
              4e-6);
}

}  // namespace
}  // namespace fovea
