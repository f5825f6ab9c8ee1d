// The files of `fovea heads` that other programs read: HeadVis's tree and heads.csv.
#include "heads_survey.hpp"

#include "output_file.hpp"

#include <fovea/files/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <unordered_map>

namespace fovea::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTopTokens = 50, kActivationBins = 50;

std::string list(size_t count, const std::function<std::string(size_t)>& item) {
    std::string out = "[";
    for (size_t n = 0; n < count; ++n) out += (n ? ", " : "") + item(n);
    return out + "]";
}

std::string rounded(double value) { return json_number(std::round(value * 1e4) / 1e4); }

std::string number(uint64_t value) { return std::to_string(value); }

std::string tokens_json(const std::vector<std::pair<std::string, double>>& tokens) {
    return list(tokens.size(), [&](size_t n) {
        return JsonObject().text("token", tokens[n].first).raw("weight", rounded(tokens[n].second)).done();
    });
}

std::string sample_json(const ShownSample& sample) {
    const uint64_t length = sample.tokens.size();
    std::string indices = "[";
    size_t at = 0;
    for (uint64_t i = 0; i < sample.rows.counts.size(); ++i)
        for (uint32_t n = 0; n < sample.rows.counts[i]; ++n, ++at)
            indices += (at ? ", " : "") + number(i * length + sample.rows.keys[at]);
    return JsonObject()
        .raw("sequence_id", number(sample.of.text))
        .raw("interval", number(sample.of.interval))
        .raw("tokens", list(length, [&](size_t n) { return json_string(sample.tokens[n]); }))
        .raw("attention_indices", indices + "]")
        .raw("attention_values",
             list(sample.rows.values.size(), [&](size_t n) { return rounded(sample.rows.values[n] / 1e4); }))
        .raw("seq_len", number(length))
        .raw("max_activation", rounded(double(sample.of.activation)))
        .done();
}

}  // namespace

// ---- what samples say ----

Result<std::vector<ShownSample>> shown_samples(const HeadsFound& found, const HeadFound& head) {
    std::vector<ShownSample> out;
    for (const HeadSampler::Sample& one : head.samples) {
        const Result<std::string> text = found.corpus->text(one.text);
        if (!text) return text.error();
        Result<std::vector<uint32_t>> ids = found.model->tokens(*text);
        if (!ids) return ids.error();
        ids->resize(std::min<size_t>(ids->size(), found.length));
        Result<SparseRows> rows = found.journal->rows(head.places.at(one.text));
        if (!rows) return rows.error();
        if (rows->counts.size() != ids->size())
            return Error{FOVEA_INVALID_ARGUMENT, "--out",
                         "the journal has " + number(rows->counts.size()) + " tokens of text " +
                             number(one.text) + ", which has " + number(ids->size()) +
                             "; give another --out, or delete the journal"};
        std::vector<std::string> tokens = found.model->token_texts(*ids);
        out.push_back({one, std::move(*ids), std::move(tokens), std::move(*rows)});
    }
    return out;
}

SampleSums sample_sums(std::span<const ShownSample> samples) {
    constexpr size_t kBins = std::size(SampleSums::kEdges) - 1;
    SampleSums out;
    out.distances.resize(kBins);
    std::unordered_map<std::string, double> queries, keys;
    for (const ShownSample& one : samples) {
        size_t at = 0;
        for (uint64_t i = 0; i < one.rows.counts.size(); ++i)
            for (uint32_t n = 0; n < one.rows.counts[i]; ++n, ++at) {
                const uint64_t key = one.rows.keys[at], away = i > key ? i - key : key - i;
                const double weight = one.rows.values[at] / 1e4;
                const auto bin =
                    std::upper_bound(std::begin(SampleSums::kEdges), std::end(SampleSums::kEdges), away) -
                    std::begin(SampleSums::kEdges) - 1;
                if (size_t(bin) < kBins) out.distances[size_t(bin)] += weight;
                queries[one.tokens[i]] += weight, keys[one.tokens[key]] += weight;
            }
    }
    for (const auto& [from, to] : {std::pair(&queries, &out.queries), std::pair(&keys, &out.keys)}) {
        to->assign(from->begin(), from->end());
        std::sort(to->begin(), to->end(), [](const auto& a, const auto& b) {
            return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        to->resize(std::min(to->size(), kTopTokens));
    }
    return out;
}

std::vector<uint64_t> activation_histogram(std::span<const float> activations) {
    std::vector<uint64_t> counts(kActivationBins);
    for (const float one : activations)
        ++counts[std::min(kActivationBins - 1, size_t(std::max(0.0f, one) * float(kActivationBins)))];
    return counts;
}

std::string path_part(std::string_view name) {
    std::string out;
    for (const char c : name) {
        const bool fits = std::isalnum(uint8_t(c)) != 0 || c == '.' || c == '_' || c == '-';
        if (fits || !out.ends_with('-')) out += fits ? c : '-';
    }
    while (out.starts_with('-') || out.starts_with('.')) out.erase(0, 1);
    while (out.ends_with('-')) out.pop_back();
    return out.empty() ? "unnamed" : out;
}

std::string tree_name(const HeadsModel& model) {
    const std::string part = path_part(model.name());
    std::string lower = part;
    for (char& c : lower) c = char(std::tolower(uint8_t(c)));
    const bool is_taken = lower == "index.html" || lower == "heads.csv" || lower == "pages";
    return is_taken ? part + "-model" : part;
}

// ---- files ----

Result<void> write_headvis_head(const HeadsFound&, const HeadFound& head,
                                std::span<const ShownSample> samples, const fs::path& folder) {
    const SampleSums sums = sample_sums(samples);
    const std::vector<uint64_t> counts = activation_histogram(head.activations);
    double activation = 0;
    for (const float one : head.activations) activation += double(one);
    const std::string text =
        JsonObject()
            .raw("sequences", list(samples.size(), [&](size_t n) { return sample_json(samples[n]); }))
            .raw("qk_distance_histogram",
                 JsonObject()
                     .raw("bin_edges", list(std::size(SampleSums::kEdges),
                                            [](size_t n) { return number(SampleSums::kEdges[n]); }))
                     .raw("bin_values",
                          list(sums.distances.size(), [&](size_t n) { return rounded(sums.distances[n]); }))
                     .done())
            .raw("top_query_tokens", tokens_json(sums.queries))
            .raw("top_key_tokens", tokens_json(sums.keys))
            .raw("histogram",
                 JsonObject()
                     .raw("bin_edges", list(kActivationBins + 1,
                                            [](size_t n) { return rounded(double(n) / kActivationBins); }))
                     .raw("bin_values", list(counts.size(), [&](size_t n) { return number(counts[n]); }))
                     .done())
            .raw("statistics",
                 JsonObject()
                     .raw("n_samples", number(samples.size()))
                     .raw("mean_max_activation", rounded(activation / double(head.activations.size())))
                     .done())
            .done();
    const fs::path file = folder / "heads" / ("L" + number(head.layer) + "H" + number(head.head) + ".json");
    return write_text_file(file.string(), text + "\n");
}

Result<void> write_headvis_files(const HeadsFound& found, const fs::path& folder) {
    const HeadsModel& model = *found.model;
    const auto metrics = head_metric_names();
    const auto of_heads = [&](const std::function<std::string(const HeadFound&)>& item) {
        return list(found.heads.size(), [&](size_t n) { return item(found.heads[n]); });
    };
    JsonObject about;
    for (const HeadMetricName& one : metrics) about.text(one.key, one.about);
    const auto labelled = [](std::string_view key, std::string_view label) {
        return JsonObject().text("key", key).text("label", label).done();
    };
    const auto display = [](std::string_view label) {
        return JsonObject().text("label", label).text("format", "default").done();
    };
    const std::string dataset = found.corpus->name(), layers = number(model.layers),
                      heads = number(model.heads);
    JsonObject pipeline;
    pipeline.text("model_name", model.name()).text("np_model_id", tree_name(model));
    pipeline.text("dataset_name", dataset)
        .raw("n_sequences", number(found.texts))
        .raw("seq_len", number(found.length));
    pipeline.text("dtype", "float32").text("attn_implementation", "fovea");
    pipeline.number("induction_attention_threshold", 0.01)
        .raw("n_intervals", number(HeadSampler::kIntervals));
    pipeline.raw("samples_per_interval", number(HeadSampler::kPerInterval));
    pipeline.raw("samples_per_top_interval", number(HeadSampler::kHighest));
    pipeline.raw("sparse_topk_per_row", "8").number("sparse_threshold", 0.005);
    pipeline.raw("actual_sequences_processed", number(found.texts));
    pipeline.raw("num_hidden_layers", layers).raw("num_attention_heads", heads);
    pipeline.raw("attention_layer_indices", list(model.layers, number));
    const std::string config =
        JsonObject()
            .text("model_name", model.name())
            .text("np_model_id", tree_name(model))
            .text("dataset_name", dataset)
            .raw("heads", of_heads([](const HeadFound& h) {
                     return "[" + number(h.layer) + ", " + number(h.head) + "]";
                 }))
            .raw("n_layers", layers)
            .raw("n_heads", heads)
            .raw("n_intervals", number(HeadSampler::kIntervals))
            .raw("metrics", list(metrics.size(), [&](size_t n) { return json_string(metrics[n].key); }))
            .raw("metric_descriptions", about.done())
            .text("head_data_pattern", "L{layer}H{head}.json")
            .boolean("has_umap", false)
            .raw("umap_heads", "[]")
            .raw("custom_plots", "[" + labelled("qk_distance_histogram", "Q-K distance") + ", " +
                                     labelled("histogram", "Activation distribution") + "]")
            .raw("custom_tables", "[" + labelled("top_query_tokens", "Top query tokens") + ", " +
                                      labelled("top_key_tokens", "Top key tokens") + "]")
            .raw("statistics_display", JsonObject()
                                           .raw("n_samples", display("Samples kept"))
                                           .raw("mean_max_activation", display("Mean max activation"))
                                           .done())
            .raw("pipeline_config", pipeline.done())
            .done();
    const std::string scatter = of_heads([&](const HeadFound& h) {
        JsonObject row;
        row.raw("layer", number(h.layer)).raw("head", number(h.head));
        for (const HeadMetricName& one : metrics) row.number(one.key, h.metrics.*one.value);
        return row.done();
    });
    const std::pair<const char*, std::string> all[] = {{"config.json", config},
                                                       {"scatter_data.json", scatter},
                                                       {"server_config.json", "{}"},
                                                       {"attributions/manifest.json", "{}"}};
    for (const auto& [name, text] : all)
        if (Result<void> r = write_text_file((folder / name).string(), text + "\n"); !r) return r;
    return {};
}

Result<void> write_heads_csv(const HeadsFound& found, const fs::path& folder) {
    std::string text = "layer,head,role";
    for (const HeadMetricName& one : head_metric_names()) text += std::string(",") + one.key;
    for (const TokenScoreName& one : token_score_names()) text += std::string(",") + one.key;
    text += '\n';
    const auto cell = [&](double value) { text += "," + (std::isnan(value) ? "" : json_number(value)); };
    for (const HeadFound& h : found.heads) {
        text += number(h.layer) + "," + number(h.head) + "," + std::string(h.role);
        for (const HeadMetricName& one : head_metric_names()) cell(h.metrics.*one.value);
        for (const TokenScoreName& one : token_score_names()) cell(double(h.metrics.scores.*one.value));
        text += '\n';
    }
    return write_text_file((folder / "heads.csv").string(), text);
}

}  // namespace fovea::app
