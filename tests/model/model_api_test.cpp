// <fovea/fovea_model.h> against the C++ paths below it, bit for bit, and what it rejects.
#include "support/scratch.hpp"

#include <fovea/fovea_model.h>
#include <fovea/inspect/cache_cost.hpp>
#include <fovea/model/generate.hpp>
#include <fovea/tokenizer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

namespace fovea {
namespace {

namespace fs = std::filesystem;

const std::vector<uint32_t> kIds = {5, 3, 8, 20, 11, 5, 3, 9};

std::string path_of(const std::string& name) { return (fs::path(FOVEA_FAMILIES) / name).string(); }

// A folder with a model and a tokenizer: "ababa" is 5, 5, 3.
struct WithTokenizer : test::Scratch {
    WithTokenizer() {
        for (const char* file : {"config.json", "model.safetensors"})
            fs::copy_file(path_of("llama2/" + std::string(file)), *this / file);
        std::ofstream(*this / "tokenizer.json")
            << R"({"model": {"type": "BPE", "vocab": {"a": 3, "b": 4, "ab": 5}, "merges": ["a b"]}})";
    }
};

struct OpenModel : std::unique_ptr<FoveaModel_T, void (*)(FoveaModel)> {
    explicit OpenModel(const std::string& name, const FoveaEngineOptions* engine = nullptr)
        : unique_ptr(nullptr, foveaCloseModel) {
        FoveaModel opened = nullptr;
        FoveaDiag diag = foveaDiag();
        EXPECT_EQ(foveaOpenModel(path_of(name).c_str(), engine, &opened, &diag), FOVEA_OK) << diag.text;
        reset(opened);
    }
};

struct Kept : std::unique_ptr<FoveaModelRun_T, void (*)(FoveaModelRun)> {
    Kept(const OpenModel& model, const std::string& keep, const FoveaModelChanges* changes = nullptr)
        : unique_ptr(nullptr, foveaDestroyModelRun) {
        FoveaModelRun made = nullptr;
        FoveaDiag diag = foveaDiag();
        EXPECT_EQ(foveaRunModel(model.get(), kIds.data(), kIds.size(), keep.c_str(), changes, &made, &diag),
                  FOVEA_OK)
            << diag.text;
        reset(made);
    }
    F32Tensor operator[](const char* name) const {
        FoveaModelTensor tensor = foveaModelTensor();
        FoveaDiag diag = foveaDiag();
        EXPECT_EQ(foveaRunTensor(get(), name, &tensor, &diag), FOVEA_OK) << diag.text;
        const Shape shape(tensor.shape, tensor.shape + tensor.rank);
        return F32Tensor(shape, {tensor.data, tensor.data + element_count(shape)});
    }
};

CheckpointModel weights_of(const std::string& name) { return *CheckpointModel::open(path_of(name)); }

ModelRun plain_run(const CheckpointModel& model, ModelRunOptions options = {}) {
    options.with_hidden = options.with_weights = true;
    return *run_model(model, kIds, options);
}

// Part `n` of the first axis.
F32Tensor part(const F32Tensor& all, uint64_t n) {
    const uint64_t size = all.values.size() / all.shape[0];
    const auto from = all.values.begin() + int64_t(n * size);
    return F32Tensor({all.shape.begin() + 1, all.shape.end()}, {from, from + int64_t(size)});
}

class KeptTensors : public testing::TestWithParam<const char*> {};

TEST_P(KeptTensors, have_the_bits_of_a_run_and_of_its_traces) {
    const CheckpointModel weights = weights_of(GetParam());
    const ModelConfig& f = weights.config();
    const ModelRun expected = plain_run(weights);
    const OpenModel model(GetParam());
    const std::string last = std::to_string(f.layers - 1), head = std::to_string(f.heads - 1);
    const std::string pick = "weights:" + last + "." + head, pick_q = "q:" + last,
                      pick_row = "context:0." + head;
    const Kept run(model, "hidden,q,k,v,context,lse,weights,logits,logits:3,hidden:1,ff_hidden:1," + pick +
                              "," + pick_q + "," + pick_row);
    EXPECT_EQ(run["logits"], expected.logits);
    const auto row = expected.hidden[f.layers].row(3);
    EXPECT_EQ(run["logits:3"].values,
              weights.logits(F32Tensor({1, f.width}, {row.begin(), row.end()}))->values);
    EXPECT_EQ(run["hidden:1"], expected.hidden[1]);
    EXPECT_EQ(run[pick.c_str()], part(expected.weights[f.layers - 1], f.heads - 1));
    EXPECT_EQ(run["hidden"].shape, (Shape{f.layers + 1, kIds.size(), f.width}));
    EXPECT_EQ(run[pick_q.c_str()], part(run["q"], f.layers - 1));
    EXPECT_EQ(run[pick_row.c_str()], part(part(run["context"], 0), f.heads - 1));
    for (uint64_t n = 0; n <= f.layers; ++n) {
        SCOPED_TRACE(n);
        EXPECT_EQ(part(run["hidden"], n), expected.hidden[n]);
        if (n == f.layers) break;
        EXPECT_EQ(part(run["weights"], n), expected.weights[n]);
        Result<Trace> trace = trace_layer(weights, n, expected.hidden[n]);
        ASSERT_TRUE(trace);
        const std::tuple<const char*, StageId, uint64_t> stages[] = {{"q", StageId::queries, f.heads},
                                                                     {"k", StageId::keys, f.kv_heads},
                                                                     {"v", StageId::values, f.kv_heads}};
        for (const auto& [name, id, heads] : stages)
            for (uint32_t h = 0; h < heads; ++h)
                EXPECT_EQ(part(part(run[name], n), h), *trace->stage(id, h)) << name << h;
        const F32Tensor context = *trace->stage(StageId::context);
        for (uint32_t h = 0; h < f.heads; ++h) {
            EXPECT_EQ(part(part(run["context"], n), h),
                      slice_columns(context, h * f.head_width, f.head_width));
            EXPECT_EQ(part(part(run["lse"], n), h).values, trace->stage(StageId::lse, h)->values);
        }
        if (n == 1) {
            EXPECT_EQ(run["ff_hidden:1"], *trace->stage(StageId::ff_hidden));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Families, KeptTensors,
                         testing::Values("bert", "gemma2", "gpt2", "llama_q8/model.gguf", "modernbert",
                                         "phi3_gguf/model.gguf", "pythia", "qwen3_gguf/model.gguf"),
                         [](const auto& each) {
                             std::string name = each.param;
                             return name.substr(0, name.find('/'));
                         });

TEST(ModelApi, a_named_device_has_the_bits_of_its_own_kernels) {
    FoveaEngineOptions engine = foveaEngineOptions();
    engine.has_device = 1;  // device 0 is the CPU
    const OpenModel model("gpt2", &engine);
    ModelRunOptions options;
    options.trace.arithmetic = Arithmetic::engine;
    const ModelRun expected = plain_run(weights_of("gpt2"), options);
    EXPECT_EQ(Kept(model, "logits")["logits"], expected.logits);
    EXPECT_NE(expected.logits, plain_run(weights_of("gpt2")).logits);
}

struct Seen {
    std::vector<uint32_t> layers;
    std::function<bool(uint32_t layer, std::span<float> hidden)> change;
    static int32_t hook(void* user, uint32_t layer, float* hidden, uint64_t tokens, uint64_t width) {
        auto& seen = *static_cast<Seen*>(user);
        seen.layers.push_back(layer);
        return !seen.change || seen.change(layer, std::span(hidden, tokens * width));
    }
};

TEST(ModelApi, changes_are_those_of_a_run) {
    const CheckpointModel weights = weights_of("gpt2");
    const ModelConfig& f = weights.config();
    const OpenModel model("gpt2");
    ModelRunOptions options;
    options.changes.scale_head(0, 1, 0.0f);
    options.changes.scale_head(1, 2, 0.5f);
    options.changes.hidden_tokens = {2, 5};
    F32Tensor context({kIds.size(), f.head_width});
    for (size_t i = 0; i < context.values.size(); ++i) context.values[i] = float(i % 7) - 3;
    options.changes.patches = {{1, 3, context}};
    const ModelRun expected = plain_run(weights, options);
    const FoveaHeadScale scales[] = {{0, 1, 0.0f}, {1, 2, 0.5f}};
    const FoveaModelPatch patch = {1, 3, context.values.data(), kIds.size(), f.head_width};
    const uint32_t masked[] = {2, 5};
    FoveaModelChanges changes = foveaModelChanges();
    changes.heads = scales, changes.head_count = 2;
    changes.patches = &patch, changes.patch_count = 1;
    changes.masked_tokens = masked, changes.masked_count = 2;
    const Kept run(model, "logits,hidden,context:1.3", &changes);
    EXPECT_EQ(run["logits"], expected.logits);
    EXPECT_EQ(run["context:1.3"], context);
    EXPECT_NE(run["logits"], plain_run(weights).logits);
}

TEST(ModelApi, a_hidden_patch_is_a_run_that_begins_with_it_and_a_hook_may_write_the_same) {
    const CheckpointModel weights = weights_of("llama_q8/model.gguf");
    const ModelConfig& f = weights.config();
    const OpenModel model("llama_q8/model.gguf");
    F32Tensor entering = plain_run(weights).hidden[1];
    for (float& value : entering.values) value *= 1.5f;
    ModelRunOptions from_one;
    from_one.first_layer = 1, from_one.entering = entering;
    const F32Tensor expected = plain_run(weights, from_one).logits;
    const FoveaModelPatch patch = {1, FOVEA_HIDDEN, entering.values.data(), kIds.size(), f.width};
    Seen seen;
    FoveaModelChanges changes = foveaModelChanges();
    changes.patches = &patch, changes.patch_count = 1;
    changes.hook = Seen::hook, changes.user = &seen;
    const Kept patched(model, "logits,hidden", &changes);
    EXPECT_EQ(patched["logits"], expected);
    EXPECT_EQ(part(patched["hidden"], 1), entering);
    std::vector<uint32_t> every(size_t(f.layers) + 1);
    for (size_t n = 0; n < every.size(); ++n) every[n] = uint32_t(n);
    EXPECT_EQ(seen.layers, every);

    changes.patch_count = 0;
    seen.change = [&](uint32_t layer, std::span<float> hidden) {
        // A hook may run the model, here as it is.
        if (layer == 1) {
            EXPECT_EQ(Kept(model, "logits")["logits"], plain_run(weights).logits);
        }
        for (float& value : hidden) value *= layer == 1 ? 1.5f : 1.0f;
        return true;
    };
    EXPECT_EQ(Kept(model, "logits", &changes)["logits"], expected);

    // After the last layer the logits are those of the rows that the hook leaves.
    seen.change = [&](uint32_t layer, std::span<float> hidden) {
        if (layer == f.layers) std::copy(entering.values.begin(), entering.values.end(), hidden.begin());
        return true;
    };
    EXPECT_EQ(Kept(model, "logits", &changes)["logits"], *weights.logits(entering));

    seen.layers.clear();
    seen.change = [](uint32_t layer, std::span<float>) { return layer != 1; };
    FoveaModelRun run = nullptr;
    FoveaDiag diag = foveaDiag();
    EXPECT_EQ(foveaRunModel(model.get(), kIds.data(), kIds.size(), "hidden", &changes, &run, &diag),
              FOVEA_CANCELLED);
    EXPECT_EQ(run, nullptr);
    EXPECT_EQ(seen.layers, (std::vector<uint32_t>{0, 1}));
}

TEST(ModelApi, sizes_and_texts_are_those_of_the_files) {
    const WithTokenizer folder;
    size_t tokenizers = 0;
    for (const std::string& name :
         {std::string("gpt2"), std::string("llama_q8/model.gguf"), folder.folder().string()}) {
        SCOPED_TRACE(name);
        const TextModel expected = *open_text_model(path_of(name));
        const ModelConfig& f = expected.weights.config();
        const OpenModel model(name);
        FoveaModelInfo info = foveaModelInfo();
        FoveaDiag diag = foveaDiag();
        ASSERT_EQ(foveaGetModelInfo(model.get(), &info, &diag), FOVEA_OK);
        EXPECT_EQ(
            (std::vector{info.layers, info.width, info.heads, info.kv_heads, info.head_width, info.vocabulary,
                         info.context}),
            (std::vector{f.layers, f.width, f.heads, f.kv_heads, f.head_width, f.vocabulary, f.context}));
        EXPECT_EQ(info.family, f.family);
        EXPECT_EQ(std::vector<uint32_t>(info.end_tokens, info.end_tokens + info.end_token_count),
                  f.end_tokens);
        EXPECT_EQ(bool(info.has_tokenizer), expected.tokenizer.has_value());
        uint32_t ids[64];
        size_t count = 99;
        FoveaText text = nullptr;
        const FoveaResult split = foveaModelTokens(model.get(), "ababa", 5, 1, ids, 64, &count, &diag);
        if (!expected.tokenizer) {
            EXPECT_EQ(split, FOVEA_UNSUPPORTED);
            EXPECT_NE(std::string(diag.text).find("; give token IDs"), std::string::npos) << diag.text;
            EXPECT_EQ(count, 0u);
            EXPECT_EQ(foveaModelText(model.get(), ids, 0, &text, &diag), FOVEA_UNSUPPORTED);
            continue;
        }
        ++tokenizers;
        ASSERT_EQ(split, FOVEA_OK) << diag.text;
        EXPECT_EQ(std::vector<uint32_t>(ids, ids + count), *expected.tokenizer->encode("ababa", true));
        size_t all = 0;
        ids[1] = 77;
        ASSERT_EQ(foveaModelTokens(model.get(), "ababa", 5, 1, ids, 1, &all, &diag), FOVEA_OK);
        EXPECT_EQ(all, count);
        EXPECT_EQ(ids[1], 77u);
        const std::vector<uint32_t> plain = *expected.tokenizer->encode("ababa", false);
        ASSERT_EQ(foveaModelText(model.get(), plain.data(), plain.size(), &text, &diag), FOVEA_OK);
        EXPECT_EQ(foveaTextData(text), expected.tokenizer->decode(plain));
        foveaDestroyText(text);
    }
    EXPECT_EQ(tokenizers, 1u);
}

// Two texts in one call; how the values come about is checked by tests/inspect/cache_cost_test.py.
TEST(ModelApi, cache_costs_are_those_of_the_library_and_what_is_wrong_is_named) {
    const CheckpointModel weights = weights_of("llama_q8/model.gguf");
    const std::vector<std::vector<uint32_t>> texts = {kIds, {3, 1, 2}};
    CacheCostOptions options;
    options.limit = 1e-3;
    const std::string expected = cache_costs_json(*cache_costs(weights, texts, options));
    EXPECT_NE(expected.find("\"plan\""), std::string::npos);
    const OpenModel model("llama_q8/model.gguf");
    std::vector<uint32_t> ids = texts[0];
    ids.insert(ids.end(), texts[1].begin(), texts[1].end());
    const size_t counts[] = {texts[0].size(), texts[1].size()}, few[] = {1, 1};
    double limit = 1e-3;
    FoveaText text = nullptr;
    FoveaDiag diag = foveaDiag();
    ASSERT_EQ(foveaModelCacheCosts(model.get(), ids.data(), counts, 2, &limit, &text, &diag), FOVEA_OK)
        << diag.text;
    EXPECT_EQ(foveaTextData(text), expected);
    foveaDestroyText(text);
    limit = -1;
    EXPECT_EQ(foveaModelCacheCosts(model.get(), ids.data(), counts, 2, &limit, &text, &diag),
              FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "limit is -1.000000; it must be a divergence in nats, at least 0");
    EXPECT_EQ(text, nullptr);
    EXPECT_EQ(foveaModelCacheCosts(model.get(), ids.data(), few, 2, nullptr, &text, &diag),
              FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "no text has at least 2 tokens; give a longer one");
    EXPECT_EQ(foveaModelCacheCosts(model.get(), ids.data(), nullptr, 2, nullptr, &text, &diag),
              FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.field, "counts");
}

TEST(ModelApi, a_generation_draws_what_decoder_and_sampler_draw_and_outlives_its_model) {
    for (const double temperature : {0.0, 1.5}) {
        SCOPED_TRACE(temperature);
        const CheckpointModel weights = weights_of("llama_q8/model.gguf");
        FoveaGenerationDesc desc = foveaGenerationDesc();
        desc.count = 9, desc.temperature = temperature, desc.seed = 4, desc.ignore_eos = 1;
        if (temperature > 0) desc.top_k = 20, desc.top_p = 0.9, desc.min_p = 0.01;
        const Sampler sampler(SamplerOptions{temperature, 4, desc.top_k, desc.top_p, desc.min_p});
        Decoder decoder = *Decoder::open(weights, kIds.size() + 8);
        std::vector<uint32_t> expected, next = kIds, made;
        while (expected.size() < 9) {
            next = {*sampler.choose(*decoder.run(next), kIds.size() + expected.size())};
            expected.push_back(next[0]);
        }
        FoveaGeneration text = nullptr;
        FoveaDiag diag = foveaDiag();
        {
            const OpenModel model("llama_q8/model.gguf");
            ASSERT_EQ(foveaStartGeneration(model.get(), kIds.data(), kIds.size(), &desc, &text, &diag),
                      FOVEA_OK)
                << diag.text;
        }
        FoveaGenerationState state = FOVEA_GENERATION_GOES_ON;
        while (state == FOVEA_GENERATION_GOES_ON && made.size() < 20)
            ASSERT_EQ(foveaNextToken(text, &made.emplace_back(), &state, &diag), FOVEA_OK) << diag.text;
        EXPECT_EQ(made, expected);
        EXPECT_EQ(state, FOVEA_GENERATION_FULL);
        EXPECT_EQ(foveaNextToken(text, &made[0], &state, &diag), FOVEA_INVALID_ARGUMENT);
        EXPECT_STREQ(diag.text, "the text is complete after 9 tokens; start another generation");
        foveaDestroyGeneration(text);
    }
}

// The code of docs/guides/llama-cpp.md.
TEST(Documentation, a_model_is_run_from_c) {
    const WithTokenizer folder;
    const std::string file = folder.folder().string();
    const char *const path = file.c_str(), *const text = "ababa";
    // [run a model]
    uint32_t tokens[64];
    size_t count = 0;  // token IDs; texts of more than 64 need more room
    FoveaModel model = NULL;
    FoveaModelRun run = NULL;
    FoveaDiag diag = foveaDiag();
    FoveaModelTensor hidden = foveaModelTensor();
    if (foveaOpenModel(path, NULL, &model, &diag) != FOVEA_OK ||
        foveaModelTokens(model, text, strlen(text), 1, tokens, 64, &count, &diag) != FOVEA_OK || count > 64 ||
        foveaRunModel(model, tokens, count, "hidden,q,weights:1.1", NULL, &run, &diag) != FOVEA_OK ||
        foveaRunTensor(run, "hidden", &hidden, &diag) != FOVEA_OK)
        printf("%s\n", diag.text);  // hidden.data is [layers + 1, tokens, width], in hidden.shape
    foveaDestroyModelRun(run);
    foveaCloseModel(model);
    // [end run a model]
    EXPECT_EQ(hidden.rank, 3u);
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(hidden.shape[1], count);
}

TEST(ModelApi, a_generation_that_failed_goes_on_with_no_other_token) {
    const OpenModel model("llama_q8/model.gguf");
    const uint32_t ids[] = {1, 999};
    FoveaGeneration text = nullptr;
    FoveaDiag diag = foveaDiag();
    ASSERT_EQ(foveaStartGeneration(model.get(), ids, 2, nullptr, &text, &diag), FOVEA_OK) << diag.text;
    uint32_t token = 7;
    FoveaGenerationState state = FOVEA_GENERATION_GOES_ON;
    EXPECT_EQ(foveaNextToken(text, &token, &state, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(diag.text).find("999"), std::string::npos) << diag.text;
    EXPECT_EQ(foveaNextToken(text, &token, &state, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "an earlier call on this generation failed; start another generation");
    EXPECT_EQ(token, 7u);
    foveaDestroyGeneration(text);
}

struct Bad {
    const char* keep;
    const char* text;
};

TEST(ModelApi, names_that_cannot_be_kept_are_rejected_with_what_can) {
    const OpenModel model("gpt2");
    int other = 0;
    const auto before = reinterpret_cast<FoveaModelRun>(&other);
    const Bad all[] = {
        {"hiden",
         "keep has 'hiden'; it must be hidden, q, k, v, context, lse, weights, logits or another stage"},
        {"hidden,", nullptr},
        {"hidden,,q", "keep has ''; it must be"},
        {"w_query", "keep has 'w_query'; it must be"},
        {"final", "keep has 'final'; it must be"},
        {"q:2", "keep has 'q:2', whose layer is 2; it must be from 0 to 1"},
        {"hidden:3", "keep has 'hidden:3', whose layer is 3; it must be from 0 to 2"},
        {"weights:1.4", "keep has 'weights:1.4', whose head is 4; it must be from 0 to 3"},
        {"logits:8", "keep has 'logits:8', whose token is 8; it must be from 0 to 7"},
        {"weights:1.", "keep has 'weights:1.'; it must be"},
        {"weights:-1", "keep has 'weights:-1'; it must be"},
        {"hidden:1.2", "keep has 'hidden:1.2'; it must be"},
        {"capped", "keep has 'capped', which layer 0 does not have: "}};
    for (const Bad& bad : all) {
        SCOPED_TRACE(bad.keep);
        FoveaModelRun run = before;
        FoveaDiag diag = foveaDiag();
        const FoveaResult result =
            foveaRunModel(model.get(), kIds.data(), kIds.size(), bad.keep, nullptr, &run, &diag);
        if (bad.text) {
            EXPECT_EQ(result, FOVEA_INVALID_ARGUMENT);
            EXPECT_TRUE(std::string(diag.text).starts_with(bad.text)) << diag.text;
            EXPECT_STREQ(diag.field, "keep");
            EXPECT_EQ(run, nullptr);
        } else {
            EXPECT_EQ(result, FOVEA_OK) << diag.text;
            foveaDestroyModelRun(run);
        }
    }
    FoveaModelTensor tensor = foveaModelTensor();
    FoveaDiag diag = foveaDiag();
    FoveaModelRun none = nullptr;
    EXPECT_EQ(foveaRunModel(model.get(), nullptr, 0, "logits:0", nullptr, &none, &diag),
              FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "tokens is empty; it must have at least one token");
    const Kept run(model, "hidden,q:1");
    EXPECT_EQ(foveaRunTensor(run.get(), "q", &tensor, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "'q' was not kept; the run kept hidden, q:1");
}

TEST(ModelApi, memory_is_counted_for_what_is_kept) {
    if (!fs::exists("/proc/meminfo")) GTEST_SKIP() << "nothing here says how much memory is free";
    const OpenModel model("gpt2");
    const ModelConfig f = weights_of("gpt2").config();
    constexpr size_t kMany = size_t{1} << 40;  // rejected before any token is read
    const auto terabytes = [&](const char* keep) {
        FoveaModelRun run = nullptr;
        FoveaDiag diag = foveaDiag();
        double value = 0;
        EXPECT_EQ(foveaRunModel(model.get(), kIds.data(), kMany, keep, nullptr, &run, &diag),
                  FOVEA_LIMIT_EXCEEDED);
        EXPECT_EQ(std::sscanf(diag.text, "this run needs about %lf TB", &value), 1) << diag.text;
        return value;
    };
    const double none = terabytes(""), column = 4e-12 * double(kMany);
    EXPECT_EQ(terabytes("logits:3"), none);
    EXPECT_NEAR(terabytes("logits") - none, column * double(f.vocabulary), 0.2);
    EXPECT_NEAR(terabytes("hidden") - none, column * double(f.width * (f.layers + 1)), 0.2);
    EXPECT_NEAR(terabytes("hidden:1") - none, column * double(f.width), 0.2);
}

TEST(ModelApi, changes_that_do_not_fit_are_rejected) {
    const OpenModel model("gpt2");  // 2 layers of 4 heads, width 16
    const std::vector<float> values(8 * 16);
    const auto expect = [&](const char* text, const std::function<void(FoveaModelChanges&)>& set,
                            std::vector<uint32_t> ids = kIds) {
        FoveaModelChanges changes = foveaModelChanges();
        set(changes);
        FoveaModelRun run = nullptr;
        FoveaDiag diag = foveaDiag();
        EXPECT_NE(foveaRunModel(model.get(), ids.data(), ids.size(), "hidden", &changes, &run, &diag),
                  FOVEA_OK)
            << text;
        EXPECT_NE(std::string(diag.text).find(text), std::string::npos) << diag.text;
        EXPECT_EQ(run, nullptr);
    };
    FoveaHeadScale scale = {1, 4, 0};
    const auto scaled = [&](FoveaModelChanges& c) { c.heads = &scale, c.head_count = 1; };
    expect("heads has 1.4; the model has layers 0 to 1 and heads 0 to 3", scaled);
    scale = {2, 0, 0};
    expect("heads has 2.0; the model has", scaled);
    scale = {0, 0, NAN};
    expect("the scale of head 0.0 is not finite; it must be a finite value", scaled);
    expect("heads is null", [](FoveaModelChanges& c) { c.head_count = 1; });
    FoveaModelPatch patch = {3, FOVEA_HIDDEN, values.data(), 8, 16};
    const auto patched = [&](FoveaModelChanges& c) { c.patches = &patch, c.patch_count = 1; };
    expect("a patch's layer is 3; the limit is 2", patched);
    patch = {0, FOVEA_HIDDEN, values.data(), 8, 4};
    expect("a patch of layer 0 has 4 columns; it must have 16", patched);
    patch = {0, FOVEA_HIDDEN, values.data(), 7, 16};
    expect("a patch of the hidden state must have the shape [8, 16]", patched);
    patch = {0, 4, values.data(), 8, 4};
    expect("a patch's head is 4; the limit is 3", patched);
    patch = {0, 1, nullptr, 8, 4};
    expect("patches has an element whose data is null", patched);
    const uint32_t masked = 8;
    expect("a masked token is 8; the limit is 7",
           [&](FoveaModelChanges& c) { c.masked_tokens = &masked, c.masked_count = 1; });
    expect("changes.struct_size is 3", [](FoveaModelChanges& c) { c.struct_size = 3; });
    expect("tokens is empty; it must have at least one token", [](FoveaModelChanges&) {}, {});
    expect("999", [](FoveaModelChanges&) {}, {1, 999});
}

TEST(ModelApi, null_pointers_files_and_options_are_rejected) {
    FoveaDiag diag = foveaDiag();
    FoveaModel opened = nullptr;
    EXPECT_EQ(foveaOpenModel(nullptr, nullptr, &opened, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_STREQ(diag.text, "path is null");
    EXPECT_EQ(foveaOpenModel("x", nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_NE(foveaOpenModel("no/such.gguf", nullptr, &opened, &diag), FOVEA_OK);
    EXPECT_NE(std::string(diag.text).find("no/such.gguf"), std::string::npos) << diag.text;
    EXPECT_NE(foveaOpenModel(path_of("vit").c_str(), nullptr, &opened, &diag), FOVEA_OK);
    EXPECT_NE(std::string(diag.text).find("reads pictures"), std::string::npos) << diag.text;
    EXPECT_EQ(opened, nullptr);
    FoveaModelRun run = nullptr;
    FoveaGeneration text = nullptr;
    EXPECT_EQ(foveaRunModel(nullptr, kIds.data(), 1, "", nullptr, &run, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaStartGeneration(nullptr, kIds.data(), 1, nullptr, &text, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaGetModelInfo(nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    EXPECT_EQ(foveaNextToken(nullptr, nullptr, nullptr, &diag), FOVEA_INVALID_ARGUMENT);
    for (FoveaModel none : {FoveaModel()})
        foveaCloseModel(none), foveaDestroyModelRun(run), foveaDestroyGeneration(text);

    const OpenModel gpt2("gpt2"), bert("bert");
    const auto expect = [&](const OpenModel& model, const char* said,
                            const std::function<void(FoveaGenerationDesc&)>& set) {
        FoveaGenerationDesc desc = foveaGenerationDesc();
        set(desc);
        EXPECT_NE(foveaStartGeneration(model.get(), kIds.data(), kIds.size(), &desc, &text, &diag), FOVEA_OK)
            << said;
        EXPECT_NE(std::string(diag.text).find(said), std::string::npos) << diag.text;
    };
    expect(gpt2, "count is 0; it must be from 1 to 1000000", [](FoveaGenerationDesc& d) { d.count = 0; });
    expect(gpt2, "capacity is 33; the model has learned 32 positions",
           [](FoveaGenerationDesc& d) { d.count = 26; });
    expect(gpt2, "temperature is -1; it must be from 0 to 1000",
           [](FoveaGenerationDesc& d) { d.temperature = -1; });
    expect(gpt2, "top_p is 1.5; it must be from 0 to 1",
           [](FoveaGenerationDesc& d) { d.temperature = 1, d.top_p = 1.5; });
    expect(gpt2, "min_p is nan; it must be from 0 to 1",
           [](FoveaGenerationDesc& d) { d.temperature = 1, d.min_p = NAN; });
    expect(gpt2, "top_k needs a temperature above 0", [](FoveaGenerationDesc& d) { d.top_k = 3; });
    expect(gpt2, "ignore_eos is 2; it must be 0 or 1", [](FoveaGenerationDesc& d) { d.ignore_eos = 2; });
    expect(bert, "is an encoder", [](FoveaGenerationDesc&) {});
}

}  // namespace
}  // namespace fovea
