// fovea generate: the tokens that a model goes on with, greedy or drawn.
#include "generate_command.hpp"

#include "arguments.hpp"
#include "model_report.hpp"

#include <fovea/model/generate.hpp>
#include <fovea/thread_pool.hpp>

#include <cstdio>

namespace fovea::app {
namespace {

constexpr OptionSpec kOptions[] = {
    {"--text", "TEXT", "a text to begin with, split by the model's own tokenizer"},
    {"--tokens", "N,N,...", "token numbers to begin with instead"},
    {"--count", "N", "tokens to generate (default 32)"},
    {"--temperature", "T",
     "0 takes the likeliest token (default); above, one is drawn by softmax(logits / T)"},
    {"--seed", "N", "of the drawing (default 0)"},
    {"--threads", "N", "threads to compute on (default: all of the machine)"},
    {"--json", "", "one line of JSON instead of text"},
    {"--help", "", "this text"}};

constexpr uint64_t kMostCount = 1'000'000;

Error bad(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Result<int> run(const Arguments& a) {
    if (a.positional().size() != 1)
        return bad("PATH", "give one model: a folder with config.json and safetensors, or a .gguf file");
    if (!a.has("--tokens") && !a.has("--text"))
        return bad("--text", "give a text, or token numbers with --tokens, to begin with");
    const Result<uint64_t> count = a.unsigned_integer("--count", 32), seed = a.unsigned_integer("--seed", 0);
    if (!count) return count.error();
    if (!seed) return seed.error();
    if (*count < 1 || *count > kMostCount)
        return bad("--count", "give a number of tokens from 1 to " + std::to_string(kMostCount));
    const Result<double> temperature = a.number("--temperature", 0);
    if (!temperature) return temperature.error();
    if (!(*temperature >= 0) || *temperature > 1000)
        return bad("--temperature", "give a temperature from 0 to 1000");
    const Result<uint32_t> threads = thread_count(a);
    if (!threads) return threads.error();
    const Result<CheckpointModel> model = CheckpointModel::open(std::string(a.positional()[0]));
    if (!model) return model.error();
    const Result<ModelTokens> input = input_tokens(a, *model);
    if (!input) return input.error();

    ThreadPool pool(*threads);
    const FoveaParallel parallel = pool.parallel();
    const std::unique_ptr<EngineRunner> engine = make_cpu_runner(&parallel, parallel.worker_count);
    DecoderOptions options;
    options.engine = engine.get();
    // The last token is only chosen, and not run.
    const uint64_t capacity = input->ids.size() + *count - 1;
    const uint64_t bytes = Decoder::bytes(*model, capacity, options);
    if (bytes > uint64_t{1} << 30)
        std::fprintf(stderr, "fovea: note: this takes about %s of memory\n", bytes_text(bytes).c_str());
    Result<Decoder> decoder = Decoder::open(*model, capacity, options);
    if (!decoder) return decoder.error();
    Sampler sampler(*temperature, *seed);
    std::string list;
    size_t told = 0;  // bytes of text that are printed
    std::vector<uint32_t> next = input->ids, made;
    for (uint64_t n = 0; n < *count; ++n) {
        const Result<std::vector<float>> logits = decoder->run(next);
        if (!logits) return logits.error();
        next = {sampler.choose(*logits)};
        made.push_back(next[0]);
        const std::string number = std::to_string(next[0]);
        list += (n ? ", " : "") + number;
        if (a.has("--json")) continue;
        if (input->tokenizer) {
            // A character may take several tokens: what the new one adds to the bytes of all.
            const std::string all = input->tokenizer->decode(made);
            std::fwrite(all.data() + told, 1, all.size() - told, stdout);
            told = all.size();
        } else {
            std::printf(n ? ",%s" : "%s", number.c_str());
        }
        std::fflush(stdout);
    }
    if (a.has("--json")) {
        JsonObject json;
        json.raw("tokens", "[" + list + "]").text("attention", decoder->reason());
        if (input->tokenizer) json.text("text", printable_name(input->tokenizer->decode(made), 1u << 20));
        std::printf("%s\n", json.done().c_str());
    } else {
        std::printf("\n");
    }
    return 0;
}

void print_help() {
    std::printf(
        "fovea generate PATH --tokens N,N,... [OPTIONS]\n\nThe tokens that a model goes on with, by comma as "
        "they come, "
        "on the CPU with a cache of keys and values. PATH is as\nfor fovea model.\n\n");
    print_options(kOptions);
}

}  // namespace

int generate_command(Words words) { return run_command(words, kOptions, print_help, run); }

}  // namespace fovea::app
