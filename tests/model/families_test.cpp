// Every family of models against transformers in float64: families/NAME holds a random model and what it
// computes, see scripts/make_models.py.
#include "family_names.hpp"
#include "support/scratch.hpp"

#include <fovea/model/checkpoint_model.hpp>
#ifdef FOVEA_WITH_RUNTIME
#include <fovea/model/device_runner.hpp>
#endif
#include <fovea/thread_pool.hpp>

#include "model/text/host_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

namespace fovea {
namespace {

namespace fs = std::filesystem;

std::vector<float> expected(const TensorSet& set, const std::string& name) {
    const Tensor* tensor = set.find(name);
    if (tensor == nullptr) return {};
    return to_f32(*tensor).value();
}

std::vector<uint32_t> tokens_of(const TensorSet& set) {
    const std::vector<float> numbers = expected(set, "tokens");
    return {numbers.begin(), numbers.end()};
}

F32Tensor patches_of(const TensorSet& set, const ModelConfig& config) {
    return F32Tensor({config.patches, config.patch_width}, expected(set, "patches"));
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        most = std::max(most, std::abs(double(a[i]) - double(b[i])));
    return most;
}

// Returns token IDs by descending logit: the order of the next-token table.
std::vector<size_t> order_of(std::span<const float> logits) {
    std::vector<size_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    return order;
}

void expect_like_transformers(const fs::path& model_path, const TensorSet& reference, Arithmetic arithmetic,
                              Runner* engine = nullptr) {
    const Result<CheckpointModel> model = CheckpointModel::open(model_path);
    ASSERT_TRUE(model) << model.error().text;
    EXPECT_TRUE(model->missing().empty()) << model->missing()[0];
    EXPECT_TRUE(model->unread().empty()) << model->unread()[0];
    ModelRunOptions options;
    options.trace.arithmetic = arithmetic;
    options.trace.engine = engine;
    options.with_hidden = options.with_weights = true;
    std::vector<uint32_t> tokens = tokens_of(reference);
    if (model->config().patches != 0) {
        const Result<F32Tensor> entering = model->embed_patches(patches_of(reference, model->config()));
        ASSERT_TRUE(entering) << entering.error().text;
        options.entering = *entering;
        tokens.resize(entering->rows());
    }
    Result<ModelRun> run = run_model(*model, tokens, options);
    ASSERT_TRUE(run) << run.error().text;
    ASSERT_EQ(run->hidden.size(), model->config().layers + 1);
    for (size_t n = 0; n < run->hidden.size(); ++n)
        EXPECT_LE(
            largest_difference(run->hidden[n].values, expected(reference, "hidden." + std::to_string(n))),
            2e-5)
            << "hidden." << n;
    for (size_t n = 0; n < run->weights.size(); ++n) {
        EXPECT_EQ(run->weights[n].shape, (Shape{model->config().heads, tokens.size(), tokens.size()}));
        EXPECT_LE(largest_difference(run->weights[n].values,
                                     expected(reference, "layers." + std::to_string(n) + ".weights")),
                  2e-6)
            << "layer " << n;
    }
    if (!model->has_unembedding()) {  // GGUF files of encoders hold no head
        EXPECT_FALSE(model->config().causal);
        EXPECT_TRUE(model->files().gguf);
        return;
    }
    const std::vector<float> logits = expected(reference, "logits");
    // transformers computes an image's classes only from its class row.
    if (model->config().patches != 0) run->logits.values.resize(logits.size());
    EXPECT_LE(largest_difference(run->logits.values, logits), 2e-5);
    const uint64_t vocabulary = run->logits.columns();
    for (size_t i = 0; i < logits.size() / vocabulary; ++i)
        EXPECT_EQ(order_of(run->logits.row(i)),
                  order_of(std::span(logits).subspan(i * vocabulary, vocabulary)))
            << i;
}

// The folder, or the GGUF file where there is no other form.
fs::path model_path(const std::string& name) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / name;
    return fs::exists(folder / "config.json") ? folder : folder / "model.gguf";
}

class Families : public testing::TestWithParam<std::string> {};

// A file that is read a piece at a time, or that is in memory as a whole.
class ReadFile final : public StoredFile {
  public:
    ReadFile(const fs::path& path, bool held) : held_(held) {
        std::ifstream file(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }
    uint64_t size_bytes() const noexcept override { return bytes_.size(); }
    std::span<const std::byte> held() const noexcept override {
        return held_ ? std::as_bytes(std::span(bytes_)) : std::span<const std::byte>();
    }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        // Except for its first bytes, a held file is not read.
        EXPECT_LE(out.size(), held_ ? 4u : bytes_.size());
        EXPECT_LE(first + out.size(), bytes_.size());
        if (fails) return Error{FOVEA_INVALID_ARGUMENT, "file", "it is gone"};
        std::memcpy(out.data(), bytes_.data() + first, out.size());
        most = std::max(most, out.size());
        return {};
    }
    bool fails = false;
    mutable size_t most = 0;  // largest single read

  private:
    std::string bytes_;
    bool held_;
};

// The files of a model as a program that cannot map files gives them.
std::vector<NamedFile> named_files(const fs::path& path, bool held) {
    std::vector<NamedFile> files;
    if (fs::is_regular_file(path))
        return {{path.filename().string(), std::make_shared<ReadFile>(path, held)}};
    for (const fs::directory_entry& one : fs::directory_iterator(path))
        if (one.path().filename() != "expected.safetensors" && one.path().extension() != ".gguf")
            files.push_back({one.path().filename().string(), std::make_shared<ReadFile>(one.path(), held)});
    return files;
}

TEST_P(Families, compute_what_transformers_computes_in_float64) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / GetParam();
    const Result<TensorSet> reference = load_safetensors(folder / "expected.safetensors");
    ASSERT_TRUE(reference) << reference.error().text;
    const fs::path gguf = folder / "model.gguf";
    ASSERT_TRUE(fs::exists(folder / "config.json") || fs::exists(gguf));
    for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::engine}) {
        SCOPED_TRACE(arithmetic == Arithmetic::strict ? "strict" : "engine");
        if (fs::exists(folder / "config.json")) {
            SCOPED_TRACE("safetensors");
            expect_like_transformers(folder / "model.safetensors", *reference, arithmetic);
        }
        if (fs::exists(gguf)) {
            SCOPED_TRACE("GGUF");
            expect_like_transformers(gguf, *reference, arithmetic);
        }
    }
}

// Bytes of the largest layer's matrices that stay as the files hold them.
uint64_t stored_matrix_bytes(const CheckpointModel& model) {
    uint64_t most = 0;
    for (uint64_t n = 0; n < model.config().layers; ++n) {
        uint64_t bytes = 0;
        const Result<Block> block = model.block(n, 1, true);
        EXPECT_TRUE(block) << block.error().text;
        const AttentionPart& a = block->attention;
        const FeedForward& f = block->feed_forward;
        for (const Linear* one : {&a.query, &a.key, &a.value, &a.output, &f.up, &f.gate, &f.down})
            if (one->stored) bytes += one->stored->size_bytes;
        most = std::max(most, bytes);
    }
    return most;
}

TEST_P(Families, give_the_same_bits_from_files_that_are_not_mapped) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / GetParam(), gguf = folder / "model.gguf";
    std::vector<fs::path> paths;
    if (fs::exists(folder / "config.json")) paths.push_back(folder);
    if (fs::exists(gguf)) paths.push_back(gguf);
    for (const fs::path& path : paths) {
        SCOPED_TRACE(path);
        const Result<CheckpointModel> mapped =
            CheckpointModel::open(path == folder ? folder / "model.safetensors" : path);
        ASSERT_TRUE(mapped) << mapped.error().text;
        for (const bool held : {false, true}) {
            SCOPED_TRACE(held ? "held" : "read");
            const std::vector<NamedFile> files = named_files(path, held);
            const Result<CheckpointModel> model = CheckpointModel::open(files);
            ASSERT_TRUE(model) << model.error().text;
            EXPECT_EQ(model->files().stored_bytes(), mapped->files().stored_bytes());
            // Memory that a run takes for a layer: float32 for some matrices, and for stored ones only the
            // parts that must be read.
            EXPECT_LE(mapped->run_block_bytes(), mapped->block_bytes());
            const uint64_t of_layer = run_model_bytes(*model, 0, {}) - run_model_bytes(*mapped, 0, {});
            EXPECT_EQ(of_layer, held ? 0 : stored_matrix_bytes(*model));
            ASSERT_EQ(model->files().weights.size(), mapped->files().weights.size());
            for (const StoredWeight& weight : mapped->files().weights) {
                const StoredWeight* const other = model->files().find(weight.name);
                ASSERT_TRUE(other) << weight.name;
                std::vector<float> a(weight.rows() * weight.columns()), b(a.size());
                ASSERT_TRUE(read_rows(weight, 0, a) && read_rows(*other, 0, b)) << weight.name;
                EXPECT_EQ(a, b) << weight.name;
            }
            // Parts of a joint matrix that stays as it is stored.
            const Result<Block> one = mapped->block(0, 4, true), two = model->block(0, 4, true);
            ASSERT_TRUE(one && two);
            for (Linear AttentionPart::*part :
                 {&AttentionPart::query, &AttentionPart::key, &AttentionPart::value}) {
                const Linear &x = one->attention.*part, &y = two->attention.*part;
                ASSERT_EQ(bool(x.stored), bool(y.stored));
                if (!x.stored) continue;
                std::vector<float> a(x.stored->rows() * x.stored->columns()), b(a.size());
                ASSERT_TRUE(read_rows(*x.stored, 0, a) && read_rows(*y.stored, 0, b));
                EXPECT_EQ(a, b);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Each, Families, testing::ValuesIn(family_names()),
                         [](const auto& name) { return name.param; });

TEST(Families, have_a_test_model_each) {
    std::set<std::string> tested;
    for (const std::string& name : family_names())
        tested.insert(CheckpointModel::open(model_path(name))->config().family);
    std::string all;
    for (const std::string& family : tested) all += (all.empty() ? "" : ", ") + family;
    std::istringstream known(known_families());
    for (std::string family; std::getline(known >> std::ws, family, ',');)
        EXPECT_TRUE(tested.contains(family)) << family << " is not among " << all;
}

TEST(Pictures, go_with_models_that_read_them_and_tokens_with_the_others) {
    const fs::path families = FOVEA_FAMILIES;
    const Result<CheckpointModel> vit = CheckpointModel::open(families / "vit");
    const Result<CheckpointModel> gpt2 = CheckpointModel::open(families / "gpt2");
    ASSERT_TRUE(vit && gpt2);
    EXPECT_EQ(vit->config().patches, 9u);
    EXPECT_EQ(vit->config().patch_width, 48u);
    const std::vector<uint32_t> ids = {0, 1};
    EXPECT_EQ(run_model(*vit, ids).error().text, "a ViT model reads patches of pictures, not tokens");
    EXPECT_EQ(gpt2->embed_patches(F32Tensor({9, 48})).error().text,
              "a GPT-2 model reads tokens, not patches of pictures; give tokens");
    EXPECT_EQ(vit->embed_patches(F32Tensor({8, 48})).error().text,
              "the patches have shape [8, 48]; they must have [9, 48]");
    EXPECT_FALSE(vit->whole(10));
}

TEST(FilesThatAreRead, say_what_is_wrong_and_are_read_a_piece_at_a_time) {
    const fs::path families = FOVEA_FAMILIES;
    std::vector<NamedFile> files = named_files(families / "gpt2", false);
    const Result<CheckpointModel> model = CheckpointModel::open(files);
    ASSERT_TRUE(model) << model.error().text;
    for (const NamedFile& one : files) {
        if (one.name != "model.safetensors") continue;
        const auto& file = static_cast<const ReadFile&>(*one.file);
        EXPECT_LT(file.most, file.size_bytes() / 2) << "the header alone is kept";
        const_cast<ReadFile&>(file).fails = true;
    }
    EXPECT_EQ(run_model(*model, std::vector<uint32_t>{1, 2}).error().text, "it is gone");
    std::erase_if(files, [](const NamedFile& one) { return one.name == "config.json"; });
    EXPECT_EQ(CheckpointModel::open(files).error().text,
              "config.json is missing for the files given; put it into the folder of the weights, as it says "
              "which model "
              "they belong to");
    std::vector<NamedFile> gguf = named_files(families / "llama_q8" / "model.gguf", false);
    ASSERT_TRUE(CheckpointModel::open(gguf));
    gguf.push_back({"more.json", gguf[0].file});
    EXPECT_EQ(CheckpointModel::open(gguf).error().text,
              "model.gguf and 1 more: a GGUF file is a model by itself");
}

// families/older has configurations as older versions of transformers wrote them: NAME-WHAT.json goes with
// the weights of NAME.
TEST(OlderConfigurations, mean_what_the_newer_ones_mean) {
    const fs::path families = FOVEA_FAMILIES;
    const test::Scratch folder;
    int count = 0;
    for (const fs::directory_entry& older : fs::directory_iterator(families / "older")) {
        const std::string stem = older.path().stem().string(), name = stem.substr(0, stem.find('-'));
        SCOPED_TRACE(stem);
        const fs::path scratch = folder / stem;
        fs::create_directories(scratch);
        fs::copy_file(older.path(), scratch / "config.json");
        fs::copy_file(families / name / "model.safetensors", scratch / "model.safetensors");
        const Result<TensorSet> reference = load_safetensors(families / name / "expected.safetensors");
        ASSERT_TRUE(reference) << reference.error().text;
        expect_like_transformers(scratch, *reference, Arithmetic::strict);
        ++count;
    }
    EXPECT_EQ(count, 12);
}

// Rows [first, end) of what enters goes through all layers of `text`, each held against the reference.
void expect_rows_behind_layers(const CheckpointModel& model, const TensorSet& reference,
                               const F32Tensor& entering, uint64_t first, uint64_t end, ResidentText& text) {
    const uint64_t width = entering.columns();
    const auto from = entering.values.begin();
    const F32Tensor x({end - first, width}, {from + int64_t(first * width), from + int64_t(end * width)});
    const Result<void> entered = text.enter(x, first);
    ASSERT_TRUE(entered) << entered.error().text;
    for (uint64_t n = 0; n < model.config().layers; ++n) {
        const Result<Block> block = model.block(n, entering.rows(), true);
        ASSERT_TRUE(block) << block.error().text;
        const Result<void> run = text.layer(n, *block);
        ASSERT_TRUE(run) << run.error().text;
        const std::vector<float> hidden = expected(reference, "hidden." + std::to_string(n + 1));
        for (uint64_t i = first; i < end; ++i) {
            const Result<F32Tensor> row = text.row(i - first);
            ASSERT_TRUE(row) << row.error().text;
            const auto right = hidden.begin() + int64_t(i * width);
            EXPECT_LE(largest_difference(row->values, {right, right + int64_t(width)}), 2e-5)
                << "row " << i << " behind layer " << n;
        }
    }
}

void for_each_model(const std::function<void(const CheckpointModel&, const TensorSet& reference)>& body) {
    for (const std::string& name : family_names()) {
        SCOPED_TRACE(name);
        const Result<CheckpointModel> model = CheckpointModel::open(model_path(name));
        const Result<TensorSet> reference =
            load_safetensors(fs::path(FOVEA_FAMILIES) / name / "expected.safetensors");
        EXPECT_TRUE(model) << model.error().text;
        EXPECT_TRUE(reference) << reference.error().text;
        if (model && reference) body(*model, *reference);
    }
}

// Every family's parts, in one go and, where there are caches, in parts of several rows and of one.
void expect_texts_to_stay(
    const std::function<std::unique_ptr<ResidentText>(uint64_t layers, uint64_t rows)>& make) {
    for_each_model([&](const CheckpointModel& model, const TensorSet& reference) {
        const ModelConfig& config = model.config();
        const Result<F32Tensor> x = config.patches != 0 ? model.embed_patches(patches_of(reference, config))
                                                        : model.embed(tokens_of(reference));
        ASSERT_TRUE(x) << x.error().text;
        const uint64_t rows = x->rows();
        const auto whole = make(config.layers, rows);
        expect_rows_behind_layers(model, reference, *x, 0, rows, *whole);
        if (!config.causal || testing::Test::HasFailure()) return;
        const auto parts = make(config.layers, rows);
        for (const auto& [first, end] : {std::pair{uint64_t{0}, rows / 2},
                                         {rows / 2, rows / 2 + 1},
                                         {rows / 2 + 1, rows / 2 + 2},
                                         {rows / 2 + 2, rows}})
            expect_rows_behind_layers(model, reference, *x, first, end, *parts);
    });
}

// Generation's own steps on this machine's CPU, with and without threads.
TEST(Families, keep_a_text_on_host_memory) {
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    for (const FoveaParallel* threads : {static_cast<const FoveaParallel*>(nullptr), &parallel}) {
        const std::unique_ptr<Runner> runner = make_cpu_runner(threads, threads ? 2 : 1);
        expect_texts_to_stay([&](uint64_t layers, uint64_t rows) {
            return std::make_unique<HostText>(*runner, layers, rows);
        });
    }
}

// One arithmetic: what a run that shows layers computes by the engine is what generation computes, bit for
// bit, with threads or without.
TEST(Families, are_shown_as_they_generate) {
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    const auto shown_by = make_cpu_runner(&parallel, 2), generated_by = make_cpu_runner();
    for_each_model([&](const CheckpointModel& model, const TensorSet& reference) {
        if (model.config().patches != 0) return;
        const std::vector<uint32_t> ids = tokens_of(reference);
        ModelRunOptions options;
        options.trace = {Arithmetic::engine, shown_by.get()};
        options.with_hidden = true;
        const Result<ModelRun> run = run_model(model, ids, options);
        ASSERT_TRUE(run) << run.error().text;
        HostText text(*generated_by, model.config().layers, ids.size());
        ASSERT_TRUE(text.enter(*model.embed(ids), 0));
        for (uint64_t n = 0; n < model.config().layers; ++n) {
            ASSERT_TRUE(text.layer(n, *model.block(n, ids.size(), true)));
            for (uint64_t i = 0; i < ids.size(); ++i) {
                const auto shown = run->hidden[n + 1].row(i);
                EXPECT_EQ(text.row(i)->values, std::vector<float>(shown.begin(), shown.end()))
                    << "row " << i << " behind layer " << n;
            }
        }
    });
}

#ifdef FOVEA_WITH_RUNTIME
// Runs on the device that the test's launcher selects; its validation layer must report nothing.
class FamiliesOnVulkan : public testing::Test {
  protected:
    void SetUp() override {
        EngineOptions options;
        options.backend = BackendChoice::vulkan;
        options.validation = true;
        Result<Engine> opened = Engine::open(options);
        ASSERT_TRUE(opened) << opened.error().text;
        engine.emplace(std::move(*opened));
        runner.emplace(*engine);
    }
    void TearDown() override {
        if (!engine) return;
        for (const std::string& message : engine->take_messages()) ADD_FAILURE() << message;
    }

    std::optional<Engine> engine;
    std::optional<DeviceRunner> runner;
};

// The verdict of Families: learned and rotary positions, grouped
// heads, windows, softcaps, encoders of texts and pictures, quantised weights.
TEST_F(FamiliesOnVulkan, compute_what_transformers_computes_in_float64) {
    for (const char* name : {"gpt2", "mistral", "gemma2", "modernbert", "vit", "llama_q8/model.gguf"}) {
        SCOPED_TRACE(name);
        const fs::path model = fs::path(FOVEA_FAMILIES) / name;
        const fs::path folder = model.extension() == ".gguf" ? model.parent_path() : model;
        const Result<TensorSet> reference = load_safetensors(folder / "expected.safetensors");
        ASSERT_TRUE(reference) << reference.error().text;
        expect_like_transformers(model, *reference, Arithmetic::engine, &*runner);
    }
}

// Values that stay on the device from layer to layer.
TEST_F(FamiliesOnVulkan, keep_a_text_on_the_device) {
    expect_texts_to_stay([&](uint64_t layers, uint64_t rows) { return runner->text(layers, rows); });
}

// Once weights are there, a token is one submission, and only its rows are transferred.
TEST_F(FamiliesOnVulkan, a_token_is_one_submission) {
    const Result<CheckpointModel> model =
        CheckpointModel::open(fs::path(FOVEA_FAMILIES) / "llama_q8" / "model.gguf");
    ASSERT_TRUE(model) << model.error().text;
    const auto text = runner->text(model->config().layers, 8);
    DeviceRunner::Traffic before;
    for (uint64_t held = 0; held < 3; ++held) {
        before = runner->traffic();
        const Result<F32Tensor> x = model->embed(std::vector<uint32_t>{uint32_t(held)}, held);
        ASSERT_TRUE(x) << x.error().text;
        ASSERT_TRUE(text->enter(*x, held));
        for (uint64_t n = 0; n < model->config().layers; ++n)
            ASSERT_TRUE(text->layer(n, *model->block(n, 8, true)));
        ASSERT_TRUE(text->row(0));
    }
    const DeviceRunner::Traffic& after = runner->traffic();
    EXPECT_EQ(after.submissions - before.submissions, 1u);
    EXPECT_EQ(after.uploads - before.uploads, 2u);  // the row and its position
    EXPECT_EQ(after.reads - before.reads, 1u);
    // There is no room after the last row.
    const Result<void> beyond = text->enter(F32Tensor({9, model->config().width}), 0);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().field, "rows");
}
#endif

}  // namespace
}  // namespace fovea
