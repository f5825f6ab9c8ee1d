// The format that scripts/export_attention.py writes and docs/reference/file-formats.md describes: a file
// made here must pass the script's own check, which shares no code with the writer, and one that breaks a
// rule must not.
#include <cmath>
#include <cstdlib>

#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

constexpr uint64_t kHeads = 4, kKvHeads = 2, kTokens = 5, kDim = 3;

std::vector<float> wave(uint64_t count, float step) {
    std::vector<float> values(count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * static_cast<float>(i));
    return values;
}

/// softmax(q k / 2), causal, query head h using key head h / 2; plain loops in double.
std::vector<float> causal_weights(const std::vector<float>& q, const std::vector<float>& k) {
    std::vector<float> weights(kHeads * kTokens * kTokens);
    for (uint64_t h = 0; h < kHeads; ++h)
        for (uint64_t i = 0; i < kTokens; ++i) {
            double row[kTokens] = {}, total = 0;
            for (uint64_t j = 0; j <= i; ++j) {
                double dot = 0;
                for (uint64_t d = 0; d < kDim; ++d)
                    dot += double(q[(h * kTokens + i) * kDim + d]) * k[(h / 2 * kTokens + j) * kDim + d];
                total += row[j] = std::exp(dot / 2);
            }
            for (uint64_t j = 0; j < kTokens; ++j)
                weights[(h * kTokens + i) * kTokens + j] = static_cast<float>(row[j] / total);
        }
    return weights;
}

TensorSet exported() {
    const auto q = wave(kHeads * kTokens * kDim, 0.7f), k = wave(kKvHeads * kTokens * kDim, 0.3f);
    TensorSet set;
    set.tensors = {make_tensor("q", {1, kHeads, kTokens, kDim}, q).value(),
                   make_tensor("k", {1, kKvHeads, kTokens, kDim}, k).value(),
                   make_tensor("v", {1, kKvHeads, kTokens, kDim}, k).value(),
                   make_tensor("weights", {1, kHeads, kTokens, kTokens}, causal_weights(q, k)).value(),
                   tensor_of<int64_t>("tokens", FOVEA_I64, {kTokens}, {464, 3797, 3332, 319, 2603})};
    set.metadata = {{"fovea", "attention"},
                    {"version", "1"},
                    {"model", "made here"},
                    {"layer", "0"},
                    {"layout", "bhld"},
                    {"scale", "0.5"},
                    {"causal", "top-left"},
                    {"tokens", "[\"The\", \" cat\", \" sat\", \" \\\"on\\\"\", \" caf\xc3\xa9\"]"}};
    return set;
}

/// Exit status of the script's check, and what it printed.
std::pair<int, std::string> run_check(const Scratch& scratch, const TensorSet& set) {
    const auto file = scratch / "layer.safetensors", output = scratch / "output.txt";
    EXPECT_TRUE(save_safetensors(file, set));
    const std::string command = std::string(FOVEA_PYTHON) + " -B \"" + FOVEA_EXPORT_SCRIPT + "\" --check \"" +
                                file.string() + "\" > \"" + output.string() + "\" 2>&1";
    const int status = std::system(command.c_str());
    return {status, read_file(output)};
}

TEST(ExportFormat, AFileMadeHerePassesTheScriptsCheck) {
    const Scratch scratch;
    const auto [status, output] = run_check(scratch, exported());
    EXPECT_EQ(status, 0) << output;
    EXPECT_NE(output.find("made here, layer 0, q [1, 4, 5, 3]"), std::string::npos) << output;
    const auto loaded = load_tensors(scratch / "layer.safetensors");
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->find("weights")->shape, (std::vector<uint64_t>{1, kHeads, kTokens, kTokens}));
    EXPECT_EQ(*loaded->find_metadata("causal"), "top-left");
}

TEST(ExportFormat, EveryLayerOfAFileIsChecked) {
    const Scratch scratch;
    TensorSet all = exported();
    all.tensors.clear();
    for (const char* layer : {"layers.0.", "layers.1."})
        for (Tensor tensor : exported().tensors) {
            if (tensor.name != "tokens") tensor.name = layer + tensor.name;
            if (tensor.name != "tokens" || all.tensors.empty()) all.tensors.push_back(tensor);
        }
    all.metadata[3].second = "all";
    EXPECT_EQ(all.metadata[3].first, "layer");
    const auto [status, output] = run_check(scratch, all);
    EXPECT_EQ(status, 0) << output;
    std::erase_if(all.tensors, [](const Tensor& tensor) { return tensor.name == "layers.1.v"; });
    const auto [refused, reason] = run_check(scratch, all);
    EXPECT_NE(refused, 0);
    EXPECT_NE(reason.find("tensor 'layers.1.v' is missing"), std::string::npos) << reason;
}

TEST(ExportFormat, TheScriptsCheckFindsABrokenRule) {
    const Scratch scratch;
    const auto refusal = [&](const TensorSet& set) {
        const auto [status, output] = run_check(scratch, set);
        EXPECT_NE(status, 0);
        EXPECT_EQ(output.find("Traceback"), std::string::npos) << output;
        return output;
    };
    const auto contains = [](const std::string& text, std::string_view part) {
        return text.find(part) != std::string::npos;
    };
    TensorSet set = exported();
    set.tensors.erase(set.tensors.begin() + 1);
    EXPECT_PRED2(contains, refusal(set), "tensor 'k' is missing");
    set = exported();
    set.metadata[7].second = "[\"one\"]";
    EXPECT_PRED2(contains, refusal(set), "1 tokens in the metadata for 5 keys");
    set = exported();
    set.tensors[3] = make_tensor("weights", {1, kHeads, kTokens, kTokens}, wave(100, 0.1f)).value();
    EXPECT_PRED2(contains, refusal(set), "row 0 of weights sums to");
    set = exported();
    set.metadata.erase(set.metadata.begin());
    EXPECT_PRED2(contains, refusal(set), "metadata 'fovea' is not 'attention'");
}

}  // namespace
}  // namespace fovea
