// fovea generate: the tokens that a model goes on with, greedy or drawn.
#include "commands.hpp"

#include "arguments.hpp"
#include "model_report.hpp"
#include "output_file.hpp"
#include "standard_streams.hpp"

#include <fovea/chat_template.hpp>
#include <fovea/model/generate.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace fovea::app {
namespace {

constexpr OptionSpec kGenerateOptions[] = {
    {"--text", "TEXT", "a text to begin with, split by the model's own tokenizer"},
    {"--tokens", "N,N,...", "token IDs to begin with instead"},
    {"--chat", "", "--text is a user's message to the model, put into its chat template"},
    {"--system", "TEXT", "a system message before it"},
    {"--count", "N", "most tokens to generate (default 32)"},
    {"--ignore-eos", "", "goes on where the model ends its text"},
    {"--temperature", "T",
     "0 takes the likeliest token (default); above, as the next three need it, one is drawn by "
     "softmax(logits / T)"},
    {"--top-k", "N", "draws from the N likeliest tokens (default 0: from all)"},
    {"--top-p", "P", "draws from the likeliest tokens whose probabilities reach P together (default 1)"},
    {"--min-p", "P", "draws from tokens with at least P times the likeliest one's probability (default 0)"},
    {"--seed", "N", "of the drawing (default 0): each place of the text draws its own number"},
    {"--session", "FILE",
     "keeps the tokens in FILE, those of Ctrl-C too; where it is there, the text goes on after them"},
    {"--precision", "f32|int8-inputs",
     "products with quantized weights (default: f32); int8-inputs is faster and less precise"},
    {"--backend", "auto|cpu|vulkan|reference", "where to compute (default: cpu)"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--threads", "N", "threads to compute on (default: all of the machine)"},
    {"--json", "", "one line of JSON instead of text"},
    {"--help", "", "this text"}};

constexpr uint64_t kMaxSession = uint64_t{64} << 20;  // bytes

// Reads the file of --session: {"model": "llama", "vocabulary": N, "tokens": [...]}.
Result<std::vector<uint32_t>> read_session(const std::string& path, const CheckpointModel& model) {
    std::vector<uint32_t> ids;
    std::error_code code;
    if (!std::filesystem::exists(path, code)) return ids;
    const auto refuse = [&](const std::string& why) {
        return bad("--session", printable_name(path, 400) + ": " + why);
    };
    const uint64_t size = std::filesystem::file_size(path, code);
    if (code || size > kMaxSession) return refuse("the file has more than 64 MB, the limit of a session");
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Result<JsonValue> json = parse_json(text);
    if (!json) return refuse(json.error().text);
    const ModelConfig& f = model.config();
    if ((*json)["model"].text() != f.architecture || (*json)["vocabulary"].number() != double(f.vocabulary))
        return refuse("the file was made with another model (this one is " + f.architecture + " with " +
                      std::to_string(f.vocabulary) + " tokens); choose another --session file");
    for (const JsonValue& token : (*json)["tokens"].items()) {
        const double id = token.number();
        if (!(id >= 0) || id >= double(f.vocabulary) || id != double(uint32_t(id)))
            return refuse("token ID " + printable_name(token.scalar_text(), 40) +
                          " is not in the model's vocabulary");
        ids.push_back(uint32_t(id));
    }
    if (ids.empty()) return refuse("the file has no tokens");
    return ids;
}

Result<void> write_session(const std::string& path, const CheckpointModel& model,
                           const std::vector<uint32_t>& ids) {
    std::string list = "[";
    for (const uint32_t id : ids) list += (list.size() > 1 ? ", " : "") + std::to_string(id);
    JsonObject json;
    json.text("model", model.config().architecture).number("vocabulary", double(model.config().vocabulary));
    return write_text_file(path, json.raw("tokens", list + "]").done() + "\n");
}

struct Wanted {
    GenerationOptions generation;
    FoveaPrecision precision = FOVEA_PRECISION_F32;
};

Result<Wanted> wanted(const Arguments& a) {
    Wanted out;
    GenerationOptions& o = out.generation;
    o.ignore_eos = a.has("--ignore-eos");
    const std::pair<std::string_view, uint64_t*> integers[] = {
        {"--count", &o.count}, {"--seed", &o.sampling.seed}, {"--top-k", &o.sampling.top_k}};
    for (const auto& [option, value] : integers) {
        const Result<uint64_t> given = a.unsigned_integer(option, *value);
        if (!given) return given.error();
        *value = *given;
    }
    const std::pair<std::string_view, double*> numbers[] = {{"--temperature", &o.sampling.temperature},
                                                            {"--top-p", &o.sampling.top_p},
                                                            {"--min-p", &o.sampling.min_p}};
    for (const auto& [option, value] : numbers) {
        const Result<double> given = a.number(option, *value);
        if (!given) return given.error();
        *value = *given;
    }
    for (const std::string_view filter : {"--top-k", "--top-p", "--min-p"})
        if (a.has(filter) && o.sampling.temperature == 0)
            return bad(filter, std::string(filter) +
                                   " needs --temperature above 0: without it the likeliest token is taken");
    if (const Result<void> r = check_generation(o); !r) {
        std::string option = "--" + r.error().field;
        std::replace(option.begin(), option.end(), '_', '-');
        return bad(option, option + r.error().text.substr(r.error().field.size()));
    }
    const std::string_view precision = a.text("--precision");
    if (a.has("--precision") && precision != "f32" && precision != "int8-inputs")
        return bad("--precision", "'" + printable_name(precision, 40) +
                                      "' is not a precision of generate: f32 or int8-inputs");
    if (precision == "int8-inputs") out.precision = FOVEA_PRECISION_INT8_INPUTS;
    return out;
}

Result<void> set_precision(const Arguments& a, FoveaPrecision precision, const CheckpointModel& model,
                           Runner& runner) {
    if (precision == FOVEA_PRECISION_F32) return {};
    const std::vector<StoredWeight>& weights = model.files().weights;
    const auto in_blocks = [](const StoredWeight& w) { return dtype_info(w.type).block.numbers > 1; };
    if (std::none_of(weights.begin(), weights.end(), in_blocks))
        return bad("--precision",
                   "--precision is int8-inputs, which needs quantized weights; the model has none");
    const std::string backend = std::string(a.text("--backend"));
    if (backend == "reference" || runner.properties().backend != FOVEA_BACKEND_CPU)
        return bad("--precision", "--precision is int8-inputs, which needs the CPU's kernels; " +
                                      (backend == "reference" ? backend : runner.name()) +
                                      " is chosen by --backend or --device");
    runner.set_stored_precision(precision);
    return {};
}

// Says which settings of the model's files are not used: those that an option sets, if it is not given.
void tell_settings(const Arguments& a, const ModelConfig& config) {
    constexpr std::pair<std::string_view, const char*> kOptions[] = {{"temperature", "--temperature"},
                                                                     {"temp", "--temperature"},
                                                                     {"do_sample", "--temperature"},
                                                                     {"top_k", "--top-k"},
                                                                     {"top_p", "--top-p"},
                                                                     {"min_p", "--min-p"}};
    for (const std::string& setting : config.generation_settings) {
        constexpr std::string_view kGguf = "general.sampling.";
        std::string_view name = setting;
        if (name.starts_with(kGguf)) name.remove_prefix(kGguf.size());
        name = name.substr(0, name.find(' '));
        const char* option = nullptr;
        for (const auto& [key, sets] : kOptions)
            if (key == name) option = sets;
        if (option && a.has(option)) continue;
        const std::string shown = printable_name(setting, 120);
        if (option)
            std::fprintf(stderr, "fovea: note: the model's files recommend %s, which %s sets\n",
                         shown.c_str(), option);
        else
            std::fprintf(stderr, "fovea: note: the model's files ask for %s, which is not supported\n",
                         shown.c_str());
    }
}

// The text of --text and --system in the model's chat template.
Result<std::string> chat_text(const Arguments& a, const CheckpointModel& model, bool goes_on) {
    if (goes_on)
        return bad("--chat",
                   "--chat cannot be combined with a --session that has tokens; choose another file");
    const Result<ChatTemplate> chat = ChatTemplate::open(model.files());
    if (!chat) return Error{chat.error().code, "--chat", chat.error().text};
    std::vector<ChatMessage> messages;
    if (a.has("--system")) messages.push_back({"system", std::string(a.text("--system"))});
    messages.push_back({"user", std::string(a.text("--text"))});
    Result<std::string> text = chat->render(messages);
    if (!text) return Error{text.error().code, "--chat", text.error().text};
    return text;
}

Result<int> run_generate(const Arguments& a) {
    if (Result<void> r = check_model_words(a); !r) return r.error();
    const std::string session(a.text("--session"));
    if (a.has("--system") && !a.has("--chat"))
        return bad("--system", "--system needs --chat: only a chat has a system message");
    if (a.has("--chat") && !a.has("--text")) return bad("--chat", "--chat needs --text, the user's message");
    if (!a.has("--tokens") && !a.has("--text") && session.empty())
        return bad("--text", "--text is missing; give a text to begin with, or token IDs with --tokens");
    Result<Wanted> want = wanted(a);
    if (!want) return want.error();
    const Result<CheckpointModel> model = CheckpointModel::open(std::string(a.positional()[0]));
    if (!model) return model.error();
    std::vector<uint32_t> all;
    if (!session.empty()) {
        if (Result<void> r = check_writable(session); !r) return r.error();
        Result<std::vector<uint32_t>> kept = read_session(session, *model);
        if (!kept) return kept.error();
        all = std::move(*kept);
    }
    std::optional<TextTokenizer> tokenizer;
    if (a.has("--tokens") || a.has("--text")) {
        TokenOptions how{.special =
                             all.empty()};  // the start token is only at the beginning of the whole text
        Result<std::string> chat = a.has("--chat") ? chat_text(a, *model, !all.empty()) : std::string();
        if (!chat) return chat.error();
        if (a.has("--chat")) how.special = false, how.given = *chat;
        Result<ModelTokens> input = input_tokens(a, *model, how);
        if (!input) return input.error();
        all.insert(all.end(), input->ids.begin(), input->ids.end());
        tokenizer = std::move(input->tokenizer);
    } else if (Result<TextTokenizer> own = TextTokenizer::open(model->files())) {
        tokenizer = std::move(*own);
    }
    if (all.empty())
        return bad("--session", "--session is " + printable_name(session, 400) +
                                    ", which does not exist yet; give a text to begin with");
    const ModelConfig& config = model->config();
    // A session whose text has ended stays so, as it does in one run, unless more text is given.
    const bool had_ended =
        !a.has("--tokens") && !a.has("--text") && Generation::ends(*model, all, want->generation);
    tell_settings(a, config);

    const Result<std::unique_ptr<Runner>> device = open_runner(a);
    if (!device) return device.error();
    if (Result<void> r = set_precision(a, want->precision, *model, **device); !r) return r.error();
    want->generation.decoder.engine = device->get();
    if (Result<void> r = tell_memory(Generation::bytes(*model, all.size(), want->generation)); !r)
        return r.error();
    Result<Generation> generation = Generation::open(*model, all, want->generation);
    if (!generation) {
        Error error = generation.error();
        if (error.field == "count") error.field = "--count";
        return error;
    }
    const std::vector<uint32_t>& made = generation->made();
    TextPrinter printer;
    const bool prints_text = tokenizer && !a.has("--json");
    const auto made_text = [&] {  // the end token is not part of the text
        return tokenizer->decode(std::span(made).first(made.size() - generation->ended()));
    };
    // An interrupt waits for the token that is under way: what was made is whole, and kept.
    const HeldInterrupts held;
    Result<void> result;
    while (!had_ended && !generation->done() && !held.arrived()) {
        const Result<uint32_t> chosen = generation->next();
        if (!chosen) {
            result = chosen.error();
            break;
        }
        if (a.has("--json")) continue;
        // A character may take several tokens: what the new one adds to the bytes of all.
        if (prints_text)
            printer.show(made_text());
        else
            std::printf(made.size() > 1 ? ",%u" : "%u", *chosen);
        std::fflush(stdout);
    }
    if (prints_text) printer.end(made_text());
    all.insert(all.end(), made.begin(), made.end());
    if (!session.empty() && !made.empty())
        if (Result<void> r = write_session(session, *model, all); !r) return r.error();
    if (!result) {
        if (!made.empty() && !a.has("--json")) std::printf("\n");
        return result.error();
    }
    if (a.has("--json")) {
        std::string list;
        for (const uint32_t id : made) list += (list.empty() ? "" : ", ") + std::to_string(id);
        JsonObject json;
        json.raw("tokens", "[" + list + "]").text("attention", generation->reason());
        json.text("device", (*device)->name());
        if (held.arrived()) json.boolean("interrupted", true);
        if (had_ended || generation->ended()) json.boolean("ended", true);
        if (tokenizer) json.text("text", made_text());
        std::printf("%s", json.done().c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
    const auto note = [](const std::string& text) {
        std::fprintf(stderr, "fovea: note: %s\n", text.c_str());
    };
    if (had_ended)
        note("the session's text ends with an end token: give more text, or --ignore-eos to go on");
    if (config.context != 0 && all.size() > config.context)
        note("the text has " + std::to_string(all.size()) +
             " tokens; the model was trained on texts of up to " + std::to_string(config.context));
    return 0;
}

void print_generate_help() {
    std::printf(
        "usage: fovea generate PATH --text TEXT [options]\n\nThe text that a model goes on with as it comes, "
        "or its token IDs by comma, with a KV cache, until the\nmodel ends its text or --count tokens are "
        "there. PATH is as for fovea model. On a terminal, control characters of\nthe text are printed as "
        "\\x1b and the like.\n\n");
    print_options(kGenerateOptions);
}

}  // namespace

int generate_command(Words words) {
#if defined(__GLIBC__)
    // Tensors of a layer come and go: the next layer takes their pages instead of new ones, which the system
    // would clear first.
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
#endif
    return run_command(words, kGenerateOptions, print_generate_help, run_generate);
}

}  // namespace fovea::app
