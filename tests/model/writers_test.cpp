// Scores split by writers, against a separate forward pass in float64 that freezes its norms and leaves one
// writer out.
#include "model/float64_parts.hpp"

#include <fovea/inspect/writers.hpp>
#include <fovea/model/learned.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<double>;
using Gone = std::optional<Writer>;

class Replay {
  public:
    // `token` and `position` are rows of the embedding before its norm; no rows: none.
    Replay(std::vector<Block> blocks, Norm embedding_norm, Matrix token, Matrix position)
        : blocks_(std::move(blocks)),
          embedding_norm_(std::move(embedding_norm)),
          token_(std::move(token)),
          position_(std::move(position)) {
        for (size_t n = 0; n < blocks_.size(); ++n) run(n);
    }

    double score(const LayerCell& cell, const Gone& at_query, const Gone& at_key) {
        const AttentionPart& a = blocks_[cell.layer].attention;
        const Values q = made(cell.layer, cell.query, true, cell.head, at_query);
        const Values k = made(cell.layer, cell.key, false, cell.head / (a.heads / a.kv_heads), at_key);
        return std::inner_product(q.begin(), q.end(), k.begin(), 0.0) * factor(a, q.size());
    }

    // The sum of the magnitudes of what the score adds up, in its order: what its rounding is measured by.
    double products(const LayerCell& cell) {
        const AttentionPart& a = blocks_[cell.layer].attention;
        const Values q = made(cell.layer, cell.query, true, cell.head, {});
        const Values k = made(cell.layer, cell.key, false, cell.head / (a.heads / a.kv_heads), {});
        double sum = 0;
        for (size_t c = 0; c < q.size(); ++c) sum += std::abs(q[c] * k[c]);
        return sum * factor(a, q.size());
    }

  private:
    static double factor(const AttentionPart& a, size_t width) {
        const ScoreScale scale = score_scale(a.rules, width);
        return scale.divides ? 1 / scale.value : scale.value;
    }
    static bool is(const Gone& gone, Writer::Kind kind, size_t layer = 0, size_t head = 0) {
        return gone && *gone == Writer{kind, uint32_t(layer), uint32_t(head)};
    }
    static void grow(Values& x, const Values& by) {
        for (size_t c = 0; c < x.size(); ++c) x[c] += by[c];
    }
    static Values linear(const Linear& l, const Values& x, bool with_bias) {
        Linear bare = l;
        if (!with_bias) bare.bias = F32Tensor(Shape{0});
        return times({x}, bare)[0];
    }

    // The first call for a row and a name, with nothing left out, freezes the scale.
    void norm(const Norm& n, Values& x, size_t row, const std::string& name, bool with_bias) {
        if (n.kind == NormKind::none) return;
        double mean = 0, squares = 0;
        for (const double v : x) mean += v / double(x.size());
        if (n.kind == NormKind::rms) mean = 0;
        for (const double v : x) squares += (v - mean) * (v - mean) / double(x.size());
        const double scale =
            scales_.try_emplace({row, name}, 1 / std::sqrt(squares + n.epsilon)).first->second;
        for (size_t c = 0; c < x.size(); ++c) {
            x[c] = (x[c] - mean) * scale;
            if (!n.weight.values.empty()) x[c] *= double(n.weight.values[c]);
            if (!n.bias.values.empty() && with_bias) x[c] += double(n.bias.values[c]);
        }
    }

    // Returns what enters block `layers`; with `attended`, the stream that its feed-forward part reads.
    Values stream(size_t row, size_t layers, const Gone& gone, bool attended = false) {
        Values x = is(gone, Writer::Kind::token) ? Values(token_[row].size()) : token_[row];
        if (!position_.empty() && !is(gone, Writer::Kind::position)) grow(x, position_[row]);
        norm(embedding_norm_, x, row, "embedding", !is(gone, Writer::Kind::embedding_bias));
        for (size_t n = 0; n < layers + attended; ++n) {
            const Block& b = blocks_[n];
            const std::string name = std::to_string(n);
            const bool biases = !is(gone, Writer::Kind::bias, n);
            Values part = context_[n][row];
            const size_t width = part.size() / b.attention.heads;
            for (size_t h = 0; h < b.attention.heads; ++h)
                if (is(gone, Writer::Kind::head, n, h))
                    std::fill_n(part.begin() + int64_t(h * width), width, 0.0);
            part = linear(b.attention.output, part, biases);
            norm(b.attention_output_norm, part, row, name + "a", biases);
            grow(x, part);
            if (b.order == BlockOrder::post) norm(b.attention_norm, x, row, name + "b", biases);
            if (n == layers || !is_present(b.feed_forward.up)) continue;
            part = is(gone, Writer::Kind::feed_forward, n) ? Values(x.size()) : fed_[n][row];
            const std::vector<float>& bias = b.feed_forward.down.bias.values;
            if (biases) grow(part, bias.empty() ? Values(x.size()) : Values(bias.begin(), bias.end()));
            norm(b.feed_forward_output_norm, part, row, name + "c", biases);
            grow(x, part);
            if (b.order == BlockOrder::post) norm(b.feed_forward_norm, x, row, name + "d", biases);
        }
        return x;
    }

    // q or k of one head.
    Values made(size_t n, size_t row, bool query, size_t head, const Gone& gone) {
        const Block& b = blocks_[n];
        const AttentionPart& a = b.attention;
        const std::string name = std::to_string(n);
        const bool biases = !gone || gone->kind != Writer::Kind::reader_bias;
        Values x = stream(row, n, gone);
        if (b.order != BlockOrder::post) norm(b.attention_norm, x, row, name + "n", biases);
        const Values all = linear(query ? a.query : a.key, x, biases);
        const size_t width = all.size() / (query ? a.heads : a.kv_heads);
        const auto from = all.begin() + int64_t(head * width);
        Values y(from, from + int64_t(width));
        norm(query ? a.query_norm : a.key_norm, y, row, name + (query ? "q" : "k") + std::to_string(head),
             biases);
        if (!a.rope) return y;
        const size_t pairs = a.rope->rotated(width) / 2;
        for (size_t p = 0; p < pairs; ++p) {
            double angle =
                double(a.rope->first_position + row) * std::pow(a.rope->theta, -double(p) / double(pairs));
            if (!a.rope->divisors.empty()) angle /= a.rope->divisors[p];
            double& u = y[a.rope->interleaved ? 2 * p : p];
            double& w = y[a.rope->interleaved ? 2 * p + 1 : p + pairs];
            const double before = u;
            u = a.rope->magnitude * (std::cos(angle) * before - std::sin(angle) * w);
            w = a.rope->magnitude * (std::sin(angle) * before + std::cos(angle) * w);
        }
        return y;
    }

    void run(size_t n) {
        const Block& b = blocks_[n];
        const AttentionPart& a = b.attention;
        const FeedForward& f = b.feed_forward;
        const size_t rows = token_.size();
        Matrix values;
        for (size_t i = 0; i < rows; ++i) {
            Values x = stream(i, n, {});
            if (b.order != BlockOrder::post) norm(b.attention_norm, x, i, std::to_string(n) + "n", true);
            values.push_back(linear(a.value, x, true));
        }
        const size_t width = values[0].size() / a.kv_heads;
        context_.emplace_back(rows, Values(width * a.heads));
        for (size_t h = 0; h < a.heads; ++h)
            for (size_t i = 0; i < rows; ++i) {
                const size_t kv = h / (a.heads / a.kv_heads);
                Values weights(rows, -INFINITY);
                for (size_t j = 0; j < rows; ++j) {
                    if (!rules_show(a.rules, i, j, rows, rows)) continue;
                    weights[j] = score({uint32_t(n), uint32_t(h), i, j}, {}, {});
                    const double c = a.rules.softcap;
                    if (c > 0) weights[j] = c * std::tanh(weights[j] / c);
                }
                softmax(weights);
                for (size_t j = 0; j < rows; ++j)
                    for (size_t c = 0; c < width; ++c)
                        context_[n][i][h * width + c] += weights[j] * values[j][kv * width + c];
            }
        fed_.emplace_back();
        for (size_t i = 0; i < rows && is_present(f.up); ++i) {
            Values x = stream(i, n, {}, b.order != BlockOrder::parallel);
            if (b.order != BlockOrder::post) norm(b.feed_forward_norm, x, i, std::to_string(n) + "f", true);
            const bool gated = is_present(f.gate);
            Values hidden = linear(f.up, x, true);
            const Values gate = gated ? linear(f.gate, x, true) : Values();
            for (size_t c = 0; c < hidden.size(); ++c)
                hidden[c] = gated ? act(f.activation, gate[c]) * hidden[c] : act(f.activation, hidden[c]);
            fed_[n].push_back(linear(f.down, hidden, false));
        }
    }

    std::vector<Block> blocks_;
    Norm embedding_norm_;
    Matrix token_, position_;
    std::vector<Matrix> context_, fed_;  // by layer and row; fed_: without the last bias
    std::map<std::pair<size_t, std::string>, double> scales_;
};

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
        const Writer& gone = of.writers[w];
        const double row = of.of_query_writer(w), column = of.of_key_writer(w);
        EXPECT_NEAR(row, all - replay.score(of.cell, gone, {}), bound);
        EXPECT_NEAR(column, all - replay.score(of.cell, {}, gone), bound);
        EXPECT_NEAR(row + column - of.at(w, w), all - replay.score(of.cell, gone, gone), bound);
    }
}

class Writers : public testing::TestWithParam<std::string> {};

TEST_P(Writers, add_up_to_the_score_and_are_what_their_removal_changes) {
    const fs::path folder = fs::path(FOVEA_FAMILIES) / GetParam();
    const Result<CheckpointModel> model =
        CheckpointModel::open(fs::exists(folder / "config.json") ? folder : folder / "model.gguf");
    ASSERT_TRUE(model) << model.error().text;
    const Result<TensorSet> expected = load_safetensors(folder / "expected.safetensors");
    ASSERT_TRUE(expected) << expected.error().text;
    const auto values_of = [&](const std::string& name) { return to_f32(*expected->find(name)).value(); };
    const ModelConfig& f = model->config();
    ModelRunOptions options;
    std::vector<uint32_t> ids;
    Matrix token, position;
    Norm embedding_norm;
    if (f.patches != 0) {
        options.entering = *model->embed_patches(F32Tensor({f.patches, f.patch_width}, values_of("patches")));
        ids.resize(options.entering.rows());
        const StoredWeight* places = model->files().find("vit.embeddings.position_embeddings");
        ASSERT_NE(places, nullptr);
        for (size_t i = 0; i < ids.size(); ++i) {
            std::vector<float> row(f.width);
            ASSERT_TRUE(read_rows(*places, i, row));
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
    Replay replay(blocks, embedding_norm, token, position);
    for (const Arithmetic arithmetic : {Arithmetic::strict, Arithmetic::engine})
        for (uint32_t layer = 0; layer < f.layers; ++layer)
            for (const uint32_t head : {0u, uint32_t(f.heads - 1)})
                for (const uint64_t key : {uint64_t{0}, uint64_t{ids.size() - 2}}) {
                    options.trace.arithmetic = arithmetic;
                    const LayerCell cell{layer, head, ids.size() - 1, key};
                    SCOPED_TRACE("layer " + std::to_string(layer) + " head " + std::to_string(head) +
                                 " key " + std::to_string(key));
                    const Result<ScoreWriters> of = score_writers(*model, ids, cell, options);
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
                }
}

std::vector<std::string> families() {
    std::vector<std::string> names;
    for (const auto& folder : fs::directory_iterator(FOVEA_FAMILIES))
        if (fs::exists(folder.path() / "expected.safetensors"))
            names.push_back(folder.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
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

INSTANTIATE_TEST_SUITE_P(Models, Writers, testing::ValuesIn(families()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fovea
