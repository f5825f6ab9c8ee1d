// The runner of ONNX node tests: on cases made here, on broken ones, and on the ONNX project's own where they
// are.
#include "conformance/generated_cases.hpp"
#include "conformance/node_oracle.hpp"
#include "conformance/onnx_writer.hpp"
#include "conformance/options.hpp"
#include "onnx/node_runner.hpp"
#include "onnx/product_rounding.hpp"
#include "onnx/tensor_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace fovea::test {
namespace {

namespace fs = std::filesystem;
using Kind = onnx::CaseResult::Kind;

class Conformance : public testing::Test {
  protected:
    void SetUp() override {
        EngineOptions engine_options;
        engine_options.backend = options().backend;
        engine_options.validation = options().backend == BackendChoice::vulkan;
        Result<Engine> opened = Engine::open(engine_options);
        ASSERT_TRUE(opened) << opened.error().text;
        engine_.emplace(std::move(*opened));
    }
    void TearDown() override {
        if (!engine_) return;
        for (const std::string& message : engine_->take_messages())
            ADD_FAILURE() << "validation: " << message;
    }
    onnx::CaseResult run(const onnx::NodeCase& c) { return onnx::run_case(*engine_, c, options().choice); }
    onnx::CaseResult run_folder(const fs::path& folder) {
        const Result<onnx::NodeCase> c = onnx::load_case(folder);
        if (c) return run(*c);
        return {c.error().code == FOVEA_UNSUPPORTED ? Kind::skipped : Kind::failed,
                c.error().field + ": " + c.error().text};
    }
    // The device has no way to write float16, or the kernel that --kernel names has none for the case.
    static bool may_skip(const onnx::CaseResult& result) {
        const auto has = [&](const char* text) { return result.text.find(text) != std::string::npos; };
        return result.kind == Kind::skipped &&
               (has("FOVEA_FEATURE_F16_STORAGE") ||
                (options().choice.kernel != FOVEA_KERNEL_AUTO && has("cannot run this call on Vulkan: ")));
    }

    std::optional<Engine> engine_;
};

onnx::NodeCase case_named(const std::string& name) {
    for (onnx::NodeCase& c : generated_cases())
        if (c.name == name) return std::move(c);
    ADD_FAILURE() << "no case is called " << name;
    return {};
}

// The name is its own: several drivers' runs of one test share the machine's folder.
struct ScratchFolder {
    fs::path path = fs::path(testing::TempDir()) /
                    ("fovea-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
                     "-" + std::to_string(std::random_device()()));
    ScratchFolder() { clear(); }
    ~ScratchFolder() { clear(); }
    void clear() const {
        std::error_code error;
        fs::remove_all(path, error);
    }
};

TEST_F(Conformance, passes_every_generated_case) {
    const std::vector<onnx::NodeCase> cases = generated_cases();
    EXPECT_GT(cases.size(), 45u);
    size_t passed = 0;
    for (const onnx::NodeCase& c : cases) {
        const onnx::CaseResult result = run(c);
        if (may_skip(result)) {
            printf("skipped %s: %s\n", c.name.c_str(), result.text.c_str());
            continue;
        }
        EXPECT_EQ(result.kind, Kind::passed) << c.name << ": " << result.text;
        passed += result.kind == Kind::passed;
    }
    EXPECT_GT(passed, cases.size() / 2);
}

TEST_F(Conformance, reads_back_what_was_written) {
    const ScratchFolder scratch;
    const std::vector<onnx::NodeCase> cases = generated_cases();
    for (const onnx::NodeCase& c : cases) ASSERT_TRUE(write_case(scratch.path / c.name, c));
    const Result<std::vector<fs::path>> folders = onnx::find_cases(scratch.path);
    ASSERT_TRUE(folders) << folders.error().text;
    ASSERT_EQ(folders->size(), cases.size());
    for (const onnx::NodeCase& c : cases) {
        const Result<onnx::NodeCase> loaded = onnx::load_case(scratch.path / c.name);
        ASSERT_TRUE(loaded) << c.name << ": " << loaded.error().text;
        EXPECT_EQ(loaded->model.opset, c.model.opset);
        EXPECT_EQ(loaded->model.node.inputs, c.model.node.inputs);
        ASSERT_EQ(loaded->sets.size(), 1u);
        for (size_t n = 0; n < c.sets[0].inputs.size(); ++n) {
            ASSERT_EQ(loaded->sets[0].inputs[n].has_value(), c.sets[0].inputs[n].has_value())
                << c.name << " " << n;
            if (!c.sets[0].inputs[n]) continue;
            EXPECT_EQ(loaded->sets[0].inputs[n]->dims, c.sets[0].inputs[n]->dims);
            EXPECT_EQ(loaded->sets[0].inputs[n]->data, c.sets[0].inputs[n]->data);
        }
    }
}

TEST_F(Conformance, fails_where_an_expected_number_is_another) {
    onnx::NodeCase c = case_named("four_axes");
    onnx::Tensor& y = *c.sets[0].outputs[0];
    std::vector<double> numbers;
    for (uint64_t n = 0; n < y.elements(); ++n) numbers.push_back(onnx::value_at(y, n));
    numbers[37] *= 1.003;
    y = make_tensor(y.type, y.dims, numbers);
    const onnx::CaseResult result = run(c);
    EXPECT_EQ(result.kind, Kind::failed);
    EXPECT_NE(result.text.find("output 0: element 37 is"), std::string::npos) << result.text;
}

TEST(ProductError, is_that_of_the_rounded_factors_of_the_node) {
    const double p = (1 + 0x1p-11) * (1 + 0x1p-11) - 1;
    // |q| = 5 of the first row, |k| = 2; two heads side by side, and four axes of one.
    for (const bool flat : {false, true}) {
        onnx::Node node;
        node.op_type = "Attention";
        node.attributes = {{onnx::Attribute::Kind::real, "scale", -0.5f, 0}};
        std::vector<int64_t> dims{1, 2, 1, 2};
        if (flat) {
            dims = {1, 1, 4};
            node.attributes.push_back({onnx::Attribute::Kind::integer, "q_num_heads", 0, 2});
            node.attributes.push_back({onnx::Attribute::Kind::integer, "kv_num_heads", 0, 2});
        }
        const onnx::Tensors inputs{make_tensor(onnx::ElementType::float32, dims, {3, 4, 1, 1}),
                                   make_tensor(onnx::ElementType::float32, dims, {0, -2, 1, 1}),
                                   make_tensor(onnx::ElementType::float32, dims, {1, -7, 2, 3})};
        const std::array<double, 4> error = onnx::product_error(node, inputs);
        EXPECT_DOUBLE_EQ(error[3], 0.5 * p * 5 * 2);
        EXPECT_DOUBLE_EQ(error[0], ((1 + error[3]) * (1 + p) - 1) * 7);
        EXPECT_EQ(error[1], 0);
        EXPECT_EQ(error[2], 0);
    }
}

TEST(ProductError, an_allowance_counts_and_no_more_than_it) {
    const onnx::Tensor want = make_tensor(onnx::ElementType::float32, {1}, {1.0}),
                       near = make_tensor(onnx::ElementType::float32, {1}, {1.0105});
    EXPECT_NE(onnx::difference(near, want), "");
    EXPECT_EQ(onnx::difference(near, want, 0.01), "");
    EXPECT_NE(onnx::difference(near, want, 0.009), "");
}

TEST_F(Conformance, fails_where_shape_type_or_output_is_another) {
    onnx::NodeCase c = case_named("four_axes");
    std::swap(c.sets[0].outputs[0]->dims[0], c.sets[0].outputs[0]->dims[1]);
    EXPECT_EQ(run(c).kind, Kind::failed);
    c = case_named("four_axes");
    c.sets[0].outputs[0]->type = onnx::ElementType::int32;
    EXPECT_EQ(run(c).kind, Kind::failed);
    c = case_named("four_axes");
    c.model.node.outputs[3] = "more";
    c.model.node.outputs.emplace_back("even more");
    c.sets[0].outputs.push_back(c.sets[0].outputs[0]);
    EXPECT_EQ(run(c).kind, Kind::failed);
}

TEST_F(Conformance, skips_with_a_reason_what_the_engine_does_not_have) {
    onnx::NodeCase c = case_named("four_axes");
    c.model.node.op_type = "Softmax";
    onnx::CaseResult result = run(c);
    EXPECT_EQ(result.kind, Kind::skipped);
    EXPECT_NE(result.text.find("Softmax"), std::string::npos);
    c = case_named("four_axes");
    c.model.node.domain = "com.example";
    EXPECT_EQ(run(c).kind, Kind::skipped);
    c = case_named("four_axes");
    onnx::Tensor& q = *c.sets[0].inputs[0];
    q = make_tensor(onnx::ElementType::float64, q.dims, std::vector<double>(q.elements(), 1.0));
    result = run(c);
    EXPECT_EQ(result.kind, Kind::skipped);
    EXPECT_NE(result.text.find("float64"), std::string::npos);
    c = case_named("four_axes");
    c.model.node.attributes.push_back({onnx::Attribute::Kind::integer, "of_the_future", 0, 1});
    result = run(c);
    EXPECT_EQ(result.kind, Kind::skipped);
    EXPECT_NE(result.text.find("of_the_future"), std::string::npos);
}

TEST_F(Conformance, refuses_inputs_that_do_not_fit) {
    const auto set_dims = [](size_t input, std::vector<int64_t> dims) {
        return [=](onnx::NodeCase& c) { c.sets[0].inputs[input]->dims = dims; };
    };
    const struct {
        const char* name;
        std::function<void(onnx::NodeCase&)> edit;
        const char* field;
    } kBad[] = {
        {"four_axes", [](onnx::NodeCase& c) { c.sets[0].inputs[2].reset(); }, "inputs"},
        {"four_axes", set_dims(0, {2, 4, 2, 16}), "K"},
        {"four_axes", set_dims(0, {2, 4, 32}), "Q"},
        {"four_axes", set_dims(0, {1, 2, 4, 4, 8}), "Q"},
        {"three_axes", [](onnx::NodeCase& c) { c.model.node.attributes.clear(); }, "q_num_heads"},
        {"three_axes", [](onnx::NodeCase& c) { c.model.node.attributes[0].integer = 5; }, "q_num_heads"},
        {"mask_rank_2", set_dims(3, {6, 4}), "attn_mask"},
        {"mask_rank_2", set_dims(3, {1, 1, 1, 4, 6}), "attn_mask"},
        {"mask_shorter_than_keys", [](onnx::NodeCase& c) { c.model.opset = 23; }, "attn_mask"},
        {"causal_behind_past", [](onnx::NodeCase& c) { c.sets[0].inputs[5].reset(); }, "past_key"},
        {"causal_behind_past", set_dims(4, {2, 5, 2, 8}), "past_key"},
        {"lengths_alone", set_dims(6, {1, 2}), "nonpad_kv_seqlen"},
        {"lengths_alone",
         [](onnx::NodeCase& c) {
             c.sets[0].inputs[6] = make_tensor(onnx::ElementType::int64, {2}, {1, 7});
         },
         "nonpad_kv_seqlen"},
        {"lengths_alone",
         [](onnx::NodeCase& c) {
             c.sets[0].inputs[6] = make_tensor(onnx::ElementType::int64, {2}, {-1, 6});
         },
         "nonpad_kv_seqlen"},
        {"scale", [](onnx::NodeCase& c) { c.model.node.attributes[0].real = NAN; }, "scale"},
        {"scale", [](onnx::NodeCase& c) { c.model.node.attributes[0].kind = onnx::Attribute::Kind::integer; },
         "scale"},
        {"scores_mode_1", [](onnx::NodeCase& c) { c.model.node.attributes[0].integer = 4; },
         "qk_matmul_output_mode"},
        {"rotary_halves",
         [](onnx::NodeCase& c) {
             c.sets[0].inputs[3] = make_tensor(onnx::ElementType::int64, {2, 3}, {0, 1, 2, 3, 4, 50});
         },
         "position_ids"},
        {"rotary_halves", set_dims(1, {100, 2}), "sin_cache"},
        {"rotary_partial", set_dims(0, {2, 4, 6, 4}), "cos_cache"},
        {"rotary_three_axes", [](onnx::NodeCase& c) { c.model.node.attributes.clear(); }, "num_heads"},
    };
    for (const auto& bad : kBad) {
        onnx::NodeCase c = case_named(bad.name);
        bad.edit(c);
        const onnx::CaseResult result = run(c);
        EXPECT_EQ(result.kind, Kind::failed) << bad.name;
        EXPECT_EQ(result.text.rfind(std::string(bad.field) + ": ", 0), 0u)
            << bad.name << " should name " << bad.field << ": " << result.text;
    }
}

// The cases that the ONNX project publishes are not part of this repository.
TEST_F(Conformance, passes_the_published_cases) {
    if (options().shared_cases.empty())
        GTEST_SKIP()
            << "set FOVEA_ONNX_CASES (environment or CMake) to folders of ONNX node tests, separated by ':'";
    std::string rest = options().shared_cases;
    while (!rest.empty()) {
        const size_t colon = std::min(rest.find(':'), rest.size());
        const std::string folder = rest.substr(0, colon);
        rest.erase(0, colon + 1);
        const Result<std::vector<fs::path>> folders = onnx::find_cases(folder);
        ASSERT_TRUE(folders) << folders.error().field << ": " << folders.error().text;
        std::map<Kind, int> count;
        for (const fs::path& path : *folders) {
            const onnx::CaseResult result = run_folder(path);
            EXPECT_NE(result.kind, Kind::failed) << path << ": " << result.text;
            if (result.kind == Kind::skipped)
                printf("skipped %s: %s\n", path.string().c_str(), result.text.c_str());
            ++count[result.kind];
        }
        printf("%s: %d passed, %d failed, %d skipped\n", folder.c_str(), count[Kind::passed],
               count[Kind::failed], count[Kind::skipped]);
    }
}

}  // namespace
}  // namespace fovea::test
