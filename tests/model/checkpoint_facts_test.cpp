// What files say of a model: small models with other configurations and keys.
#include "support/gguf_edit.hpp"
#include "support/scratch.hpp"

#include <fovea/model/checkpoint_model.hpp>

#include <gtest/gtest.h>

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
        EXPECT_EQ(model->facts().end_tokens, one.expected) << one.config << one.generation;
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
        return model ? model->facts().end_tokens : Ids();
    };
    EXPECT_EQ(ends(), Ids{});
    edit.set("tokenizer.ggml.model", "llama");  // its own when no key names one
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
    EXPECT_EQ(ends(), (Ids{0, 1, 3, 5}));  // "<|end|>" is not an end beside the two
}

TEST(GenerationSettings, that_choose_other_tokens_are_told) {
    const Folder folder("llama2");
    folder.write("generation_config.json",
                 R"({"bos_token_id": 1, "transformers_version": "5", "temperature": 0.6, "top_k": 50,
                     "repetition_penalty": 1.1, "length_penalty": 1.0, "bad_words_ids": [[1]],
                     "suppress_tokens": []})");
    Result<CheckpointModel> model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->facts().generation_settings,
              (std::vector<std::string>{"repetition_penalty 1.1", "bad_words_ids [...]"}));
    folder.write("generation_config.json", R"({"do_sample": true, "temperature": 0.6, "top_k": 50})");
    model = folder.open();
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_EQ(model->facts().generation_settings,
              (std::vector<std::string>{"do_sample true", "temperature 0.6", "top_k 50"}));
    folder.write("generation_config.json", "{");
    EXPECT_FALSE(folder.open());
}

}  // namespace
}  // namespace fovea
