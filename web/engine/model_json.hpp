// The JSON in which the module of published models tells the page of a model, a head or a sum.
#pragma once

#include <fovea/inspect/cell_sum.hpp>
#include <fovea/inspect/json.hpp>
#include <fovea/inspect/prompt_run.hpp>
#include <fovea/tokenizer.hpp>

#include <map>

namespace fovea::web {

// `held`: the file's bytes are all in memory.
inline std::string config_json(const TextModel& model, bool held) {
    const ModelConfig& f = model.weights.config();
    std::map<std::string, uint64_t> types;
    for (const StoredWeight& weight : model.weights.files().weights)
        types[weight.type_text] += weight.size_bytes;
    return JsonObject()
        .text("family", f.family)
        .text("architecture", f.architecture)
        .number("layers", double(f.layers))
        .number("heads", double(f.heads))
        .number("kvHeads", double(f.kv_heads))
        .number("width", double(f.width))
        .number("headWidth", double(f.head_width))
        .number("vocabulary", double(f.vocabulary))
        .raw("context", f.context ? json_number(double(f.context)) : "null")
        .boolean("causal", f.causal)
        .number("softcap", f.softcap)
        .raw("types",
             array_json(
                 types,
                 [](const auto& one) {
                     return JsonObject().text("name", one.first).number("bytes", double(one.second)).done();
                 }))
        .number("bytes", double(model.weights.files().stored_bytes()))
        .number("layerBytes", double(model.weights.block_bytes()))
        .boolean("held", held)
        .raw("whyNoText", model.tokenizer ? "null" : json_string(model.why_no_text))
        .text("text", first_text(model))
        .done();
}

inline std::string head_json(const PromptLayer::Head& head) {
    JsonObject json;
    for (const TokenScoreName& one : token_score_names())
        json.number(one.key, double(head.scores.*one.value));
    return json.number("entropy", head.stats.entropy).text("job", head_job(head.scores)).done();
}

// At most `most` terms, the largest; what the others add up to is told as `leftSum`.
inline std::string sum_json(const CellSum& sum, size_t most) {
    const std::vector<size_t> shown = shown_terms(sum, most, false);
    double left = 0;
    for (size_t i = 0, next = 0; i < sum.terms.size(); ++i)
        if (next < shown.size() && shown[next] == i)
            ++next;
        else
            left += double(sum.terms[i].product);
    return JsonObject()
        .text("how", sum.how)
        .text("a", sum.a)
        .text("b", sum.b)
        .raw("terms", array_json(shown,
                                 [&](size_t i) {
                                     const CellSum::Term& term = sum.terms[i];
                                     return JsonObject()
                                         .text("name", term.name)
                                         .raw("a", number_json(double(term.a)))
                                         .raw("b", number_json(double(term.b)))
                                         .raw("product", number_json(double(term.product)))
                                         .done();
                                 }))
        .number("left", double(sum.terms.size() - shown.size()))
        .raw("leftSum", number_json(left))
        .text("addedName", sum.added_name)
        .raw("added", number_json(double(sum.added)))
        .raw("sum", number_json(double(sum.sum)))
        .text("ending", sum.ending)
        .raw("result", number_json(double(sum.result)))
        .raw("factors", array_json(sum.factors, [most](const CellSum& one) { return sum_json(one, most); }))
        .done();
}

}  // namespace fovea::web
