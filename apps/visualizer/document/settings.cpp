#include "document/settings.hpp"

#include "document/imported_file.hpp"
#include "document/opened_model.hpp"

#include <fovea/inspect.hpp>
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

namespace fovea::visualizer {
namespace {

// The n-th choice of a key of session files.
std::string_view choice(std::string_view key, size_t n) {
    for (const SessionKey& known : session_keys())
        if (known.key == key && n < known.choices.size()) return known.choices[n];
    return "";
}

}  // namespace

// The library's model of the settings' task; parsed once for each.
const LearnedModel& learned_of(const Settings& s) {
    if (s.learned) return *s.learned;
    static std::mutex mutex;
    static std::map<std::string, LearnedModel> known;
    const std::lock_guard lock(mutex);
    const auto at = known.find(s.task);
    if (at != known.end()) return at->second;
    // Sessions name only tasks that the library carries.
    return known.emplace(s.task, std::move(*learned_model(s.task))).first->second;
}

std::string_view mask_pattern_name(MaskPattern pattern) {
    AttentionRules rules;
    rules.pattern = pattern;
    return mask_key(rules);
}

std::string_view precision_key(Precision precision) { return choice("precision", size_t(precision)); }
std::string_view tokenizer_name(Tokenizer tokenizer) { return choice("tokenizer", size_t(tokenizer)); }

std::string_view precision_name(Precision precision) {
    constexpr std::array<std::string_view, kPrecisionCount> kNames = {"float32", "float16 storage",
                                                                      "float16 inputs"};
    return kNames.at(size_t(precision));
}

AttentionRules rules_of(const Settings& s) {
    AttentionRules rules = s;
    if (!reads_tensors(s) || s.mapping.divisor <= 0 || s.scale != "auto") return rules;
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", double(s.mapping.divisor));
    rules.scale = text;
    return rules;
}

std::vector<uint32_t> shown_layers(const Settings& s) {
    if (!shows_model(s)) return layers_of(s);
    std::vector<uint32_t> layers(s.model ? size_t(s.model->weights.config().layers)
                                         : learned_of(s).model->blocks.size());
    std::iota(layers.begin(), layers.end(), 0u);
    return layers;
}

uint32_t heads_of_layer(const Settings& s) {
    return s.model ? uint32_t(s.model->weights.config().heads)
                   : learned_of(s).model->blocks[0].attention.heads;
}

std::string head_label(const Settings& s, HeadPlace head) {
    if (!shows_model(s) || s.model) return {};
    const std::vector<std::string>& labels = learned_of(s).head_labels;
    const size_t index = size_t(head.layer) * heads_of_layer(s) + head.head;
    return index < labels.size() ? labels[index] : "";
}

HeadChange change_of(const Settings& s, HeadPlace head) {
    const auto at = std::find_if(s.changed.begin(), s.changed.end(),
                                 [&](const HeadChange& one) { return one.at == head; });
    return at == s.changed.end() ? HeadChange{head, 1, ""} : *at;
}

void change_head(Settings& s, HeadChange change) {
    const auto at = std::find_if(s.changed.begin(), s.changed.end(),
                                 [&](const HeadChange& one) { return !(one.at < change.at); });
    const bool known = at != s.changed.end() && at->at == change.at;
    const bool as_it_is = change.scale == 1 && change.patch.empty();
    if (as_it_is)
        known ? void(s.changed.erase(at)) : void();
    else if (known)
        *at = std::move(change);
    else
        s.changed.insert(at, std::move(change));
}

std::string change_text(const Settings& s, HeadPlace head) {
    if (is_off(s, head)) return ", off";
    const HeadChange change = change_of(s, head);
    if (!change.patch.empty()) return ", patched from \xe2\x80\x9c" + change.patch + "\xe2\x80\x9d";
    return change.scale == 1 ? "" : ", \xc3\x97 " + format_number(double(change.scale), 4);
}

bool is_off(const Settings& s, HeadPlace head) {
    if (s.model) {
        const HeadChange change = change_of(s, head);
        return change.scale == 0 && change.patch.empty();
    }
    const uint32_t bit = shows_model(s) ? head.layer * heads_of_layer(s) + head.head : 32;
    return bit < 32 && (s.heads_off >> bit & 1u);
}

void toggle_head(Settings& s, HeadPlace head) {
    if (s.model) return change_head(s, {head, is_off(s, head) ? 1.0f : 0.0f, ""});
    const uint32_t bit = head.layer * heads_of_layer(s) + head.head;
    if (bit < 32) s.heads_off ^= 1u << bit;
}

Settings level_settings(int level) {
    Settings s;
    static_cast<Session&>(s) = level_session(level);
    const Session none;
    s.stage = none.stage, s.head = none.head, s.row = none.row, s.column = none.column;
    return s;
}

Settings task_settings(std::string_view task, const Settings& before) {
    Settings s;
    static_cast<Session&>(s) = level_session(before.level, task);
    const Session none;
    s.mapping.layer = s.head / heads_of_layer(s);
    s.stage = none.stage, s.head = none.head, s.row = none.row, s.column = none.column;
    s.precision = before.precision;
    return s;
}

Settings model_settings(std::shared_ptr<const OpenedModel> model, const Settings& before) {
    Settings s = level_settings(1);
    // A sentence stays where the model can read it; without a tokenizer these are token IDs.
    const bool readable = !shows_model(before) && (model->tokenizer || tokens_of(*model, before.text));
    s.text = readable ? before.text : first_text(*model);
    s.scale = "auto";
    s.model = std::move(model);
    return s;
}

std::string model_lead(const Settings& s) {
    if (s.model) {
        const ModelConfig& f = s.model->weights.config();
        return f.family + ": " + std::to_string(f.layers) + " layers of " + std::to_string(f.heads) +
               " heads, width " + std::to_string(f.width) + ", " + std::to_string(f.vocabulary) + " tokens" +
               (f.causal ? "" : "; an encoder, every token sees every other") +
               ". Layers (Shift+H) shows every layer and head; a right-click on a head switches it off.";
    }
    const LearnedModel& learned = learned_of(s);
    if (learned.look_at.empty()) return learned.about;
    return learned.look_at[std::min<size_t>(s.mapping.layer, learned.look_at.size() - 1)];
}

bool same_subject(const Settings& a, const Settings& b) {
    return a.level == b.level && a.task == b.task && a.file == b.file && a.model == b.model;
}

bool reads_no_words(const Settings& s) { return shows_model(s) && !s.model && !learned_of(s).tokenizer; }

std::string text_hint(const Settings& s) {
    if (s.model) return s.model->tokenizer ? "a sentence" : "token IDs";
    if (!reads_no_words(s)) return "a sentence";
    // One letter or number each, or the first of longer names.
    std::string shown;
    const std::vector<std::string>& all = learned_of(s).model->vocabulary;
    const bool letters = std::find(all.begin(), all.end(), "a") != all.end() &&
                         std::find(all.begin(), all.end(), "z") != all.end();
    if (letters) return "letters a to z";
    for (const std::string& token : all)
        if (token.front() != '<' && shown.size() < 24) shown += (shown.empty() ? "tokens " : " ") + token;
    return shown + " \xe2\x80\xa6";
}

bool is_plain_level(const Settings& s) {
    Settings plain = level_settings(s.level, s);
    plain.step = s.step, plain.dropout_rate = s.dropout_rate;
    return plain == s;
}

std::string subject_name(const Settings& s) {
    if (s.model) return s.model->name;
    return shows_model(s) ? s.task : "level " + std::to_string(s.level);
}

Settings level_settings(int level, const Settings& before) {
    Settings s = level_settings(level);
    // A task's sequence is not a sentence.
    if (!shows_model(before)) s.text = before.text;
    s.tokenizer = before.tokenizer;
    s.precision = before.precision;
    return s;
}

std::string level_name(int level) {
    std::string name = level_text(level).term;
    if (name[0] >= 'a' && name[0] <= 'z') name[0] = char(name[0] - 'a' + 'A');
    return name;
}

void switch_dropout(Settings& s) {
    if (s.dropout_p > 0)
        s.dropout_rate = std::exchange(s.dropout_p, 0);
    else
        s.dropout_p = s.dropout_rate;
}

void toggle_key(Settings& s, uint32_t key) {
    const auto at = std::lower_bound(s.hidden_keys.begin(), s.hidden_keys.end(), key);
    if (at != s.hidden_keys.end() && *at == key)
        s.hidden_keys.erase(at);
    else
        s.hidden_keys.insert(at, key);
}

bool is_causal_model(const Settings& s) {
    return s.model && shows_model(s) && s.model->weights.config().causal;
}

}  // namespace fovea::visualizer
