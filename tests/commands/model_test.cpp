// fovea model: what it says of a model, what it writes, what it refuses.
#include "command_run.hpp"

#include <fovea/files/json.hpp>

#include <csignal>

namespace fovea {
namespace {

using namespace test;

const std::string kFamilies = std::string(FOVEA_SOURCES) + "/tests/model/families/";

TEST(ModelCommand, tells_family_sizes_and_types) {
    const Scratch scratch;
    const CommandRun run = run_command(scratch, "model " + kFamilies + "gemma2");
    EXPECT_EQ(run.exit_code, 0) << run.error;
    for (const char* part :
         {"Gemma 2 (gemma2)", "2, width 16, feed-forward 24", "4 of width 8, 2 for keys and values",
          "scores capped at 5", "logits capped at 3", "4 keys in 1 of 2 layers (0)", "f32 24"})
        EXPECT_NE(run.output.find(part), std::string::npos) << part << "\n" << run.output;
    const CommandRun json = run_command(scratch, "model " + kFamilies + "llama_q8/model.gguf --json");
    EXPECT_EQ(json.exit_code, 0) << json.error;
    EXPECT_NE(json.output.find("\"family\": \"Llama\""), std::string::npos) << json.output;
    EXPECT_NE(json.output.find("\"q8_0\": 16"), std::string::npos) << json.output;
}

TEST(ModelCommand, writes_logits_hidden_states_and_weights) {
    const Scratch scratch;
    const CommandRun run =
        run_command(scratch, "model " + kFamilies + "qwen3 --tokens 3,4,5,6 --top 2 --no-scores --out OUT");
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 3) << run.output;
    const Result<TensorSet> set = load_safetensors(scratch / "out.safetensors");
    ASSERT_TRUE(set) << set.error().text;
    using Shape = std::vector<uint64_t>;
    const std::pair<const char*, Shape> all[] = {
        {"logits", {4, 24}},   {"hidden.0", {4, 16}},           {"hidden.1", {4, 16}},
        {"hidden.2", {4, 16}}, {"layers.0.weights", {4, 4, 4}}, {"layers.1.weights", {4, 4, 4}}};
    EXPECT_EQ(set->tensors.size(), std::size(all));
    for (const auto& [name, shape] : all) {
        const Tensor* tensor = set->find(name);
        ASSERT_NE(tensor, nullptr) << name;
        EXPECT_EQ(tensor->type, FOVEA_F32) << name;
        EXPECT_EQ(tensor->shape, shape) << name;
    }
}

TEST(ModelCommand, refuses_what_it_cannot_open_or_run) {
    const Scratch scratch;
    const std::string model = "model " + kFamilies + "llama2";
    expect_refused(run_command(scratch, "model"), "the model is missing; give a folder");
    expect_refused(run_command(scratch, "model /nowhere/at/all"), "cannot open /nowhere/at/all: No such");
    expect_refused(run_command(scratch, "model " + kFamilies), "; put it into the folder of the weights");
    expect_refused(run_command(scratch, model + " --out OUT"), "--out needs --tokens or --text");
    expect_refused(run_command(scratch, model + " --tokens 3,x"), "--tokens");
    expect_refused(run_command(scratch, model + " --tokens 3,-1"),
                   "--tokens has -1; a token ID is an integer");
    expect_refused(run_command(scratch, model + " --tokens 3,24 --out OUT"),
                   "token 1 has the ID 24; the model has 24 tokens");
    EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    std::string many = "1";
    for (int i = 0; i < 32; ++i) many += ",1";
    expect_refused(run_command(scratch, "model " + kFamilies + "gpt2 --tokens " + many),
                   "position 32 is past the 32 that the model has learned");
}

TEST(ModelCommand, says_why_a_head_attends) {
    const Scratch scratch;
    const std::string model = "model " + kFamilies + "gemma2 --tokens 3,4,5,6 ",
                      why = model + "--why 1.2,3,1 ";
    const CommandRun all = run_command(scratch, why + "--top 1000000 --json");
    ASSERT_EQ(all.exit_code, 0) << all.error;
    const Result<JsonValue> json = parse_json(all.output);
    ASSERT_TRUE(json) << all.output;
    double sum = 0, magnitudes = 0;
    for (const JsonValue entry : (*json)["entries"].items())
        sum += entry["value"].number(), magnitudes += std::abs(entry["value"].number());
    const size_t writers = (*json)["writers"].items().size();
    EXPECT_EQ((*json)["entries"].items().size(), writers * writers);
    EXPECT_NEAR(sum, (*json)["sum"].number(), 1e-9 * magnitudes);
    const JsonValue cap = (*json)["remainders"].items()[0];
    EXPECT_EQ(cap["name"].text(), "softcap");
    EXPECT_NEAR(sum + cap["value"].number(), (*json)["score"].number(), 1e-5 * magnitudes);
    ASSERT_EQ(run_command(scratch, model + "--no-scores --out OUT").exit_code, 0);
    const Result<TensorSet> run = load_safetensors(scratch / "out.safetensors");
    EXPECT_FLOAT_EQ(float((*json)["weight"].number()),
                    to_f32(*run->find("layers.1.weights")).value()[2 * 16 + 3 * 4 + 1]);
    const std::string csv = (scratch / "why.csv").string();
    const CommandRun text = run_command(scratch, why + "--top 2 --out " + csv);
    EXPECT_TRUE(text.output.starts_with("head 1.2: query token 3, key token 1\nscore ")) << text.output;
    EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 8) << text.output;
    EXPECT_NE(text.output.find("query: head 0.3 at token 3 from token 0"), std::string::npos) << text.output;
    // Loadings add up to the heads' contributions.
    for (const char* const at : {"query", "key"}) {
        double read = 0, written = 0;
        for (const JsonValue one : (*json)["loadings"].items())
            if (one["at"].text() == at) read += one["value"].number();
        for (const JsonValue one : (*json)["writers"].items())
            if (one["kind"].text() == "head") written += one[std::string(at) + "_sum"].number();
        EXPECT_NEAR(read, written, 1e-5 * magnitudes);
    }
    const std::string table = read_file(csv);
    EXPECT_EQ(size_t(std::count(table.begin(), table.end(), '\n')), writers * writers + 1);
    // A head that is switched off writes nothing.
    const CommandRun off = run_command(scratch, why + "--off 0.0,0.1,0.2,0.3 --top 1000000 --json");
    for (const JsonValue writer : (*parse_json(off.output))["writers"].items())
        EXPECT_TRUE(writer["kind"].text() != "head" || writer["query_sum"].number() == 0) << off.output;
    expect_refused(run_command(scratch, model + "--why 1.2,3"),
                   "--why is '1.2,3'; it must be a head, a query and a key");
    expect_refused(run_command(scratch, model + "--why 2.0,3,1"),
                   "--why has layer 2; it must be from 0 to 1");
    expect_refused(run_command(scratch, model + "--why 1.4,3,1"), "--why has head 4; it must be from 0 to 3");
    expect_refused(run_command(scratch, model + "--why 1.2,4,1"),
                   "--why has query 4; it must be from 0 to 3");
    expect_refused(run_command(scratch, model + "--why 1.2,3,x"), "--why");
    expect_refused(run_command(scratch, why + "--out OUT"), ".csv");
    expect_refused(run_command(scratch, "model " + kFamilies + "gemma2 --why 1.2,3,1"),
                   "--why needs --tokens or --text");
}

TEST(ModelCommand, says_what_a_logit_is_made_of) {
    const Scratch scratch;
    const std::string model = "model " + kFamilies + "gemma2 --tokens 3,4,5,6 ", ask = model + "--logit 2";
    const CommandRun all = run_command(scratch, ask + " --top 1000000 --json");
    ASSERT_EQ(all.exit_code, 0) << all.error;
    const Result<JsonValue> json = parse_json(all.output);
    ASSERT_TRUE(json) << all.output;
    double sum = 0, magnitudes = 0, feed_forward = 0, neurons = 0, groups = 0, heads = 0, read = 0;
    for (const JsonValue one : (*json)["writers"].items()) {
        const double value = one["value"].number();
        sum += value, magnitudes += std::abs(value);
        if (one["kind"].text() == "feed_forward") feed_forward += value;
        if (one["kind"].text() == "head") heads += value;
    }
    for (const JsonValue one : (*json)["neurons"].items()) neurons += one["value"].number();
    for (const JsonValue one : (*json)["loadings"].items()) read += one["value"].number();
    for (const JsonValue one : (*json)["neuron_groups"].items())
        groups += one["raised"].number() + one["lowered"].number();
    EXPECT_NEAR(sum, (*json)["sum"].number(), 1e-9 * magnitudes);
    EXPECT_NEAR(sum + (*json)["softcap"].number(), (*json)["logit"].number(), 1e-5 * magnitudes);
    EXPECT_NE((*json)["softcap"].number(), 0);
    EXPECT_NEAR(neurons, feed_forward, 1e-5 * magnitudes);
    EXPECT_NEAR(groups, feed_forward, 1e-5 * magnitudes);
    EXPECT_NEAR(read, heads, 1e-5 * magnitudes);
    // The likeliest token; another one may be asked for.
    const CommandRun next =
        run_command(scratch, "model " + kFamilies + "gemma2 --tokens 3,4,5 --top 1 --no-scores --json");
    const JsonValue likeliest = (*parse_json(next.output))["next"].items()[0];
    EXPECT_EQ((*json)["token"].number(), likeliest["token"].number());
    EXPECT_NEAR((*json)["logit"].number(), likeliest["logit"].number(), 1e-5);
    const CommandRun other = run_command(scratch, ask + ",7 --top 2");
    EXPECT_TRUE(other.output.starts_with("logit of token ID 7 after token 2: ")) << other.output;
    EXPECT_EQ(std::count(other.output.begin(), other.output.end(), '\n'), 10) << other.output;
    expect_refused(run_command(scratch, model + "--logit 4"), "--logit has token 4; it must be from 0 to 3");
    expect_refused(run_command(scratch, model + "--logit 1,999"),
                   "token is 999; the model has tokens 0 to 23");
    expect_refused(run_command(scratch, model + "--logit 1,2,3"), "--logit is '1,2,3'; it must be a token");
    expect_refused(run_command(scratch, ask + " --why 1.2,3,1"), "--logit cannot be combined with --why");
    expect_refused(run_command(scratch, ask + " --out OUT"), "--logit cannot be combined with --out");
    expect_refused(run_command(scratch, "model " + kFamilies + "gemma2 --logit 2"), "--logit needs --tokens");
}

TEST(ModelCommand, finds_the_directions_of_a_head) {
    const Scratch scratch;
    const std::string ask = "model " + kFamilies + "gpt2 --directions ";
    const CommandRun run = run_command(scratch, ask + "1.2,2 --top 4 --json");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<JsonValue> json = parse_json(run.output);
    ASSERT_TRUE(json) << run.output;
    for (const char* const matrix : {"qk", "ov"}) {
        const auto all = (*json)[matrix].items();
        ASSERT_EQ(all.size(), 2u);
        EXPECT_GT(all[0]["value"].number(), all[1]["value"].number());
        for (const char* const side : {"from_tokens", "to_tokens"}) {
            const auto high = all[0][side]["high"].items(), low = all[0][side]["low"].items();
            ASSERT_EQ(high.size() + low.size(), 8u);
            EXPECT_GT(high[3]["value"].number(), low[3]["value"].number());
        }
    }
    const CommandRun text = run_command(scratch, ask + "1.2,1 --top 2");
    EXPECT_TRUE(text.output.starts_with("head 1.2\nQK: ")) << text.output;
    EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 13) << text.output;
    expect_refused(run_command(scratch, ask + "2.0"), "--directions has layer 2; it must be from 0 to 1");
    expect_refused(run_command(scratch, ask + "1.2,99"), "--directions has count 99; it must be from 0 to");
    expect_refused(run_command(scratch, ask + "1.2 --tokens 1"),
                   "--directions cannot be combined with --tokens");
    expect_refused(run_command(scratch, ask + "1.2 --off 0.1"), "--off needs --tokens or --text");
}

TEST(ModelCommand, lists_the_classes_of_a_picture_that_is_given_as_patches) {
    const Scratch scratch;
    const std::string model = "model " + kFamilies + "vit", expected = kFamilies + "vit/expected.safetensors";
    const Result<TensorSet> set = load_safetensors(expected);
    ASSERT_TRUE(set) << set.error().text;
    const std::vector<float> logits = to_f32(*set->find("logits")).value();
    const CommandRun run =
        run_command(scratch, model + " --patches " + expected + " --top 2 --json --out OUT");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<JsonValue> json = parse_json(run.output);
    ASSERT_TRUE(json) << run.output;
    ASSERT_EQ((*json)["classes"].items().size(), 2u) << run.output;
    const JsonValue& best = (*json)["classes"].items()[0];
    EXPECT_EQ(best["class"].number(),
              double(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    EXPECT_NEAR(best["logit"].number(), *std::max_element(logits.begin(), logits.end()), 2e-5);
    const Result<TensorSet> out = load_safetensors(scratch / "out.safetensors");
    ASSERT_TRUE(out) << out.error().text;
    EXPECT_EQ(out->find("layers.1.weights")->shape, (std::vector<uint64_t>{4, 10, 10}));
    const CommandRun facts = run_command(scratch, model);
    EXPECT_NE(facts.output.find("9 patches of 48 numbers"), std::string::npos) << facts.output;
    expect_refused(run_command(scratch, model + " --tokens 1,2"), "reads patches of pictures, not tokens");
    expect_refused(run_command(scratch, model + " --patches " + kFamilies + "vit/model.safetensors"),
                   "one of them must be named 'patches', or be the only one");
    expect_refused(run_command(scratch, model + " --tokens 1 --patches " + expected),
                   "--patches cannot be combined with --text or --tokens");
    expect_refused(run_command(scratch, "model " + kFamilies + "gpt2 --patches " + expected),
                   "a GPT-2 model reads tokens");
}

TEST(ModelCommand, splits_a_text_by_the_tokenizer_of_the_models_folder) {
    const Scratch scratch;
    for (const char* file : {"config.json", "model.safetensors"})
        std::filesystem::copy(kFamilies + "llama2/" + file, scratch / file);
    const std::string model = "model " + scratch.folder().string();
    expect_refused(run_command(scratch, model + " --text abab"), "tokenizer.json is missing");
    write_file(scratch / "tokenizer.json",
               R"({"model": {"type": "BPE", "vocab": {"a": 3, "b": 4, "ab": 5}, "merges": ["a b"]}})");
    const CommandRun text = run_command(scratch, model + " --text ababa");
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_TRUE(text.output.starts_with("3 tokens: 5 'ab' 5 'ab' 3 'a'\n")) << text.output;
    const std::string start = "generate " + scratch.folder().string() + " --count 3 --json ";
    const CommandRun by_text = run_command(scratch, start + "--text ababa");
    const std::string by_numbers = run_command(scratch, start + "--tokens 5,5,3").output;
    EXPECT_EQ(by_text.output.substr(0, by_text.output.find(']')), by_numbers.substr(0, by_numbers.find(']')));
    expect_refused(run_command(scratch, model + " --text a --tokens 3"),
                   "--text cannot be combined with --tokens; give one of them");
    expect_refused(run_command(scratch, "model " + kFamilies + "llama_q8/model.gguf --text a"),
                   "the file holds no tokenizer");
}

TEST(GenerateCommand, goes_on_with_the_same_tokens_for_the_same_seed) {
    const Scratch scratch;
    const std::string start = "generate " + kFamilies + "llama3 --tokens 5,3 ";
    const CommandRun greedy = run_command(scratch, start + "--count 6");
    EXPECT_EQ(greedy.exit_code, 0) << greedy.error;
    EXPECT_EQ(std::count(greedy.output.begin(), greedy.output.end(), ','), 5) << greedy.output;
    const CommandRun one = run_command(scratch, start + "--count 20 --temperature 1 --seed 3");
    EXPECT_EQ(one.output,
              run_command(scratch, start + "--count 20 --temperature 1 --seed 3 --threads 1").output);
    EXPECT_NE(one.output, run_command(scratch, start + "--count 20 --temperature 1 --seed 4").output);
    const CommandRun json = run_command(scratch, start + "--count 1 --json");
    EXPECT_TRUE(json.output.starts_with("{\"tokens\": [")) << json.output;
    expect_refused(run_command(scratch, "generate " + kFamilies + "llama3"),
                   "--text is missing; give a text to begin with, or token IDs with --tokens");
    expect_refused(run_command(scratch, start + "--count 0"), "--count is 0; it must be from 1");
    expect_refused(run_command(scratch, start + "--temperature -1"), "--temperature");
    expect_refused(run_command(scratch, "generate " + kFamilies + "modernbert --tokens 3"), "is an encoder");
    expect_refused(run_command(scratch, "generate " + kFamilies + "gpt2 --tokens 3 --count 33"),
                   "--count: capacity is 33; the model has learned 32 positions");
}

// A copy of a small model with one thing wrong with it, each rejected by what is wrong.
TEST(ModelCommand, refuses_a_model_whose_files_do_not_fit_by_name_and_reason) {
    const Scratch scratch;
    const std::string config = read_file(kFamilies + "llama2/config.json");
    std::filesystem::copy(kFamilies + "llama2/model.safetensors", scratch / "model.safetensors");
    const std::tuple<const char*, const char*, const char*> cases[] = {
        {"\"model_type\": \"llama\"", "\"model_type\": \"mamba\"",
         "family is 'mamba', which is not supported; the supported families are GPT-2, Llama,"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": 3", "num_key_value_heads 4 does not divide"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": 4.5",
         "num_attention_heads is not an integer"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
         "tensor 'model.layers.2.input_layernorm.weight' is missing"},
        {"\"hidden_size\": 16", "\"hidden_size\": 32",
         "'model.embed_tokens.weight' has shape [24, 16]; it must have [tokens, 32]"},
        {"\"intermediate_size\": 24", "\"intermediate_size\": 25",
         "mlp.down_proj.weight' has shape [16, 24]; it must have [16, 25]"},
        {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"xielu\"", "the activation is 'xielu'"},
        {"\"rope_type\": \"default\"", "\"rope_type\": \"dynamic\"",
         "rotary positions are scaled by 'dynamic'"},
        {"\"hidden_size\": 16,", "",
         "it must have [tokens, 4096]"},  // the default of transformers' LlamaConfig
        {"{", "[", "must hold a JSON object"},
        {"\"hidden_size\"", "hidden_size", "config.json: byte"}};
    for (const auto& [from, to, reason] : cases) {
        std::string changed = config;
        ASSERT_NE(changed.find(from), std::string::npos) << from;
        changed.replace(changed.find(from), std::string(from).size(), to);
        if (*to == '[') changed = "[]";
        write_file(scratch / "config.json", changed);
        expect_refused(run_command(scratch, "model " + scratch.folder().string() + " --tokens 3"), reason);
    }
}

TEST(ModelCommand, reads_weights_in_many_files_by_their_index) {
    const Scratch scratch;
    const std::filesystem::path folder = scratch.folder();
    std::filesystem::copy(kFamilies + "llama2/config.json", folder / "config.json");
    const Result<TensorSet> all = load_safetensors(kFamilies + "llama2/model.safetensors");
    ASSERT_TRUE(all);
    TensorSet parts[2];
    std::string map;
    for (size_t i = 0; i < all->tensors.size(); ++i) {
        parts[i % 2].tensors.push_back(all->tensors[i]);
        map += (i ? ", \"" : "\"") + all->tensors[i].name + "\": \"part-" + std::to_string(i % 2) +
               ".safetensors\"";
    }
    for (int i = 0; i < 2; ++i)
        ASSERT_TRUE(save_safetensors(folder / ("part-" + std::to_string(i) + ".safetensors"), parts[i]));
    const auto index = [&](const std::string& text) {
        write_file(folder / "model.safetensors.index.json", "{\"weight_map\": {" + text + "}}");
        return run_command(scratch, "model " + folder.string() + " --tokens 3,4,5");
    };
    const CommandRun one = run_command(scratch, "model " + kFamilies + "llama2 --tokens 3,4,5");
    EXPECT_EQ(index(map).output, one.output);
    EXPECT_EQ(one.exit_code, 0);
    expect_refused(index(map + ", \"more\": \"part-0.safetensors\""),
                   "tensor 'more' is not in 'part-0.safetensors'");
    expect_refused(index(map + ", \"more\": \"../part-0.safetensors\""),
                   "which is not a file name in this folder");
    expect_refused(index(map + ", \"more\": \"part-2.safetensors\""), "part-2.safetensors");
    expect_refused(index(""), "weight_map is not an object with at least one tensor");
}

TEST(ModelCommand, scores_heads_by_what_they_look_at) {
    const Scratch scratch;
    const std::string start = "model " + kFamilies + "llama2 --tokens 3,5,3,5,7";
    const CommandRun text = run_command(scratch, start + " --top 2");
    EXPECT_EQ(text.exit_code, 0) << text.error;
    for (const char* label : {"previous token", "induction", "first token", "same token"})
        EXPECT_NE(text.output.find(label), std::string::npos) << text.output;
    const CommandRun json = run_command(scratch, start + " --json");
    const Result<JsonValue> all = parse_json(json.output);
    ASSERT_TRUE(all) << json.output;
    ASSERT_EQ((*all)["heads"].items().size(), 8u);
    // The scores are those of the weights that --out writes.
    EXPECT_EQ(run_command(scratch, start + " --out OUT").exit_code, 0);
    const Result<TensorSet> set = load_safetensors(scratch / "out.safetensors");
    ASSERT_TRUE(set);
    const std::vector<float> weights = to_f32(*set->find("layers.1.weights")).value();
    const JsonValue& last = (*all)["heads"].items()[7];
    EXPECT_EQ(last["layer"].number(), 1);
    EXPECT_EQ(last["head"].number(), 3);
    double previous = 0;
    for (size_t i = 1; i < 5; ++i) previous += double(weights[3 * 25 + i * 5 + i - 1]) / 4;
    EXPECT_NEAR(last["previous"].number(), previous, 1e-6);
    EXPECT_EQ(run_command(scratch, start + " --no-scores --json").output.find("heads"), std::string::npos);
}

TEST(ModelCommand, shows_a_changed_model_beside_the_unchanged_one) {
    const Scratch scratch;
    const std::string start = "model " + kFamilies + "gpt2 --tokens 5,3,8,20 --no-scores --json --top 24";
    const auto said = [&](const std::string& changes) {
        const CommandRun run = run_command(scratch, start + " " + changes);
        EXPECT_EQ(run.exit_code, 0) << run.error;
        const Result<JsonValue> all = parse_json(run.output);
        EXPECT_TRUE(all) << run.output;
        return *all;
    };
    // By token: what the run says, and what it says of the unchanged model.
    const auto logits = [](const JsonValue& all, const char* key) {
        std::vector<double> by_token(24);
        for (const JsonValue& one : all["next"].items())
            by_token[size_t(one["token"].number())] = one[key].number();
        return by_token;
    };
    const std::vector<double> plain = logits(said(""), "logit");
    EXPECT_EQ(said("")["unchanged"].items().size(), 0u);
    for (const char* nothing : {"--scale 1.2=1", "--patch 0.1,1.3 --from-tokens 5,3,8,20"}) {
        SCOPED_TRACE(nothing);
        EXPECT_EQ(logits(said(nothing), "logit"), plain);
    }
    const JsonValue off = said("--off 1.2,0.3 --hide 1");
    EXPECT_EQ(logits(off, "unchanged_logit"), plain);
    EXPECT_NE(logits(off, "logit"), plain);
    EXPECT_EQ(logits(said("--scale 1.2=0,0.3=0 --hide 1"), "logit"), logits(off, "logit"));
    EXPECT_NE(logits(said("--patch 0.1 --from-tokens 6,3,8,20"), "logit"), plain);
    EXPECT_EQ(off["unchanged"].items().size(), 24u);
    EXPECT_GE(off["unchanged"].items()[0]["logit"].number(), off["unchanged"].items()[1]["logit"].number());
    // The table on the screen, and the weights of a hidden token.
    const CommandRun text =
        run_command(scratch, "model " + kFamilies + "gpt2 --tokens 5,3,8,20 --hide 1 --out OUT --top 2");
    EXPECT_NE(text.output.find("probability  unchanged"), std::string::npos) << text.output;
    const Result<TensorSet> set = load_safetensors(scratch / "out.safetensors");
    ASSERT_TRUE(set);
    const std::vector<float> weights = to_f32(*set->find("layers.1.weights")).value();
    for (size_t row = 0; row < 4 * 4; ++row) EXPECT_EQ(weights[row * 4 + 1], 0.0f) << row;
}

TEST(ModelCommand, refuses_changes_by_their_option) {
    const Scratch scratch;
    const std::string start = "model " + kFamilies + "gpt2 --tokens 5,3,8,20 ";
    for (const auto& [words, why] :
         {std::pair{"--off 1.4", "--off has head 4; it must be from 0 to 3"},
          {"--off 2.0", "--off has layer 2; it must be from 0 to"},
          {"--off 1", "--off has '1'; a head is its layer and its number"},
          {"--scale 1.0", "--scale has '1.0'; it must be a head and a number"},
          {"--scale 1.0=1e99", "--scale has 1e99; it must be a finite number that float32 holds"},
          {"--off 1.0 --scale 1.0=2", "--scale: head 1.0 is given twice"},
          {"--hide 4", "--hide has token 4; it must be from 0 to 3"},
          {"--hide 1,1", "--hide: token 1 is given twice"},
          {"--patch 0.1", "--patch needs another text"},
          {"--from-tokens 1,2", "--from-tokens needs --patch"},
          {"--patch 0.1 --from-tokens 1,2", "--from-tokens has 2 tokens"},
          {"--patch 0.1 --from-tokens 99,1,1,1", "token 0 has the ID 99"}})
        expect_refused(run_command(scratch, start + words), why);
    expect_refused(run_command(scratch, "model " + kFamilies + "gpt2 --off 1.0"),
                   "--off needs --tokens or --text");
}

TEST(GenerateCommand, goes_on_behind_a_session_as_one_run_would) {
    const Scratch scratch;
    const std::string start = "generate " + kFamilies + "llama2 --ignore-eos ";
    const std::string session = " --session " + (scratch / "s.json").string();
    const CommandRun whole = run_command(scratch, start + "--tokens 3,5,3 --count 8");
    const CommandRun first = run_command(scratch, start + "--tokens 3,5,3 --count 4" + session);
    EXPECT_EQ(first.exit_code, 0) << first.error;
    const CommandRun rest = run_command(scratch, start + "--count 4" + session);
    EXPECT_EQ(first.output.substr(0, first.output.size() - 1) + "," + rest.output, whole.output);
    expect_refused(run_command(scratch, "generate " + kFamilies + "gpt2 --count 1" + session),
                   "the file was made with another model (this one is gpt2 with 24 tokens)");
    write_file(scratch / "s.json", R"({"model": "llama", "vocabulary": 24, "tokens": [3, 24]})");
    expect_refused(run_command(scratch, start + "--count 1" + session),
                   "token ID 24 is not in the model's vocabulary");
    std::filesystem::remove(scratch / "s.json");
    expect_refused(run_command(scratch, start + "--count 1" + session),
                   "which does not exist yet; give a text to begin with");
    EXPECT_FALSE(std::filesystem::exists(scratch / "s.json"));
}

TEST(GenerateCommand, keeps_what_was_made_when_it_is_interrupted) {
    const Scratch scratch;
    const std::string file = (scratch / "s.json").string();
    // Started by a shell in the background it ignores SIGINT, as is the custom: SIGTERM takes the same way.
    const CommandRun run =
        run_shell(scratch, "FOVEA generate " + kFamilies +
                               "llama2 --ignore-eos --tokens 3,5,3 --count 100000 --session " + file +
                               " & pid=$!; sleep 1; kill -TERM $pid; wait $pid");
    EXPECT_EQ(run.exit_code, 128 + SIGTERM) << run.error;
    const std::string kept = read_file(scratch / "s.json");
    const Result<JsonValue> json = parse_json(kept);
    ASSERT_TRUE(json) << kept;
    const size_t printed = size_t(std::count(run.output.begin(), run.output.end(), ',')) + 1;
    EXPECT_EQ((*json)["tokens"].items().size(), 3 + printed);
    EXPECT_TRUE(run.output.ends_with('\n'));
    size_t others = 0;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.folder()))
        others += entry.path().string().find("unfinished") != std::string::npos;
    EXPECT_EQ(others, 0u);
}

}  // namespace
}  // namespace fovea
