#include "model/cell_sum.hpp"

#include "model/cell_sum_parts.hpp"
#include "model/opened_model.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {

// Adds the products in their order, each rounded to float32.
void add_up(CellSum& sum) {
    for (CellSum::Term& term : sum.terms) {
        term.product = term.a * term.b;
        sum.sum += term.product;
    }
    sum.sum += sum.added;
    sum.result = sum.sum;
}

std::string place_text(const char* what, uint64_t index, const std::string& of) {
    return std::string(what) + " " + std::to_string(index) + " of " + of;
}

std::optional<CellSum> linear_sum(std::span<const float> row, const std::string& from, uint64_t row_index,
                                  const Linear& layer, const std::string& weight, uint64_t output) {
    if (!is_present(layer) || layer.stored || row.size() != layer.d_in() || output >= layer.d_out())
        return {};
    const bool by_output = layer.layout == WeightLayout::out_in;
    const std::vector<float>& w = layer.weight.values;
    CellSum sum;
    sum.a = from, sum.b = weight;
    sum.how = place_text("row", row_index, from) + " times " +
              place_text(by_output ? "row" : "column", output, weight);
    for (uint64_t c = 0; c < row.size(); ++c)
        sum.terms.push_back(
            {std::to_string(c), row[c], w[by_output ? output * row.size() + c : c * layer.d_out() + output]});
    if (layer.has_bias()) sum.added_name = "bias", sum.added = layer.bias.values[output];
    add_up(sum);
    return sum;
}

void tell_origin(const AttentionResult& of, std::string_view part, uint64_t output, CellSum& sum) {
    const Settings& s = of.settings;
    if (s.model && shows_model(s)) sum.how += "; " + s.model->weights.origin(s.mapping.layer, part, output);
}

namespace {

// x W, a row of `from` times what the layer has for one of its outputs.
std::optional<CellSum> projection(const AttentionResult& of, const char* from, const char* weight,
                                  const Linear& layer, uint64_t row, uint64_t column) {
    const Stage* const x = of.find_stage(from);
    if (!x) return {};
    return linear_sum(x->values.subspan(row * x->columns, x->columns), x->name, row, layer, weight, column);
}

// A row of weights times a column of the values: what each key's token has a share in.
std::optional<CellSum> context(const AttentionResult& of, uint64_t row, uint64_t all_columns) {
    const Stage* weights = of.find_stage("dropped");
    if (!weights) weights = of.find_stage("weights");
    const Stage* values = of.find_stage("values");
    if (!values) values = of.find_stage("inputs");
    if (!weights || !values) return {};
    const uint64_t head = all_columns / values->columns, column = all_columns % values->columns;
    if (head >= weights->heads) return {};
    for (const HeadPatch& patch : of.projected.patches)
        if (patch.head == head) return {};  // another sentence's weights and values made it
    const uint64_t value_head = head / (weights->heads / values->heads);
    CellSum sum;
    sum.a = weights->name, sum.b = values->name;
    sum.how = place_text("row", row, weights->name) + " times " + place_text("column", column, values->name);
    if (weights->heads > 1) sum.how += ", head " + std::to_string(head);
    const std::span<const float> w = weights->head_values(uint32_t(head)),
                                 v = values->head_values(uint32_t(value_head));
    for (uint64_t j = 0; j < weights->columns; ++j) {
        const float weight = w[row * weights->columns + j];
        // A key without weight has no say, whatever its value holds.
        const float value = weight == 0 ? 0 : v[j * values->columns + column];
        sum.terms.push_back({j < of.tokens().size() ? of.tokens()[j] : std::to_string(j), weight, value});
    }
    add_up(sum);
    return sum;
}

// One row's numbers summed: exp(score - largest) for log-sum-exp, weights for the sums of rows.
std::optional<CellSum> of_a_row(const AttentionResult& of, const char* from, uint32_t head, uint64_t row,
                                bool exponentials) {
    const Stage* const stage = of.find_stage(from);
    if (!stage || head >= stage->heads) return {};
    const std::span<const float> all = stage->head_values(head).subspan(row * stage->columns, stage->columns);
    const float largest = exponentials ? *std::max_element(all.begin(), all.end()) : 0;
    CellSum sum;
    sum.a = exponentials ? "exp(" + stage->name + " \xe2\x88\x92 max)" : stage->name;
    sum.how = "the sum of " + place_text("row", row, exponentials ? sum.a : stage->name);
    if (std::isinf(largest)) return {};
    for (uint64_t j = 0; j < stage->columns; ++j)
        sum.terms.push_back({j < of.tokens().size() ? of.tokens()[j] : std::to_string(j),
                             exponentials ? float(std::exp(double(all[j]) - double(largest))) : all[j], 1});
    add_up(sum);
    if (exponentials) {
        sum.ending = "max " + format_value(largest) + " + log(sum)";
        sum.result = float(double(largest) + std::log(double(sum.sum)));
    }
    return sum;
}

}  // namespace

std::optional<CellSum> cell_sum(const AttentionResult& of, const Stage& stage, uint32_t head, uint64_t row,
                                uint64_t column) {
    if (row >= stage.rows || column >= stage.columns) return {};
    if (stage.name == "context") return context(of, row, column);
    if (stage.name == "row_sums") return of_a_row(of, "masked_weights", head, row, false);
    if (stage.name == "lse")
        for (const char* from : {"masked", "capped", "scaled", "scores"})
            if (of.find_stage(from)) return of_a_row(of, from, head, row, true);
    if (!of.projected.source) return {};  // a file's queries, keys and values are as they are
    const AttentionPart& part = of.projected.block().attention;
    const char* const x = of.find_stage("normed") ? "normed" : "inputs";
    for (const auto& [name, weight, layer] : {std::tuple{"queries", "w_query", &part.query},
                                              {"keys", "w_key", &part.key},
                                              {"values", "w_value", &part.value}}) {
        if (stage.name != name) continue;
        std::optional<CellSum> sum =
            projection(of, x, weight, *layer, row, uint64_t(head) * stage.columns + column);
        if (sum)
            tell_origin(of, std::string_view(weight).substr(2), uint64_t(head) * stage.columns + column,
                        *sum);
        const Norm& norm = layer == &part.query ? part.query_norm : part.key_norm;
        const bool normed = norm.kind != NormKind::none;
        if (sum && (part.rope || normed) && layer != &part.value) {
            sum->ending = std::string("then ") + (normed ? "the head's row is normalised" : "") +
                          (normed && part.rope ? " and " : "") +
                          (part.rope ? "turned by the position's angles" : "");
            sum->result = stage.head_values(head)[row * stage.columns + column];
        }
        return sum;
    }
    if (stage.name != "output") return block_sum(of, stage, row, column);
    std::optional<CellSum> sum = projection(of, "context", "w_output", part.output, row, column);
    if (sum) tell_origin(of, "output", column, *sum);
    return sum;
}

namespace {

// The terms, what is added to them, their sum, and what becomes of it.
std::string lines_of(const CellSum& sum) {
    std::string text;
    for (const CellSum::Term& term : sum.terms)
        text += "  " + term.name + ": " + format_value(term.a) +
                (sum.b.empty() ? "" : " x " + format_value(term.b) + " = " + format_value(term.product)) +
                "\n";
    if (!sum.added_name.empty()) text += "  " + sum.added_name + ": " + format_value(sum.added) + "\n";
    text += "  sum: " + format_value(sum.sum) + "\n";
    for (const CellSum& factor : sum.factors) text += "  " + factor.how + "\n" + lines_of(factor);
    return sum.ending.empty() ? text : text + "  " + sum.ending + ": " + format_value(sum.result) + "\n";
}

}  // namespace

std::string cell_sum_text(const CellSum& sum, const Stage& stage, uint64_t row, uint64_t column) {
    return stage.name + "[" + std::to_string(row) + ", " + std::to_string(column) +
           "] = " + format_value(sum.result) + ": " + sum.how + "\n" + lines_of(sum);
}

}  // namespace fovea::visualizer
