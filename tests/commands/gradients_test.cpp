// `fovea gradients`: what it reads and writes, in which shapes and types, and what it refuses.
#include "commands/command_run.hpp"

#include <cmath>

namespace fovea::test {
namespace {

constexpr uint64_t kGradientBatch = 2, kGradientHeads = 3, kRows = 5, kKeys = 7, kGradientDim = 4, kValue = 6;

Tensor wave(const char* name, std::vector<uint64_t> shape, float step) {
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    std::vector<float> values(count);
    for (size_t n = 0; n < values.size(); ++n) values[n] = std::sin(float(n + 1) * step);
    return make_tensor(name, std::move(shape), values).value();
}

TensorSet call() {
    TensorSet set;
    set.tensors.push_back(wave("q", {kGradientBatch, kGradientHeads, kRows, kGradientDim}, 0.7f));
    set.tensors.push_back(wave("k", {kGradientBatch, kGradientHeads, kKeys, kGradientDim}, 0.3f));
    set.tensors.push_back(wave("v", {kGradientBatch, kGradientHeads, kKeys, kValue}, 0.9f));
    set.tensors.push_back(wave("do", {kGradientBatch, kGradientHeads, kRows, kValue}, 0.4f));
    return set;
}

CommandRun gradients(const Scratch& scratch, const TensorSet& set, const std::string& options) {
    EXPECT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    return run_command(scratch, "gradients IN --out OUT " + options);
}

std::vector<float> numbers(const TensorSet& set, const char* name) {
    const Tensor* tensor = set.find(name);
    if (!tensor) {
        ADD_FAILURE() << "no " << name;
        return {};
    }
    return to_f32(*tensor).value();
}

TEST(Gradients, dq_dk_and_dv_have_the_shapes_of_q_k_and_v_and_every_backend_agrees) {
    std::vector<std::vector<float>> reference;
    for (const char* backend : {"--backend reference", "--backend cpu --kernel plain", "--backend cpu"}) {
        const Scratch scratch;
        const CommandRun run = gradients(scratch, call(), std::string(backend) + " --causal bottom-right");
        ASSERT_EQ(run.exit_code, 0) << run.error;
        const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
        ASSERT_TRUE(out);
        EXPECT_EQ(out->tensors.size(), 3u);
        EXPECT_EQ(out->find("dq")->shape,
                  (std::vector<uint64_t>{kGradientBatch, kGradientHeads, kRows, kGradientDim}));
        EXPECT_EQ(out->find("dk")->shape,
                  (std::vector<uint64_t>{kGradientBatch, kGradientHeads, kKeys, kGradientDim}));
        EXPECT_EQ(out->find("dv")->shape,
                  (std::vector<uint64_t>{kGradientBatch, kGradientHeads, kKeys, kValue}));
        std::vector<std::vector<float>> got;
        for (const char* name : {"dq", "dk", "dv"}) got.push_back(numbers(*out, name));
        if (reference.empty()) reference = got;
        for (size_t n = 0; n < 3; ++n)
            for (size_t x = 0; x < got[n].size(); ++x)
                ASSERT_NEAR(got[n][x], reference[n][x], 2e-6) << backend;
    }
}

// A step along the gradient changes the loss by its length squared, to first order.
TEST(Gradients, a_step_along_dq_changes_the_loss_as_it_says) {
    const auto loss = [](const TensorSet& set) {
        const Scratch scratch;
        EXPECT_TRUE(save_safetensors(scratch / "in.safetensors", set));
        const CommandRun run = run_command(scratch, "attend IN --out OUT --backend reference");
        EXPECT_EQ(run.exit_code, 0) << run.error;
        const std::vector<float> o = numbers(load_tensors(scratch / "out.safetensors").value(), "o"),
                                 upstream = numbers(set, "do");
        double sum = 0;
        for (size_t n = 0; n < o.size(); ++n) sum += double(o[n]) * upstream[n];
        return sum;
    };
    const Scratch scratch;
    ASSERT_EQ(gradients(scratch, call(), "--backend cpu").exit_code, 0);
    const std::vector<float> dq = numbers(load_tensors(scratch / "out.safetensors").value(), "dq");
    TensorSet moved = call();
    std::vector<float> q = numbers(moved, "q");
    double length = 0;
    for (size_t n = 0; n < q.size(); ++n) q[n] += 0.01f * dq[n], length += double(dq[n]) * dq[n];
    moved.tensors[0] = make_tensor("q", {kGradientBatch, kGradientHeads, kRows, kGradientDim}, q).value();
    EXPECT_NEAR(loss(moved) - loss(call()), 0.01 * length, 0.01 * length * 0.1);
}

TEST(Gradients, bias_slopes_and_sinks_have_theirs_on_request) {
    TensorSet set = call();
    set.tensors.push_back(wave("bias", {kGradientHeads, kRows, kKeys}, 0.2f));
    set.tensors.push_back(wave("sinks", {kGradientHeads}, 0.5f));
    set.tensors.push_back(wave("alibi", {kGradientHeads}, 0.1f));
    set.tensors.push_back(wave("dlse", {kGradientBatch, kGradientHeads, kRows}, 0.6f));
    const Scratch scratch;
    const CommandRun run =
        gradients(scratch, set, "--backend cpu --q-offset 2 --gradients dbias,dalibi,dsinks");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(run.output.find("not read"), run.output.npos) << run.output;
    const TensorSet out = load_tensors(scratch / "out.safetensors").value();
    EXPECT_EQ(out.tensors.size(), 6u);
    EXPECT_EQ(out.find("dbias")->shape, (std::vector<uint64_t>{kGradientHeads, kRows, kKeys}));
    EXPECT_EQ(out.find("dalibi")->shape, (std::vector<uint64_t>{kGradientHeads}));
    EXPECT_EQ(out.find("dsinks")->shape, (std::vector<uint64_t>{kGradientHeads}));
}

TEST(Gradients, what_is_wrong_is_said_in_one_line_and_nothing_is_written) {
    const struct {
        const char* what;
        TensorSet set;
        const char* options;
    } calls[] = {
        {"tensor 'do'",
         [] {
             TensorSet set = call();
             set.tensors.pop_back();
             return set;
         }(),
         ""},
        {"tensor 'do'",
         [] {
             TensorSet set = call();
             set.tensors.back() = wave("do", {kGradientBatch, kGradientHeads, kRows, kGradientDim}, 0.4f);
             return set;
         }(),
         ""},
        {"--gradients", call(), "--gradients dq"},
        {"--gradients has dbias, but the file has neither a bias", call(), "--gradients dbias"},
        {"--gradients has dalibi, but the file has no tensor alibi", call(), "--gradients dalibi"},
        {"--gradients has dsinks, but the file has no tensor sinks", call(), "--gradients dsinks"},
        {"kernel", call(), "--backend cpu --kernel staged"},
    };
    for (const auto& c : calls) {
        const Scratch scratch;
        const CommandRun run = gradients(scratch, c.set, c.options);
        EXPECT_EQ(run.exit_code, 2) << c.what;
        EXPECT_NE(run.error.find(c.what), std::string::npos) << run.error;
        EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
        EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    }
}

}  // namespace
}  // namespace fovea::test
