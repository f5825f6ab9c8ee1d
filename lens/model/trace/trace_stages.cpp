// Which stages a layer has, with their shapes, and the formula that each shows.
#include <fovea/model/trace.hpp>

#include <cstdio>

#include "files/locale_point.hpp"
#include "model/trace/trace_impl.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

std::string number_text(double value) { return files::number_by("%.*g", 6, value); }

// "√d·2": what scores are divided by.
std::string divisor_text(const AttentionRules& rules) {
    std::string text = rules.scale == "auto" ? "√d" : rules.scale == "none" ? "" : rules.scale;
    if (rules.temperature == 1) return text;
    return text.empty() ? number_text(rules.temperature)
                        : "(" + text + "·" + number_text(rules.temperature) + ")";
}

}  // namespace

std::string Trace::Impl::formula_of(StageId id, uint32_t n) const {
    const StageText& text = stage_text(id);
    const Block& b = block(n);
    const AttentionPart& a = b.attention;
    const AttentionRules& r = rules(n);
    const auto by_layout = [&](const Linear& layer, const char* bias = " + b") {
        const bool transposed = layer.layout == WeightLayout::out_in && !text.transposed.empty();
        return (transposed ? text.transposed : text.formula) + (layer.has_bias() ? bias : "");
    };
    const auto projected = [&](const Linear& layer, bool turned) {
        if (is_given(n)) return text.formula.substr(0, 1);
        std::string formula = by_layout(layer);
        const NormKind kind = id == StageId::queries ? a.query_norm.kind : a.key_norm.kind;
        const auto inside = [&](const char* name) {
            formula = formula.substr(0, 4) + name + "(" + formula.substr(4) + ")";
        };
        if (turned && kind != NormKind::none) inside(norm_name(kind));
        if (turned && a.rope) inside("rope");
        return formula;
    };
    const bool bare = !projects(n) && !is_given(n);
    if (id == StageId::queries) return projected(a.query, true);
    if (id == StageId::keys) return projected(a.key, true);
    if (id == StageId::values) return projected(a.value, false);
    if (id == StageId::scores && bare) return "X·Xᵀ";
    if (id == StageId::scaled) return std::string(bare ? "X·Xᵀ / " : "Q·Kᵀ / ") + divisor_text(r);
    if (id == StageId::masked && !has_bias(n)) return "s, −∞ if masked";
    if (id == StageId::masked && !hides_any(n)) return "s + bias";
    if (id == StageId::weights && masks_after(n)) return "A / Σⱼ";
    if (id == StageId::context && bare) return "A·X";
    if (id == StageId::output) return by_layout(a.output);
    const auto summed = [&](const Norm& behind, const Norm& of_sum, const char* part) {
        const std::string added =
            behind.kind == NormKind::none ? part : std::string(norm_name(behind.kind)) + "(" + part + ")";
        return b.order == BlockOrder::post ? std::string(norm_name(of_sum.kind)) + "(x + " + added + ")"
                                           : "x + " + added;
    };
    if (id == StageId::attended) return summed(b.attention_output_norm, b.attention_norm, "output");
    if (id == StageId::block) return summed(b.feed_forward_output_norm, b.feed_forward_norm, "h·W_down");
    if (id == StageId::normed) return std::string(norm_name(b.attention_norm.kind)) + "(x)";
    if (id == StageId::ff_normed) return std::string(norm_name(b.feed_forward_norm.kind)) + "(x)";
    if (id == StageId::ff_hidden && is_present(b.feed_forward.gate))
        return std::string(activation_name(b.feed_forward.activation)) + "(x·W_gate) ⊙ x·W_up";
    if (id == StageId::ff_hidden) return std::string(activation_name(b.feed_forward.activation)) + "(x·W_up)";
    if (id == StageId::final) return std::string(norm_name(model_->final_norm.kind)) + "(x)";
    return text.formula;
}

std::vector<TraceStage> Trace::Impl::stages(uint32_t n) const {
    const Block& b = block(n);
    const AttentionPart& a = b.attention;
    const FeedForward& f = b.feed_forward;
    const bool last = n + 1 == layers_.size(), with_qkv = projects(n) || is_given(n), after = masks_after(n);
    const uint64_t L = rows(), K = keys(n), width = n == 0 && given() ? 0 : width_before(n);
    struct Place {
        StageId id;
        bool there;
        uint64_t heads, rows, columns;
    };
    const auto weight = [](StageId id, bool there, const Linear& layer) {
        return there ? Place{id, true, 1, layer.weight.shape[0], layer.weight.shape[1]}
                     : Place{id, false, 1, 0, 0};
    };
    const auto pair = [&](StageId id, bool there) { return Place{id, there, a.heads, L, K}; };
    const bool values = has_values(n), ff = is_present(f.up), out = is_present(a.output);
    const uint64_t behind = width_behind(n);
    const Place all[] = {
        {StageId::inputs, n == 0 && !given(), 1, L, width},
        {StageId::normed, b.attention_norm.kind != NormKind::none && b.order != BlockOrder::post, 1, L,
         width},
        weight(StageId::w_query, projects(n), a.query),
        weight(StageId::w_key, projects(n), a.key),
        weight(StageId::w_value, projects(n), a.value),
        {StageId::queries, with_qkv, a.heads, L, head_width(n)},
        {StageId::keys, with_qkv, a.kv_heads, K, head_width(n)},
        {StageId::values, with_qkv && values, a.kv_heads, K, value_width(n)},
        pair(StageId::scores, true),
        pair(StageId::scaled, scales(n)),
        pair(StageId::capped, rules(n).softcap > 0),
        pair(StageId::masked, (hides_any(n) || has_bias(n)) && !after),
        pair(StageId::weights_all, after),
        pair(StageId::masked_weights, after),
        {StageId::row_sums, after, a.heads, L, 1},
        pair(StageId::weights, true),
        pair(StageId::keep, drops(n)),
        pair(StageId::dropped, drops(n)),
        {StageId::context, values, 1, L, value_width(n) * a.heads},
        {StageId::lse, values, a.heads, L, 1},
        weight(StageId::w_output, out, a.output),
        {StageId::output, out, 1, L, output_width(n)},
        {StageId::attended, b.residual, 1, L, output_width(n)},
        {StageId::ff_normed, ff && b.feed_forward_norm.kind != NormKind::none && b.order != BlockOrder::post,
         1, L, output_width(n)},
        {StageId::ff_hidden, ff, 1, L, ff ? f.up.d_out() : 0},
        {StageId::ff_output, ff, 1, L, behind},
        {StageId::block, ff && b.residual, 1, L, behind},
        {StageId::final, last && model_->final_norm.kind != NormKind::none, 1, L, behind},
        {StageId::logits, last && is_present(model_->unembedding), 1, L,
         last && is_present(model_->unembedding) ? model_->unembedding.d_out() : 0},
        {StageId::probabilities, last && is_present(model_->unembedding), 1, L,
         last && is_present(model_->unembedding) ? model_->unembedding.d_out() : 0}};
    std::vector<TraceStage> list;
    for (const Place& place : all) {
        if (!place.there) continue;
        list.push_back({place.id, formula_of(place.id, n), place.heads, place.rows, place.columns});
    }
    return list;
}

}  // namespace fovea
