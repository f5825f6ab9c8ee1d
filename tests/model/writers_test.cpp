// Scores split by writers, against a separate forward pass in float64 that freezes its norms and leaves one
// writer out.
#include "family_names.hpp"
#include "model/writers_replay.hpp"

#include <fovea/inspect/prompt_run.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model/learned.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Values = Replay::Values;
using Gone = Replay::Gone;

double magnitude(const ScoreWriters& of) {
    double sum = 0;
    for (const double value : of.matrix) sum += std::abs(value);
    return sum;
}

double remainders_of(const ScoreWriters& of) {
    double sum = 0;
    for (const ScoreWriters::Remainder& one : of.remainders) sum += one.value;
    return sum;
}

// Compares every row and column of a writer with the score without that writer.
void expect_like_replay(const ScoreWriters& of, Replay& replay) {
    const double bound = 1e-5 * magnitude(of), all = replay.score(of.cell, {}, {});
    EXPECT_NEAR(of.sum, all, bound);
    for (uint32_t w = 0; w < of.writers.size(); ++w) {
        SCOPED_TRACE(writer_name(of, w, true, ""));
        const Replay::LeftOut gone{of.writers[w], {}};
        const double row = of.of_query_writer(w), column = of.of_key_writer(w);
        EXPECT_NEAR(row, all - replay.score(of.cell, gone, {}), bound);
        EXPECT_NEAR(column, all - replay.score(of.cell, {}, gone), bound);
        EXPECT_NEAR(row + column - of.at(w, w), all - replay.score(of.cell, gone, gone), bound);
    }
}

double sum_of(const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Compares what heads and neurons read with the result without that source, and their sum with the writer's.
void expect_shares(std::span<const WriterShares> shares, std::span<const Writer> writers, double bound,
                   const std::function<double(uint32_t)>& of_writer,
                   const std::function<double(const Gone&)>& result) {
    for (const WriterShares& one : shares) {
        const Writer& writer = writers[one.writer];
        SCOPED_TRACE("writer " + std::to_string(one.writer) + " of layer " + std::to_string(writer.layer));
        EXPECT_NEAR(sum_of(one.values), of_writer(one.writer), bound);
        for (size_t j = 0; j < one.values.size(); ++j)
            EXPECT_NEAR(one.values[j], result({}) - result(Replay::LeftOut{writer, j}), bound)
                << "source " << j;
    }
}

void expect_shares_like_replay(const ScoreWriters& of, Replay& replay) {
    const double bound = 1e-5 * magnitude(of);
    const auto is_head = [](const Writer& one) { return one.kind == Writer::Kind::head; };
    for (const auto* const shares : {&of.query_shares, &of.key_shares})
        EXPECT_EQ(shares->size(), size_t(std::ranges::count_if(of.writers, is_head)));
    expect_shares(
        of.query_shares, of.writers, bound, [&](uint32_t w) { return of.of_query_writer(w); },
        [&](const Gone& gone) { return replay.score(of.cell, gone, {}); });
    expect_shares(
        of.key_shares, of.writers, bound, [&](uint32_t w) { return of.of_key_writer(w); },
        [&](const Gone& gone) { return replay.score(of.cell, {}, gone); });
}

// A model of the fixtures, a text and the float64 forward pass of both.
struct Family {
    std::optional<CheckpointModel> model;
    std::vector<uint32_t> ids;
    ModelRunOptions options;
    std::optional<Replay> replay;
    F32Tensor logits{Shape{0}};  // PyTorch's, [tokens, vocabulary], where the files have an unembedding
};

class Writers : public testing::TestWithParam<std::string> {};

Family family_of(const std::string& folder_name) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / folder_name;
    Family out;
    out.model = *CheckpointModel::open(fs::exists(folder / "config.json") ? folder : folder / "model.gguf");
    const CheckpointModel* const model = &*out.model;
    const Result<TensorSet> expected = load_safetensors(folder / "expected.safetensors");
    const auto values_of = [&](const std::string& name) { return to_f32(*expected->find(name)).value(); };
    const ModelConfig& f = model->config();
    ModelRunOptions& options = out.options;
    std::vector<uint32_t>& ids = out.ids;
    Matrix token, position;
    Norm embedding_norm;
    if (f.patches != 0) {
        options.entering = *model->embed_patches(F32Tensor({f.patches, f.patch_width}, values_of("patches")));
        ids.resize(options.entering.rows());
        const StoredWeight* places = model->files().find("vit.embeddings.position_embeddings");
        for (size_t i = 0; i < ids.size(); ++i) {
            std::vector<float> row(f.width);
            EXPECT_TRUE(read_rows(*places, i, row));
            const auto both = options.entering.row(i);
            position.emplace_back(row.begin(), row.end());
            Values& own = token.emplace_back(both.begin(), both.end());
            for (size_t c = 0; c < own.size(); ++c) own[c] -= position[i][c];
        }
    } else {
        for (const float id : values_of("tokens")) ids.push_back(uint32_t(id));
        const Embedding e = model->whole(ids.size())->embedding;
        embedding_norm = e.norm;
        uint64_t place = 0;
        for (const uint32_t id : ids) {
            Values& own = token.emplace_back(e.table.row(id).begin(), e.table.row(id).end());
            for (double& value : own) value *= e.scale;
            if (e.positions.values.empty()) continue;
            const auto row = id == e.pad_token ? e.pad_position.row(0) : e.positions.row(place++);
            position.emplace_back(row.begin(), row.end());
        }
    }
    std::vector<Block> blocks;
    for (uint64_t n = 0; n < f.layers; ++n) blocks.push_back(*model->block(n, ids.size()));
    out.replay.emplace(blocks, embedding_norm, token, position);
    if (const Tensor* logits = expected->find("logits"))
        out.logits = F32Tensor(logits->shape, *to_f32(*logits));
    return out;
}

TEST_P(Writers, add_up_to_the_score_and_are_what_their_removal_changes) {
    Family family = family_of(GetParam());
    const CheckpointModel* const model = &*family.model;
    const ModelConfig& f = model->config();
    const std::vector<uint32_t>& ids = family.ids;
    ModelRunOptions& options = family.options;
    Replay& replay = *family.replay;
    for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::engine})
        for (uint32_t layer = 0; layer < f.layers; ++layer)
            for (const uint32_t head : {0u, uint32_t(f.heads - 1)})
                for (const uint64_t key : {uint64_t{0}, uint64_t{ids.size() - 2}}) {
                    options.trace.arithmetic = arithmetic;
                    const LayerCell cell{layer, head, ids.size() - 1, key};
                    SCOPED_TRACE("layer " + std::to_string(layer) + " head " + std::to_string(head) +
                                 " key " + std::to_string(key));
                    const Result<ScoreWriters> of = score_writers(*model, ids, cell, options, true);
                    ASSERT_TRUE(of) << of.error().text;
                    EXPECT_GT(of->writers.size(), layer * f.heads + layer);
                    if (std::isinf(of->score))
                        EXPECT_EQ(of->remainders.back().name, "mask");
                    else
                        // In layer 0 one writer may be all: only its products have other signs.
                        EXPECT_NEAR(of->sum + remainders_of(*of), of->score,
                                    1e-5 * std::max(magnitude(*of), replay.products(cell)));
                    EXPECT_EQ(f.softcap > 0, !of->remainders.empty() && of->remainders[0].name == "softcap");
                    expect_like_replay(*of, replay);
                    if (arithmetic == Arithmetic::engine) expect_shares_like_replay(*of, replay);
                }
}

// A later question needs no more of the layers than a run keeps.
TEST_P(Writers, are_the_same_by_what_the_layers_of_a_run_wrote) {
    const Family family = family_of(GetParam());
    const CheckpointModel& model = *family.model;
    std::vector<std::shared_ptr<const LayerWrites>> kept;
    ModelRunOptions run = family.options;
    run.with_hidden = true;
    run.on_layer = [&](uint64_t, Trace& trace) -> Result<void> {
        Result<LayerWrites> writes = layer_writes(trace, 0);
        if (!writes) return writes.error();
        EXPECT_FALSE(is_present(writes->block.attention.query));
        EXPECT_TRUE(writes->block.feed_forward.down.weight.values.empty());
        kept.push_back(std::make_shared<const LayerWrites>(std::move(*writes)));
        return {};
    };
    const Result<ModelRun> ran = run_model(model, family.ids, run);
    ASSERT_TRUE(ran) << ran.error().text;
    for (uint32_t layer = 0; layer < model.config().layers; ++layer) {
        SCOPED_TRACE("layer " + std::to_string(layer));
        const LayerCell cell{layer, 1, family.ids.size() - 1, 1};
        Result<Trace> trace =
            trace_layer(model, layer, ran->hidden[layer], family.options.changes, family.options.trace);
        ASSERT_TRUE(trace) << trace.error().text;
        ModelRunOptions never = family.options;
        never.progress = [](double) { return false; };  // ends a run
        const Result<ScoreWriters> plain = score_writers(model, family.ids, *trace, cell, family.options),
                                   of = score_writers(model, family.ids, *trace, cell, never,
                                                      [&](uint64_t n) { return kept[n]; });
        ASSERT_TRUE(plain) << plain.error().text;
        ASSERT_TRUE(of) << of.error().text;
        EXPECT_EQ(of->writers, plain->writers);
        EXPECT_EQ(of->matrix, plain->matrix);
        EXPECT_EQ(of->score, plain->score);
        // One that is not known: the layers are run.
        const Result<ScoreWriters> rest = score_writers(
            model, family.ids, *trace, cell, family.options,
            [&](uint64_t n) { return n == 0 ? kept[0] : std::shared_ptr<const LayerWrites>(); });
        ASSERT_TRUE(rest) << rest.error().text;
        EXPECT_EQ(rest->writers, plain->writers);
        EXPECT_EQ(rest->matrix, plain->matrix);
    }
}

TEST(WritersOfRuns, a_run_keeps_what_its_layers_wrote_where_it_is_asked_to) {
    const Result<CheckpointModel> model = CheckpointModel::open(fs::path(FOVEA_FAMILIES) / "llama3");
    ASSERT_TRUE(model) << model.error().text;
    Prompt prompt;
    prompt.ids = {3, 1, 4, 1, 5, 9};
    PromptOptions options;
    std::vector<uint64_t> told[2];
    for (const bool keeps : {false, true}) {
        options.keep_writes = keeps;
        options.check_memory = [&](uint64_t bytes) -> Result<void> {
            told[keeps].push_back(bytes);
            return {};
        };
        PromptRun run(prompt);
        ASSERT_TRUE(run.run(*model, options));
        EXPECT_EQ(run.writes(0) != nullptr, keeps);
        EXPECT_EQ(run.writes(2), nullptr);
        if (!keeps) continue;
        EXPECT_EQ(run.writes(1)->context.rows(), prompt.ids.size());
        // Layers before a change are kept.
        prompt.changes.scale_head(1, 2, 0);
        PromptRun changed(prompt, &run);
        ASSERT_TRUE(changed.run(*model, options));
        EXPECT_EQ(changed.writes(0), run.writes(0));
        EXPECT_NE(changed.writes(1)->context.values, run.writes(1)->context.values);
    }
    EXPECT_EQ(told[1][0] - told[0][0], 2 * layer_writes_bytes(*model, 6));
}

TEST_P(Writers, of_a_logit_add_up_to_it_and_are_what_their_removal_changes) {
    Family family = family_of(GetParam());
    const CheckpointModel& model = *family.model;
    const uint64_t last = family.ids.size() - 1;
    if (!model.has_unembedding()) {
        EXPECT_EQ(logit_writers(model, family.ids, last).error().text,
                  "the model's files have no unembedding, which logits need");
        return;
    }
    for (const uint64_t position : {uint64_t{0}, last})
        for (const std::optional<uint32_t> token : {std::optional<uint32_t>(), std::optional<uint32_t>(3)}) {
            const Result<LogitWriters> of = logit_writers(model, family.ids, position, token, family.options);
            ASSERT_TRUE(of) << of.error().text;
            SCOPED_TRACE("position " + std::to_string(position) + " token " + std::to_string(of->token));
            double bound = 0;
            for (const double value : of->values) bound += 1e-5 * std::abs(value);
            EXPECT_NEAR(of->sum, sum_of(of->values), 1e-9 * bound + 1e-12);
            EXPECT_NEAR(of->sum + of->softcap, double(of->logit), bound);
            if (family.logits.rank() == 2 && family.logits.rows() > position) {
                const auto row = family.logits.row(position);
                EXPECT_NEAR(of->logit, row[of->token], 2e-4f);
                EXPECT_EQ(of->token, token.value_or(uint32_t(std::ranges::max_element(row) - row.begin())));
            }
            EXPECT_EQ(of->softcap != 0, model.config().logit_softcap > 0);
            Model ends = *model.ends();
            F32Tensor one({1, model.config().width});
            ASSERT_TRUE(read_rows(*ends.unembedding.stored, of->token, one.values));
            std::vector<float>& bias = ends.unembedding.bias.values;
            if (!bias.empty()) bias = {bias[of->token]};
            ends.unembedding.weight = std::move(one), ends.unembedding.stored.reset();
            const auto without = [&](const Gone& gone) {
                return family.replay->logit(ends, size_t(position), gone);
            };
            const double all = without({});
            EXPECT_NEAR(of->sum, all, bound);
            for (uint32_t w = 0; w < of->writers.size(); ++w)
                EXPECT_NEAR(of->values[w], all - without(Replay::LeftOut{of->writers[w], {}}), bound)
                    << "writer " << w;
            const auto has_shares = [](const Writer& w) {
                return w.kind == Writer::Kind::head || w.kind == Writer::Kind::feed_forward;
            };
            EXPECT_EQ(of->shares.size(), size_t(std::ranges::count_if(of->writers, has_shares)));
            expect_shares(
                of->shares, of->writers, bound, [&](uint32_t w) { return of->values[w]; }, without);
        }
}

// A trace of the library's induction model on a text, by the model's own rules or changed ones.
Trace induction_trace(std::span<const uint32_t> ids,
                      const std::function<void(AttentionRules&)>& change = {}) {
    const LearnedModel learned = *learned_model("induction");
    auto model = std::make_shared<Model>(*learned.model);
    for (Block& block : model->blocks)
        if (change) change(block.attention.rules);
    return *Trace::open(model, *learned_input(learned, ids));
}

TEST(WritersOfTrace, what_is_not_bilinear_has_a_name) {
    const std::vector<uint32_t> ids = learned_model("induction")->sample;
    Trace trace = induction_trace(ids, [](AttentionRules& rules) {
        rules.softcap = 3, rules.alibi = true, rules.precision = Precision::f16;
    });
    const LayerCell cell{1, 1, ids.size() - 1, 2};
    const Result<ScoreWriters> of = score_writers(trace, ids, cell);
    ASSERT_TRUE(of) << of.error().text;
    ASSERT_EQ(of->remainders.size(), 3u);
    const auto stage = [&](StageId id) { return double(trace.stage(id, 1, 1)->row(cell.query)[cell.key]); };
    EXPECT_EQ(of->remainders[0].name, "rounding to float16");
    EXPECT_NEAR(of->remainders[0].value, 0, 2e-3 * magnitude(*of));
    EXPECT_EQ(of->remainders[1].name, "softcap");
    const double scaled = stage(StageId::scaled);
    EXPECT_NEAR(of->remainders[1].value, 3 * std::tanh(scaled / 3) - scaled, 1e-6);
    EXPECT_EQ(of->remainders[2].name, "ALiBi slope");
    EXPECT_NEAR(of->remainders[2].value, double(alibi_slope(1, trace.heads(1))) * (2 - double(cell.query)),
                1e-6);
    EXPECT_EQ(of->score, stage(StageId::masked));
    EXPECT_EQ(of->weight, stage(StageId::weights));
    EXPECT_NEAR(of->sum + remainders_of(*of), of->score, 1e-12);
    const Result<ScoreWriters> masked = score_writers(trace, ids, {1, 1, 2, 3});
    ASSERT_TRUE(masked) << masked.error().text;
    EXPECT_EQ(masked->remainders.back().name, "mask");
    EXPECT_EQ(masked->score, -INFINITY);
    EXPECT_TRUE(std::isfinite(masked->sum));
}

TEST(WritersOfTrace, rows_without_an_embedding_are_one_writer) {
    const LearnedModel learned = *learned_model("induction");
    const std::vector<uint32_t>& ids = learned.sample;
    auto model = std::make_shared<Model>(*learned.model);
    F32Tensor& places = model->embedding.positions =
        F32Tensor({ids.size(), model->embedding.table.columns()});
    for (size_t i = 0; i < places.values.size(); ++i) places.values[i] = float(std::sin(double(i)));
    ModelInput input;
    input.x = *embed(*model, ids);
    Trace trace = *Trace::open(model, input);
    const LayerCell cell{1, 0, ids.size() - 1, 4};
    const Result<ScoreWriters> split = score_writers(trace, ids, cell),
                               whole = score_writers(trace, {}, cell);
    ASSERT_TRUE(split && whole);
    ASSERT_EQ(split->writers[1].kind, Writer::Kind::position);
    EXPECT_EQ(whole->writers.size() + 1, split->writers.size());
    const double bound = 1e-6 * magnitude(*split);
    EXPECT_NEAR(whole->at(0, 0), split->at(0, 0) + split->at(0, 1) + split->at(1, 0) + split->at(1, 1),
                bound);
    EXPECT_NEAR(whole->at(0, 1), split->at(0, 2) + split->at(1, 2), bound);
    EXPECT_NEAR(split->sum, split->score, 1e-5 * magnitude(*split));
}

TEST(WritersOfTrace, cells_and_inputs_that_do_not_fit_are_refused) {
    const std::vector<uint32_t> ids = learned_model("induction")->sample;
    Trace trace = induction_trace(ids);
    const auto refusal = [&](const LayerCell& cell, std::span<const uint32_t> tokens) {
        const Result<ScoreWriters> of = score_writers(trace, tokens, cell);
        return of ? std::string() : of.error().text;
    };
    const std::string last = std::to_string(ids.size() - 1), count = std::to_string(ids.size());
    EXPECT_EQ(refusal({2, 0, 0, 0}, ids), "layer is 2; the model has layers 0 to 1");
    EXPECT_EQ(refusal({1, 99, 0, 0}, ids),
              "head is 99; the layer has heads 0 to " + std::to_string(trace.heads(1) - 1));
    EXPECT_EQ(refusal({1, 0, ids.size(), 0}, ids),
              "query is " + count + "; the text has tokens 0 to " + last);
    EXPECT_EQ(refusal({1, 0, 0, ids.size()}, ids), "key is " + count + "; the text has tokens 0 to " + last);
    EXPECT_EQ(refusal({1, 0, 0, 0}, std::span(ids).first(2)), "ids has 2 tokens; the trace has " + count);
    ModelInput given;
    given.q = given.k = given.v = F32Tensor({1, 3, 4});
    auto block = std::make_shared<Model>();
    block->blocks.emplace_back();
    trace = *Trace::open(block, given);
    EXPECT_NE(refusal({0, 0, 0, 0}, {}).find("only where one text gives all of them"), std::string::npos);
}

TEST(WritersOfTrace, an_induction_weight_is_the_querys_token_by_what_the_previous_token_head_wrote) {
    const LearnedModel learned = *learned_model("induction");
    const std::vector<uint32_t>& ids = learned.sample;
    Trace trace = induction_trace(ids);
    size_t seen = 0;
    for (uint32_t head = 0; head < trace.heads(1); ++head) {
        if (learned.head_labels[trace.heads(0) + head] != "induction") continue;
        const Result<F32Tensor> weights = trace.stage(StageId::weights, head, 1);
        ASSERT_TRUE(weights) << weights.error().text;
        for (uint64_t query = 0; query < ids.size(); ++query)
            for (uint64_t key = 1; key < query; ++key) {
                if (ids[key - 1] != ids[query] || weights->row(query)[key] < 0.5f) continue;
                const Result<ScoreWriters> of = score_writers(trace, ids, {1, head, query, key});
                ASSERT_TRUE(of) << of.error().text;
                const WriterEntry top = largest_entries(*of, 1)[0];
                const Writer& wrote = of->writers[top.key_writer];
                SCOPED_TRACE(writers_text(*of, 5, [](uint64_t) { return std::string(); }));
                EXPECT_EQ(of->writers[top.query_writer].kind, Writer::Kind::token);
                ASSERT_EQ(wrote.kind, Writer::Kind::head);
                EXPECT_EQ(learned.head_labels[wrote.head], "previous token");
                EXPECT_GT(top.value, 0);
                ++seen;
            }
    }
    EXPECT_GT(seen, 5u);
}

TEST(WritersOfTrace, heads_are_split_by_what_they_read_in_a_trace_and_in_a_changed_model) {
    const LearnedModel learned = *learned_model("induction");
    const std::vector<uint32_t>& ids = learned.sample;
    Trace trace = induction_trace(ids);
    const Result<ScoreWriters> of = score_writers(trace, ids, {1, 1, ids.size() - 1, 4}, true);
    ASSERT_TRUE(of) << of.error().text;
    ASSERT_EQ(of->key_shares.size(), trace.heads(0));
    for (const WriterShares& one : of->key_shares) {
        EXPECT_NEAR(sum_of(one.values), of->of_key_writer(one.writer), 1e-5 * magnitude(*of));
        EXPECT_EQ(sum_of({one.values.begin() + 5, one.values.end()}), 0);  // causal
    }
    EXPECT_TRUE(score_writers(trace, ids, of->cell)->key_shares.empty());

    const Result<CheckpointModel> model = CheckpointModel::open(fs::path(FOVEA_FAMILIES) / "gpt2");
    ASSERT_TRUE(model) << model.error().text;
    const std::vector<uint32_t> text = {3, 1, 4, 1, 5, 9, 2, 6}, other = {2, 7, 1, 8, 2, 8, 1, 8};
    const LayerCell cell{1, 0, 7, 3};
    ModelRunOptions options;
    options.changes.scale_head(0, 1, 0.5f);
    options.changes.patches = *head_contexts(*model, other, {{0, 2}});
    const Result<ScoreWriters> changed = score_writers(*model, text, cell, options, true),
                               plain = score_writers(*model, text, cell, {}, true);
    ASSERT_TRUE(changed && plain);
    EXPECT_TRUE(changed->query_shares[2].values.empty());
    EXPECT_FALSE(plain->query_shares[2].values.empty());
    for (const size_t head : {0u, 1u, 3u})
        EXPECT_NEAR(sum_of(changed->key_shares[head].values),
                    changed->of_key_writer(changed->key_shares[head].writer), 1e-5 * magnitude(*changed));
}

TEST(WritersOfTrace, logits_that_do_not_exist_are_refused) {
    const Result<CheckpointModel> model = CheckpointModel::open(fs::path(FOVEA_FAMILIES) / "gpt2");
    ASSERT_TRUE(model) << model.error().text;
    const std::vector<uint32_t> ids = {3, 1, 4};
    EXPECT_EQ(logit_writers(*model, ids, 3).error().text, "position is 3; the text has tokens 0 to 2");
    const uint64_t count = model->config().vocabulary;
    EXPECT_EQ(
        logit_writers(*model, ids, 0, uint32_t(count)).error().text,
        "token is " + std::to_string(count) + "; the model has tokens 0 to " + std::to_string(count - 1));
    EXPECT_EQ(logit_writers(*model, {}, 0).error().text, "tokens is empty; it must have at least one token");
}

TEST(WritersOfTrace, a_trace_of_the_cells_layer_is_read_in_place_of_its_run) {
    const Result<CheckpointModel> model = CheckpointModel::open(fs::path(FOVEA_FAMILIES) / "gpt2");
    ASSERT_TRUE(model) << model.error().text;
    const std::vector<uint32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6};
    ModelRunOptions options;
    options.with_hidden = true;
    const Result<ModelRun> run = run_model(*model, ids, options);
    ASSERT_TRUE(run) << run.error().text;
    for (const uint32_t layer : {0u, 1u}) {
        const LayerCell cell{layer, 1, 6, 2};
        Result<Trace> trace = trace_layer(*model, layer, run->hidden[layer]);
        ASSERT_TRUE(trace) << trace.error().text;
        AttentionRules rules = trace->rules();
        rules.softcap = 0.5;
        Trace capped = trace->with_rules(rules);
        const Result<ScoreWriters> plain = score_writers(*model, ids, cell),
                                   same = score_writers(*model, ids, *trace, cell),
                                   other = score_writers(*model, ids, capped, cell);
        ASSERT_TRUE(plain && same && other);
        EXPECT_EQ(same->matrix, plain->matrix);
        EXPECT_EQ(same->weight, plain->weight);
        EXPECT_EQ(other->matrix, plain->matrix);
        ASSERT_EQ(other->remainders.size(), 1u);
        EXPECT_NEAR(other->score, 0.5 * std::tanh(plain->score / 0.5), 1e-6);
        const Result<ScoreWriters> refused = score_writers(*model, std::span(ids).first(7), *trace, cell);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().text,
                  "layer is a trace of 1 layers and 8 tokens; it must have one layer and 7 tokens");
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Writers, testing::ValuesIn(family_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fovea
