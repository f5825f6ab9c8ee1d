// fovea generate, and the texts of tokens that fovea model prints: by a model that counts, whose token 38 is
// always followed by token 39. Its tokens 0 to 255 are the bytes, 256 is its end token.
#include "command_run.hpp"

#include <fovea/files/json.hpp>

#include <cmath>
#include <limits>

namespace fovea {
namespace {

using namespace test;

constexpr uint64_t kTokens = 260, kWidth = 264;

Tensor matrix(const std::string& name, uint64_t rows, uint64_t columns, uint64_t shift, float diagonal) {
    std::vector<float> values(rows * columns);
    for (uint64_t row = 0; diagonal != 0 && row < rows; ++row)
        values[row * columns + (row + kTokens - shift) % kTokens] = diagonal;
    return make_tensor(name, {rows, columns}, std::move(values)).value();
}

// The character that GPT-2's vocabulary has for a byte.
std::string byte_character(unsigned byte) {
    const auto plain = [](unsigned b) {
        return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
    };
    unsigned code = byte;
    if (!plain(byte)) {
        code = 256;
        for (unsigned b = 0; b < byte; ++b) code += !plain(b);
    }
    if (code < 0x80) return {char(code)};
    return {char(0xc0 | code >> 6), char(0x80 | (code & 63))};
}

struct Counting {
    std::string config;                          // members of config.json, each with a comma before it
    std::string generation_config;               // the file; empty: none
    float first_logit = std::nanf("no number");  // logit of token 0; NaN: not changed
};

std::string counting_model(const Scratch& scratch, const Counting& how = {}) {
    const std::filesystem::path folder = scratch / "counting";
    std::filesystem::create_directories(folder);
    TensorSet set;
    set.tensors.push_back(matrix("model.embed_tokens.weight", kTokens, kWidth, 0, 1));
    set.tensors.push_back(matrix("lm_head.weight", kTokens, kWidth, 1, 10));
    if (!std::isnan(how.first_logit)) {
        std::vector<float> rows = to_f32(set.tensors[1]).value();
        std::fill_n(rows.begin(), kWidth, how.first_logit);
        set.tensors[1] = make_tensor("lm_head.weight", {kTokens, kWidth}, std::move(rows)).value();
    }
    const std::string layer = "model.layers.0.";
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"})
        set.tensors.push_back(matrix(layer + name + ".weight", kWidth, kWidth, 0, 0));
    for (const char* name : {"mlp.gate_proj", "mlp.up_proj"})
        set.tensors.push_back(matrix(layer + name + ".weight", 4, kWidth, 0, 0));
    set.tensors.push_back(matrix(layer + "mlp.down_proj.weight", kWidth, 4, 0, 0));
    for (const std::string& name :
         {layer + "input_layernorm", layer + "post_attention_layernorm", std::string("model.norm")})
        set.tensors.push_back(make_tensor(name + ".weight", {kWidth}, std::vector<float>(kWidth, 1)).value());
    EXPECT_TRUE(save_safetensors(folder / "model.safetensors", set));
    write_file(
        folder / "config.json",
        R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 264,)"
        R"("intermediate_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 260,)"
        R"("rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 10000.0,)"
        R"("tie_word_embeddings": false)" +
            how.config + "}");
    if (!how.generation_config.empty()) write_file(folder / "generation_config.json", how.generation_config);
    std::string vocabulary;
    for (unsigned byte = 0; byte < 256; ++byte)
        vocabulary += (byte ? ", " : "") + json_string(byte_character(byte)) + ": " + std::to_string(byte);
    write_file(folder / "tokenizer.json",
               R"({"version": "1.0", "added_tokens": [{"id": 256, "content": "<end>", "special": true,)"
               R"("single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],)"
               R"("normalizer": null, "post_processor": null, "pre_tokenizer": {"type": "ByteLevel",)"
               R"("add_prefix_space": false, "trim_offsets": true, "use_regex": false},)"
               R"("decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,)"
               R"("use_regex": false}, "model": {"type": "BPE", "merges": [], "vocab": {)" +
                   vocabulary + "}}}");
    return folder.string() + " ";
}

std::string ids(const JsonValue& json) {
    std::string text;
    for (const JsonValue& one : json["tokens"].items())
        text += (text.empty() ? "" : ",") + std::string(one.number_text());
    return text;
}

JsonValue parsed(const CommandRun& run) {
    EXPECT_EQ(run.exit_code, 0) << run.error;
    const Result<JsonValue> json = parse_json(run.output);
    EXPECT_TRUE(json) << run.output;
    return json ? *json : JsonValue();
}

// From "~" on, bytes 127 to 255, four tokens without a text, and bytes 0 to 126.
constexpr const char* kEveryByte = "--text '~' --count 260 --ignore-eos";

// Bytes that are not valid UTF-8 become U+FFFD, as with Python's errors="replace".
TEST(Generate, json_holds_the_text_that_is_printed_for_every_byte) {
    const Scratch scratch;
    const std::string start = "generate " + counting_model(scratch) + kEveryByte;
    std::string bytes, text;
    for (unsigned n = 127; n < 127 + 256; ++n) {
        bytes += char(n % 256);
        text += n % 256 < 128 ? std::string(1, char(n % 256)) : "\xef\xbf\xbd";
    }
    EXPECT_EQ(run_command(scratch, start).output, bytes + "\n");
    EXPECT_EQ(parsed(run_command(scratch, start + " --json"))["text"].text(), text);
}

TEST(Generate, a_terminal_gets_no_control_character_of_a_vocabulary) {
    if (std::system("script --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no `script` here";
    const Scratch scratch;
    const CommandRun run = run_shell(
        scratch, "script -qec \" FOVEA generate " + counting_model(scratch) + kEveryByte + "\" /dev/null");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    for (const char c : run.output)
        EXPECT_TRUE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\n' || c == '\t' ||
                    c == '\r')
            << int(c);
    for (const char* part : {"\\x7f\\x80", "\\x07\\x08\t", "\\x1b\\x1c", "&'()*", "[\\]"})
        EXPECT_NE(run.output.find(part), std::string::npos) << part << "\n" << run.output;
}

TEST(Generate, tokens_are_shown_by_what_they_decode_to) {
    const Scratch scratch;
    const std::string model = "model " + counting_model(scratch) + "--no-scores --top 1 --text ";
    const struct {
        const char *text, *json, *table;
    } all[] = {{"'\t'", "\n", "\\x0a"},
               {"'\x1a'", "\x1b", "\\x1b"},
               {"'&'", "'", "\\x27"},
               {"'['", "\\", "\\x5c"},
               {"'!'", "\"", "\""},
               {"'\x1f'", " ", " "},
               {"'\xc3\xa9'", "<0xAA>", "<0xAA>"},
               {"'~'", "\x7f", "\\x7f"}};
    for (const auto& one : all) {
        SCOPED_TRACE(one.json);
        EXPECT_EQ(
            parsed(run_command(scratch, model + one.text + " --json"))["next"].items()[0]["text"].text(),
            one.json);
        const CommandRun run = run_command(scratch, model + one.text);
        EXPECT_TRUE(run.output.ends_with("  " + std::string(one.table) + "\n")) << run.output;
    }
    EXPECT_TRUE(run_command(scratch, model + "'\xc3\xa9'")
                    .output.starts_with("2 tokens: 195 '<0xC3>' 169 '<0xA9>'\n"));
    EXPECT_TRUE(run_command(scratch, model + "'<end>'").output.starts_with("1 token: 256 '<end>'\n"));
}

TEST(Generate, ends_where_the_files_say_that_a_text_ends) {
    const std::string rest = "--tokens 250 --count 13 --json";
    const std::string cut = "251,252,253,254,255,256", by_default = cut + ",257,258,259,0,1,2";
    const struct {
        Counting how;
        std::string options, tokens;
    } all[] = {{{}, "", by_default},  // 2 where no file says it, as in transformers' LlamaConfig
               {{R"(, "eos_token_id": 256)", "", NAN}, "", cut},
               {{R"(, "eos_token_id": 256)", "", NAN}, " --ignore-eos", by_default + ",3"},
               {{R"(, "eos_token_id": [300, 256])", "", NAN}, "", cut},
               {{R"(, "eos_token_id": 7)", R"({"eos_token_id": [256, 8]})", NAN}, "", cut},
               {{"", R"({"eos_token_id": 256})", NAN}, "", cut}};
    for (const auto& one : all) {
        SCOPED_TRACE(one.how.config + " " + one.how.generation_config + one.options);
        const Scratch scratch;
        const std::string model = counting_model(scratch, one.how);
        const JsonValue json = parsed(run_command(scratch, "generate " + model + rest + one.options));
        EXPECT_EQ(ids(json), one.tokens);
        EXPECT_EQ(json["ended"].boolean(), one.options.empty());
    }
    // A session's text stays ended, unless it is told to go on or more text is given.
    const Scratch scratch;
    const std::string start = "generate " + counting_model(scratch, {R"(, "eos_token_id": 256)", "", NAN}) +
                              "--session " + (scratch / "s.json").string() + " --count 3 --json";
    EXPECT_EQ(ids(parsed(run_command(scratch, start + " --tokens 254"))), "255,256");
    const CommandRun ended = run_command(scratch, start);
    EXPECT_EQ(ids(parsed(ended)), "");
    EXPECT_NE(ended.error.find("ends with an end token"), std::string::npos) << ended.error;
    EXPECT_EQ(ids(parsed(run_command(scratch, start + " --text a"))), "98,99,100");
}

TEST(Generate, says_where_a_text_outgrows_what_the_model_was_trained_on) {
    for (const auto& [count, said] : {std::pair{15, false}, {16, true}}) {
        const Scratch scratch;
        const CommandRun run = run_command(
            scratch, "generate " + counting_model(scratch, {R"(, "max_position_embeddings": 16)", "", NAN}) +
                         "--tokens 5 --count " + std::to_string(count));
        EXPECT_EQ(run.exit_code, 0);
        EXPECT_EQ(run.error.find("trained on texts of up to 16") != std::string::npos, said) << run.error;
    }
}

TEST(Generate, logits_that_are_not_finite_choose_nothing) {
    const Scratch scratch;
    const std::string model = counting_model(scratch, {"", "", std::numeric_limits<float>::infinity()});
    for (const char* words :
         {"generate M--tokens 3", "generate M--tokens 3 --temperature 1", "generate M--tokens 3 --json",
          "model M--tokens 3", "model M--tokens 3 --json", "model M--tokens 3 --off 0.0"}) {
        SCOPED_TRACE(words);
        const std::string text(words);
        const size_t at = text.find('M');
        expect_refused(run_command(scratch, text.substr(0, at) + model + text.substr(at + 1)),
                       "error: the logit of token ID 0 is ");
    }
    expect_refused(run_command(scratch, "model " + model + "--tokens 3 --out OUT"), "--top 0 writes --out");
    EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    EXPECT_EQ(run_command(scratch, "model " + model + "--tokens 3 --top 0 --no-scores --out OUT").exit_code,
              0);
}

TEST(Generate, int8_inputs_are_a_choice_for_quantized_weights) {
    const Scratch scratch;
    const std::string families = std::string(FOVEA_SOURCES) + "/tests/model/families/";
    const std::string start = "generate " + families + "llama_q8/model.gguf --tokens 5,3,8 --count 8";
    const std::string plain = run_command(scratch, start).output;
    EXPECT_EQ(run_command(scratch, start + " --precision f32").output, plain);
    for (const char* threads : {" --threads 1", " --threads 2", " --backend cpu"})
        EXPECT_EQ(run_command(scratch, start + " --precision int8-inputs" + threads).output, plain);
    expect_refused(run_command(scratch, start + " --precision int8"),
                   "'int8' is not a precision of generate: f32 or int8-inputs");
    expect_refused(run_command(scratch, "generate " + families + "llama2 --tokens 3 --precision int8-inputs"),
                   "--precision is int8-inputs, which needs quantized weights; the model has none");
    // The reference computes in float64 whatever is asked for.
    expect_refused(run_command(scratch, start + " --precision int8-inputs --backend reference"),
                   "which needs the CPU's kernels; reference is chosen by --backend or --device");
}

TEST(Generate, draws_the_same_in_one_run_and_in_several) {
    const Scratch scratch;
    const std::string model = std::string(FOVEA_SOURCES) + "/tests/model/families/phi3";
    const std::string start = "generate " + model + " --ignore-eos --seed 5";
    for (const char* temperature : {"0", "0.8", "4"}) {
        const std::string words = start + " --temperature " + temperature;
        const std::string whole = run_command(scratch, words + " --tokens 1,2,3 --count 9").output;
        for (const int cut : {1, 4, 5, 6, 8}) {
            SCOPED_TRACE(testing::Message() << temperature << ", " << cut);
            const std::string session = " --session " + (scratch / "s.json").string() + " --count ";
            std::filesystem::remove(scratch / "s.json");
            std::string first =
                run_command(scratch, words + " --tokens 1,2,3" + session + std::to_string(cut)).output;
            first.back() = ',';
            EXPECT_EQ(first + run_command(scratch, words + session + std::to_string(9 - cut)).output, whole);
        }
    }
}

// The session file holds the tokens of the whole text, here its bytes.
TEST(Generate, a_chat_is_put_into_the_models_template) {
    const Scratch scratch;
    const std::string model = counting_model(scratch);
    const auto generate = [&](const std::string& words) {
        return run_command(scratch, "generate " + model + words);
    };
    const auto config = [&](const std::string& text) {
        write_file(scratch / "counting/tokenizer_config.json", text);
    };
    const std::string session = "--session " + (scratch / "chat.json").string();
    const std::string ask = "--count 1 --chat --text 'Hi <end>' " + session;
    expect_refused(generate(ask), "has no chat template");
    config(
        R"({"bos_token": {"content": "["}, "eos_token": "]", "chat_template": "{{ bos_token }}{% for m in messages %})"
        R"({{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}A{% endif %}"})");
    const CommandRun run = generate(ask + " --system 'Be <brief>'");
    EXPECT_EQ(run.output, "B\n") << run.error;
    std::string text;
    const JsonValue tokens = (*parse_json(read_file(scratch / "chat.json")))["tokens"];
    for (const JsonValue& token : tokens.items())
        text += token.number() == 256 ? std::string("<end>") : std::string(1, char(token.number()));
    EXPECT_EQ(text, "[system: Be <brief>]user: Hi <end>]AB");

    expect_refused(generate("--chat --text x " + session),
                   "--chat cannot be combined with a --session that has tokens");
    expect_refused(generate("--chat " + session), "--chat needs --text, the user's message");
    expect_refused(generate("--text x --system y"), "--system needs --chat");
    config(R"({"chat_template": "{{ messages | groupby('role') }}"})");
    expect_refused(generate("--chat --text x"), "line 1: the filter 'groupby' is not supported");
    write_file(scratch / "counting/chat_template.jinja", "{{ raise_exception('no chats today') }}");
    expect_refused(generate("--chat --text x"), "rejects the messages: no chats today");
}

TEST(Generate, filters_need_a_temperature_and_settings_name_their_option) {
    const Scratch scratch;
    Counting how;
    how.generation_config =
        R"({"do_sample": true, "temperature": 0.6, "top_p": 0.95, "repetition_penalty": 1.1})";
    const std::string model = counting_model(scratch, how);
    const auto generate = [&](const std::string& words) {
        return run_command(scratch, "generate " + model + "--text a --count 3 " + words);
    };
    const CommandRun run = generate("--temperature 0.7 --top-k 1");
    EXPECT_EQ(run.output, "bcd\n");  // the likeliest token is all that is left
    EXPECT_EQ(run.error,
              "fovea: note: the model's files recommend top_p 0.95, which --top-p sets\n"
              "fovea: note: the model's files ask for repetition_penalty 1.1, which is not supported\n");
    for (const std::string option : {"--top-k 3", "--top-p 0.5", "--min-p 0.1"})
        expect_refused(generate(option), option.substr(0, 7) + " needs --temperature above 0");
    expect_refused(generate("--temperature 1 --top-p 1.5"), "--top-p is 1.5; it must be from 0 to 1");
}

TEST(Generate, words_that_are_no_option_say_how_a_text_is_given) {
    const Scratch scratch;
    const std::string model = counting_model(scratch);
    for (const char* command : {"generate ", "model "}) {
        expect_refused(run_command(scratch, command + model + "'The cat'"),
                       "'The cat' is a second model; give one, and a text with --text");
        expect_refused(run_command(scratch, command + model + "--prompt x"), "is given with --text");
        expect_refused(run_command(scratch, command + model + "--text ''"), "--text has no token");
    }
}

}  // namespace
}  // namespace fovea
