// Carries what each writer wrote through a block's steps, at rows of the stream that a result reads.
#include "writer_steps.hpp"

namespace fovea::writing {
namespace {

std::vector<double> in_double(std::span<const float> row) { return {row.begin(), row.end()}; }

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

}  // namespace

void FrozenNorm::apply(std::span<double> x) const {
    const double mean = centred ? std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()) : 0.0;
    for (size_t c = 0; c < x.size(); ++c) x[c] = (x[c] - mean) * gains[c];
}

FrozenNorm frozen(const Norm& n, std::span<const double> row) {
    FrozenNorm made{n.kind == NormKind::layer, std::vector<double>(row.size())};
    const auto width = double(row.size());
    const double mean = made.centred ? std::accumulate(row.begin(), row.end(), 0.0) / width : 0.0;
    double squares = 0;
    for (const double value : row) squares += (value - mean) * (value - mean);
    const double scale = 1.0 / std::sqrt(squares / width + n.epsilon);
    for (size_t c = 0; c < row.size(); ++c)
        made.gains[c] = scale * (n.weight.values.empty() ? 1.0 : double(n.weight.values[c]));
    return made;
}

WriterSteps::WriterSteps(std::initializer_list<uint64_t> rows, Keep keep, const RunChanges* changes)
    : keep_(keep), changes_(changes) {
    for (const uint64_t row : rows) sides_.push_back({.row = row});
}

Result<void> WriterSteps::start(const Embedding& e, const std::vector<std::span<const float>>& tokens,
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
                return Error{FOVEA_INVALID_ARGUMENT, "position",
                             "position is " + std::to_string(at) + "; the model has learned positions 0 to " +
                                 std::to_string(e.positions.rows() - 1)};
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
    const bool feeds = is_present(block.feed_forward.up);
    const Result<F32Tensor> all = trace.stage(StageId::context, 0, n),
                            made = feeds ? trace.stage(StageId::ff_output, 0, n) : F32Tensor(Shape{0});
    if (!all) return all.error();
    if (!made) return made.error();
    if (Result<void> r = pass(block, *all, *made, layer); !r || keep_ == Keep::nothing) return r;
    Layer& kept = layers_.back();
    if (Result<void> r = keep_read(trace, n, kept); !r) return r;
    if (!feeds || keep_ != Keep::sources_and_neurons) return {};
    const Result<F32Tensor> neurons = trace.stage(StageId::ff_hidden, 0, n);
    if (!neurons) return neurons.error();
    for (const Side& side : sides_)
        kept.hidden.emplace_back(neurons->row(side.row).begin(), neurons->row(side.row).end());
    return {};
}

Result<void> WriterSteps::pass(const Block& block, const F32Tensor& contexts, const F32Tensor& ff_output,
                               uint32_t layer) {
    reading_ = false;
    const auto first = uint32_t(writers.size());
    const uint64_t width = contexts.columns() / block.attention.heads;
    for (uint32_t h = 0; h < block.attention.heads; ++h) add_writer(Writer::Kind::head, layer, h);
    Layer& kept = layers_.emplace_back();
    kept.layer = layer, kept.first_writer = first;
    kept.heads = block.attention.heads, kept.kv_heads = block.attention.kv_heads;
    for (Side& side : sides_) {
        Row& row = side.rooms[context] = {contexts.columns(), {}};
        for (uint32_t h = 0; h < block.attention.heads; ++h)
            row.parts.push_back(
                {first + h, h * width, in_double(contexts.row(side.row).subspan(h * width, width))});
    }
    if (is_present(block.feed_forward.up)) {
        feed_forward_writer_ = add_writer(Writer::Kind::feed_forward, layer);
        for (Side& side : sides_) side.feed_forward = in_double(ff_output.row(side.row));
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

// Freezes the norm at the row's scale and takes each part through it.
FrozenNorm WriterSteps::freeze(const Norm& n, Row& row) {
    FrozenNorm made = frozen(n, row.sum());
    for (size_t p = 0; p < row.parts.size(); ++p) made.apply(row.all_of(row.parts[p].writer));
    if (n.bias.values.empty()) return made;
    std::vector<double>& bias = row.all_of(bias_writer());
    for (size_t c = 0; c < bias.size(); ++c) bias[c] += double(n.bias.values[c]);
    return made;
}

Result<void> WriterSteps::copy(Role from, Role to) {
    for (size_t s = 0; s < sides_.size(); ++s) {
        if (!has(s, to)) continue;
        sides_[s].rooms[to] = sides_[s].rooms[from];
        const auto kind = from == context ? Side::Step::Kind::heads : Side::Step::Kind::copy;
        sides_[s].steps.push_back({.kind = kind, .from = from, .to = to, .block = last_layer()});
    }
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
            if (!reading_) continue;
            r = multiply(*one.layer, from, one.to, own * width, width);
            Side& side = one.to == queries ? sides_.front() : sides_.back();
            side.steps.push_back({.kind = Side::Step::Kind::project,
                                  .from = from,
                                  .to = one.to,
                                  .layer = one.layer,
                                  .first = own * width});
        } else if (from == context) {
            r = multiply(*one.layer, from, one.to, 0, outputs);
            for (Side& side : sides_)
                side.steps.push_back(
                    {.kind = Side::Step::Kind::heads, .from = from, .to = one.to, .block = last_layer()});
        } else if (one.to == part) {
            for (Side& side : sides_) {
                Row& row = side.rooms[part] = {outputs, {}};
                row.parts.push_back({feed_forward_writer_, 0, std::move(side.feed_forward)});
                side.steps.push_back(
                    {.kind = Side::Step::Kind::neurons, .from = gate, .to = part, .block = last_layer()});
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
        FrozenNorm made = freeze(n, row);
        sides_[s].steps.push_back(
            {.kind = Side::Step::Kind::norm, .from = from, .to = to, .norm = std::move(made)});
    }
    return {};
}

Result<void> WriterSteps::rotate(const Rope& rope, uint32_t, Role role) {
    for (size_t s = 0; s < sides_.size(); ++s) {
        if (!has(s, role)) continue;
        Row& row = sides_[s].rooms[role];
        Rope here = rope;
        here.first_position += sides_[s].row;
        RopeTables tables = rope_tables(here, 1, row.columns);
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
        sides_[s].steps.push_back({.kind = Side::Step::Kind::rotate,
                                   .from = role,
                                   .to = role,
                                   .angles = std::move(tables),
                                   .interleaved = rope.interleaved});
    }
    return {};
}

Result<void> WriterSteps::add(Role from, const Norm* next, Role to) {
    for (Side& side : sides_) {
        Row& sum = side.rooms[stream];
        side.steps.push_back({.kind = Side::Step::Kind::add, .from = from, .to = stream});
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

}  // namespace fovea::writing
