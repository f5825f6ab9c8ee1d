// Sums of the cells that are not attention's own: norms, residual sums, the feed-forward part, and what the
// model says at its end.
#include "inspect/cell_sum_parts.hpp"
#include "model/block_steps.hpp"
#include "model/transformer_parts.hpp"

#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <cmath>

namespace fovea {
namespace {

// A row of a stage, with the name that the sums call it by.
struct NamedRow {
    std::string name;
    std::vector<float> values;  // empty if there is no such stage
};

NamedRow row_of(const LayerNumbers& of, StageId id, uint64_t row) {
    NamedRow found{stage_name(id), {}};
    if (const StageNumbers stage = of.stage(id, 0); row < stage.rows) {
        const std::span<const float> values = stage.values.subspan(row * stage.columns, stage.columns);
        found.values.assign(values.begin(), values.end());
    }
    return found;
}

NamedRow through(const Norm& norm, NamedRow x) {
    if (norm.kind == NormKind::none || x.values.empty()) return x;
    const uint64_t width = x.values.size();
    x.values = normalised(norm, F32Tensor({1, width}, std::move(x.values))).values;
    x.name = std::string(norm_name(norm.kind)) + "(" + x.name + ")";
    return x;
}

// A norm's cell is made from the sum of its row's squares, for LayerNorm of the distances from the mean.
// `part` is what the files call the norm; empty: not to be told.
std::optional<CellSum> norm_sum(const LayerNumbers& of, std::string_view part, const Norm& norm,
                                const NamedRow& x, uint64_t row, uint64_t column) {
    const uint64_t width = x.values.size();
    if (column >= width) return {};
    double mean = 0;
    if (norm.kind == NormKind::layer)
        for (const float value : x.values) mean += double(value) / double(width);
    CellSum sum;
    sum.a = sum.b = norm.kind == NormKind::layer ? "x \xe2\x88\x92 mean" : "x";
    sum.how = std::string(norm_name(norm.kind)) + " of " + place_text("row", row, x.name);
    if (norm.kind == NormKind::layer) sum.how += ", whose mean is " + format_value(float(mean));
    for (uint64_t c = 0; c < width; ++c) {
        const auto distance = float(double(x.values[c]) - mean);
        sum.terms.push_back({std::to_string(c), distance, distance});
    }
    add_up(sum);
    sum.ending = format_value(float(double(x.values[column]) - mean)) + " / " +
                 format_value(float(std::sqrt(double(sum.sum) / double(width) + norm.epsilon))) +
                 ", which is \xe2\x88\x9a(sum / " + std::to_string(width) + " + " +
                 format_number(norm.epsilon, 3) + ")";
    if (column < norm.weight.values.size()) {
        sum.ending += ", \xc3\x97 weight " + format_value(norm.weight.values[column]);
        if (!part.empty()) tell_origin(of, part, column, sum);
    }
    if (column < norm.bias.values.size()) sum.ending += " + bias " + format_value(norm.bias.values[column]);
    sum.result = normalised(norm, F32Tensor({1, width}, x.values)).values[column];
    return sum;
}

// x + part. `norm` made the part of `bare`; null: no norm did.
std::optional<CellSum> residual(const LayerNumbers& of, const NamedRow& x, const NamedRow& part,
                                const BlockStep* norm, const NamedRow& bare, uint64_t row, uint64_t column) {
    if (column >= part.values.size() || part.values.size() != x.values.size()) return {};
    CellSum sum;
    sum.a = "value";
    sum.how = place_text("row", row, x.name) + " and of " + part.name + ", number by number";
    for (const NamedRow* one : {&x, &part}) sum.terms.push_back({one->name, one->values[column], 1});
    add_up(sum);
    if (norm)
        if (std::optional<CellSum> factor = norm_sum(of, norm->name, *norm->norm, bare, row, column))
            sum.factors.push_back(std::move(*factor));
    return sum;
}

std::optional<CellSum> hidden(const LayerNumbers& of, const FeedForward& f, const NamedRow& x, uint64_t row,
                              uint64_t column) {
    std::optional<CellSum> sum = linear_sum(x.values, x.name, row, f.up, "W_up", column);
    if (!sum) return {};
    tell_origin(of, "up", column, *sum);
    const std::string act = activation_name(f.activation);
    if (!is_present(f.gate)) {
        activate(f.activation, std::span(&sum->result, 1));
        sum->ending = act + "(sum)";
        return sum;
    }
    std::optional<CellSum> gate = linear_sum(x.values, x.name, row, f.gate, "W_gate", column);
    if (!gate) return {};
    tell_origin(of, "gate", column, *gate);
    activate(f.activation, std::span(&gate->result, 1));
    gate->ending = act + "(sum), the gate";
    sum->result *= gate->result;
    sum->ending = "sum \xc3\x97 the gate " + format_value(gate->result);
    sum->factors.push_back(std::move(*gate));
    return sum;
}

// A row's softmax over the vocabulary.
std::optional<CellSum> probability(const Model& model, const NamedRow& logits, uint64_t row,
                                   uint64_t column) {
    if (column >= logits.values.size()) return {};
    const float largest = *std::max_element(logits.values.begin(), logits.values.end());
    CellSum sum;
    sum.a = "exp(logit \xe2\x88\x92 max)";
    sum.how = "the sum of " + place_text("row", row, sum.a) + ", max " + format_value(largest);
    for (size_t i = 0; i < logits.values.size(); ++i)
        sum.terms.push_back({i < model.vocabulary.size() ? model.vocabulary[i] : std::to_string(i),
                             float(std::exp(double(logits.values[i]) - double(largest))), 1});
    add_up(sum);
    sum.ending = format_value(sum.terms[column].a) + " / sum";
    sum.result = float(double(sum.terms[column].a) / double(sum.sum));
    return sum;
}

}  // namespace

std::optional<CellSum> block_sum(const LayerNumbers& of, StageId id, uint64_t row, uint64_t column) {
    using Kind = BlockStep::Kind;
    const Model& model = *of.model;
    std::array<NamedRow, BlockRoles::role_count> rows;
    rows[BlockRoles::stream] = row_of(of, StageId::inputs, row);
    NamedRow bare, read;  // a part before its norm; what the last matrix multiplied
    const BlockStep* part_norm = nullptr;
    const std::vector<BlockStep> steps = block_steps(*of.block);
    for (const BlockStep& step : steps) {
        const bool wanted = step.stage == id;
        const NamedRow &from = rows[step.from], &x = rows[BlockRoles::stream];
        NamedRow to = step.stage ? row_of(of, *step.stage, row) : NamedRow();
        switch (step.kind) {
            case Kind::copy:
                to = from;
                break;
            case Kind::linear:
                if (wanted) {
                    const BlockStep::Product& one = step.products()[0];
                    std::optional<CellSum> made = linear_sum(from.values, from.name, row, *one.layer,
                                                             "W_" + std::string(one.name), column);
                    if (made) tell_origin(of, one.name, column, *made);
                    return made;
                }
                read = from;
                if (step.to == BlockRoles::part) part_norm = nullptr;
                break;
            case Kind::norm:
                if (step.heads) continue;
                if (wanted) return norm_sum(of, step.name, *step.norm, from, row, column);
                if (step.to == BlockRoles::part) bare = from, part_norm = &step;
                if (!step.stage) to = through(*step.norm, from);
                break;
            case Kind::activate:
                if (wanted) return hidden(of, of.block->feed_forward, read, row, column);
                break;
            case Kind::add:
                if (wanted) return residual(of, x, from, part_norm, bare, row, column);
                if (step.stage || x.values.size() != from.values.size()) break;
                to = {x.name + " + " + from.name, x.values};
                for (size_t c = 0; c < to.values.size(); ++c) to.values[c] += from.values[c];
                break;
            case Kind::attend:
            case Kind::rotate:
                break;
        }
        rows[step.to] = std::move(to);
    }
    const NamedRow& last = rows[BlockRoles::stream];
    if (id == StageId::final) return norm_sum(of, {}, model.final_norm, last, row, column);
    if (id == StageId::logits && !is_present(model.prediction.dense)) {
        const NamedRow final = row_of(of, StageId::final, row);
        const NamedRow& from = final.values.empty() ? last : final;
        std::optional<CellSum> made =
            linear_sum(from.values, from.name, row, model.unembedding, "W_u", column);
        if (made && model.logit_softcap != 0) {
            cap_logits(model.logit_softcap, std::span(&made->result, 1));
            const std::string c = format_number(model.logit_softcap, 3);
            made->ending = c + " tanh(sum / " + c + ")";
        }
        return made;
    }
    if (id == StageId::probabilities)
        return probability(model, row_of(of, StageId::logits, row), row, column);
    return {};
}

}  // namespace fovea
