
#include "inspect/cell_sum_parts.hpp"
#include "model/block_run.hpp"

#include <fovea/inspect/cell_sum.hpp>
#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <cmath>

namespace fovea {

// Adds the products in their order, each rounded to float32.
void add_up(CellSum& sum) {
    for (CellSum::Term& term : sum.terms) {
        term.product = term.a * term.b;
        sum.sum += term.product;
    }
    sum.sum += sum.added;
    sum.result = sum.sum;
}

std::string place_text(const char* what, uint64_t index, std::string_view of) {
    return std::string(what) + " " + std::to_string(index) + " of " + std::string(of);
}

std::optional<CellSum> linear_sum(std::span<const float> row, const std::string& from, uint64_t row_index,
                                  const Linear& layer, const std::string& weight, uint64_t output) {
    if (!is_present(layer) || row.size() != layer.d_in() || output >= layer.d_out()) return {};
    const Result<std::vector<float>> w = weights_of_output(layer, output);
    if (!w) return {};
    const bool by_output = layer.layout == WeightLayout::out_in;
    CellSum sum;
    sum.a = from, sum.b = weight;
    sum.how = place_text("row", row_index, from) + " times " +
              place_text(by_output ? "row" : "column", output, weight);
    for (uint64_t c = 0; c < row.size(); ++c) sum.terms.push_back({std::to_string(c), row[c], (*w)[c]});
    if (layer.has_bias()) sum.added_name = "bias", sum.added = layer.bias.values[output];
    add_up(sum);
    return sum;
}

void tell_origin(const LayerNumbers& of, std::string_view part, uint64_t output, CellSum& sum) {
    if (of.origin) sum.how += "; " + of.origin(part, output);
}

namespace {

// x W, a row of `from` times what the layer has for one of its outputs.
std::optional<CellSum> projection(const LayerNumbers& of, StageId from, StageId weight, const Linear& layer,
                                  uint64_t row, uint64_t column) {
    const StageNumbers x = of.stage(from, 0);
    if (row >= x.rows) return {};
    return linear_sum(x.values.subspan(row * x.columns, x.columns), stage_name(from), row, layer,
                      stage_name(weight), column);
}

// Returns the name of a key in a sum over keys.
std::string key_name(const LayerNumbers& of, uint64_t key) {
    return key < of.tokens.size() ? of.tokens[key] : std::to_string(key);
}

// A row of weights times a column of the values: what each key's token has a share in.
std::optional<CellSum> context(const LayerNumbers& of, uint64_t row, uint64_t all_columns) {
    const StageId value_id = of.stage(StageId::values, 0).rows ? StageId::values : StageId::inputs;
    const std::string& value_name = stage_name(value_id);
    const uint64_t width = of.stage(value_id, 0).columns;
    if (width == 0) return {};
    const auto head = uint32_t(all_columns / width);
    const uint64_t column = all_columns % width;
    const StageId weight_id = of.stage(StageId::dropped, head).rows ? StageId::dropped : StageId::weights;
    const std::string& weight_name = stage_name(weight_id);
    const StageNumbers weights = of.stage(weight_id, head);
    if (row >= weights.rows) return {};
    if (std::find(of.changed_heads.begin(), of.changed_heads.end(), head) != of.changed_heads.end())
        return {};  // another sentence's weights and values made it
    const StageNumbers values =
        of.stage(value_id, uint32_t(head / (weights.heads / of.stage(value_id, 0).heads)));
    CellSum sum;
    sum.a = weight_name, sum.b = value_name;
    sum.how = place_text("row", row, weight_name) + " times " + place_text("column", column, value_name);
    if (weights.heads > 1) sum.how += ", head " + std::to_string(head);
    for (uint64_t j = 0; j < weights.columns; ++j) {
        const float weight = weights.values[row * weights.columns + j];
        // A key without weight has no say, whatever its value holds.
        const float value = weight == 0 ? 0 : values.values[j * width + column];
        sum.terms.push_back({key_name(of, j), weight, value});
    }
    add_up(sum);
    return sum;
}

// Sums one row's values: exp(score - largest) for log-sum-exp, weights for the sums of rows.
std::optional<CellSum> of_a_row(const LayerNumbers& of, StageId id, uint32_t head, uint64_t row,
                                bool exponentials) {
    const StageNumbers stage = of.stage(id, head);
    const std::string& from = stage_name(id);
    if (row >= stage.rows) return {};
    const std::span<const float> all = stage.values.subspan(row * stage.columns, stage.columns);
    const float largest = exponentials ? *std::max_element(all.begin(), all.end()) : 0;
    CellSum sum;
    sum.a = exponentials ? "exp(" + from + " \xe2\x88\x92 max)" : from;
    sum.how = "the sum of " + place_text("row", row, sum.a);
    if (std::isinf(largest)) return {};
    for (uint64_t j = 0; j < stage.columns; ++j)
        sum.terms.push_back(
            {key_name(of, j), exponentials ? float(std::exp(double(all[j]) - double(largest))) : all[j], 1});
    add_up(sum);
    if (exponentials) {
        sum.ending = "max " + format_value(largest) + " + log(sum)";
        sum.result = float(double(largest) + std::log(double(sum.sum)));
    }
    return sum;
}

}  // namespace

std::optional<CellSum> cell_sum(const LayerNumbers& of, StageId stage, uint32_t head, uint64_t row,
                                uint64_t column) {
    const StageNumbers shown = of.stage(stage, head);
    if (row >= shown.rows || column >= shown.columns) return {};
    if (stage == StageId::context) return context(of, row, column);
    if (stage == StageId::row_sums) return of_a_row(of, StageId::masked_weights, head, row, false);
    if (stage == StageId::lse)
        for (const StageId from : {StageId::masked, StageId::capped, StageId::scaled, StageId::scores})
            if (of.stage(from, head).rows) return of_a_row(of, from, head, row, true);
    if (!of.block) return {};  // a file's queries, keys and values are as they are
    const AttentionPart& part = of.block->attention;
    const StageId x = of.stage(StageId::normed, 0).rows ? StageId::normed : StageId::inputs;
    for (const auto& [id, weight, layer] : {std::tuple{StageId::queries, StageId::w_query, &part.query},
                                            {StageId::keys, StageId::w_key, &part.key},
                                            {StageId::values, StageId::w_value, &part.value}}) {
        if (stage != id) continue;
        const uint64_t output = uint64_t(head) * shown.columns + column;
        std::optional<CellSum> sum = projection(of, x, weight, *layer, row, output);
        if (sum) tell_origin(of, std::string_view(stage_name(weight)).substr(2), output, *sum);
        const Norm& norm = layer == &part.query ? part.query_norm : part.key_norm;
        const bool normed = norm.kind != NormKind::none;
        if (sum && (part.rope || normed) && layer != &part.value) {
            sum->ending = std::string("then ") + (normed ? "the head's row is normalised" : "") +
                          (normed && part.rope ? " and " : "") +
                          (part.rope ? "turned by the position's angles" : "");
            sum->result = shown.values[row * shown.columns + column];
        }
        return sum;
    }
    if (stage != StageId::output) return block_sum(of, stage, row, column);
    std::optional<CellSum> sum =
        projection(of, StageId::context, StageId::w_output, part.output, row, column);
    if (sum) tell_origin(of, "output", column, *sum);
    return sum;
}

std::vector<size_t> shown_terms(const CellSum& sum, size_t most, bool by_size) {
    std::vector<size_t> order;  // the largest first, equal ones in their order
    const auto size_of = [&](size_t i) { return std::abs(sum.terms[i].product); };
    for (size_t i = 0; i < sum.terms.size(); ++i) {
        size_t at = order.size();
        while (at > 0 && size_of(order[at - 1]) < size_of(i)) --at;
        if (at < most) order.insert(order.begin() + int64_t(at), i);
        if (order.size() > most) order.pop_back();
    }
    if (!by_size) std::sort(order.begin(), order.end());
    return order;
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

std::string cell_sum_text(const CellSum& sum, std::string_view stage, uint64_t row, uint64_t column) {
    return std::string(stage) + "[" + std::to_string(row) + ", " + std::to_string(column) +
           "] = " + format_value(sum.result) + ": " + sum.how + "\n" + lines_of(sum);
}

}  // namespace fovea
