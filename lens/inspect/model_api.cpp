// The C boundary of models, <fovea/fovea_model.h>, over <fovea/inspect/kept_run.hpp>, <fovea/tokenizer.hpp>
// and <fovea/model/generate.hpp>.
#include "problem/abi_struct.hpp"
#include "runtime/c_boundary.hpp"

#include <fovea/fovea_model.h>
#include <fovea/inspect/cache_cost.hpp>
#include <fovea/inspect/kept_run.hpp>
#include <fovea/model/device_runner.hpp>
#include <fovea/model/generate.hpp>
#include <fovea/thread_pool.hpp>
#include <fovea/tokenizer.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

#include "inspect/made_text.hpp"

namespace fovea {
FOVEA_FIELDS(FoveaModelInfo, struct_size, has_tokenizer, has_logits, end_token_count, layers, width, heads,
             kv_heads, head_width, vocabulary, context, end_tokens, family, device);
FOVEA_FIELDS(FoveaModelChanges, struct_size, head_count, patch_count, masked_count, heads, patches,
             masked_tokens, hook, user);
FOVEA_FIELDS(FoveaModelTensor, struct_size, rank, data, shape);
FOVEA_FIELDS(FoveaGenerationDesc, struct_size, ignore_eos, count, top_k, seed, temperature, top_p, min_p);
}  // namespace fovea

using namespace fovea;

namespace {

// An open model, shared with its runs and generations.
struct Opened {
    TextModel model;
    std::unique_ptr<Runner> runner;
    Arithmetic arithmetic;
    std::string device;
    std::recursive_mutex mutex;  // held while the runner is used; a hook runs in the middle of that
};

}  // namespace

struct FoveaModel_T {
    std::shared_ptr<Opened> opened;
};
struct FoveaModelRun_T {
    std::vector<std::string> names;
    std::vector<F32Tensor> tensors;
};
struct FoveaGeneration_T {
    std::shared_ptr<Opened> opened;
    Generation text;
    bool failed = false;
};

namespace {

Result<std::shared_ptr<Opened>> open_model(const char* path, const EngineOptions& options) {
    Result<TextModel> model = open_text_model(std::filesystem::u8path(path));
    if (!model) return model.error();
    auto opened = std::make_shared<Opened>(std::move(*model));
    if (options.backend == BackendChoice::cpu && options.device < 0 && options.device_name.empty()) {
        const uint32_t threads =
            options.cpu_threads ? options.cpu_threads : std::thread::hardware_concurrency();
        opened->arithmetic = Arithmetic::by_size;
        opened->runner =
            make_cpu_runner(std::make_unique<ThreadPool>(std::max(1u, threads), ThreadPool::kBetweenCalls));
    } else {
        Result<std::unique_ptr<DeviceRunner>> device = DeviceRunner::open(options);
        if (!device) return device.error();
        opened->arithmetic = Arithmetic::engine;
        opened->runner = std::move(*device);
    }
    opened->device = opened->runner->name();
    return opened;
}

Result<const TextTokenizer*> tokenizer_of(const Opened& opened) {
    if (opened.model.tokenizer) return &*opened.model.tokenizer;
    return Error{FOVEA_UNSUPPORTED, "text", opened.model.why_no_text + "; give token IDs"};
}

// A table of the caller's that may be null only without elements.
template <class T>
Result<std::span<const T>> table(const T* data, uint64_t count, const char* name) {
    if (!data && count != 0) return refused(name, std::string(name) + " is null");
    return std::span(data, size_t(count));
}

Result<void> read_changes(const FoveaModelChanges& from, const ModelConfig& f, ModelRunOptions& to) {
    const auto heads = table(from.heads, from.head_count, "heads");
    if (!heads) return heads.error();
    for (const FoveaHeadScale& one : *heads) {
        const std::string name = std::to_string(one.layer) + "." + std::to_string(one.head);
        if (one.layer >= f.layers || one.head >= f.heads)
            return refused("heads", "heads has " + name + "; the model has layers 0 to " +
                                        std::to_string(f.layers - 1) + " and heads 0 to " +
                                        std::to_string(f.heads - 1));
        if (!(one.scale - one.scale == 0))
            return refused("heads",
                           "the scale of head " + name + " is not finite; it must be a finite value");
        to.changes.scale_head(one.layer, one.head, one.scale);
    }
    const auto masked = table(from.masked_tokens, from.masked_count, "masked_tokens");
    if (!masked) return masked.error();
    to.changes.hidden_tokens.assign(masked->begin(), masked->end());
    const auto patches = table(from.patches, from.patch_count, "patches");
    if (!patches) return patches.error();
    for (const FoveaModelPatch& one : *patches) {
        // A size that differs is rejected with the model's own by the run; these bound what is read before.
        const bool is_hidden = one.head == FOVEA_HIDDEN;
        const uint64_t columns = is_hidden ? f.width : f.head_width;
        if (!one.data) return refused("patches", "patches has an element whose data is null");
        if (one.columns != columns)
            return refused("patches", "a patch of layer " + std::to_string(one.layer) + " has " +
                                          std::to_string(one.columns) + " columns; it must have " +
                                          std::to_string(columns));
        if (one.rows > UINT32_MAX)
            return refused("patches", "a patch has " + std::to_string(one.rows) +
                                          " rows; it must have one for each token");
        F32Tensor rows({one.rows, columns}, {one.data, one.data + one.rows * columns});
        if (is_hidden)
            to.changes.hidden.push_back({one.layer, std::move(rows)});
        else
            to.changes.patches.push_back({one.layer, one.head, std::move(rows)});
    }
    if (from.hook)
        to.on_hidden = [from](uint64_t layer, F32Tensor& hidden) -> Result<void> {
            if (from.hook(from.user, uint32_t(layer), hidden.values.data(), hidden.rows(), hidden.columns()))
                return {};
            return Error{FOVEA_CANCELLED, "hook",
                         "the hook ended the run before layer " + std::to_string(layer)};
        };
    return {};
}

std::vector<std::string> names_of(std::string_view keep) {
    std::vector<std::string> names;
    while (!keep.empty()) {
        const size_t end = std::min(keep.find(','), keep.size());
        names.emplace_back(keep.substr(0, end));
        keep.remove_prefix(std::min(end + 1, keep.size()));
    }
    return names;
}

}  // namespace

FoveaResult foveaOpenModel(const char* path, const FoveaEngineOptions* engine, FoveaModel* out,
                           FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    if (!path) return null_refused(diag, "path");
    return without_exceptions(diag, [&]() -> FoveaResult {
        EngineOptions options;
        options.backend = BackendChoice::cpu;
        if (engine)
            if (FoveaResult r = read_options(engine, options, diag); r != FOVEA_OK) return r;
        Result<std::shared_ptr<Opened>> opened = open_model(path, options);
        if (!opened) return fail_with(diag, opened.error());
        *out = new FoveaModel_T{std::move(*opened)};
        return FOVEA_OK;
    });
}

void foveaCloseModel(FoveaModel model) { delete model; }

FoveaResult foveaGetModelInfo(FoveaModel model, FoveaModelInfo* info, FoveaDiag* diag) {
    if (!model) return null_refused(diag, "model");
    const Opened& opened = *model->opened;
    const ModelConfig& f = opened.model.weights.config();
    FoveaModelInfo made = foveaModelInfo();
    made.has_tokenizer = opened.model.tokenizer.has_value();
    made.has_logits = opened.model.weights.has_unembedding();
    made.layers = f.layers, made.width = f.width, made.heads = f.heads, made.kv_heads = f.kv_heads;
    made.head_width = f.head_width, made.vocabulary = f.vocabulary, made.context = f.context;
    made.end_tokens = f.end_tokens.data(), made.end_token_count = uint32_t(f.end_tokens.size());
    made.family = f.family.c_str(), made.device = opened.device.c_str();
    return write_struct(made, info, "info", diag);
}

FoveaResult foveaModelTokens(FoveaModel model, const char* text, size_t text_bytes, uint32_t special,
                             uint32_t* tokens, size_t capacity, size_t* count, FoveaDiag* diag) {
    if (!model) return null_refused(diag, "model");
    if (!text && text_bytes != 0) return null_refused(diag, "text");
    if (!tokens && capacity != 0) return null_refused(diag, "tokens");
    if (!count) return null_refused(diag, "count");
    *count = 0;
    if (special > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "special", "special is %u; it must be 0 or 1", special);
    return without_exceptions(diag, [&]() -> FoveaResult {
        const Result<const TextTokenizer*> tokenizer = tokenizer_of(*model->opened);
        if (!tokenizer) return fail_with(diag, tokenizer.error());
        const auto ids = (*tokenizer)->encode(std::string_view(text, text_bytes), special != 0);
        if (!ids) return fail_with(diag, ids.error());
        std::copy_n(ids->begin(), std::min(ids->size(), capacity), tokens);
        *count = ids->size();
        return FOVEA_OK;
    });
}

FoveaResult foveaModelText(FoveaModel model, const uint32_t* tokens, size_t count, FoveaText* out,
                           FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!model) return null_refused(diag, "model");
    if (!tokens && count != 0) return null_refused(diag, "tokens");
    return make_text(out, diag, [&]() -> Result<std::string> {
        const Result<const TextTokenizer*> tokenizer = tokenizer_of(*model->opened);
        if (!tokenizer) return tokenizer.error();
        return (*tokenizer)->decode(std::span(tokens, count));
    });
}

FoveaResult foveaRunModel(FoveaModel model, const uint32_t* tokens, size_t count, const char* keep,
                          const FoveaModelChanges* given, FoveaModelRun* out, FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    if (!model) return null_refused(diag, "model");
    if (!tokens && count != 0) return null_refused(diag, "tokens");
    if (!keep) return null_refused(diag, "keep");
    FoveaModelChanges changes = foveaModelChanges();
    if (given)
        if (FoveaResult r = read_struct(given, changes, "changes", diag); r != FOVEA_OK) return r;
    return without_exceptions(diag, [&]() -> FoveaResult {
        Opened& opened = *model->opened;
        const CheckpointModel& weights = opened.model.weights;
        ModelRunOptions options;
        options.trace.arithmetic = opened.arithmetic, options.trace.engine = opened.runner.get();
        if (Result<void> r = read_changes(changes, weights.config(), options); !r)
            return fail_with(diag, r.error());
        auto run = std::make_unique<FoveaModelRun_T>();
        run->names = names_of(keep);
        const std::lock_guard lock(opened.mutex);
        Result<std::vector<F32Tensor>> kept =
            run_keeping(weights, std::span(tokens, count), run->names, std::move(options));
        if (!kept) return fail_with(diag, kept.error());
        run->tensors = std::move(*kept);
        *out = run.release();
        return FOVEA_OK;
    });
}

void foveaDestroyModelRun(FoveaModelRun run) { delete run; }

FoveaResult foveaRunTensor(FoveaModelRun run, const char* name, FoveaModelTensor* tensor, FoveaDiag* diag) {
    if (!run) return null_refused(diag, "run");
    if (!name) return null_refused(diag, "name");
    return without_exceptions(diag, [&]() -> FoveaResult {
        const auto at = std::find(run->names.begin(), run->names.end(), name);
        if (at == run->names.end()) {
            std::string kept;
            for (const std::string& one : run->names) kept += (kept.empty() ? "" : ", ") + one;
            return fail(diag, FOVEA_INVALID_ARGUMENT, "name", "'%.60s' was not kept; the run kept %s", name,
                        kept.empty() ? "nothing" : kept.c_str());
        }
        const F32Tensor& kept = run->tensors[size_t(at - run->names.begin())];
        FoveaModelTensor made = foveaModelTensor();
        made.rank = uint32_t(kept.rank());
        made.data = kept.values.data();
        std::copy(kept.shape.begin(), kept.shape.end(), made.shape);
        return write_struct(made, tensor, "tensor", diag);
    });
}

FoveaResult foveaModelCacheCosts(FoveaModel model, const uint32_t* tokens, const size_t* counts,
                                 size_t text_count, const double* limit, FoveaText* out, FoveaDiag* diag) {
    if (out) *out = nullptr;
    if (!model) return null_refused(diag, "model");
    if (!counts && text_count != 0) return null_refused(diag, "counts");
    return make_text(out, diag, [&]() -> Result<std::string> {
        Opened& opened = *model->opened;
        std::vector<std::vector<uint32_t>> texts;
        size_t first = 0, longest = 0;
        for (size_t n = 0; n < text_count; ++n) {
            if (!tokens && counts[n] != 0) return refused("tokens", "tokens is null");
            texts.emplace_back(tokens + first, tokens + first + counts[n]);
            first += counts[n], longest = std::max(longest, counts[n]);
        }
        CacheCostOptions options;
        options.trace.arithmetic = opened.arithmetic, options.trace.engine = opened.runner.get();
        if (limit) options.limit = *limit;
        if (Result<void> r =
                check_memory(cache_costs_bytes(opened.model.weights, longest), "give shorter texts");
            !r)
            return r.error();
        const std::lock_guard lock(opened.mutex);
        const Result<CacheCosts> costs = cache_costs(opened.model.weights, texts, options);
        if (!costs) return costs.error();
        return cache_costs_json(*costs);
    });
}

FoveaResult foveaStartGeneration(FoveaModel model, const uint32_t* tokens, size_t count,
                                 const FoveaGenerationDesc* given, FoveaGeneration* out, FoveaDiag* diag) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    if (!model) return null_refused(diag, "model");
    if (!tokens && count != 0) return null_refused(diag, "tokens");
    FoveaGenerationDesc desc = foveaGenerationDesc();
    if (given)
        if (FoveaResult r = read_struct(given, desc, "desc", diag); r != FOVEA_OK) return r;
    if (desc.ignore_eos > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "ignore_eos", "ignore_eos is %u; it must be 0 or 1",
                    desc.ignore_eos);
    return without_exceptions(diag, [&]() -> FoveaResult {
        const std::shared_ptr<Opened>& opened = model->opened;
        GenerationOptions options;
        options.sampling = {desc.temperature, desc.seed, desc.top_k, desc.top_p, desc.min_p};
        options.count = desc.count, options.ignore_eos = desc.ignore_eos != 0;
        options.decoder.engine = opened->runner.get();
        const CheckpointModel& weights = opened->model.weights;
        if (Result<void> r = check_generation(options); !r) return fail_with(diag, r.error());
        if (Result<void> r = check_memory(Generation::bytes(weights, count, options),
                                          "give fewer tokens or a smaller count");
            !r)
            return fail_with(diag, r.error());
        const std::lock_guard lock(opened->mutex);
        Result<Generation> text = Generation::open(weights, {tokens, tokens + count}, options);
        if (!text) return fail_with(diag, text.error());
        *out = new FoveaGeneration_T{opened, std::move(*text)};
        return FOVEA_OK;
    });
}

FoveaResult foveaNextToken(FoveaGeneration generation, uint32_t* token, FoveaGenerationState* state,
                           FoveaDiag* diag) {
    if (!generation) return null_refused(diag, "generation");
    if (!token) return null_refused(diag, "token");
    if (!state) return null_refused(diag, "state");
    return without_exceptions(diag, [&]() -> FoveaResult {
        const std::lock_guard lock(generation->opened->mutex);
        Generation& text = generation->text;
        if (text.done())
            return fail(diag, FOVEA_INVALID_ARGUMENT, "generation",
                        "the text is complete after %zu tokens; start another generation",
                        text.made().size());
        if (generation->failed)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "generation",
                        "an earlier call on this generation failed; start another generation");
        generation->failed = true;  // also where an exception leaves the decoder halfway
        const Result<uint32_t> next = text.next();
        if (!next) return fail_with(diag, next.error());
        generation->failed = false;
        *token = *next;
        *state = text.ended()  ? FOVEA_GENERATION_ENDED
                 : text.done() ? FOVEA_GENERATION_FULL
                               : FOVEA_GENERATION_GOES_ON;
        return FOVEA_OK;
    });
}

void foveaDestroyGeneration(FoveaGeneration generation) {
    if (!generation) return;
    const std::shared_ptr<Opened> opened = generation->opened;  // must outlive the decoder
    const std::lock_guard lock(opened->mutex);
    delete generation;
}
