// The properties of a model in its files: small models with other configurations and keys.
#include "support/gguf_edit.hpp"
#include "support/scratch.hpp"

#include <fovea/model/checkpoint_model.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include "files/held_file.hpp"
#include "model/checkpoint/families.hpp"
#include "model/checkpoint/named_tokens.hpp"

namespace fovea {
namespace {

namespace fs = std::filesystem;

fs::path family(const char* name) { return fs::path(FOVEA_FAMILIES) / name; }

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A copy of a family's folder with members put in front of config.json's, of which the first of a name
// counts.
class Folder {
  public:
    explicit Folder(const char* name) : from_(family(name)) {
        fs::copy_file(from_ / "model.safetensors", path() / "model.safetensors");
        configure("");
    }
    const fs::path& path() const { return scratch_.folder(); }
    void configure(const std::string& members) const {
        const std::string valid = text_of(from_ / "config.json");
        write("config.json",
              "{" + members + (members.empty() ? "" : ",") + valid.substr(valid.find('{') + 1));
    }
    void write(const char* name, std::string_view text) const {
        std::ofstream(path() / name, std::ios::binary) << text;
    }
    Result<CheckpointModel> open() const { return CheckpointModel::open(path()); }

  private:
    const test::Scratch scratch_;
    fs::path from_;
};

using Ids = std::vector<uint32_t>;

TEST(EndTokens, are_those_of_both_configurations) {
    const Folder folder("llama2");
    struct Case {
        const char *config, *generation;
        Ids expected;
    };
    for (const Case& one :
         {Case{"\"eos_token_id\": 2", "", {2}},
          {"\"eos_token_id\": [7, 2, 7]", "", {2, 7}},
          {"\"eos_token_id\": null", "", {}},
          {"\"eos_token_id\": -1", "", {}},
          {"\"eos_token_id\": 2", "{\"eos_token_id\": [9, 4294967295]}", {2, 9, 4294967295u}},
          {"\"eos_token_id\": null", "{\"eos_token_id\": 5}", {5}}}) {
        folder.configure(one.config);
        if (*one.generation)
            folder.write("generation_config.json", one.generation);
        else
            fs::remove(folder.path() / "generation_config.json");
        const Result<CheckpointModel> model = folder.open();
        ASSERT_TRUE(model) << model.error().text;
        EXPECT_EQ(model->config().end_tokens, one.expected) << one.config << one.generation;
    }
    for (const char* wrong : {"\"2\"", "[\"2\"]", "{}", "true", "[2, null]"}) {
        folder.configure(std::string("\"eos_token_id\": ") + wrong);
        const Result<CheckpointModel> model = folder.open();
        ASSERT_FALSE(model) << wrong;
        EXPECT_EQ(model.error().field, "eos_token_id");
    }
}

TEST(EndTokens, of_gguf_are_those_of_its_keys_and_of_their_texts) {
    const test::Scratch scratch;
    const fs::path path = scratch.folder() / "model.gguf";
    test::GgufEdit edit(family("llama_q8") / "model.gguf");
    for (const auto& [key, value] : std::map(edit.keys))
        if (key.starts_with("tokenizer.")) edit.keys.erase(key);
    const auto ends = [&] {
        edit.write(path);
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        EXPECT_TRUE(model) << model.error().text;
        return model ? model->config().end_tokens : Ids();
    };
    EXPECT_EQ(ends(), Ids{});
    edit.set("tokenizer.ggml.model", "llama");  // the default if no key names one
    EXPECT_EQ(ends(), Ids{2});
    edit.set("tokenizer.ggml.tokens",
             std::vector<std::string>{"a", "<|im_end|>", "</s>", "b", "<|end|>", "c"});
    edit.set("tokenizer.ggml.eos_token_id", 3);
    edit.set("tokenizer.ggml.eot_token_id", 0);
    EXPECT_EQ(ends(), (Ids{0, 1, 2, 3, 4}));
    edit.set("tokenizer.ggml.eom_token_id", 5);
    edit.set("tokenizer.ggml.tokens",
             std::vector<std::string>{"<|return|>", "<|call|>", "b", "<|fim_pad|>", "<|end|>", "c"});
    edit.set("tokenizer.ggml.eos_token_id", 0);
    EXPECT_EQ(ends(), (Ids{0, 1, 3, 5}));  // "<|end|>" is not an end token in addition to the two
    for (const NamedTokens& named : kNamedTokens)
        for (const std::string_view text : named.texts) {
            edit.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", std::string(text)});
            const std::string key = "tokenizer.ggml." + std::string(named.key);
            for (const int id : {1, 9}) {  // one that the vocabulary has, and one that it lacks
                if (!named.key.empty()) edit.set(key, id);
                const bool by_key = !named.key.empty() && id == 1, by_text = named.ends && !by_key;
                EXPECT_EQ(ends(), named.ends && by_key ? (Ids{0, 1})
                                  : by_text            ? (Ids{0, 2})
                                                       : (Ids{0}))
                    << text;
            }
            edit.keys.erase(key);
        }
}

TEST(GenerationSettings, that_choose_other_tokens_are_told) {
    const Folder folder("llama2");
    folder.write("generation_config.json",
                 R"({"bos_token_id": 1, "transformers_version": "5", "temperature": 0.6, "top_k": 50,
                     "repetition_penalty": 1.1, "length_penalty": 1.0, "bad_words_ids": [[1]],
                     "suppress_tokens": []})");
    Result<CheckpointModel> model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->config().generation_settings,
              (std::vector<std::string>{"repetition_penalty 1.1", "bad_words_ids [...]"}));
    folder.write("generation_config.json", R"({"do_sample": true, "temperature": 0.6, "top_k": 50})");
    model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->config().generation_settings,
              (std::vector<std::string>{"do_sample true", "temperature 0.6", "top_k 50"}));
    folder.write("generation_config.json", "{");
    EXPECT_FALSE(folder.open());
}

// ---- keys of GGUF ----

class GgufModel {
  public:
    explicit GgufModel(const char* name) : edit(family(name) / "model.gguf") {}
    Result<CheckpointModel> open() const {
        edit.write(path());
        return CheckpointModel::open(path());
    }
    fs::path path() const { return scratch_.folder() / "model.gguf"; }
    // Returns the error of opening, or "(opened)".
    std::string said() const {
        const Result<CheckpointModel> model = open();
        return model ? "(opened)" : model.error().text;
    }
    test::GgufEdit edit;

  private:
    const test::Scratch scratch_;
};

using Change = void (*)(test::GgufEdit&);

TEST(GgufKeys, that_change_numbers_are_computed_or_refused) {
    struct Case {
        const char* what;
        Change change;
        const char* said;
    };
    const Case cases[] = {
        {"neutral",
         [](auto& e) { e.set("llama.vocab_size", 24), e.set("llama.rope.scaling.finetuned", true); },
         "(opened)"},
        {"off", [](auto& e) { e.set("llama.expert_count", 0), e.set("llama.logit_scale", 1.0); }, "(opened)"},
        {"experts", [](auto& e) { e.set("llama.expert_count", 2); },
         "mixture-of-experts models are not supported (llama.expert_count is 2)"},
        {"unknown", [](auto& e) { e.set("llama.attention.sink_count", 4); },
         "llama.attention.sink_count is 4"},
        {"unknown text", [](auto& e) { e.set("llama.something", "new"); }, "llama.something is 'new'"},
        {"scale", [](auto& e) { e.set("llama.attention.scale", 0.5); }, "llama.attention.scale is 0.5"},
        {"logits", [](auto& e) { e.set("llama.logit_scale", 2.0); }, "llama.logit_scale is 2"},
        {"clamp", [](auto& e) { e.set("llama.attention.clamp_kqv", 8.0); }, "llama.attention.clamp_kqv is 8"},
        {"dynamic", [](auto& e) { e.set("llama.rope.scaling.type", "dynamic"); },
         "llama.rope.scaling.type is 'dynamic'; none, linear, yarn and longrope"},
        {"llama3", [](auto& e) { e.set("llama.rope.scaling.type", "llama3"); }, "is 'llama3'"},
        {"longrope",
         [](auto& e) {
             e.set("llama.rope.scaling.type", "longrope"), e.set("llama.rope.scaling.factor", 4.0);
         },
         "longrope needs its factors as tensors"},
        {"factor 0", [](auto& e) { e.set("llama.rope.scaling.factor", 0.0); }, "it must be above 0"},
        {"factor -1", [](auto& e) { e.set("llama.rope.scaling.factor", -1.0); }, "it must be above 0"},
        {"factor inf", [](auto& e) { e.set("llama.rope.scaling.factor", INFINITY); }, "is not a number"},
        {"mix", [](auto& e) { e.set("llama.rope.scaling.yarn_ext_factor", 0.5); }, "yarn_ext_factor is 0.5"},
        {"yarn", [](auto& e) { e.set("llama.rope.scaling.yarn_attn_factor", 2.0); }, "only 1 is supported"},
        {"magnitude", [](auto& e) { e.set("llama.rope.scaling.attn_factor", 0.0); },
         "rope.scaling has an attention factor that is not above 0"},
        {"freqs",
         [](auto& e) {
             e.add_f32("rope_freqs.weight", {2}, {1, 0});
         },
         "'rope_freqs.weight' has an element that is not above 0"},
        {"adapter", [](auto& e) { e.set("general.type", "adapter"); }, "the file holds a adapter"},
        {"block tensor",
         [](auto& e) {
             e.add_f32("blk.0.attn_sinks.weight", {4}, {1, 1, 1, 1});
         },
         "tensor 'blk.0.attn_sinks.weight' has no place"},
        {"classifier",
         [](auto& e) {
             e.add_f32("cls.output.weight", {4}, {1, 1, 1, 1});
         },
         "(opened)"},
        {"causal", [](auto& e) { e.set("llama.attention.causal", 1); }, "is not true or false"},
    };
    for (const Case& one : cases) {
        GgufModel model("llama2");
        one.change(model.edit);
        EXPECT_NE(model.said().find(one.said), std::string::npos) << one.what << ": " << model.said();
    }
    GgufModel embedding("llama2");
    embedding.edit.set("llama.attention.causal", false);
    const Result<CheckpointModel> open = embedding.open();
    ASSERT_TRUE(open) << open.error().text;
    EXPECT_FALSE(open->config().causal);
}

// As llama.cpp scales rotary positions.
TEST(GgufKeys, scale_rotary_positions) {
    const auto rope = [](std::initializer_list<Change> changes) {
        GgufModel model("llama2");
        for (const Change change : changes) change(model.edit);
        const Result<CheckpointModel> open = model.open();
        EXPECT_TRUE(open) << open.error().text;
        return open ? open->config().rope->rope : Rope();
    };
    const std::vector<double> four(2, 4.0);
    EXPECT_TRUE(rope({}).divisors.empty());
    const Change factor = [](auto& e) { e.set("llama.rope.scaling.factor", 4.0); };
    const Change yarn = [](auto& e) { e.set("llama.rope.scaling.type", "yarn"); };
    EXPECT_EQ(rope({factor}).divisors, four);  // linear without a type
    EXPECT_EQ(rope({[](auto& e) { e.set("llama.rope.scale_linear", 4.0); }}).divisors, four);
    EXPECT_TRUE(rope({factor, [](auto& e) { e.set("llama.rope.scaling.type", "none"); }}).divisors.empty());
    EXPECT_EQ(rope({factor,
                    [](auto& e) {
                        e.add_f32("rope_freqs.weight", {2}, {1, 2});
                    }})
                  .divisors,
              (std::vector<double>{4, 8}));
    EXPECT_EQ(rope({[](auto& e) { e.set("llama.rope.scaling.attn_factor", 1.5); }}).magnitude, 1.5);
    const double own = 0.1 * std::log(4.0) + 1;
    EXPECT_NEAR(rope({factor, yarn}).magnitude, own, 1e-12);
    EXPECT_NEAR(rope({factor, yarn, [](auto& e) { e.set("llama.rope.scaling.attn_factor", 1.5); }}).magnitude,
                1.5 * own, 1e-6);
    EXPECT_NEAR(
        rope({factor, yarn, [](auto& e) { e.set("llama.rope.scaling.yarn_log_multiplier", 1.0); }}).magnitude,
        1, 1e-12);
    const Change length = [](auto& e) { e.set("llama.rope.scaling.original_context_length", 1000000); };
    const Change fast = [](auto& e) { e.set("llama.rope.scaling.yarn_beta_fast", 1e6); };
    const Change slow = [](auto& e) { e.set("llama.rope.scaling.yarn_beta_slow", 1e-3); };
    EXPECT_NE(rope({factor, yarn, length, fast}).divisors, rope({factor, yarn, length}).divisors);
    EXPECT_NE(rope({factor, yarn, slow}).divisors, rope({factor, yarn}).divisors);
}

TEST(GgufKeys, have_the_defaults_of_llama_cpp) {
    GgufModel gemma("gemma2");
    for (const char* key : {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping",
                            "gemma2.attention.sliding_window"})
        gemma.edit.keys.erase(key);
    Result<CheckpointModel> model = gemma.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->config().softcap, 50);
    EXPECT_EQ(model->config().logit_softcap, 30);
    EXPECT_EQ(model->config().window, 4095u);
    EXPECT_TRUE(model->config().windowed[0]);

    // The same weights as a Gemma 3.
    const auto keys = gemma.edit.keys;
    gemma.edit.keys.clear();
    for (const auto& [key, value] : keys)
        gemma.edit.keys[key.starts_with("gemma2.") ? "gemma3." + key.substr(7) : key] = value;
    gemma.edit.set("general.architecture", "gemma3");
    const uint64_t head = model->config().head_width, layers = model->config().layers;
    for (uint64_t n = 0; n < layers; ++n)
        for (const char* norm : {".attn_q_norm.weight", ".attn_k_norm.weight"})
            gemma.edit.add_f32("blk." + std::to_string(n) + norm, {head}, std::vector<float>(head, 1.0f));
    gemma.edit.set("gemma3.attention.sliding_window", 8);
    const auto windows = [&] {
        model = gemma.open();
        EXPECT_TRUE(model) << model.error().text;
        return model ? model->config().windowed : std::vector<bool>();
    };
    EXPECT_EQ(windows(), std::vector<bool>(layers, true));  // all but every sixth
    EXPECT_EQ(model->config().local_rope->rope.theta, 10000);
    gemma.edit.set("gemma3.attention.sliding_window_pattern", 2);
    gemma.edit.set("gemma3.rope.freq_base_swa", 500.0);
    const auto second = windows();
    for (uint64_t n = 0; n < layers; ++n) EXPECT_EQ(second[n], n % 2 == 0);
    EXPECT_EQ(model->config().local_rope->rope.theta, 500);

    GgufModel phi("phi3_gguf");
    phi.edit.set("phi3.attention.sliding_window", 0);
    model = phi.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->config().windowed, std::vector<bool>(model->config().layers, false));
}

// ---- weights ----

// The folder's weights, changed.
void rewrite(const Folder& folder, const std::function<void(TensorSet&)>& change) {
    Result<TensorSet> set = load_safetensors(folder.path() / "model.safetensors");
    ASSERT_TRUE(set) << set.error().text;
    change(*set);
    // The file is mapped by the set that is written.
    const fs::path made = folder.path() / "made";
    ASSERT_TRUE(save_safetensors(made, *set));
    fs::rename(made, folder.path() / "model.safetensors");
}

TEST(Weights, of_a_block_that_nothing_reads_are_refused) {
    const Folder folder("llama2");
    folder.configure("\"num_hidden_layers\": 1");
    Result<CheckpointModel> model = folder.open();
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().text.find("'model.layers.1."), std::string::npos) << model.error().text;
    folder.configure("");
    rewrite(folder, [](TensorSet& set) { set.tensors.push_back(*make_tensor("score.weight", {2}, {1, 2})); });
    model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->unread(), std::vector<std::string>{"score.weight"});
    rewrite(folder, [](TensorSet& set) {
        set.tensors.push_back(*make_tensor("model.layers.0.self_attn.q_norm.weight", {4}, {1, 1, 1, 1}));
    });
    model = folder.open();
    ASSERT_FALSE(model);
    EXPECT_NE(
        model.error().text.find("'model.layers.0.self_attn.q_norm.weight' has no place in a Llama model"),
        std::string::npos)
        << model.error().text;
}

TEST(Weights, of_a_model_of_text_and_pictures_may_name_the_head_after_its_part) {
    const Folder folder("llama2");
    rewrite(folder, [](TensorSet& set) {
        for (Tensor& tensor : set.tensors) tensor.name = "language_model." + tensor.name;
    });
    const Result<CheckpointModel> model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_TRUE(model->has_unembedding());
    EXPECT_TRUE(model->unread().empty());
}

TEST(Weights, with_heads_that_are_not_grouped_take_no_groups) {
    const Folder folder("pythia");
    folder.configure("\"num_key_value_heads\": 1");
    const Result<CheckpointModel> model = folder.open();
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().text.find("a GPT-NeoX model must have as many as heads"), std::string::npos)
        << model.error().text;
}

// ---- positions after a pad token ----

TEST(Positions, of_roberta_begin_after_the_pad_token) {
    const Folder folder("roberta");
    const Result<TensorSet> set = load_safetensors(folder.path() / "model.safetensors");
    ASSERT_TRUE(set);
    const auto rows = [&](std::string_view end) {
        for (const Tensor& tensor : set->tensors)
            if (tensor.name.ends_with(end)) return *to_f32(tensor);
        return std::vector<float>();
    };
    const auto words = rows("word_embeddings.weight"), places = rows("position_embeddings.weight"),
               types = rows("token_type_embeddings.weight"), weight = rows("embeddings.LayerNorm.weight"),
               bias = rows("embeddings.LayerNorm.bias");
    for (const uint32_t pad : {0u, 1u, 3u}) {
        folder.configure("\"pad_token_id\": " + std::to_string(pad));
        const Result<CheckpointModel> model = folder.open();
        ASSERT_TRUE(model) << model.error().text;
        const std::vector<uint32_t> ids = {5, pad, 7};
        const Result<F32Tensor> x = model->embed(ids);
        ASSERT_TRUE(x) << x.error().text;
        const size_t width = weight.size();
        const uint32_t expected[] = {pad + 1, pad, pad + 2};
        for (size_t i = 0; i < ids.size(); ++i) {
            std::vector<double> row(width);
            double mean = 0, square = 0;
            for (size_t c = 0; c < width; ++c) {
                row[c] = double(words[ids[i] * width + c]) + double(places[expected[i] * width + c]) +
                         double(types[c]);
                mean += row[c] / double(width);
            }
            for (const double v : row) square += (v - mean) * (v - mean) / double(width);
            for (size_t c = 0; c < width; ++c)
                EXPECT_NEAR(
                    x->row(i)[c],
                    (row[c] - mean) / std::sqrt(square + model->config().epsilon) * double(weight[c]) +
                        double(bias[c]),
                    1e-5)
                    << pad << " " << i;
        }
    }
}

// ---- defaults of configuration classes ----

TEST(Defaults, are_those_of_the_class_where_a_key_is_left_out) {
    struct Case {
        const char* type;
        uint64_t layers, width, heads, kv_heads, hidden, context;
    };
    for (const Case& one : {Case{"gpt2", 12, 768, 12, 12, 3072, 1024},
                            {"llama", 32, 4096, 32, 32, 11008, 2048},
                            {"mistral", 32, 4096, 32, 8, 14336, 131072},
                            {"qwen2", 32, 4096, 32, 32, 22016, 32768},
                            {"qwen3", 32, 4096, 32, 32, 22016, 32768},
                            {"gemma", 28, 3072, 16, 16, 24576, 8192},
                            {"gemma2", 26, 2304, 8, 4, 9216, 8192},
                            {"gemma3_text", 26, 2304, 8, 4, 9216, 131072},
                            {"phi3", 32, 3072, 32, 32, 8192, 4096},
                            {"glm4", 40, 4096, 32, 2, 13696, 131072},
                            {"gpt_neox", 44, 6144, 64, 64, 24576, 2048},
                            {"bert", 12, 768, 12, 12, 3072, 512},
                            {"roberta", 12, 768, 12, 12, 3072, 512},
                            {"modernbert", 22, 768, 12, 12, 1152, 8192},
                            {"vit", 12, 768, 12, 12, 3072, 0}}) {
        Checkpoint files;
        files.config = *parse_json("{\"model_type\": \"" + std::string(one.type) + "\"}");
        const Result<KnownModel> known = read_config(files);
        ASSERT_TRUE(known) << one.type << known.error().text;
        const ModelConfig& f = known->config;
        EXPECT_EQ((std::vector{f.layers, f.width, f.heads, f.kv_heads, f.hidden, f.context}),
                  (std::vector{one.layers, one.width, one.heads, one.kv_heads, one.hidden, one.context}))
            << one.type;
        if (f.family.starts_with("Gemma")) {
            EXPECT_EQ(f.head_width, 256u);
        }
    }
}

TEST(Defaults, have_the_end_tokens_of_the_family) {
    for (const auto& [type, ends] :
         {std::pair<const char*, Ids>{"gpt2", {50256}}, {"glm4", {151329, 151336, 151338}}, {"qwen2", {}}}) {
        Checkpoint files;
        files.config = *parse_json("{\"model_type\": \"" + std::string(type) + "\"}");
        const Result<KnownModel> known = read_config(files);
        ASSERT_TRUE(known) << known.error().text;
        EXPECT_EQ(known->config.end_tokens, ends) << type;
    }
}

TEST(Defaults, have_the_prediction_heads_activation) {
    using enum Activation;
    struct Case {
        const char* members;
        Activation blocks, head;
    };
    for (const Case& one : {Case{R"("model_type": "bert", "hidden_act": "relu")", relu, relu},
                            {R"("model_type": "roberta", "hidden_act": "relu")", relu, gelu},
                            {R"("model_type": "modernbert", "hidden_activation": "relu")", relu, gelu},
                            {R"("model_type": "modernbert", "classifier_activation": "silu")", gelu, silu}}) {
        Checkpoint files;
        files.config = *parse_json(std::string("{") + one.members + "}");
        const Result<KnownModel> known = read_config(files);
        ASSERT_TRUE(known) << one.members << known.error().text;
        EXPECT_EQ(known->config.activation, one.blocks) << one.members;
        EXPECT_EQ(known->config.head_activation, one.head) << one.members;
    }
}

// ---- files of many tensors ----

TEST(Index, must_name_the_file_of_each_tensor) {
    const Folder folder("llama2");
    const Result<TensorSet> all = load_safetensors(folder.path() / "model.safetensors");
    ASSERT_TRUE(all);
    TensorSet parts[2];
    std::string right, wrong;
    for (size_t n = 0; n < all->tensors.size(); ++n) {
        const Tensor& tensor = all->tensors[n];
        parts[n % 2].tensors.push_back(tensor);
        const std::string key = (n ? ", \"" : "\"") + tensor.name + "\": \"";
        right += key + (n % 2 ? "b" : "a") + ".safetensors\"";
        wrong += key + (n % 2 ? "a" : "b") + ".safetensors\"";
    }
    ASSERT_TRUE(save_safetensors(folder.path() / "a.safetensors", parts[0]));
    ASSERT_TRUE(save_safetensors(folder.path() / "b.safetensors", parts[1]));
    fs::remove(folder.path() / "model.safetensors");
    for (const std::string& map : {right, wrong}) {
        folder.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
        const Result<CheckpointModel> model = folder.open();
        EXPECT_EQ(model.has_value(), map == right) << (model ? "" : model.error().text);
        if (!model) {
            EXPECT_NE(model.error().text.find("' is not in 'b.safetensors'"), std::string::npos)
                << model.error().text;
        }
    }
}

TEST(TypeNames, are_in_the_refusal_of_a_tensor_that_is_not_read) {
    struct Case {
        uint32_t type;
        size_t block, bytes;
        const char* name;
    };
    for (const Case& one : {Case{39, 32, 17, "MXFP4"}, {40, 64, 36, "NVFP4"}, {41, 128, 18, "Q1_0"}}) {
        test::GgufEdit file(family("llama2") / "model.gguf");
        const auto weight = std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& t) {
            return t.dims.size() == 2 && t.name.starts_with("blk.");
        });
        ASSERT_NE(weight, file.tensors.end());
        weight->type = one.type;
        weight->dims[0] = one.block;
        weight->bytes = std::string(weight->dims[1] * one.bytes, '\0');
        const test::Scratch scratch;
        file.write(scratch / "m.gguf");
        const Result<GgufFile> read = load_gguf(scratch / "m.gguf");
        ASSERT_TRUE(read) << read.error().text;
        for (const StoredWeight& stored : read->weights) {
            if (stored.name != weight->name) continue;
            std::vector<float> row(one.block);
            EXPECT_NE(read_rows(stored, 0, row).error().text.find(std::string("is stored as ") + one.name),
                      std::string::npos);
        }
    }
}

// ---- a GGUF file in parts ----

TEST(SplitGguf, is_read_from_any_of_its_parts) {
    const test::Scratch scratch;
    const test::GgufEdit whole(family("llama2") / "model.gguf");
    const auto name = [](int n) { return "m-0000" + std::to_string(n + 1) + "-of-00003.gguf"; };
    for (int n = 0; n < 3; ++n) {
        test::GgufEdit part;
        if (n == 0) part.keys = whole.keys;
        part.set("split.no", n), part.set("split.count", 3);
        part.set("split.tensors.count", int(whole.tensors.size()));
        for (size_t t = size_t(n); t < whole.tensors.size(); t += 3) part.tensors.push_back(whole.tensors[t]);
        part.write(scratch / name(n));
    }
    const Result<CheckpointModel> expected = CheckpointModel::open(family("llama2") / "model.gguf");
    ASSERT_TRUE(expected);
    const std::vector<uint32_t> ids = {1, 2, 3};
    const auto logits = run_model(*expected, ids)->logits.values;
    for (const fs::path& path : {scratch / name(0), scratch / name(2), scratch.folder()}) {
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        ASSERT_TRUE(model) << model.error().text;
        EXPECT_EQ(run_model(*model, ids)->logits.values, logits);
    }
    std::vector<NamedFile> named;  // in any order
    for (const int n : {2, 0, 1})
        named.push_back({name(n), std::make_shared<test::HeldFile>(text_of(scratch / name(n)))});
    const Result<CheckpointModel> from_memory = CheckpointModel::open(named);
    ASSERT_TRUE(from_memory) << from_memory.error().text;
    EXPECT_EQ(run_model(*from_memory, ids)->logits.values, logits);
    named.pop_back();
    EXPECT_NE(CheckpointModel::open(named).error().text.find("part 3 of 3; 2 files were given"),
              std::string::npos);
    test::GgufEdit more(scratch / name(0));
    more.set("split.tensors.count", 99);
    more.write(scratch / name(0));
    EXPECT_NE(CheckpointModel::open(scratch / name(0)).error().text.find("the 3 parts hold"),
              std::string::npos);
    fs::rename(scratch / name(1), scratch / "other.gguf");
    const auto said = [&](const fs::path& path) {
        const Result<CheckpointModel> model = CheckpointModel::open(path);
        return model ? std::string("(opened)") : model.error().text;
    };
    EXPECT_NE(said(scratch / name(2)).find("m-00002-of-00003.gguf is missing: part 2 of 3"),
              std::string::npos);
    EXPECT_NE(said(scratch / "other.gguf").find("part 2 of 3; its name must end in -00002-of-00003.gguf"),
              std::string::npos);
    EXPECT_NE(said(scratch.folder()).find("holds 3 .gguf files; give one of them"), std::string::npos);
    fs::copy_file(scratch / name(0), scratch / name(1));
    EXPECT_NE(said(scratch / name(0)).find("part 1 of 3; part 2 of 3 was expected"), std::string::npos);
}

}  // namespace
}  // namespace fovea
