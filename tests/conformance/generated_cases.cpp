#include "conformance/generated_cases.hpp"

#include "conformance/node_oracle.hpp"
#include "support/random.hpp"

#include <cmath>
#include <functional>

namespace fovea::test {
namespace {

using onnx::ElementType;
using onnx::Tensor;
using Kind = onnx::Attribute::Kind;

constexpr double kInf = INFINITY;

onnx::Attribute integer(const char* name, int64_t value) { return {Kind::integer, name, 0, value}; }
onnx::Attribute real(const char* name, float value) { return {Kind::real, name, value, 0}; }

Tensor random_tensor(uint64_t seed, ElementType type, std::vector<int64_t> dims) {
    uint64_t count = 1;
    for (const int64_t dim : dims) count *= uint64_t(dim);
    std::vector<double> numbers;
    for (uint64_t n = 0; n < count; ++n) numbers.push_back(bell(hash(seed, n)));
    // Through the type itself, so that the oracle computes with what the file holds.
    return make_tensor(type, std::move(dims), numbers);
}

Tensor tensor_of(ElementType type, std::vector<int64_t> dims, const std::function<double(uint64_t)>& number) {
    uint64_t count = 1;
    for (const int64_t dim : dims) count *= uint64_t(dim);
    std::vector<double> numbers;
    for (uint64_t n = 0; n < count; ++n) numbers.push_back(number(n));
    return make_tensor(type, std::move(dims), numbers);
}

// B=2, Hq=4, Hkv=2, S=4, T=6, D=8, Dv=10 unless said otherwise; inputs by place.
struct AttentionCase {
    std::string name;
    int64_t opset = 24;
    ElementType type = ElementType::float32;
    std::vector<onnx::Attribute> attributes;
    bool flat = false;
    int64_t past = 0;
    bool show_present = false, show_scores = false;
    std::optional<Tensor> mask = {}, lengths = {};
};

onnx::NodeCase build(const AttentionCase& c, uint64_t seed) {
    onnx::NodeCase result;
    result.name = c.name;
    result.model.opset = c.opset;
    onnx::Node& node = result.model.node;
    node.op_type = "Attention";
    node.attributes = c.attributes;
    onnx::Tensors inputs(7);
    if (c.flat) {
        node.attributes.push_back(integer("q_num_heads", 4));
        node.attributes.push_back(integer("kv_num_heads", 2));
        inputs[0] = random_tensor(seed, c.type, {2, 4, 32});
        inputs[1] = random_tensor(seed + 1, c.type, {2, 6, 16});
        inputs[2] = random_tensor(seed + 2, c.type, {2, 6, 20});
    } else {
        inputs[0] = random_tensor(seed, c.type, {2, 4, 4, 8});
        inputs[1] = random_tensor(seed + 1, c.type, {2, 2, 6, 8});
        inputs[2] = random_tensor(seed + 2, c.type, {2, 2, 6, 10});
    }
    inputs[3] = c.mask;
    if (c.past) {
        inputs[4] = random_tensor(seed + 4, c.type, {2, 2, c.past, 8});
        inputs[5] = random_tensor(seed + 5, c.type, {2, 2, c.past, 10});
    }
    inputs[6] = c.lengths;
    const char* const in_names[] = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};
    for (size_t n = 0; n < 7; ++n) node.inputs.push_back(inputs[n] ? in_names[n] : "");
    node.outputs = {"Y", c.show_present ? "present_key" : "", c.show_present ? "present_value" : "",
                    c.show_scores ? "qk_matmul_output" : ""};
    onnx::Tensors outputs = expect_attention(result.model, inputs);
    result.sets.push_back({"test_data_set_0", std::move(inputs), std::move(outputs)});
    return result;
}

Tensor boolean_mask(uint64_t seed, std::vector<int64_t> dims) {
    return tensor_of(ElementType::boolean, std::move(dims),
                     [=](uint64_t n) { return unit(hash(seed, n)) < 0.7; });
}
Tensor float_mask(uint64_t seed, std::vector<int64_t> dims, ElementType type = ElementType::float32) {
    return tensor_of(type, std::move(dims), [=](uint64_t n) {
        const uint64_t bits = hash(seed, n);
        return bits % 5 == 0 ? -kInf : double(bell(bits));
    });
}
Tensor lengths_of(int64_t first, int64_t second) {
    return make_tensor(ElementType::int64, {2}, {double(first), double(second)});
}

void add_masks(std::vector<AttentionCase>& cases) {
    cases.push_back(
        {.name = "mask_rank_0", .mask = tensor_of(ElementType::float32, {}, [](uint64_t) { return 2.0; })});
    cases.push_back({.name = "mask_rank_1_boolean", .mask = boolean_mask(21, {6})});
    cases.push_back({.name = "mask_rank_2", .opset = 23, .mask = float_mask(22, {4, 6})});
    cases.push_back({.name = "mask_rank_3_counts_query_heads", .mask = boolean_mask(23, {4, 4, 6})});
    cases.push_back({.name = "mask_rank_4", .mask = float_mask(24, {2, 4, 4, 6})});
    cases.push_back({.name = "mask_of_one_column", .mask = float_mask(25, {2, 1, 4, 1})});
    cases.push_back({.name = "mask_of_one_row_causal",
                     .attributes = {integer("is_causal", 1)},
                     .mask = float_mask(26, {1, 6})});
    cases.push_back({.name = "mask_shorter_than_keys", .mask = float_mask(27, {4, 4})});
    cases.push_back(
        {.name = "mask_of_integers",
         .mask = tensor_of(ElementType::int32, {4, 6}, [](uint64_t n) { return double(n % 3); })});
    cases.push_back({.name = "mask_of_float64", .mask = float_mask(28, {4, 6}, ElementType::float64)});
    cases.push_back({.name = "mask_hides_whole_rows",
                     .show_scores = true,
                     .mask = tensor_of(ElementType::boolean, {4, 6}, [](uint64_t n) { return n / 6 % 2; })});
}

void add_scores(std::vector<AttentionCase>& cases) {
    for (const int64_t mode : {0, 1, 2, 3})
        cases.push_back({.name = "scores_mode_" + std::to_string(mode),
                         .attributes = {integer("qk_matmul_output_mode", mode), real("softcap", 1.5f),
                                        integer("is_causal", 1)},
                         .show_scores = true,
                         .mask = float_mask(31, {4, 6})});
    // The scores of keys past the valid length are shown all the same.
    for (const int64_t mode : {0, 1, 2, 3})
        cases.push_back({.name = "scores_with_lengths_mode_" + std::to_string(mode),
                         .attributes = {integer("qk_matmul_output_mode", mode), real("softcap", 1.5f)},
                         .show_scores = true,
                         .lengths = lengths_of(3, 5)});
    cases.push_back({.name = "scores_float16_softmax_float32",
                     .type = ElementType::float16,
                     .attributes = {integer("qk_matmul_output_mode", 3), integer("softmax_precision", 1)},
                     .show_scores = true});
}

void add_positions(std::vector<AttentionCase>& cases) {
    const onnx::Attribute causal = integer("is_causal", 1);
    cases.push_back({.name = "causal_top_left", .opset = 23, .attributes = {causal}});
    cases.push_back({.name = "causal_behind_past", .attributes = {causal}, .past = 5, .show_present = true});
    cases.push_back({.name = "causal_with_lengths", .attributes = {causal}, .lengths = lengths_of(6, 4)});
    cases.push_back(
        {.name = "causal_with_fewer_keys_than_queries", .attributes = {causal}, .lengths = lengths_of(2, 0)});
    cases.push_back({.name = "lengths_alone", .lengths = lengths_of(1, 6)});
    cases.push_back({.name = "lengths_and_short_mask",
                     .attributes = {causal},
                     .mask = boolean_mask(41, {2, 1, 4, 5}),
                     .lengths = lengths_of(3, 5)});
    cases.push_back({.name = "window_both",
                     .opset = 25,
                     .attributes = {integer("left_window_size", 1), integer("right_window_size", 2)}});
    cases.push_back({.name = "window_left_causal_past",
                     .opset = 25,
                     .attributes = {causal, integer("left_window_size", 2)},
                     .past = 7});
    cases.push_back({.name = "window_zero",
                     .opset = 25,
                     .attributes = {integer("left_window_size", 0), integer("right_window_size", 0)}});
    cases.push_back({.name = "window_with_lengths",
                     .opset = 25,
                     .attributes = {integer("left_window_size", 1)},
                     .lengths = lengths_of(6, 3)});
}

void add_forms(std::vector<AttentionCase>& cases) {
    cases.push_back({.name = "four_axes", .opset = 23});
    cases.push_back({.name = "three_axes", .opset = 23, .flat = true});
    cases.push_back({.name = "three_axes_causal_scores",
                     .attributes = {integer("is_causal", 1)},
                     .flat = true,
                     .show_scores = true});
    cases.push_back({.name = "three_axes_past", .flat = true, .past = 3, .show_present = true});
    cases.push_back({.name = "three_axes_lengths",
                     .attributes = {integer("is_causal", 1)},
                     .flat = true,
                     .lengths = lengths_of(5, 2)});
    cases.push_back({.name = "present_without_past", .show_present = true});
    cases.push_back({.name = "three_axes_present_without_past", .flat = true, .show_present = true});
    for (const auto& [type, name] :
         {std::pair{ElementType::float16, "float16"}, {ElementType::bfloat16, "bfloat16"}}) {
        cases.push_back({.name = std::string(name) + "_past", .type = type, .past = 2, .show_present = true});
        cases.push_back({.name = std::string(name) + "_mask",
                         .type = type,
                         .attributes = {real("softcap", 2.0f)},
                         .mask = float_mask(51, {4, 6}, type)});
    }
    cases.push_back({.name = "scale", .attributes = {real("scale", 0.01f)}});
    cases.push_back({.name = "scale_of_zero", .attributes = {real("scale", 0.0f)}, .show_scores = true});
    cases.push_back({.name = "softcap_of_negative_sign", .attributes = {real("softcap", -2.0f)}});
}

struct RotaryCase {
    const char* name;
    std::vector<int64_t> x_dims;
    int64_t half;
    bool positions;
    std::vector<onnx::Attribute> attributes = {};
    ElementType type = ElementType::float32;
};

// Batch 2, length 3.
onnx::NodeCase build(const RotaryCase& c, uint64_t seed) {
    onnx::NodeCase result;
    result.name = c.name;
    result.model.opset = 23;
    onnx::Node& node = result.model.node;
    node.op_type = "RotaryEmbedding";
    node.attributes = c.attributes;
    onnx::Tensors inputs(c.positions ? 4 : 3);
    const std::vector<int64_t> table =
        c.positions ? std::vector<int64_t>{50, c.half} : std::vector<int64_t>{2, 3, c.half};
    inputs[0] = random_tensor(seed, c.type, c.x_dims);
    inputs[1] = random_tensor(seed + 1, c.type, table);
    inputs[2] = random_tensor(seed + 2, c.type, table);
    if (c.positions) inputs[3] = make_tensor(ElementType::int64, {2, 3}, {0, 49, 7, 31, 1, 1});
    node.inputs = {"input", "cos", "sin"};
    if (c.positions) node.inputs.push_back("ids");
    node.outputs = {"output"};
    onnx::Tensors outputs = expect_rotary(result.model, inputs);
    result.sets.push_back({"test_data_set_0", std::move(inputs), std::move(outputs)});
    return result;
}

}  // namespace

std::vector<onnx::NodeCase> generated_cases() {
    std::vector<AttentionCase> attention;
    add_forms(attention);
    add_positions(attention);
    add_masks(attention);
    add_scores(attention);
    const RotaryCase rotary[] = {
        {"rotary_halves", {2, 4, 3, 8}, 4, true},
        {"rotary_three_axes", {2, 3, 32}, 4, true, {integer("num_heads", 4)}},
        {"rotary_partial", {2, 4, 3, 8}, 2, false, {integer("rotary_embedding_dim", 4)}},
        {"rotary_interleaved_partial",
         {2, 4, 3, 8},
         2,
         true,
         {integer("interleaved", 1), integer("rotary_embedding_dim", 4)}},
        {"rotary_interleaved_float16",
         {2, 4, 3, 8},
         4,
         true,
         {integer("interleaved", 1)},
         ElementType::float16},
    };
    std::vector<onnx::NodeCase> cases;
    for (const AttentionCase& c : attention) cases.push_back(build(c, 1000 + 10 * cases.size()));
    for (const RotaryCase& c : rotary) cases.push_back(build(c, 1000 + 10 * cases.size()));
    return cases;
}

}  // namespace fovea::test
