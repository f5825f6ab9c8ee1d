#include "model_changes.hpp"

#include "model_report.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace fovea::app {
namespace {

// A whole number of an option's list, below `limit`.
Result<uint64_t> number_below(std::string_view word, std::string_view option, const char* what,
                              uint64_t limit) {
    const Result<int64_t> number = parse_integer(word, option);
    if (!number) return number.error();
    if (*number < 0 || uint64_t(*number) >= limit)
        return bad(option, std::string(option) + " has " + what + " " + std::string(word) +
                               "; it must be from 0 to " + std::to_string(limit - 1));
    return uint64_t(*number);
}

struct Head {
    uint64_t layer, head;
    bool operator<(const Head& other) const {
        return layer != other.layer ? layer < other.layer : head < other.head;
    }
};

// "1.2": layer 1, head 2.
Result<Head> parse_head(std::string_view word, std::string_view option, const ModelConfig& config) {
    const std::vector<std::string_view> parts = split(word, '.');
    if (parts.size() != 2)
        return bad(option, std::string(option) + " has '" + std::string(word) +
                               "'; a head is its layer and its number, such as 1.2");
    const Result<uint64_t> layer = number_below(parts[0], option, "layer", config.layers);
    if (!layer) return layer.error();
    const Result<uint64_t> head = number_below(parts[1], option, "head", config.heads);
    if (!head) return head.error();
    return Head{*layer, *head};
}

class ChangesReader {
  public:
    ChangesReader(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens)
        : a_(arguments), model_(model), tokens_(tokens) {}

    Result<RunChanges> read(const ModelRunOptions& options) {
        if (Result<void> r = read_off(); !r) return r.error();
        if (Result<void> r = read_scales(); !r) return r.error();
        if (Result<void> r = read_hidden(); !r) return r.error();
        if (Result<void> r = read_patches(options); !r) return r.error();
        return std::move(changes_);
    }

  private:
    std::vector<std::string_view> words_of(std::string_view option) const {
        return a_.has(option) ? split(a_.text(option), ',') : std::vector<std::string_view>();
    }

    Result<Head> new_head(std::string_view word, std::string_view option) {
        const Result<Head> head = parse_head(word, option, model_.config());
        if (head && !named_.insert(*head).second)
            return bad(option, "head " + std::string(word) + " is given twice; give it once");
        return head;
    }

    Result<void> read_off() {
        for (const std::string_view word : words_of("--off")) {
            const Result<Head> head = new_head(word, "--off");
            if (!head) return head.error();
            changes_.scale_head(head->layer, head->head, 0.0f);
        }
        return {};
    }

    Result<void> read_scales() {
        for (const std::string_view word : words_of("--scale")) {
            const std::vector<std::string_view> parts = split(word, '=');
            if (parts.size() != 2)
                return bad("--scale", "--scale has '" + std::string(word) +
                                          "'; it must be a head and a number, such as 1.2=0.5");
            const Result<Head> head = new_head(parts[0], "--scale");
            if (!head) return head.error();
            const Result<double> factor = parse_number(parts[1], "--scale");
            if (!factor) return factor.error();
            if (!std::isfinite(float(*factor)))
                return bad("--scale", "--scale has " + std::string(parts[1]) +
                                          "; it must be a finite number that float32 holds");
            changes_.scale_head(head->layer, head->head, float(*factor));
        }
        return {};
    }

    Result<void> read_hidden() {
        for (const std::string_view word : words_of("--hide")) {
            const Result<uint64_t> token = number_below(word, "--hide", "token", tokens_);
            if (!token) return token.error();
            changes_.hidden_tokens.push_back(uint32_t(*token));
        }
        std::sort(changes_.hidden_tokens.begin(), changes_.hidden_tokens.end());
        const auto twice = std::adjacent_find(changes_.hidden_tokens.begin(), changes_.hidden_tokens.end());
        if (twice != changes_.hidden_tokens.end())
            return bad("--hide", "token " + std::to_string(*twice) + " is given twice; give it once");
        return {};
    }

    Result<void> read_patches(const ModelRunOptions& options) {
        const std::string_view from = a_.first_of({"--from-text", "--from-tokens"});
        if (!from.empty() && !a_.has("--patch"))
            return bad(from, std::string(from) + " needs --patch, which says the heads to take from it");
        if (!a_.has("--patch")) return {};
        if (from.empty())
            return bad(
                "--patch",
                "--patch needs another text to take the heads from; give --from-text or --from-tokens");
        std::vector<HeadPatch> heads;
        for (const std::string_view word : words_of("--patch")) {
            const Result<Head> head = new_head(word, "--patch");
            if (!head) return head.error();
            heads.push_back({head->layer, uint32_t(head->head)});
        }
        const Result<ModelTokens> other =
            input_tokens(a_, model_, {.text = "--from-text", .tokens = "--from-tokens"});
        if (!other) return other.error();
        if (other->ids.size() != tokens_)
            return bad(from, std::string(from) + " has " + std::to_string(other->ids.size()) +
                                 " tokens and the text has " + std::to_string(tokens_) +
                                 "; --patch needs texts of as many tokens");
        ModelRunOptions quiet;
        quiet.trace = options.trace;
        Result<std::vector<HeadPatch>> contexts = head_contexts(model_, other->ids, std::move(heads), quiet);
        if (!contexts) return bad(from, contexts.error().text);
        changes_.patches = std::move(*contexts);
        return {};
    }

    const Arguments& a_;
    const CheckpointModel& model_;
    uint64_t tokens_;
    std::set<Head> named_;
    RunChanges changes_;
};

}  // namespace

bool has_changes(const Arguments& arguments) {
    return !arguments.first_of({"--off", "--scale", "--hide", "--patch", "--from-text", "--from-tokens"})
                .empty();
}

Result<LayerCell> why_cell(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens) {
    const std::vector<std::string_view> words = split(arguments.text("--why"), ',');
    if (words.size() != 3)
        return bad("--why", "--why is '" + std::string(arguments.text("--why")) +
                                "'; it must be a head, a query and a key, such as 1.2,7,3");
    const Result<Head> head = parse_head(words[0], "--why", model.config());
    if (!head) return head.error();
    const Result<uint64_t> query = number_below(words[1], "--why", "query", tokens);
    if (!query) return query.error();
    const Result<uint64_t> key = number_below(words[2], "--why", "key", tokens);
    if (!key) return key.error();
    return LayerCell{uint32_t(head->layer), uint32_t(head->head), *query, *key};
}

Result<AskedLogit> asked_logit(const Arguments& arguments, uint64_t tokens) {
    const std::vector<std::string_view> words = split(arguments.text("--logit"), ',');
    if (words.size() > 2)
        return bad("--logit", "--logit is '" + std::string(arguments.text("--logit")) +
                                  "'; it must be a token, or a token and a token ID, such as 7,464");
    const Result<uint64_t> position = number_below(words[0], "--logit", "token", tokens);
    if (!position) return position.error();
    AskedLogit asked{*position, {}};
    if (words.size() == 1) return asked;
    const Result<uint64_t> id = number_below(words[1], "--logit", "ID", uint64_t{1} << 32);
    if (!id) return id.error();
    asked.token = uint32_t(*id);
    return asked;
}

Result<AskedDirections> asked_directions(const Arguments& arguments, const CheckpointModel& model) {
    const std::vector<std::string_view> words = split(arguments.text("--directions"), ',');
    if (words.size() > 2)
        return bad("--directions", "--directions is '" + std::string(arguments.text("--directions")) +
                                       "'; it must be a head, or a head and a count, such as 1.2,3");
    const Result<Head> head = parse_head(words[0], "--directions", model.config());
    if (!head) return head.error();
    AskedDirections asked{uint32_t(head->layer), uint32_t(head->head)};
    if (words.size() == 1) return asked;
    const Result<uint64_t> count =
        number_below(words[1], "--directions", "count", model.config().head_width + 1);
    if (!count) return count.error();
    asked.count = size_t(*count);
    return asked;
}

Result<RunChanges> model_changes(const Arguments& arguments, const CheckpointModel& model, uint64_t tokens,
                                 const ModelRunOptions& options) {
    return ChangesReader(arguments, model, tokens).read(options);
}

}  // namespace fovea::app
