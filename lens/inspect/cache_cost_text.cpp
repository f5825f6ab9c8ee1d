// The cost of a KV cache as lines and as JSON.
#include <fovea/inspect/cache_cost.hpp>
#include <fovea/inspect/json.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace fovea {
namespace {

std::string printed(const char* format, double value) {
    char text[32];
    snprintf(text, sizeof text, format, value);
    return text;
}

std::string column(const std::string& text, size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string head_name(const CacheCosts& costs, size_t head) {
    return std::to_string(head / costs.heads) + "." + std::to_string(head % costs.heads);
}

size_t worst_head(const std::vector<CacheCost>& costs) {
    return size_t(
        std::max_element(costs.begin(), costs.end(),
                         [](const CacheCost& a, const CacheCost& b) { return a.divergence < b.divergence; }) -
        costs.begin());
}

CacheCost mean_of(const std::vector<CacheCost>& costs) {
    CacheCost mean;
    for (const CacheCost& one : costs) mean.divergence += one.divergence, mean.change += one.change;
    mean.divergence /= double(costs.size()), mean.change /= double(costs.size());
    return mean;
}

std::string type_json(const CacheType& type) {
    JsonObject out;
    out.text("type", dtype_name(type.type)).boolean("rotated", type.rotated);
    return out.done();
}

}  // namespace

std::string cache_costs_text(const CacheCosts& costs, size_t top) {
    std::string out = std::to_string(costs.texts) + (costs.texts == 1 ? " text, " : " texts, ") +
                      std::to_string(costs.tokens) +
                      " tokens; divergences in nats, of a row's weights and of the " +
                      "next token's probabilities\n";
    out += "KV cache      bytes/token  next token  weights: mean    worst        context: mean\n";
    const auto row = [&](const std::string& name, double bytes, double next, const std::string& rest) {
        out += name + std::string(name.size() < 12 ? 12 - name.size() : 0, ' ') +
               column(printed("%.0f", bytes), 13) + column(printed("%.3g", next), 12) + rest + "\n";
    };
    for (size_t t = 0; t < costs.types.size(); ++t) {
        const CacheCost mean = mean_of(costs.of[t]);
        const size_t worst = worst_head(costs.of[t]);
        row(cache_type_name(costs.types[t]), costs.bytes(costs.types[t]), costs.next[t],
            column(printed("%.3g", mean.divergence), 15) +
                column(printed("%.3g", costs.of[t][worst].divergence), 9) + " (" + head_name(costs, worst) +
                ")" + column(printed("%.2f%%", 100 * mean.change), 16));
    }
    if (costs.plan) {
        const CachePlan& plan = *costs.plan;
        row("plan", plan.bytes, plan.next,
            column("", 15) + column(printed("%.3g", plan.worst.divergence), 9) +
                "  largest of a head; the limit is " + printed("%.3g", plan.limit));
        std::vector<CacheType> all = {CacheType()};
        all.insert(all.end(), costs.types.begin(), costs.types.end());
        for (const CacheType& type : all) {
            std::string heads;
            for (size_t n = 0; n < plan.types.size(); ++n)
                if (plan.types[n] == type)
                    heads +=
                        " " + std::to_string(n / costs.kv_heads) + "." + std::to_string(n % costs.kv_heads);
            if (!heads.empty()) out += "  " + cache_type_name(type) + ":" + heads + "\n";
        }
        out +=
            "Heads of the plan are layer.key/value head. One attention call reads one type for all its "
            "heads, so a "
            "program\nmakes one call for each group of heads with the same type.\n";
    }
    if (top == 0 || costs.types.empty()) return out;
    const std::vector<CacheCost>& last = costs.of.back();
    std::vector<size_t> order(last.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return last[a].divergence > last[b].divergence; });
    order.resize(std::min(order.size(), top));
    out += "\nheads that " + cache_type_name(costs.types.back()) +
           " costs most: divergence of the weights, change of the context\nhead   ";
    for (const CacheType& type : costs.types) out += column(cache_type_name(type), 17);
    for (const size_t head : order) {
        const std::string name = head_name(costs, head);
        out += "\n" + name + std::string(name.size() < 7 ? 7 - name.size() : 0, ' ');
        for (const auto& of_type : costs.of)
            out += column(
                printed("%.2g", of_type[head].divergence) + printed(" %.2f%%", 100 * of_type[head].change),
                17);
    }
    return out + "\n";
}

std::string cache_costs_json(const CacheCosts& costs) {
    JsonObject out;
    for (const auto& [name, value] : {std::pair{"texts", costs.texts},
                                      {"tokens", costs.tokens},
                                      {"layers", costs.layers},
                                      {"heads", costs.heads},
                                      {"kv_heads", costs.kv_heads}})
        out.number(name, double(value));
    std::string types = "[";
    for (size_t t = 0; t < costs.types.size(); ++t) {
        const auto list = [&](double CacheCost::*value) {
            return array_json(costs.of[t], [&](const CacheCost& one) { return number_json(one.*value); });
        };
        JsonObject one;
        one.text("type", dtype_name(costs.types[t].type)).boolean("rotated", costs.types[t].rotated);
        one.number("bytes_per_token", costs.bytes(costs.types[t]))
            .raw("next_token_divergence", number_json(costs.next[t]));
        one.raw("divergence", list(&CacheCost::divergence)).raw("context_change", list(&CacheCost::change));
        types += (t ? "," : "") + one.done();
    }
    out.raw("types", types + "]");
    if (costs.plan) {
        JsonObject plan;
        plan.raw("limit", number_json(costs.plan->limit)).number("bytes_per_token", costs.plan->bytes);
        plan.raw("next_token_divergence", number_json(costs.plan->next));
        plan.raw("largest_divergence", number_json(costs.plan->worst.divergence));
        plan.raw("types", array_json(costs.plan->types, type_json));
        out.raw("plan", plan.done());
    }
    return out.done();
}

}  // namespace fovea
