#include "scratch.hpp"

#include <fovea/half.hpp>

namespace fovea {
namespace {

using namespace test;

std::vector<float> ramp(uint64_t count, float start) {
    std::vector<float> values(count);
    for (size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<float>(i) * 0.25f;
    return values;
}

Tensor weight(std::string name, std::vector<uint64_t> shape, float start) {
    uint64_t count = 1;
    for (const auto dim : shape) count *= dim;
    return make_tensor(std::move(name), std::move(shape), ramp(count, start)).value();
}

/// Two layers of a GPT-2 with width 6, in Hugging Face's names.
TensorSet gpt2(const std::string& prefix) {
    TensorSet set;
    set.metadata = {{"format", "pt"}, {"n_head", "3"}};
    for (int layer = 0; layer < 2; ++layer) {
        const std::string block = prefix + "h." + std::to_string(layer) + ".attn.";
        const float start = static_cast<float>(layer) * 1000;
        set.tensors.push_back(
            weight(block + "bias", {1, 1, 4, 4}, -1));  // the causal mask of older checkpoints
        set.tensors.push_back(weight(block + "c_attn.weight", {6, 18}, start));
        set.tensors.push_back(weight(block + "c_attn.bias", {18}, start + 100));
        set.tensors.push_back(weight(block + "c_proj.weight", {6, 6}, start + 200));
        set.tensors.push_back(weight(block + "c_proj.bias", {6}, start + 300));
    }
    return set;
}

TensorSet llama(const std::string& prefix, bool biases = false) {
    TensorSet set;
    set.metadata = {{"num_attention_heads", "4"}, {"rope_theta", "10000.0"}};
    const std::string block = prefix + "layers.1.self_attn.";
    set.tensors = {weight(block + "q_proj.weight", {12, 8}, 1), weight(block + "k_proj.weight", {6, 8}, 2),
                   weight(block + "v_proj.weight", {6, 8}, 3), weight(block + "o_proj.weight", {8, 12}, 4)};
    if (biases)
        for (const auto& [name, rows] : std::vector<std::pair<std::string, uint64_t>>{
                 {"q_proj.bias", 12}, {"k_proj.bias", 6}, {"v_proj.bias", 6}, {"o_proj.bias", 8}})
            set.tensors.push_back(weight(block + name, {rows}, 7));
    return set;
}

Tensor& at(TensorSet& set, std::string_view name) {
    for (Tensor& tensor : set.tensors)
        if (tensor.name == name) return tensor;
    ADD_FAILURE() << name;
    return set.tensors[0];
}

TEST(Gpt2, LoadsWithAndWithoutThePrefix) {
    const Scratch scratch;
    for (const std::string prefix : {"", "transformer."}) {
        ASSERT_TRUE(save_safetensors(scratch / "model.safetensors", gpt2(prefix)));
        const auto block = load_gpt2_attention(scratch / "model.safetensors", 1);
        ASSERT_TRUE(block) << block.error().text;
        EXPECT_EQ(block->embed_dim, 6u);
        EXPECT_EQ(block->heads, 3u);
        EXPECT_EQ(block->head_dim, 2u);
        EXPECT_EQ(block->c_attn_weight.name, prefix + "h.1.attn.c_attn.weight");
        EXPECT_EQ(block->c_attn_weight.shape, (std::vector<uint64_t>{6, 18}));
        EXPECT_EQ(block->c_attn_weight.values, ramp(108, 1000));
        EXPECT_EQ(block->c_attn_bias.values, ramp(18, 1100));
        EXPECT_EQ(block->c_proj_weight.values, ramp(36, 1200));
        EXPECT_EQ(block->c_proj_bias.values, ramp(6, 1300));
    }
}

TEST(Gpt2, ReadsSixteenBitWeights) {
    TensorSet set = gpt2("");
    Tensor& bias = at(set, "h.0.attn.c_proj.bias");
    std::vector<uint16_t> halves, bfloats;
    for (const float value : ramp(6, 300)) halves.push_back(float_to_half(value));
    bias = tensor_of(bias.name, FOVEA_F16, {6}, halves);
    EXPECT_EQ(load_gpt2_attention(set, 0)->c_proj_bias.values, ramp(6, 300));
    bias = tensor_of<uint16_t>(bias.name, FOVEA_BF16, {6}, {0x3f80, 0, 0, 0, 0, 0xc000});
    EXPECT_EQ(load_gpt2_attention(set, 0)->c_proj_bias.values, (std::vector<float>{1, 0, 0, 0, 0, -2}));
}

TEST(Gpt2, HeadsComeFromTheCallOrTheMetadata) {
    TensorSet set = gpt2("transformer.");
    EXPECT_EQ(load_gpt2_attention(set, 0, {2})->heads, 2u);
    EXPECT_EQ(load_gpt2_attention(set, 0, {4}).error().text,
              "n_head is 4; it must divide the width of the model, 6");
    set.metadata.clear();
    EXPECT_EQ(load_gpt2_attention(set, 0).error().field, "n_head");
    EXPECT_EQ(load_gpt2_attention(set, 0).error().text,
              "n_head is missing, and the weights do not tell it; give it, or put it into config.json");
    set.metadata = {{"n_head", "three"}};
    EXPECT_EQ(load_gpt2_attention(set, 0).error().text,
              "metadata n_head is 'three'; it must be an integer of at least 1");
}

TEST(Gpt2, SaysWhichTensorIsWrong) {
    TensorSet set = gpt2("transformer.");
    EXPECT_EQ(load_gpt2_attention(set, 2).error().text,
              "tensor 'transformer.h.2.attn.c_attn.weight' is missing; the file has layers 0 to 1");
    EXPECT_EQ(load_gpt2_attention(llama("model."), 0, {3}).error().text,
              "tensor 'h.0.attn.c_attn.weight' is missing; the file has no tensor 'h.N.attn.*' at all");
    at(set, "transformer.h.0.attn.c_proj.weight") = weight("transformer.h.0.attn.c_proj.weight", {6, 7}, 0);
    EXPECT_EQ(load_gpt2_attention(set, 0).error().text,
              "tensor 'transformer.h.0.attn.c_proj.weight' has shape [6, 7]; it must have [6, 6]");
    at(set, "transformer.h.1.attn.c_attn.weight") = weight("transformer.h.1.attn.c_attn.weight", {18, 6}, 0);
    EXPECT_EQ(load_gpt2_attention(set, 1).error().text,
              "tensor 'transformer.h.1.attn.c_attn.weight' has shape [18, 6]; it must have [18, 54]");
    at(set, "transformer.h.0.attn.c_attn.bias") =
        tensor_of("transformer.h.0.attn.c_attn.bias", FOVEA_I8, {18}, std::vector<int8_t>(18));
    EXPECT_EQ(load_gpt2_attention(set, 0).error().text,
              "tensor 'transformer.h.0.attn.c_attn.bias' is i8; it must be f16, bf16, f32 or f64");
}

TEST(Llama, LoadsGroupedHeads) {
    const Scratch scratch;
    for (const std::string prefix : {"", "model."}) {
        ASSERT_TRUE(save_safetensors(scratch / "model.safetensors", llama(prefix)));
        const auto block = load_llama_attention(scratch / "model.safetensors", 1);
        ASSERT_TRUE(block) << block.error().text;
        EXPECT_EQ(block->embed_dim, 8u);
        EXPECT_EQ(block->heads, 4u);
        EXPECT_EQ(block->kv_heads, 2u);
        EXPECT_EQ(block->head_dim, 3u);
        EXPECT_EQ(block->rope_theta, 10000.0);
        EXPECT_EQ(block->q_proj.values, ramp(96, 1));
        EXPECT_EQ(block->k_proj.values, ramp(48, 2));
        EXPECT_EQ(block->v_proj.shape, (std::vector<uint64_t>{6, 8}));
        EXPECT_EQ(block->o_proj.shape, (std::vector<uint64_t>{8, 12}));
        EXPECT_FALSE(block->q_bias || block->k_bias || block->v_bias || block->o_bias);
    }
    const auto biased = load_llama_attention(llama("model.", true), 1);
    ASSERT_TRUE(biased) << biased.error().text;
    EXPECT_EQ(biased->q_bias.values, ramp(12, 7));
    EXPECT_EQ(biased->o_bias.values, ramp(8, 7));
}

TEST(Llama, NumbersOfTheCallWinAndMustFit) {
    const TensorSet set = llama("model.");
    const auto two = load_llama_attention(set, 1, {2, 1, 6, 5e5});
    ASSERT_TRUE(two) << two.error().text;
    EXPECT_EQ(two->head_dim, 6u);
    EXPECT_EQ(two->kv_heads, 1u);
    EXPECT_EQ(two->rope_theta, 5e5);
    const auto refusal = [&](const LlamaConfig& config) {
        return load_llama_attention(set, 1, config).error().text;
    };
    EXPECT_EQ(refusal({5}), "num_attention_heads is 5; it must divide the rows of q_proj.weight, 12");
    EXPECT_EQ(refusal({4, 3}),
              "num_key_value_heads is 3; it must be 2, as k_proj.weight has 6 rows and head_dim is 3");
    EXPECT_EQ(refusal({4, 0, 4}), "head_dim is 4; it must be 3, as q_proj.weight has 12 rows for 4 heads");
    EXPECT_EQ(refusal({3}), "head_dim is 4; it must divide the rows of k_proj.weight, 6");
    EXPECT_EQ(refusal({4, 0, 0, -1}), "rope_theta must be a finite number above 0");
}

TEST(Llama, RefusesToGuess) {
    TensorSet set = llama("model.");
    set.metadata = {{"num_attention_heads", "4"}};
    EXPECT_EQ(load_llama_attention(set, 1).error().field, "rope_theta");
    set.metadata = {{"rope_theta", "10000"}};
    EXPECT_EQ(load_llama_attention(set, 1).error().field, "num_attention_heads");
    set = llama("model.");
    set.tensors.push_back(weight("model.layers.1.self_attn.q_norm.weight", {3}, 1));
    EXPECT_EQ(
        load_llama_attention(set, 1).error().text,
        "tensor 'model.layers.1.self_attn.q_norm.weight': this is not a Llama block, it normalises q and k");
    EXPECT_EQ(load_llama_attention(llama("model."), 0).error().text,
              "tensor 'model.layers.0.self_attn.q_proj.weight' is missing; the file has layers 0 to 1");
}

class ModelConfig : public testing::Test {
  protected:
    /// Runs load_llama_attention on a checkpoint without metadata and with this config.json.
    Result<LlamaAttention> load(std::string_view config_json, const LlamaConfig& config = {}) const {
        TensorSet set = llama("model.");
        set.metadata.clear();
        EXPECT_TRUE(save_safetensors(scratch_ / "model.safetensors", set));
        write_file(scratch_ / "config.json", config_json);
        return load_llama_attention(scratch_ / "model.safetensors", 1, config);
    }
    std::string refusal(std::string_view config_json) const {
        const auto block = load(config_json);
        EXPECT_FALSE(block);
        return block ? std::string() : block.error().text.substr(block.error().text.find(": ") + 2);
    }
    Scratch scratch_;
};

TEST_F(ModelConfig, GivesTheNumbersThatTheWeightsDoNot) {
    for (
        const std::string_view json :
        {R"({"num_attention_heads": 4, "rope_theta": 5e5, "architectures": ["LlamaForCausalLM"], "x": {"y": [null, true]}})",
         R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "num_attention_heads": 4})",
         R"({"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": null, "rope_scaling": null, "rope_theta": 500000})"}) {
        const auto block = load(json);
        ASSERT_TRUE(block) << block.error().text;
        EXPECT_EQ(block->heads, 4u);
        EXPECT_EQ(block->kv_heads, 2u);
        EXPECT_EQ(block->rope_theta, 5e5);
    }
    const auto said_twice = load(R"({"num_attention_heads": 2, "rope_theta": 5e5})", {4, 0, 0, 1e4});
    EXPECT_EQ(said_twice->heads, 4u) << "the call wins";
    ASSERT_TRUE(save_safetensors(scratch_ / "gpt2.safetensors", [] {
        TensorSet set = gpt2("");
        set.metadata.clear();
        return set;
    }()));
    write_file(scratch_ / "config.json", R"({"n_head": 2})");
    EXPECT_EQ(load_gpt2_attention(scratch_ / "gpt2.safetensors", 0)->heads, 2u);
}

TEST_F(ModelConfig, RefusesAScaledRotaryEmbedding) {
    const std::string_view json =
        R"({"num_attention_heads": 4, "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})";
    EXPECT_NE(refusal(json).find("rope_scaling is 'llama3', a scaled rotary embedding"), std::string::npos);
    EXPECT_TRUE(load(json, {0, 0, 0, 5e5})) << "the caller takes the scaling upon itself";
}

TEST_F(ModelConfig, SaysWhatIsWrong) {
    EXPECT_EQ(refusal("[]"), "byte 0: the file must hold a JSON object");
    EXPECT_EQ(refusal("{\"a\": 1,}"), "byte 8: a key in quotes expected");
    EXPECT_EQ(refusal(R"({"num_attention_heads": "4"})"), "byte 24: num_attention_heads is not a number");
    EXPECT_EQ(refusal(R"({"head_dim": 4, "head_dim": 5})"),
              "byte 28: head_dim appears twice with different values");
    EXPECT_NE(refusal(R"({"num_attention_heads": 4.5, "rope_theta": 1})")
                  .find("metadata num_attention_heads is '4.5'"),
              std::string::npos);
    EXPECT_NE(refusal("{\"a\":" + std::string(40, '[')).find("nested too deeply"), std::string::npos);
    EXPECT_NE(
        refusal(std::string(1'000'001, ' ')).find("1000001 bytes, the limit for a configuration is 1000000"),
        std::string::npos);
}

}  // namespace
}  // namespace fovea
