// Carries what each writer wrote through a block's steps, at the two rows of the stream that a score reads.
#include <fovea/inspect/writers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "model/block_run.hpp"
#include "model/block_steps.hpp"

namespace fovea {
namespace {

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Error beyond(const char* field, uint64_t value, const char* of, uint64_t count) {
    return wrong(field, std::string(field) + " is " + std::to_string(value) + "; " + of + " 0 to " +
                            std::to_string(count - 1));
}

// A writer's share of a row: columns from `first` on, the others are 0.
struct Part {
    uint32_t writer = 0;
    uint64_t first = 0;
    std::vector<double> values;
};

// A row of a trace as the sum of its parts.
struct Row {
    uint64_t columns = 0;
    std::vector<Part> parts;

    auto find(uint32_t writer) {
        return std::find_if(parts.begin(), parts.end(),
                            [&](const Part& part) { return part.writer == writer; });
    }
    bool has(uint32_t writer) { return find(writer) != parts.end(); }
    // Returns a writer's columns, all of them.
    std::vector<double>& all_of(uint32_t writer) {
        const auto at = find(writer);
        Part& part = at != parts.end() ? *at : parts.emplace_back(Part{writer, 0, {}});
        if (part.first != 0) part.values.insert(part.values.begin(), size_t(part.first), 0.0);
        part.values.resize(columns), part.first = 0;
        return part.values;
    }
};

std::vector<double> in_double(std::span<const float> row) { return {row.begin(), row.end()}; }

// Products that are summed side by side, which the compiler turns into vectors: columns of a dot product, or
// outputs of a layer.
constexpr size_t kTogether = 16;

template <class Weight>
double dot(const double* x, const Weight* weights, size_t count) {
    std::array<double, kTogether> sums{};
    const size_t whole = count / kTogether * kTogether;
    for (size_t c = 0; c < whole; c += kTogether)
        for (size_t i = 0; i < kTogether; ++i) sums[i] += x[c + i] * double(weights[c + i]);
    double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    for (size_t c = whole; c < count; ++c) sum += x[c] * double(weights[c]);
    return sum;
}

// A part by [outputs, inputs] weights.
void multiply_rows(const Part& x, const float* weights, size_t inputs, std::span<double> out) {
    for (size_t o = 0; o < out.size(); ++o)
        out[o] = dot(x.values.data(), weights + o * inputs + x.first, x.values.size());
}

// A part by [inputs, kTogether] weights.
void multiply_columns(const Part& x, const float* weights, std::span<double> out) {
    std::array<double, kTogether> sums{};
    const float* row = weights + x.first * kTogether;
    for (const double value : x.values) {
        for (size_t o = 0; o < kTogether; ++o) sums[o] += value * double(row[o]);
        row += kTogether;
    }
    std::copy_n(sums.begin(), out.size(), out.begin());
}

// One row of the stream: rooms by role, as in a trace, of parts.
struct Side {
    uint64_t row = 0;
    std::array<Row, BlockRoles::role_count> rooms;
};

class WriterSteps final : public BlockExecutor {
  public:
    WriterSteps(uint64_t query, uint64_t key) : sides_{Side{query, {}}, Side{key, {}}} {}

    std::vector<Writer> writers;

    // `tokens`: the rows of the table at the query and at the key.
    Result<void> start(const Embedding& e, const std::array<std::span<const float>, 2>& tokens,
                       std::span<const uint32_t> ids);
    // A model without an embedding: the rows are one writer.
    void start(const F32Tensor& rows);
    // Lets layer n of a trace, the model's layer `layer`, write.
    Result<void> pass(Trace& trace, uint32_t n, uint32_t layer);
    // Makes the picked head's q and k.
    Result<void> read(const Trace& trace, uint32_t n, const LayerCell& cell);
    const Row& query() const { return sides_[0].rooms[queries]; }
    const Row& key() const { return sides_[1].rooms[keys]; }

  private:
    uint32_t add_writer(Writer::Kind kind, uint32_t layer = 0, uint32_t head = 0) {
        writers.push_back({kind, layer, head});
        return uint32_t(writers.size() - 1);
    }
    // The writer that biases go to. It is added on first use.
    uint32_t bias_writer() {
        if (!bias_) bias_ = add_writer(bias_kind_.kind, bias_kind_.layer, bias_kind_.head);
        return *bias_;
    }
    void biases_are_of(Writer writer) { bias_kind_ = writer, bias_.reset(); }
    // False for q at the row that is read as a key, and for what a pass or a reading does not use.
    bool has(size_t side, Role role) const {
        if (role == queries || role == keys) return reading_ && (role == queries) == (side == 0);
        return role != values && role != hidden && role != gate && (role != normed || reading_);
    }
    Result<void> multiply(const Linear& layer, Role from, Role to, uint64_t first, uint64_t count);
    void freeze(const Norm& n, Row& row);

    Result<void> copy(Role from, Role to) override;
    Result<void> linear(std::span<const Product> products, Role from) override;
    Result<void> norm(const Norm& n, uint32_t heads, Role from, Role to) override;
    Result<void> rotate(const Rope& rope, uint32_t heads, Role role) override;
    Result<void> attend(const AttentionPart&) override { return {}; }
    Result<void> activate(Activation, Role, const Role*) override { return {}; }
    Result<void> add(Role from, const Norm* next, Role to) override;

    std::array<Side, 2> sides_;
    std::array<std::vector<double>, 2> feed_forward_;  // the part's result at each row, before its norm
    uint32_t feed_forward_writer_ = 0;
    Writer bias_kind_;
    std::optional<uint32_t> bias_;
    bool reading_ = false;
    uint32_t head_ = 0;  // the picked head while its q and k are made
};

Result<void> WriterSteps::start(const Embedding& e, const std::array<std::span<const float>, 2>& tokens,
                                std::span<const uint32_t> ids) {
    const bool has_places = !e.positions.values.empty();
    const uint32_t token = add_writer(Writer::Kind::token);
    const uint32_t place = has_places ? add_writer(Writer::Kind::position) : 0;
    biases_are_of({.kind = Writer::Kind::embedding_bias});
    for (size_t s = 0; s < sides_.size(); ++s) {
        Row& row = sides_[s].rooms[stream] = {tokens[s].size(), {{token, 0, in_double(tokens[s])}}};
        for (double& value : row.parts[0].values) value *= double(float(e.scale));
        if (has_places) {
            const auto before = ids.first(sides_[s].row);
            const auto is_pad = [&](uint32_t id) { return e.pad_token == id; };
            const auto at = before.size() - size_t(std::ranges::count_if(before, is_pad));
            const bool pad = is_pad(ids[sides_[s].row]);
            if (!pad && at >= e.positions.rows())
                return beyond("position", at, "the model has learned positions", e.positions.rows());
            row.parts.push_back({place, 0, in_double(pad ? e.pad_position.row(0) : e.positions.row(at))});
        }
        if (e.norm.kind != NormKind::none) freeze(e.norm, row);
    }
    return {};
}

void WriterSteps::start(const F32Tensor& rows) {
    const uint32_t token = add_writer(Writer::Kind::token);
    for (Side& side : sides_)
        side.rooms[stream] = {rows.columns(), {{token, 0, in_double(rows.row(side.row))}}};
}

Result<void> WriterSteps::pass(Trace& trace, uint32_t n, uint32_t layer) {
    const Block& block = trace.model().blocks[n];
    const Result<F32Tensor> all = trace.stage(StageId::context, 0, n);
    if (!all) return all.error();
    reading_ = false;
    const auto first = uint32_t(writers.size());
    const uint64_t width = all->columns() / block.attention.heads;
    for (uint32_t h = 0; h < block.attention.heads; ++h) add_writer(Writer::Kind::head, layer, h);
    for (Side& side : sides_) {
        Row& row = side.rooms[context] = {all->columns(), {}};
        for (uint32_t h = 0; h < block.attention.heads; ++h)
            row.parts.push_back(
                {first + h, h * width, in_double(all->row(side.row).subspan(h * width, width))});
    }
    if (is_present(block.feed_forward.up)) {
        const Result<F32Tensor> made = trace.stage(StageId::ff_output, 0, n);
        if (!made) return made.error();
        feed_forward_writer_ = add_writer(Writer::Kind::feed_forward, layer);
        for (size_t s = 0; s < sides_.size(); ++s) feed_forward_[s] = in_double(made->row(sides_[s].row));
    }
    biases_are_of({Writer::Kind::bias, layer, 0});
    return walk(block, after_attention(block_steps(block)));
}

Result<void> WriterSteps::read(const Trace& trace, uint32_t n, const LayerCell& cell) {
    const Block& block = trace.model().blocks[n];
    reading_ = true, head_ = cell.head;
    biases_are_of({Writer::Kind::reader_bias, cell.layer, cell.head});
    return walk(block, before_attention(block_steps(block)));
}

// The layer's outputs [first, first + count) of each part.
Result<void> WriterSteps::multiply(const Linear& layer, Role from, Role to, uint64_t first, uint64_t count) {
    const auto for_sides = [&](const auto& body) {
        for (size_t s = 0; s < sides_.size(); ++s)
            if (has(s, to)) body(sides_[s].rooms[from], sides_[s].rooms[to]);
    };
    for_sides([&](const Row& x, Row& y) {
        y = {count, {}};
        for (const Part& one : x.parts) y.parts.push_back({one.writer, 0, std::vector<double>(count)});
    });
    const size_t inputs = layer.d_in();
    const bool by_columns = layer.layout == WeightLayout::in_out;
    // Weights of some outputs, which all parts are multiplied by: in a row of caches' lines, or widened.
    std::vector<float> copied(by_columns || layer.stored ? kTogether * inputs : 0);
    for (uint64_t at = 0; at < count; at += kTogether) {
        const auto some = size_t(std::min<uint64_t>(kTogether, count - at));
        const float* weights = copied.empty() ? &layer.weight.values[(first + at) * inputs] : copied.data();
        if (layer.stored) {
            for (size_t o = 0; o < some; ++o)
                if (Result<void> r = read_rows(*layer.stored, first + at + o,
                                               std::span(copied).subspan(o * inputs, inputs));
                    !r)
                    return r;
        } else if (by_columns) {
            const float* row = &layer.weight.values[first + at];
            for (size_t c = 0; c < inputs; ++c, row += layer.d_out())
                if (some == kTogether)
                    std::copy_n(row, kTogether, &copied[c * kTogether]);
                else
                    std::copy_n(row, some, &copied[c * kTogether]);
        }
        for_sides([&](const Row& x, Row& y) {
            for (size_t p = 0; p < x.parts.size(); ++p) {
                const auto out = std::span(y.parts[p].values).subspan(at, some);
                if (by_columns)
                    multiply_columns(x.parts[p], weights, out);
                else
                    multiply_rows(x.parts[p], weights, inputs, out);
            }
        });
    }
    for_sides([&](const Row&, Row& y) {
        if (!layer.has_bias()) return;
        std::vector<double>& bias = y.all_of(bias_writer());
        for (uint64_t o = 0; o < count; ++o) bias[o] += double(layer.bias.values[first + o]);
    });
    return {};
}

// The norm with its scale frozen at the value that the whole row gives.
void WriterSteps::freeze(const Norm& n, Row& row) {
    const auto width = double(row.columns);
    std::vector<double> whole(row.columns);
    for (const Part& one : row.parts)
        for (size_t c = 0; c < one.values.size(); ++c) whole[one.first + c] += one.values[c];
    const bool centred = n.kind == NormKind::layer;
    const double mean = centred ? std::accumulate(whole.begin(), whole.end(), 0.0) / width : 0.0;
    double squares = 0;
    for (const double value : whole) squares += (value - mean) * (value - mean);
    const double scale = 1.0 / std::sqrt(squares / width + n.epsilon);
    for (size_t p = 0; p < row.parts.size(); ++p) {
        std::vector<double>& own = row.all_of(row.parts[p].writer);
        const double own_mean = centred ? std::accumulate(own.begin(), own.end(), 0.0) / width : 0.0;
        for (size_t c = 0; c < own.size(); ++c)
            own[c] =
                (own[c] - own_mean) * scale * (n.weight.values.empty() ? 1.0 : double(n.weight.values[c]));
    }
    if (n.bias.values.empty()) return;
    std::vector<double>& bias = row.all_of(bias_writer());
    for (size_t c = 0; c < bias.size(); ++c) bias[c] += double(n.bias.values[c]);
}

Result<void> WriterSteps::copy(Role from, Role to) {
    for (size_t s = 0; s < sides_.size(); ++s)
        if (has(s, to)) sides_[s].rooms[to] = sides_[s].rooms[from];
    return {};
}

Result<void> WriterSteps::linear(std::span<const Product> products, Role from) {
    for (const Product& one : products) {
        const AttentionPart& a = block_->attention;
        const uint64_t outputs = one.layer->d_out();
        Result<void> r;
        if (one.to == queries || one.to == keys) {
            const uint64_t heads = one.to == queries ? a.heads : a.kv_heads, width = outputs / heads;
            const uint64_t own = one.to == queries ? head_ : head_ / (a.heads / a.kv_heads);
            if (reading_) r = multiply(*one.layer, from, one.to, own * width, width);
        } else if (from == context) {
            r = multiply(*one.layer, from, one.to, 0, outputs);
        } else if (one.to == part) {
            for (size_t s = 0; s < sides_.size(); ++s) {
                Row& row = sides_[s].rooms[part] = {outputs, {}};
                row.parts.push_back({feed_forward_writer_, 0, feed_forward_[s]});
                if (!one.layer->has_bias()) continue;
                std::vector<double>& bias = row.all_of(bias_writer());
                for (uint64_t c = 0; c < outputs; ++c) {
                    bias[c] = double(one.layer->bias.values[c]);
                    row.parts[0].values[c] -= bias[c];
                }
            }
        }
        if (!r) return r;
    }
    return {};
}

Result<void> WriterSteps::norm(const Norm& n, uint32_t, Role from, Role to) {
    for (size_t s = 0; s < sides_.size(); ++s) {
        if (!has(s, to)) continue;
        Row &row = sides_[s].rooms[to], &source = sides_[s].rooms[from];
        // Nothing reads the stream again once q and k are made of its norm.
        if (from != to && reading_)
            row = std::move(source);
        else if (from != to)
            row = source;
        freeze(n, row);
    }
    return {};
}

Result<void> WriterSteps::rotate(const Rope& rope, uint32_t, Role role) {
    for (size_t s = 0; s < sides_.size(); ++s) {
        if (!has(s, role)) continue;
        Row& row = sides_[s].rooms[role];
        Rope here = rope;
        here.first_position += sides_[s].row;
        const RopeTables tables = rope_tables(here, 1, row.columns);
        const uint64_t pairs = rope.rotated(row.columns) / 2;
        for (Part& one : row.parts)
            for (uint64_t n = 0; n < pairs; ++n) {
                const double cos = double(tables.cos.values[n]), sin = double(tables.sin.values[n]);
                double& a = one.values[rope.interleaved ? 2 * n : n];
                double& b = one.values[rope.interleaved ? 2 * n + 1 : n + pairs];
                const double from_a = a;
                a = cos * from_a - sin * b;
                b = sin * from_a + cos * b;
            }
    }
    return {};
}

Result<void> WriterSteps::add(Role from, const Norm* next, Role to) {
    for (Side& side : sides_) {
        Row& sum = side.rooms[stream];
        for (Part& one : side.rooms[from].parts) {
            if (!sum.has(one.writer)) {
                sum.parts.push_back(std::move(one));
                continue;
            }
            std::vector<double>& grown = sum.all_of(one.writer);
            for (size_t c = 0; c < one.values.size(); ++c) grown[one.first + c] += one.values[c];
        }
    }
    return next ? norm(*next, 0, stream, to) : Result<void>();
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

Result<ScoreWriters> finished(WriterSteps& steps, Trace& trace, uint32_t n, const LayerCell& cell) {
    if (Result<void> r = steps.read(trace, n, cell); !r) return r.error();
    ScoreWriters out;
    out.cell = cell;
    out.writers = std::move(steps.writers);
    const size_t count = out.writers.size();
    out.matrix.resize(count * count);
    const ScoreScale scale = score_scale(trace.rules(n), steps.query().columns);
    const double factor = scale.divides ? 1.0 / scale.value : scale.value;
    for (const Part& q : steps.query().parts)
        for (const Part& k : steps.key().parts) {
            const double sum = dot(q.values.data(), k.values.data(), q.values.size());
            out.matrix[q.writer * count + k.writer] = sum * factor;
        }
    out.sum = std::accumulate(out.matrix.begin(), out.matrix.end(), 0.0);
    if (Result<void> r = read_logit(trace, n, out); !r) return r.error();
    return out;
}

// `last`: a trace of the cell's layer; null: that layer is run, too.
Result<ScoreWriters> split_run(const CheckpointModel& model, std::span<const uint32_t> ids, Trace* last,
                               const LayerCell& cell, const ModelRunOptions& options) {
    const ModelConfig& f = model.config();
    if (ids.empty()) return wrong("tokens", "tokens is empty; it must have at least one token");
    if (Result<void> r = check_cell(cell, f.layers, f.heads, ids.size()); !r) return r.error();
    const Result<EmbeddingRows> read = model.embedding_rows(ids, options.entering);
    if (!read) return read.error();
    WriterSteps steps(cell.query, cell.key);
    if (Result<void> r =
            steps.start(read->embedding, {read->rows.row(cell.query), read->rows.row(cell.key)}, ids);
        !r)
        return r.error();
    ModelRunOptions run;
    run.trace = options.trace, run.progress = options.progress;
    run.changes = options.changes, run.entering = options.entering;
    Result<ScoreWriters> out = ScoreWriters();
    const uint64_t layers = uint64_t{cell.layer} + (last ? 0 : 1);
    bool ended = layers == 0;
    run.on_layer = [&](uint64_t layer, Trace& trace) -> Result<void> {
        if (layer == cell.layer) {
            out = finished(steps, trace, 0, cell);
        } else if (Result<void> r = steps.pass(trace, 0, uint32_t(layer)); !r) {
            return r;
        }
        ended = layer + 1 == layers;
        return ended ? Error{FOVEA_CANCELLED, "run", "no further layer is needed"} : Result<void>();
    };
    if (!ended)
        if (const Result<ModelRun> ran = run_model(model, ids, run); !ended) return ran.error();
    return last ? finished(steps, *last, 0, cell) : std::move(out);
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

Result<ScoreWriters> score_writers(Trace& trace, std::span<const uint32_t> ids, const LayerCell& cell) {
    const ModelInput& input = trace.input();
    if (!input.q.values.empty() || !input.memory.values.empty())
        return wrong("input",
                     "the model's q, k and v, or the memory that k and v come from, are given; a "
                     "score has writers only where one text gives all of them");
    const uint32_t heads = cell.layer < trace.layers() ? trace.heads(cell.layer) : 0;
    if (Result<void> r = check_cell(cell, trace.layers(), heads, trace.rows()); !r) return r.error();
    WriterSteps steps(cell.query, cell.key);
    const Embedding& embedding = trace.model().embedding;
    if (ids.empty() || embedding.table.values.empty()) {
        steps.start(input.x);
    } else {
        if (ids.size() != trace.rows())
            return wrong("ids", "ids has " + std::to_string(ids.size()) + " tokens; the trace has " +
                                    std::to_string(trace.rows()));
        std::array<std::span<const float>, 2> tokens;
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
    return finished(steps, trace, cell.layer, cell);
}

Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids,
                                   const LayerCell& cell, const ModelRunOptions& options) {
    return split_run(model, ids, nullptr, cell, options);
}

Result<ScoreWriters> score_writers(const CheckpointModel& model, std::span<const uint32_t> ids, Trace& layer,
                                   const LayerCell& cell, const ModelRunOptions& options) {
    if (layer.layers() != 1 || layer.rows() != ids.size())
        return wrong("layer", "layer is a trace of " + std::to_string(layer.layers()) + " layers and " +
                                  std::to_string(layer.rows()) + " tokens; it must have one layer and " +
                                  std::to_string(ids.size()) + " tokens");
    return split_run(model, ids, &layer, cell, options);
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

}  // namespace fovea
