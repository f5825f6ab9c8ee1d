// Why a head attends and what a logit is made of: writers of the stream, and what these read.
#include <fovea/inspect/writers.hpp>
#include <fovea/model/next_tokens.hpp>

#include "writer_steps.hpp"

namespace fovea {
namespace {

using writing::LayerWeights, writing::WriterSteps;

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Error beyond(const char* field, uint64_t value, const char* of, uint64_t count) {
    return wrong(field, std::string(field) + " is " + std::to_string(value) + "; " + of + " 0 to " +
                            std::to_string(count - 1));
}

// Reads what the trace adds to the scaled product, its logit and its weight.
Result<void> read_logit(Trace& trace, uint32_t n, ScoreWriters& out) {
    const LayerCell& cell = out.cell;
    const AttentionRules& rules = trace.rules(n);
    const std::vector<TraceStage> stages = trace.stages(n);
    const auto has = [&](StageId id) {
        return std::any_of(stages.begin(), stages.end(), [&](const TraceStage& one) { return one.id == id; });
    };
    const auto value = [&](StageId id) -> Result<double> {
        const Result<F32Tensor> all = trace.stage(id, cell.head, n);
        return all ? Result<double>(double(all->row(cell.query)[cell.key])) : all.error();
    };
    const auto add = [&](StageId id, const char* name) -> Result<void> {
        if (!has(id)) return {};
        const Result<double> after = value(id);
        if (!after) return after.error();
        const double added = *after - out.score;
        if (std::isinf(added)) name = "mask";
        if (name && added != 0) out.remainders.push_back({name, added});
        out.score = *after;
        return {};
    };
    const bool biased = n == 0 && !trace.input().extras.bias.empty();
    const char* const rounding = rules.precision == Precision::f32 ? nullptr : "rounding to float16";
    const char* const bias = !rules.alibi ? "bias" : biased ? "ALiBi slope and bias" : "ALiBi slope";
    out.score = out.sum;
    if (Result<void> r = add(has(StageId::scaled) ? StageId::scaled : StageId::scores, rounding); !r)
        return r;
    if (Result<void> r = add(StageId::capped, "softcap"); !r) return r;
    if (Result<void> r = add(StageId::masked, bias); !r) return r;
    const Result<double> weight = value(StageId::weights);
    if (!weight) return weight.error();
    out.weight = *weight;
    return {};
}

Result<void> check_cell(const LayerCell& cell, uint64_t layers, uint64_t heads, uint64_t rows) {
    if (cell.layer >= layers) return beyond("layer", cell.layer, "the model has layers", layers);
    if (cell.head >= heads) return beyond("head", cell.head, "the layer has heads", heads);
    for (const auto& [name, token] : {std::pair{"query", cell.query}, {"key", cell.key}})
        if (token >= rows) return beyond(name, token, "the text has tokens", rows);
    return {};
}

LayerWeights weights_of(const CheckpointModel& model, uint64_t tokens) {
    return [&model, tokens](uint32_t layer, bool feed_forward) -> Result<Linear> {
        Result<Block> block = model.block(layer, tokens, true);
        if (!block) return block.error();
        return std::move(feed_forward ? block->feed_forward.down : block->attention.output);
    };
}

// `weights` is empty where no shares are asked for.
Result<ScoreWriters> finished(WriterSteps& steps, Trace& trace, uint32_t n, const LayerCell& cell,
                              const LayerWeights& weights) {
    if (Result<void> r = steps.read(trace, n, cell); !r) return r.error();
    ScoreWriters out;
    out.cell = cell;
    out.writers = std::move(steps.writers);
    const size_t count = out.writers.size();
    out.matrix.resize(count * count);
    const ScoreScale scale = score_scale(trace.rules(n), steps.query().columns);
    const double factor = scale.divides ? 1.0 / scale.value : scale.value;
    for (const writing::Part& q : steps.query().parts)
        for (const writing::Part& k : steps.key().parts) {
            const double sum = writing::dot(q.values.data(), k.values.data(), q.values.size());
            out.matrix[q.writer * count + k.writer] = sum * factor;
        }
    out.sum = std::accumulate(out.matrix.begin(), out.matrix.end(), 0.0);
    if (Result<void> r = read_logit(trace, n, out); !r) return r.error();
    if (!weights) return out;
    // The score's gradient by q is k, and the reverse.
    std::vector<double> q = steps.query().sum(), k = steps.key().sum();
    for (std::vector<double>* one : {&q, &k})
        for (double& value : *one) value *= factor;
    Result<std::vector<WriterShares>> by_query = steps.shares(steps.by_query(std::move(k)), weights),
                                      by_key = steps.shares(steps.by_key(std::move(q)), weights);
    if (!by_query) return by_query.error();
    if (!by_key) return by_key.error();
    out.query_shares = std::move(*by_query), out.key_shares = std::move(*by_key);
    return out;
}

WriterSteps::Keep kept(bool shares) {
    return shares ? WriterSteps::Keep::sources : WriterSteps::Keep::nothing;
}

// Passes the layers before the cell's by what they wrote: how many, up to the first that is not known.
Result<uint64_t> pass_known(WriterSteps& steps, uint64_t layers, const WritesOf& writes) {
    uint64_t n = 0;
    for (; writes && n < layers; ++n) {
        const std::shared_ptr<const LayerWrites> known = writes(n);
        if (!known) break;
        if (Result<void> r = steps.pass(known->block, known->context, known->ff_output, uint32_t(n)); !r)
            return r.error();
    }
    return n;
}

// `last`: a trace of the cell's layer; null: that layer is run, too.
Result<ScoreWriters> split_run(const CheckpointModel& model, std::span<const uint32_t> ids, Trace* last,
                               const LayerCell& cell, const ModelRunOptions& options, bool shares,
                               const WritesOf& writes = {}) {
    const ModelConfig& f = model.config();
    if (ids.empty()) return wrong("tokens", "tokens is empty; it must have at least one token");
    if (Result<void> r = check_cell(cell, f.layers, f.heads, ids.size()); !r) return r.error();
    const Result<EmbeddingRows> read = model.embedding_rows(ids, options.entering);
    if (!read) return read.error();
    WriterSteps steps({cell.query, cell.key}, kept(shares), &options.changes);
    const LayerWeights weights = shares ? weights_of(model, ids.size()) : LayerWeights();
    if (Result<void> r =
            steps.start(read->embedding, {read->rows.row(cell.query), read->rows.row(cell.key)}, ids);
        !r)
        return r.error();
    ModelRunOptions run;
    run.trace = options.trace, run.progress = options.progress;
    run.changes = options.changes, run.entering = options.entering;
    Result<ScoreWriters> out = ScoreWriters();
    const uint64_t layers = uint64_t{cell.layer} + (last ? 0 : 1);
    const Result<uint64_t> known = pass_known(steps, cell.layer, writes);
    if (!known) return known.error();
    bool ended = *known == layers;
    run.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        if (layer == cell.layer) {
            out = finished(steps, trace, 0, cell, weights);
        } else if (layer < *known) {
            return {};
        } else if (Result<void> r = steps.pass(trace, 0, uint32_t(layer)); !r) {
            return r;
        }
        ended = layer + 1 == layers;
        return ended ? Error{FOVEA_CANCELLED, "run", "no further layer is needed"} : Result<void>();
    };
    if (!ended)
        if (const Result<ModelRun> ran = run_model(model, ids, run); !ended) return ran.error();
    return last ? finished(steps, *last, 0, cell, weights) : std::move(out);
}

}  // namespace

double ScoreWriters::of_query_writer(size_t writer) const {
    const auto row = matrix.begin() + int64_t(writer * writers.size());
    return std::accumulate(row, row + int64_t(writers.size()), 0.0);
}

double ScoreWriters::of_key_writer(size_t writer) const {
    double column = 0;
    for (size_t a = 0; a < writers.size(); ++a) column += at(a, writer);
    return column;
}

Result<ScoreWriters> score_writers(Trace& trace, std::span<const uint32_t> ids, const LayerCell& cell,
                                   bool shares) {
    const ModelInput& input = trace.input();
    if (!input.q.values.empty() || !input.memory.values.empty())
        return wrong("input",
                     "the model's q, k and v, or the memory that k and v come from, are given; a "
                     "score has writers only where one text gives all of them");
    const uint32_t heads = cell.layer < trace.layers() ? trace.heads(cell.layer) : 0;
    if (Result<void> r = check_cell(cell, trace.layers(), heads, trace.rows()); !r) return r.error();
    WriterSteps steps({cell.query, cell.key}, kept(shares));
    const Embedding& embedding = trace.model().embedding;
    if (ids.empty() || embedding.table.values.empty()) {
        steps.start(input.x);
    } else {
        if (ids.size() != trace.rows())
            return wrong("ids", "ids has " + std::to_string(ids.size()) + " tokens; the trace has " +
                                    std::to_string(trace.rows()));
        std::vector<std::span<const float>> tokens(2);
        for (size_t s = 0; s < tokens.size(); ++s) {
            const uint32_t id = ids[s == 0 ? cell.query : cell.key];
            if (id >= embedding.table.rows())
                return beyond("ids", id, "the table has IDs", embedding.table.rows());
            tokens[s] = embedding.table.row(id);
        }
        if (Result<void> r = steps.start(embedding, tokens, ids); !r) return r.error();
    }
    for (uint32_t n = 0; n < cell.layer; ++n)
        if (Result<void> r = steps.pass(trace, n, n); !r) return r.error();
    const LayerWeights weights = [&](uint32_t layer, bool) -> Result<Linear> {
        return trace.model().blocks[layer].attention.output;
    };
    return finished(steps, trace, cell.layer, cell, shares ? weights : LayerWeights());
}

Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids,
                                   const LayerCell& cell, const ModelRunOptions& options, bool shares) {
    return split_run(model, ids, nullptr, cell, options, shares);
}

Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids, Trace& layer,
                                   const LayerCell& cell, const ModelRunOptions& options,
                                   const WritesOf& writes) {
    if (layer.layers() != 1 || layer.rows() != ids.size())
        return wrong("layer", "layer is a trace of " + std::to_string(layer.layers()) + " layers and " +
                                  std::to_string(layer.rows()) + " tokens; it must have one layer and " +
                                  std::to_string(ids.size()) + " tokens");
    return split_run(model, ids, &layer, cell, options, false, writes);
}

Result<LayerWrites> layer_writes(Trace& trace, uint32_t n) {
    const Block& from = trace.model().blocks[n];
    const auto bare = [](const Linear& layer) {
        Linear made;
        made.layout = layer.layout, made.bias = layer.bias;
        made.weight = {layer.weight.shape, {}};
        return made;
    };
    LayerWrites out;
    Block& block = out.block;
    block.residual = from.residual, block.order = from.order;
    block.attention.output = from.attention.output;
    block.attention.heads = from.attention.heads, block.attention.kv_heads = from.attention.kv_heads;
    block.attention_norm = from.attention_norm, block.attention_output_norm = from.attention_output_norm;
    block.feed_forward = {bare(from.feed_forward.up), bare(from.feed_forward.gate),
                          bare(from.feed_forward.down), from.feed_forward.activation};
    block.feed_forward_norm = from.feed_forward_norm;
    block.feed_forward_output_norm = from.feed_forward_output_norm;
    Result<F32Tensor> context = trace.stage(StageId::context, 0, n);
    if (!context) return context.error();
    out.context = std::move(*context);
    if (!is_present(from.feed_forward.up)) return out;
    Result<F32Tensor> made = trace.stage(StageId::ff_output, 0, n);
    if (!made) return made.error();
    out.ff_output = std::move(*made);
    return out;
}

uint64_t layer_writes_bytes(const CheckpointModel& model, uint64_t tokens) {
    const ModelConfig& f = model.config();
    const uint64_t heads = f.heads * f.head_width;
    return 4 * (tokens * (heads + f.width) + heads * f.width);
}

Result<LogitWriters> logit_writers(const CheckpointModel& model, std::span<const uint32_t> ids,
                                   uint64_t position, std::optional<uint32_t> token,
                                   const ModelRunOptions& options) {
    if (ids.empty()) return wrong("tokens", "tokens is empty; it must have at least one token");
    if (position >= ids.size()) return beyond("position", position, "the text has tokens", ids.size());
    const Result<Model> ends = model.ends();
    if (!ends) return ends.error();
    if (token && *token >= ends->unembedding.d_out())
        return beyond("token", *token, "the model has tokens", ends->unembedding.d_out());
    const Result<EmbeddingRows> read = model.embedding_rows(ids, options.entering);
    if (!read) return read.error();
    WriterSteps steps({position}, WriterSteps::Keep::sources_and_neurons, &options.changes);
    if (Result<void> r = steps.start(read->embedding, {read->rows.row(position)}, ids); !r) return r.error();
    ModelRunOptions run;
    run.trace = options.trace, run.progress = options.progress;
    run.changes = options.changes, run.entering = options.entering;
    run.with_logits = false;
    F32Tensor leaving({1, model.config().width});
    run.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        if (Result<void> r = steps.pass(trace, 0, uint32_t(layer)); !r) return r;
        const Result<F32Tensor> rows = trace.leaving();
        if (!rows) return rows.error();
        std::ranges::copy(rows->row(position), leaving.values.begin());
        return {};
    };
    if (const Result<ModelRun> ran = run_model(model, ids, run); !ran) return ran.error();
    const Result<F32Tensor> logits = model.logits(std::move(leaving), options.trace.engine);
    if (!logits) return logits.error();
    const Result<std::vector<NextToken>> all = next_tokens(logits->values, logits->values.size());
    if (!all) return all.error();
    LogitWriters out;
    out.position = position, out.token = token.value_or(all->front().id);
    const auto own = std::ranges::find(*all, out.token, &NextToken::id);
    out.logit = own->logit, out.probability = own->probability;
    Result<std::vector<double>> values = steps.predict(*ends, out.token);
    if (!values) return values.error();
    Result<std::vector<WriterShares>> shares =
        steps.shares(steps.by_prediction(), weights_of(model, ids.size()));
    if (!shares) return shares.error();
    out.writers = std::move(steps.writers), out.values = std::move(*values), out.shares = std::move(*shares);
    out.sum = std::accumulate(out.values.begin(), out.values.end(), 0.0);
    if (const double cap = ends->logit_softcap; cap > 0)
        out.softcap = cap * std::tanh(out.sum / cap) - out.sum;
    return out;
}

std::vector<WriterEntry> largest_entries(const ScoreWriters& of, size_t most) {
    const size_t count = of.writers.size();
    std::vector<uint64_t> order(of.matrix.size());
    std::iota(order.begin(), order.end(), 0);
    most = std::min(most, order.size());
    std::partial_sort(order.begin(), order.begin() + int64_t(most), order.end(), [&](uint64_t a, uint64_t b) {
        const double x = std::abs(of.matrix[a]), y = std::abs(of.matrix[b]);
        return x != y ? x > y : a < b;
    });
    std::vector<WriterEntry> entries;
    for (size_t i = 0; i < most; ++i)
        entries.push_back({uint32_t(order[i] / count), uint32_t(order[i] % count), of.matrix[order[i]]});
    return entries;
}

std::vector<ShareEntry> largest_shares(std::span<const WriterShares> of, size_t most) {
    std::vector<ShareEntry> all;
    for (uint32_t w = 0; w < of.size(); ++w)
        for (size_t j = 0; j < of[w].values.size(); ++j) all.push_back({w, j, of[w].values[j]});
    most = std::min(most, all.size());
    // Equal ones stay in the order of the writers.
    const auto before = [](const ShareEntry& a, const ShareEntry& b) {
        const double x = std::abs(a.value), y = std::abs(b.value);
        return x != y ? x > y : std::pair(a.shares, a.source) < std::pair(b.shares, b.source);
    };
    std::partial_sort(all.begin(), all.begin() + int64_t(most), all.end(), before);
    all.resize(most);
    return all;
}

}  // namespace fovea
