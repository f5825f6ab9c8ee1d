// fovea model: a checkpoint's family and sizes; with tokens its logits, hidden states and weights.
#include "commands.hpp"

#include "arguments.hpp"
#include "model_changes.hpp"
#include "model_report.hpp"
#include "output_file.hpp"
#include "progress.hpp"

#include <fovea/inspect/cache_cost.hpp>
#include <fovea/inspect/directions.hpp>
#include <fovea/inspect/text_corpus.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/tokenizer.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>

namespace fovea::app {
namespace {

constexpr OptionSpec kModelOptions[] = {
    {"--text", "TEXT", "a text to run the model on, split by its own tokenizer"},
    {"--tokens", "N,N,...", "token IDs to run the model on instead"},
    {"--patches", "FILE",
     "a model that reads pictures: a tensor [patches, numbers of a patch] (safetensors, npy), normalised"},
    {"--out", "FILE",
     "with one of these: a safetensors file with logits [L, V], hidden.N [L, E] and layers.N.weights [H, L, "
     "L]"},
    {"--top", "N", "likely next tokens to list, and heads for each score (default 10)"},
    {"--off", "L.H,...",
     "heads that give nothing, as layer and head counted from 0; next tokens are compared with the unchanged "
     "model's"},
    {"--scale", "L.H=S,...", "heads whose contexts are multiplied by numbers; compared likewise"},
    {"--hide", "N,...", "tokens, counted from 0, that no query sees in any layer"},
    {"--patch", "L.H,...", "heads that give what they give in another text of as many tokens"},
    {"--from-text", "TEXT", "that other text"},
    {"--from-tokens", "N,N,...", "or its token IDs"},
    {"--why", "L.H,Q,K",
     "why head L.H attends from token Q to token K: its score as a sum over what wrote to both, the largest "
     "--top entries; --out FILE.csv has all; and what earlier heads gave to it, by the token that they read"},
    {"--logit", "Q[,ID]",
     "what the logit after token Q is made of, of the likeliest token or of ID: parts of the model, what "
     "heads read, neurons, the largest --top of each"},
    {"--directions", "L.H[,N]",
     "without a text: the N (default 3) largest singular directions of head L.H's QK and OV matrices, each "
     "with "
     "the --top tokens at both ends that it reads and writes; positions, rotary ones too, are left out"},
    {"--cache-cost", "",
     "what each KV cache type, plain and rotated, changes in every head's weights and context and in the "
     "next "
     "tokens, on --text, --tokens or a corpus; the --top heads that it costs most"},
    {"--corpus", "FILE",
     "with --cache-cost: texts, one on each line, or .jsonl with a member \"text\" in each line; of each the "
     "first "
     "512 tokens"},
    {"--limit", "D",
     "with --cache-cost: plan the smallest type for each key/value head whose weights diverge by at most D "
     "nats"},
    {"--no-scores", "", "no scores of heads, which take the time of every head's weights"},
    {"--backend", "auto|cpu|vulkan|reference", "where to compute (default: cpu)"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--threads", "N", "threads to compute on (default: all of the machine)"},
    {"--json", "", "one line of JSON instead of text"},
    {"--help", "", "this text"}};

Result<Tensor> named(std::string name, F32Tensor t) {
    return make_tensor(std::move(name), std::move(t.shape), std::move(t.values));
}

Result<void> write_run(ModelRun run, std::string_view path) {
    TensorSet set;
    const auto add = [&](std::string name, F32Tensor t) -> Result<void> {
        Result<Tensor> made = named(std::move(name), std::move(t));
        if (!made) return made.error();
        set.tensors.push_back(std::move(*made));
        return {};
    };
    if (run.logits.rank() == 2)
        if (Result<void> r = add("logits", std::move(run.logits)); !r) return r;
    for (size_t n = 0; n < run.hidden.size(); ++n)
        if (Result<void> r = add("hidden." + std::to_string(n), std::move(run.hidden[n])); !r) return r;
    for (size_t n = 0; n < run.weights.size(); ++n)
        if (Result<void> r = add("layers." + std::to_string(n) + ".weights", std::move(run.weights[n])); !r)
            return r;
    const HeldInterrupts held;
    const Result<uint64_t> written = save_safetensors(std::string(path), set);
    return written ? Result<void>() : Result<void>(written.error());
}

// The text of a token, safe to print; empty without a tokenizer.
std::string piece_of(const TextTokenizer* tokenizer, uint32_t id) {
    return tokenizer ? printable_name(token_text(*tokenizer, id), 60) : std::string();
}

// A model's predictions for one input.
struct Said {
    std::vector<uint32_t> ids;
    ComparedTokens tokens;  // for a model that reads images: the classes
    std::vector<ScoredHead> heads;
    bool classes = false, changed = false;
};

// `unchanged` is empty, or has each token without the changes.
std::string next_json(std::span<const NextToken> next, std::span<const NextToken> unchanged, bool classes,
                      const TextTokenizer* tokenizer) {
    std::string list = "[";
    for (size_t i = 0; i < next.size(); ++i) {
        const NextToken& t = next[i];
        JsonObject one;
        one.number(classes ? "class" : "token", double(t.id));
        if (tokenizer) one.text("text", token_text(*tokenizer, t.id));
        one.number("logit", double(t.logit)).number("probability", t.probability);
        if (!unchanged.empty())
            one.number("unchanged_logit", double(unchanged[i].logit))
                .number("unchanged_probability", unchanged[i].probability);
        list += (list.size() > 1 ? ", " : "") + one.done();
    }
    return list + "]";
}

void print_said(const Said& said, const std::string& device, const TextTokenizer* tokenizer, bool as_json) {
    const std::vector<uint32_t>& ids = said.ids;
    const ComparedTokens& of = said.tokens;
    const bool classes = said.classes, changed = said.changed;
    if (as_json) {
        std::string tokens = "[";
        for (const uint32_t id : ids) tokens += (tokens.size() > 1 ? ", " : "") + std::to_string(id);
        JsonObject all;
        if (!classes) all.raw("tokens", tokens + "]");
        all.raw(classes ? "classes" : "next", next_json(of.next, of.unchanged, classes, tokenizer));
        if (changed) all.raw("unchanged", next_json(of.before, {}, classes, tokenizer));
        all.text("device", device);
        if (!said.heads.empty()) all.raw("heads", scores_json(said.heads));
        std::printf("%s\n", all.done().c_str());
        return;
    }
    if (tokenizer) {
        std::printf("%zu token%s:", ids.size(), ids.size() == 1 ? "" : "s");
        for (const uint32_t id : ids) std::printf(" %u '%s'", id, piece_of(tokenizer, id).c_str());
        std::printf("\n");
    }
    std::printf("%8s  %-10s  %s%s\n", classes ? "class" : "next", "logit", "probability",
                changed ? "  unchanged" : "");
    for (size_t i = 0; i < of.next.size(); ++i) {
        const NextToken& t = of.next[i];
        std::printf("%8u  %-10.5g  %.4f", t.id, double(t.logit), t.probability);
        if (changed) std::printf("       %.4f%s", of.unchanged[i].probability, tokenizer ? "   " : "");
        std::printf("%s%s\n", tokenizer ? "  " : "", piece_of(tokenizer, t.id).c_str());
    }
}

// The one tensor of a file, or the one that is called so: what enters the model's first block.
Result<F32Tensor> embedded_patches(const CheckpointModel& model, std::string_view path) {
    const Result<TensorSet> file = load_tensors(std::filesystem::path(path));
    if (!file) return file.error();
    const Tensor* tensor = file->tensors.size() == 1 ? &file->tensors[0] : file->find("patches");
    if (!tensor)
        return bad("--patches", printable_name(path, 400) + " has " + std::to_string(file->tensors.size()) +
                                    " tensors; one of them must be named 'patches', or be the only one");
    Result<std::vector<float>> values = to_f32(*tensor);
    if (!values) return values.error();
    return model.embed_patches(F32Tensor(tensor->shape, std::move(*values)));
}

// --why: prints, and writes to --out, the writers of one score instead of what the model says next.
Result<int> tell_why(const CheckpointModel& model, const Arguments& a, const ModelTokens& input,
                     const ModelRunOptions& options, size_t top) {
    const Result<LayerCell> cell = why_cell(a, model, input.ids.size());
    if (!cell) return cell.error();
    const Result<ScoreWriters> of = score_writers(model, input.ids, *cell, options, true);
    if (!of) return of.error();
    const TextTokenizer* const tokenizer = input.tokenizer ? &*input.tokenizer : nullptr;
    const TokenAt token = [&](uint64_t position) { return piece_of(tokenizer, input.ids[position]); };
    if (const std::string_view out = a.text("--out"); !out.empty())
        if (Result<void> r = write_text_file(out, writers_csv(*of, of->matrix.size(), token)); !r)
            return r.error();
    const std::string text =
        a.has("--json") ? writers_json(*of, top, token) + "\n" : writers_text(*of, top, token);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

// --logit: prints what a logit is made of instead of what the model says next.
Result<int> tell_logit(const CheckpointModel& model, const Arguments& a, const ModelTokens& input,
                       const ModelRunOptions& options, size_t top) {
    const Result<AskedLogit> asked = asked_logit(a, input.ids.size());
    if (!asked) return asked.error();
    const Result<LogitWriters> of = logit_writers(model, input.ids, asked->position, asked->token, options);
    if (!of) return of.error();
    const TextTokenizer* const tokenizer = input.tokenizer ? &*input.tokenizer : nullptr;
    const TokenAt token = [&](uint64_t position) { return piece_of(tokenizer, input.ids[position]); };
    const std::string text = a.has("--json") ? logit_json(*of, top, token) + "\n"
                                             : logit_text(*of, top, token, piece_of(tokenizer, of->token));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

// --directions: what a head reads and writes in any text.
Result<int> tell_directions(const CheckpointModel& model, const Arguments& a) {
    if (const std::string_view given = a.first_of({"--text", "--tokens", "--patches"}); !given.empty())
        return bad("--directions", "--directions cannot be combined with " + std::string(given) +
                                       "; a head's directions are the same for every text");
    const Result<AskedDirections> asked = asked_directions(a, model);
    if (!asked) return asked.error();
    const Result<uint64_t> top = a.unsigned_integer("--top", 10);
    if (!top) return top.error();
    const Result<HeadDirections> of =
        head_directions(model, asked->layer, asked->head, asked->count, size_t(*top));
    if (!of) return of.error();
    // Without a tokenizer a token is its ID.
    const Result<TextTokenizer> tokenizer = TextTokenizer::open(model.files());
    const bool named = tokenizer && model.config().patches == 0;
    const std::string text =
        a.has("--json")
            ? directions_json(*of) + "\n"
            : directions_text(*of, [&](uint32_t id) { return piece_of(named ? &*tokenizer : nullptr, id); });
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

// The texts of --cache-cost, no longer than the model takes.
Result<std::vector<std::vector<uint32_t>>> cost_texts(const CheckpointModel& model, const Arguments& a) {
    std::vector<std::vector<uint32_t>> texts;
    if (!a.has("--corpus")) {
        Result<ModelTokens> input = input_tokens(a, model);
        if (!input) return input.error();
        texts.push_back(std::move(input->ids));
        return texts;
    }
    const Result<TextCorpus> corpus = TextCorpus::open(std::filesystem::path(a.text("--corpus")), 0);
    if (!corpus) return corpus.error();
    const Result<TextTokenizer> tokenizer = TextTokenizer::open(model.files());
    if (!tokenizer) return tokenizer.error();
    constexpr uint64_t kLength = 512;
    const uint64_t context = model.config().context, length = context ? std::min(context, kLength) : kLength;
    for (size_t n = 0; n < corpus->size(); ++n) {
        const Result<std::string> text = corpus->text(n);
        if (!text) return text.error();
        Result<std::vector<uint32_t>> ids = tokenizer->encode(*text);
        if (!ids) return ids.error();
        ids->resize(std::min<size_t>(ids->size(), length));
        texts.push_back(std::move(*ids));
    }
    return texts;
}

// --cache-cost: prints what KV cache types cost instead of what the model says next.
Result<int> tell_cache_cost(const CheckpointModel& model, const Arguments& a) {
    const std::string_view other =
        a.first_of({"--patches", "--out", "--off", "--scale", "--hide", "--patch", "--from-text",
                    "--from-tokens", "--why", "--logit", "--directions", "--no-scores"});
    if (!other.empty())
        return bad("--cache-cost",
                   "--cache-cost cannot be combined with " + std::string(other) + "; leave it out");
    if (const std::string_view text = a.first_of({"--text", "--tokens"}); a.has("--corpus") != text.empty())
        return bad(text.empty() ? "--cache-cost" : "--corpus",
                   text.empty()
                       ? "--cache-cost needs --corpus, --text or --tokens"
                       : "--corpus cannot be combined with " + std::string(text) + "; give one of them");
    const Result<uint64_t> top = a.unsigned_integer("--top", 10);
    if (!top) return top.error();
    CacheCostOptions options;
    if (a.has("--limit")) {
        const Result<double> limit = a.number("--limit", 0);
        if (!limit) return limit.error();
        if (!(*limit >= 0))
            return bad("--limit", "--limit is " + std::string(a.text("--limit")) + "; it must be at least 0");
        options.limit = *limit;
    }
    const Result<std::vector<std::vector<uint32_t>>> texts = cost_texts(model, a);
    if (!texts) return texts.error();
    size_t longest = 0;
    for (const std::vector<uint32_t>& ids : *texts) longest = std::max(longest, ids.size());
    if (longest < 2) return bad("--cache-cost", "--cache-cost needs a text of at least 2 tokens");
    if (Result<void> r = tell_memory(cache_costs_bytes(model, longest)); !r) return r.error();
    const Result<std::unique_ptr<Runner>> device = open_runner(a);
    if (!device) return device.error();
    Progress progress("running the model");
    options.trace.engine = device->get();
    if (names_device(a)) options.trace.arithmetic = Arithmetic::engine;
    options.progress = [&](double done) { return progress(done); };
    const Result<CacheCosts> costs = cache_costs(model, *texts, options);
    if (!costs) return costs.error();
    const std::string text =
        a.has("--json") ? cache_costs_json(*costs) + "\n" : cache_costs_text(*costs, size_t(*top));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

Result<int> run_input(const CheckpointModel& model, const Arguments& a) {
    const bool classes = a.has("--patches");
    if (classes && (a.has("--tokens") || a.has("--text")))
        return bad("--patches", "--patches cannot be combined with --text or --tokens; give one of them");
    ModelRunOptions options;
    Result<ModelTokens> input = ModelTokens();
    if (classes) {
        Result<F32Tensor> entering = embedded_patches(model, a.text("--patches"));
        if (!entering) return entering.error();
        options.entering = std::move(*entering);
        // Each entering row gets its own ID, so that no head can attend to another of the same kind.
        input->ids.resize(options.entering.rows());
        std::iota(input->ids.begin(), input->ids.end(), 0u);
    } else {
        input = input_tokens(a, model);
    }
    if (!input) return input.error();
    const std::vector<uint32_t>& ids = input->ids;
    const TextTokenizer* const tokenizer = input->tokenizer ? &*input->tokenizer : nullptr;
    const Result<uint64_t> top = a.unsigned_integer("--top", 10);
    if (!top) return top.error();
    const std::string_view out = a.text("--out");
    const bool why = a.has("--why"), logit = a.has("--logit"), asks = why || logit;
    if (logit && (why || !out.empty()))
        return bad("--logit", std::string("--logit cannot be combined with ") + (why ? "--why" : "--out") +
                                  "; give one of them");
    std::vector<std::filesystem::path> inputs = files_of(model.files());
    inputs.emplace_back(a.text("--patches"));
    if (!out.empty())
        if (Result<void> r = check_writable(out, why ? ".csv" : ".safetensors", inputs); !r) return r.error();
    const Result<std::unique_ptr<Runner>> device = open_runner(a);
    if (!device) return device.error();
    Runner& engine = **device;
    Progress progress("running the model");
    options.trace.engine = &engine;
    // Whoever names a device wants its kernels, not this thread's loops for small models.
    if (names_device(a)) options.trace.arithmetic = Arithmetic::engine;
    options.with_hidden = options.with_weights = !out.empty() && !asks;
    options.progress = [&](double done) { return progress(done); };
    Said said;
    said.classes = classes;
    const bool scores = !a.has("--no-scores") && !asks;
    if (scores)
        options.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
            for (uint32_t head = 0; head < trace.heads(); ++head) {
                const Result<F32Tensor> weights = trace.stage(StageId::weights, head);
                if (!weights) return weights.error();
                said.heads.push_back({layer, head, token_scores(weights->values, ids)});
            }
            return {};
        };
    // A trace computes the scores of one head at a time, in five matrices.
    const uint64_t bytes = run_model_bytes(model, ids.size(), options) +
                           (asks || (scores && out.empty()) ? ids.size() * ids.size() * 20 : 0);
    if (Result<void> r = tell_memory(bytes); !r) return r.error();
    // The picture's own row comes first, the token that says the next one last.
    const auto logits_of = [&](const ModelRun& run) -> std::span<const float> {
        if (run.logits.rank() != 2) return {};
        return run.logits.row(classes ? 0 : run.logits.rows() - 1);
    };
    Result<ModelRun> unchanged = ModelRun();
    said.changed = has_changes(a);
    if (said.changed) {
        if (classes)
            return bad("--patches",
                       "--patches cannot be combined with changes of the model; give --text or --tokens");
        Result<RunChanges> changes = model_changes(a, model, ids.size(), options);
        if (!changes) return changes.error();
        if (!asks) {
            ModelRunOptions plain;
            plain.trace = options.trace, plain.progress = options.progress;
            unchanged = run_model(model, ids, plain);
            if (!unchanged) return unchanged.error();
        }
        options.changes = std::move(*changes);
    }
    if (why) return tell_why(model, a, *input, options, size_t(*top));
    if (logit) return tell_logit(model, a, *input, options, size_t(*top));
    Result<ModelRun> run = run_model(model, ids, options);
    if (!run) return run.error();
    Result<ComparedTokens> tokens = compared_tokens(logits_of(*run), logits_of(*unchanged), size_t(*top));
    if (!tokens)
        return Error{tokens.error().code, tokens.error().field,
                     tokens.error().text + (out.empty() ? "" : "; --top 0 writes --out without the list")};
    said.tokens = std::move(*tokens);
    said.ids = ids;
    if (!out.empty())
        if (Result<void> r = write_run(std::move(*run), out); !r) return r.error();
    if (!model.has_unembedding())
        std::fprintf(stderr, "fovea: note: the files hold no unembedding, so that there are no logits\n");
    else
        print_said(said, engine.name(), tokenizer, a.has("--json"));
    if (!said.heads.empty() && !a.has("--json"))
        std::printf("\nheads, as layer.head and the mean weight on\n%s",
                    scores_text(said.heads, size_t(*top)).c_str());
    return 0;
}

Result<int> run_model_command(const Arguments& a) {
    if (Result<void> r = check_model_words(a); !r) return r.error();
    const bool directions = a.has("--directions"), cost = a.has("--cache-cost");
    if (const std::string_view of = a.first_of({"--corpus", "--limit"}); !cost && !of.empty())
        return bad(std::string(of), std::string(of) + " needs --cache-cost");
    for (const std::string_view option :
         {"--out", "--top", "--why", "--logit", "--threads", "--backend", "--device", "--no-scores", "--off",
          "--scale", "--hide", "--patch", "--from-text", "--from-tokens"})
        if (a.has(option) && !cost && !(directions && option == "--top") && !a.has("--tokens") &&
            !a.has("--text") && !a.has("--patches"))
            return bad(
                std::string(option),
                std::string(option) + " needs --tokens or --text: without them the model does not run");
    const Result<CheckpointModel> model = CheckpointModel::open(std::string(a.positional()[0]));
    if (!model) return model.error();
    if (cost) return tell_cache_cost(*model, a);
    if (directions) return tell_directions(*model, a);
    if (a.has("--tokens") || a.has("--text") || a.has("--patches")) return run_input(*model, a);
    const std::string text = a.has("--json") ? model_json(*model) + "\n" : model_text(*model);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
}

void print_model_help() {
    std::printf(
        "usage: fovea model PATH [options]\n\nWhat a model is: family, sizes, types of its weights, what is "
        "missing. PATH is a folder with config.json and\nsafetensors (Hugging Face), a .gguf file, or one of "
        "the library's models: %s.\nWith --text or --tokens it runs and lists the likely next tokens, and "
        "which heads look at the token before, at the\nfirst one, at earlier places of the same token, and "
        "after those.\n\nFamilies: %s.\n\n",
        known_learned_tasks().c_str(), known_families().c_str());
    print_options(kModelOptions);
}

}  // namespace

int model_command(Words words) {
    return run_command(words, kModelOptions, print_model_help, run_model_command);
}

}  // namespace fovea::app
